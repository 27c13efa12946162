/* unary.c - functions of one element, and their derivatives.
 *
 * Where y = f(x) gives the derivative without losing digits, it is computed from y: the input need not be kept, and the
 * function can be the epilogue of a product or convolution. At kinks the derivative is 0 (relu(0), relu6(6)), except
 * where a comment says otherwise. */
#include "ops/op_helpers.h"

#define SELU_ALPHA          1.6732632423543772
#define SELU_SCALE          1.0507009873554805
#define PROBABILITY_EPSILON 1e-7

static const char *const unary_names[TDI_UNARY_COUNT] = {
    [TD_LINEAR] = "linear",
    [TD_RELU] = "relu",
    [TD_TANH] = "tanh",
    [TD_SIGMOID] = "sigmoid",
    [TD_SOFTMAX] = "softmax",
    [TD_LOG_SOFTMAX] = "log_softmax",
    [TD_LEAKY_RELU] = "leaky_relu",
    [TD_RELU6] = "relu6",
    [TD_ELU] = "elu",
    [TD_SELU] = "selu",
    [TD_CELU] = "celu",
    [TD_GELU] = "gelu",
    [TD_SILU] = "silu",
    [TD_SOFTPLUS] = "softplus",
    [TD_SOFTSIGN] = "softsign",
    [TD_EXPONENTIAL] = "exponential",
    [TD_HARD_SIGMOID] = "hard_sigmoid",
    [TD_HARD_SILU] = "hard_silu",
    [TD_HARD_TANH] = "hard_tanh",
    [TD_MISH] = "mish",
    [TD_LOG_SIGMOID] = "log_sigmoid",
    [TD_TANH_SHRINK] = "tanh_shrink",
    [TD_SQUAREPLUS] = "squareplus",
    [TDI_UNARY_LOG] = "log",
    [TDI_UNARY_SQRT] = "sqrt",
    [TDI_UNARY_RSQRT] = "rsqrt",
    [TDI_UNARY_SQUARE] = "square",
    [TDI_UNARY_NEGATE] = "negate",
    [TDI_UNARY_ABS] = "abs",
    [TDI_UNARY_SIGN] = "sign",
    [TDI_UNARY_CLIP_PROBABILITY] = "clip_probability",
};

const char *tdi_unary_name(int kind)
{
    return kind >= 0 && kind < TDI_UNARY_COUNT ? unary_names[kind] : "unknown";
}

bool tdi_unary_grad_from_output(int kind)
{
    switch (kind) {
    case TD_LINEAR:
    case TD_RELU:
    case TD_TANH:
    case TD_SIGMOID:
    case TD_LEAKY_RELU:
    case TD_RELU6:
    case TD_ELU:
    case TD_SELU:
    case TD_CELU:
    case TD_SOFTPLUS:
    case TD_EXPONENTIAL:
    case TD_HARD_SIGMOID:
    case TD_HARD_TANH:
    case TD_LOG_SIGMOID:
    case TDI_UNARY_SQRT:
    case TDI_UNARY_RSQRT:
        return true;
    default:
        return false;
    }
}

/* ---- values: NaN stays NaN ---- */

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static double hard_sigmoid(double x)
{
    return clip(x + 3, 0, 6) / 6;
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static double activation_value(int kind, double x)
{
    switch (kind) {
    case TD_RELU:
        return x < 0 ? 0 : x;
    case TD_TANH:
        return tanh(x);
    case TD_SIGMOID:
        return sigmoid(x);
    case TD_LEAKY_RELU:
        return x < 0 ? 0.2f * x : x;
    case TD_RELU6:
        return clip(x, 0, 6);
    case TD_ELU:
    case TD_CELU:
        return x > 0 ? x : expm1(x);
    case TD_SELU:
        return SELU_SCALE * (x > 0 ? x : SELU_ALPHA * expm1(x));
    case TD_GELU:
        return 0.5 * x * erfc(-x * 0.70710678118654752);
    case TD_SILU:
        return x * sigmoid(x);
    case TD_SOFTPLUS:
        return softplus(x);
    case TD_SOFTSIGN:
        return x / (1 + fabs(x));
    case TD_EXPONENTIAL:
        return exp(x);
    case TD_HARD_SIGMOID:
        return hard_sigmoid(x);
    case TD_HARD_SILU:
        return x * hard_sigmoid(x);
    case TD_HARD_TANH:
        return clip(x, -1, 1);
    case TD_MISH:
        return x * tanh(softplus(x));
    case TD_LOG_SIGMOID:
        return -softplus(-x);
    case TD_TANH_SHRINK:
        return x - tanh(x);
    case TD_SQUAREPLUS:
        return (x + sqrt(x * x + 4)) / 2;
    default:
        return x;
    }
}

static double function_value(int kind, double x)
{
    switch (kind) {
    case TDI_UNARY_LOG:
        return log(x);
    case TDI_UNARY_SQRT:
        return sqrt(x);
    case TDI_UNARY_RSQRT:
        return 1 / sqrt(x);
    case TDI_UNARY_SQUARE:
        return x * x;
    case TDI_UNARY_NEGATE:
        return -x;
    case TDI_UNARY_ABS:
        return fabs(x);
    case TDI_UNARY_SIGN:
        return sign(x);
    default:
        return clip(x, PROBABILITY_EPSILON, 1 - PROBABILITY_EPSILON);
    }
}

float tdi_unary_value(int kind, float x)
{
    return (float)(kind < TD_ACTIVATION_COUNT ? activation_value(kind, (double)x) : function_value(kind, (double)x));
}

/* ---- derivatives ---- */

static double derivative_from_output(int kind, double y)
{
    switch (kind) {
    case TD_RELU:
        return y > 0;
    case TD_TANH:
        return 1 - y * y;
    case TD_SIGMOID:
        return y * (1 - y);
    case TD_LEAKY_RELU:
        return y < 0 ? 0.2f : 1;
    case TD_RELU6:
        return y > 0 && y < 6;
    case TD_ELU:
    case TD_CELU:
        return y > 0 ? 1 : y + 1;
    case TD_SELU:
        return y > 0 ? SELU_SCALE : y + SELU_SCALE * SELU_ALPHA;
    case TD_SOFTPLUS:
        return -expm1(-y);
    case TD_HARD_SIGMOID:
        return y > 0 && y < 1 ? 1.0 / 6 : 0;
    case TD_HARD_TANH:
        return y > -1 && y < 1;
    case TD_LOG_SIGMOID:
        return -expm1(y);
    case TD_EXPONENTIAL:
        return y;
    case TDI_UNARY_SQRT:
        return 0.5 / y;
    case TDI_UNARY_RSQRT:
        return -0.5 * y * y * y;
    default:
        return 1;
    }
}

static double gelu_derivative(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752) + x * exp(-0.5 * x * x) * 0.39894228040143268;
}

static double silu_derivative(double x)
{
    double s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

static double hard_silu_derivative(double x)
{
    return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
}

static double mish_derivative(double x)
{
    double t = tanh(softplus(x));
    return t + x * (1 - t * t) * sigmoid(x);
}

static double softsign_derivative(double x)
{
    double d = 1 + fabs(x);
    return 1 / (d * d);
}

static double derivative_from_input(int kind, double x)
{
    switch (kind) {
    case TD_GELU:
        return gelu_derivative(x);
    case TD_SILU:
        return silu_derivative(x);
    case TD_SOFTSIGN:
        return softsign_derivative(x);
    case TD_HARD_SILU:
        return hard_silu_derivative(x);
    case TD_MISH:
        return mish_derivative(x);
    case TD_TANH_SHRINK:
        return tanh(x) * tanh(x);
    case TD_SQUAREPLUS:
        return (1 + x / sqrt(x * x + 4)) / 2;
    case TDI_UNARY_LOG:
        return 1 / x;
    case TDI_UNARY_SQUARE:
        return 2 * x;
    case TDI_UNARY_NEGATE:
        return -1;
    case TDI_UNARY_ABS:
        return sign(x);
    case TDI_UNARY_SIGN:
        return 0;
    default:
        return x >= PROBABILITY_EPSILON && x <= 1 - PROBABILITY_EPSILON;
    }
}

float tdi_unary_derivative(int kind, float value)
{
    return (float)(tdi_unary_grad_from_output(kind) ? derivative_from_output(kind, (double)value)
                                                    : derivative_from_input(kind, (double)value));
}

/* ---- the two ops ---- */

static int kind_of(const void *attrs)
{
    return ((const tdi_unary_attrs *)attrs)->kind;
}

static td_status unary_infer(tdi_node *node, tdi_error *error)
{
    int kind = kind_of(node->attrs);
    if (kind < 0 || kind >= TDI_UNARY_COUNT || kind == TD_SOFTMAX || kind == TD_LOG_SOFTMAX)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s (number %d) is not an element-wise function",
                        tdi_unary_name(kind), kind);
    TDI_TRY(tdi_want_floats(node, error));
    node->shape = node->in[0]->shape;
    node->dtype = tdi_float_dtype(node);
    for (int i = 1; i < node->n_in; i++)
        TDI_TRY(tdi_want_shape(node, i, &node->shape, error));
    return TD_OK;
}

static void unary_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    int kind = kind_of(node->attrs);
    if (kind == TD_LINEAR)
        dx[0] = dy;
    else if (kind == TDI_UNARY_NEGATE)
        dx[0] = tdi_unary(graph, dy, kind);
    else if (kind != TDI_UNARY_SIGN)
        dx[0] = tdi_unary_grad(graph, tdi_unary_grad_from_output(kind) ? node : node->in[0], dy, kind);
}

static void unary_reference(const tdi_call *call)
{
    int kind = kind_of(call->attrs);
    const float *x = call->in[0].data;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->out.shape);
    for (int64_t i = 0; i < count; i++)
        out[i] = tdi_unary_value(kind, x[i]);
}

static void unary_grad_reference(const tdi_call *call)
{
    int kind = kind_of(call->attrs);
    const float *value = call->in[0].data, *dy = call->in[1].data, *more = call->n_in > 2 ? call->in[2].data : NULL;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->out.shape);
    for (int64_t i = 0; i < count; i++)
        out[i] = (more ? dy[i] + more[i] : dy[i]) * tdi_unary_derivative(kind, value[i]);
}

static void unary_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "%s", tdi_unary_name(kind_of(node->attrs)));
}

const tdi_op tdi_op_unary = {.name = "unary",
                             .min_in = 1,
                             .max_in = 1,
                             .attrs_size = sizeof(tdi_unary_attrs),
                             .bfloat16 = 1,
                             .infer = unary_infer,
                             .gradient = unary_gradient,
                             .reference = unary_reference,
                             .reads = tdi_reads_same,
                             .in_place = 1,
                             .describe = unary_describe,
                             .cheap = true};

const tdi_op tdi_op_unary_grad = {.name = "unary_grad",
                                  .min_in = 2,
                                  .max_in = 3,
                                  .attrs_size = sizeof(tdi_unary_attrs),
                                  .bfloat16 = 7,
                                  .infer = unary_infer,
                                  .no_gradient = "second derivatives are not built",
                                  .reference = unary_grad_reference,
                                  .reads = tdi_reads_same,
                                  .in_place = 1,
                                  .describe = unary_describe};

tdi_node *tdi_unary(tdi_graph *graph, tdi_node *x, int kind)
{
    return tdi_node_create(graph, &tdi_op_unary, &(tdi_unary_attrs){kind}, 1, &x);
}

tdi_node *tdi_unary_grad(tdi_graph *graph, tdi_node *value, tdi_node *dy, int kind)
{
    return tdi_node_create(graph, &tdi_op_unary_grad, &(tdi_unary_attrs){kind}, 2, (tdi_node *[]){value, dy});
}
