/* dropout.c - Dropout: training zeroes a fraction of the inputs and scales the rest up; other modes pass the input on.
 *
 * Draws are keyed by (seed of the run, step, row in the global batch, stream). The stream is made here of the layer's
 * name and seed, and of the number of the call in the graph. */
#include <string.h>

#include "layers/layer.h"
#include "ops/ops.h"

static const tdi_field fields[] = {
    TDI_FIELD(FLOAT, td_dropout_args, rate, "rate", 0),
    TDI_FIELD(SEED, td_dropout_args, seed, "seed", 0),
    TDI_FIXED_FIELD("noise_shape", "null"),
    {0},
};

static td_status infer(const tdi_layer *layer, int n_in, const td_shape *in, td_shape *out, tdi_error *error)
{
    const td_dropout_args *args = layer->args;
    (void)n_in;
    if (!(args->rate >= 0 && args->rate < 1))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "rate is %g: the fraction to drop is at least 0 and below 1",
                        (double)args->rate);
    *out = in[0];
    return TD_OK;
}

/* One more step of the FNV-1a hash. */
static uint64_t hash(uint64_t start, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++)
        start = (start ^ byte[i]) * 0x100000001B3u;
    return start;
}

static bool stream_taken(const tdi_graph *graph, uint64_t stream)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        const tdi_node *node = graph->nodes.at[i];
        if (node->op == &tdi_op_dropout && ((const tdi_dropout_attrs *)node->attrs)->stream == stream)
            return true;
    }
    return false;
}

/* The place of a rate in the control block: calls of one layer share it, and so do equal rates of one layer. */
static int number_of(const tdi_graph *graph, const char *layer, float rate)
{
    int next = 0;
    for (int i = 0; i < graph->nodes.count; i++) {
        const tdi_node *node = graph->nodes.at[i];
        if (node->op != &tdi_op_dropout)
            continue;
        const tdi_dropout_attrs *attrs = node->attrs;
        if (strcmp(node->scope, layer) == 0 && attrs->rate == rate)
            return attrs->number;
        next = attrs->number >= next ? attrs->number + 1 : next;
    }
    return next < TDI_DROPOUT_NUMBERS ? next : -1;
}

tdi_node *tdi_layer_dropout(const tdi_emit *emit, const tdi_layer *layer, tdi_node *x, float rate, int64_t seed)
{
    uint64_t stream = hash(0xCBF29CE484222325u, layer->name, strlen(layer->name));
    stream = hash(stream, &seed, sizeof seed);
    while (stream_taken(emit->graph, stream))
        stream = hash(stream, "again", 5);
    return tdi_dropout(
        emit->graph, x,
        &(tdi_dropout_attrs){.rate = rate, .stream = stream, .number = number_of(emit->graph, layer->name, rate)});
}

static tdi_node *emit(const tdi_emit *emit, const tdi_layer *layer, int n_in, tdi_node *const *in)
{
    const td_dropout_args *args = layer->args;
    (void)n_in;
    if (!emit->training || args->rate == 0)
        return in[0];
    return tdi_layer_dropout(emit, layer, in[0], args->rate, args->seed);
}

const tdi_layer_type tdi_layer_type_dropout = {
    TDI_LAYER("Dropout", dropout, 1, 1),
    .infer = infer,
    .emit = emit,
};

td_tensor *td_dropout_(const td_dropout_args *args)
{
    return TDI_LAYER_APPLY(dropout, args, 1, &args->x);
}
