/* flatten.c - Flatten: [batch, ...] -> [batch, product of the rest]. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIXED_FIELD("data_format", "\"channels_last\""),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    (void)layer;
    (void)n_in;
    (void)error;
    *out = (td_shape){1, {tdi_shape_elements(&in[0])}};
    return TD_OK;
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    (void)layer;
    (void)n_in;
    if (!in[0])
        return NULL;
    td_shape flat = {2, {TDI_BATCH, tdi_shape_per_row(&in[0]->shape)}};
    return tdi_reshape(emit->graph, in[0], &flat);
}

const tdi_layer_type tdi_layer_type_flatten = {
    TDI_LAYER("Flatten", flatten, 1, 1),
    .infer = infer,
    .emit = emit,
};

td_tensor *td_flatten_(const td_flatten_args *args)
{
    return TDI_LAYER_APPLY(flatten, args, 1, &args->x);
}
