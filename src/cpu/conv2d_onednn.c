/* conv2d_onednn.c - convolution and its two gradients by oneDNN primitives.
 *
 * Activations stay channels last; only the weights are in the layout that the library likes ("any"), copied there, or
 * back, on each run. Left the choice of an activation's layout, or given the weights as they are, the library takes far
 * slower ways, up to its own plain reference: that one is refused. The scratchpad is the lane's, so that lanes and
 * replicas never share one. */
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels.h"
#include "cpu/primitive_onednn.h"
#include "ops/common.h"

typedef enum direction { FORWARD, GRAD_INPUT, GRAD_FILTER } direction;

enum { MAX_ARGUMENTS = 5, ALIGNMENT = 64 };

typedef struct conv_state {
    direction way;
    int64_t first; /* sample of this lane's share */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    tdi_onednn_convolution operands;
    tdi_md filter_layout;                  /* [kh, kw, c / groups, f] */
    dnnl_primitive_t convolution, reorder; /* reorder NULL: the library likes the filter as it is */
    dnnl_memory_t src, dst, filter, weights, bias, scratchpad;
    size_t weights_bytes, scratchpad_bytes;
} conv_state;

/* ---- description ---- */

/* The three values of a call, whichever way it goes; shapes resolved. */
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

static dnnl_data_type_t type_of(td_dtype dtype)
{
    return dtype == TD_BFLOAT16 ? dnnl_bf16 : dnnl_f32;
}

/* [n, h, w, c] as oneDNN orders extents, n c h w, with the strides of channels last. */
static dnnl_status_t describe_image(tdi_md *md, const tdi_value *image, int64_t samples)
{
    int64_t h = image->shape.dim[1], w = image->shape.dim[2], c = image->shape.dim[3];
    dnnl_dims_t dims = {samples, c, h, w}, strides = {h * w * c, 1, w * c, c};
    return tdi_md_create(md, 4, dims, type_of(image->dtype), strides);
}

/* [kh, kw, c / groups, f] as (groups,) out, in, h, w; in the library's layout of `type`, or as it is, float32. */
static dnnl_status_t describe_filter(tdi_md *md, const td_shape *filter, int groups, bool any, dnnl_data_type_t type)
{
    int64_t h = filter->dim[0], w = filter->dim[1], in = filter->dim[2], out = filter->dim[3];
    dnnl_dims_t dims = {groups, out / groups, in, h, w}, strides = {out / groups, 1, out, w * in * out, in * out};
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

static dnnl_status_t describe(conv_state *state, const tdi_call *call, int64_t samples)
{
    const tdi_conv2d_attrs *attrs = call->attrs;
    conv_values v = values_of(call, state->way);
    const td_shape *x = &v.x->shape, *filter = &v.filter->shape, *y = &v.y->shape;
    tdi_onednn_convolution *c = &state->operands;
    set_window(c, 0, x->dim[1], filter->dim[0], y->dim[1], attrs->stride_h, attrs->dilation_h, attrs->padding,
               attrs->sides.top, attrs->sides.bottom);
    set_window(c, 1, x->dim[2], filter->dim[1], y->dim[2], attrs->stride_w, attrs->dilation_w, attrs->padding,
               attrs->sides.left, attrs->sides.right);
    c->has_bias = v.bias && v.bias->shape.rank;
    dnnl_data_type_t weights = state->way == GRAD_FILTER ? dnnl_f32 : type_of(v.x->dtype);
    dnnl_status_t status = describe_image(&c->src, v.x, samples);
    if (status == dnnl_success)
        status = describe_image(&c->dst, v.y, samples);
    if (status == dnnl_success)
        status = describe_filter(&c->weights, filter, attrs->groups, true, weights);
    if (status == dnnl_success)
        status = describe_filter(&state->filter_layout, filter, attrs->groups, false, dnnl_f32);
    if (status == dnnl_success && c->has_bias)
        status = tdi_md_create(&c->bias, 1, (dnnl_dims_t){y->dim[3]}, dnnl_f32, (dnnl_dims_t){1});
    return status;
}

/* ---- making ---- */

static void conv_release(void *pointer)
{
    conv_state *s = pointer;
    dnnl_memory_t memories[] = {s->src, s->dst, s->filter, s->weights, s->bias, s->scratchpad};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    if (s->convolution)
        dnnl_primitive_destroy(s->convolution);
    if (s->reorder)
        dnnl_primitive_destroy(s->reorder);
    if (s->stream)
        dnnl_stream_destroy(s->stream);
    if (s->engine)
        dnnl_engine_destroy(s->engine);
    tdi_md_destroy(&s->operands.src);
    tdi_md_destroy(&s->operands.weights);
    tdi_md_destroy(&s->operands.bias);
    tdi_md_destroy(&s->operands.dst);
    tdi_md_destroy(&s->filter_layout);
    free(s);
}

static dnnl_status_t create_gradient(const conv_state *s, const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *pd)
{
    tdi_onednn_convolution forward = s->operands;
    dnnl_primitive_desc_t hint = NULL;
    forward.has_bias = 0;
    dnnl_status_t status = tdi_onednn_forward(&hint, s->engine, &forward, attr);
    if (status != dnnl_success)
        return status;
    status = s->way == GRAD_INPUT ? tdi_onednn_backward_data(pd, s->engine, &s->operands, attr, hint)
                                  : tdi_onednn_backward_weights(pd, s->engine, &s->operands, attr, hint);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

static dnnl_status_t create_description(const conv_state *s, dnnl_primitive_desc_t *pd)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status =
            s->way == FORWARD ? tdi_onednn_forward(pd, s->engine, &s->operands, attr) : create_gradient(s, attr, pd);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return status;
}

static dnnl_status_t create_memory(const conv_state *s, tdi_md_view md, dnnl_memory_t *memory)
{
    return dnnl_memory_create(memory, md, s->engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t create_reorder(conv_state *s, tdi_md_view weights)
{
    tdi_md_view filter = TDI_MD_VIEW(s->filter_layout);
    bool back = s->way == GRAD_FILTER;
    return tdi_onednn_reorder(s->engine, back ? weights : filter, back ? filter : weights, &s->reorder);
}

static dnnl_status_t create_memories(conv_state *s, const_dnnl_primitive_desc_t pd)
{
    bool back = s->way == GRAD_FILTER;
    tdi_md_view weights =
        dnnl_primitive_desc_query_md(pd, back ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    tdi_md_view scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    s->weights_bytes = dnnl_memory_desc_get_size(weights);
    s->scratchpad_bytes = dnnl_memory_desc_get_size(scratchpad);
    dnnl_status_t status = create_reorder(s, weights);
    if (status == dnnl_success)
        status = create_memory(s, TDI_MD_VIEW(s->operands.src), &s->src);
    if (status == dnnl_success)
        status = create_memory(s, TDI_MD_VIEW(s->operands.dst), &s->dst);
    if (status == dnnl_success)
        status = create_memory(s, TDI_MD_VIEW(s->filter_layout), &s->filter);
    if (status == dnnl_success)
        status = create_memory(s, weights, &s->weights);
    if (status == dnnl_success && s->operands.has_bias)
        status = create_memory(s, TDI_MD_VIEW(s->operands.bias), &s->bias);
    return status == dnnl_success ? create_memory(s, scratchpad, &s->scratchpad) : status;
}

static td_status create(conv_state *s, const tdi_call *call, int64_t samples, tdi_error *error)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_engine_create(&s->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = describe(s, call, samples);
    if (status == dnnl_success)
        status = create_description(s, &pd);
    if (status != dnnl_success)
        return tdi_onednn_refused(status, error);
    td_status usable = tdi_onednn_check(pd, error);
    if (usable == TD_OK) {
        status = dnnl_primitive_create(&s->convolution, pd);
        if (status == dnnl_success)
            status = create_memories(s, pd);
    }
    dnnl_primitive_desc_destroy(pd);
    if (usable != TD_OK)
        return usable;
    return status == dnnl_success ? TD_OK : tdi_onednn_refused(status, error);
}

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static td_status prepare(const tdi_call *call, direction way, void **state, size_t *scratch, tdi_error *error)
{
    bool rows = call->split == TDI_ROWS;
    int64_t samples = rows ? call->end - call->begin : values_of(call, way).x->shape.dim[0];
    if (samples == 0)
        return TD_OK;
    conv_state *s = calloc(1, sizeof *s);
    if (!s)
        return tdi_no_memory(error);
    s->way = way;
    s->first = rows ? call->begin : 0;
    int threads = tdi_cpu_enter_thread();
    td_status status = create(s, call, samples, error);
    tdi_cpu_leave_thread(threads);
    if (status != TD_OK) {
        conv_release(s);
        return status;
    }
    *scratch = rounded(s->weights_bytes) + rounded(s->scratchpad_bytes);
    *state = s;
    return TD_OK;
}

static td_status prepare_forward(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    return prepare(call, FORWARD, state, scratch, error);
}

static td_status prepare_grad_input(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    return prepare(call, GRAD_INPUT, state, scratch, error);
}

static td_status prepare_grad_filter(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    return prepare(call, GRAD_FILTER, state, scratch, error);
}

/* ---- running ---- */

static void *sample(const tdi_value *value, int64_t n)
{
    const td_shape *shape = &value->shape;
    return (char *)value->data +
           n * shape->dim[1] * shape->dim[2] * shape->dim[3] * (int64_t)td_dtype_size(value->dtype);
}

static void bind_all(conv_state *s, const tdi_call *call)
{
    conv_values v = values_of(call, s->way);
    char *scratch = call->scratch;
    tdi_onednn_bind(s->src, sample(v.x, s->first));
    tdi_onednn_bind(s->dst, sample(v.y, s->first));
    tdi_onednn_bind(s->filter, v.filter->data);
    tdi_onednn_bind(s->weights, s->reorder ? (void *)scratch : v.filter->data);
    tdi_onednn_bind(s->scratchpad, scratch + rounded(s->weights_bytes));
    if (s->bias)
        tdi_onednn_bind(s->bias, v.bias->data);
}

static void run_reorder(const conv_state *s, dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    if (s->reorder)
        dnnl_primitive_execute(s->reorder, s->stream, 2, arguments);
}

static void conv2d_run(const tdi_call *call)
{
    conv_state *s = call->state;
    if (!s)
        return;
    bind_all(s, call);
    run_reorder(s, s->filter, s->weights);
    const dnnl_exec_arg_t arguments[MAX_ARGUMENTS] = {{DNNL_ARG_SRC, s->src},
                                                      {DNNL_ARG_WEIGHTS, s->weights},
                                                      {DNNL_ARG_DST, s->dst},
                                                      {DNNL_ARG_SCRATCHPAD, s->scratchpad},
                                                      {DNNL_ARG_BIAS, s->bias}};
    dnnl_primitive_execute(s->convolution, s->stream, s->bias ? 5 : 4, arguments);
    const td_shape *y = &call->out.shape;
    int64_t rows = (call->split == TDI_ROWS ? call->end - call->begin : y->dim[0]) * y->dim[1] * y->dim[2];
    int activation = ((const tdi_conv2d_attrs *)call->attrs)->activation;
    if (call->out.dtype == TD_BFLOAT16)
        tdi_cpu_loops()->activate_bfloat16(rows * y->dim[3], activation, sample(&call->out, s->first));
    else
        tdi_cpu_loops()->epilogue(1, rows * y->dim[3], 0, NULL, activation, sample(&call->out, s->first));
}

static void conv2d_grad_input_run(const tdi_call *call)
{
    conv_state *s = call->state;
    if (!s)
        return;
    bind_all(s, call);
    run_reorder(s, s->filter, s->weights);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_DIFF_SRC, s->src},
                                         {DNNL_ARG_WEIGHTS, s->weights},
                                         {DNNL_ARG_DIFF_DST, s->dst},
                                         {DNNL_ARG_SCRATCHPAD, s->scratchpad}};
    dnnl_primitive_execute(s->convolution, s->stream, 4, arguments);
}

static void conv2d_grad_filter_run(const tdi_call *call)
{
    conv_state *s = call->state;
    if (!s)
        return;
    bind_all(s, call);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, s->src},
                                         {DNNL_ARG_DIFF_WEIGHTS, s->weights},
                                         {DNNL_ARG_DIFF_DST, s->dst},
                                         {DNNL_ARG_SCRATCHPAD, s->scratchpad}};
    dnnl_primitive_execute(s->convolution, s->stream, 4, arguments);
    run_reorder(s, s->weights, s->filter);
}

const tdi_kernel tdi_cpu_conv2d_onednn = {.name = "onednn conv2d",
                                          .op = &tdi_op_conv2d,
                                          .takes = TDI_TAKES_BOTH,
                                          .splits = TDI_CAN_ROWS,
                                          .prepare = prepare_forward,
                                          .release = conv_release,
                                          .run = conv2d_run};

const tdi_kernel tdi_cpu_conv2d_grad_input_onednn = {.name = "onednn conv2d_grad_input",
                                                     .op = &tdi_op_conv2d_grad_input,
                                                     .takes = TDI_TAKES_BOTH,
                                                     .splits = TDI_CAN_ROWS,
                                                     .prepare = prepare_grad_input,
                                                     .release = conv_release,
                                                     .run = conv2d_grad_input_run};

const tdi_kernel tdi_cpu_conv2d_grad_filter_onednn = {.name = "onednn conv2d_grad_filter",
                                                      .op = &tdi_op_conv2d_grad_filter,
                                                      .takes = TDI_TAKES_BOTH,
                                                      .prepare = prepare_grad_filter,
                                                      .release = conv_release,
                                                      .run = conv2d_grad_filter_run};
