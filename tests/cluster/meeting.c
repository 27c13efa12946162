/* Processes, which are threads here, meet over loopback: by all addresses or by the first one's alone. What they share
 * arrives whole and in order; one that leaves, or is none of them, is named, and strangers disturb nobody. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "cluster/meeting_struct.h"
#include "support/link_end.h"

enum { MOST = 5, TEXT = 1200 };

typedef struct member {
    struct place *place;
    int self;
    td_context *context;
    tdi_cluster_config config;
    tdi_meeting *meeting;
    td_status status;
    tdi_error error;
    int told; /* how often it heard that somebody is lost */
    tdi_error why;
    char log[TEXT];
    char wrong[TEXT]; /* what a thread found; asserted by the main one */
} member;

typedef struct place {
    int count;
    double start_timeout;
    tdi_security *security;
    int sockets[MOST]; /* which hold the ports */
    char addresses[MOST][32];
    member members[MOST];
} place;

/* ---- members ---- */

__attribute__((format(printf, 2, 3))) static void find_wrong(member *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!*m->wrong)
        vsnprintf(m->wrong, sizeof m->wrong, format, args);
    va_end(args);
}

static void on_log(void *user, td_log_level level, const char *line)
{
    member *m = user;
    size_t used = strlen(m->log);
    (void)level;
    snprintf(m->log + used, sizeof m->log - used, "%s\n", line);
}

static void on_lost(void *user, const tdi_error *why)
{
    member *m = user;
    m->told++;
    m->why = *why;
}

static void take_port(place *p, int i)
{
    tdi_endpoint bound = {.size = sizeof bound.at};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    p->sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(p->sockets[i], SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), 0);
    assert_int_equal(bind(p->sockets[i], (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(p->sockets[i], (struct sockaddr *)&bound.at, &bound.size), 0);
    snprintf(p->addresses[i], sizeof p->addresses[i], "127.0.0.1:%d", tdi_endpoint_port(&bound));
}

static void make_member(place *p, int i, bool all_addresses)
{
    member *m = &p->members[i];
    const td_context_options options = {.log = on_log, .log_user = m};
    *m = (member){.place = p, .self = i, .context = td_context_create(&options)};
    m->config = (tdi_cluster_config){.count = p->count, .self = i};
    m->config.tasks = calloc((size_t)p->count, sizeof *m->config.tasks);
    assert_non_null(m->config.tasks);
    for (int task = 0; task < p->count; task++)
        m->config.tasks[task] = (tdi_task){.type = TDI_WORKER,
                                           .index = task,
                                           .address = all_addresses || task == 0 ? strdup(p->addresses[task]) : NULL};
}

static void make_place(place *p, int count, bool all_addresses)
{
    *p = (place){.count = count, .start_timeout = 60, .security = link_security(1)};
    for (int i = 0; i < count; i++)
        take_port(p, i);
    for (int i = 0; i < count; i++)
        make_member(p, i, all_addresses);
}

static void close_place(place *p)
{
    for (int i = 0; i < p->count; i++) {
        member *m = &p->members[i];
        tdi_meeting_close(m->meeting);
        tdi_cluster_config_free(&m->config);
        td_context_free(m->context);
        close(p->sockets[i]);
    }
    tdi_security_free(p->security);
}

/* ---- threads ---- */

typedef struct job {
    void (*function)(member *m);
    member *m;
    pthread_t thread;
} job;

static void *run_job(void *argument)
{
    const job *j = argument;
    j->function(j->m);
    return NULL;
}

static void begin(job *j, void (*function)(member *m), member *m)
{
    *j = (job){.function = function, .m = m};
    assert_int_equal(pthread_create(&j->thread, NULL, run_job, j), 0);
}

static void end(job *j)
{
    pthread_join(j->thread, NULL);
    if (*j->m->wrong)
        fail_msg("member %d: %s", j->m->self, j->m->wrong);
}

/* All members do it, each in a thread. */
static void run_all(place *p, void (*function)(member *m))
{
    job jobs[MOST];
    for (int i = 0; i < p->count; i++)
        begin(&jobs[i], function, &p->members[i]);
    for (int i = 0; i < p->count; i++)
        end(&jobs[i]);
}

static void meet(member *m)
{
    const tdi_meeting_spec spec = {.context = m->context,
                                   .config = &m->config,
                                   .members = m->place->count,
                                   .security = m->place->security,
                                   .start_timeout = m->place->start_timeout};
    m->status = tdi_meeting_open(&spec, &m->meeting, &m->error);
    if (m->meeting)
        tdi_meeting_tell(m->meeting, on_lost, m);
}

static void meet_well(member *m)
{
    meet(m);
    if (m->status != TD_OK)
        find_wrong(m, "no meeting: %s", m->error.message);
}

static void open_place(place *p, int count, bool all_addresses)
{
    make_place(p, count, all_addresses);
    run_all(p, meet_well);
}

static void expect_sentence(const member *m, td_status status, const char *words)
{
    if (m->error.status != status || !strstr(m->error.message, words))
        fail_msg("member %d: expected status %d and \"%s\", got %d and \"%s\"", m->self, status, words, m->error.status,
                 m->error.message);
}

/* ---- meeting ---- */

static void check_others(member *m)
{
    const place *p = m->place;
    for (int i = 0; i < p->count; i++) {
        char name[64];
        snprintf(name, sizeof name, m->config.tasks[i].address ? "worker %d (%s)" : "worker %d (127.0.0.1:", i,
                 p->addresses[i]);
        tdi_link *bulk = tdi_meeting_take_bulk(m->meeting, i);
        if (i != m->self && strncmp(tdi_meeting_name(m->meeting, i), name, strlen(name)) != 0)
            find_wrong(m, "%d is called %s", i, tdi_meeting_name(m->meeting, i));
        if (i != m->self && (!bulk || tdi_link_get_state(bulk) != TDI_LINK_OPEN))
            find_wrong(m, "there is no link for bulk data with %d", i);
        if (i != m->self && !tdi_meeting_is_neighbour(m->meeting, i))
            find_wrong(m, "%d is of another host", i);
        if (tdi_meeting_take_bulk(m->meeting, i))
            find_wrong(m, "a link was taken twice");
        tdi_link_free(bulk);
    }
}

static void part(member *m)
{
    tdi_meeting_part(m->meeting, INFINITY);
    tdi_meeting_tell(m->meeting, NULL, NULL);
    tdi_meeting_close(m->meeting);
    m->meeting = NULL;
    if (m->told)
        find_wrong(m, "heard of a loss: %s", m->why.message);
}

static void all_meet_and_part(void **state)
{
    (void)state;
    for (int count = 2; count <= MOST; count += count - 1)
        for (int all = 0; all < 2; all++) {
            place p;
            open_place(&p, count, all);
            run_all(&p, check_others);
            run_all(&p, part);
            close_place(&p);
        }
}

static void those_who_do_not_come_are_named(void **state)
{
    (void)state;
    place p;
    make_place(&p, 3, true);
    p.start_timeout = 0.3;
    meet(&p.members[1]);
    assert_null(p.members[1].meeting);
    expect_sentence(&p.members[1], TD_NOT_FOUND, "did not come within 0.3 seconds; the last attempt: worker 0 (127");
    assert_non_null(strstr(p.members[1].error.message, "), worker 2 (127"));
    close_place(&p);
}

static void a_stop_ends_the_waiting(void **state)
{
    (void)state;
    place p;
    job waiting;
    make_place(&p, 2, true);
    begin(&waiting, meet, &p.members[0]);
    td_request_stop(p.members[0].context);
    end(&waiting);
    expect_sentence(&p.members[0], TD_STOPPED, "");
    close_place(&p);
}

/* ---- sharing ---- */

static const size_t sizes[] = {0, 1, 31, 4096, 0, 16384, 16385, 1000000, 0, 10000000, 3, 0};

static size_t size_of(int round, int giver)
{
    size_t count = sizeof sizes / sizeof *sizes;
    return sizes[((size_t)round + 5 * (size_t)giver) % count];
}

static char byte_of(int round, int giver, size_t at)
{
    return (char)(31 * round + 7 * giver + (int)(at * 2654435761U >> 24));
}

static void check_shared(member *m, int round, int giver, const tdi_shared *shared)
{
    if (giver == m->self) {
        if (shared->bytes)
            find_wrong(m, "got its own bytes");
        return;
    }
    if (!shared->bytes || shared->size != size_of(round, giver) || shared->bytes[shared->size])
        find_wrong(m, "round %d: %zu bytes of %d, expected %zu", round, shared->size, giver, size_of(round, giver));
    for (size_t i = 0; shared->bytes && i < shared->size; i++)
        if (shared->bytes[i] != byte_of(round, giver, i)) {
            find_wrong(m, "round %d: byte %zu of %d is another", round, i, giver);
            return;
        }
}

static void share_once(member *m, int round)
{
    tdi_shared all[MOST];
    size_t size = size_of(round, m->self);
    char *own = malloc(size + 1);
    for (size_t i = 0; own && i < size; i++)
        own[i] = byte_of(round, m->self, i);
    m->status = own ? tdi_meeting_share(m->meeting, own, size, all, &m->error) : TD_NO_MEMORY;
    if (own)
        memset(own, 0, size); /* it has been copied */
    free(own);
    if (m->status != TD_OK)
        return;
    for (int giver = 0; giver < m->place->count; giver++)
        check_shared(m, round, giver, &all[giver]);
    tdi_shared_free(all, m->place->count);
}

static void share_all(member *m)
{
    for (int round = 0; round < (int)(sizeof sizes / sizeof *sizes) && !*m->wrong; round++) {
        share_once(m, round);
        if (m->status != TD_OK)
            find_wrong(m, "round %d: %s", round, m->error.message);
    }
}

static void shares_arrive_whole_and_in_order(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        place p;
        open_place(&p, 3, all);
        run_all(&p, share_all);
        run_all(&p, part);
        close_place(&p);
    }
}

/* ---- leaving ---- */

static void share_until_it_fails(member *m)
{
    m->status = TD_OK;
    for (int round = 0; m->status == TD_OK; round++)
        share_once(m, 3); /* of 4096 bytes or less, but for one */
}

/* The last member does what it does in the midst; the others fail, and say the sentence. */
static void expect_end_of_others(void (*last)(member *m), td_status status, const char *format, int told)
{
    place p;
    job jobs[MOST];
    char sentence[TEXT];
    open_place(&p, 3, true);
    for (int i = 0; i < 3; i++)
        begin(&jobs[i], i == 2 ? last : share_until_it_fails, &p.members[i]);
    for (int i = 0; i < 3; i++)
        end(&jobs[i]);
    snprintf(sentence, sizeof sentence, format, tdi_meeting_name(p.members[0].meeting, 2));
    for (int i = 0; i < 2; i++) {
        expect_sentence(&p.members[i], status, sentence);
        assert_int_equal(p.members[i].told, told);
        tdi_meeting_tell(p.members[i].meeting, NULL, NULL);
    }
    close_place(&p);
}

static void just_close(member *m)
{
    share_once(m, 3);
    tdi_meeting_close(m->meeting);
    m->meeting = NULL;
}

static void say_farewell_and_close(member *m, const char *sentence)
{
    tdi_error why = {0};
    tdi_fail(&why, TD_NOT_FINITE, "%s", sentence);
    tdi_meeting_farewell(m->meeting, &why);
    tdi_meeting_part(m->meeting, INFINITY);
    tdi_meeting_close(m->meeting);
    m->meeting = NULL;
}

static void say_its_own_end(member *m)
{
    share_once(m, 3);
    say_farewell_and_close(m, "the disk is full");
}

static void say_what_all_know(member *m)
{
    char sentence[TEXT];
    snprintf(sentence, sizeof sentence, "%s is ill", tdi_meeting_name(m->meeting, 2));
    say_farewell_and_close(m, sentence);
}

static void say_nothing_much(member *m)
{
    say_farewell_and_close(m, "");
}

static void part_early(member *m)
{
    share_once(m, 3);
    part(m);
}

static void who_leaves_is_named(void **state)
{
    (void)state;
    expect_end_of_others(just_close, TD_IO, "%s has left", 1);
    expect_end_of_others(say_its_own_end, TD_NOT_FINITE, "%s: the disk is full", 1);
    expect_end_of_others(say_what_all_know, TD_NOT_FINITE, "%s is ill", 1);
    expect_end_of_others(say_nothing_much, TD_NOT_FINITE, "%s: ", 1);
}

static void share_until_it_fails_and_part(member *m)
{
    share_until_it_fails(m);
    if (m->self == 0 && (m->status != TD_IO || !strstr(m->error.message, "has left")))
        find_wrong(m, "%s", m->error.message);
    tdi_meeting_part(m->meeting, INFINITY);
}

/* Who thinks that all is done does not wait for ever for who thinks otherwise. */
static void who_parts_early_is_named(void **state)
{
    (void)state;
    place p;
    job jobs[2];
    open_place(&p, 2, true);
    begin(&jobs[0], share_until_it_fails_and_part, &p.members[0]);
    begin(&jobs[1], part_early, &p.members[1]);
    end(&jobs[0]);
    end(&jobs[1]);
    close_place(&p);
}

/* ---- strangers ---- */

static void pump_until(link_end *stranger, const int *count)
{
    double limit = tdi_seconds() + 60;
    while (*count == 0 && tdi_seconds() < limit) {
        struct pollfd waits = {.fd = tdi_link_descriptor(stranger->link), .events = POLLIN};
        if (!tdi_link_pump(stranger->link) && *count == 0)
            poll(&waits, 1, 20);
    }
    assert_true(*count > 0);
}

static bool try_to_connect(const place *p, const tdi_endpoint *endpoint, link_end *stranger)
{
    int fd;
    double limit = tdi_seconds() + 60;
    *stranger = (link_end){0};
    assert_int_equal(tdi_endpoint_connect(endpoint, &fd, NULL), TD_OK);
    link_end_open(stranger, p->security, fd, TDI_LINK_CLIENT);
    while (!stranger->opened && !stranger->lost && tdi_seconds() < limit) {
        struct pollfd waits = {.fd = tdi_link_descriptor(stranger->link), .events = POLLIN};
        if (!tdi_link_pump(stranger->link))
            poll(&waits, 1, 5);
    }
    if (!stranger->opened)
        link_end_close(stranger);
    return stranger->opened;
}

/* Somebody connects to a member, once that listens, and proves that it knows the secret. */
static void connect_stranger(const place *p, int to, link_end *stranger)
{
    tdi_address address;
    tdi_endpoints endpoints;
    assert_int_equal(tdi_address_parse(p->addresses[to], &address, NULL), TD_OK);
    assert_int_equal(tdi_address_resolve(&address, &endpoints, NULL), TD_OK);
    while (!try_to_connect(p, &endpoints.at[0], stranger))
        ;
}

static void say(link_end *stranger, uint16_t kind, const char *bytes)
{
    tdi_link_send_copy(stranger->link, &(tdi_frame){.kind = kind, .length = (uint32_t)strlen(bytes)}, bytes);
}

static void say_hello(link_end *stranger, const tdi_hello *hello)
{
    char *text = tdi_hello_write(hello);
    assert_non_null(text);
    say(stranger, TDI_KIND_HELLO, text);
    free(text);
}

static const struct nonsense {
    uint16_t kind;
    const char *bytes;
} nonsense[] = {
    {TDI_KIND_HELLO, ""},
    {TDI_KIND_HELLO, "{}"},
    {TDI_KIND_HELLO, "GET / HTTP/1.1"},
    {TDI_KIND_HELLO, "{\"protocol\": 1, \"version\": 7}"},
    {TDI_KIND_HELLO, "{\"protocol\": 1, \"version\": \"1\", \"task\": -1}"},
    {TDI_KIND_REFUSAL, "go away"},
    {TDI_KIND_FAREWELL, "the end"},
    {TDI_KIND_DIRECTORY, "[\"\", \"127.0.0.1:1\"]"},
    {TDI_KIND_SHARE, "something"},
    {0, ""},
    {65535, "x"},
};

static void talk_nonsense(const place *p, int to)
{
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        link_end stranger = {0};
        connect_stranger(p, to, &stranger);
        say(&stranger, nonsense[i].kind, nonsense[i].bytes);
        pump_until(&stranger, &stranger.lost);
        link_end_close(&stranger);
    }
    static const char too_long[TDI_HELLO_LONGEST + 1];
    link_end stranger = {0};
    connect_stranger(p, to, &stranger);
    tdi_link_send(stranger.link, &(tdi_frame){.kind = TDI_KIND_HELLO, .length = sizeof too_long}, too_long);
    pump_until(&stranger, &stranger.lost);
    link_end_close(&stranger);
}

/* Before all are there and after it: who knows the secret and talks nonsense, or is silent, disturbs nobody. */
static void nonsense_disturbs_nobody(void **state)
{
    (void)state;
    place p;
    job jobs[3];
    link_end silent = {0}, later = {0};
    make_place(&p, 3, true);
    begin(&jobs[0], meet_well, &p.members[0]);
    begin(&jobs[1], meet_well, &p.members[1]);
    connect_stranger(&p, 0, &silent);
    talk_nonsense(&p, 0);
    talk_nonsense(&p, 1);
    begin(&jobs[2], meet_well, &p.members[2]);
    for (int i = 0; i < 3; i++)
        end(&jobs[i]);
    for (int i = 0; i < 3; i++)
        talk_nonsense(&p, i);
    connect_stranger(&p, 2, &later);
    run_all(&p, share_all);
    run_all(&p, part);
    link_end_close(&silent);
    link_end_close(&later);
    close_place(&p);
}

/* A hello that the first member's neighbours would say. */
static tdi_hello hello_of(const place *p, int task)
{
    tdi_hello hello = {.protocol = TDI_HELLO_PROTOCOL, .task = task, .port = 1, .incarnation = 5};
    snprintf(hello.version, sizeof hello.version, "%s", td_version());
    tdi_hello_cluster(&p->members[0].config, hello.cluster);
    tdi_hello_host(hello.host);
    return hello;
}

/* hello_of, but for one thing. */
static tdi_hello wrong_hello(const place *p, int which)
{
    tdi_hello hello = hello_of(p, 1);
    if (which == 0)
        snprintf(hello.version, sizeof hello.version, "0.0.1");
    else if (which == 1)
        snprintf(hello.cluster, sizeof hello.cluster, "9 workers");
    else if (which == 2)
        hello.task = 0;
    else if (which == 3)
        hello.task = 7;
    else
        hello.protocol = 2;
    return hello;
}

static const char *const objections[] = {
    "runs Tandem 0.0.1, and this process ", "is of a cluster of 9 workers, and this process of one of 2 workers",
    "is the same task as this process", "is task 7 of 2, which cannot be", "; install the same version everywhere"};

enum { OBJECTIONS = sizeof objections / sizeof *objections };

static void another_hello_ends_the_waiting(void **state)
{
    (void)state;
    for (int which = 0; which < OBJECTIONS; which++) {
        place p;
        job waiting;
        link_end stranger = {0};
        make_place(&p, 2, true);
        begin(&waiting, meet, &p.members[0]);
        connect_stranger(&p, 0, &stranger);
        tdi_hello hello = wrong_hello(&p, which);
        say_hello(&stranger, &hello);
        pump_until(&stranger, &stranger.lost);
        assert_int_equal(stranger.got.count, 1); /* the member's hello, by which the stranger sees it too */
        assert_int_equal(stranger.got.at[0].frame.kind, TDI_KIND_HELLO);
        link_end_close(&stranger);
        end(&waiting);
        expect_sentence(&p.members[0], TD_INVALID_ARGUMENT, objections[which]);
        close_place(&p);
    }
}

static void another_hello_is_turned_away_later(void **state)
{
    (void)state;
    place p;
    open_place(&p, 2, true);
    for (int which = 0; which <= OBJECTIONS; which++)
        for (int to = 0; to < 2; to++) {
            link_end stranger = {0};
            tdi_hello hello = which < OBJECTIONS ? wrong_hello(&p, which) : hello_of(&p, !to);
            hello.purpose = to ? TDI_BULK_LINK : TDI_CONTROL_LINK;
            connect_stranger(&p, to, &stranger);
            say_hello(&stranger, &hello);
            pump_until(&stranger, &stranger.lost);
            assert_true(stranger.got.count > 0);
            link_end_close(&stranger);
        }
    run_all(&p, share_all);
    assert_non_null(strstr(p.members[0].log, "a connection was refused: 127.0.0.1:"));
    run_all(&p, part);
    close_place(&p);
}

/* Every byte of a hello, cut off there, and each with another value. */
static void any_hello_is_read_or_refused(void **state)
{
    (void)state;
    place p;
    make_place(&p, 2, true);
    tdi_hello own = hello_of(&p, 0), hello = hello_of(&p, 1), read;
    char *text = tdi_hello_write(&hello);
    assert_non_null(text);
    assert_int_equal(tdi_hello_read(text, strlen(text), &read, NULL), TD_OK);
    assert_int_equal(tdi_hello_check(&read, &own, 2, "x", NULL), TD_OK);
    assert_true(read.incarnation == 5 && read.port == 1 && read.task == 1 && strcmp(read.host, hello.host) == 0);
    for (size_t i = 0; i < strlen(text); i++) {
        tdi_error error = {0};
        assert_int_equal(tdi_hello_read(text, i, &read, &error), TD_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "no hello of Tandem"));
    }
    free(text);
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_meet_and_part),
                                       cmocka_unit_test(those_who_do_not_come_are_named),
                                       cmocka_unit_test(a_stop_ends_the_waiting),
                                       cmocka_unit_test(shares_arrive_whole_and_in_order),
                                       cmocka_unit_test(who_leaves_is_named),
                                       cmocka_unit_test(who_parts_early_is_named),
                                       cmocka_unit_test(nonsense_disturbs_nobody),
                                       cmocka_unit_test(another_hello_ends_the_waiting),
                                       cmocka_unit_test(another_hello_is_turned_away_later),
                                       cmocka_unit_test(any_hello_is_read_or_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
