/* conv2d.c - two-dimensional convolution (cross-correlation, as everywhere in the field) and its two gradients. */
#include "ops/op_helpers.h"

/* A call with resolved shapes: x [n, h, w, c], filter [kh, kw, c / groups, f], y [n, oh, ow, f]. */
typedef struct geometry {
    const tdi_conv2d_attrs *attrs;
    const td_shape *x, *filter, *y;
    int64_t before_h, before_w;
    int64_t group_in, group_out; /* channels of a group */
} geometry;

tdi_window tdi_conv2d_window_h(const tdi_conv2d_attrs *attrs, const td_shape *x, const td_shape *filter)
{
    return tdi_window_around(x->dim[1], filter->dim[0], attrs->stride_h, attrs->dilation_h, attrs->padding,
                             attrs->sides.top, attrs->sides.bottom);
}

tdi_window tdi_conv2d_window_w(const tdi_conv2d_attrs *attrs, const td_shape *x, const td_shape *filter)
{
    return tdi_window_around(x->dim[2], filter->dim[1], attrs->stride_w, attrs->dilation_w, attrs->padding,
                             attrs->sides.left, attrs->sides.right);
}

static geometry geometry_of(const tdi_call *call, const td_shape *x, const td_shape *filter, const td_shape *y)
{
    const tdi_conv2d_attrs *attrs = call->attrs;
    return (geometry){.attrs = attrs,
                      .x = x,
                      .filter = filter,
                      .y = y,
                      .before_h = tdi_conv2d_window_h(attrs, x, filter).before,
                      .before_w = tdi_conv2d_window_w(attrs, x, filter).before,
                      .group_in = filter->dim[2],
                      .group_out = y->dim[3] / attrs->groups};
}

static int64_t at(const td_shape *shape, int64_t i, int64_t j, int64_t k, int64_t l)
{
    return ((i * shape->dim[1] + j) * shape->dim[2] + k) * shape->dim[3] + l;
}

/* ---- shape rules ---- */

static td_status check_attrs(const tdi_conv2d_attrs *attrs, tdi_error *error)
{
    if (attrs->stride_h < 1 || attrs->stride_w < 1 || attrs->dilation_h < 1 || attrs->dilation_w < 1 ||
        attrs->groups < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "strides %dx%d, dilation %dx%d, %d groups: all must be at least 1",
                        attrs->stride_h, attrs->stride_w, attrs->dilation_h, attrs->dilation_w, attrs->groups);
    if (attrs->activation >= 0 && attrs->activation < TD_ACTIVATION_COUNT &&
        tdi_unary_grad_from_output(attrs->activation))
        return TD_OK;
    return tdi_fail(error, TD_INTERNAL, "activation %s cannot be part of another op",
                    tdi_unary_name(attrs->activation));
}

static td_status check_rank(const td_shape *shape, const char *what, tdi_error *error)
{
    if (shape->rank == 4)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s is %s, which has %d axes; 4 are needed", what, TDI_TEXT(shape),
                    shape->rank);
}

static td_status check_channels(const tdi_conv2d_attrs *attrs, const td_shape *x, const td_shape *filter,
                                tdi_error *error)
{
    int64_t channels = x->dim[3], wanted = filter->dim[2] * attrs->groups, filters = filter->dim[3];
    if (channels != wanted)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s has %lld channels, but the filter %s in %d groups reads %lld",
                        TDI_TEXT(x), (long long)channels, TDI_TEXT(filter), attrs->groups, (long long)wanted);
    if (filters % attrs->groups)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "filter %s: its %lld filters cannot be divided into %d groups",
                        TDI_TEXT(filter), (long long)filters, attrs->groups);
    return TD_OK;
}

/* The result's shape for x and filter. */
static td_status result_shape(const tdi_conv2d_attrs *attrs, const td_shape *x, const td_shape *filter, td_shape *y,
                              tdi_error *error)
{
    TDI_TRY(check_attrs(attrs, error));
    TDI_TRY(check_rank(x, "x", error));
    TDI_TRY(check_rank(filter, "the filter", error));
    TDI_TRY(check_channels(attrs, x, filter, error));
    int64_t out_h = tdi_conv2d_window_h(attrs, x, filter).out, out_w = tdi_conv2d_window_w(attrs, x, filter).out;
    if (out_h < 1 || out_w < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "the filter %s with dilation %dx%d is larger than %s; use \"same\" padding or a smaller kernel",
                        TDI_TEXT(filter), attrs->dilation_h, attrs->dilation_w, TDI_TEXT(x));
    *y = (td_shape){.rank = 4, .dim = {x->dim[0], out_h, out_w, filter->dim[3]}};
    return TD_OK;
}

static td_status conv2d_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    node->dtype = tdi_float_dtype(node);
    TDI_TRY(result_shape(node->attrs, &node->in[0]->shape, &node->in[1]->shape, &node->shape, error));
    return node->n_in > 2 && node->in[2] ? tdi_want_vector(node, 2, node->shape.dim[3], error) : TD_OK;
}

static td_status check_dy(const td_shape *expected, const td_shape *dy, tdi_error *error)
{
    if (tdi_shape_equal(expected, dy))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "the gradient is %s, but the convolution's result is %s", TDI_TEXT(dy),
                    TDI_TEXT(expected));
}

static td_status grad_input_infer(tdi_node *node, tdi_error *error)
{
    const tdi_conv2d_attrs *attrs = node->attrs;
    td_shape y;
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(result_shape(attrs, &attrs->shape, &node->in[1]->shape, &y, error));
    node->shape = attrs->shape;
    node->dtype = tdi_float_dtype(node);
    return check_dy(&y, &node->in[0]->shape, error);
}

static td_status grad_filter_infer(tdi_node *node, tdi_error *error)
{
    const tdi_conv2d_attrs *attrs = node->attrs;
    td_shape y;
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(result_shape(attrs, &node->in[0]->shape, &attrs->shape, &y, error));
    node->shape = attrs->shape;
    node->dtype = TD_FLOAT32;
    return check_dy(&y, &node->in[1]->shape, error);
}

/* ---- gradients ---- */

static tdi_conv2d_attrs with_shape(const tdi_node *node, const td_shape *shape)
{
    tdi_conv2d_attrs attrs = *(const tdi_conv2d_attrs *)node->attrs;
    attrs.shape = *shape;
    return attrs;
}

static void conv2d_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    tdi_conv2d_attrs of_x = with_shape(node, &node->in[0]->shape), of_filter = with_shape(node, &node->in[1]->shape);
    dx[0] = tdi_conv2d_grad_input(graph, dy, node->in[1], &of_x);
    dx[1] = tdi_conv2d_grad_filter(graph, node->in[0], dy, &of_filter);
}

static void grad_input_gradient(tdi_graph *graph, tdi_node *node, tdi_node *d, tdi_node **dx)
{
    tdi_conv2d_attrs plain = with_shape(node, &(td_shape){0}), of_filter = with_shape(node, &node->in[1]->shape);
    dx[0] = tdi_conv2d(graph, d, node->in[1], &plain);
    dx[1] = tdi_conv2d_grad_filter(graph, d, node->in[0], &of_filter);
}

static void grad_filter_gradient(tdi_graph *graph, tdi_node *node, tdi_node *d, tdi_node **dx)
{
    tdi_conv2d_attrs of_x = with_shape(node, &node->in[0]->shape), plain = with_shape(node, &(td_shape){0});
    dx[0] = tdi_conv2d_grad_input(graph, node->in[1], d, &of_x);
    dx[1] = tdi_conv2d(graph, node->in[0], d, &plain);
}

/* ---- references ---- */

/* The row of x under filter row ky of the window at oy; -1: it is padding. */
static int64_t row_under(const geometry *g, int64_t oy, int64_t ky)
{
    int64_t y = oy * g->attrs->stride_h + ky * g->attrs->dilation_h - g->before_h;
    return y >= 0 && y < g->x->dim[1] ? y : -1;
}

static int64_t column_under(const geometry *g, int64_t ox, int64_t kx)
{
    int64_t x = ox * g->attrs->stride_w + kx * g->attrs->dilation_w - g->before_w;
    return x >= 0 && x < g->x->dim[2] ? x : -1;
}

static double window_sum(const geometry *g, const float *x, const float *filter, int64_t n, int64_t oy, int64_t ox,
                         int64_t f)
{
    int64_t first = f / g->group_out * g->group_in, filters = g->filter->dim[3];
    double sum = 0;
    for (int64_t ky = 0; ky < g->filter->dim[0]; ky++)
        for (int64_t kx = 0; kx < g->filter->dim[1]; kx++) {
            int64_t iy = row_under(g, oy, ky), ix = column_under(g, ox, kx);
            if (iy < 0 || ix < 0)
                continue;
            const float *from = x + at(g->x, n, iy, ix, first), *by = filter + at(g->filter, ky, kx, 0, f);
            for (int64_t c = 0; c < g->group_in; c++)
                sum += (double)from[c] * (double)by[c * filters];
        }
    return sum;
}

static void conv2d_reference(const tdi_call *call)
{
    geometry g = geometry_of(call, &call->in[0].shape, &call->in[1].shape, &call->out.shape);
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    float *out = call->out.data;
    for (int64_t n = 0; n < g.y->dim[0]; n++)
        for (int64_t oy = 0; oy < g.y->dim[1]; oy++)
            for (int64_t ox = 0; ox < g.y->dim[2]; ox++)
                for (int64_t f = 0; f < g.y->dim[3]; f++) {
                    double sum = window_sum(&g, call->in[0].data, call->in[1].data, n, oy, ox, f);
                    float z = (float)(sum + (bias ? (double)bias[f] : 0));
                    out[at(g.y, n, oy, ox, f)] = tdi_unary_value(g.attrs->activation, z);
                }
}

/* The number of the window whose filter cell at offset `k` lies on position `i`; -1: there is none. */
static int64_t window_over(int64_t i, int64_t k, int64_t stride, int64_t out)
{
    int64_t shifted = i - k;
    return shifted >= 0 && shifted % stride == 0 && shifted / stride < out ? shifted / stride : -1;
}

static double input_sum(const geometry *g, const float *dy, const float *filter, int64_t n, int64_t iy, int64_t ix,
                        int64_t c)
{
    int64_t group = c / g->group_in, first = group * g->group_out;
    double sum = 0;
    for (int64_t ky = 0; ky < g->filter->dim[0]; ky++)
        for (int64_t kx = 0; kx < g->filter->dim[1]; kx++) {
            int64_t oy = window_over(iy + g->before_h, ky * g->attrs->dilation_h, g->attrs->stride_h, g->y->dim[1]);
            int64_t ox = window_over(ix + g->before_w, kx * g->attrs->dilation_w, g->attrs->stride_w, g->y->dim[2]);
            if (oy < 0 || ox < 0)
                continue;
            const float *from = dy + at(g->y, n, oy, ox, first);
            const float *by = filter + at(g->filter, ky, kx, c % g->group_in, first);
            for (int64_t f = 0; f < g->group_out; f++)
                sum += (double)from[f] * (double)by[f];
        }
    return sum;
}

static void grad_input_reference(const tdi_call *call)
{
    geometry g = geometry_of(call, &call->out.shape, &call->in[1].shape, &call->in[0].shape);
    float *out = call->out.data;
    for (int64_t n = 0; n < g.x->dim[0]; n++)
        for (int64_t iy = 0; iy < g.x->dim[1]; iy++)
            for (int64_t ix = 0; ix < g.x->dim[2]; ix++)
                for (int64_t c = 0; c < g.x->dim[3]; c++)
                    out[at(g.x, n, iy, ix, c)] = (float)input_sum(&g, call->in[0].data, call->in[1].data, n, iy, ix, c);
}

static double filter_sum(const geometry *g, const float *x, const float *dy, int64_t ky, int64_t kx, int64_t c,
                         int64_t f)
{
    int64_t channel = f / g->group_out * g->group_in + c, channels = g->x->dim[3], filters = g->y->dim[3];
    double sum = 0;
    for (int64_t n = 0; n < g->y->dim[0]; n++)
        for (int64_t oy = 0; oy < g->y->dim[1]; oy++) {
            int64_t iy = row_under(g, oy, ky);
            if (iy < 0)
                continue;
            const float *from = x + at(g->x, n, iy, 0, channel), *by = dy + at(g->y, n, oy, 0, f);
            for (int64_t ox = 0; ox < g->y->dim[2]; ox++) {
                int64_t ix = column_under(g, ox, kx);
                if (ix >= 0)
                    sum += (double)from[ix * channels] * (double)by[ox * filters];
            }
        }
    return sum;
}

static void grad_filter_reference(const tdi_call *call)
{
    geometry g = geometry_of(call, &call->in[0].shape, &call->out.shape, &call->in[1].shape);
    float *out = call->out.data;
    for (int64_t ky = 0; ky < g.filter->dim[0]; ky++)
        for (int64_t kx = 0; kx < g.filter->dim[1]; kx++)
            for (int64_t c = 0; c < g.filter->dim[2]; c++)
                for (int64_t f = 0; f < g.filter->dim[3]; f++)
                    out[at(g.filter, ky, kx, c, f)] =
                        (float)filter_sum(&g, call->in[0].data, call->in[1].data, ky, kx, c, f);
}

/* ---- the ops ---- */

static double multiply_adds(const td_shape *filter, const td_shape *y)
{
    return 2.0 * (double)tdi_shape_elements(y) * (double)(filter->dim[0] * filter->dim[1] * filter->dim[2]);
}

static double conv2d_flops(const tdi_call *call)
{
    double bias = call->n_in > 2 ? (double)tdi_shape_elements(&call->out.shape) : 0;
    return multiply_adds(&call->in[1].shape, &call->out.shape) + bias;
}

static double grad_input_flops(const tdi_call *call)
{
    return multiply_adds(&call->in[1].shape, &call->in[0].shape);
}

static double grad_filter_flops(const tdi_call *call)
{
    return multiply_adds(&call->out.shape, &call->in[1].shape);
}

static tdi_split conv2d_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    if (split == TDI_COLUMNS)
        return i == 0 ? TDI_WHOLE : TDI_COLUMNS;
    return split == TDI_ROWS && i == 0 ? TDI_ROWS : TDI_WHOLE;
}

static tdi_split grad_input_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    return split == TDI_ROWS && i == 0 ? TDI_ROWS : TDI_WHOLE;
}

static tdi_split grad_filter_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    return split == TDI_COLUMNS && i == 1 ? TDI_COLUMNS : TDI_WHOLE;
}

static void conv2d_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_conv2d_attrs *a = node->attrs;
    const td_shape *filter = node->op == &tdi_op_conv2d_grad_filter ? &a->shape : &node->in[1]->shape;
    int used = snprintf(text, size, "%lldx%lld %s, stride %dx%d", (long long)filter->dim[0], (long long)filter->dim[1],
                        a->padding == TD_SAME ? "same" : "valid", a->stride_h, a->stride_w);
    if (used >= 0 && (size_t)used < size && (a->dilation_h > 1 || a->dilation_w > 1))
        used += snprintf(text + used, size - (size_t)used, ", dilation %dx%d", a->dilation_h, a->dilation_w);
    if (used >= 0 && (size_t)used < size && a->groups > 1)
        used += snprintf(text + used, size - (size_t)used, ", %d groups", a->groups);
    if (used >= 0 && (size_t)used < size && (a->sides.top || a->sides.bottom || a->sides.left || a->sides.right))
        used += snprintf(text + used, size - (size_t)used, ", zeros %d %d %d %d around", a->sides.top, a->sides.bottom,
                         a->sides.left, a->sides.right);
    if (used >= 0 && (size_t)used < size && node->op == &tdi_op_conv2d && node->n_in > 2)
        used += snprintf(text + used, size - (size_t)used, ", bias");
    if (used >= 0 && (size_t)used < size && a->activation)
        snprintf(text + used, size - (size_t)used, ", %s", tdi_unary_name(a->activation));
}

const tdi_op tdi_op_conv2d = {.name = "conv2d",
                              .min_in = 2,
                              .max_in = 3,
                              .attrs_size = sizeof(tdi_conv2d_attrs),
                              .bfloat16 = 1,
                              .multiplies = true,
                              .infer = conv2d_infer,
                              .gradient = conv2d_gradient,
                              .reference = conv2d_reference,
                              .flops = conv2d_flops,
                              .reads = conv2d_reads,
                              .describe = conv2d_describe,
                              .epilogue = offsetof(tdi_conv2d_attrs, activation)};

const tdi_op tdi_op_conv2d_grad_input = {.name = "conv2d_grad_input",
                                         .min_in = 2,
                                         .max_in = 2,
                                         .attrs_size = sizeof(tdi_conv2d_attrs),
                                         .bfloat16 = 1,
                                         .multiplies = true,
                                         .infer = grad_input_infer,
                                         .gradient = grad_input_gradient,
                                         .reference = grad_input_reference,
                                         .flops = grad_input_flops,
                                         .reads = grad_input_reads,
                                         .describe = conv2d_describe};

const tdi_op tdi_op_conv2d_grad_filter = {.name = "conv2d_grad_filter",
                                          .min_in = 2,
                                          .max_in = 2,
                                          .attrs_size = sizeof(tdi_conv2d_attrs),
                                          .bfloat16 = 3,
                                          .multiplies = true,
                                          .infer = grad_filter_infer,
                                          .gradient = grad_filter_gradient,
                                          .reference = grad_filter_reference,
                                          .flops = grad_filter_flops,
                                          .reads = grad_filter_reads,
                                          .describe = conv2d_describe};

tdi_node *tdi_conv2d(tdi_graph *graph, tdi_node *x, tdi_node *filter, const tdi_conv2d_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_conv2d, attrs, 2, (tdi_node *[]){x, filter});
}

tdi_node *tdi_conv2d_grad_input(tdi_graph *graph, tdi_node *dy, tdi_node *filter, const tdi_conv2d_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_conv2d_grad_input, attrs, 2, (tdi_node *[]){dy, filter});
}

tdi_node *tdi_conv2d_grad_filter(tdi_graph *graph, tdi_node *x, tdi_node *dy, const tdi_conv2d_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_conv2d_grad_filter, attrs, 2, (tdi_node *[]){x, dy});
}
