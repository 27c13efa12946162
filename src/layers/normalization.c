/* normalization.c - Normalization: (x - mean) / max(sqrt(variance), 1e-7) along the last axis, or its inverse.
 * src/train/adapt_normalization.c sets mean and variance to the training data's. */
#include "layers/layer.h"
#include "ops/ops.h"

#define LEAST_DEVIATION 1e-7f

static const tdi_field fields[] = {
    TDI_FIXED_FIELD("axis", "[-1]"),
    TDI_FIELD(CHOICE, td_normalization_args, invert, "invert", 0),
    TDI_FIXED_FIELD("mean", "null"),
    TDI_FIXED_FIELD("variance", "null"),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    char text[TDI_SHAPE_TEXT];
    (void)layer;
    (void)n_in;
    if (in[0].rank < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "it takes [batch, ..., features], and was called on %s",
                        tdi_sample_text(&in[0], text));
    *out = in[0];
    return TD_OK;
}

static td_status build(tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error)
{
    td_shape features = {1, {in[0].dim[in[0].rank - 1]}}, scalar = {0};
    td_initializer zeros = {.kind = TD_ZEROS}, ones = {.kind = TD_ONES};
    (void)n_in;
    TDI_TRY(tdi_layer_weight(layer, "mean", &features, false, &zeros, NULL, error));
    TDI_TRY(tdi_layer_weight(layer, "variance", &features, false, &ones, NULL, error));
    return tdi_layer_weight(layer, "count", &scalar, false, &zeros, NULL,
                            error); /* Keras has this weight and leaves it at 0 */
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    tdi_graph *graph = emit->graph;
    tdi_node *mean = tdi_layer_parameter(emit, layer, 0), *variance = tdi_layer_parameter(emit, layer, 1);
    (void)n_in;
    if (!mean || !variance)
        return NULL;
    tdi_node *deviation = tdi_binary(graph, TDI_MAXIMUM, tdi_unary(graph, variance, TDI_UNARY_SQRT),
                                     tdi_fill(graph, LEAST_DEVIATION, &variance->shape));
    if (((const td_normalization_args *)layer->args)->invert == TD_YES)
        return tdi_binary(graph, TDI_ADD, tdi_binary(graph, TDI_MULTIPLY, in[0], deviation), mean);
    return tdi_binary(graph, TDI_DIVIDE, tdi_binary(graph, TDI_SUBTRACT, in[0], mean), deviation);
}

const tdi_layer_type tdi_layer_type_normalization = {
    TDI_LAYER("Normalization", normalization, 1, 1),
    .infer = infer,
    .build = build,
    .emit = emit,
};

td_tensor *td_normalization_(const td_normalization_args *args)
{
    return TDI_LAYER_APPLY(normalization, args, 1, &args->x);
}
