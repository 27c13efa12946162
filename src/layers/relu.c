/* relu.c - ReLU: x above the threshold, at most max_value; below it negative_slope * (x - threshold).
 *
 * As Keras does, it is x - negative_slope * relu(threshold - x) of the x that is 0 up to the threshold. */
#include <float.h>
#include <math.h>

#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(NULLABLE, td_relu_args, max_value, "max_value", 0),
    TDI_FIELD(FLOAT, td_relu_args, negative_slope, "negative_slope", 0),
    TDI_FIELD(FLOAT, td_relu_args, threshold, "threshold", 0),
    {0},
};

static td_status check(const char *what, float number, tdi_error *error)
{
    return number >= 0 && isfinite(number)
               ? TD_OK
               : tdi_fail(error, TD_INVALID_ARGUMENT, "%s is %g: it must be a finite number of at least 0", what,
                          (double)number);
}

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_relu_args *args = layer->args;
    (void)n_in;
    *out = in[0];
    TDI_TRY(check("max_value", args->max_value, error));
    TDI_TRY(check("negative_slope", args->negative_slope, error));
    return check("threshold", args->threshold, error);
}

static tdi_node *scalar(tdi_graph *graph, float number)
{
    return tdi_fill(graph, number, &(td_shape){0});
}

/* x where it is above the threshold, else 0. With d = relu(x - threshold), d / max(d, tiny) is 1 there, and 0
 * elsewhere; as a whole number it has no gradient. */
static tdi_node *above(tdi_graph *graph, tdi_node *x, float threshold)
{
    tdi_node *d = tdi_unary(graph, tdi_affine(graph, x, 1, -threshold), TD_RELU);
    tdi_node *is_above = tdi_binary(graph, TDI_DIVIDE, d, tdi_binary(graph, TDI_MAXIMUM, d, scalar(graph, FLT_MIN)));
    tdi_node *whole = tdi_cast(graph, tdi_cast(graph, is_above, TD_INT32), TD_FLOAT32);
    return tdi_binary(graph, TDI_MULTIPLY, x, whole);
}

static tdi_node *positive_part(tdi_graph *graph, tdi_node *x, const td_relu_args *args)
{
    bool six = args->max_value == 6 && args->threshold == 0;
    if (six)
        return tdi_unary(graph, x, TD_RELU6);
    tdi_node *y = args->threshold > 0 ? above(graph, x, args->threshold) : tdi_unary(graph, x, TD_RELU);
    return args->max_value == 0 ? y : tdi_binary(graph, TDI_MINIMUM, y, scalar(graph, args->max_value));
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_relu_args *args = layer->args;
    tdi_graph *graph = emit->graph;
    (void)n_in;
    tdi_node *y = positive_part(graph, in[0], args);
    if (args->negative_slope == 0)
        return y;
    tdi_node *below = tdi_unary(graph, tdi_affine(graph, in[0], -1, args->threshold), TD_RELU);
    return tdi_binary(graph, TDI_SUBTRACT, y, tdi_affine(graph, below, args->negative_slope, 0));
}

const tdi_layer_type tdi_layer_type_relu = {
    .class_name = "ReLU",
    .base_name = "re_lu",
    .args_size = sizeof(td_relu_args),
    .fields = fields,
    .min_in = 1,
    .max_in = 1,
    .infer = infer,
    .emit = emit,
};

td_tensor *td_relu_(const td_relu_args *args)
{
    return TDI_LAYER_APPLY(relu, args, 1, &args->x);
}
