/* unary_isa.c - functions of one number and their derivatives: activations, and what stands in TDI_UNARY_.... Also
 * the epilogue of products (vector_loops.h), which applies a bias and an activation. */
#include "cpu/batch_interleaved_isa.h"
#include "cpu/bfloat16_isa.h"
#include "cpu/elementwise/sigmoid_tanh_isa.h"
#include "cpu/math_isa.h"
#include "cpu/vector_loops.h"

/* X(kind, f(x), f'(v) * dy); v is y or x, as tdi_unary_grad_from_output says. */
#define LOOPED_KINDS(X)                                                                                                \
    X(TD_LINEAR, x, dy)                                                                                                \
    X(TD_RELU, x<0.0f ? 0.0f : x, v> 0.0f ? dy : 0.0f)                                                                 \
    X(TD_SIGMOID, math_sigmoid(x), v *(1.0f - v) * dy)                                                                 \
    X(TD_LEAKY_RELU, x < 0.0f ? 0.2f * x : x, v < 0.0f ? 0.2f * dy : dy)                                               \
    X(TD_RELU6, math_clamp(x, 0.0f, 6.0f), ((v > 0.0f) & (v < 6.0f)) ? dy : 0.0f)                                      \
    X(TD_ELU, x > 0.0f ? x : math_expm1(x), v > 0.0f ? dy : (v + 1.0f) * dy)                                           \
    X(TD_CELU, x > 0.0f ? x : math_expm1(x), v > 0.0f ? dy : (v + 1.0f) * dy)                                          \
    X(TD_SELU, 1.05070098735548f * (x > 0.0f ? x : 1.67326324235438f * math_expm1(x)),                                 \
      (v > 0.0f ? 1.05070098735548f : v + 1.7580993408473766f) * dy)                                                   \
    X(TD_GELU, gelu(x), gelu_slope(v) * dy)                                                                            \
    X(TD_SILU, x *math_sigmoid(x), silu_slope(v) * dy)                                                                 \
    X(TD_SOFTPLUS, math_softplus(x), -math_expm1(-v) * dy)                                                             \
    X(TD_SOFTSIGN, x / (1.0f + math_abs(x)), dy / ((1.0f + math_abs(v)) * (1.0f + math_abs(v))))                       \
    X(TD_EXPONENTIAL, math_exp(x), v *dy)                                                                              \
    X(TD_HARD_SIGMOID, math_clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f, ((v > 0.0f) & (v < 1.0f)) ? dy / 6.0f : 0.0f)          \
    X(TD_HARD_SILU, x *(math_clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f), hard_silu_slope(v) * dy)                             \
    X(TD_HARD_TANH, math_clamp(x, -1.0f, 1.0f), ((v > -1.0f) & (v < 1.0f)) ? dy : 0.0f)                                \
    X(TD_MISH, mish(x), mish_slope(v) * dy)                                                                            \
    X(TD_LOG_SIGMOID, -math_softplus(-x), -math_expm1(v) * dy)                                                         \
    X(TD_TANH_SHRINK, x - math_tanh(x), math_tanh(v) * math_tanh(v) * dy)                                              \
    X(TD_SQUAREPLUS, squareplus(x), squareplus(v) / squareplus_root(v) * dy)                                           \
    X(TDI_UNARY_LOG, math_log(x), dy / v)                                                                              \
    X(TDI_UNARY_SQRT, __builtin_sqrtf(x), 0.5f / v * dy)                                                               \
    X(TDI_UNARY_RSQRT, 1.0f / __builtin_sqrtf(x), -0.5f * v * v * v * dy)                                              \
    X(TDI_UNARY_SQUARE, x *x, 2.0f * v * dy)                                                                           \
    X(TDI_UNARY_NEGATE, -x, -dy)                                                                                       \
    X(TDI_UNARY_ABS, math_abs(x), v > 0.0f ? dy : v < 0.0f ? -dy : v * dy)                                             \
    X(TDI_UNARY_SIGN, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x, 0.0f * v * dy)                                           \
    X(TDI_UNARY_CLIP_PROBABILITY, math_clamp(x, 1e-7f, (float)(1 - 1e-7)),                                             \
      ((v >= 1e-7f) & (v <= (float)(1 - 1e-7))) ? dy : 0.0f)

/* tanh has a loop of its own, tanh_loop, so that its value here is unused. */
#define UNARY_KINDS(X) LOOPED_KINDS(X) X(TD_TANH, x, (1.0f - v * v) * dy)

#define COUNT_KIND(kind, value, slope) +1
_Static_assert(UNARY_KINDS(COUNT_KIND) == TDI_UNARY_COUNT - 2,
               "every function but softmax and log-softmax has its loop");

/* Beyond 15 the remaining share of the normal distribution is not a normal number. */
static inline float gelu_reach(float x)
{
    float a = math_abs(x);
    return a > 15.0f ? 15.0f : a;
}

static inline float gelu(float x)
{
    float a = gelu_reach(x), above = math_normal_above(a, math_bell(a));
    return x * (x < 0.0f ? above : 1.0f - above);
}

static inline float gelu_slope(float x)
{
    float a = gelu_reach(x), bell = math_bell(a), above = math_normal_above(a, bell);
    return (x < 0.0f ? above : 1.0f - above) + math_with_sign(a, x) * (bell * 0.398942280401432678f);
}

/* From 20 on tanh(softplus(x)) is 1. */
static inline float mish_reach(float x)
{
    return x > 20.0f ? 20.0f : x;
}

/* tanh(softplus(x)) is n / (n + 2), n = e^2x + 2 e^x. */
static inline float mish(float x)
{
    float e = math_exp(mish_reach(x)), n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
}

/* Below -104 e^x is 0, and the number that it is multiplied by must be finite. */
static inline float mish_slope(float x)
{
    float reach = math_clamp(x, -104.0f, 20.0f), e = math_exp(reach), n = e * (e + 2.0f), d = n + 2.0f;
    return (n + 4.0f * reach * e * (1.0f + e) / d) / d;
}

/* sqrt(x^2 + 4) */
static inline float squareplus_root(float x)
{
    float a = math_abs(x);
    return a < 1e9f ? __builtin_sqrtf(a * a + 4.0f) : a;
}

/* (x + root) / 2. Where x is negative it is computed as 2 / (root - x), which loses no digits. */
static inline float squareplus(float x)
{
    float half = 0.5f * squareplus_root(x) + 0.5f * math_abs(x);
    return x < 0.0f ? 1.0f / half : half;
}

static inline float silu_slope(float x)
{
    float s = math_sigmoid(x);
    return s * (1.0f + x * (1.0f - s));
}

static inline float hard_silu_slope(float x)
{
    float slope = (2.0f * x + 3.0f) / 6.0f;
    return x <= -3.0f ? 0.0f : x >= 3.0f ? 1.0f : slope;
}

TDI_INLINE void tanh_vectors(const float *from, float *to, int count)
{
    tdi_vector x[TDI_MOST_VECTORS];
    for (int i = 0; i < count; i++)
        x[i] = tdi_load(from + i * TDI_WIDTH);
    tdi_tanh_vectors(x, x, count);
    for (int i = 0; i < count; i++)
        tdi_store(to + i * TDI_WIDTH, x[i]);
}

static void tanh_loop(int64_t n, const float *from, float *to)
{
    enum { VECTORS = TDI_WIDTH == 16 ? TDI_MOST_VECTORS : 2 }; /* vectors at a time, in 32 or 16 registers */
    int64_t i = 0;
    for (; i + VECTORS * TDI_WIDTH <= n; i += VECTORS * TDI_WIDTH)
        tanh_vectors(from + i, to + i, VECTORS);
    for (; i < n; i += TDI_WIDTH) {
        tdi_vector x = tdi_get_first(false, from, i, tdi_least(n - i, TDI_WIDTH));
        tdi_tanh_vectors(&x, &x, 1);
        tdi_put_first(false, to, i, tdi_least(n - i, TDI_WIDTH), x);
    }
}

#define VALUE_LOOP(kind, value, slope)                                                                                 \
    case kind:                                                                                                         \
        TDI_LANES for (int64_t i = 0; i < n; i++)                                                                      \
        {                                                                                                              \
            float x = from[i];                                                                                         \
            to[i] = (value);                                                                                           \
        }                                                                                                              \
        break;
static void unary_loop(int function, int64_t n, const float *from, float *to)
{
    switch (function) {
        LOOPED_KINDS(VALUE_LOOP)
    case TD_TANH:
        tanh_loop(n, from, to);
        break;
    default:
        break;
    }
}

#define SLOPE_LOOP(kind, value, slope)                                                                                 \
    case kind:                                                                                                         \
        TDI_LANES for (int64_t i = 0; i < n; i++)                                                                      \
        {                                                                                                              \
            float v = at[i], dy = with[i];                                                                             \
            (void)v;                                                                                                   \
            to[i] = (slope);                                                                                           \
        }                                                                                                              \
        break;
static void slope_loop(int function, int64_t n, const float *at, const float *with, float *to)
{
    switch (function) {
        UNARY_KINDS(SLOPE_LOOP)
    default:
        break;
    }
}

static void unary_tile(const tdi_call *call, int64_t at, int64_t n)
{
    float from[TDI_TILE], made[TDI_TILE], *to = tdi_write_tile(&call->out, at, made);
    unary_loop(((const tdi_unary_attrs *)call->attrs)->kind, n, tdi_read_tile(&call->in[0], at, n, from), to);
    tdi_keep_tile(&call->out, at, n, to);
}

static void unary_plain(const tdi_call *call)
{
    tdi_each_tile(call, unary_tile);
}

/* to = a + b where y > 0, else 0. `b` NULL: to = a there. */
TDI_INLINE void relu_slope_vector(bool narrow, const void *y, const void *a, const void *b, int64_t i, int64_t count,
                                  void *to)
{
    tdi_vector zero = {0}, dy = tdi_get_first(narrow, a, i, count);
    if (b)
        dy += tdi_get_first(narrow, b, i, count);
    tdi_put_first(narrow, to, i, count, tdi_select(tdi_get_first(narrow, y, i, count) > zero, dy, zero));
}

TDI_INLINE void relu_slope(bool narrow, int64_t n, const void *y, const void *a, const void *b, void *to)
{
    int64_t i = 0;
    for (; i + TDI_WIDTH <= n; i += TDI_WIDTH)
        relu_slope_vector(narrow, y, a, b, i, TDI_WIDTH, to);
    if (i < n)
        relu_slope_vector(narrow, y, a, b, i, n - i, to);
}

/* Whether the call is a rectifier's and all bfloat16, which is the commonest large case: it needs no tiles of floats.
 */
static bool is_narrow_relu(const tdi_call *call)
{
    bool narrow = call->out.dtype == TD_BFLOAT16 && ((const tdi_unary_attrs *)call->attrs)->kind == TD_RELU;
    for (int i = 0; i < call->n_in; i++)
        narrow = narrow && call->in[i].dtype == TD_BFLOAT16;
    return narrow;
}

static void relu_grad_tile(const tdi_call *call, int64_t at, int64_t n)
{
    const void *y = tdi_element(&call->in[0], at), *dy = tdi_element(&call->in[1], at);
    void *to = tdi_element(&call->out, at);
    if (call->n_in > 2)
        relu_slope(true, n, y, dy, tdi_element(&call->in[2], at), to);
    else
        relu_slope(true, n, y, dy, NULL, to);
}

static void unary_grad_tile(const tdi_call *call, int64_t at, int64_t n)
{
    float value[TDI_TILE], dy[TDI_TILE], more[TDI_TILE], made[TDI_TILE], *to = tdi_write_tile(&call->out, at, made);
    const float *v = tdi_read_tile(&call->in[0], at, n, value), *d = tdi_read_tile(&call->in[1], at, n, dy);
    if (call->n_in > 2)
        relu_slope(false, n, v, d, tdi_read_tile(&call->in[2], at, n, more), to);
    else
        slope_loop(((const tdi_unary_attrs *)call->attrs)->kind, n, v, d, to);
    tdi_keep_tile(&call->out, at, n, to);
}

static const char *grad_declines(const tdi_call *call)
{
    if (call->n_in > 2 && ((const tdi_unary_attrs *)call->attrs)->kind != TD_RELU)
        return "a sum that is not a relu's";
    return NULL;
}

static void unary_grad_plain(const tdi_call *call)
{
    tdi_each_tile(call, is_narrow_relu(call) ? relu_grad_tile : unary_grad_tile);
}

static tdi_batch_interleaving accepts_interleaving(const tdi_call *call)
{
    return call->out.shape.rank > 1 ? TDI_ACCEPTS_INTERLEAVING : TDI_NO_INTERLEAVING;
}

static td_status prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    (void)error;
    *scratch = tdi_is_batch_interleaved(call) ? tdi_batch_interleaved_room(call) : 0;
    return TD_OK;
}

static void unary_run(const tdi_call *call)
{
    if (tdi_is_batch_interleaved(call))
        tdi_batch_interleaved_run(call, unary_plain);
    else
        unary_plain(call);
}

static void unary_grad_run(const tdi_call *call)
{
    if (tdi_is_batch_interleaved(call))
        tdi_batch_interleaved_run(call, unary_grad_plain);
    else
        unary_grad_plain(call);
}

TDI_CPU_KERNEL(unary, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT,
               .interleaving = accepts_interleaving, .prepare = prepare, .run = unary_run);
TDI_CPU_KERNEL(unary_grad, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT,
               .declines = grad_declines, .interleaving = accepts_interleaving, .prepare = prepare,
               .run = unary_grad_run);

/* ---- the epilogue of a matmul or convolution ---- */

static void add_bias(int64_t n, const float *bias, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] += bias[i];
}

static void epilogue(int64_t rows, int64_t columns, int64_t stride, const float *bias, int activation, float *to)
{
    for (int64_t r = 0; r < rows; r++, to += stride) {
        if (bias)
            add_bias(columns, bias, to);
        if (activation != TD_LINEAR)
            unary_loop(activation, columns, to, to);
    }
}

static void activate_bfloat16(int64_t n, int activation, tdi_bfloat16 *to)
{
    float tile[TDI_TILE];
    for (int64_t i = 0; activation != TD_LINEAR && i < n; i += TDI_TILE) {
        int64_t now = n - i < TDI_TILE ? n - i : TDI_TILE;
        tdi_widen_array(now, to + i, tile);
        unary_loop(activation, now, tile, tile);
        tdi_narrow_array(now, tile, to + i);
    }
}

const tdi_vector_loops TDI_ISA_NAME(tdi_vector_loops) = {.epilogue = epilogue,
                                                         .slope = slope_loop,
                                                         .activate_bfloat16 = activate_bfloat16,
                                                         .widen = tdi_widen_array,
                                                         .narrow = tdi_narrow_array,
                                                         .pack = TDI_ISA_NAME(tdi_pack),
                                                         .update = TDI_ISA_NAME(tdi_update_stretch),
                                                         .convert_bytes = TDI_ISA_NAME(tdi_convert_bytes)};
