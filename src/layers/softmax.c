/* softmax.c - Softmax: the activation as a layer, along the last axis. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(INT, td_softmax_args, axis, "axis", -1),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    int axis = ((const td_softmax_args *)layer->args)->axis;
    char text[TDI_SHAPE_TEXT];
    (void)n_in;
    *out = in[0];
    TDI_TRY(tdi_activation_check(TD_SOFTMAX, &in[0], error));
    return axis == -1 || axis == in[0].rank
               ? TD_OK
               : tdi_fail(error, TD_UNSUPPORTED, "axis is %d: Tandem's softmax is over the last axis of %s, -1 or %d",
                          axis, tdi_sample_text(&in[0], text), in[0].rank);
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    (void)layer;
    (void)n_in;
    return tdi_activation_emit(emit->graph, in[0], TD_SOFTMAX);
}

const tdi_layer_type tdi_layer_type_softmax = {
    TDI_LAYER("Softmax", softmax, 1, 1),
    .infer = infer,
    .emit = emit,
};

td_tensor *td_softmax_(const td_softmax_args *args)
{
    return TDI_LAYER_APPLY(softmax, args, 1, &args->x);
}
