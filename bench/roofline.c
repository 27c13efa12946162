/* roofline.c - what this machine can do at most: arithmetic, bandwidth by the size of the data, hand-over between
 * cores.
 *
 * bench_roofline [THREADS]      everything, as one JSON object (some seconds)
 * bench_roofline THREADS meet   the hand-over latency alone
 *
 * A thread is pinned to each of the first THREADS allowed cores (default: all). Every number is the best of several
 * repetitions: a roof is what nothing has disturbed. Bandwidth is measured over private data of each thread: "read"
 * sums an array, "update" overwrites it (bytes read and bytes written both count). The loops are those by which
 * `tandem explain --time` finds an op's floor (src/cpu/roofline_loops.h).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/roofline_loops.h"

enum { MAX_THREADS = 256, REPETITIONS = 5 };
static const double SECONDS = 0.012; /* of a repetition */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- threads ---- */

typedef struct team team;
typedef struct member {
    team *team;
    int index;
    pthread_t thread;
    float *data; /* its own */
    double seconds;
} member;

/* Work of one member: `times` units of it. */
typedef void (*work)(member *member, int64_t times);

struct team {
    int size;
    int cores[MAX_THREADS];
    member members[MAX_THREADS];
    pthread_barrier_t gate;
    work work; /* NULL: end */
    int64_t times;
    int active;   /* members that work; the others wait at the gate */
    size_t count; /* floats of each member's data in use */
    tdi_roofline_loops loops;
    _Alignas(64) atomic_long turn;
};

static void *live(void *argument)
{
    member *m = argument;
    team *t = m->team;
    for (;;) {
        pthread_barrier_wait(&t->gate);
        if (!t->work)
            return NULL;
        double began = now();
        if (m->index < t->active)
            t->work(m, t->times);
        m->seconds = now() - began;
        pthread_barrier_wait(&t->gate);
    }
}

static void find_cores(team *t, int wanted)
{
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int core = 0; core < CPU_SETSIZE && t->size < wanted; core++)
        if (CPU_ISSET((size_t)core, &allowed))
            t->cores[t->size++] = core;
}

static void start(team *t)
{
    pthread_barrier_init(&t->gate, NULL, (unsigned)t->size + 1);
    for (int i = 0; i < t->size; i++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)t->cores[i], &one);
        t->members[i] = (member){.team = t, .index = i};
        if (pthread_create(&t->members[i].thread, NULL, live, &t->members[i]) != 0) {
            fprintf(stderr, "bench_roofline: no thread for core %d\n", t->cores[i]);
            exit(1);
        }
        pthread_setaffinity_np(t->members[i].thread, sizeof one, &one);
    }
}

static void end(team *t)
{
    t->work = NULL;
    pthread_barrier_wait(&t->gate);
    for (int i = 0; i < t->size; i++)
        pthread_join(t->members[i].thread, NULL);
}

/* Seconds of the slowest member. */
static double once(team *t, int active, work work, int64_t times)
{
    double slowest = 0;
    t->work = work;
    t->active = active;
    t->times = times;
    pthread_barrier_wait(&t->gate);
    pthread_barrier_wait(&t->gate);
    for (int i = 0; i < active; i++)
        slowest = t->members[i].seconds > slowest ? t->members[i].seconds : slowest;
    return slowest;
}

/* The least seconds per unit of work, the number of units chosen so that a repetition takes about SECONDS. */
static double least(team *t, int active, work work)
{
    int64_t times = 1;
    double seconds = once(t, active, work, times);
    while (seconds < SECONDS / 2 && times < INT64_C(1) << 40) {
        times *= seconds > SECONDS / 64 ? 2 : 16;
        seconds = once(t, active, work, times);
    }
    double best = seconds;
    for (int i = 1; i < REPETITIONS; i++) {
        seconds = once(t, active, work, times);
        best = seconds < best ? seconds : best;
    }
    return best / (double)times;
}

/* ---- the units of work ---- */

static void multiply_add(member *m, int64_t times)
{
    m->team->loops.multiply_add(times);
}

static void multiply_add_bf16(member *m, int64_t times)
{
    (void)m;
    tdi_bfloat16_vectors.run(times);
}

static void multiply_add_tiles(member *m, int64_t times)
{
    (void)m;
    tdi_bfloat16_amx.run(times);
}

static void read_data(member *m, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        m->team->loops.read(m->data, (int64_t)m->team->count);
}

static void update_data(member *m, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        m->team->loops.update(m->data, (int64_t)m->team->count);
}

static void copy_out(member *m, int64_t times)
{
    (void)times;
    for (size_t i = 0; i < m->team->count; i++)
        m->data[i] = 1.0f;
}

static void pause_briefly(void)
{
#ifdef TANDEM_X86
    __builtin_ia32_pause();
#endif
}

/* The turn goes round all members; a unit is one full round. */
static void pass_turn(member *m, int64_t times)
{
    team *t = m->team;
    for (int64_t i = 0; i < times; i++) {
        long mine = (long)i * t->active + m->index;
        while (atomic_load_explicit(&t->turn, memory_order_acquire) != mine)
            pause_briefly();
        atomic_store_explicit(&t->turn, mine + 1, memory_order_release);
    }
}

/* ---- the report ---- */

/* Nanoseconds from one core's write until another has seen it, the least and the median of some slices: on a virtual
 * machine it depends on where the host has put the cores just now. */
static void report_meeting(team *t)
{
    enum { SLICES = 21, ROUNDS = 4000 };
    double nanoseconds[SLICES];
    for (int s = 0; s < SLICES; s++) {
        atomic_store(&t->turn, 0);
        nanoseconds[s] = once(t, 2, pass_turn, ROUNDS) * 1e9 / (2.0 * ROUNDS);
        for (int i = s; i > 0 && nanoseconds[i - 1] > nanoseconds[i]; i--) {
            double larger = nanoseconds[i - 1];
            nanoseconds[i - 1] = nanoseconds[i];
            nanoseconds[i] = larger;
        }
    }
    printf("\"handover_ns\": {\"least\": %.1f, \"median\": %.1f}", nanoseconds[0], nanoseconds[SLICES / 2]);
}

static void report_arithmetic(team *t, const char *name, work work, double flops_per_unit)
{
    printf("\"%s\": {\"one\": %.4g, \"all\": %.4g}, ", name, flops_per_unit / least(t, 1, work),
           flops_per_unit * t->size / least(t, t->size, work));
}

static void report_bandwidth(team *t, const char *name, work work, int active, double passes)
{
    printf("\"%s\": [", name);
    for (size_t bytes = 1 << 13; bytes <= (size_t)1 << 28; bytes *= 2) {
        t->count = bytes / sizeof(float);
        printf("%s[%zu, %.4g]", bytes == 1 << 13 ? "" : ", ", bytes,
               passes * (double)bytes * active / least(t, active, work));
    }
    printf("], ");
}

/* Fails, in a sentence that bench/run passes on, where there is not enough memory. */
static void make_data(team *t)
{
    t->count = ((size_t)1 << 28) / sizeof(float);
    for (int i = 0; i < t->size; i++) {
        void *memory = NULL;
        if (posix_memalign(&memory, 4096, t->count * sizeof(float)) != 0) {
            fprintf(stderr, "bench_roofline: 256 MB a thread are needed, and there is not enough memory\n");
            exit(1);
        }
        t->members[i].data = memory;
    }
    once(t, t->size, copy_out, 1);
}

static void report_all(team *t)
{
    printf("\"isa\": \"%s\", ", t->loops.name);
    report_arithmetic(t, "fp32_flops", multiply_add, t->loops.flops);
    if (tdi_bfloat16_vectors.works())
        report_arithmetic(t, "bf16_vector_flops", multiply_add_bf16, tdi_bfloat16_vectors.flops);
    if (tdi_bfloat16_amx.works())
        report_arithmetic(t, "bf16_tile_flops", multiply_add_tiles, tdi_bfloat16_amx.flops);
    make_data(t);
    report_bandwidth(t, "read_one", read_data, 1, 1);
    report_bandwidth(t, "read_all", read_data, t->size, 1);
    report_bandwidth(t, "update_one", update_data, 1, 2);
    report_bandwidth(t, "update_all", update_data, t->size, 2);
}

int main(int count, char **arguments)
{
    static team t;
    int wanted = count > 1 ? atoi(arguments[1]) : MAX_THREADS;
    bool meeting = count > 2 && strcmp(arguments[2], "meet") == 0;
    if (count > 3 || wanted < 1 || wanted > MAX_THREADS || (count == 3 && !meeting))
        return fprintf(stderr, "usage: bench_roofline [THREADS [meet]]\n"), 2;
    tdi_cpu_roofline_loops(&t.loops);
    find_cores(&t, wanted);
    start(&t);
    printf("{\"threads\": %d, ", t.size);
    if (!meeting)
        report_all(&t);
    if (t.size > 1)
        report_meeting(&t);
    else
        printf("\"handover_ns\": null");
    printf("}\n");
    end(&t);
    for (int i = 0; i < t.size; i++)
        free(t.members[i].data);
    return 0;
}
