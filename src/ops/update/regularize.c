/* regularize.c - the penalty l1 * sum|w| + l2 * sum w^2, for the log, and its gradient.
 *
 * The gradient is added to the reduced gradient, in the update phase, by the replica that owns the range. It does not
 * go through the loss, where every shard would add it. At w = 0, where fresh biases stand, the slope of |w| is +1, as
 * in Keras's JAX backend (its other backends take 0).
 *
 * The log wants the penalty once, not once per shard. So each row of the global batch adds up a stretch of the weight
 * of its own, times the number of rows, and the mean over the rows is the penalty. Shards and threads share the work as
 * they share the rows, no shard waits, and the numbers are the same however many shards there are. */
#include "ops/op_helpers.h"

static td_status regularization_infer(tdi_node *node, tdi_error *error)
{
    node->shape = (td_shape){.rank = 1, .dim = {TDI_BATCH}};
    node->dtype = TD_FLOAT32;
    return tdi_want_floats(node, error);
}

static float penalty_of_row(const tdi_call *call, int64_t row)
{
    const tdi_regularize_attrs *attrs = call->attrs;
    const float *w = call->in[0].data;
    tdi_penalty_range of = tdi_penalty_range_of(call, row);
    double l1 = 0, l2 = 0;
    for (int64_t i = of.begin; i < of.end; i++) {
        l1 += fabs((double)w[i]);
        l2 += (double)w[i] * (double)w[i];
    }
    return (float)((double)of.rows * ((double)attrs->l1 * l1 + (double)attrs->l2 * l2));
}

static void regularization_reference(const tdi_call *call)
{
    float *out = call->out.data;
    for (int64_t row = 0; row < call->out.shape.dim[0]; row++)
        out[row] = penalty_of_row(call, row);
}

static tdi_split regularization_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    (void)i;
    (void)split;
    return TDI_WHOLE;
}

static double regularization_flops(const tdi_call *call)
{
    return 4.0 * tdi_flops_per_input(call);
}

static td_status regularize_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    return tdi_want_shape(node, 1, &node->shape, error);
}

static void regularize_reference(const tdi_call *call)
{
    const tdi_regularize_attrs *attrs = call->attrs;
    const float *g = call->in[0].data, *w = call->in[1].data;
    float *out = call->out.data;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = runs.first + r * runs.stride, end = i + runs.length; i < end; i++) {
            float sign = w[i] < 0.0f ? -1.0f : 1.0f;
            out[i] = g[i] + attrs->l1 * sign + 2.0f * attrs->l2 * w[i];
        }
}

static double regularize_flops(const tdi_call *call)
{
    return 4.0 * (double)tdi_shape_elements(&call->out.shape);
}

static void regularize_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_regularize_attrs *attrs = node->attrs;
    snprintf(text, size, "l1 %g, l2 %g", (double)attrs->l1, (double)attrs->l2);
}

const tdi_op tdi_op_regularization = {.name = "regularization",
                                      .min_in = 1,
                                      .max_in = 1,
                                      .attrs_size = sizeof(tdi_regularize_attrs),
                                      .infer = regularization_infer,
                                      .no_gradient = "regularize adds it, once",
                                      .reference = regularization_reference,
                                      .flops = regularization_flops,
                                      .reads = regularization_reads,
                                      .dealt = true,
                                      .describe = regularize_describe,
                                      .share = TDI_SHARE_ROWS};

const tdi_op tdi_op_regularize = {.name = "regularize",
                                  .min_in = 2,
                                  .max_in = 2,
                                  .attrs_size = sizeof(tdi_regularize_attrs),
                                  .infer = regularize_infer,
                                  .no_gradient = "it is part of an update",
                                  .reference = regularize_reference,
                                  .flops = regularize_flops,
                                  .reads = tdi_reads_same,
                                  .in_place = 1,
                                  .describe = regularize_describe};

tdi_node *tdi_regularization(tdi_graph *graph, tdi_node *weight, float l1, float l2)
{
    return tdi_node_create(graph, &tdi_op_regularization, &(tdi_regularize_attrs){l1, l2}, 1, &weight);
}

tdi_node *tdi_regularize(tdi_graph *graph, tdi_node *gradient, tdi_node *weight, float l1, float l2)
{
    tdi_node *node = tdi_node_create(graph, &tdi_op_regularize, &(tdi_regularize_attrs){l1, l2}, 2,
                                     (tdi_node *[]){gradient, weight});
    return node ? tdi_reduced_gradient(node, weight->variable) : NULL;
}
