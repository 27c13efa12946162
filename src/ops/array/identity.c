/* identity.c - a copy. */
#include "ops/op_helpers.h"

static td_status identity_infer(tdi_node *node, tdi_error *error)
{
    (void)error;
    node->shape = node->in[0]->shape;
    node->dtype = node->in[0]->dtype;
    return TD_OK;
}

static void identity_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    (void)graph;
    (void)node;
    dx[0] = dy;
}

static void identity_reference(const tdi_call *call)
{
    size_t bytes = (size_t)tdi_shape_elements(&call->out.shape) * td_dtype_size(call->out.dtype);
    memmove(call->out.data, call->in[0].data, bytes);
}

const tdi_op tdi_op_identity = {.name = "identity",
                                .min_in = 1,
                                .max_in = 1,
                                .bfloat16 = 1,
                                .infer = identity_infer,
                                .gradient = identity_gradient,
                                .reference = identity_reference,
                                .flops = tdi_flops_none,
                                .reads = tdi_reads_same,
                                .in_place = 1};

tdi_node *tdi_identity(tdi_graph *graph, tdi_node *x)
{
    return tdi_node_create(graph, &tdi_op_identity, NULL, 1, &x);
}
