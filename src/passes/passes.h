/* passes.h - what turns a graph into another graph, and the finished graph into the order of a step.
 *
 * In this order: tdi_fold, before gradients are emitted; tdi_gradients; tdi_precision; tdi_fuse; tdi_rematerialize;
 * tdi_schedule_make. Each leaves a graph that tdi_graph_verify accepts. Failures are the graph's error, and returned.
 * `remarks` take one line for each thing a pass has done, for explain; NULL: nobody wants them. */
#ifndef TDI_PASSES_PASSES_H
#define TDI_PASSES_PASSES_H

#include "base/text.h"
#include "comm/communicator.h"
#include "device/kernel.h"
#include "ops/ops.h"

/* Lets convolutions and pools do the padding before them, and batch normalizations the addition and rectifier after
 * them. Their gradients are then the folded op's. */
td_status tdi_fold(tdi_graph *graph, tdi_text *remarks);

/* Emits the gradients of a scalar `loss`, one per shard, for the nodes `of`; result[i] is NULL where the loss does not
 * depend on of[i]. TD_UNSUPPORTED naming the op when one in between has no gradient. */
td_status tdi_gradients(tdi_graph *graph, tdi_node *loss, int count, tdi_node *const *of, tdi_node **result);

/* Makes values bfloat16 where their layer's policy wishes it and one of the device's `kernels` (NULL-terminated)
 * computes so; casts stand between them and float32. */
td_status tdi_precision(tdi_graph *graph, const tdi_kernel *const *kernels);

/* Puts ops that another op can do besides, and whose value nothing else reads, into that op (fuse.c lists them). */
td_status tdi_fuse(tdi_graph *graph, tdi_text *remarks);
td_status tdi_fuse_losses(tdi_graph *graph, tdi_text *remarks); /* the last part of tdi_fuse */

/* Lets the nodes behind the first `forward_nodes` read copies of what is cheap to compute anew, computed right before
 * they are first read, so that the originals need not be kept. */
td_status tdi_rematerialize(tdi_graph *graph, int forward_nodes, tdi_text *remarks);

/* Gives a node a home outside the activations, by way of a copy where the node has one already or is a view. Returns
 * the node at home; NULL for NULL. */
tdi_node *tdi_place_output(tdi_graph *graph, tdi_node *node, tdi_home home, tdi_variable *variable, int slot);

/* ---- schedule ---- */

typedef enum tdi_step_kind { TDI_STEP_KERNEL, TDI_STEP_BEGIN, TDI_STEP_FINISH } tdi_step_kind;

typedef struct tdi_scheduled {
    tdi_step_kind kind;
    tdi_node *node; /* KERNEL */
    int collective; /* BEGIN, FINISH */
} tdi_scheduled;

typedef tdi_vec(tdi_scheduled) tdi_schedule;

/* The order of one step: live nodes only, in creation order. Nodes of the update phase come as soon as their variables'
 * gradients are ready and nothing reads the old weights any more. With several shards that happens bucket by bucket: a
 * bucket's reduction begins when it is ready, and is finished when the next one is, so that backpropagation goes on in
 * between. Updates that need norms of gradients come after all of backpropagation.
 *
 * Where graph->effects_last is set, buckets are finished when backpropagation is, all of them then under way, and
 * nothing that outlives the step is written before the last FINISH: no weight, slot,
 * moving statistic, state or metric. Accumulators of gradients whose norm is clipped are the exception: the norm is
 * taken of what they hold, so they are written before it is gathered.
 *
 * What the collectives move is appended to `collectives`, by their numbers; the caller frees both lists. The graph must
 * not change any more: graph->def_use is made of it. */
td_status tdi_schedule_make(tdi_graph *graph, tdi_schedule *schedule, tdi_collectives *collectives, tdi_error *error);

/* Bytes of the exchange arena that a node's value takes, of all shards together; 0: it does not live there. The nodes'
 * values lie one behind the other in the graph's order. */
int64_t tdi_exchange_bytes(const tdi_node *node);

#endif
