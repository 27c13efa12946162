/* accumulate.c - adds a value's sum and its number of elements to a metric's accumulator. */
#include "ops/op_helpers.h"

static td_status accumulate_infer(tdi_node *node, tdi_error *error)
{
    node->shape = (td_shape){.rank = 1, .dim = {2}};
    node->dtype = TD_FLOAT64;
    return tdi_want_floats(node, error);
}

static void accumulate_reference(const tdi_call *call)
{
    const float *x = call->in[0].data;
    double *out = call->out.data, sum = 0;
    int64_t count = tdi_shape_elements(&call->in[0].shape);
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i];
    out[0] += sum;
    out[1] += (double)count;
}

const tdi_op tdi_op_accumulate = {.name = "accumulate",
                                  .min_in = 1,
                                  .max_in = 1,
                                  .infer = accumulate_infer,
                                  .no_gradient = "it is a metric",
                                  .reference = accumulate_reference,
                                  .flops = tdi_flops_per_input};

tdi_node *tdi_accumulate(tdi_graph *graph, tdi_node *x, int slot)
{
    tdi_node *node = tdi_node_create(graph, &tdi_op_accumulate, NULL, 1, &x);
    if (node) {
        node->home = TDI_HOME_METRIC;
        node->slot = slot;
        node->effect = true;
    }
    return node;
}
