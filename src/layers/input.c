/* input.c - InputLayer: where data enters a model.
 *
 * The layer emits nothing. The model makes the input nodes, because it alone knows the inputs' numbers. */
#include "layers/layer.h"

static const tdi_field fields[] = {
    TDI_FIELD(SHAPE, td_input_args, shape, "batch_shape", 0), /* a file has the batch size, or null, before it */
    TDI_FIXED_FIELD("sparse", "false"),
    TDI_FIXED_FIELD_SINCE("ragged", "false", "3.9"),
    TDI_FIXED_FIELD_SINCE("optional", "false", "3.13"),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_input_args *args = layer->args;
    (void)n_in;
    (void)in;
    if (args->dtype != TD_FLOAT32 && args->dtype != TD_INT32 && args->dtype != TD_INT64)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "an input of %s: Tandem computes in float32, to which data of other types is converted when it "
                        "is read; use TD_FLOAT32, or TD_INT32 for indices",
                        td_dtype_name(args->dtype));
    if (args->shape.rank < 0 || args->shape.rank > TD_MAX_RANK - 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "an input of %d axes: at most %d besides the batch are possible",
                        args->shape.rank, TD_MAX_RANK - 1);
    for (int i = 0; i < args->shape.rank; i++)
        if (args->shape.dim[i] < 1)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "axis %d of its shape is %lld: every axis but the batch needs an extent of at least 1",
                            i + 1, (long long)args->shape.dim[i]);
    if (args->batch_size < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "batch_size is %lld: it must be at least 1, or 0 for any",
                        (long long)args->batch_size);
    *out = args->shape;
    return TD_OK;
}

static td_status build(tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error)
{
    (void)n_in, (void)in, (void)error;
    layer->batch = ((const td_input_args *)layer->args)->batch_size;
    return TD_OK;
}

const tdi_layer_type tdi_layer_type_input = {
    .class_name = "InputLayer",
    .base_name = "input_layer",
    .args_size = sizeof(td_input_args),
    .fields = fields,
    .infer = infer,
    .build = build,
};

td_tensor *td_input_(const td_input_args *args)
{
    return tdi_layer_apply(args->context, &tdi_layer_type_input, args,
                           &(tdi_layer_use){"td_input", args->at, args->guard, args->name, TD_DEFAULT, 0, NULL});
}
