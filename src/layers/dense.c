/* dense.c - Dense: activation(x . kernel + bias) on the last axis. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(INT64, td_dense_args, units, "units", 0),
    TDI_FIELD(ACTIVATION, td_dense_args, activation, "activation", 0),
    TDI_FIELD(CHOICE, td_dense_args, use_bias, "use_bias", 1),
    TDI_INITIALIZER_FIELD(td_dense_args, kernel_initializer, "kernel_initializer", "GlorotUniform"),
    TDI_INITIALIZER_FIELD(td_dense_args, bias_initializer, "bias_initializer", "Zeros"),
    TDI_FIELD(REGULARIZER, td_dense_args, kernel_regularizer, "kernel_regularizer", 0),
    TDI_FIELD(REGULARIZER, td_dense_args, bias_regularizer, "bias_regularizer", 0),
    TDI_FIXED_FIELD("kernel_constraint", "null"),
    TDI_FIXED_FIELD("bias_constraint", "null"),
    TDI_FIXED_FIELD_SINCE("quantization_config", "null", "3.13"),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_dense_args *args = layer->args;
    (void)n_in;
    if (args->units < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "units is %lld: it must be at least 1", (long long)args->units);
    if (in[0].rank == 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "it works on the last axis, and [batch] has none but the batch: give samples of at least one "
                        "axis, as TD_SHAPE(1)");
    TDI_TRY(tdi_activation_check(args->activation, &in[0], error));
    *out = in[0];
    out->dim[out->rank - 1] = args->units;
    return TD_OK;
}

static td_status build(tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error)
{
    const td_dense_args *args = layer->args;
    (void)n_in;
    td_shape kernel = {2, {in[0].dim[in[0].rank - 1], args->units}}, bias = {1, {args->units}};
    TDI_TRY(
        tdi_layer_weight(layer, "kernel", &kernel, true, &args->kernel_initializer, &args->kernel_regularizer, error));
    if (args->use_bias == TD_NO)
        return TD_OK;
    return tdi_layer_weight(layer, "bias", &bias, true, &args->bias_initializer, &args->bias_regularizer, error);
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_dense_args *args = layer->args;
    (void)n_in;
    tdi_node *y = tdi_matmul(emit->graph, in[0], tdi_layer_parameter(emit, layer, 0), false, false);
    if (args->use_bias == TD_YES)
        y = tdi_bias_add(emit->graph, y, tdi_layer_parameter(emit, layer, 1));
    return tdi_activation_emit(emit->graph, y, args->activation);
}

const tdi_layer_type tdi_layer_type_dense = {
    TDI_LAYER("Dense", dense, 1, 1),
    .infer = infer,
    .build = build,
    .emit = emit,
};

td_tensor *td_dense_(const td_dense_args *args)
{
    return TDI_LAYER_APPLY(dense, args, 1, &args->x);
}
