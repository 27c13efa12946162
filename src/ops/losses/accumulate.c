/* accumulate.c - adds a value's sum and its number of elements to a metric's accumulator; with weights the weighted sum
 * and the sum of the weights. */
#include "ops/op_helpers.h"

static td_status accumulate_infer(tdi_node *node, tdi_error *error)
{
    node->shape = (td_shape){.rank = 1, .dim = {2}};
    node->dtype = TD_FLOAT64;
    TDI_TRY(tdi_want_floats(node, error));
    return tdi_want_weights(node, 1, error);
}

static void accumulate_weighted(const tdi_call *call)
{
    const float *x = call->in[0].data, *weights = call->in[1].data;
    double *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->in[0].shape), each = tdi_elements_per_weight(call, 1);
    for (int64_t i = 0; i < count; i++) {
        double weight = (double)weights[i / each];
        out[0] += weight * (double)x[i];
        out[1] += weight;
    }
}

static void accumulate_plain(const tdi_call *call)
{
    const float *x = call->in[0].data;
    double *out = call->out.data, sum = 0;
    int64_t count = tdi_shape_elements(&call->in[0].shape);
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i];
    out[0] += sum;
    out[1] += (double)count;
}

static void accumulate_reference(const tdi_call *call)
{
    (call->n_in > 1 ? accumulate_weighted : accumulate_plain)(call);
}

const tdi_op tdi_op_accumulate = {.name = "accumulate",
                                  .min_in = 1,
                                  .max_in = 2,
                                  .infer = accumulate_infer,
                                  .no_gradient = "it is a metric",
                                  .reference = accumulate_reference,
                                  .flops = tdi_flops_per_input};

tdi_node *tdi_accumulate(tdi_graph *graph, tdi_node *x, tdi_node *weights, int slot)
{
    tdi_node *node = tdi_node_create(graph, &tdi_op_accumulate, NULL, weights ? 2 : 1, (tdi_node *[]){x, weights});
    if (node) {
        node->home = TDI_HOME_METRIC;
        node->slot = slot;
        node->effect = true;
    }
    return node;
}
