/* batch_interleaved.h - which values have their samples side by side in vector lanes. */
#ifndef TDI_PLAN_THREADS_BATCH_INTERLEAVED_H
#define TDI_PLAN_THREADS_BATCH_INTERLEAVED_H

#include "device/kernel.h"
#include "passes/passes.h"

/* Which values, by node id, are batch-interleaved (tdi_value): those between kernels that take them so, in chains
 * that a leader is part of. takes(context, node) is the best that a kernel says of the node, every value of it row
 * after row. */
td_status tdi_layout_choose(const tdi_graph *graph, const tdi_schedule *schedule,
                            tdi_batch_interleaving (*takes)(void *context, const tdi_node *node), void *context,
                            bool *interleaved, tdi_error *error);

#endif
