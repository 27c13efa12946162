/* scaling.c - one network on 1, 2, .. all cores: as Tandem divides it, and with one replica a core.
 *
 * Each measurement is a process of its own, kept to its cores, so that it finds no more than them. The ways take turns,
 * and of each the best round counts. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tandem/tandem.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3, MOST_CORES = 1024 };
static const double round_seconds = 0.4;

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

/* Microseconds a step; a negative number when it cannot be done. */
static double steps(const row *r, int shards)
{
    td_context *context = td_context_create(NULL);
    td_model *model = td_new(context, r->architecture, 1);
    td_shape shape;
    if (td_compile(model, .strategy = {.devices = "cpu", .shards = shards}) != TD_OK ||
        td_input_shape(model, 0, &shape) != TD_OK)
        return -1;
    size_t elements = (size_t)r->batch;
    for (int i = 0; i < shape.rank; i++)
        elements *= (size_t)shape.dim[i];
    float *x = malloc(elements * sizeof *x), *y = calloc((size_t)r->batch, sizeof *y);
    for (size_t i = 0; x && i < elements; i++)
        x[i] = (float)(i * 2654435761u % 1000) * 1e-3f;
    if (!x || !y || td_train_on_batch(model, r->batch, x, y, NULL) != TD_OK)
        return -1;
    double best = 1e9, end = now() + round_seconds;
    while (now() < end) {
        double begun = now();
        for (int i = 0; i < 10; i++)
            td_train_on_batch(model, r->batch, x, y, NULL);
        double took = (now() - begun) / 10;
        best = took < best ? took : best;
    }
    return best * 1e6;
}

static double measure(const row *r, const cpu_set_t *allowed, int cores, int shards)
{
    int ends[2];
    double us = -1;
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        keep_to(allowed, cores);
        us = steps(r, shards);
        _exit(write(ends[1], &us, sizeof us) != sizeof us);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &us, sizeof us) != sizeof us)
        us = -1;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return us;
}

static void better(double *best, double us)
{
    if (us > 0 && (*best <= 0 || us < *best))
        *best = us;
}

static void print_row(const row *r, const cpu_set_t *allowed, int most)
{
    static double chosen[MOST_CORES + 1], replicas[MOST_CORES + 1];
    for (int round = 0; round < ROUNDS; round++)
        for (int cores = 1; cores <= most; cores += cores < 4 ? 1 : cores / 2) {
            better(&chosen[cores], measure(r, allowed, cores, 0));
            better(&replicas[cores], measure(r, allowed, cores, cores));
        }
    for (int cores = 1; cores <= most; cores += cores < 4 ? 1 : cores / 2) {
        printf("%-8s %5lld %5d %10.1f %5.0f %% %10.1f %5.0f %%\n", r->architecture, (long long)r->batch, cores,
               chosen[cores], 100 * chosen[1] / chosen[cores] / cores, replicas[cores],
               100 * chosen[1] / replicas[cores] / cores);
        chosen[cores] = cores == 1 ? chosen[1] : 0;
        replicas[cores] = 0;
    }
    chosen[1] = 0;
}

int main(void)
{
    static const row rows[] = {{"mlp", 32}, {"mlp", 128}, {"lenet5", 32}, {"cifar", 32}};
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int cores = CPU_COUNT(&allowed);
    printf("%-8s %5s %5s %18s %18s\n", "network", "batch", "cores", "as divided, us", "by replicas, us");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        print_row(&rows[i], &allowed, cores < MOST_CORES ? cores : MOST_CORES);
    return 0;
}
