/* up_sampling2d.c - UpSampling2D: enlarges height and width of [batch, height, width, channels] by whole factors;
 * pixels are copied or interpolated. */
#include "layers/sliding_windows.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(SIZE, td_up_sampling2d_args, factors, "size", 2),
    TDI_FIXED_FIELD("data_format", "\"channels_last\""),
    TDI_FIELD(INTERPOLATION, td_up_sampling2d_args, interpolation, "interpolation", 0),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_up_sampling2d_args *args = layer->args;
    (void)n_in;
    TDI_TRY(tdi_size_check("size", args->factors, error));
    if (args->interpolation != TD_NEAREST && args->interpolation != TD_BILINEAR)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "there is no interpolation number %d", (int)args->interpolation);
    TDI_TRY(tdi_image_check(&in[0], error));
    *out = in[0];
    if (__builtin_mul_overflow(out->dim[0], args->factors.height, &out->dim[0]) ||
        __builtin_mul_overflow(out->dim[1], args->factors.width, &out->dim[1]))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "size is %d x %d: no machine's memory holds that",
                        args->factors.height, args->factors.width);
    return TD_OK;
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_up_sampling2d_args *args = layer->args;
    (void)n_in;
    tdi_upsample2d_attrs attrs = {args->factors.height, args->factors.width, args->interpolation == TD_BILINEAR};
    return tdi_upsample2d(emit->graph, in[0], &attrs);
}

const tdi_layer_type tdi_layer_type_up_sampling2d = {
    TDI_LAYER("UpSampling2D", up_sampling2d, 1, 1),
    .infer = infer,
    .emit = emit,
};

td_tensor *td_up_sampling2d_(const td_up_sampling2d_args *args)
{
    td_up_sampling2d_args own = *args;
    if (!own.factors.height)
        own.factors.height = own.size;
    if (!own.factors.width)
        own.factors.width = own.size;
    return TDI_LAYER_APPLY(up_sampling2d, &own, 1, &args->x);
}
