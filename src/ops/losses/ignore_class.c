/* ignore_class.c - weights that leave a class's positions out of a mean, as Keras's ignore_class does
 * (keras/src/losses/loss.py, apply_mask): 0 for ignored positions, all / valid for valid ones, counted over the global
 * batch. The shards gather their counts before backpropagation. */
#include "ops/common.h"

static const char why_no_gradient[] = "class numbers are data";

static td_status count_infer(tdi_node *node, tdi_error *error)
{
    node->shape = (td_shape){0};
    node->dtype = TD_FLOAT32;
    return tdi_want_dtype(node, 0, TD_INT32, error);
}

static void count_reference(const tdi_call *call)
{
    const int32_t *labels = call->in[0].data, ignored = ((const tdi_ignore_attrs *)call->attrs)->number;
    int64_t count = tdi_shape_elements(&call->in[0].shape), valid = 0;
    for (int64_t i = 0; i < count; i++)
        valid += labels[i] != ignored;
    *(float *)call->out.data = (float)valid;
}

static td_status weights_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_dtype(node, 0, TD_INT32, error));
    TDI_TRY(tdi_want_dtype(node, 1, TD_FLOAT32, error));
    TDI_TRY(tdi_want_vector(node, 1, node->graph->shards, error));
    if (!tdi_shape_has_batch(&node->in[0]->shape))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "of %s, which has no batch", TDI_TEXT(&node->in[0]->shape));
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

/* The weight of a valid position: all positions of the global batch / valid ones. */
static float valid_weight(const tdi_call *call)
{
    const float *valid = call->in[1].data;
    double all = (double)call->control->rows, sum = 0;
    for (int i = 1; i < call->out.shape.rank; i++)
        all *= (double)call->out.shape.dim[i];
    for (int64_t p = 0; p < call->in[1].shape.dim[0]; p++)
        sum += (double)valid[p];
    return sum > 0 ? (float)(all / sum) : 0;
}

void tdi_valid_weights_of(const tdi_call *call, int64_t begin, int64_t end)
{
    const int32_t *labels = call->in[0].data, ignored = ((const tdi_ignore_attrs *)call->attrs)->number;
    float *out = call->out.data, weight = valid_weight(call);
    for (int64_t i = begin; i < end; i++)
        out[i] = labels[i] == ignored ? 0 : weight;
}

static void weights_reference(const tdi_call *call)
{
    tdi_valid_weights_of(call, 0, tdi_shape_elements(&call->out.shape));
}

static tdi_split weights_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    return i == 0 ? split : TDI_WHOLE;
}

static void describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "but class %d", (int)((const tdi_ignore_attrs *)node->attrs)->number);
}

const tdi_op tdi_op_count_valid = {.name = "count_valid",
                                   .min_in = 1,
                                   .max_in = 1,
                                   .attrs_size = sizeof(tdi_ignore_attrs),
                                   .infer = count_infer,
                                   .no_gradient = why_no_gradient,
                                   .reference = count_reference,
                                   .flops = tdi_flops_per_input,
                                   .describe = describe};

const tdi_op tdi_op_valid_weights = {.name = "valid_weights",
                                     .min_in = 2,
                                     .max_in = 2,
                                     .attrs_size = sizeof(tdi_ignore_attrs),
                                     .infer = weights_infer,
                                     .no_gradient = why_no_gradient,
                                     .reference = weights_reference,
                                     .reads = weights_reads,
                                     .describe = describe};

tdi_node *tdi_count_valid(tdi_graph *graph, tdi_node *labels, int32_t ignored)
{
    return tdi_node_create(graph, &tdi_op_count_valid, &(tdi_ignore_attrs){true, ignored}, 1, &labels);
}

tdi_node *tdi_valid_weights(tdi_graph *graph, tdi_node *labels, tdi_node *valid, int32_t ignored)
{
    return tdi_node_create(graph, &tdi_op_valid_weights, &(tdi_ignore_attrs){true, ignored}, 2,
                           (tdi_node *[]){labels, valid});
}
