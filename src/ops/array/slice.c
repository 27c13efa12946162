/* slice.c - a range of an axis. */
#include "ops/op_helpers.h"

static td_status slice_infer(tdi_node *node, tdi_error *error)
{
    const tdi_slice_attrs *attrs = node->attrs;
    TDI_TRY(tdi_want_axis(node, 0, attrs->axis, error));
    const td_shape *x = &node->in[0]->shape;
    int64_t extent = x->dim[attrs->axis];
    if (attrs->begin < 0 || attrs->size < 1 || attrs->begin > extent || attrs->size > extent - attrs->begin)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%lld elements from %lld on along axis %d of %s: it has %lld",
                        (long long)attrs->size, (long long)attrs->begin, attrs->axis, TDI_TEXT(x), (long long)extent);
    node->shape = *x;
    node->shape.dim[attrs->axis] = attrs->size;
    node->dtype = node->in[0]->dtype;
    return TD_OK;
}

static void slice_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    const tdi_slice_attrs *attrs = node->attrs;
    int64_t after = node->in[0]->shape.dim[attrs->axis] - attrs->begin - attrs->size;
    dx[0] = tdi_pad(graph, dy, attrs->axis, attrs->begin, after);
}

static void slice_reference(const tdi_call *call)
{
    const tdi_slice_attrs *attrs = call->attrs;
    int64_t from[TD_MAX_RANK], to[TD_MAX_RANK], size = (int64_t)td_dtype_size(call->out.dtype);
    tdi_strides(&call->in[0].shape, from);
    tdi_strides(&call->out.shape, to);
    const char *first = (const char *)call->in[0].data + attrs->begin * from[attrs->axis] * size;
    tdi_copy_box(&call->out.shape, (size_t)size, call->out.data, to, first, from);
}

static tdi_split slice_reads(const tdi_node *node, int i, tdi_split split)
{
    int axis = ((const tdi_slice_attrs *)node->attrs)->axis;
    (void)i;
    if (split == TDI_ROWS && axis != 0)
        return TDI_ROWS;
    return split == TDI_COLUMNS && axis != node->shape.rank - 1 ? TDI_COLUMNS : TDI_WHOLE;
}

static void slice_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_slice_attrs *attrs = node->attrs;
    snprintf(text, size, "axis %d, %lld from %lld", attrs->axis, (long long)attrs->size, (long long)attrs->begin);
}

const tdi_op tdi_op_slice = {.name = "slice",
                             .min_in = 1,
                             .max_in = 1,
                             .attrs_size = sizeof(tdi_slice_attrs),
                             .bfloat16 = 1,
                             .infer = slice_infer,
                             .gradient = slice_gradient,
                             .reference = slice_reference,
                             .flops = tdi_flops_none,
                             .reads = slice_reads,
                             .moves = true,
                             .describe = slice_describe};

tdi_node *tdi_slice(tdi_graph *graph, tdi_node *x, int axis, int64_t begin, int64_t size)
{
    return tdi_node_create(graph, &tdi_op_slice, &(tdi_slice_attrs){axis, begin, size}, 1, &x);
}
