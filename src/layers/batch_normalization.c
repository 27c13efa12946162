/* batch_normalization.c - BatchNormalization (Ioffe & Szegedy, 1502.03167) over the last axis's channels.
 *
 * In training the statistics are those of the batch: of the global batch when `synchronized`, else of a replica's rows.
 * They are merged over shards where one replica is computed as several shards, and taken per replica where one shard
 * computes several replicas. A layer that is not trainable uses the moving statistics in training too, as in Keras. */
#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(INT, td_batch_normalization_args, axis, "axis", -1),
    TDI_FIELD(OPTIONAL, td_batch_normalization_args, momentum, "momentum", 0.99),
    TDI_FIELD(OPTIONAL, td_batch_normalization_args, epsilon, "epsilon", 1e-3),
    TDI_FIELD(CHOICE, td_batch_normalization_args, center, "center", 1),
    TDI_FIELD(CHOICE, td_batch_normalization_args, scale, "scale", 1),
    TDI_INITIALIZER_FIELD(td_batch_normalization_args, beta_initializer, "beta_initializer", "Zeros"),
    TDI_INITIALIZER_FIELD(td_batch_normalization_args, gamma_initializer, "gamma_initializer", "Ones"),
    TDI_INITIALIZER_FIELD(td_batch_normalization_args, moving_mean_initializer, "moving_mean_initializer", "Zeros"),
    TDI_INITIALIZER_FIELD(td_batch_normalization_args, moving_variance_initializer, "moving_variance_initializer",
                          "Ones"),
    TDI_FIELD(REGULARIZER, td_batch_normalization_args, beta_regularizer, "beta_regularizer", 0),
    TDI_FIELD(REGULARIZER, td_batch_normalization_args, gamma_regularizer, "gamma_regularizer", 0),
    TDI_FIXED_FIELD("beta_constraint", "null"),
    TDI_FIXED_FIELD("gamma_constraint", "null"),
    TDI_FIELD(CHOICE, td_batch_normalization_args, synchronized, "synchronized", 0),
    TDI_FIXED_FIELD_SINCE("renorm", "false", "3.14"),
    TDI_FIXED_FIELD_SINCE("renorm_clipping", "null", "3.14"),
    TDI_FIXED_FIELD_SINCE("renorm_momentum", "0.99", "3.14"),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_batch_normalization_args *args = layer->args;
    char text[TDI_SHAPE_TEXT];
    (void)n_in;
    if (in[0].rank == 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "it works on the last axis, and [batch] has none but the batch");
    if (args->axis != -1 && args->axis != in[0].rank)
        return tdi_fail(error, TD_UNSUPPORTED, "axis is %d: Tandem normalizes the last axis of %s only, -1 or %d",
                        args->axis, tdi_sample_text(&in[0], text), in[0].rank);
    if (!(args->momentum.value >= 0 && args->momentum.value <= 1))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "momentum is %g: it must be in [0, 1]",
                        (double)args->momentum.value);
    if (!(args->epsilon.value >= 0))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "epsilon is %g: it must be at least 0",
                        (double)args->epsilon.value);
    *out = in[0];
    return TD_OK;
}

static td_status build(tdi_layer *layer, int n_in, const td_shape *in, tdi_error *error)
{
    const td_batch_normalization_args *args = layer->args;
    td_shape channels = {1, {in[0].dim[in[0].rank - 1]}};
    (void)n_in;
    if (args->scale == TD_YES)
        TDI_TRY(tdi_layer_weight(layer, "gamma", &channels, true, &args->gamma_initializer, &args->gamma_regularizer,
                                 error));
    if (args->center == TD_YES)
        TDI_TRY(
            tdi_layer_weight(layer, "beta", &channels, true, &args->beta_initializer, &args->beta_regularizer, error));
    TDI_TRY(tdi_layer_weight(layer, "moving_mean", &channels, false, &args->moving_mean_initializer, NULL, error));
    return tdi_layer_weight(layer, "moving_variance", &channels, false, &args->moving_variance_initializer, NULL,
                            error);
}

/* The layer's weights as nodes; gamma and beta are NULL where the layer has none. */
typedef struct parameters {
    tdi_node *gamma, *beta, *moving_mean, *moving_variance;
} parameters;

static parameters parameters_of(const tdi_emit *emit, const tdi_layer *layer)
{
    const td_batch_normalization_args *args = layer->args;
    parameters p = {0};
    int next = 0;
    if (args->scale == TD_YES)
        p.gamma = tdi_layer_parameter(emit, layer, next++);
    if (args->center == TD_YES)
        p.beta = tdi_layer_parameter(emit, layer, next++);
    p.moving_mean = tdi_layer_parameter(emit, layer, next++);
    p.moving_variance = tdi_layer_parameter(emit, layer, next);
    return p;
}

static tdi_node *emit_training(const tdi_emit *emit, const tdi_layer *layer, const parameters *p, tdi_node *x)
{
    const td_batch_normalization_args *args = layer->args;
    tdi_graph *graph = emit->graph;
    bool all = args->synchronized == TD_YES, merge = all || emit->merge_statistics;
    tdi_node *own = tdi_batch_norm_stats(graph, x, all ? 1 : emit->groups);
    tdi_node *gathered = tdi_all_gather(graph, own);
    tdi_node *used = merge ? tdi_batch_norm_merge(graph, gathered, all) : own;
    tdi_batch_norm_moving(graph, p->moving_mean, gathered, args->momentum.value, false, all);
    tdi_batch_norm_moving(graph, p->moving_variance, gathered, args->momentum.value, true, all);
    return tdi_batch_norm(graph, x, used, p->gamma, p->beta, args->epsilon.value);
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_batch_normalization_args *args = layer->args;
    parameters p = parameters_of(emit, layer);
    (void)n_in;
    if (emit->training && layer->trainable)
        return emit_training(emit, layer, &p, in[0]);
    return tdi_batch_norm_inference(emit->graph, in[0], p.moving_mean, p.moving_variance, p.gamma, p.beta,
                                    args->epsilon.value);
}

static bool statistics_per_replica(const tdi_layer *layer)
{
    const td_batch_normalization_args *args = layer->args;
    return layer->trainable && args->synchronized != TD_YES;
}

const tdi_layer_type tdi_layer_type_batch_normalization = {
    TDI_LAYER("BatchNormalization", batch_normalization, 1, 1),
    .statistics_per_replica = statistics_per_replica,
    .infer = infer,
    .build = build,
    .emit = emit,
};

td_tensor *td_batch_normalization_(const td_batch_normalization_args *args)
{
    return TDI_LAYER_APPLY(batch_normalization, args, 1, &args->x);
}
