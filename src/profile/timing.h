/* timing.h - where the time of a step goes: each op's by the clock, beside its floor, the least that this machine
 * needs. */
#ifndef TDI_PROFILE_TIMING_H
#define TDI_PROFILE_TIMING_H

#include "plan/plan.h"
#include "profile/roofline.h"
#include "runtime/synthetic_steps.h"

/* One step of the plan, over all shards. Its time, as all times here, is the mean over the threads that share the work:
 * so the times of all add up to the step's. */
typedef struct tdi_op_time {
    tdi_plan_op op; /* op.op NULL: it computes nothing */
    int64_t calls;  /* of kernels, all threads together */
    double seconds;
    tdi_floor floor;
} tdi_op_time;

/* What an op is bound by: "memory" or "arithmetic". */
static inline const char *tdi_bound_name(const tdi_floor *floor)
{
    return floor->by_memory ? "memory" : "arithmetic";
}

typedef struct tdi_timing {
    tdi_synthetic_steps synthetic;
    tdi_runtime *runtime; /* the clone's */
    const tdi_plan *plan; /* the last shard's */
    int threads;          /* that share the work */
    int64_t steps;        /* that count */
    double seconds;       /* a step: of its ops, and of these three: */
    double waiting;       /* for other threads: inside an op, for gradients, at the step's end */
    double feeding;       /* bringing the next step's rows together */
    double rest;          /* between them */
    double floor;         /* the sum of the ops' */
    double in_use;        /* bytes of weights, gradients, slots and activations */
    tdi_roofline roofline;
    int count;
    tdi_op_time *ops; /* [count]: the plan's steps, in order */
} tdi_timing;

/* Runs steps of `batch` made-up rows on a clone of the model, as its runtime would, for a second or two; measures the
 * roofline. Whatever it returns, the caller releases it. Nothing of the model changes. */
td_status tdi_time_steps(const td_model *model, tdi_mode mode, int64_t batch, tdi_timing *timing, tdi_error *error);
void tdi_timing_release(tdi_timing *timing);

#endif
