/* reshape.c - the same elements under other extents: a view, never computed by a plan. */
#include "ops/op_helpers.h"

static td_status reshape_infer(tdi_node *node, tdi_error *error)
{
    const td_shape *x = &node->in[0]->shape, *shape = &((const tdi_shape_attrs *)node->attrs)->shape;
    if (tdi_shape_has_batch(x) != tdi_shape_has_batch(shape) || tdi_shape_per_row(x) != tdi_shape_per_row(shape))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s to %s: the number of elements must stay, and the batch stays in front", TDI_TEXT(x),
                        TDI_TEXT(shape));
    node->shape = *shape;
    node->dtype = node->in[0]->dtype;
    return TD_OK;
}

static void reshape_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_reshape(graph, dy, &node->in[0]->shape);
}

static void reshape_reference(const tdi_call *call)
{
    size_t bytes = (size_t)tdi_shape_elements(&call->out.shape) * td_dtype_size(call->out.dtype);
    memmove(call->out.data, call->in[0].data, bytes);
}

static tdi_split reshape_reads(const tdi_node *node, int i, tdi_split split)
{
    const td_shape *x = &node->in[i]->shape, *out = &node->shape;
    if (split == TDI_ROWS && x->rank && out->rank && x->dim[0] == out->dim[0])
        return TDI_ROWS;
    if (split == TDI_COLUMNS && x->rank && tdi_last_extent(x) == tdi_last_extent(out))
        return TDI_COLUMNS;
    return split == TDI_FLAT ? TDI_FLAT : TDI_WHOLE;
}

const tdi_op tdi_op_reshape = {.name = "reshape",
                               .min_in = 1,
                               .max_in = 1,
                               .attrs_size = sizeof(tdi_shape_attrs),
                               .bfloat16 = 1,
                               .infer = reshape_infer,
                               .gradient = reshape_gradient,
                               .reference = reshape_reference,
                               .flops = tdi_flops_none,
                               .reads = reshape_reads,
                               .view = true};

tdi_node *tdi_reshape(tdi_graph *graph, tdi_node *x, const td_shape *shape)
{
    if (x && tdi_shape_equal(&x->shape, shape))
        return x;
    return tdi_node_create(graph, &tdi_op_reshape, &(tdi_shape_attrs){*shape}, 1, &x);
}
