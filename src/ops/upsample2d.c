/* upsample2d.c - enlarges images by repeating pixels, or by interpolating between their centres (bilinear, corners not
 * aligned, as tf.image.resize and Keras do), and the adjoint. */
#include "ops/op_helpers.h"

tdi_taps tdi_upsample_taps(bool bilinear, int64_t extent, int factor, int64_t at)
{
    if (!bilinear)
        return (tdi_taps){at / factor, at / factor, 0};
    double place = ((double)at + 0.5) / factor - 0.5, below = floor(place);
    int64_t low = (int64_t)below;
    if (low < 0 || low + 1 >= extent)
        return (tdi_taps){low < 0 ? 0 : extent - 1, low < 0 ? 0 : extent - 1, 0};
    return (tdi_taps){low, low + 1, (float)(place - below)};
}

static td_status check_attrs(const tdi_node *node, tdi_error *error)
{
    const tdi_upsample2d_attrs *attrs = node->attrs;
    if (attrs->factor_h < 1 || attrs->factor_w < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s enlarged %dx%d times: both must be at least 1",
                        TDI_TEXT(&node->in[0]->shape), attrs->factor_h, attrs->factor_w);
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    return tdi_want_rank(node, 0, 4, error);
}

static td_status upsample2d_infer(tdi_node *node, tdi_error *error)
{
    const tdi_upsample2d_attrs *attrs = node->attrs;
    TDI_TRY(check_attrs(node, error));
    node->shape = node->in[0]->shape;
    node->shape.dim[1] *= attrs->factor_h;
    node->shape.dim[2] *= attrs->factor_w;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static td_status upsample2d_grad_infer(tdi_node *node, tdi_error *error)
{
    const tdi_upsample2d_attrs *attrs = node->attrs;
    TDI_TRY(check_attrs(node, error));
    node->shape = node->in[0]->shape;
    if (node->shape.dim[1] % attrs->factor_h || node->shape.dim[2] % attrs->factor_w)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s is no image enlarged %dx%d times", TDI_TEXT(&node->shape),
                        attrs->factor_h, attrs->factor_w);
    node->shape.dim[1] /= attrs->factor_h;
    node->shape.dim[2] /= attrs->factor_w;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static void upsample2d_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_upsample2d_grad(graph, dy, node->attrs);
}

static void upsample2d_grad_gradient(tdi_graph *graph, tdi_node *node, tdi_node *d, tdi_node **dx)
{
    dx[0] = tdi_upsample2d(graph, d, node->attrs);
}

/* Calls `visit` for each pixel of the small image that contributes to a pixel of the large one. */
typedef void visit_pixels(const tdi_call *call, int64_t small, int64_t large, int64_t channels, double share);

static void each_share(const tdi_call *call, const td_shape *small, const td_shape *large, visit_pixels *visit)
{
    const tdi_upsample2d_attrs *attrs = call->attrs;
    int64_t channels = large->dim[3];
    for (int64_t at = 0; at < large->dim[0] * large->dim[1] * large->dim[2]; at++) {
        int64_t column = at % large->dim[2], row = at / large->dim[2] % large->dim[1];
        int64_t n = at / large->dim[2] / large->dim[1];
        tdi_taps y = tdi_upsample_taps(attrs->bilinear, small->dim[1], attrs->factor_h, row);
        tdi_taps x = tdi_upsample_taps(attrs->bilinear, small->dim[2], attrs->factor_w, column);
        for (int corner = 0; corner < 4; corner++) {
            int64_t i = corner & 2 ? y.high : y.low, j = corner & 1 ? x.high : x.low;
            double share_y = corner & 2 ? (double)y.share : 1 - (double)y.share;
            double share_x = corner & 1 ? (double)x.share : 1 - (double)x.share;
            int64_t pixel = ((n * small->dim[1] + i) * small->dim[2] + j) * channels;
            if (share_y * share_x > 0)
                visit(call, pixel, at * channels, channels, share_y * share_x);
        }
    }
}

static void visit_forward(const tdi_call *call, int64_t small, int64_t large, int64_t channels, double share)
{
    const float *x = (const float *)call->in[0].data + small;
    float *y = (float *)call->out.data + large;
    for (int64_t c = 0; c < channels; c++)
        y[c] += (float)(share * (double)x[c]);
}

static void visit_backward(const tdi_call *call, int64_t small, int64_t large, int64_t channels, double share)
{
    const float *dy = (const float *)call->in[0].data + large;
    float *dx = (float *)call->out.data + small;
    for (int64_t c = 0; c < channels; c++)
        dx[c] += (float)(share * (double)dy[c]);
}

static void upsample2d_reference(const tdi_call *call)
{
    memset(call->out.data, 0, (size_t)tdi_shape_elements(&call->out.shape) * sizeof(float));
    each_share(call, &call->in[0].shape, &call->out.shape, visit_forward);
}

static void upsample2d_grad_reference(const tdi_call *call)
{
    memset(call->out.data, 0, (size_t)tdi_shape_elements(&call->out.shape) * sizeof(float));
    each_share(call, &call->out.shape, &call->in[0].shape, visit_backward);
}

static tdi_split upsample2d_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    (void)i;
    return split == TDI_FLAT ? TDI_WHOLE : split;
}

static void upsample2d_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_upsample2d_attrs *attrs = node->attrs;
    snprintf(text, size, "%dx%d %s", attrs->factor_h, attrs->factor_w, attrs->bilinear ? "bilinear" : "nearest");
}

#define UPSAMPLE(stem)                                                                                                 \
    const tdi_op tdi_op_##stem = {.name = #stem,                                                                       \
                                  .min_in = 1,                                                                         \
                                  .max_in = 1,                                                                         \
                                  .attrs_size = sizeof(tdi_upsample2d_attrs),                                          \
                                  .infer = stem##_infer,                                                               \
                                  .gradient = stem##_gradient,                                                         \
                                  .reference = stem##_reference,                                                       \
                                  .reads = upsample2d_reads,                                                           \
                                  .describe = upsample2d_describe};                                                    \
    tdi_node *tdi_##stem(tdi_graph *graph, tdi_node *x, const tdi_upsample2d_attrs *attrs)                             \
    {                                                                                                                  \
        return tdi_node_create(graph, &tdi_op_##stem, attrs, 1, &x);                                                   \
    }
UPSAMPLE(upsample2d)
UPSAMPLE(upsample2d_grad)
