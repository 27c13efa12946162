/* activation.c - Activation, and the activations of other layers: their check and emission. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(ACTIVATION, td_activation_layer_args, activation, "activation", 0),
    {0},
};

tdi_node *tdi_activation_emit(tdi_graph *graph, tdi_node *x, td_activation activation)
{
    switch (activation) {
    case TD_LINEAR:
        return x;
    case TD_SOFTMAX:
        return tdi_softmax(graph, x);
    case TD_LOG_SOFTMAX:
        return tdi_log_softmax(graph, x);
    default:
        return tdi_unary(graph, x, (int)activation);
    }
}

td_status tdi_activation_check(td_activation activation, const td_shape *x, tdi_error *error)
{
    bool over_last = activation == TD_SOFTMAX || activation == TD_LOG_SOFTMAX;
    if ((unsigned)activation >= TD_ACTIVATION_COUNT)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "there is no activation number %d: use one of td_activation",
                        (int)activation);
    if (over_last && x->rank == 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s is over the last axis, and [batch] has none but the batch",
                        tdi_activation_name((int)activation));
    return TD_OK;
}

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_activation_layer_args *args = layer->args;
    (void)n_in;
    *out = in[0];
    return tdi_activation_check(args->activation, &in[0], error);
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_activation_layer_args *args = layer->args;
    (void)n_in;
    return tdi_activation_emit(emit->graph, in[0], args->activation);
}

const tdi_layer_type tdi_layer_type_activation = {
    .class_name = "Activation",
    .base_name = "activation",
    .args_size = sizeof(td_activation_layer_args),
    .fields = fields,
    .min_in = 1,
    .max_in = 1,
    .infer = infer,
    .emit = emit,
};

td_tensor *td_activation_layer_(const td_activation_layer_args *args)
{
    return tdi_layer_apply(
        tdi_tensors_context(1, &args->x), &tdi_layer_type_activation, args,
        &(tdi_layer_use){"td_activation_layer", args->at, args->guard, args->name, args->trainable, 1, &args->x});
}
