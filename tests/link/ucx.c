/* Wires of UCX: processes send each other frames of all sizes, from memory that the others see and from memory that
 * they do not, by shared memory and by TCP. Some are killed or stopped in the middle: the others close their fabrics,
 * open new ones and go on, and nobody who wakes up late writes into their memory or takes what is no longer meant.
 * Before and after all that the process is the same. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "link/ucx.h"
#include "support/sanitized.h"

#ifdef TANDEM_UCX
#include "link/ucx_struct.h"
#endif

/* libucs keeps some of what it has read of the machine until the process ends. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libucs\nleak:libucp\nleak:libuct\n";
}

enum { MOST = 5, LARGEST = SANITIZED ? 2000000 : 10000000, ADDRESS = 8192, VIEWS = 24 };
static const double patience = 20; /* seconds, of what should take less than one */

static const uint32_t sizes[] = {0, 4, 8064, 8065, 4096, 65536, LARGEST, 1000001, 17, 300000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* What processes of a test have in common, in memory of all. */
typedef struct meeting {
    int count, rounds;
    bool far;
    struct {
        atomic_int ready, done;
        size_t size[MOST];
        unsigned char address[MOST][ADDRESS];
        _Atomic uint32_t members; /* a bit each */
    } views[VIEWS];
    atomic_int arrived[MOST]; /* frames */
    atomic_int gone;          /* the number of who is, + 1: what links would tell */
    atomic_int closed;        /* survivors that have closed the view of the one who is gone */
    atomic_bool woken;
} meeting;

typedef struct member {
    meeting *all;
    int self, view;
    tdi_engine *engine;
    unsigned char *memory; /* own data, seen; then a place for each peer's, of LARGEST each */
    unsigned char *unseen; /* the same data */
    tdi_fabric *fabric;
    tdi_wire *wires[MOST];
    tdi_sinks sinks;
    int arrived, sent, lost, held, steps[MOST];
    bool counted;
    double woke;
} member;

#define expect(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: process %d: %s\n", __FILE__, __LINE__, (int)getpid(), #condition);                 \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static unsigned char byte_of(uint32_t i, int sender)
{
    return (unsigned char)((i >> 8) * 31 + i * 7 + (uint32_t)sender * 13 + 1);
}

static uint32_t size_of(int step)
{
    return sizes[step % SIZES];
}

static unsigned char *place_of(const member *m, int peer)
{
    return m->memory + (size_t)(1 + peer) * LARGEST;
}

static bool is_member(const member *m, int peer)
{
    return atomic_load(&m->all->views[m->view].members) >> peer & 1;
}

static int others(const member *m)
{
    return __builtin_popcount(atomic_load(&m->all->views[m->view].members)) - 1;
}

/* ---- sinks ---- */

static tdi_sink_answer on_place(void *user, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    member *m = user;
    const tdi_frame_expected expected = {
        {.kind = 1, .generation = (uint32_t)m->view, .step = (uint32_t)m->steps[peer] + 1, .shard = (uint32_t)peer},
        LARGEST};
    expect(tdi_frame_check(frame, &expected, error) == TD_OK);
    if (frame->step % 7 == 3 && m->held++ % 3 < 2)
        return TDI_HOLD;
    *place = place_of(m, peer);
    return TDI_TAKE;
}

static void on_arrived(void *user, int peer, const tdi_frame *frame, void *place)
{
    member *m = user;
    const unsigned char *bytes = place;
    uint32_t stride = frame->length > 100000 ? 101 : 1;
    expect(frame->length == size_of((int)frame->step - 1));
    for (uint32_t i = 0; i < frame->length; i += stride)
        expect(bytes[i] == byte_of(i, peer));
    if (frame->length)
        expect(bytes[frame->length - 1] == byte_of(frame->length - 1, peer));
    m->steps[peer] = (int)frame->step;
    m->arrived++;
    atomic_fetch_add(&m->all->arrived[m->self], 1);
}

static void on_sent(void *user, int peer, const tdi_frame *frame, const void *payload)
{
    member *m = user;
    (void)peer;
    expect(payload == (frame->step % 2 ? m->memory : m->unseen));
    m->sent++;
}

static void on_lost(void *user, int peer, const tdi_error *why)
{
    member *m = user;
    expect(why->status == TD_IO && strstr(why->message, "task "));
    expect(peer != m->self);
    m->lost++;
}

/* ---- a member's life ---- */

static void check(td_status status, const tdi_error *error)
{
    if (status != TD_OK)
        fprintf(stderr, "%s\n", error->message);
    expect(status == TD_OK);
}

static void keep_far_only(tdi_engine *engine)
{
#ifdef TANDEM_UCX
    tdi_ucx *ucx = (tdi_ucx *)engine;
    ucx->api->ucp_cleanup(ucx->contexts[TDI_UCX_NEAR]);
    ucx->contexts[TDI_UCX_NEAR] = NULL;
#else
    (void)engine;
#endif
}

/* A peer did not answer in time, as where other programs keep all cores busy: see ucx_struct.h. */
static bool has_left_worker(const tdi_engine *engine)
{
#ifdef TANDEM_UCX
    return ((const tdi_ucx *)engine)->has_left_worker;
#else
    return !engine;
#endif
}

static void open_member(member *m, meeting *all, int self)
{
    tdi_error error = {0};
    *m = (member){.all = all, .self = self};
    const tdi_ucx_spec spec = {.reach = all->far ? TDI_UCX_NETWORK : TDI_UCX_HOST, .devices = all->far ? "lo" : NULL};
    check(tdi_ucx_engine(&spec, &m->engine, &error), &error);
    if (all->far)
        keep_far_only(m->engine);
    m->memory = m->engine->memory(m->engine, (size_t)(1 + MOST) * LARGEST);
    m->unseen = malloc(LARGEST);
    expect(m->memory && m->unseen);
    memset(m->memory, 1, (size_t)(1 + MOST) * LARGEST);
    for (uint32_t i = 0; i < LARGEST; i++)
        m->memory[i] = m->unseen[i] = byte_of(i, self);
    m->sinks = (tdi_sinks){m, on_place, on_arrived, on_sent, on_lost};
}

static void close_member(member *m)
{
    free(m->unseen);
    m->engine->release_memory(m->engine, m->memory);
    m->engine->release_memory(m->engine, NULL);
    m->engine->release(m->engine);
}

static bool is_over(double since)
{
    return tdi_seconds() - since > patience;
}

/* False: one of them has closed its fabric already, or is dead. */
static bool join_all(member *m)
{
    bool all = true;
    static const char *const names[MOST] = {"task 0", "task 1", "task 2", "task 3", "task 4"};
    tdi_error error = {0};
    for (int peer = 0; peer < m->all->count; peer++) {
        if (peer == m->self || !is_member(m, peer))
            continue;
        const tdi_peer_address address = {.bytes = m->all->views[m->view].address[peer],
                                          .size = m->all->views[m->view].size[peer],
                                          .name = names[peer]};
        td_status status = m->fabric->join(m->fabric, peer, &address, &m->wires[peer], &error);
        if (status != TD_IO)
            check(status, &error);
        all = all && status == TD_OK;
    }
    return all;
}

static bool open_view(member *m, int view)
{
    tdi_error error = {0};
    size_t size;
    m->view = view;
    m->arrived = m->sent = m->lost = 0;
    m->counted = false;
    memset(m->steps, 0, sizeof m->steps);
    const tdi_fabric_spec spec = {
        .generation = (uint32_t)view, .token = 77, .peers = m->all->count, .sinks = &m->sinks};
    check(m->engine->open(m->engine, &spec, &m->fabric, &error), &error);
    const void *address = m->fabric->address(m->fabric, &size);
    expect(size > 0 && size <= ADDRESS);
    memcpy(m->all->views[view].address[m->self], address, size);
    m->all->views[view].size[m->self] = size;
    atomic_fetch_add(&m->all->views[view].ready, 1);
    for (double since = tdi_seconds(); atomic_load(&m->all->views[view].ready) <= others(m);) {
        expect(!is_over(since));
        sched_yield();
    }
    return join_all(m);
}

static void send_step(const member *m, int step)
{
    tdi_frame frame = {.kind = 1,
                       .generation = (uint32_t)m->view,
                       .shard = (uint32_t)m->self,
                       .step = (uint32_t)step + 1,
                       .length = size_of(step)};
    for (int peer = 0; peer < m->all->count; peer++)
        if (peer != m->self && is_member(m, peer))
            m->wires[peer]->send(m->wires[peer], &frame, frame.step % 2 ? m->memory : m->unseen);
}

static void wait_a_little(member *m)
{
    int fd = m->fabric->sleep(m->fabric);
    if (fd >= 0)
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 20);
    for (int peer = 0; peer < m->all->count; peer++)
        if (peer != m->self && is_member(m, peer))
            m->wires[peer]->resume(m->wires[peer]);
}

/* Everything has come and gone; nobody leaves before all say so. */
static bool is_done(member *m)
{
    int all = m->all->rounds * others(m);
    if (!m->counted && m->arrived == all && m->sent == all) {
        m->counted = true;
        atomic_fetch_add(&m->all->views[m->view].done, 1);
    }
    return atomic_load(&m->all->views[m->view].done) == others(m) + 1;
}

/* Who is told that another is gone leaves at once; who was gone itself, and woke up, pumps for a while. */
static bool leaves(member *m)
{
    int gone = atomic_load(&m->all->gone);
    if (gone == m->self + 1 && m->woke == 0)
        m->woke = tdi_seconds();
    return m->lost || (gone && gone != m->self + 1) || (m->woke > 0 && tdi_seconds() - m->woke > 0.1);
}

/* Sends and receives until all have everything, or somebody is gone. */
static void run_view(member *m)
{
    double since = tdi_seconds();
    for (int step = 0; step < m->all->rounds; step++)
        send_step(m, step);
    while (!is_done(m) && !leaves(m)) {
        if (!m->fabric->pump(m->fabric))
            wait_a_little(m);
        expect(!is_over(since));
    }
}

static void close_view(member *m)
{
    double since = tdi_seconds();
    m->fabric->close(m->fabric);
    expect(tdi_seconds() - since < (SANITIZED ? 10 : 1.5));
}

/* ---- processes ---- */

static bool there_is_a_network;

static bool ends_well(pid_t pid)
{
    int status;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Asked in a process of its own: those of the tests begin without UCX. */
static bool can_make(tdi_ucx_reach reach)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        tdi_error error = {0};
        tdi_engine *engine;
        const tdi_ucx_spec spec = {.reach = reach, .devices = reach == TDI_UCX_NETWORK ? "lo" : NULL};
        td_status status = tdi_ucx_engine(&spec, &engine, &error);
        if (status != TD_OK)
            printf("skipped: %s\n", error.message);
        fflush(stdout);
        _exit(status != TD_OK);
    }
    return ends_well(pid);
}

static meeting *meet(int count, int rounds, bool far)
{
    meeting *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(all, MAP_FAILED);
    all->count = count;
    all->rounds = rounds;
    all->far = far;
    for (int v = 0; v < VIEWS; v++)
        atomic_store(&all->views[v].members, (1u << count) - 1);
    return all;
}

static void start(pid_t *pids, meeting *all, void (*life)(meeting *, int))
{
    fflush(NULL);
    for (int i = 0; i < all->count; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            alarm((unsigned)(3 * patience));
            life(all, i);
            _exit(0);
        }
    }
}

static void await(const pid_t *pids, int count, int killed)
{
    for (int i = 0; i < count; i++) {
        int status;
        if (!pids[i])
            continue;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        if (i != killed && (!WIFEXITED(status) || WEXITSTATUS(status)))
            fail_msg("process %d ended with status %x", i, (unsigned)status);
    }
}

static void live_once(meeting *all, int self)
{
    member m;
    open_member(&m, all, self);
    expect(open_view(&m, 0));
    run_view(&m);
    expect(!m.lost && m.held);
    close_view(&m);
    close_member(&m);
}

static void run_all(int count, int rounds, bool far)
{
    pid_t pids[MOST];
    meeting *all = meet(count, rounds, far);
    start(pids, all, live_once);
    await(pids, count, -1);
    munmap(all, sizeof *all);
}

static void processes_send_to_all(void **state)
{
    (void)state;
    run_all(2, 60, false);
    run_all(3, 20, false);
    run_all(5, 10, false);
}

static void processes_send_by_tcp(void **state)
{
    (void)state;
    if (!there_is_a_network)
        skip();
    run_all(2, 40, true);
    run_all(3, 20, true);
}

/* ---- deaths ---- */

static void poison(unsigned char *memory)
{
    memset(memory, 0xA5, (size_t)(1 + MOST) * LARGEST);
}

static void refill(member *m)
{
    for (uint32_t i = 0; i < LARGEST; i++)
        m->memory[i] = byte_of(i, m->self);
}

static void expect_poison(const member *m, int from)
{
    const unsigned char *begin = m->memory + (size_t)from * LARGEST;
    size_t size = (size_t)(1 + MOST - from) * LARGEST;
    expect(begin[0] == 0xA5 && memcmp(begin, begin + 1, size - 1) == 0);
}

/* The last of the members goes in view 0; the others go on in view 1. */
static void live_on(meeting *all, int self)
{
    member m;
    open_member(&m, all, self);
    if (open_view(&m, 0))
        run_view(&m);
    if (self == all->count - 1) { /* woken at last */
        close_view(&m);
        close_member(&m);
        return;
    }
    while (!atomic_load(&all->gone))
        sched_yield();
    close_view(&m);
    poison(m.memory);
    atomic_fetch_add(&all->closed, 1);
    while (!atomic_load(&all->woken))
        sched_yield();
    expect_poison(&m, 0);
    refill(&m);
    atomic_store(&all->gone, 0);
    expect(open_view(&m, 1));
    run_view(&m);
    expect(m.lost == 0);
    close_view(&m);
    expect_poison(&m, 1 + all->count - 1); /* where the one who is gone would have written */
    close_member(&m);
}

static void wait_until(atomic_int *counter, int value)
{
    double since = tdi_seconds();
    while (atomic_load(counter) < value) {
        assert_false(is_over(since));
        sched_yield();
    }
}

static void end_one(int count, int after, bool far, int signal)
{
    pid_t pids[MOST];
    int victim = count - 1;
    int status;
    meeting *all = meet(count, 30, far);
    for (int v = 1; v < VIEWS; v++)
        atomic_store(&all->views[v].members, (1u << victim) - 1);
    start(pids, all, live_on);
    wait_until(&all->arrived[victim], after);
    kill(pids[victim], signal);
    atomic_store(&all->gone, victim + 1);
    wait_until(&all->closed, victim);
    if (signal == SIGSTOP) {
        kill(pids[victim], SIGCONT);
        assert_int_equal(waitpid(pids[victim], &status, 0), pids[victim]);
        assert_int_equal(status, 0);
        pids[victim] = 0;
    }
    atomic_store(&all->woken, true);
    await(pids, count, victim);
    munmap(all, sizeof *all);
}

static void kill_at_many_times(int signal)
{
    for (int after = 1; after < 40; after += SANITIZED ? 13 : 9) {
        end_one(3, after, false, signal);
        if (there_is_a_network)
            end_one(2 + after % 2, after, true, signal);
    }
}

static void survivors_of_the_killed_go_on(void **state)
{
    (void)state;
    kill_at_many_times(SIGKILL);
}

static void survivors_of_the_stopped_go_on(void **state)
{
    (void)state;
    kill_at_many_times(SIGSTOP);
}

/* ---- the process is as before ---- */

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    expect(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static int count_lines(const char *path)
{
    int count = 0;
    FILE *file = fopen(path, "re");
    expect(file);
    for (int c; (c = fgetc(file)) != EOF;)
        count += c == '\n';
    fclose(file);
    return count;
}

static long resident_pages(void)
{
    long size, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    expect(file && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident;
}

enum { SIGNALS = 32, CODE = 32 };

typedef struct look {
    int descriptors, threads;
    struct sigaction handlers[SIGNALS];
    unsigned char map[CODE], unmap[CODE];
    char **environment;
    size_t environment_bytes;
} look;

static size_t measure_environment(void)
{
    size_t size = 0;
    for (char **e = environ; *e; e++)
        size += strlen(*e) + 1;
    return size;
}

static look look_at_process(void)
{
    look l = {.descriptors = count_entries("/proc/self/fd"),
              .threads = SANITIZED_THREADS ? 0 : count_entries("/proc/self/task"), /* it has one itself */
              .environment = environ,
              .environment_bytes = measure_environment()};
    for (int i = 1; i < SIGNALS; i++)
        sigaction(i, NULL, &l.handlers[i]);
    memcpy(l.map, dlsym(RTLD_NEXT, "mmap"), CODE);
    memcpy(l.unmap, dlsym(RTLD_NEXT, "munmap"), CODE);
    return l;
}

static void compare_looks(const look *before, const look *after)
{
    expect(before->descriptors == after->descriptors);
    expect(before->threads == after->threads);
    expect(before->environment == after->environment && before->environment_bytes == after->environment_bytes);
    expect(memcmp(before->map, after->map, CODE) == 0 && memcmp(before->unmap, after->unmap, CODE) == 0);
    for (int i = 1; i < SIGNALS; i++)
        expect(before->handlers[i].sa_handler == after->handlers[i].sa_handler);
}

/* Closes by force while everything is pending, again and again, and looks. */
static void live_often(meeting *all, int self)
{
    member m;
    int maps = 0;
    long pages = 0;
    look before = look_at_process();
    open_member(&m, all, self);
    look loaded = look_at_process();
    expect(before.environment == loaded.environment);
    expect(loaded.threads == before.threads);
    for (int view = 0; view < VIEWS; view++) {
        bool joined = open_view(&m, view);
        atomic_fetch_add(&all->views[view].done, 1);
        while (all->far && atomic_load(&all->views[view].done) < all->count)
            sched_yield(); /* else what UCX cannot close yet would be left */
        for (int step = 0; step < all->rounds && joined; step++)
            send_step(&m, step);
        for (double since = tdi_seconds(); tdi_seconds() - since < 0.003 * self && !m.lost;)
            m.fabric->pump(m.fabric);
        close_view(&m);
        look closed = look_at_process();
        if (!has_left_worker(m.engine))
            compare_looks(&loaded, &closed);
        if (view == VIEWS / 2) {
            maps = count_lines("/proc/self/maps");
            pages = resident_pages();
        }
    }
    expect(SANITIZED || count_lines("/proc/self/maps") <= maps + 2);
    expect(SANITIZED || resident_pages() < pages + 1024);
    bool left = has_left_worker(m.engine);
    expect(!left || all->far);
    close_member(&m);
    look after = look_at_process();
    if (!left)
        compare_looks(&before, &after);
}

static void closing_leaves_nothing(void **state)
{
    (void)state;
    for (int far = 0; far <= there_is_a_network; far++) {
        pid_t pids[MOST];
        meeting *all = meet(3, 30, far);
        start(pids, all, live_often);
        await(pids, 3, -1);
        munmap(all, sizeof *all);
    }
}

/* ---- what is seen, what is refused ---- */

static void pump_until_seen(member *a, member *b, int number)
{
    double since = tdi_seconds();
    while (!b->wires[0]->see(b->wires[0], number)) {
        a->fabric->pump(a->fabric);
        b->fabric->pump(b->fabric);
        assert_false(is_over(since));
    }
}

/* Two members in one process and thread: view 0 is there, nothing has been sent. */
static void open_pair(member members[2], meeting *all)
{
    const tdi_fabric_spec spec = {.generation = 0, .token = 77, .peers = 2, .sinks = NULL};
    for (int i = 0; i < 2; i++) {
        size_t size;
        tdi_fabric_spec own = spec;
        open_member(&members[i], all, i);
        own.sinks = &members[i].sinks;
        check(members[i].engine->open(members[i].engine, &own, &members[i].fabric, NULL), &(tdi_error){0});
        const void *address = members[i].fabric->address(members[i].fabric, &size);
        memcpy(all->views[0].address[i], address, size);
        all->views[0].size[i] = size;
    }
}

static void memory_is_seen_in_place(void **state)
{
    (void)state;
    member m[2];
    meeting *all = meet(2, 1, false);
    open_pair(m, all);
    void *later = m[0].engine->memory(m[0].engine, 5000);
    assert_non_null(later);
    assert_int_equal((uintptr_t)later % 4096, 0);
    assert_true(join_all(&m[0]));
    send_step(&m[0], 0);
    for (int i = 0; i < 1000; i++) /* it waits until the other joins */
        m[0].fabric->pump(m[0].fabric), m[1].fabric->pump(m[1].fabric);
    assert_int_equal(m[1].arrived, 0);
    assert_true(join_all(&m[1]));
    pump_until_seen(&m[0], &m[1], 1);
    const unsigned char *seen = m[1].wires[0]->see(m[1].wires[0], 0);
    const unsigned char *seen_later = m[1].wires[0]->see(m[1].wires[0], 1);
    assert_non_null(seen);
    assert_memory_equal(seen, m[0].memory, LARGEST);
    memcpy(later, "now", 4);
    assert_string_equal((const char *)seen_later, "now");
    assert_null(m[1].wires[0]->see(m[1].wires[0], 2));
    assert_null(m[1].wires[0]->see(m[1].wires[0], -1));
    close_view(&m[0]);
    assert_null(m[1].wires[0]->see(m[1].wires[0], 0));
    for (double since = tdi_seconds(); !m[1].lost && !is_over(since);)
        m[1].fabric->pump(m[1].fabric);
    assert_int_equal(m[1].lost, 1);
    send_step(&m[1], 0); /* nobody gets it */
    assert_false(m[1].fabric->pump(m[1].fabric));
    close_view(&m[1]);
    m[0].engine->release_memory(m[0].engine, later);
    close_member(&m[0]);
    close_member(&m[1]);
    munmap(all, sizeof *all);
}

static void other_addresses_are_refused(void **state)
{
    (void)state;
    member m[2];
    tdi_wire *wire;
    meeting *all = meet(2, 1, false);
    open_pair(m, all);
    unsigned char bytes[ADDRESS];
    size_t size = all->views[0].size[0];
    tdi_peer_address address = {.bytes = bytes, .size = size};
    for (size_t i = 0; i < size; i++) {
        tdi_error error = {0};
        memcpy(bytes, all->views[0].address[0], size);
        bytes[i] ^= 0x10;
        assert_int_equal(m[1].fabric->join(m[1].fabric, 0, &address, &wire, &error), TD_INVALID_ARGUMENT);
        assert_null(wire);
    }
    memcpy(bytes, all->views[0].address[0], size);
    for (address.size = 0; address.size < size; address.size++)
        assert_int_equal(m[1].fabric->join(m[1].fabric, 0, &address, &wire, NULL), TD_INVALID_ARGUMENT);
    assert_int_equal(m[0].fabric->join(m[0].fabric, 1, &address, &wire, NULL), TD_INVALID_ARGUMENT); /* its own */
    assert_int_equal(m[1].fabric->join(m[1].fabric, 2, &address, &wire, NULL), TD_INVALID_ARGUMENT);
    assert_int_equal(m[1].fabric->join(m[1].fabric, 0, &address, &wire, NULL), TD_OK);
    assert_int_equal(m[1].fabric->join(m[1].fabric, 0, &address, &wire, NULL), TD_INVALID_ARGUMENT); /* twice */
    for (int i = 0; i < 2; i++) {
        close_view(&m[i]);
        close_member(&m[i]);
    }
    munmap(all, sizeof *all);
}

/* ---- little shared memory ---- */

/* In a /dev/shm of 1 MB: a sentence instead of SIGBUS, and memory of the process's own. */
static void live_small(void)
{
    tdi_engine *engine;
    tdi_fabric *fabric;
    tdi_error error = {0};
    member m = {0};
    m.sinks = (tdi_sinks){&m, on_place, on_arrived, on_sent, on_lost};
    const tdi_fabric_spec spec = {.generation = 1, .token = 77, .peers = 2, .sinks = &m.sinks};
    check(tdi_ucx_engine(&(tdi_ucx_spec){.reach = TDI_UCX_HOST}, &engine, &error), &error);
    unsigned char *memory = engine->memory(engine, LARGEST);
    expect(memory);
    for (int i = 0; i < LARGEST; i += 4096)
        expect(memory[i] == 0);
    memset(memory, 1, LARGEST);
    expect(engine->open(engine, &spec, &fabric, &error) == TD_UNSUPPORTED);
    expect(strstr(error.message, "/dev/shm"));
    engine->release_memory(engine, memory);
    engine->release(engine);
}

static void little_shared_memory_is_said(void **state)
{
    (void)state;
    int told[2];
    char may = 0;
    assert_int_equal(pipe(told), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        may = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
              mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") == 0;
        expect(write(told[1], &may, 1) == 1);
        if (may)
            live_small();
        _exit(0);
    }
    assert_int_equal(read(told[0], &may, 1), 1);
    close(told[0]);
    close(told[1]);
    assert_true(ends_well(pid));
    if (!may) {
        print_message("skipped: this process may not mount another /dev/shm\n");
        skip();
    }
}

static void another_network_namespace_is_another_host(void **state)
{
    (void)state;
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char here[TDI_UCX_HOST_BYTES], there[TDI_UCX_HOST_BYTES];
        tdi_ucx_host(here);
        tdi_ucx_host(there);
        expect(strcmp(here, there) == 0);
        if (unshare(CLONE_NEWNET) != 0)
            _exit(77);
        tdi_ucx_host(there);
        expect(strcmp(here, there) != 0);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

/* ---- threads ---- */

typedef struct thread_member {
    meeting *all;
    int self;
} thread_member;

static void *run_thread(void *argument)
{
    const thread_member *t = argument;
    live_once(t->all, t->self);
    return NULL;
}

static void threads_send_to_all(void **state)
{
    (void)state;
    pthread_t threads[3];
    meeting *all = meet(3, 20, false);
    thread_member members[3] = {{all, 0}, {all, 1}, {all, 2}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &members[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    munmap(all, sizeof *all);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_send_to_all),         cmocka_unit_test(processes_send_by_tcp),
        cmocka_unit_test(survivors_of_the_killed_go_on), cmocka_unit_test(survivors_of_the_stopped_go_on),
        cmocka_unit_test(closing_leaves_nothing),        cmocka_unit_test(memory_is_seen_in_place),
        cmocka_unit_test(other_addresses_are_refused),   cmocka_unit_test(threads_send_to_all),
        cmocka_unit_test(little_shared_memory_is_said),  cmocka_unit_test(another_network_namespace_is_another_host)};
    if (!can_make(TDI_UCX_HOST))
        return 77;
    there_is_a_network = can_make(TDI_UCX_NETWORK);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]); /* "*_go_on" */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
