/* transpose.c - axes in another order; the batch stays in front. */
#include "ops/common.h"

static td_status transpose_infer(tdi_node *node, tdi_error *error)
{
    const int *axes = ((const tdi_transpose_attrs *)node->attrs)->axes;
    const td_shape *x = &node->in[0]->shape;
    unsigned seen = 0;
    node->shape = *x;
    for (int i = 0; i < x->rank; i++) {
        if (axes[i] < 0 || axes[i] >= x->rank || (seen >> axes[i] & 1u))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "axis %d at place %d: the axes of %s must each stand there once", axes[i], i, TDI_TEXT(x));
        seen |= 1u << axes[i];
        node->shape.dim[i] = x->dim[axes[i]];
    }
    if (tdi_shape_has_batch(x) && axes[0] != 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "of %s: the batch must stay in front, axis %d cannot take its place", TDI_TEXT(x), axes[0]);
    node->dtype = node->in[0]->dtype;
    return TD_OK;
}

static void transpose_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    const int *axes = ((const tdi_transpose_attrs *)node->attrs)->axes;
    int inverse[TD_MAX_RANK] = {0};
    for (int i = 0; i < node->shape.rank; i++)
        inverse[axes[i]] = i;
    dx[0] = tdi_transpose(graph, dy, inverse);
}

static void transpose_reference(const tdi_call *call)
{
    const int *axes = ((const tdi_transpose_attrs *)call->attrs)->axes;
    int64_t own[TD_MAX_RANK], from[TD_MAX_RANK], to[TD_MAX_RANK];
    tdi_strides(&call->in[0].shape, own);
    tdi_strides(&call->out.shape, to);
    for (int i = 0; i < call->out.shape.rank; i++)
        from[i] = own[axes[i]];
    tdi_copy_box(&call->out.shape, td_dtype_size(call->out.dtype), call->out.data, to, call->in[0].data, from);
}

static tdi_split transpose_reads(const tdi_node *node, int i, tdi_split split)
{
    const int *axes = ((const tdi_transpose_attrs *)node->attrs)->axes;
    int rank = node->in[i]->shape.rank;
    if (!rank || (split != TDI_ROWS && split != TDI_COLUMNS))
        return TDI_WHOLE;
    int axis = axes[split == TDI_ROWS ? 0 : rank - 1];
    if (axis == (split == TDI_ROWS ? 0 : rank - 1))
        return split;
    return axis == 0 ? TDI_ROWS : axis == rank - 1 ? TDI_COLUMNS : TDI_WHOLE;
}

static void transpose_describe(const tdi_node *node, char *text, size_t size)
{
    const int *axes = ((const tdi_transpose_attrs *)node->attrs)->axes;
    int used = snprintf(text, size, "axes");
    for (int i = 0; i < node->shape.rank && used >= 0 && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, " %d", axes[i]);
}

const tdi_op tdi_op_transpose = {.name = "transpose",
                                 .min_in = 1,
                                 .max_in = 1,
                                 .attrs_size = sizeof(tdi_transpose_attrs),
                                 .bfloat16 = 1,
                                 .infer = transpose_infer,
                                 .gradient = transpose_gradient,
                                 .reference = transpose_reference,
                                 .flops = tdi_flops_none,
                                 .reads = transpose_reads,
                                 .describe = transpose_describe};

tdi_node *tdi_transpose(tdi_graph *graph, tdi_node *x, const int *axes)
{
    tdi_transpose_attrs attrs = {0};
    if (!x)
        return NULL;
    memcpy(attrs.axes, axes, (size_t)x->shape.rank * sizeof *axes);
    return tdi_node_create(graph, &tdi_op_transpose, &attrs, 1, &x);
}
