/* conv2d_onednn.c - convolution and its two gradients by oneDNN's primitives.
 *
 * Activations stay channels last. oneDNN would take far slower paths, down to its reference loops, if it could
 * choose the layout of an activation, or if it had to read weights as they lie. */
#include <string.h>

#include "cpu/kernels.h"
#include "cpu/onednn/library.h"
#include "cpu/onednn/primitive_onednn.h"
#include "ops/op_helpers.h"

typedef enum direction { FORWARD, GRAD_INPUT, GRAD_FILTER } direction;

/* The values of a call in any of the three directions; shapes are resolved. */
typedef struct conv_values {
    const tdi_value *x, *filter, *y, *bias;
} conv_values;

static conv_values values_of(const tdi_call *call, direction way)
{
    switch (way) {
    case FORWARD:
        return (conv_values){&call->in[0], &call->in[1], &call->out, call->n_in > 2 ? &call->in[2] : NULL};
    case GRAD_INPUT:
        return (conv_values){&call->out, &call->in[1], &call->in[0], NULL};
    case GRAD_FILTER:
        break;
    }
    return (conv_values){&call->in[0], &call->out, &call->in[1], NULL};
}

/* The first sample of the thread's share. */
static int64_t first_sample(const tdi_call *call)
{
    return call->split == TDI_ROWS ? call->begin : 0;
}

static int64_t count_samples(const tdi_call *call, const conv_values *v)
{
    return call->split == TDI_ROWS ? call->end - call->begin : v->x->shape.dim[0];
}

/* The first channel that is made: of y, whose channels are filters, or of x. */
static int64_t first_made(const tdi_call *call)
{
    return call->split == TDI_COLUMNS ? call->begin : 0;
}

static int64_t count_made(const tdi_call *call)
{
    return call->split == TDI_COLUMNS ? call->end - call->begin : call->out.shape.dim[3];
}

static int64_t count_channels(const tdi_call *call, const conv_values *v)
{
    return v->x == &call->out ? count_made(call) : v->x->shape.dim[3];
}

static int64_t count_filters(const tdi_call *call, const conv_values *v)
{
    return v->y == &call->out ? count_made(call) : v->y->shape.dim[3];
}

/* ---- description ---- */

/* Describes [n, h, w, c]: oneDNN orders extents as n c h w; the strides say that channels are last. */
static dnnl_status_t describe_image(tdi_md *md, const tdi_value *image, int64_t samples, int64_t c)
{
    int64_t h = image->shape.dim[1], w = image->shape.dim[2];
    dnnl_dims_t dims = {samples, c, h, w}, strides = {h * w * c, 1, w * c, c};
    return tdi_md_create(md, 4, dims, tdi_onednn_type(image->dtype), strides);
}

/* Describes the thread's share of the filter [kh, kw, c / groups, f] as (groups,) out, in, h, w: in oneDNN's own layout
 * of `type`, or as it lies, float32. */
static dnnl_status_t describe_filter(tdi_md *md, const tdi_call *call, const conv_values *v, bool any,
                                     dnnl_data_type_t type)
{
    const td_shape *filter = &v->filter->shape;
    int64_t groups = ((const tdi_conv2d_attrs *)call->attrs)->groups;
    int64_t h = filter->dim[0], w = filter->dim[1], in = filter->dim[2], out = filter->dim[3];
    dnnl_dims_t dims = {groups, count_filters(call, v) / groups, count_channels(call, v) / groups, h, w};
    dnnl_dims_t strides = {out / groups, 1, out, w * in * out, in * out};
    int skip = groups == 1 ? 1 : 0;
    return tdi_md_create(md, 5 - skip, dims + skip, type, any ? NULL : strides + skip);
}

static void set_window(tdi_onednn_convolution *c, int axis, int64_t in, int64_t size, int64_t out, int64_t stride,
                       int64_t dilation, td_padding padding, int zeros_before, int zeros_after)
{
    int64_t before = tdi_window_around(in, size, stride, dilation, padding, zeros_before, zeros_after).before;
    c->strides[axis] = stride;
    c->dilations[axis] = dilation - 1;
    c->before[axis] = before;
    c->after[axis] = (out - 1) * stride + (size - 1) * dilation + 1 - in - before;
}

static tdi_onednn_convolution window_of(const tdi_call *call, const conv_values *v)
{
    const tdi_conv2d_attrs *attrs = call->attrs;
    const td_shape *x = &v->x->shape, *filter = &v->filter->shape, *y = &v->y->shape;
    tdi_onednn_convolution c = {0};
    set_window(&c, 0, x->dim[1], filter->dim[0], y->dim[1], attrs->stride_h, attrs->dilation_h, attrs->padding,
               attrs->sides.top, attrs->sides.bottom);
    set_window(&c, 1, x->dim[2], filter->dim[1], y->dim[2], attrs->stride_w, attrs->dilation_w, attrs->padding,
               attrs->sides.left, attrs->sides.right);
    return c;
}

static dnnl_status_t describe_operands(tdi_onednn_operands *o, const tdi_call *call, const conv_values *v)
{
    int64_t samples = count_samples(call, v), filters = count_filters(call, v);
    o->has_bias = v->bias && v->bias->shape.rank;
    dnnl_status_t status = describe_image(&o->src, v->x, samples, count_channels(call, v));
    if (status == dnnl_success)
        status = describe_image(&o->dst, v->y, samples, filters);
    if (status == dnnl_success)
        status = describe_filter(&o->weights, call, v, false, dnnl_f32);
    if (status == dnnl_success && o->has_bias)
        status = tdi_md_create(&o->bias, 1, (dnnl_dims_t){filters}, dnnl_f32, (dnnl_dims_t){1});
    return status;
}

/* Creates the primitive's description of `c`, whose weights have the layout that oneDNN prefers. `forward` describes
 * the convolution that it is the gradient of. */
static dnnl_status_t create_description(direction way, dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                                        tdi_onednn_convolution c, tdi_md_view forward, dnnl_primitive_desc_t *pd)
{
    tdi_onednn_convolution hinted = c;
    dnnl_primitive_desc_t hint = NULL;
    if (way == FORWARD)
        return tdi_onednn_forward(pd, engine, &c, attr);
    hinted.weights = forward;
    dnnl_status_t status = tdi_onednn_forward(&hint, engine, &hinted, attr);
    if (status != dnnl_success)
        return status;
    status = way == GRAD_INPUT ? tdi_onednn_backward_data(pd, engine, &c, attr, hint)
                               : tdi_onednn_backward_weights(pd, engine, &c, attr, hint);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

static dnnl_status_t describe(direction way, const tdi_call *call, dnnl_engine_t engine,
                              const_dnnl_primitive_attr_t attr, tdi_onednn_operands *o, dnnl_primitive_desc_t *pd)
{
    conv_values v = values_of(call, way);
    dnnl_data_type_t type = tdi_onednn_type(v.x->dtype);
    tdi_md weights = {0}, forward = {0};
    o->makes_weights = way == GRAD_FILTER;
    dnnl_status_t status = describe_operands(o, call, &v);
    if (status == dnnl_success)
        status = describe_filter(&weights, call, &v, true, o->makes_weights ? dnnl_f32 : type);
    if (status == dnnl_success)
        status = describe_filter(&forward, call, &v, true, type);
    tdi_onednn_convolution c = window_of(call, &v);
    c.src = TDI_MD_VIEW(o->src);
    c.weights = TDI_MD_VIEW(weights);
    c.bias = o->has_bias ? TDI_MD_VIEW(o->bias) : NULL;
    c.dst = TDI_MD_VIEW(o->dst);
    if (status == dnnl_success)
        status = create_description(way, engine, attr, c, TDI_MD_VIEW(forward), pd);
    tdi_md_destroy(&weights);
    tdi_md_destroy(&forward);
    return status;
}

static dnnl_status_t describe_forward(const tdi_call *call, dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                                      tdi_onednn_operands *operands, dnnl_primitive_desc_t *pd)
{
    return describe(FORWARD, call, engine, attr, operands, pd);
}

static dnnl_status_t describe_grad_input(const tdi_call *call, dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                                         tdi_onednn_operands *operands, dnnl_primitive_desc_t *pd)
{
    return describe(GRAD_INPUT, call, engine, attr, operands, pd);
}

static dnnl_status_t describe_grad_filter(const tdi_call *call, dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                                          tdi_onednn_operands *operands, dnnl_primitive_desc_t *pd)
{
    return describe(GRAD_FILTER, call, engine, attr, operands, pd);
}

/* Bytes at the begin of the scratch where some of the channels are made contiguously; 0 where all are made. */
static size_t apart_bytes(const tdi_call *call)
{
    const td_shape *y = &call->out.shape;
    int64_t elements = y->dim[0] * y->dim[1] * y->dim[2] * count_made(call);
    size_t bytes = call->split == TDI_COLUMNS ? (size_t)elements * td_dtype_size(call->out.dtype) : 0;
    return (bytes + 63) / 64 * 64;
}

/* An empty share gets no state, and its run does nothing. */
static td_status prepare(const tdi_call *call, direction way, tdi_onednn_describe *describe_way, void **state,
                         size_t *scratch, tdi_error *error)
{
    conv_values v = values_of(call, way);
    if (call->split == TDI_COLUMNS && ((const tdi_conv2d_attrs *)call->attrs)->groups > 1)
        return tdi_fail(error, TD_UNSUPPORTED, "groups by filters");
    if (count_samples(call, &v))
        TDI_TRY(tdi_onednn_prepare(call, describe_way, state, scratch, error));
    *scratch += apart_bytes(call);
    return TD_OK;
}

static td_status prepare_forward(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    return prepare(call, FORWARD, describe_forward, state, scratch, error);
}

static td_status prepare_grad_input(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    return prepare(call, GRAD_INPUT, describe_grad_input, state, scratch, error);
}

static td_status prepare_grad_filter(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    return prepare(call, GRAD_FILTER, describe_grad_filter, state, scratch, error);
}

/* ---- running ---- */

static void *sample(const tdi_value *value, int64_t n)
{
    const td_shape *shape = &value->shape;
    return (char *)value->data +
           n * shape->dim[1] * shape->dim[2] * shape->dim[3] * (int64_t)td_dtype_size(value->dtype);
}

static void *address_of(const tdi_call *call, const tdi_value *image)
{
    bool apart = call->split == TDI_COLUMNS && image == &call->out;
    return apart ? call->scratch : sample(image, first_sample(call));
}

static tdi_onednn_addresses addresses_of(const tdi_call *call, direction way)
{
    conv_values v = values_of(call, way);
    int64_t first = first_made(call), filter = way == GRAD_INPUT ? first * v.filter->shape.dim[3] : first;
    return (tdi_onednn_addresses){.src = address_of(call, v.x),
                                  .weights = (float *)v.filter->data + filter,
                                  .bias = v.bias && v.bias->data ? (float *)v.bias->data + filter : NULL,
                                  .dst = address_of(call, v.y)};
}

static void activate(const tdi_call *call, void *first)
{
    conv_values v = values_of(call, FORWARD);
    const td_shape *y = &v.y->shape;
    int64_t count = count_samples(call, &v) * y->dim[1] * y->dim[2] * count_made(call);
    int activation = ((const tdi_conv2d_attrs *)call->attrs)->activation;
    if (v.y->dtype == TD_BFLOAT16)
        tdi_cpu_vector_loops()->activate_bfloat16(count, activation, first);
    else
        tdi_cpu_vector_loops()->epilogue(1, count, 0, NULL, activation, first);
}

/* Copies channels that were made contiguously to their places between the other channels. */
static void put_between(const tdi_call *call, const char *made)
{
    const td_shape *y = &call->out.shape;
    size_t each = td_dtype_size(call->out.dtype), bytes = (size_t)(call->end - call->begin) * each;
    char *to = (char *)call->out.data + (size_t)call->begin * each;
    int64_t pixels = y->dim[0] * y->dim[1] * y->dim[2];
    for (int64_t i = 0; i < pixels; i++)
        memcpy(to + (size_t)(i * y->dim[3]) * each, made + (size_t)i * bytes, bytes);
}

static void conv2d_run(const tdi_call *call)
{
    if (!call->state)
        return;
    tdi_onednn_addresses at = addresses_of(call, FORWARD);
    tdi_onednn_run(call, at, (char *)call->scratch + apart_bytes(call), DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST);
    activate(call, at.dst);
    if (call->split == TDI_COLUMNS)
        put_between(call, at.dst);
}

static void conv2d_grad_input_run(const tdi_call *call)
{
    if (!call->state)
        return;
    tdi_onednn_addresses at = addresses_of(call, GRAD_INPUT);
    tdi_onednn_run(call, at, (char *)call->scratch + apart_bytes(call), DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS,
                   DNNL_ARG_DIFF_DST);
    if (call->split == TDI_COLUMNS)
        put_between(call, at.src);
}

static void conv2d_grad_filter_run(const tdi_call *call)
{
    if (call->state)
        tdi_onednn_run(call, addresses_of(call, GRAD_FILTER), call->scratch, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS,
                       DNNL_ARG_DIFF_DST);
}

static bool is_point(const td_shape *filter)
{
    return filter->dim[0] == 1 && filter->dim[1] == 1;
}

/* oneDNN 2.6's AMX convolutions write behind the scratch that they ask for where rows are further apart than a filter
 * is high. */
static const char *declines_filter(const tdi_call *call, const td_shape *filter)
{
    const tdi_conv2d_attrs *a = call->attrs;
    bool apart = filter->dim[0] < a->stride_h || filter->dim[1] < a->stride_w;
    bool tiles = call->in[0].dtype == TD_BFLOAT16 && tdi_cpu_library_has_amx();
    return tiles && apart && !is_point(filter) ? "strides beyond the filter: oneDNN's AMX would write elsewhere" : NULL;
}

static const char *declines(const tdi_call *call)
{
    return declines_filter(call, &call->in[1].shape);
}

/* oneDNN 2.6 computes some of these wrongly; tests/cpu/large.h has one. */
static const char *declines_odd(const tdi_call *call)
{
    const td_shape *filter = &call->in[1].shape;
    int64_t filters = filter->dim[3] / ((const tdi_conv2d_attrs *)call->attrs)->groups;
    bool odd = call->in[0].dtype == TD_BFLOAT16 && is_point(filter) && filters % 2;
    return odd ? "1x1 with an odd number of filters, in bfloat16" : NULL;
}

static const char *grad_input_declines(const tdi_call *call)
{
    const char *why = declines_odd(call);
    return why ? why : declines(call);
}

/* Whether a place of the filter meets nothing but the padding. */
static bool sees_nothing(tdi_window window, int64_t in, int64_t size, int64_t stride, int64_t dilation)
{
    for (int64_t k = 0; k < size; k++) {
        int64_t at = k * dilation - window.before, skipped = at < 0 ? (stride - 1 - at) / stride : 0;
        if (skipped >= window.out || at + skipped * stride >= in)
            return true;
    }
    return false;
}

/* oneDNN 2.6 in bfloat16 does not write the gradient, which is zero, of a place that meets nothing but padding. */
static const char *grad_filter_declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *filter = &call->out.shape;
    bool narrow = call->in[0].dtype == TD_BFLOAT16;
    tdi_window h = tdi_conv2d_window_h(a, x, filter), w = tdi_conv2d_window_w(a, x, filter);
    if (narrow && (sees_nothing(h, x->dim[1], filter->dim[0], a->stride_h, a->dilation_h) ||
                   sees_nothing(w, x->dim[2], filter->dim[1], a->stride_w, a->dilation_w)))
        return "places of the filter that see nothing, in bfloat16";
    return declines_filter(call, filter);
}

/* Confidence, forwards and for the input's gradient: on bfloat16 values float32 kernels may be faster, by Winograd's
 * method or where channels are few, but not faster than AMX with many channels. */
static tdi_confidence confidence(const tdi_call *call)
{
    enum { MANY = 32 };
    const td_shape *filter = &call->in[1].shape;
    bool many = filter->dim[2] >= MANY && filter->dim[3] >= MANY;
    return call->in[0].dtype != TD_BFLOAT16 || (many && tdi_cpu_library_has_amx()) ? TDI_SURE : TDI_LIKELY;
}

/* oneDNN's kernels for the filter's gradient are slow with many channels too. */
static tdi_confidence grad_filter_confidence(const tdi_call *call)
{
    return call->in[0].dtype == TD_BFLOAT16 ? TDI_LIKELY : TDI_SURE;
}

const tdi_kernel tdi_cpu_conv2d_onednn = {.name = "onednn conv2d",
                                          .op = &tdi_op_conv2d,
                                          .takes = TDI_TAKES_BOTH,
                                          .declines = declines,
                                          .confidence = confidence,
                                          .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                          .prepare = prepare_forward,
                                          .packed_cache_bytes = tdi_onednn_packed_cache_bytes,
                                          .release = tdi_onednn_release,
                                          .run = conv2d_run};

const tdi_kernel tdi_cpu_conv2d_grad_input_onednn = {.name = "onednn conv2d_grad_input",
                                                     .op = &tdi_op_conv2d_grad_input,
                                                     .takes = TDI_TAKES_BOTH,
                                                     .declines = grad_input_declines,
                                                     .confidence = confidence,
                                                     .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                                     .prepare = prepare_grad_input,
                                                     .packed_cache_bytes = tdi_onednn_packed_cache_bytes,
                                                     .release = tdi_onednn_release,
                                                     .run = conv2d_grad_input_run};

const tdi_kernel tdi_cpu_conv2d_grad_filter_onednn = {.name = "onednn conv2d_grad_filter",
                                                      .op = &tdi_op_conv2d_grad_filter,
                                                      .takes = TDI_TAKES_BOTH,
                                                      .declines = grad_filter_declines,
                                                      .confidence = grad_filter_confidence,
                                                      .prepare = prepare_grad_filter,
                                                      .release = tdi_onednn_release,
                                                      .run = conv2d_grad_filter_run};

/* ---- the gradient of the input of a 1x1 filter with strides ---- */

/* The gradient is that of a convolution without strides, whose cells are then spread apart, with zeros between them. */
typedef struct thin_call {
    tdi_call call; /* makes the cells without gaps */
    tdi_value out;
    tdi_conv2d_attrs attrs;
} thin_call;

static int64_t image_bytes(const tdi_value *value)
{
    const td_shape *shape = &value->shape;
    return shape->dim[1] * shape->dim[2] * shape->dim[3] * (int64_t)td_dtype_size(value->dtype);
}

static size_t thin_bytes(const thin_call *thin)
{
    return (size_t)((thin->out.shape.dim[0] * image_bytes(&thin->out) + 63) / 64 * 64);
}

static void make_thin(const tdi_call *call, thin_call *thin)
{
    const td_shape *dy = &call->in[0].shape;
    thin->out = call->out;
    thin->out.shape.dim[1] = dy->dim[1];
    thin->out.shape.dim[2] = dy->dim[2];
    thin->out.data = call->scratch;
    thin->attrs = *(const tdi_conv2d_attrs *)call->attrs;
    thin->attrs.stride_h = thin->attrs.stride_w = 1;
    thin->attrs.padding = TD_VALID;
    thin->attrs.shape = thin->out.shape;
    thin->call = *call;
    thin->call.out = thin->out;
    thin->call.attrs = &thin->attrs;
    if (call->scratch)
        thin->call.scratch = (char *)call->scratch + thin_bytes(thin);
}

static const char *thin_declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *filter = &call->in[1].shape;
    bool zeros = a->sides.top || a->sides.bottom || a->sides.left || a->sides.right;
    const char *why = declines_odd(call);
    if (why)
        return why;
    if (!is_point(filter) || zeros)
        return "a filter of several places, or zeros around";
    return a->stride_h > 1 || a->stride_w > 1 ? NULL : "no strides";
}

static td_status prepare_thin(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    thin_call thin;
    make_thin(call, &thin);
    TDI_TRY(prepare_grad_input(&thin.call, state, scratch, error));
    *scratch += thin_bytes(&thin);
    return TD_OK;
}

/* Writes one line of cells, `apart` cells from each other. */
static void spread_line(const char *from, int64_t count, size_t cell, int64_t apart, int64_t cells, char *to)
{
    for (int64_t i = 0; i < count; i++, from += cell, to += (size_t)apart * cell) {
        int64_t gap = (i + 1 < count ? apart : cells - i * apart) - 1;
        memcpy(to, from, cell);
        memset(to + cell, 0, (size_t)gap * cell);
    }
}

static void spread_image(const thin_call *thin, const tdi_call *call, int64_t n)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *small = &thin->out.shape, *large = &call->out.shape;
    size_t cell = (size_t)large->dim[3] * td_dtype_size(call->out.dtype), line = (size_t)large->dim[2] * cell;
    const char *from = sample(&thin->out, n);
    char *to = sample(&call->out, n);
    for (int64_t y = 0; y < large->dim[1]; y++, to += line)
        if (y % a->stride_h)
            memset(to, 0, line);
        else
            spread_line(from + (size_t)(y / a->stride_h * small->dim[2]) * cell, small->dim[2], cell, a->stride_w,
                        large->dim[2], to);
}

static void conv2d_grad_input_thin_run(const tdi_call *call)
{
    thin_call thin;
    make_thin(call, &thin);
    conv2d_grad_input_run(&thin.call);
    conv_values v = values_of(call, GRAD_INPUT);
    for (int64_t n = first_sample(call), end = n + count_samples(call, &v); n < end; n++)
        spread_image(&thin, call, n);
}

/* In bfloat16 there is so little to compute that writing the gaps may take longest. */
static tdi_confidence thin_confidence(const tdi_call *call)
{
    return call->in[0].dtype == TD_BFLOAT16 ? TDI_LIKELY : TDI_UNLIKELY;
}

const tdi_kernel tdi_cpu_conv2d_grad_input_thin_onednn = {.name = "onednn conv2d_grad_input without its strides",
                                                          .op = &tdi_op_conv2d_grad_input,
                                                          .takes = TDI_TAKES_BOTH,
                                                          .declines = thin_declines,
                                                          .confidence = thin_confidence,
                                                          .splits = TDI_CAN_ROWS,
                                                          .prepare = prepare_thin,
                                                          .packed_cache_bytes = tdi_onednn_packed_cache_bytes,
                                                          .release = tdi_onednn_release,
                                                          .run = conv2d_grad_input_thin_run};
