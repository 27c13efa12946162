/* wires.c - how long two processes take to add up what each of them has, by each of the wires that bulk data go by.
 *
 *     build/bench/bench_wires [spin]
 *
 * Each process sends its floats to the other, as an exchange does, and when the other's have come and its own are no
 * longer needed it adds them up. A round is over when both have said so by a frame of no bytes. Printed: the least and
 * the median time of many rounds, by TLS over a TCP connection of the loopback, by UCX's shared memory from memory of
 * the process's own, and from memory that the other sees in place. `spin`: nobody sleeps. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "link/address.h"
#include "link/wire.h"

enum { ADDRESS = 8192, MOST_ROUNDS = 2000 };

typedef enum way { BY_TLS, BY_PIECES, IN_PLACE, WAYS } way;
static const char *const ways[WAYS] = {"TLS, loopback", "UCX, pieces", "UCX, in place"};
static const size_t sizes[] = {4096, 1 << 20, 100000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct meeting {
    atomic_int ready, done;
    size_t size[2];
    unsigned char address[2][ADDRESS];
} meeting;

typedef struct side {
    int self;
    bool spins;
    tdi_engine *engine;
    tdi_fabric *fabric;
    tdi_wire *wire;
    tdi_sinks sinks;
    float *own, *others;
    int left; /* frames of the round that have not come, or gone */
    uint32_t step;
} side;

static void stop(const char *what, const tdi_error *error)
{
    fprintf(stderr, "bench_wires: %s%s%s\n", what, error ? ": " : "", error ? error->message : "");
    exit(1);
}

static tdi_sink_answer on_place(void *user, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    side *s = user;
    (void)peer, (void)error;
    if (frame->step != s->step)
        return TDI_HOLD;
    *place = s->others;
    return TDI_TAKE;
}

static void on_arrived(void *user, int peer, const tdi_frame *frame, void *place)
{
    (void)peer, (void)frame, (void)place;
    ((side *)user)->left--;
}

static void on_sent(void *user, int peer, const tdi_frame *frame, const void *payload)
{
    on_arrived(user, peer, frame, (void *)(uintptr_t)payload);
}

static void on_lost(void *user, int peer, const tdi_error *why)
{
    (void)user, (void)peer;
    stop("lost", why);
}

/* ---- connecting ---- */

static tdi_link *shake(int fd, int self)
{
    tdi_secret secret = {.size = 32};
    tdi_security *security;
    tdi_link *link = NULL;
    tdi_error error = {0};
    if (tdi_security_create(&secret, "bench", &security, &error) != TD_OK ||
        tdi_link_create(security, fd, self ? TDI_LINK_CLIENT : TDI_LINK_SERVER, "the other", &link, &error) != TD_OK)
        stop("TLS", &error);
    tdi_link_set_sinks(link, &(tdi_sinks){NULL, on_place, on_arrived, on_sent, on_lost}, 0, NULL);
    while (tdi_link_get_state(link) == TDI_LINK_SHAKING)
        if (!tdi_link_pump(link))
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1);
    tdi_security_free(security);
    return link;
}

static void open_side(side *s, meeting *m, way way, int fd)
{
    tdi_error error = {0};
    tdi_peer_address address = {.name = "the other"};
    if (way == BY_TLS)
        s->engine = tdi_tls_engine();
    else if (tdi_ucx_engine(&(tdi_ucx_spec){.reach = TDI_UCX_HOST}, &s->engine, &error) != TD_OK)
        stop("UCX", &error);
    s->sinks = (tdi_sinks){s, on_place, on_arrived, on_sent, on_lost};
    const tdi_fabric_spec spec = {.generation = 1, .token = 1, .peers = 2, .sinks = &s->sinks};
    if (s->engine->open(s->engine, &spec, &s->fabric, &error) != TD_OK)
        stop("open", &error);
    const void *bytes = s->fabric->address(s->fabric, &m->size[s->self]);
    memcpy(m->address[s->self], bytes, m->size[s->self]);
    for (atomic_fetch_add(&m->ready, 1); atomic_load(&m->ready) < 2;)
        usleep(100);
    if (way == BY_TLS)
        address.link = shake(fd, s->self);
    else {
        address.bytes = m->address[!s->self];
        address.size = m->size[!s->self];
    }
    if (s->fabric->join(s->fabric, !s->self, &address, &s->wire, &error) != TD_OK)
        stop("join", &error);
}

/* ---- a round ---- */

static void move_all(side *s)
{
    while (s->left)
        if (!s->fabric->pump(s->fabric) && !s->spins) {
            int fd = s->fabric->sleep(s->fabric);
            if (fd >= 0)
                poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
        }
}

static void exchange(side *s, size_t bytes)
{
    s->step++;
    s->left = 2;
    s->wire->resume(s->wire);
    s->wire->send(s->wire, &(tdi_frame){.kind = 1, .step = s->step, .length = (uint32_t)bytes}, s->own);
    move_all(s);
}

static double run_round(side *s, size_t bytes)
{
    double start = tdi_seconds();
    exchange(s, bytes);
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        s->others[i] += s->own[i];
    double end = tdi_seconds();
    exchange(s, 0);
    return end - start;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(side *s, way way, size_t bytes)
{
    static double times[MOST_ROUNDS];
    int rounds = bytes < 100000 ? MOST_ROUNDS : bytes < 10000000 ? 300 : 12;
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        s->own[i] = (float)(i % 1000) + (float)s->self;
    for (int r = 0; r < rounds; r++)
        times[r] = run_round(s, bytes);
    for (size_t i = 0; i < bytes / sizeof(float); i += 101)
        if (s->others[i] != 2 * (float)(i % 1000) + 1)
            stop("a sum is wrong", NULL);
    qsort(times, (size_t)rounds, sizeof *times, compare);
    if (s->self == 0)
        printf("%-14s %10zu bytes: %10.1f us least, %10.1f median of %d\n", ways[way], bytes, times[0] * 1e6,
               times[rounds / 2] * 1e6, rounds);
}

static void run_side(meeting *m, way way, int self, bool spins, int fd)
{
    side s = {.self = self, .spins = spins};
    size_t most = sizes[SIZES - 1];
    open_side(&s, m, way, fd);
    s.own = way == IN_PLACE ? s.engine->memory(s.engine, most) : malloc(most);
    s.others = malloc(most);
    if (!s.own || !s.others)
        stop("out of memory", NULL);
    memset(s.others, 0, most);
    for (int i = 0; i < SIZES; i++)
        measure(&s, way, sizes[i]);
    for (atomic_fetch_add(&m->done, 1); atomic_load(&m->done) < 2;) /* what the other waits for may not be written */
        s.fabric->pump(s.fabric);
    fflush(stdout);
    _exit(0);
}

/* ---- processes ---- */

static void connect_loopback(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0 || connect(fds[1], (struct sockaddr *)&at, size) != 0)
        stop("no connection over the loopback", NULL);
    fds[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    close(listener);
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 2; i++)
        tdi_socket_send_at_once(fds[i]);
}

static void run_way(way way, bool spins)
{
    pid_t pids[2];
    int fds[2];
    meeting *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    connect_loopback(fds);
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        if ((pids[i] = fork()) == 0)
            run_side(m, way, i, spins, fds[i]);
    for (int i = 0; i < 2; i++)
        waitpid(pids[i], NULL, 0);
    close(fds[0]);
    close(fds[1]);
    munmap(m, sizeof *m);
}

int main(int argc, char **argv)
{
    bool spins = argc > 1 && strcmp(argv[1], "spin") == 0;
    if (argc > 2 || (argc == 2 && !spins)) {
        fputs("usage: bench_wires [spin]\n", stderr);
        return 2;
    }
    for (way way = 0; way < WAYS; way++)
        if (way == BY_TLS || tdi_ucx_version(NULL))
            run_way(way, spins);
        else
            printf("%-14s is not here\n", ways[way]);
    return 0;
}
