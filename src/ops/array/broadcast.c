/* broadcast.c - a value repeated to a larger shape, as NumPy broadcasts. */
#include "ops/op_helpers.h"

static td_status broadcast_infer(tdi_node *node, tdi_error *error)
{
    const td_shape *x = &node->in[0]->shape, *shape = &((const tdi_shape_attrs *)node->attrs)->shape;
    td_shape together;
    if (!tdi_shape_broadcast(x, shape, &together) || !tdi_shape_equal(&together, shape))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s to %s: aligned at the last axis, extents must be equal, or 1 in the first", TDI_TEXT(x),
                        TDI_TEXT(shape));
    node->shape = *shape;
    node->dtype = tdi_float_dtype(node);
    return tdi_want_floats(node, error);
}

static void broadcast_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_sum_to(graph, dy, &node->in[0]->shape);
}

static void broadcast_reference(const tdi_call *call)
{
    const td_shape *shape = &call->out.shape;
    int64_t from[TD_MAX_RANK], to[TD_MAX_RANK];
    tdi_broadcast_strides(&call->in[0].shape, shape, from);
    tdi_strides(shape, to);
    tdi_copy_box(shape, td_dtype_size(call->out.dtype), call->out.data, to, call->in[0].data, from);
}

const tdi_op tdi_op_broadcast = {.name = "broadcast",
                                 .min_in = 1,
                                 .max_in = 1,
                                 .attrs_size = sizeof(tdi_shape_attrs),
                                 .bfloat16 = 1,
                                 .infer = broadcast_infer,
                                 .gradient = broadcast_gradient,
                                 .reference = broadcast_reference,
                                 .flops = tdi_flops_none,
                                 .reads = tdi_reads_broadcast};

tdi_node *tdi_broadcast(tdi_graph *graph, tdi_node *x, const td_shape *shape)
{
    if (x && tdi_shape_equal(&x->shape, shape))
        return x;
    return tdi_node_create(graph, &tdi_op_broadcast, &(tdi_shape_attrs){*shape}, 1, &x);
}
