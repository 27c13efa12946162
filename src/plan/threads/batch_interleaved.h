/* batch_interleaved.h - which values are batch-interleaved (tdi_value). */
#ifndef TDI_PLAN_THREADS_BATCH_INTERLEAVED_H
#define TDI_PLAN_THREADS_BATCH_INTERLEAVED_H

#include "device/kernel.h"
#include "passes/passes.h"

/* Sets interleaved[id] of each node whose value is to be batch-interleaved, false of all others. takes(context, node)
 * is the best that a kernel says of the node while all its values are row after row. */
td_status tdi_layout_choose(const tdi_graph *graph, const tdi_schedule *schedule,
                            tdi_batch_interleaving (*takes)(void *context, const tdi_node *node), void *context,
                            bool *interleaved, tdi_error *error);

#endif
