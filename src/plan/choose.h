/* choose.h - which kernel computes a step, and its calls made ready for every thread. */
#ifndef TDI_PLAN_CHOOSE_H
#define TDI_PLAN_CHOOSE_H

#include "plan/plan_struct.h"

/* One kernel (NULL: the op's reference) made ready for every thread of a step. */
typedef struct tdi_prepared {
    const tdi_kernel *kernel;
    tdi_placement by;
    tdi_call *calls;      /* [threads] */
    tdi_call *finish;     /* [threads]; NULL: the step is not divided by depth */
    size_t scratch_bytes; /* of each thread */
    size_t packed_bytes;  /* of the packed-weight caches of all threads */
} tdi_prepared;

/* Places the node among the threads and prepares its calls, in `arena`. TD_UNSUPPORTED and the kernel's sentence where
 * it does not take a thread's range. On failure nothing is left to release. */
td_status tdi_prepare_kernel(const tdi_plan *plan, const tdi_kernel *kernel, const tdi_node *node, tdi_arena *arena,
                             tdi_prepared *prepared, tdi_error *error);
/* Releases the calls' states and packed-weight caches; `kernel` made them. */
void tdi_calls_release(const tdi_plan *plan, const tdi_kernel *kernel, tdi_call *calls);

/* A call with shapes, dtypes and attributes but no addresses and no share: what a kernel is asked with. */
td_status tdi_describe_call(const tdi_plan *plan, const tdi_node *node, tdi_arena *arena, tdi_call *call,
                            tdi_error *error);

/* Chooses which values are batch-interleaved; before the kernels. */
td_status tdi_choose_layout(tdi_plan *plan, tdi_error *error);
/* Chooses the step's kernel, and prepares its calls. */
td_status tdi_choose_kernel(tdi_plan *plan, int step, tdi_error *error);

/* Answers which of the kernels, candidates of `question`, is the fastest for the node's calls; *answer as in
 * tdi_contest_answer. */
td_status tdi_kernel_trial(tdi_plan *plan, const tdi_node *node, const tdi_kernel *const *kernels,
                           const tdi_tuned *question, const tdi_tuned **answer, tdi_error *error);
/* Frees the memory that the plan's trials have used. */
void tdi_spares_release(tdi_plan *plan);

#endif
