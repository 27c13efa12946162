/* inputs.h - the rows of a job's steps, on their way from the feed to the kernels. */
#ifndef TDI_RUNTIME_INPUTS_H
#define TDI_RUNTIME_INPUTS_H

#include "plan/plan.h"
#include "runtime/runtime.h"

/* A job's step: number `index` of the job, of `rows` rows over all shards. */
typedef struct tdi_job_step {
    int64_t index, rows;
} tdi_job_step;

/* Buffers for the batches of a job whose first step is the largest. */
td_status tdi_inputs_prepare(tdi_runtime *runtime, const tdi_job *job, tdi_job_step first, tdi_error *error);
/* Brings together the share that thread `thread` of a worker's `threads` threads has of its rows, but for what can be
 * read where it lies. While a step runs, the step after it may be fed, and no other. */
td_status tdi_inputs_feed(tdi_runtime *runtime, const tdi_job *job, tdi_job_step step, int worker, int thread,
                          int threads, tdi_error *error);
/* Points one thread's kernels at the step's rows; called by that thread. */
void tdi_inputs_set(tdi_runtime *runtime, const tdi_job *job, tdi_job_step step, int worker, int thread,
                    tdi_plan *const *plans);

#endif
