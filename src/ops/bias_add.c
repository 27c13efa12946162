/* bias_add.c - a vector added along the last axis. */
#include "ops/op_helpers.h"

static td_status bias_add_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    TDI_TRY(tdi_want_vector(node, 1, tdi_last_extent(&node->in[0]->shape), error));
    node->shape = node->in[0]->shape;
    node->dtype = tdi_float_dtype(node);
    return TD_OK;
}

static void bias_add_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = dy;
    dx[1] = tdi_sum_to(graph, dy, &node->in[1]->shape);
}

static void bias_add_reference(const tdi_call *call)
{
    const float *x = call->in[0].data, *bias = call->in[1].data;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->out.shape), last = tdi_last_extent(&call->out.shape);
    for (int64_t i = 0; i < count; i++)
        out[i] = x[i] + bias[i % last];
}

const tdi_op tdi_op_bias_add = {.name = "bias_add",
                                .min_in = 2,
                                .max_in = 2,
                                .bfloat16 = 1,
                                .infer = bias_add_infer,
                                .gradient = bias_add_gradient,
                                .reference = bias_add_reference,
                                .reads = tdi_reads_broadcast,
                                .in_place = 1,
                                .cheap = true};

tdi_node *tdi_bias_add(tdi_graph *graph, tdi_node *x, tdi_node *bias)
{
    return tdi_node_create(graph, &tdi_op_bias_add, NULL, 2, (tdi_node *[]){x, bias});
}
