/* scaling.c - networks on 1, 2, .. all cores: as Tandem divides them, and with one replica a core; then on all cores
 * beside another busy process, and with more devices than cores.
 *
 * Each measurement is a process of its own, kept to its cores, so that it finds no more than them. The ways take turns,
 * and of each the best round counts; beside a busy process the worst, as a mean over its time. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tandem/tandem.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3, MOST_CORES = 1024 };
static const double round_seconds = 0.4, busy_seconds = 1.5;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

typedef struct row {
    const char *architecture;
    int64_t batch;
} row;

static void keep_to(const cpu_set_t *allowed, int cores)
{
    cpu_set_t few;
    CPU_ZERO(&few);
    for (int i = 0; i < CPU_SETSIZE && cores; i++)
        if (CPU_ISSET((size_t)i, allowed)) {
            CPU_SET((size_t)i, &few);
            cores--;
        }
    sched_setaffinity(0, sizeof few, &few);
}

/* How a network is run. */
typedef struct setting {
    const row *row;
    int cores, shards;
    const char *devices;
    double seconds; /* 0: round_seconds */
} setting;

/* Microseconds a step; negative when it cannot be done. */
typedef struct times {
    double best, mean;
} times;

static const times FAILED = {-1, -1};

static times time_steps(td_model *model, int64_t batch, const float *x, const float *y, double seconds)
{
    double begun = now(), last = begun, best = 1e9;
    int steps = 0;
    while (last - begun < seconds) {
        double before = last;
        for (int i = 0; i < 10; i++)
            td_train_on_batch(model, batch, x, y, NULL);
        steps += 10;
        last = now();
        best = (last - before) / 10 < best ? (last - before) / 10 : best;
    }
    return (times){best * 1e6, (last - begun) / steps * 1e6};
}

static times run(const setting *s)
{
    td_context *context = td_context_create(NULL);
    td_model *model = td_new(context, s->row->architecture, 1);
    int64_t batch = s->row->batch;
    td_shape shape;
    if (td_compile(model, .strategy = {.devices = s->devices, .shards = s->shards}) != TD_OK ||
        td_input_shape(model, 0, &shape) != TD_OK)
        return FAILED;
    size_t elements = (size_t)batch;
    for (int i = 0; i < shape.rank; i++)
        elements *= (size_t)shape.dim[i];
    float *x = malloc(elements * sizeof *x), *y = calloc((size_t)batch, sizeof *y);
    for (size_t i = 0; x && i < elements; i++)
        x[i] = (float)(i * 2654435761u % 1000) * 1e-3f;
    bool works = x && y && td_train_on_batch(model, batch, x, y, NULL) == TD_OK;
    return works ? time_steps(model, batch, x, y, s->seconds > 0 ? s->seconds : round_seconds) : FAILED;
}

static times measure(const setting *s, const cpu_set_t *allowed)
{
    int ends[2];
    times seen = FAILED;
    if (pipe(ends) != 0)
        return seen;
    pid_t child = fork();
    if (child == 0) {
        keep_to(allowed, s->cores);
        seen = run(s);
        _exit(write(ends[1], &seen, sizeof seen) != sizeof seen);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &seen, sizeof seen) != sizeof seen)
        seen = FAILED;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return seen;
}

static void better(double *best, double us)
{
    if (us > 0 && (*best <= 0 || us < *best))
        *best = us;
}

static int next(int cores)
{
    return cores < 4 ? cores + 1 : cores + cores / 2;
}

static void print_row(const row *r, const cpu_set_t *allowed, int most)
{
    double chosen[MOST_CORES + 1] = {0}, replicas[MOST_CORES + 1] = {0};
    for (int round = 0; round < ROUNDS; round++)
        for (int cores = 1; cores <= most; cores = next(cores)) {
            better(&chosen[cores], measure(&(setting){r, cores, 0, "cpu", 0}, allowed).best);
            better(&replicas[cores], measure(&(setting){r, cores, cores, "cpu", 0}, allowed).best);
        }
    for (int cores = 1; cores <= most; cores = next(cores))
        printf("%-8s %5lld %5d %10.1f %5.0f %% %10.1f %5.0f %%\n", r->architecture, (long long)r->batch, cores,
               chosen[cores], 100 * chosen[1] / chosen[cores] / cores, replicas[cores],
               100 * chosen[1] / replicas[cores] / cores);
}

/* ---- company ---- */

/* A process that computes for ever; on the last of the allowed cores, or wherever it is put. */
static pid_t start_busy(const cpu_set_t *allowed, bool pinned)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    cpu_set_t last;
    CPU_ZERO(&last);
    for (int i = CPU_SETSIZE - 1; i >= 0 && !CPU_COUNT(&last); i--)
        if (CPU_ISSET((size_t)i, allowed))
            CPU_SET((size_t)i, &last);
    if (pinned)
        sched_setaffinity(0, sizeof last, &last);
    for (volatile unsigned turns = 0;; turns++)
        ;
}

static double beside_busy(const setting *s, const cpu_set_t *allowed, bool pinned)
{
    pid_t busy = start_busy(allowed, pinned);
    double us = measure(s, allowed).mean;
    if (busy > 0) {
        kill(busy, SIGKILL);
        waitpid(busy, NULL, 0);
    }
    return us;
}

static const char *name_devices(int count, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%scpu:%d", i ? "," : "", i);
    return text;
}

/* Oversubscribed: two and four devices a core. */
static void print_company(const row *r, const cpu_set_t *allowed, int most)
{
    char twice[16 * 2 * MOST_CORES], four_times[16 * 4 * MOST_CORES];
    double one = 0, all = 0, busy[2] = {0}, devices[2] = {0};
    const setting on_one = {.row = r, .cores = 1, .devices = "cpu"},
                  on_all = {.row = r, .cores = most, .devices = "cpu"};
    const setting beside = {.row = r, .cores = most, .devices = "cpu", .seconds = busy_seconds};
    const setting more[2] = {
        {.row = r, .cores = most, .devices = name_devices(2 * most, twice, sizeof twice)},
        {.row = r, .cores = most, .devices = name_devices(4 * most, four_times, sizeof four_times)}};
    for (int round = 0; round < ROUNDS; round++) {
        better(&one, measure(&on_one, allowed).best);
        better(&all, measure(&on_all, allowed).best);
        for (int i = 0; i < 2; i++) {
            double us = beside_busy(&beside, allowed, i);
            busy[i] = us > busy[i] ? us : busy[i];
            better(&devices[i], measure(&more[i], allowed).best);
        }
    }
    printf("%-8s %5lld %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f\n", r->architecture, (long long)r->batch, one, all,
           busy[0], busy[1], devices[0], devices[1]);
}

int main(void)
{
    static const row rows[] = {{"mlp", 32}, {"mlp", 128}, {"lenet5", 32}, {"cifar", 32}, {"resnet20", 32}};
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int cores = CPU_COUNT(&allowed) < MOST_CORES ? CPU_COUNT(&allowed) : MOST_CORES;
    printf("%-8s %5s %5s %18s %18s\n", "network", "batch", "cores", "as divided, us", "by replicas, us");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        print_row(&rows[i], &allowed, cores);
    printf(
        "\nmicroseconds a step on one core, on all %d, on all beside a busy process (left to the system; kept to one\n"
        "core), with %d and %d devices\n",
        cores, 2 * cores, 4 * cores);
    printf("%-8s %5s %10s %10s %10s %10s %10s %10s\n", "network", "batch", "one core", "all", "busy", "busy, kept",
           "2 a core", "4 a core");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        print_company(&rows[i], &allowed, cores);
    return 0;
}
