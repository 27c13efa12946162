/* pad.c - zeros in front of and behind an axis. */
#include "ops/op_helpers.h"

static td_status pad_infer(tdi_node *node, tdi_error *error)
{
    const tdi_pad_attrs *attrs = node->attrs;
    TDI_TRY(tdi_want_axis(node, 0, attrs->axis, error));
    if (attrs->before < 0 || attrs->after < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%lld before and %lld after axis %d of %s: neither may be negative",
                        (long long)attrs->before, (long long)attrs->after, attrs->axis, TDI_TEXT(&node->in[0]->shape));
    node->shape = node->in[0]->shape;
    node->shape.dim[attrs->axis] += attrs->before + attrs->after;
    node->dtype = node->in[0]->dtype;
    return TD_OK;
}

static void pad_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    const tdi_pad_attrs *attrs = node->attrs;
    dx[0] = tdi_slice(graph, dy, attrs->axis, attrs->before, node->in[0]->shape.dim[attrs->axis]);
}

static void pad_reference(const tdi_call *call)
{
    const tdi_pad_attrs *attrs = call->attrs;
    int64_t from[TD_MAX_RANK], to[TD_MAX_RANK], size = (int64_t)td_dtype_size(call->out.dtype);
    tdi_strides(&call->in[0].shape, from);
    tdi_strides(&call->out.shape, to);
    memset(call->out.data, 0, (size_t)(tdi_shape_elements(&call->out.shape) * size));
    char *first = (char *)call->out.data + attrs->before * to[attrs->axis] * size;
    tdi_copy_box(&call->in[0].shape, (size_t)size, first, to, call->in[0].data, from);
}

static tdi_split pad_reads(const tdi_node *node, int i, tdi_split split)
{
    int axis = ((const tdi_pad_attrs *)node->attrs)->axis;
    (void)i;
    if (split == TDI_ROWS && axis != 0)
        return TDI_ROWS;
    return split == TDI_COLUMNS && axis != node->shape.rank - 1 ? TDI_COLUMNS : TDI_WHOLE;
}

static void pad_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_pad_attrs *attrs = node->attrs;
    snprintf(text, size, "axis %d, %lld before, %lld after", attrs->axis, (long long)attrs->before,
             (long long)attrs->after);
}

const tdi_op tdi_op_pad = {.name = "pad",
                           .min_in = 1,
                           .max_in = 1,
                           .attrs_size = sizeof(tdi_pad_attrs),
                           .bfloat16 = 1,
                           .infer = pad_infer,
                           .gradient = pad_gradient,
                           .reference = pad_reference,
                           .flops = tdi_flops_none,
                           .reads = pad_reads,
                           .describe = pad_describe,
                           .cheap = true};

tdi_node *tdi_pad(tdi_graph *graph, tdi_node *x, int axis, int64_t before, int64_t after)
{
    return tdi_node_create(graph, &tdi_op_pad, &(tdi_pad_attrs){axis, before, after}, 1, &x);
}
