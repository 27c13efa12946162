/* allreduce.c - one of two processes that add up a vector, again and again, for bench/cluster --engine.
 *
 * bench_allreduce tls|ucx|socket FOLDER BYTES:ROUNDS...
 *
 * tls and ucx move the vectors by the library's exchange, as training moves gradients, over TLS or through UCX's shared
 * memory; socket by plain TCP, each process sending its whole vector to the other. RANK, 0 or 1, is which process this
 * is; they meet at port MASTER_PORT of 127.0.0.1, and BENCH_SECRET is the key of TLS, 32 characters at least. For each
 * vector a line of JSON goes to FOLDER/RANK: when each round began and ended, nanoseconds of the monotonic clock, and
 * how many sums were wrong. Exit status 77: there is no UCX here. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "comm/exchange.h"
#include "link/address.h"

enum { PROCESSES = 2, PATIENCE_MS = 20000, NOT_HERE = 77, PAGE = 4096 };
enum { MOST_ADDRESS = 8192 };
enum { STAMPS = 16 }; /* elements that differ in each round, so that sums of an earlier round are noticed */

typedef struct bench bench;

/* A way to bring the peer's vector here. */
typedef struct way {
    const char *name;
    td_status (*create)(tdi_engine **engine, tdi_error *error); /* NULL: a plain socket */
} way;

struct bench {
    const way *way;
    int rank, fd; /* connected to the peer, until it is the wire's */
    FILE *out;
    int64_t count;             /* floats of the vector */
    float *vectors[PROCESSES]; /* this process's own, and by a plain socket the peer's */
    float *sum;
    long round; /* from 1 on */
    int64_t wrong;

    tdi_security *security; /* as long as there is a link */
    tdi_engine *engine;
    tdi_fabric *fabric;
    tdi_exchange *exchange;
    tdi_deal *deal; /* one shard a process */
    tdi_communicator *communicator;
    tdi_transfer transfer;
    tdi_collective collective;
    tdi_collectives collectives;
    char *no_slots;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_allreduce: %s: %s\n", what, why);
    exit(1);
}

static void must(td_status status, const tdi_error *error)
{
    if (status != TD_OK)
        die("the exchange", error->message);
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        die(name, "this variable of the environment is missing");
    return value;
}

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* ---- meeting ---- */

static int accept_peer(const struct sockaddr_in *at)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = -1;
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0 &&
        bind(listener, (const struct sockaddr *)at, sizeof *at) == 0 && listen(listener, 1) == 0 &&
        poll(&ready, 1, PATIENCE_MS) == 1)
        fd = accept(listener, NULL, NULL);
    if (fd < 0)
        die("nobody connected", strerror(errno));
    close(listener);
    return fd;
}

/* The peer may not listen yet. */
static int connect_to_peer(const struct sockaddr_in *at)
{
    for (long long end = now() + PATIENCE_MS * 1000000LL; now() < end; usleep(2000)) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (const struct sockaddr *)at, sizeof *at) == 0)
            return fd;
        close(fd);
    }
    die("process 0 does not answer", strerror(errno));
    return -1;
}

static void meet(bench *bench)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)atoi(variable("MASTER_PORT")))};
    bench->fd = bench->rank == 0 ? accept_peer(&at) : connect_to_peer(&at);
    fcntl(bench->fd, F_SETFL, O_NONBLOCK);
    tdi_socket_send_at_once(bench->fd);
}

/* ---- by a plain socket ---- */

/* What a call on a socket moved; 0 where it would have had to wait. */
static size_t moved(ssize_t result)
{
    if (result > 0)
        return (size_t)result;
    if (result == 0 || (errno != EAGAIN && errno != EINTR))
        die("the other process", result ? strerror(errno) : "it has gone");
    return 0;
}

/* The vectors pass each other; what has come is added at once. */
static void add_by_socket(bench *bench)
{
    size_t size = (size_t)bench->count * sizeof(float), sent = 0, received = 0;
    char *own = (char *)bench->vectors[bench->rank], *other = (char *)bench->vectors[!bench->rank];
    for (int64_t added = 0; sent < size || received < size;) {
        short events = (short)((sent < size ? POLLOUT : 0) | (received < size ? POLLIN : 0));
        struct pollfd ready = {.fd = bench->fd, .events = events};
        poll(&ready, 1, -1);
        if (sent < size && ready.revents & POLLOUT)
            sent += moved(send(bench->fd, own + sent, size - sent, MSG_NOSIGNAL));
        if (received < size && ready.revents & (POLLIN | POLLHUP | POLLERR))
            received += moved(recv(bench->fd, other + received, size - received, 0));
        for (; added < (int64_t)(received / sizeof(float)); added++)
            bench->sum[added] = bench->vectors[0][added] + bench->vectors[1][added];
    }
}

/* ---- by the exchange ---- */

static tdi_sink_answer hold(void *user, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    (void)user, (void)peer, (void)frame, (void)place, (void)error;
    return TDI_HOLD; /* until the link is the wire's */
}

static void lose(void *user, int peer, const tdi_error *why)
{
    (void)user, (void)peer;
    die("the link", why->message);
}

/* An open link over the socket. */
static tdi_link *open_link(bench *bench)
{
    static const tdi_sinks sinks = {.place = hold, .lost = lose};
    tdi_error error = {0};
    tdi_secret secret = {.size = strlen(variable("BENCH_SECRET"))};
    tdi_link *link;
    if (secret.size > sizeof secret.bytes)
        die("BENCH_SECRET", "it is too long");
    memcpy(secret.bytes, variable("BENCH_SECRET"), secret.size);
    must(tdi_security_create(&secret, "bench", &bench->security, &error), &error);
    must(tdi_link_create(bench->security, bench->fd, bench->rank ? TDI_LINK_CLIENT : TDI_LINK_SERVER,
                         "the other process", &link, &error),
         &error);
    tdi_link_set_sinks(link, &sinks, !bench->rank, NULL);
    while (tdi_link_pump(link), tdi_link_get_state(link) == TDI_LINK_SHAKING) {
        uint32_t events = tdi_link_events(link);
        struct pollfd ready = {.fd = tdi_link_descriptor(link),
                               .events = (short)((events & EPOLLIN ? POLLIN : 0) | (events & EPOLLOUT ? POLLOUT : 0))};
        poll(&ready, 1, 100);
    }
    return link;
}

/* Of few bytes, which the socket takes at once. */
static void swap_bytes(const bench *bench, const void *own, void *other, size_t size)
{
    size_t received = 0;
    struct pollfd ready = {.fd = bench->fd, .events = POLLIN};
    if (send(bench->fd, own, size, MSG_NOSIGNAL) != (ssize_t)size)
        die("the other process", strerror(errno));
    while (received < size) {
        if (poll(&ready, 1, PATIENCE_MS) == 0)
            die("the other process", "it says nothing");
        received += moved(recv(bench->fd, (char *)other + received, size - received, 0));
    }
}

/* How the wire reaches the peer: by a link over the socket, or by an address, which the socket brings. */
static tdi_peer_address address_of_peer(bench *bench)
{
    static unsigned char own[MOST_ADDRESS], other[MOST_ADDRESS];
    uint32_t size[PROCESSES] = {0};
    size_t own_size;
    if (bench->engine->takes_links)
        return (tdi_peer_address){.link = open_link(bench)};
    const void *address = bench->fabric->address(bench->fabric, &own_size);
    if (own_size > sizeof own)
        die("the address", "it is too long");
    memcpy(own, address, own_size);
    size[0] = (uint32_t)own_size;
    swap_bytes(bench, &size[0], &size[1], sizeof size[0]);
    swap_bytes(bench, own, other, sizeof own);
    return (tdi_peer_address){.bytes = other, .size = size[1] < sizeof other ? size[1] : sizeof other};
}

static void start_exchange(bench *bench)
{
    static const char *const names[] = {"process 0", "process 1"};
    tdi_error error = {0};
    const tdi_exchange_spec spec = {.processes = PROCESSES, .self = bench->rank, .names = names};
    must(tdi_exchange_create(&spec, &bench->exchange, &error), &error);
    const tdi_fabric_spec view = {
        .generation = 1, .token = 1, .peers = PROCESSES, .sinks = tdi_exchange_sinks(bench->exchange)};
    must(bench->engine->open(bench->engine, &view, &bench->fabric, &error), &error);
    tdi_wire *wires[PROCESSES] = {0};
    const tdi_peer_address peer = address_of_peer(bench);
    must(bench->fabric->join(bench->fabric, !bench->rank, &peer, &wires[!bench->rank], &error), &error);
    must(tdi_exchange_start(bench->exchange, bench->fabric, wires, &error), &error);
    const tdi_deal_member member = {.devices = 1, .shards = 1};
    const tdi_deal_member members[PROCESSES] = {member, member};
    must(tdi_deal_create(members, PROCESSES, bench->rank, 0, &bench->deal, &error), &error);
}

static void connect_vectors(bench *bench)
{
    tdi_error error = {0};
    bench->transfer = (tdi_transfer){0, bench->count};
    bench->collective = (tdi_collective){TDI_REDUCE, 1, &bench->transfer};
    bench->collectives = (tdi_collectives){.at = &bench->collective, .count = 1};
    const tdi_group_spec group = {.workers = 1,
                                  .threads = 1,
                                  .collectives = &bench->collectives,
                                  .shards = PROCESSES,
                                  .gradients = bench->vectors,
                                  .sums = &bench->sum,
                                  .exchange = &bench->no_slots};
    must(tdi_exchange_connect(bench->exchange, bench->deal, &group, &bench->communicator, &error), &error);
}

static void add_by_exchange(bench *bench)
{
    tdi_communicator *communicator = bench->communicator;
    communicator->begin(communicator, 0);
    if (communicator->finish(communicator, 0, (uint32_t)bench->round) != TDI_ARRIVED)
        must(TD_IO, communicator->failure(communicator));
    communicator->end_step(communicator);
}

/* ---- rounds ---- */

static float element(int rank, int64_t i)
{
    return (float)(rank + 1 + i % 251);
}

/* The places of elements that change in each round: the first ones, and others all over the vector. */
static int64_t stamp_place(const bench *bench, int stamp)
{
    return stamp * (bench->count - 1) / (STAMPS - 1);
}

static float stamp_value(const bench *bench, int rank)
{
    return (float)(bench->round % 4096 * (rank + 1));
}

static void stamp(bench *bench)
{
    for (int s = 0; s < STAMPS; s++)
        bench->vectors[bench->rank][stamp_place(bench, s)] = stamp_value(bench, bench->rank);
}

static void check_stamps(bench *bench)
{
    for (int s = 0; s < STAMPS; s++)
        bench->wrong += bench->sum[stamp_place(bench, s)] != stamp_value(bench, 0) + stamp_value(bench, 1);
}

/* All but those that were stamped. */
static void check_elements(bench *bench)
{
    for (int s = 0; s < STAMPS; s++)
        bench->sum[stamp_place(bench, s)] = element(0, stamp_place(bench, s)) + element(1, stamp_place(bench, s));
    for (int64_t i = 0; i < bench->count; i++)
        bench->wrong += bench->sum[i] != element(0, i) + element(1, i);
}

/* Pages of zeros. */
static float *open_vector(bench *bench, size_t size)
{
    void *memory = bench->engine ? bench->engine->memory(bench->engine, size) : aligned_alloc(PAGE, size);
    if (!memory)
        die("the vectors", "out of memory");
    return memset(memory, 0, size);
}

static void close_vector(bench *bench, float *vector)
{
    if (bench->engine)
        bench->engine->release_memory(bench->engine, vector);
    else
        free(vector);
}

static void open_vectors(bench *bench, int64_t bytes)
{
    size_t size = ((size_t)bytes + PAGE - 1) / PAGE * PAGE;
    bench->count = bytes / (int64_t)sizeof(float);
    bench->round = 0;
    bench->wrong = 0;
    bench->vectors[bench->rank] = open_vector(bench, size);
    bench->vectors[!bench->rank] = bench->engine ? NULL : open_vector(bench, size);
    bench->sum = open_vector(bench, size);
    for (int64_t i = 0; i < bench->count; i++)
        bench->vectors[bench->rank][i] = element(bench->rank, i);
    if (bench->engine)
        connect_vectors(bench);
}

static void close_vectors(bench *bench)
{
    if (bench->engine)
        bench->communicator->release(bench->communicator);
    for (int rank = 0; rank < PROCESSES; rank++)
        close_vector(bench, bench->vectors[rank]);
    close_vector(bench, bench->sum);
}

static void write_times(const bench *bench, const char *name, const long long *times, long rounds)
{
    fprintf(bench->out, ", \"%s\": [", name);
    for (long i = 0; i < rounds; i++)
        fprintf(bench->out, "%s%lld", i ? ", " : "", times[i]);
    fprintf(bench->out, "]");
}

static void run(bench *bench, int64_t bytes, long rounds)
{
    long long *began = calloc((size_t)rounds, sizeof *began), *ended = calloc((size_t)rounds, sizeof *ended);
    if (!began || !ended)
        die("times", "out of memory");
    open_vectors(bench, bytes);
    for (long i = 0; i < rounds; i++) {
        bench->round++;
        stamp(bench);
        began[i] = now();
        if (bench->engine)
            add_by_exchange(bench);
        else
            add_by_socket(bench);
        ended[i] = now();
        check_stamps(bench);
    }
    check_elements(bench);
    fprintf(bench->out, "{\"bytes\": %lld, \"wrong\": %lld", (long long)bytes, (long long)bench->wrong);
    write_times(bench, "began", began, rounds);
    write_times(bench, "ended", ended, rounds);
    fprintf(bench->out, "}\n");
    close_vectors(bench);
    free(began);
    free(ended);
}

/* Nobody closes the connection before the other has all that it was sent: that a gather is complete says that the other
 * has come to it, not that it has completed it. So there is another, which the other may break by leaving. */
static void end_exchange(bench *bench)
{
    char slots[PROCESSES] = {0};
    tdi_error error = {0};
    must(tdi_exchange_gather(bench->exchange, slots, 1, &error), &error);
    tdi_exchange_gather(bench->exchange, slots, 1, &error);
    tdi_exchange_free(bench->exchange);
    tdi_deal_free(bench->deal);
    bench->engine->release(bench->engine);
    tdi_security_free(bench->security);
}

static void end(bench *bench)
{
    if (bench->engine)
        end_exchange(bench);
    else
        close(bench->fd);
    if (fclose(bench->out) != 0)
        die("the times", strerror(errno));
}

static td_status create_tls(tdi_engine **engine, tdi_error *error)
{
    *engine = tdi_tls_engine();
    return *engine ? TD_OK : tdi_no_memory(error);
}

static td_status create_ucx(tdi_engine **engine, tdi_error *error)
{
    return tdi_ucx_engine(&(tdi_ucx_spec){.reach = TDI_UCX_HOST}, engine, error);
}

static const way ways[] = {{"tls", create_tls}, {"ucx", create_ucx}, {"socket", NULL}};

static const way *find_way(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(name, ways[i].name) == 0)
            return &ways[i];
    die(name, "expected tls, ucx or socket");
    return NULL;
}

static void create_engine(bench *bench)
{
    tdi_error error = {0};
    td_status status = bench->way->create ? bench->way->create(&bench->engine, &error) : TD_OK;
    if (status == TD_OK)
        return;
    fprintf(stderr, "bench_allreduce: %s\n", error.message);
    exit(status == TD_UNSUPPORTED ? NOT_HERE : 1);
}

int main(int count, char **arguments)
{
    if (count < 4)
        return fprintf(stderr, "usage: bench_allreduce tls|ucx|socket FOLDER BYTES:ROUNDS...\n"), 2;
    char path[4096];
    bench bench = {.way = find_way(arguments[1]), .rank = atoi(variable("RANK")) != 0};
    snprintf(path, sizeof path, "%s/%d", arguments[2], bench.rank);
    bench.out = fopen(path, "we");
    if (!bench.out)
        die(path, strerror(errno));
    create_engine(&bench);
    meet(&bench);
    if (bench.engine)
        start_exchange(&bench);
    for (int i = 3; i < count; i++) {
        long long bytes;
        long rounds;
        if (sscanf(arguments[i], "%lld:%ld", &bytes, &rounds) != 2 || bytes < 4 * STAMPS || rounds < 1)
            die(arguments[i], "expected BYTES:ROUNDS, 64 bytes and one round at least");
        run(&bench, bytes, rounds);
    }
    end(&bench);
    return 0;
}
