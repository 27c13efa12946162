/* concat.c - values joined along an axis. */
#include "ops/op_helpers.h"

static int axis_of(const tdi_node *node)
{
    return ((const tdi_concat_attrs *)node->attrs)->axis;
}

static bool agree(const td_shape *a, const td_shape *b, int axis)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = i == axis || a->dim[i] == b->dim[i];
    return same;
}

static td_status concat_infer(tdi_node *node, tdi_error *error)
{
    int axis = axis_of(node);
    TDI_TRY(tdi_want_axis(node, 0, axis, error));
    const td_shape *first = &node->in[0]->shape;
    node->shape = *first;
    node->dtype = node->in[0]->dtype;
    for (int i = 1; i < node->n_in; i++) {
        const td_shape *next = &node->in[i]->shape;
        TDI_TRY(tdi_want_dtype(node, i, node->dtype, error));
        if (!agree(first, next, axis))
            return tdi_fail(error, TD_INVALID_ARGUMENT, "%s and %s along axis %d: their other extents must agree",
                            TDI_TEXT(first), TDI_TEXT(next), axis);
        node->shape.dim[axis] += next->dim[axis];
    }
    return TD_OK;
}

static void concat_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    int64_t begin = 0;
    for (int i = 0; i < node->n_in; i++) {
        int64_t size = node->in[i]->shape.dim[axis_of(node)];
        dx[i] = tdi_slice(graph, dy, axis_of(node), begin, size);
        begin += size;
    }
}

static void concat_reference(const tdi_call *call)
{
    int axis = ((const tdi_concat_attrs *)call->attrs)->axis;
    int64_t to[TD_MAX_RANK], from[TD_MAX_RANK], begin = 0, size = (int64_t)td_dtype_size(call->out.dtype);
    tdi_strides(&call->out.shape, to);
    for (int i = 0; i < call->n_in; i++) {
        const td_shape *shape = &call->in[i].shape;
        tdi_strides(shape, from);
        tdi_copy_box(shape, (size_t)size, (char *)call->out.data + begin * to[axis] * size, to, call->in[i].data, from);
        begin += shape->dim[axis];
    }
}

static tdi_split concat_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)i;
    if (split == TDI_ROWS && axis_of(node) != 0)
        return TDI_ROWS;
    return split == TDI_COLUMNS && axis_of(node) != node->shape.rank - 1 ? TDI_COLUMNS : TDI_WHOLE;
}

static void concat_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "axis %d", axis_of(node));
}

const tdi_op tdi_op_concat = {.name = "concat",
                              .min_in = 1,
                              .max_in = -1,
                              .attrs_size = sizeof(tdi_concat_attrs),
                              .bfloat16 = ~0u,
                              .infer = concat_infer,
                              .gradient = concat_gradient,
                              .reference = concat_reference,
                              .flops = tdi_flops_none,
                              .reads = concat_reads,
                              .describe = concat_describe,
                              .cheap = true};

tdi_node *tdi_concat(tdi_graph *graph, int count, tdi_node *const *in, int axis)
{
    for (int i = 0; i < count; i++)
        if (!in[i])
            return NULL;
    return tdi_node_create(graph, &tdi_op_concat, &(tdi_concat_attrs){axis}, count, in);
}
