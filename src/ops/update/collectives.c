/* collectives.c - what shards exchange: all_gather, and the reduction of gradients: reduce_scatter where the shards
 * share their memory, all_reduce where other processes have some of them. */
#include "ops/op_helpers.h"

/* ---- all_gather ---- */

static td_status all_gather_infer(tdi_node *node, tdi_error *error)
{
    const td_shape *x = &node->in[0]->shape;
    if (tdi_shape_has_batch(x) || x->rank == TD_MAX_RANK)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "of %s: only values without a batch, of at most %d axes, are gathered", TDI_TEXT(x),
                        TD_MAX_RANK - 1);
    node->shape = (td_shape){.rank = x->rank + 1, .dim = {node->graph->shards}};
    memcpy(node->shape.dim + 1, x->dim, (size_t)x->rank * sizeof *x->dim);
    node->dtype = node->in[0]->dtype;
    return TD_OK;
}

/* Shards that share memory have written their values in place already. */
static void all_gather_reference(const tdi_call *call)
{
    size_t bytes = (size_t)tdi_shape_elements(&call->in[0].shape) * td_dtype_size(call->out.dtype);
    char *slot = (char *)call->out.data + (size_t)call->shard->index * bytes;
    if (slot != call->in[0].data)
        memcpy(slot, call->in[0].data, bytes);
}

const tdi_op tdi_op_all_gather = {.name = "all_gather",
                                  .min_in = 1,
                                  .max_in = 1,
                                  .infer = all_gather_infer,
                                  .no_gradient = "batch_norm's gradient goes through the statistics itself",
                                  .reference = all_gather_reference,
                                  .flops = tdi_flops_none,
                                  .gathers = true};

tdi_node *tdi_all_gather(tdi_graph *graph, tdi_node *x)
{
    if (x && (x->home != TDI_HOME_ACTIVATIONS || x->op->view))
        x = tdi_identity(graph, x);
    tdi_node *node = tdi_node_create(graph, &tdi_op_all_gather, NULL, 1, &x);
    if (node)
        node->home = x->home = TDI_HOME_EXCHANGE;
    return node;
}

/* ---- reduce_scatter ---- */

static td_status reduce_scatter_infer(tdi_node *node, tdi_error *error)
{
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    return tdi_want_floats(node, error);
}

float tdi_tree_sum(float *const *values, int count, int64_t offset)
{
    if (count == 1)
        return values[0][offset];
    int half = tdi_tree_half(count);
    return tdi_tree_sum(values, half, offset) + tdi_tree_sum(values + half, count - half, offset);
}

static void reduce_scatter_reference(const tdi_call *call)
{
    const tdi_shard *shard = call->shard;
    float *out = call->out.data;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = runs.first + r * runs.stride, end = i + runs.length; i < end; i++)
            out[i] = tdi_tree_sum(shard->gradients, shard->shards, call->offset + i);
}

static double reduce_scatter_flops(const tdi_call *call)
{
    int shards = ((const tdi_reduce_scatter_attrs *)call->attrs)->shards;
    return (double)(shards - 1) * (double)tdi_shape_elements(&call->out.shape);
}

const tdi_op tdi_op_reduce_scatter = {.reduces = true,
                                      .name = "reduce_scatter",
                                      .min_in = 1,
                                      .max_in = 1,
                                      .attrs_size = sizeof(tdi_reduce_scatter_attrs),
                                      .infer = reduce_scatter_infer,
                                      .no_gradient = "it is part of an update",
                                      .reference = reduce_scatter_reference,
                                      .flops = reduce_scatter_flops,
                                      .reads = tdi_reads_same};

tdi_node *tdi_reduce_scatter(tdi_graph *graph, tdi_node *gradient, tdi_variable *variable)
{
    tdi_reduce_scatter_attrs attrs = {graph->shards};
    return tdi_reduced_gradient(tdi_node_create(graph, &tdi_op_reduce_scatter, &attrs, 1, &gradient), variable);
}

/* ---- all_reduce ---- */

/* The REDUCE of the variable's bucket has written the sum. */
static void all_reduce_reference(const tdi_call *call)
{
    (void)call;
}

const tdi_op tdi_op_all_reduce = {.reduces = true,
                                  .name = "all_reduce",
                                  .min_in = 1,
                                  .max_in = 1,
                                  .infer = reduce_scatter_infer,
                                  .no_gradient = "it is part of an update",
                                  .reference = all_reduce_reference,
                                  .flops = tdi_flops_none,
                                  .reads = tdi_reads_same};

tdi_node *tdi_all_reduce(tdi_graph *graph, tdi_node *gradient, tdi_variable *variable)
{
    return tdi_reduced_gradient(tdi_node_create(graph, &tdi_op_all_reduce, NULL, 1, &gradient), variable);
}
