/* reduce.c - sum, mean or maximum over axes, and summing down to a shape.
 *
 * A mean over the batch is refused: the batch is cut into shards, and only batch_mean knows the global count. */
#include "ops/op_helpers.h"

static const char *const reduce_names[] = {"sum", "mean", "max"};

static bool reduced(const tdi_reduce_attrs *attrs, int axis)
{
    return attrs->axes >> axis & 1u;
}

/* The result's shape with every axis kept. */
static td_shape kept_shape(const td_shape *x, const tdi_reduce_attrs *attrs)
{
    td_shape shape = *x;
    for (int i = 0; i < x->rank; i++)
        if (reduced(attrs, i))
            shape.dim[i] = 1;
    return shape;
}

static td_shape dropped_shape(const td_shape *x, const tdi_reduce_attrs *attrs)
{
    td_shape shape = {0};
    for (int i = 0; i < x->rank; i++)
        if (!reduced(attrs, i))
            shape.dim[shape.rank++] = x->dim[i];
    return shape;
}

static td_status reduce_infer(tdi_node *node, tdi_error *error)
{
    const tdi_reduce_attrs *attrs = node->attrs;
    const td_shape *x = &node->in[0]->shape;
    TDI_TRY(tdi_want_floats(node, error));
    if (attrs->kind < TDI_SUM || attrs->kind > TDI_MAX)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "there is no reduction number %d", attrs->kind);
    if (attrs->axes >> x->rank)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: axes with bits %#x, but %s has only %d axes",
                        reduce_names[attrs->kind], attrs->axes, TDI_TEXT(x), x->rank);
    if (attrs->kind == TDI_MEAN && tdi_shape_has_batch(x) && reduced(attrs, 0))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "mean of %s over the batch: a shard does not know the global count; use batch_mean",
                        TDI_TEXT(x));
    node->shape = attrs->keepdims ? kept_shape(x, attrs) : dropped_shape(x, attrs);
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

/* How many elements are reduced to one; the batch must not be among the reduced axes. */
static int64_t reduced_count(const td_shape *x, const tdi_reduce_attrs *attrs)
{
    int64_t count = 1;
    for (int i = 0; i < x->rank; i++)
        if (reduced(attrs, i))
            count *= x->dim[i];
    return count;
}

/* The elements that reach a maximum share its gradient equally, as in JAX. */
static tdi_node *max_gradient(tdi_graph *graph, const tdi_node *node, tdi_node *dy, tdi_node *y)
{
    const tdi_reduce_attrs *attrs = node->attrs;
    tdi_node *below = tdi_binary(graph, TDI_SUBTRACT, node->in[0], y);
    tdi_node *reaches = tdi_affine(graph, tdi_unary(graph, below, TDI_UNARY_SIGN), 1.0f, 1.0f);
    tdi_node *ties = tdi_reduce(graph, TDI_SUM, reaches, attrs->axes, true);
    return tdi_binary(graph, TDI_MULTIPLY, reaches, tdi_binary(graph, TDI_DIVIDE, dy, ties));
}

static void reduce_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    const tdi_reduce_attrs *attrs = node->attrs;
    const td_shape *x = &node->in[0]->shape;
    td_shape kept = kept_shape(x, attrs);
    tdi_node *wide = tdi_reshape(graph, dy, &kept);
    if (attrs->kind == TDI_MAX) {
        dx[0] = max_gradient(graph, node, wide, tdi_reshape(graph, node, &kept));
        return;
    }
    if (attrs->kind == TDI_MEAN)
        wide = tdi_affine(graph, wide, 1.0f / (float)reduced_count(x, attrs), 0.0f);
    dx[0] = tdi_broadcast(graph, wide, x);
}

/* The kept axes (with `of`, the reduced ones) as a box, and its strides in x. */
static td_shape box_of(const td_shape *x, const tdi_reduce_attrs *attrs, bool of, int64_t stride[TD_MAX_RANK])
{
    td_shape box = {0};
    int64_t own[TD_MAX_RANK];
    tdi_strides(x, own);
    for (int i = 0; i < x->rank; i++)
        if (reduced(attrs, i) == of) {
            stride[box.rank] = own[i];
            box.dim[box.rank++] = x->dim[i];
        }
    return box;
}

static double reduce_box(int kind, const float *x, const td_shape *box, const int64_t *stride)
{
    int64_t count = tdi_shape_elements(box);
    double result = kind == TDI_MAX ? (double)-INFINITY : 0;
    for (int64_t i = 0; i < count; i++) {
        double value = (double)x[tdi_offset_of(box, stride, i)];
        if (kind != TDI_MAX)
            result += value;
        else if (value > result || isnan(value))
            result = value;
    }
    return kind == TDI_MEAN ? result / (double)count : result;
}

static void reduce_reference(const tdi_call *call)
{
    const tdi_reduce_attrs *attrs = call->attrs;
    const td_shape *x = &call->in[0].shape;
    const float *data = call->in[0].data;
    float *out = call->out.data;
    int64_t outer_stride[TD_MAX_RANK], inner_stride[TD_MAX_RANK], count = tdi_shape_elements(&call->out.shape);
    td_shape outer = box_of(x, attrs, false, outer_stride), inner = box_of(x, attrs, true, inner_stride);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)reduce_box(attrs->kind, data + tdi_offset_of(&outer, outer_stride, i), &inner, inner_stride);
}

static tdi_split reduce_reads(const tdi_node *node, int i, tdi_split split)
{
    const tdi_reduce_attrs *attrs = node->attrs;
    const td_shape *x = &node->in[i]->shape;
    if (split == TDI_ROWS && x->rank && !reduced(attrs, 0))
        return TDI_ROWS;
    return split == TDI_COLUMNS && x->rank && !reduced(attrs, x->rank - 1) ? TDI_COLUMNS : TDI_WHOLE;
}

static void reduce_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_reduce_attrs *attrs = node->attrs;
    int used = snprintf(text, size, "%s over", reduce_names[attrs->kind]);
    for (int i = 0; i < node->in[0]->shape.rank; i++)
        if (reduced(attrs, i) && used >= 0 && (size_t)used < size)
            used += snprintf(text + used, size - (size_t)used, " %d", i);
}

const tdi_op tdi_op_reduce = {.name = "reduce",
                              .min_in = 1,
                              .max_in = 1,
                              .attrs_size = sizeof(tdi_reduce_attrs),
                              .bfloat16 = 1,
                              .infer = reduce_infer,
                              .gradient = reduce_gradient,
                              .reference = reduce_reference,
                              .flops = tdi_flops_per_input,
                              .reads = reduce_reads,
                              .describe = reduce_describe,
                              .share = TDI_SHARE_SUMS};

bool tdi_find_reduce_extents(const tdi_call *call, tdi_reduce_extents *extents)
{
    const tdi_reduce_attrs *attrs = call->attrs;
    const td_shape *x = &call->in[0].shape;
    enum { OUTER, REDUCED, INNER } stage = OUTER;
    *extents = (tdi_reduce_extents){1, 1, 1};
    int64_t *const extent[] = {&extents->outer, &extents->reduced, &extents->inner};
    for (int i = 0; i < x->rank; i++) {
        bool reduced = attrs->axes >> i & 1u;
        if (x->dim[i] == 1)
            continue;
        if (reduced && stage == INNER)
            return false;
        stage = reduced ? REDUCED : stage == OUTER ? OUTER : INNER;
        *extent[stage] *= x->dim[i];
    }
    return true;
}

tdi_node *tdi_reduce(tdi_graph *graph, tdi_reduce_kind kind, tdi_node *x, unsigned axes, bool keepdims)
{
    return tdi_node_create(graph, &tdi_op_reduce, &(tdi_reduce_attrs){(int)kind, axes, keepdims}, 1, &x);
}

tdi_node *tdi_sum_to(tdi_graph *graph, tdi_node *x, const td_shape *shape)
{
    if (!x || tdi_shape_equal(&x->shape, shape))
        return x;
    int extra = x->shape.rank - shape->rank;
    unsigned axes = 0, leading = 0;
    for (int i = 0; i < x->shape.rank; i++) {
        if (i < extra)
            leading |= 1u << i;
        else if (shape->dim[i - extra] == 1 && x->shape.dim[i] != 1)
            axes |= 1u << i;
    }
    if (!axes)
        return tdi_reduce(graph, TDI_SUM, x, leading, false);
    x = tdi_reduce(graph, TDI_SUM, x, leading | axes, true);
    return tdi_reshape(graph, x, shape);
}
