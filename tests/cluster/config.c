/* Clusters as TensorFlow describes them: who is who, and a sentence for each mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cluster/parse.h"

/* "chief a:1, *worker 0 b:1": all tasks in order, this process's with a star. */
static char *describe(const tdi_cluster_config *config)
{
    tdi_text text = {0};
    char name[TDI_TASK_NAME];
    tdi_text_add(&text, "");
    for (int i = 0; i < config->count; i++)
        tdi_text_format(&text, "%s%s%s %s", i ? ", " : "", i == config->self ? "*" : "",
                        tdi_task_name(&config->tasks[i], name),
                        config->tasks[i].address ? config->tasks[i].address : "?");
    return text.chars;
}

#define TWO "\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}"

static const struct good {
    const char *json, *task, *tasks;
    int on_host;
} good[] = {
    {"{" TWO ", \"task\": {\"type\": \"worker\", \"index\": 1}}", NULL, "worker 0 a:1, *worker 1 b:1", 1},
    {"{" TWO ", \"task\": {\"type\": \"worker\", \"index\": \"1\"}}", NULL, "worker 0 a:1, *worker 1 b:1", 1},
    {"{" TWO ", \"task\": {\"type\": \"worker\", \"index\": 1}}", "worker:0", "*worker 0 a:1, worker 1 b:1", 1},
    {"{" TWO "}", "worker:0", "*worker 0 a:1, worker 1 b:1", 1},
    {"{" TWO ", \"task\": {\"type\": \"evaluator\", \"index\": 0}}", NULL, "worker 0 a:1, worker 1 b:1, *evaluator ?",
     1},
    {"{" TWO "}", "evaluator", "worker 0 a:1, worker 1 b:1, *evaluator ?", 1},
    {"{\"cluster\": {\"evaluator\": [\"e:1\"], \"ps\": [\"p:1\"], \"worker\": [\"w:1\"], \"chief\": [\"c:1\"]},"
     " \"task\": {\"type\": \"chief\", \"index\": 0}}",
     NULL, "*chief c:1, worker 0 w:1, ps 0 p:1, evaluator e:1", 1},
    {"{\"cluster\": {\"chief\": [\"c:1\"], \"worker\": [\"w:1\"]}, \"task\": {\"type\": \"chief\"}}", NULL,
     "*chief c:1, worker 0 w:1", 1},
    {"{\"cluster\": {\"chief\": [\"c:1\"], \"worker\": [\"w:1\"]}, \"task\": {\"type\": \"worker\"}}", NULL,
     "chief c:1, *worker 0 w:1", 1},
    {"{\"cluster\": {\"chief\": [\"c:1\"]}, \"task\": {\"type\": \"chief\", \"index\": 0}}", NULL, "*chief c:1", 1},
    {"{\"cluster\": {\"worker\": {\"1\": \"b:1\", \"0\": \"a:1\"}}}", "worker:1", "worker 0 a:1, *worker 1 b:1", 1},
    {"{\"cluster\": {\"worker\": [\"a:1\", \"A:2\", \"b:1\"], \"ps\": []}}", "worker:0",
     "*worker 0 a:1, worker 1 A:2, worker 2 b:1", 2},
    {"{\"cluster\": {\"worker\": [\"[::1]:1\", \"[fe80::1%eth0]:65535\"]}}", "worker:0",
     "*worker 0 [::1]:1, worker 1 [fe80::1%eth0]:65535", 1},
    {"{" TWO ", \"task\": {\"type\": \"worker\", \"index\": 0}, \"environment\": \"cloud\", \"rpc_layer\": \"grpc\"}",
     NULL, "*worker 0 a:1, worker 1 b:1", 1},
};

static void clusters_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tdi_cluster_config config;
        tdi_error error = {0};
        setenv("TF_CONFIG", good[i].json, 1);
        if (tdi_cluster_config_read(&(tdi_cluster_request){.task = good[i].task}, &config, &error) != TD_OK)
            fail_msg("%s: %s", good[i].json, error.message);
        char *tasks = describe(&config);
        assert_string_equal(tasks, good[i].tasks);
        assert_string_equal(config.source, "TF_CONFIG");
        assert_int_equal(config.on_host, good[i].on_host);
        free(tasks);
        tdi_cluster_config_free(&config);
    }
}

#define WORKERS(...) "{\"cluster\": {\"worker\": [" __VA_ARGS__ "]}, \"task\": {\"type\": \"worker\", \"index\": 0}}"
#define CLUSTER(...) "{\"cluster\": {" __VA_ARGS__ "}, \"task\": {\"type\": \"worker\", \"index\": 0}}"
#define TASK(...)    "{" TWO ", \"task\": " __VA_ARGS__ "}"

static const struct bad {
    const char *json, *task, *sentence;
} bad[] = {
    /* what is no JSON */
    {"{\"cluster\": {\"worker\": [\"a:2222\", \"b:2222\"}}", NULL, "TF_CONFIG is not JSON: column 43: ']' expected"},
    {"x", NULL, "TF_CONFIG is not JSON: column 1: '[' or '{' expected"},
    {"{'cluster': {'worker': ['a:1']}}", NULL, "its quotes are \", not '"},
    {"{\n\"cluster\": {]}", NULL, "TF_CONFIG is not JSON: line 2, column 13: "},
    {"{\"cluster\": {}, \"cluster\": {}}", NULL, "duplicate object key"},
    {"{" TWO "} x", NULL, "end of file expected"},
    {"/", NULL, "TF_CONFIG is not JSON but the name of a file; give --cluster / instead"},
    {"[1]", NULL, "TF_CONFIG: expected {\"cluster\": ..., \"task\": ...}, got a list"},
    /* the cluster */
    {"{}", NULL, "TF_CONFIG: no \"cluster\": this would train alone; add it, or unset TF_CONFIG"},
    {"{\"task\": {\"type\": \"worker\", \"index\": 0}}", NULL, "no \"cluster\": this would train alone"},
    {"{\"worker\": [\"a:1\"]}", "worker:0", "no \"cluster\": put the task types into it"},
    {"{\"Cluster\": {\"worker\": [\"a:1\"]}}", NULL, "\"Cluster\": did you mean \"cluster\"?"},
    {"{\"clusters\": {\"worker\": [\"a:1\"]}}", NULL, "\"clusters\": did you mean \"cluster\"?"},
    {"{\"cluster\": [\"a:1\"]}", NULL, "\"cluster\": expected an object of task types, {\"worker\": "},
    {"{\"cluster\": null}", NULL, "\"worker\": [\"host:port\", ...]}, got null"},
    {"{\"cluster\": {}}", NULL, "\"cluster\" has no tasks; add \"worker\""},
    {"{\"cluster\": {\"worker\": []}}", NULL, "\"cluster\" has no tasks"},
    {CLUSTER("\"workers\": [\"a:1\"]"), NULL, "task type \"workers\" in \"cluster\": did you mean worker?"},
    {CLUSTER("\"Worker\": [\"a:1\"]"), NULL, "task type \"Worker\" in \"cluster\": did you mean worker?"},
    {CLUSTER("\"master\": [\"a:1\"]"), NULL, "task type \"master\" in \"cluster\": did you mean chief?"},
    {CLUSTER("\"gpu\": [\"a:1\"]"), NULL, "task type \"gpu\" in \"cluster\": expected chief, worker, ps or evaluator"},
    {CLUSTER("\"worker\": \"a:1\""), NULL, "worker: expected a list, [\"host:port\", ...], got a string"},
    {CLUSTER("\"worker\": {\"0\": \"a:1\", \"2\": \"b:1\"}"), NULL,
     "worker: expected addresses for the indices 0 to 1, and 1 is missing; number them from 0 on"},
    {CLUSTER("\"ps\": [\"a:1\"]"), NULL, "the cluster has no worker; add \"worker\""},
    {CLUSTER("\"worker\": [\"w:1\"], \"chief\": [\"a:1\", \"b:1\"]"), NULL, "chief: 2 addresses; a cluster has one"},
    {CLUSTER("\"worker\": [\"w:1\"], \"evaluator\": [\"a:1\", \"b:1\"]"), NULL, "evaluator: 2 addresses"},
    {"{\"cluster\": {\"ps\": [\"a:1\"]}, \"task\": {\"type\": \"ps\"}}", NULL,
     "there is neither a chief nor a worker, so nobody trains"},
    /* addresses */
    {WORKERS("\"a:1\", \"node2\""), NULL, "worker 1: address \"node2\": a port is missing; expected host:port"},
    {WORKERS("\"a:\""), NULL, "worker 0: address \"a:\": its port is not a number"},
    {WORKERS("\"a:x\""), NULL, "its port is not a number"},
    {WORKERS("\"a:0\""), NULL, "its port is not from 1 to 65535"},
    {WORKERS("\":1\""), NULL, "a host is missing"},
    {WORKERS("\"\""), NULL, "worker 0: address \"\": a port is missing"},
    {WORKERS("\"grpc://a:1\""), NULL, "its host is no name or address"},
    {WORKERS("\"::1:2222\""), NULL, "an IPv6 address stands in brackets"},
    {WORKERS("\"a\\nb:1\""), NULL, "worker 0: address \"a?b:1\": its host is no name or address"},
    {WORKERS("\"a:1\", 2"), NULL, "worker 1: expected an address, \"host:port\", got a number"},
    {WORKERS("\"a:1\", null"), NULL, "worker 1: expected an address, \"host:port\", got null"},
    {WORKERS("\"a:1\", \"a:1\""), NULL, "worker 0 and worker 1 both are a:1; give each process a host or a port"},
    {CLUSTER("\"worker\": [\"node1:2222\"], \"ps\": [\"Node1:2222\"]"), NULL, "worker 0 and ps 0 both are Node1:2222"},
    /* the task */
    {"{" TWO "}", NULL, "no \"task\": which task is this process? Add \"task\""},
    {"{" TWO ", \"tasks\": {}}", NULL, "\"tasks\": did you mean \"task\"?"},
    {TASK("\"worker\""), NULL, "\"task\": expected {\"type\": \"worker\", \"index\": 0}, got a string"},
    {TASK("{}"), NULL, "\"task\": \"type\": expected \"chief\", \"worker\", \"ps\" or \"evaluator\", got nothing"},
    {TASK("{\"type\": \"workers\", \"index\": 0}"), NULL, "task type \"workers\": did you mean worker?"},
    {TASK("{\"type\": \"worker\"}"), NULL, "task worker: which of the workers 0 to 1? Add its index"},
    {TASK("{\"type\": \"worker\", \"index\": 3}"), NULL, "task worker 3, but the cluster has workers 0 to 1"},
    {TASK("{\"type\": \"worker\", \"index\": -1}"), NULL, "expected a whole number from 0, got -1"},
    {TASK("{\"type\": \"worker\", \"index\": 1.0}"), NULL, "expected a whole number from 0, got a number with a point"},
    {TASK("{\"type\": \"worker\", \"index\": \"x\"}"), NULL, "expected a whole number from 0, got \"x\""},
    {TASK("{\"type\": \"worker\", \"index\": null}"), NULL, "expected a whole number from 0, got null"},
    {TASK("{\"type\": \"chief\", \"index\": 0}"), NULL,
     "task chief 0, but the cluster has no chief; worker 0 is the chief then"},
    {TASK("{\"type\": \"ps\", \"index\": 0}"), NULL, "task ps 0, but the cluster has no ps; add \"ps\""},
    {TASK("{\"type\": \"evaluator\", \"index\": 1}"), NULL, "a cluster has one evaluator; its index is 0"},
    {"{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 1}}", NULL,
     "task worker 1, but the cluster has worker 0 alone"},
    {"{" TWO "}", "wrkr:0", "task type \"wrkr\" of --task: expected chief, worker, ps or evaluator"},
    {"{" TWO "}", "workers:0", "task type \"workers\" of --task: did you mean worker?"},
    {"{" TWO "}", "worker:x", "--task: expected TYPE:INDEX, got 'worker:x'; try --task worker:0"},
    {"{" TWO "}", "worker:", "--task: expected TYPE:INDEX, got 'worker:'"},
    {"{" TWO "}", "worker", "which of the workers 0 to 1?"},
    {"{" TWO "}", "worker:2", "task worker 2, but the cluster has workers 0 to 1"},
};

static void check_bad(const struct bad *want, const tdi_cluster_request *request)
{
    tdi_cluster_config config;
    tdi_error error = {0};
    if (tdi_cluster_config_read(request, &config, &error) != TD_INVALID_ARGUMENT)
        fail_msg("%s is taken", want->json);
    if (!strstr(error.message, want->sentence))
        fail_msg("%s: \"%s\" does not say \"%s\"", want->json, error.message, want->sentence);
    assert_null(strchr(error.message, '\n'));
    tdi_cluster_config_free(&config);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("TF_CONFIG", bad[i].json, 1);
        check_bad(&bad[i], &(tdi_cluster_request){.task = bad[i].task});
    }
}

static void several_mistakes_are_counted(void **state)
{
    (void)state;
    tdi_cluster_config config;
    tdi_mistakes mistakes = {0};
    setenv("TF_CONFIG", WORKERS("\"a\", \"b\", \"c:1\""), 1);
    assert_int_equal(tdi_cluster_config_look(&(tdi_cluster_request){0}, &config, &mistakes), TD_OK);
    assert_int_equal(mistakes.list.count, 2);
    tdi_mistakes_free(&mistakes);
    tdi_cluster_config_free(&config);
    check_bad(&(struct bad){"two", NULL, "(and 1 more: `tandem doctor --cluster` lists them)"},
              &(tdi_cluster_request){0});
}

static void too_many_tasks_are_refused(void **state)
{
    (void)state;
    tdi_text text = {0};
    tdi_text_add(&text, "{\"cluster\": {\"worker\": [\"a:1\"");
    for (int i = 0; i < TDI_MAX_TASKS; i++)
        tdi_text_format(&text, ", \"b:%d\"", i + 1);
    tdi_text_add(&text, "]}}");
    setenv("TF_CONFIG", text.chars, 1);
    check_bad(&(struct bad){"1025", NULL, "worker: the cluster has more than 1024 tasks"}, &(tdi_cluster_request){0});
    tdi_text_free(&text);
}

/* ---- files ---- */

static char path[] = "/tmp/tandem-cluster-XXXXXX";

static void put(const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

/* A file may hold the whole, or the cluster alone. */
static void files_are_read(void **state)
{
    (void)state;
    const char *texts[] = {"{" TWO "}", "{\"worker\": [\"a:1\", \"b:1\"]}",
                           "{" TWO ", \"task\": {\"type\": \"worker\", \"index\": 0}}"};
    setenv("TF_CONFIG", "not read", 1);
    for (size_t i = 0; i < 3; i++) {
        tdi_cluster_config config;
        put(texts[i], strlen(texts[i]));
        tdi_cluster_request request = {.cluster = path, .task = "worker:1"};
        assert_int_equal(tdi_cluster_config_read(&request, &config, NULL), TD_OK);
        char *tasks = describe(&config);
        assert_string_equal(tasks, "worker 0 a:1, *worker 1 b:1");
        assert_string_equal(config.source, path);
        free(tasks);
        tdi_cluster_config_free(&config);
    }
    unsetenv("TF_CONFIG");
}

static void files_that_are_none_are_refused(void **state)
{
    (void)state;
    char *large = calloc(1, 2 << 20);
    tdi_cluster_request request = {.cluster = path};
    put("{" TWO "}", strlen("{" TWO "}"));
    check_bad(&(struct bad){"no task", NULL, "does not say which task this process is; give --task worker:0"},
              &request);
    put("{}", 2);
    check_bad(&(struct bad){"{}", NULL, "this would train alone; add it, or leave out the file"}, &request);
    put("", 0);
    check_bad(&(struct bad){"empty", NULL, "is not JSON: "}, &request);
    put("{}\0", 3);
    check_bad(&(struct bad){"NUL", NULL, "got a file that is no text"}, &request);
    memset(large, ' ', 2 << 20);
    put(large, 2 << 20);
    check_bad(&(struct bad){"large", NULL, "got a file of more than 1048576 bytes"}, &request);
    free(large);
    check_bad(&(struct bad){"/", NULL, "got a folder"}, &(tdi_cluster_request){.cluster = "/"});
    check_bad(&(struct bad){"/dev/null", NULL, "got a pipe or a device"},
              &(tdi_cluster_request){.cluster = "/dev/null"});
    check_bad(&(struct bad){"none", NULL, "/nowhere/a: the file cannot be read: No such file or directory"},
              &(tdi_cluster_request){.cluster = "/nowhere/a"});
    check_bad(&(struct bad){"rendezvous", NULL, "the addresses are known by --cluster; leave out --rendezvous"},
              &(tdi_cluster_request){.cluster = path, .rendezvous = "a:1"});
}

static void nothing_is_there(void **state)
{
    (void)state;
    tdi_cluster_config config;
    clearenv();
    assert_int_equal(tdi_cluster_config_read(&(tdi_cluster_request){0}, &config, NULL), TD_OK);
    assert_int_equal(config.count, 0);
    setenv("TF_CONFIG", "", 1);
    assert_int_equal(tdi_cluster_config_read(&(tdi_cluster_request){0}, &config, NULL), TD_OK);
    assert_int_equal(config.count, 0);
    check_bad(&(struct bad){"--task", NULL, "there is no cluster; give --cluster FILE too"},
              &(tdi_cluster_request){.task = "worker:0"});
    check_bad(&(struct bad){"--rendezvous", NULL, "no launcher's variables are set"},
              &(tdi_cluster_request){.rendezvous = "a:1"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(clusters_are_read),
                                       cmocka_unit_test(mistakes_are_named),
                                       cmocka_unit_test(several_mistakes_are_counted),
                                       cmocka_unit_test(too_many_tasks_are_refused),
                                       cmocka_unit_test(files_are_read),
                                       cmocka_unit_test(files_that_are_none_are_refused),
                                       cmocka_unit_test(nothing_is_there)};
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
