/* relu.c - ReLU: the activation as a layer, with max_value. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(NULLABLE, td_relu_args, max_value, "max_value", 0),
    TDI_FIXED_FIELD("negative_slope", "0.0"),
    TDI_FIXED_FIELD("threshold", "0.0"),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    float highest = ((const td_relu_args *)layer->args)->max_value;
    (void)n_in;
    *out = in[0];
    return highest == 0 || highest == 6
               ? TD_OK
               : tdi_fail(error, TD_UNSUPPORTED, "max_value is %g: Tandem knows none and 6", (double)highest);
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_relu_args *args = layer->args;
    (void)n_in;
    return tdi_activation_emit(emit->graph, in[0], args->max_value == 0 ? TD_RELU : TD_RELU6);
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
