/* drawn_windows.c - convolutions and pooling of random shapes. */
#include "support/drawn_case.h"

#define BATCH TDI_BATCH

static td_padding padding(drawn_case *d)
{
    return drawn_often(d, 50) ? TD_SAME : TD_VALID;
}

/* Mostly there is none. */
static td_sides sides(drawn_case *d, int most)
{
    td_sides around = {0};
    if (!drawn_often(d, 25))
        return around;
    around.top = (int)drawn_between(d, 0, most);
    around.bottom = (int)drawn_between(d, 0, most);
    around.left = (int)drawn_between(d, 0, most);
    around.right = (int)drawn_between(d, 0, most);
    return around;
}

static int64_t side_of_image(drawn_case *d)
{
    return drawn_often(d, 50) ? drawn_between(d, 1, 9) : drawn_between(d, 1, 30);
}

static td_shape images(drawn_case *d, int64_t channels)
{
    int64_t h = side_of_image(d), w = drawn_often(d, 40) ? h : side_of_image(d);
    return (td_shape)OP_DIMS(BATCH, h, w, channels);
}

/* ---- convolutions ---- */

typedef struct convolution {
    td_shape x, filter, y;
} convolution;

static void draw_steps(drawn_case *d)
{
    tdi_conv2d_attrs *a = &d->attrs.conv2d;
    bool strides = drawn_often(d, 35), dilation = drawn_often(d, 15);
    a->stride_h = strides ? (int)drawn_between(d, 1, 3) : 1;
    a->stride_w = strides ? (int)drawn_between(d, 1, 3) : 1;
    a->dilation_h = dilation ? (int)drawn_between(d, 1, 3) : 1;
    a->dilation_w = dilation ? (int)drawn_between(d, 1, 3) : 1;
    a->groups = drawn_often(d, 15) ? (int)drawn_between(d, 2, 5) : 1;
}

static td_shape draw_filter(drawn_case *d, int64_t channels, int64_t filters)
{
    int64_t h = DRAWN_OF(d, 1, 1, 2, 3, 3, 3, 4, 5, 5, 6, 7);
    int64_t w = drawn_often(d, 70) ? h : drawn_between(d, 1, 7);
    return (td_shape)OP_DIMS(h, w, channels, filters);
}

/* Computes the shape of the result; false: there is none. */
static bool resolve_result(drawn_case *d, convolution *conv, int64_t rows)
{
    tdi_conv2d_attrs *a = &d->attrs.conv2d;
    int64_t h = tdi_conv2d_window_h(a, &conv->x, &conv->filter).out;
    int64_t w = tdi_conv2d_window_w(a, &conv->x, &conv->filter).out;
    const int64_t *f = conv->filter.dim;
    conv->y = (td_shape)OP_DIMS(BATCH, h, w, f[3]);
    drawn_note(d, ", x [%lld, %lld, %lld] by [%lld, %lld, %lld, %lld]", (long long)conv->x.dim[1],
               (long long)conv->x.dim[2], (long long)conv->x.dim[3], (long long)f[0], (long long)f[1], (long long)f[2],
               (long long)f[3]);
    drawn_note(d, ", strides %d %d, dilation %d %d, groups %d, %s, sides %d %d %d %d", a->stride_h, a->stride_w,
               a->dilation_h, a->dilation_w, a->groups, a->padding == TD_SAME ? "same" : "valid", a->sides.top,
               a->sides.bottom, a->sides.left, a->sides.right);
    return h > 0 && w > 0 && drawn_batch(d, rows, 2.0 * (double)(h * w * f[0] * f[1] * f[2] * f[3]));
}

static bool draw_any(drawn_case *d, convolution *conv)
{
    tdi_conv2d_attrs *a = &d->attrs.conv2d;
    draw_steps(d);
    a->padding = padding(d);
    a->sides = sides(d, 5);
    int64_t channels = drawn_channels(d), filters = drawn_channels(d);
    channels = (channels + a->groups - 1) / a->groups;
    filters = (filters + a->groups - 1) / a->groups * a->groups;
    conv->x = images(d, channels * a->groups);
    conv->filter = draw_filter(d, channels, filters);
    return resolve_result(d, conv, drawn_between(d, 1, 40));
}

/* A square filter, many channels and no strides, for kernels by Winograd's method and by direct sums. */
static bool draw_usual(drawn_case *d, convolution *conv)
{
    d->attrs.conv2d = (tdi_conv2d_attrs){.stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1};
    d->attrs.conv2d.padding = padding(d);
    d->attrs.conv2d.sides = sides(d, 2);
    int64_t channels = 16 * drawn_between(d, 1, 9), filters = 16 * drawn_between(d, 1, 9);
    int64_t side = DRAWN_OF(d, 3, 3, 3, 3, 1, 5);
    channels -= drawn_often(d, 15) ? drawn_between(d, 1, 15) : 0;
    filters -= drawn_often(d, 15) ? drawn_between(d, 1, 15) : 0;
    conv->x = images(d, channels);
    conv->filter = (td_shape)OP_DIMS(side, side, channels, filters);
    return resolve_result(d, conv, drawn_between(d, 1, 40));
}

/* 3x3 filters over few tiles of 4x4 pixels. Every number of tiles ends blocks of rows in another way. */
static bool draw_few(drawn_case *d, convolution *conv)
{
    d->attrs.conv2d = (tdi_conv2d_attrs){.stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1};
    d->attrs.conv2d.padding = padding(d);
    d->attrs.conv2d.sides = sides(d, 2);
    int64_t channels = 16 * drawn_between(d, 1, 9), filters = 16 * drawn_between(d, 1, 9);
    int64_t most = drawn_often(d, 70) ? 4 : 9, h = drawn_between(d, 1, most), w = drawn_between(d, 1, most);
    int64_t tiles = ((h + 3) / 4) * ((w + 3) / 4);
    conv->x = (td_shape)OP_DIMS(BATCH, h, w, channels);
    conv->filter = (td_shape)OP_DIMS(3, 3, channels, filters);
    return resolve_result(d, conv, drawn_between(d, 1, tiles < 40 ? 40 / tiles : 1));
}

static void blank_borders(drawn_case *d, op_leaf *leaf)
{
    if (drawn_often(d, 15)) {
        leaf->fill = OP_FRAMED;
        leaf->limit = (int)drawn_between(d, 0, 4);
    }
}

static bool conv2d_of(drawn_case *d, bool (*draw)(drawn_case *d, convolution *conv))
{
    convolution conv;
    if (!draw(d, &conv))
        return false;
    d->c.op = &tdi_op_conv2d;
    d->attrs.conv2d.activation = drawn_activation(d, conv.filter.dim[3]);
    drawn_note(d, ", activation %d", d->attrs.conv2d.activation);
    blank_borders(d, drawn_leaf(d, conv.x));
    drawn_leaf(d, conv.filter);
    if (drawn_often(d, 40))
        drawn_leaf(d, (td_shape)OP_DIMS(conv.filter.dim[3]));
    return true;
}

static bool grad_input_of(drawn_case *d, bool (*draw)(drawn_case *d, convolution *conv))
{
    convolution conv;
    if (!draw(d, &conv))
        return false;
    d->c.op = &tdi_op_conv2d_grad_input;
    d->attrs.conv2d.shape = conv.x;
    blank_borders(d, drawn_leaf(d, conv.y));
    drawn_leaf(d, conv.filter);
    return true;
}

static bool grad_filter_of(drawn_case *d, bool (*draw)(drawn_case *d, convolution *conv))
{
    convolution conv;
    if (!draw(d, &conv))
        return false;
    d->c.op = &tdi_op_conv2d_grad_filter;
    d->attrs.conv2d.shape = conv.filter;
    blank_borders(d, drawn_leaf(d, conv.x));
    drawn_leaf(d, conv.y);
    return true;
}

static bool conv2d(drawn_case *d)
{
    return conv2d_of(d, draw_any);
}

static bool usual_conv2d(drawn_case *d)
{
    return conv2d_of(d, draw_usual);
}

static bool few_conv2d(drawn_case *d)
{
    return conv2d_of(d, draw_few);
}

static bool grad_input(drawn_case *d)
{
    return grad_input_of(d, draw_any);
}

static bool usual_grad_input(drawn_case *d)
{
    return grad_input_of(d, draw_usual);
}

static bool few_grad_input(drawn_case *d)
{
    return grad_input_of(d, draw_few);
}

static bool grad_filter(drawn_case *d)
{
    return grad_filter_of(d, draw_any);
}

static bool usual_grad_filter(drawn_case *d)
{
    return grad_filter_of(d, draw_usual);
}

static bool few_grad_filter(drawn_case *d)
{
    return grad_filter_of(d, draw_few);
}

/* ---- pooling ---- */

/* Draws the attributes and the shapes of x and of the result y; false: there is no result. */
static bool draw_pool(drawn_case *d, td_shape *x, td_shape *y, bool around)
{
    tdi_pool2d_attrs *a = &d->attrs.pool2d;
    a->pool_h = (int)drawn_between(d, 1, 4);
    a->pool_w = drawn_often(d, 60) ? a->pool_h : (int)drawn_between(d, 1, 4);
    bool beside = drawn_often(d, 50);
    a->stride_h = beside ? a->pool_h : (int)drawn_between(d, 1, 4);
    a->stride_w = beside ? a->pool_w : (int)drawn_between(d, 1, 4);
    a->padding = padding(d);
    *x = images(d, drawn_channels(d));
    /* Every window covers at least one pixel of x. */
    int least = a->pool_h < a->pool_w ? a->pool_h : a->pool_w;
    if (around && a->padding == TD_VALID)
        a->sides = sides(d, least - 1);
    tdi_window h = tdi_window_around(x->dim[1], a->pool_h, a->stride_h, 1, a->padding, a->sides.top, a->sides.bottom);
    tdi_window w = tdi_window_around(x->dim[2], a->pool_w, a->stride_w, 1, a->padding, a->sides.left, a->sides.right);
    *y = (td_shape)OP_DIMS(BATCH, h.out, w.out, x->dim[3]);
    drawn_note(d, ", x [%lld, %lld, %lld], pool %d %d, strides %d %d, %s, sides %d %d %d %d", (long long)x->dim[1],
               (long long)x->dim[2], (long long)x->dim[3], a->pool_h, a->pool_w, a->stride_h, a->stride_w,
               a->padding == TD_SAME ? "same" : "valid", a->sides.top, a->sides.bottom, a->sides.left, a->sides.right);
    double flops = (double)(x->dim[1] * x->dim[2] * x->dim[3] + h.out * w.out * x->dim[3] * a->pool_h * a->pool_w);
    return h.out > 0 && w.out > 0 && drawn_batch(d, drawn_between(d, 1, 40), 20 * flops);
}

static bool max_pool(drawn_case *d)
{
    td_shape x, y;
    if (!draw_pool(d, &x, &y, true))
        return false;
    d->c.op = &tdi_op_max_pool2d;
    drawn_leaf(d, x)->fill = drawn_often(d, 20) ? OP_MISSING : OP_NORMAL;
    return true;
}

static bool max_pool_grad(drawn_case *d)
{
    td_shape x, y;
    if (!draw_pool(d, &x, &y, true))
        return false;
    d->c.op = &tdi_op_max_pool2d_grad;
    drawn_build_as(d, d->c.op, NULL);
    d->attrs.pool2d.activation = drawn_activation(d, x.dim[3]);
    drawn_note(d, ", activation %d", d->attrs.pool2d.activation);
    drawn_leaf(d, x)->fill = d->attrs.pool2d.activation == TD_LINEAR && drawn_often(d, 20) ? OP_MISSING : OP_NORMAL;
    drawn_leaf(d, y);
    return true;
}

static bool average_pool(drawn_case *d)
{
    td_shape x, y;
    if (!draw_pool(d, &x, &y, false))
        return false;
    d->c.op = &tdi_op_average_pool2d;
    drawn_leaf(d, x);
    return true;
}

static bool average_pool_grad(drawn_case *d)
{
    td_shape x, y;
    if (!draw_pool(d, &x, &y, false))
        return false;
    d->c.op = &tdi_op_average_pool2d_grad;
    d->attrs.pool2d.shape = x;
    d->attrs.pool2d.activation = drawn_activation(d, x.dim[3]);
    drawn_note(d, ", activation %d", d->attrs.pool2d.activation);
    drawn_leaf(d, y);
    if (d->attrs.pool2d.activation != TD_LINEAR)
        drawn_leaf(d, x);
    return true;
}

const drawn_kind drawn_windows[] = {{"conv2d", conv2d, 1},
                                    {"usual conv2d", usual_conv2d, 1},
                                    {"conv2d of few tiles", few_conv2d, 3},
                                    {"conv2d_grad_input", grad_input, 1},
                                    {"usual conv2d_grad_input", usual_grad_input, 1},
                                    {"conv2d_grad_input of few tiles", few_grad_input, 3},
                                    {"conv2d_grad_filter", grad_filter, 1},
                                    {"usual conv2d_grad_filter", usual_grad_filter, 1},
                                    {"conv2d_grad_filter of few tiles", few_grad_filter, 3},
                                    {"max_pool2d", max_pool, 1},
                                    {"max_pool2d_grad", max_pool_grad, 1},
                                    {"average_pool2d", average_pool, 1},
                                    {"average_pool2d_grad", average_pool_grad, 1},
                                    {0}};
