/* overhead.h - what of a call goes to the kernels of its plan, and what is spent around them. */
#ifndef BENCH_OVERHEAD_H
#define BENCH_OVERHEAD_H

#include <stdbool.h>
#include <tandem/tandem.h>

/* Microseconds a call: medians over rounds of calls and rounds of the plan's kernels alone, in turn, and of what each
 * two rounds differ by, which a machine that changes its speed leaves comparable. */
typedef struct overhead {
    double call, kernels, around;
} overhead;

/* `call` has been made before, with one batch of `rows` rows, which lies where it did: td_train_on_batch, or
 * td_predict_on_batch. false: several threads share the work, and what they wait for each other cannot be told from
 * overhead. */
bool measure_overhead(td_model *model, bool trains, int64_t rows, void (*call)(void *context), void *context,
                      overhead *found);

#endif
