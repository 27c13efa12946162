/* embedding.c - Embedding: a vector for each of input_dim indices, [batch, ...] -> [batch, ..., output_dim]. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(INT64, td_embedding_args, input_dim, "input_dim", 0),
    TDI_FIELD(INT64, td_embedding_args, output_dim, "output_dim", 0),
    TDI_INITIALIZER_FIELD(td_embedding_args, embeddings_initializer, "embeddings_initializer", "RandomUniform"),
    TDI_FIELD(REGULARIZER, td_embedding_args, embeddings_regularizer, "embeddings_regularizer", 0),
    TDI_FIXED_FIELD("activity_regularizer", "null"),
    TDI_FIXED_FIELD("embeddings_constraint", "null"),
    TDI_FIXED_FIELD("mask_zero", "false"), /* Tandem's layers know no masks */
    TDI_FIXED_FIELD_SINCE("quantization_config", "null", "3.13"),
    TDI_IGNORED_FIELD("input_length"), /* Keras 2: the input's, which its shape says */
    {0},
};

static int64_t indices(const tdi_layer *layer)
{
    return ((const td_embedding_args *)layer->args)->input_dim;
}

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_embedding_args *args = layer->args;
    char text[TDI_SHAPE_TEXT];
    (void)n_in;
    if (args->input_dim < 1 || args->input_dim > INT32_MAX)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "input_dim is %lld: it must be at least 1 and below 2^31",
                        (long long)args->input_dim);
    if (args->output_dim < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "output_dim is %lld: it must be at least 1",
                        (long long)args->output_dim);
    if (in[0].rank + 2 > TD_MAX_RANK)
        return tdi_fail(error, TD_UNSUPPORTED, "its input %s has %d axes: at most %d are possible",
                        tdi_sample_text(&in[0], text), in[0].rank + 1, TD_MAX_RANK - 1);
    *out = in[0];
    out->dim[out->rank++] = args->output_dim;
    return TD_OK;
}

static td_status build(tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error)
{
    const td_embedding_args *args = layer->args;
    td_shape shape = {2, {args->input_dim, args->output_dim}};
    (void)n_in;
    (void)in;
    return tdi_layer_weight(layer, "embeddings", &shape, true, &args->embeddings_initializer,
                            &args->embeddings_regularizer, error);
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    tdi_node *at = in[0];
    (void)n_in;
    if (at && at->dtype != TD_INT32)
        at = tdi_cast(emit->graph, at, TD_INT32);
    return tdi_gather(emit->graph, tdi_layer_parameter(emit, layer, 0), at);
}

const tdi_layer_type tdi_layer_type_embedding = {
    TDI_LAYER("Embedding", embedding, 1, 1), .indices = indices, .infer = infer, .build = build, .emit = emit,
};

td_tensor *td_embedding_(const td_embedding_args *args)
{
    return TDI_LAYER_APPLY(embedding, args, 1, &args->x);
}
