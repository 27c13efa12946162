/* roofline.c - what a team's threads can do at most, against the clock. Of several repetitions the best counts: a roof
 * is what nothing has disturbed. */
#include "profile/roofline.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/machine.h"
#include "base/text.h"

enum { REPETITIONS = 5, LARGEST_SHARE = 4 /* of the memory, a quarter */ };
static const double repetition_seconds = 2e-3;

typedef struct trial {
    tdi_roofline_loops loops;
    tdi_team *team;
    tdi_barrier start;
    int threads;
    void (*work)(const struct trial *trial, int thread, int64_t times);
    int64_t times, count; /* floats of each thread's data in use */
    float **data;         /* [threads] */
    double *seconds;      /* [threads] */
} trial;

/* ---- the units of work ---- */

static void multiply_add(const trial *t, int thread, int64_t times)
{
    (void)thread;
    t->loops.multiply_add(times);
}

static void multiply_add_bfloat16(const trial *t, int thread, int64_t times)
{
    (void)thread;
    t->loops.multiply_add_bfloat16(times);
}

static void read_data(const trial *t, int thread, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        t->loops.read(t->data[thread], t->count);
}

static void update_data(const trial *t, int thread, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        t->loops.update(t->data[thread], t->count);
}

/* ---- the clock ---- */

static void run_thread(void *argument, int index)
{
    trial *t = argument;
    tdi_barrier_wait(&t->start);
    double began = tdi_seconds();
    t->work(t, index, t->times);
    t->seconds[index] = tdi_seconds() - began;
}

/* Seconds of the slowest thread. */
static double once(trial *t)
{
    double slowest = 0;
    tdi_team_run(t->team, t->threads, run_thread, t);
    for (int i = 0; i < t->threads; i++)
        slowest = t->seconds[i] > slowest ? t->seconds[i] : slowest;
    return slowest;
}

/* Units a second of all threads. */
static double most(trial *t, void (*work)(const trial *trial, int thread, int64_t times))
{
    t->work = work;
    t->times = 1;
    double best = once(t);
    while (best < repetition_seconds / 2) {
        t->times *= best > repetition_seconds / 64 ? 2 : 16;
        best = once(t);
    }
    for (int i = 1; i < REPETITIONS; i++) {
        double seconds = once(t);
        best = seconds < best ? seconds : best;
    }
    return (double)t->times * t->threads / best;
}

static void measure(trial *t, bool bfloat16, int sizes, tdi_roofline *roofline)
{
    *roofline = (tdi_roofline){.threads = t->threads, .sizes = sizes};
    roofline->flops = t->loops.flops * most(t, multiply_add);
    if (bfloat16 && t->loops.multiply_add_bfloat16)
        roofline->bfloat16_flops = t->loops.bfloat16_flops * most(t, multiply_add_bfloat16);
    for (int i = 0; i < sizes; i++) {
        double bytes = (double)((int64_t)TDI_LEAST_ROOFLINE_SIZE << i);
        t->count = (int64_t)bytes / (int64_t)sizeof(float);
        roofline->read[i] = bytes * most(t, read_data);
        roofline->update[i] = 2 * bytes * most(t, update_data);
    }
}

/* ---- memory ---- */

static int sizes_for(double bytes, int threads)
{
    double share = (double)tdi_memory_left() / LARGEST_SHARE / threads;
    int sizes = 1;
    while (sizes < TDI_ROOFLINE_SIZES && (double)((int64_t)TDI_LEAST_ROOFLINE_SIZE << (sizes - 1)) < bytes &&
           (double)((int64_t)TDI_LEAST_ROOFLINE_SIZE << sizes) < share)
        sizes++;
    return sizes;
}

static td_status make_data(trial *t, int sizes, tdi_error *error)
{
    t->data = calloc((size_t)t->threads, sizeof *t->data);
    t->seconds = calloc((size_t)t->threads, sizeof *t->seconds);
    if (!t->data || !t->seconds)
        return tdi_no_memory(error);
    size_t bytes = (size_t)TDI_LEAST_ROOFLINE_SIZE << (sizes - 1);
    for (int i = 0; i < t->threads; i++) {
        t->data[i] = tdi_buffer_create(bytes);
        if (!t->data[i])
            return tdi_memory_short(error, "measuring the memory", bytes, "allow it more");
    }
    return TD_OK;
}

static void release(trial *t)
{
    for (int i = 0; t->data && i < t->threads; i++)
        tdi_buffer_free(t->data[i]);
    free(t->data);
    free(t->seconds);
}

td_status tdi_roofline_measure(const tdi_device *device, tdi_team *team, int threads, bool bfloat16, double bytes,
                               tdi_roofline *roofline, tdi_error *error)
{
    trial t = {
        .team = team, .threads = threads, .start = {.count = (uint32_t)threads, .spin = tdi_team_spins(team, threads)}};
    int sizes = sizes_for(bytes, threads);
    device->roofline(&t.loops);
    td_status status = make_data(&t, sizes, error);
    if (status == TD_OK)
        measure(&t, bfloat16, sizes, roofline);
    release(&t);
    return status;
}

/* ---- floors ---- */

/* Between two sizes that were measured, a share of both. */
static double speed_at(const double *speeds, int sizes, double each)
{
    double size = TDI_LEAST_ROOFLINE_SIZE;
    if (each <= size)
        return speeds[0];
    for (int i = 1; i < sizes; i++, size *= 2)
        if (each <= 2 * size)
            return speeds[i - 1] + (each - size) / size * (speeds[i] - speeds[i - 1]);
    return speeds[sizes - 1];
}

double tdi_roofline_bandwidth(const tdi_roofline *roofline, double bytes)
{
    double read = speed_at(roofline->read, roofline->sizes, bytes / roofline->threads);
    double update = speed_at(roofline->update, roofline->sizes, bytes / roofline->threads);
    return read > update ? read : update;
}

tdi_floor tdi_floor_of(const tdi_roofline *roofline, const tdi_demand *demand, double in_use)
{
    bool narrow = demand->bfloat16 && roofline->bfloat16_flops > roofline->flops;
    double arithmetic = demand->flops / (narrow ? roofline->bfloat16_flops : roofline->flops);
    double memory = (demand->bytes - demand->kept_bytes) / tdi_roofline_bandwidth(roofline, demand->bytes) +
                    demand->kept_bytes / tdi_roofline_bandwidth(roofline, in_use);
    return (tdi_floor){.seconds = memory > arithmetic ? memory : arithmetic, .by_memory = memory > arithmetic};
}
