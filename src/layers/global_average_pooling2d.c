/* global_average_pooling2d.c - GlobalAveragePooling2D: the mean over height and width, [batch, height, width, channels]
 * -> [batch, channels]. */
#include "layers/sliding_windows.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIXED_FIELD("data_format", "\"channels_last\""),
    TDI_FIELD(CHOICE, td_global_average_pooling2d_args, keepdims, "keepdims", 0),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_global_average_pooling2d_args *args = layer->args;
    (void)n_in;
    TDI_TRY(tdi_image_check(&in[0], error));
    int64_t channels = in[0].dim[2];
    *out = args->keepdims == TD_YES ? (td_shape){3, {1, 1, channels}} : (td_shape){1, {channels}};
    return TD_OK;
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_global_average_pooling2d_args *args = layer->args;
    (void)n_in;
    return tdi_reduce(emit->graph, TDI_MEAN, in[0], 1u << 1 | 1u << 2, args->keepdims == TD_YES);
}

const tdi_layer_type tdi_layer_type_global_average_pooling2d = {
    TDI_LAYER("GlobalAveragePooling2D", global_average_pooling2d, 1, 1),
    .infer = infer,
    .emit = emit,
};

td_tensor *td_global_average_pooling2d_(const td_global_average_pooling2d_args *args)
{
    return TDI_LAYER_APPLY(global_average_pooling2d, args, 1, &args->x);
}
