/* conv2d_matmul_onednn.c - convolutions as matrix products: [pixels, taps] . [taps, f]. A row of the left factor is
 * what the filter sees at one pixel; the right factor is the filter as it stands.
 *
 * A 1x1 convolution without strides is that product at once. Others copy what the filter sees, some samples at a
 * time. Where pixels are few and channels many, that costs less than packing the filter into a layout of oneDNN's
 * own. */
#include <string.h>

#include "cpu/kernels.h"
#include "cpu/onednn/sgemm_onednn.h"
#include "ops/op_helpers.h"

enum { MOST_PIXELS = 256, ROOM_FLOATS = 1 << 21 };

/* x [samples, h, w, c], filter [kh, kw, c, f] -> y [samples, oh, ow, f] */
typedef struct conv {
    int64_t first, samples, chunk; /* this call makes `samples` samples from `first` on, copying `chunk` at a time */
    int64_t h, w, c, kh, kw, oh, ow, f;
    int64_t filter, filters;   /* this call makes f filters from `filter` on, of `filters` */
    int64_t channel, channels; /* of x: the first channel that is made, and how many are */
    int64_t stride_h, stride_w, dilation_h, dilation_w, before_h, before_w;
    bool direct; /* x is the left factor as it lies */
} conv;

static int64_t pixels_of(const conv *p)
{
    return p->oh * p->ow;
}

static int64_t taps_of(const conv *p)
{
    return p->kh * p->kw * p->channels;
}

static conv conv_of(const tdi_call *call, const td_shape *x, const td_shape *filter, const td_shape *y)
{
    const tdi_conv2d_attrs *a = call->attrs;
    bool rows = call->split == TDI_ROWS;
    conv p = {.first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : x->dim[0],
              .h = x->dim[1],
              .w = x->dim[2],
              .c = x->dim[3],
              .kh = filter->dim[0],
              .kw = filter->dim[1],
              .oh = y->dim[1],
              .ow = y->dim[2],
              .f = y->dim[3],
              .filters = y->dim[3],
              .channels = x->dim[3],
              .stride_h = a->stride_h,
              .stride_w = a->stride_w,
              .dilation_h = a->dilation_h,
              .dilation_w = a->dilation_w};
    p.before_h = tdi_conv2d_window_h(a, x, filter).before;
    p.before_w = tdi_conv2d_window_w(a, x, filter).before;
    p.direct = p.kh == 1 && p.kw == 1 && p.stride_h == 1 && p.stride_w == 1 && p.oh == p.h && p.ow == p.w;
    int64_t fits = ROOM_FLOATS / (pixels_of(&p) * taps_of(&p));
    p.chunk = p.direct || fits > p.samples ? p.samples : fits > 1 ? fits : 1;
    return p;
}

static conv by_filters(const tdi_call *call, conv p)
{
    if (call->split == TDI_COLUMNS) {
        p.filter = call->begin;
        p.f = call->end - call->begin;
    }
    return p;
}

static conv by_channels(const tdi_call *call, conv p)
{
    if (call->split == TDI_COLUMNS) {
        p.channel = call->begin;
        p.channels = call->end - call->begin;
    }
    return p;
}

/* ---- between images and rows of taps ---- */

/* The offset in an image of what place (i, j) of the filter meets at pixel (oy, ox); -1: outside of the image. */
static int64_t seen_at(const conv *p, int64_t oy, int64_t ox, int64_t i, int64_t j)
{
    int64_t y = oy * p->stride_h + i * p->dilation_h - p->before_h;
    int64_t x = ox * p->stride_w + j * p->dilation_w - p->before_w;
    return y < 0 || y >= p->h || x < 0 || x >= p->w ? -1 : (y * p->w + x) * p->c;
}

static float *copy_pixel(const conv *p, const float *image, int64_t oy, int64_t ox, float *to)
{
    for (int64_t i = 0; i < p->kh; i++)
        for (int64_t j = 0; j < p->kw; j++, to += p->c) {
            int64_t at = seen_at(p, oy, ox, i, j);
            if (at < 0)
                memset(to, 0, (size_t)p->c * sizeof *to);
            else
                memcpy(to, image + at, (size_t)p->c * sizeof *to);
        }
    return to;
}

static const float *add_pixel(const conv *p, const float *from, int64_t oy, int64_t ox, float *image)
{
    for (int64_t i = 0; i < p->kh; i++)
        for (int64_t j = 0; j < p->kw; j++, from += p->channels) {
            int64_t at = seen_at(p, oy, ox, i, j);
            for (int64_t c = 0; at >= 0 && c < p->channels; c++)
                image[at + p->channel + c] += from[c];
        }
    return from;
}

/* The samples from n on as [count pixels, taps]; x itself where that is the same. */
static const float *taken_apart(const conv *p, const float *x, int64_t n, int64_t count, float *scratch)
{
    int64_t image = p->h * p->w * p->c;
    float *to = scratch;
    if (p->direct)
        return x + n * image;
    for (int64_t s = n; s < n + count; s++)
        for (int64_t pixel = 0; pixel < pixels_of(p); pixel++)
            to = copy_pixel(p, x + s * image, pixel / p->ow, pixel % p->ow, to);
    return scratch;
}

static void put_together(const conv *p, const float *from, int64_t n, int64_t count, float *x)
{
    int64_t image = p->h * p->w * p->c;
    for (float *to = x + n * image + p->channel, *end = x + (n + count) * image; to < end; to += p->c)
        memset(to, 0, (size_t)p->channels * sizeof *to);
    for (int64_t s = n; s < n + count; s++)
        for (int64_t pixel = 0; pixel < pixels_of(p); pixel++)
            from = add_pixel(p, from, pixel / p->ow, pixel % p->ow, x + s * image);
}

/* ---- which calls are taken ---- */

static const char *declines_shapes(const tdi_call *call, const td_shape *filter, const td_shape *y)
{
    const tdi_conv2d_attrs *a = call->attrs;
    bool point = filter->dim[0] == 1 && filter->dim[1] == 1;
    if (a->groups > 1)
        return "groups";
    if (filter->dim[2] < 16 || filter->dim[3] < 16)
        return "few channels";
    return !point && y->dim[1] * y->dim[2] > MOST_PIXELS ? "many pixels to copy" : NULL;
}

/* Where nothing is timed it is taken if the filter is larger than the images. */
static tdi_confidence confidence_of_shapes(const td_shape *filter, const td_shape *y)
{
    int64_t pixels = y->dim[0] * y->dim[1] * y->dim[2];
    return pixels < filter->dim[2] && pixels < filter->dim[3] ? TDI_LIKELY : TDI_UNLIKELY;
}

static size_t room(const conv *p)
{
    return p->direct ? 0 : (size_t)(p->chunk * pixels_of(p) * taps_of(p)) * sizeof(float);
}

static int64_t count_from(const conv *p, int64_t n)
{
    int64_t left = p->first + p->samples - n;
    return left < p->chunk ? left : p->chunk;
}

/* ---- forward ---- */

static const char *conv2d_declines(const tdi_call *call)
{
    return declines_shapes(call, &call->in[1].shape, &call->out.shape);
}

static tdi_confidence conv2d_confidence(const tdi_call *call)
{
    return confidence_of_shapes(&call->in[1].shape, &call->out.shape);
}

static conv forward_conv(const tdi_call *call)
{
    return by_filters(call, conv_of(call, &call->in[0].shape, &call->in[1].shape, &call->out.shape));
}

static td_status conv2d_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    conv p = forward_conv(call);
    *scratch = room(&p);
    return TD_OK;
}

static void conv2d_run(const tdi_call *call)
{
    conv p = forward_conv(call);
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    int activation = ((const tdi_conv2d_attrs *)call->attrs)->activation;
    for (int64_t n = p.first; n < p.first + p.samples; n += p.chunk) {
        int64_t rows = count_from(&p, n) * pixels_of(&p);
        float *y = (float *)call->out.data + n * pixels_of(&p) * p.filters + p.filter;
        const float *x = taken_apart(&p, call->in[0].data, n, count_from(&p, n), call->scratch);
        tdi_factor left = {x, taps_of(&p), 'N'}, filter = {(float *)call->in[1].data + p.filter, p.filters, 'N'};
        tdi_sgemm(rows, p.f, taps_of(&p), left, filter, 0, y, p.filters);
        tdi_cpu_vector_loops()->epilogue(rows, p.f, p.filters, bias ? bias + p.filter : NULL, activation, y);
    }
}

const tdi_kernel tdi_cpu_conv2d_matmul_onednn = {.name = "onednn conv2d as matmul",
                                                 .op = &tdi_op_conv2d,
                                                 .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                                 .declines = conv2d_declines,
                                                 .confidence = conv2d_confidence,
                                                 .prepare = conv2d_prepare,
                                                 .run = conv2d_run};

/* ---- the gradient of the input ---- */

static const char *grad_input_declines(const tdi_call *call)
{
    return declines_shapes(call, &call->in[1].shape, &call->in[0].shape);
}

static tdi_confidence grad_input_confidence(const tdi_call *call)
{
    return confidence_of_shapes(&call->in[1].shape, &call->in[0].shape);
}

static conv grad_input_conv(const tdi_call *call)
{
    return by_channels(call, conv_of(call, &call->out.shape, &call->in[1].shape, &call->in[0].shape));
}

static td_status grad_input_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    conv p = grad_input_conv(call);
    *scratch = room(&p);
    return TD_OK;
}

/* Multiplies `rows` pixels of dy by the filter, into rows of taps that are `row` floats apart. Where all channels are
 * made all places are one product. */
static void multiply_back(const conv *p, const float *dy, int64_t rows, const float *filter, float *to, int64_t row)
{
    bool all = p->channels == p->c;
    int64_t places = all ? 1 : p->kh * p->kw, each = taps_of(p) / places;
    tdi_factor left = {dy, p->f, 'N'};
    for (int64_t i = 0; i < places; i++) {
        tdi_factor right = {filter + (i * p->c + p->channel) * p->f, p->f, 'T'};
        tdi_sgemm(rows, each, p->f, left, right, 0, to + i * each, row);
    }
}

static void grad_input_run(const tdi_call *call)
{
    conv p = grad_input_conv(call);
    float *x = call->out.data;
    for (int64_t n = p.first; n < p.first + p.samples; n += p.chunk) {
        int64_t count = count_from(&p, n);
        const float *dy = (const float *)call->in[0].data + n * pixels_of(&p) * p.f;
        float *to = p.direct ? x + n * p.h * p.w * p.c + p.channel : call->scratch;
        multiply_back(&p, dy, count * pixels_of(&p), call->in[1].data, to, p.direct ? p.c : taps_of(&p));
        if (!p.direct)
            put_together(&p, call->scratch, n, count, x);
    }
}

const tdi_kernel tdi_cpu_conv2d_grad_input_matmul_onednn = {.name = "onednn conv2d_grad_input as matmul",
                                                            .op = &tdi_op_conv2d_grad_input,
                                                            .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                                            .declines = grad_input_declines,
                                                            .confidence = grad_input_confidence,
                                                            .prepare = grad_input_prepare,
                                                            .run = grad_input_run};

/* ---- the gradient of the filter ---- */

static const char *grad_filter_declines(const tdi_call *call)
{
    return declines_shapes(call, &call->out.shape, &call->in[1].shape);
}

static tdi_confidence grad_filter_confidence(const tdi_call *call)
{
    return confidence_of_shapes(&call->out.shape, &call->in[1].shape);
}

static conv grad_filter_conv(const tdi_call *call)
{
    return by_filters(call, conv_of(call, &call->in[0].shape, &call->out.shape, &call->in[1].shape));
}

static td_status grad_filter_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    conv p = grad_filter_conv(call);
    *scratch = room(&p);
    return TD_OK;
}

static void grad_filter_run(const tdi_call *call)
{
    conv p = grad_filter_conv(call);
    for (int64_t n = 0; n < p.samples; n += p.chunk) {
        const float *x = taken_apart(&p, call->in[0].data, n, count_from(&p, n), call->scratch);
        const float *dy = (const float *)call->in[1].data + n * pixels_of(&p) * p.filters + p.filter;
        tdi_factor left = {x, taps_of(&p), 'T'}, right = {dy, p.filters, 'N'};
        tdi_sgemm(taps_of(&p), p.f, count_from(&p, n) * pixels_of(&p), left, right, n > 0 ? 1 : 0,
                  (float *)call->out.data + p.filter, p.filters);
    }
}

const tdi_kernel tdi_cpu_conv2d_grad_filter_matmul_onednn = {.name = "onednn conv2d_grad_filter as matmul",
                                                             .op = &tdi_op_conv2d_grad_filter,
                                                             .splits = TDI_CAN_COLUMNS,
                                                             .declines = grad_filter_declines,
                                                             .confidence = grad_filter_confidence,
                                                             .prepare = grad_filter_prepare,
                                                             .run = grad_filter_run};
