/* overhead.c - calls, and in turn with them the same kernels walked through by the plan alone, on the same memory. */
#include "overhead.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "runtime/runtime_struct.h"

enum { ROUNDS = 1001 };
static const double round_seconds = 100e-6;
static const double longest = 5e3; /* us: what is around the kernels of longer calls does not show */

typedef struct kernels {
    tdi_runtime *runtime;
    tdi_mode mode;
    tdi_plan *plan;
    int times;
} kernels;

static tdi_plan *plan_of(const tdi_runtime *runtime, tdi_mode mode, int64_t rows)
{
    for (int i = 0; i < runtime->shards[0].plans[mode].count; i++)
        if (runtime->shards[0].plans[mode].at[i].rows == rows)
            return runtime->shards[0].plans[mode].at[i].plan;
    return NULL;
}

static void walk(void *context, int index)
{
    const kernels *k = context;
    (void)index;
    for (int i = 0; i < k->times; i++)
        tdi_plans_run(&k->plan, 1, 0, 1, &k->runtime->workers[0].threads, k->runtime->modes[k->mode].communicators[0],
                      NULL);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds)
{
    qsort(seconds, ROUNDS, sizeof *seconds, compare);
    return seconds[ROUNDS / 2];
}

static double time_calls(void (*call)(void *context), void *context, int times)
{
    double began = tdi_seconds();
    for (int i = 0; i < times; i++)
        call(context);
    return (tdi_seconds() - began) / times * 1e6;
}

/* Others on the core can make the mean of a few calls any length. */
static double shortest_call(void (*call)(void *context), void *context)
{
    double shortest = time_calls(call, context, 1);
    for (int i = 1; i < 10; i++)
        shortest = fmin(shortest, time_calls(call, context, 1));
    return shortest;
}

/* As calls walk: denormals flushed, no other thread woken. */
static double time_kernels(kernels *k, int times)
{
    k->times = times;
    double began = tdi_seconds();
    tdi_run_alone(walk, k);
    return (tdi_seconds() - began) / times * 1e6;
}

bool measure_overhead(td_model *model, bool trains, int64_t rows, void (*call)(void *context), void *context,
                      overhead *found)
{
    static double calls[ROUNDS], alone[ROUNDS], around[ROUNDS];
    tdi_runtime *runtime;
    tdi_mode mode = trains ? TDI_TRAIN : TDI_PREDICT;
    if (tdi_runtime_for(model, mode, rows, &runtime, NULL) != TD_OK)
        return false;
    kernels k = {.runtime = runtime, .mode = mode};
    k.plan = plan_of(runtime, k.mode, rows);
    if (runtime->division.shards > 1 || !k.plan || tdi_plan_sharing(k.plan) > 1)
        return false;
    double one = shortest_call(call, context);
    if (one > longest)
        return false;
    int times = one < round_seconds * 1e6 ? (int)(round_seconds * 1e6 / one) + 1 : 1;
    for (int i = 0; i < ROUNDS; i++) {
        calls[i] = time_calls(call, context, times);
        alone[i] = time_kernels(&k, times);
        around[i] = calls[i] - alone[i];
    }
    *found = (overhead){median(calls), median(alone), median(around)};
    return true;
}
