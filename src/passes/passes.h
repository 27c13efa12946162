/* passes.h - from a graph to a frozen order, a division among lanes, and a layout in memory. */
#ifndef TDI_PASSES_PASSES_H
#define TDI_PASSES_PASSES_H

#include "base/text.h"
#include "comm/communicator.h"
#include "device/kernel.h"
#include "ops/ops.h"

/* Gradients of a scalar-per-part `loss` for the given nodes: emits the backward nodes; result[i] is NULL where the loss
 * does not depend on of[i]. TD_UNSUPPORTED naming the op when one on the way has no gradient. */
td_status tdi_gradients(tdi_graph *graph, tdi_node *loss, int count, tdi_node *const *of, tdi_node **result);

/* Makes values bfloat16 where their layer's policy wishes it and one of the device's `kernels` (NULL-terminated)
 * computes so; casts stand between them and float32. Before tdi_fuse. */
td_status tdi_precision(tdi_graph *graph, const tdi_kernel *const *kernels);

/* Lets convolutions and pools do the padding before them, and batch normalizations the addition and rectifier after
 * them. Before gradients are emitted. Notes as for tdi_fuse. */
td_status tdi_fold(tdi_graph *graph, tdi_text *notes);

/* How many inputs and outputs of the graph each node is, by id, in the graph's arena; NULL when memory is out. */
int *tdi_count_readers(const tdi_graph *graph);

/* Puts ops that another one can do on its way, and that nothing else reads, into that op (fuse.c says which). One line
 * per fusion is added to `notes` (may be NULL). */
td_status tdi_fuse(tdi_graph *graph, tdi_text *notes);
td_status tdi_fuse_losses(tdi_graph *graph, tdi_text *notes); /* a part of it */

/* Lets the nodes behind the first `forward_nodes` read copies of what is cheap to compute anew, made right before they
 * are first read, so that the originals need not be kept. After the passes that change nodes. */
td_status tdi_rematerialize(tdi_graph *graph, int forward_nodes, tdi_text *notes);

/* Gives a node a home outside the activations, by way of a copy where the node cannot move. Returns the node at home.
 */
tdi_node *tdi_place_output(tdi_graph *graph, tdi_node *node, tdi_home home, tdi_variable *variable, int slot);

/* ---- schedule ---- */

typedef enum tdi_step_kind { TDI_STEP_KERNEL, TDI_STEP_BEGIN, TDI_STEP_FINISH } tdi_step_kind;

typedef struct tdi_scheduled {
    tdi_step_kind kind;
    tdi_node *node; /* KERNEL */
    int collective; /* BEGIN, FINISH */
} tdi_scheduled;

typedef tdi_vec(tdi_scheduled) tdi_schedule;

/* The order of one step: live nodes only, in creation order; `once` nodes as soon as their variables' gradients are
 * ready and nobody reads the old weights any more. With several parts that happens bucket by bucket: a bucket's
 * reduction is begun when it is ready, and finished when the next one is (so that backpropagation goes on in between).
 * Updates that need norms of gradients come after all of backpropagation.
 *
 * Where graph->effects_last is set, nothing that outlives the step is written before the last FINISH: no weight, slot,
 * moving statistic, state or metric. Accumulators of gradients whose norm is clipped are the exception: the norm is
 * taken of what they hold, so they are written before it is gathered.
 *
 * What the collectives move is appended to `collectives`, by their numbers; the caller frees both lists. */
td_status tdi_schedule_make(tdi_graph *graph, tdi_schedule *schedule, tdi_collectives *collectives, tdi_error *error);

/* Bytes of the exchange arena that a node's value takes, of all shards together; 0: it does not live there. The nodes'
 * values lie one behind the other in the graph's order. */
int64_t tdi_exchange_bytes(const tdi_node *node);

#endif
