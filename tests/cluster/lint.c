/* What is wrong with configurations that can be read: on a host of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/lint.h"
#include "cluster/parse.h"

/* ---- a host: node1, 10.0.0.5 ---- */

static void found(tdi_addresses *list, const char *address)
{
    strcpy(list->at[list->count++], address);
}

static void resolve(const char *name, tdi_addresses *list)
{
    static const char *const names[][2] = {
        {"node1", "10.0.0.5"},      {"node2", "10.0.0.7"},  {"node3", "10.0.0.8"},
        {"localhost", "127.0.0.1"}, {"node4", "127.0.1.1"}, {"10.0.0.5", "10.0.0.5"},
        {"127.0.0.1", "127.0.0.1"}, {"::1", "::1"},         {"10.0.0.7", "10.0.0.7"}};
    list->count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0)
            found(list, names[i][1]);
}

static void own(tdi_addresses *list)
{
    list->count = 0;
    found(list, "127.0.0.1");
    found(list, "10.0.0.5");
}

static bool in_use(const char *address, int port, char who[TDI_ADDRESS])
{
    strcpy(who, "process 812 (tandem)");
    return port == 2223 && strcmp(address, "10.0.0.5") == 0;
}

static const tdi_host node1 = {resolve, own, in_use};

/* ---- cases ---- */

#define TASKS(type, index, ...)                                                                                        \
    "{\"cluster\": {" __VA_ARGS__ "}, \"task\": {\"type\": \"" type "\", \"index\": " index "}}"

enum { MOST = 4 };

static const struct linted {
    const char *configs[MOST];
    bool here;
    int mistakes;
    const char *sentence;
} cases[] = {
    /* nothing is wrong */
    {{TASKS("worker", "0", "\"worker\": [\"node1:2222\", \"node2:2222\"]")}, true, 0, NULL},
    {{TASKS("worker", "1", "\"worker\": [\"localhost:1\", \"127.0.0.1:2\"]")}, true, 0, NULL},
    {{"{\"cluster\": {\"worker\": [\"node1:2222\", \"node2:2222\"]}}"}, true, 0, NULL},
    {{TASKS("worker", "1", "\"worker\": [\"node1:2222\", \"node2:2222\"]")}, false, 0, NULL},
    {{TASKS("evaluator", "0", "\"worker\": [\"node1:2222\"]"),
      TASKS("worker", "0", "\"worker\": [\"node1:2222\"], \"evaluator\": [\"node2:1\"]")},
     false,
     0,
     NULL},
    {{TASKS("worker", "0", "\"worker\": [\"node1:1\"]"), TASKS("evaluator", "0", "\"worker\": [\"NODE1:1\"]")},
     false,
     0,
     NULL},
    /* one */
    {{TASKS("worker", "0", "\"worker\": [\"node1:2222\", \"node9:2222\"]")},
     true,
     1,
     "node9 has no address here; write it into /etc/hosts or DNS"},
    {{TASKS("worker", "0", "\"worker\": [\"node1:2222\", \"node9:1\", \"node9:2\"]")}, true, 1, "node9 has no address"},
    {{TASKS("worker", "1", "\"worker\": [\"node1:2222\", \"node2:2222\"]")},
     true,
     1,
     "worker 1 is 10.0.0.7, which is no address of this host (10.0.0.5): the index is wrong, or give --bind"},
    {{TASKS("chief", "0", "\"chief\": [\"10.0.0.7:1\"], \"worker\": [\"node1:1\"]")},
     true,
     1,
     "chief is 10.0.0.7, which is no address of this host (10.0.0.5)"},
    {{TASKS("worker", "0", "\"worker\": [\"node1:2222\", \"localhost:2222\"]")},
     true,
     1,
     "worker 1 is localhost in a cluster of several hosts: the others would find themselves"},
    {{TASKS("worker", "0", "\"worker\": [\"127.0.0.1:2222\", \"node2:2222\"]")},
     true,
     1,
     "worker 0 is 127.0.0.1 in a cluster of several hosts"},
    {{TASKS("worker", "0", "\"worker\": [\"[::1]:2222\", \"node2:2222\"]")}, true, 1, "worker 0 is ::1 in a cluster"},
    {{TASKS("worker", "0", "\"worker\": [\"node4:2222\", \"node2:2222\"]")},
     true,
     1,
     "worker 0 is at node4, which is 127.0.1.1 here and reaches no other host; take that out of /etc/hosts"},
    {{TASKS("worker", "0", "\"worker\": [\"node1:2223\", \"node2:2222\"]")},
     true,
     1,
     "port 2223 of node1 is in use by process 812 (tandem); end that, or give worker 0 another port"},
    {{TASKS("worker", "0", "\"worker\": [\"node1:2222\"], \"ps\": [\"node2:1\", \"node3:1\"]")},
     true,
     1,
     "the cluster has 2 ps, which would idle"},
    /* several */
    {{TASKS("chief", "0", "\"chief\": [\"node1:1\"], \"worker\": [\"node2:1\", \"node2:2\", \"node2:3\", \"node2:4\"]"),
      TASKS("worker", "1", "\"chief\": [\"node1:1\"], \"worker\": [\"node2:1\", \"node2:2\", \"node2:3\"]")},
     false,
     1,
     "tasks disagree: worker 1 lists 3 workers, chief 4; give all the same \"cluster\""},
    {{TASKS("worker", "0", "\"worker\": [\"node1:1\", \"node2:1\"]"),
      TASKS("worker", "1", "\"worker\": [\"node1:2\", \"node2:1\"]")},
     false,
     1,
     "tasks disagree: worker 1 has worker 0 at node1:2, worker 0 at node1:1"},
    {{TASKS("worker", "0", "\"worker\": [\"node1:1\"]"),
      TASKS("worker", "0", "\"worker\": [\"node1:1\"], \"chief\": [\"node2:1\"]")},
     false,
     2,
     "tasks disagree: worker 0 lists 1 chief, worker 0 0"},
    {{TASKS("worker", "0", "\"worker\": [\"node1:1\", \"node2:1\"]"),
      TASKS("worker", "1", "\"worker\": [\"node1:1\", \"node2:1\"]"),
      TASKS("worker", "0", "\"worker\": [\"node1:1\", \"node2:1\"]")},
     false,
     1,
     "two files are task worker 0: TF_CONFIG and TF_CONFIG; give each process a task of its own"},
};

static void check(const struct linted *want)
{
    tdi_cluster_config configs[MOST];
    tdi_mistakes mistakes = {0};
    int count = 0;
    for (; count < MOST && want->configs[count]; count++) {
        setenv("TF_CONFIG", want->configs[count], 1);
        tdi_cluster_request request = {.task = strstr(want->configs[count], "\"task\"") ? NULL : "worker:0"};
        assert_int_equal(tdi_cluster_config_read(&request, &configs[count], NULL), TD_OK);
    }
    tdi_cluster_lint(&(tdi_cluster_lint_spec){configs, count, want->here, &node1}, &mistakes);
    if (mistakes.list.count != want->mistakes)
        fail_msg("%s: %d mistakes: %s", want->configs[0], mistakes.list.count,
                 mistakes.list.count ? mistakes.list.at[0] : "");
    if (want->sentence && !strstr(mistakes.list.at[0], want->sentence))
        fail_msg("\"%s\" does not say \"%s\"", mistakes.list.at[0], want->sentence);
    tdi_mistakes_free(&mistakes);
    for (int i = 0; i < count; i++)
        tdi_cluster_config_free(&configs[i]);
}

static void mistakes_are_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

static void the_secret_is_nobody_elses(void **state)
{
    (void)state;
    char path[] = "/tmp/tandem-secret-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "0123456789abcdef", 16) == 16);
    setenv("TANDEM_SECRET_FILE", path, 1);
    struct linted one = {{TASKS("worker", "0", "\"worker\": [\"node1:1\"]")}, true, 0, NULL};
    check(&one);
    assert_int_equal(fchmod(fd, 0640), 0);
    one.mistakes = 1;
    one.sentence = "users other than its owner have rights to it (mode 0640); chmod 600 it";
    check(&one);
    close(fd);
    unlink(path);
    one.sentence = "cannot be opened: No such file";
    check(&one);
    unsetenv("TANDEM_SECRET_FILE");
}

/* ---- this host itself ---- */

static bool has(const tdi_addresses *list, const char *address)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->at[i], address) == 0)
            return true;
    return false;
}

static void this_host_has_addresses(void **state)
{
    (void)state;
    tdi_addresses list;
    tdi_this_host.resolve("127.0.0.1", &list);
    assert_true(list.count == 1 && has(&list, "127.0.0.1"));
    tdi_this_host.resolve("no such name", &list);
    assert_int_equal(list.count, 0);
    tdi_this_host.own(&list);
    assert_true(has(&list, "127.0.0.1"));
}

/* A socket that only holds its port, as the one of `tandem launch`, is nobody's that listens. */
static void a_port_in_use_is_seen(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char who[TDI_ADDRESS], me[TDI_ADDRESS];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    assert_false(tdi_this_host.in_use("127.0.0.1", ntohs(at.sin_port), who));
    assert_int_equal(listen(fd, 1), 0);
    assert_true(tdi_this_host.in_use("127.0.0.1", ntohs(at.sin_port), who));
    snprintf(me, sizeof me, "process %d (", (int)getpid());
    assert_int_equal(strncmp(who, me, strlen(me)), 0);
    close(fd);
    assert_false(tdi_this_host.in_use("127.0.0.1", ntohs(at.sin_port), who));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_seen), cmocka_unit_test(the_secret_is_nobody_elses),
        cmocka_unit_test(this_host_has_addresses), cmocka_unit_test(a_port_in_use_is_seen)};
    unsetenv("TANDEM_SECRET_FILE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
