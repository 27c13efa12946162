/* elementwise_isa.c - affine, fill, identity, cast, the gradient of a batch's mean, and sigmoid cross-entropy. */
#include "cpu/bfloat16_isa.h"
#include "cpu/math_isa.h"

enum { ANY_SPLIT = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT };

/* Defines `stem`_run, which calls `stem`_loop(call, at, n) for each run of elements. */
#define EACH_RUN(stem)                                                                                                 \
    static void stem##_run(const tdi_call *call)                                                                       \
    {                                                                                                                  \
        tdi_runs runs = tdi_call_runs(call);                                                                           \
        for (int64_t r = 0; r < runs.count; r++)                                                                       \
            stem##_loop(call, runs.first + r * runs.stride, runs.length);                                              \
    }

static const float *input(const tdi_call *call, int i, int64_t at)
{
    return (const float *)call->in[i].data + at;
}

static float *output(const tdi_call *call, int64_t at)
{
    return (float *)call->out.data + at;
}

static void affine_tile(const tdi_call *call, int64_t at, int64_t n)
{
    float scale = ((const tdi_affine_attrs *)call->attrs)->scale,
          shift = ((const tdi_affine_attrs *)call->attrs)->shift;
    float from[TDI_TILE], made[TDI_TILE], *to = tdi_write_tile(&call->out, at, made);
    const float *x = tdi_read_tile(&call->in[0], at, n, from);
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = scale * x[i] + shift;
    tdi_keep_tile(&call->out, at, n, to);
}

static void affine_run(const tdi_call *call)
{
    tdi_each_tile(call, affine_tile);
}
TDI_CPU_KERNEL(affine, .takes = TDI_TAKES_BOTH, .splits = ANY_SPLIT, .run = affine_run);

static void fill_with(float value, int64_t n, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = value;
}

static void fill_loop(const tdi_call *call, int64_t at, int64_t n)
{
    fill_with(((const tdi_fill_attrs *)call->attrs)->value, n, output(call, at));
}
EACH_RUN(fill)
TDI_CPU_KERNEL(fill, .splits = ANY_SPLIT, .run = fill_run);

static void batch_mean_grad_loop(const tdi_call *call, int64_t at, int64_t n)
{
    int64_t rows = call->out.shape.rank ? call->out.shape.dim[0] : 1;
    int64_t per_row = rows ? tdi_shape_elements(&call->out.shape) / rows : 1;
    float dy = *(const float *)call->in[0].data;
    fill_with((float)((double)dy * (double)call->control->inverse_rows / (double)per_row), n, output(call, at));
}
EACH_RUN(batch_mean_grad)
TDI_CPU_KERNEL(batch_mean_grad, .splits = ANY_SPLIT, .run = batch_mean_grad_run);

static void identity_loop(const tdi_call *call, int64_t at, int64_t n)
{
    size_t size = td_dtype_size(call->out.dtype);
    const char *from = call->in[0].data;
    char *to = call->out.data;
    if (to != from)
        memcpy(to + (size_t)at * size, from + (size_t)at * size, (size_t)n * size);
}
EACH_RUN(identity)
TDI_CPU_KERNEL(identity, .takes = TDI_TAKES_BOTH, .splits = ANY_SPLIT, .run = identity_run);

/* ---- cast ---- */

static const char *cast_declines(const tdi_call *call)
{
    bool to_float = call->out.dtype == TD_FLOAT32, from_float = call->in[0].dtype == TD_FLOAT32;
    td_dtype other = to_float ? call->in[0].dtype : call->out.dtype;
    bool known = other == TD_INT32 || other == TD_BFLOAT16 || (to_float && other == TD_UINT8) || other == TD_FLOAT32;
    return known && (to_float || from_float) ? NULL : "no vector loop between these types";
}

/* Truncates. A number out of range becomes the nearest end of the range, NaN becomes zero. */
static inline int32_t to_int32(float x)
{
    float clamped = x < -2147483648.0f ? -2147483648.0f : x > 2147483520.0f ? 2147483520.0f : x;
    int32_t whole = (int32_t)(x == x ? clamped : 0.0f);
    return x >= 2147483648.0f ? INT32_MAX : whole;
}

static void cast_loop(const tdi_call *call, int64_t at, int64_t n)
{
    const void *from = call->in[0].data;
    float *to = call->out.data;
    if (call->out.dtype == TD_BFLOAT16) {
        tdi_narrow_array(n, (const float *)from + at, (tdi_bfloat16 *)call->out.data + at);
    } else if (call->in[0].dtype == TD_BFLOAT16) {
        tdi_widen_array(n, (const tdi_bfloat16 *)from + at, to + at);
    } else if (call->out.dtype == TD_INT32) {
        const float *x = (const float *)from + at;
        int32_t *whole = (int32_t *)call->out.data + at;
        TDI_LANES for (int64_t i = 0; i < n; i++) whole[i] = to_int32(x[i]);
    } else if (call->in[0].dtype == TD_INT32) {
        const int32_t *x = (const int32_t *)from + at;
        TDI_LANES for (int64_t i = 0; i < n; i++) to[at + i] = (float)x[i];
    } else if (call->in[0].dtype == TD_UINT8) {
        const uint8_t *x = (const uint8_t *)from + at;
        TDI_LANES for (int64_t i = 0; i < n; i++) to[at + i] = (float)x[i];
    } else {
        identity_loop(call, at, n);
    }
}
EACH_RUN(cast)
TDI_CPU_KERNEL(cast, .takes = TDI_TAKES_BOTH, .splits = ANY_SPLIT, .declines = cast_declines, .run = cast_run);

/* ---- sigmoid cross-entropy ---- */

static inline float sigmoid_loss(float x, float target)
{
    float positive = x < 0.0f ? 0.0f : x;
    return positive - x * target + math_log1p_unit(math_exp(-math_abs(x)));
}

static inline float sigmoid_loss_slope(float x, float target)
{
    return math_sigmoid(x) - target;
}

static void sigmoid_cross_entropy_loop(const tdi_call *call, int64_t at, int64_t n)
{
    const float *x = input(call, 0, at), *target = input(call, 1, at);
    float *to = output(call, at);
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = sigmoid_loss(x[i], target[i]);
}
EACH_RUN(sigmoid_cross_entropy)
TDI_CPU_KERNEL(sigmoid_cross_entropy, .splits = ANY_SPLIT, .run = sigmoid_cross_entropy_run);

/* Makes the losses too, as an extra output in the fourth input. */
static void sigmoid_both_loop(const tdi_call *call, int64_t at, int64_t n)
{
    const float *x = input(call, 0, at), *target = input(call, 1, at), *dloss = input(call, 2, at);
    float *to = output(call, at), *loss = (float *)call->in[3].data + at;
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        loss[i] = sigmoid_loss(x[i], target[i]);
        to[i] = sigmoid_loss_slope(x[i], target[i]) * dloss[i];
    }
}

static void sigmoid_cross_entropy_grad_loop(const tdi_call *call, int64_t at, int64_t n)
{
    const float *x = input(call, 0, at), *target = input(call, 1, at), *dloss = input(call, 2, at);
    float *to = output(call, at);
    if (call->n_in > 3) {
        sigmoid_both_loop(call, at, n);
        return;
    }
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = sigmoid_loss_slope(x[i], target[i]) * dloss[i];
}
EACH_RUN(sigmoid_cross_entropy_grad)
TDI_CPU_KERNEL(sigmoid_cross_entropy_grad, .splits = ANY_SPLIT, .run = sigmoid_cross_entropy_grad_run);
