/* batch_mean.c - a shard's share of the mean over the global batch: the shards' results add up to the mean, however the
 * batch is cut. */
#include "ops/op_helpers.h"

static td_status batch_mean_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    if (!tdi_shape_has_batch(&node->in[0]->shape))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "of %s, which has no batch", TDI_TEXT(&node->in[0]->shape));
    node->shape = (td_shape){0};
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static void batch_mean_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_batch_mean_grad(graph, dy, &node->in[0]->shape);
}

static int64_t per_row(const td_shape *resolved)
{
    int64_t elements = 1;
    for (int i = 1; i < resolved->rank; i++)
        elements *= resolved->dim[i];
    return elements;
}

static void batch_mean_reference(const tdi_call *call)
{
    const float *x = call->in[0].data;
    int64_t count = tdi_shape_elements(&call->in[0].shape);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i];
    *(float *)call->out.data = (float)(sum * (double)call->control->inverse_rows / (double)per_row(&call->in[0].shape));
}

static td_status batch_mean_grad_infer(tdi_node *node, tdi_error *error)
{
    const td_shape *shape = &((const tdi_shape_attrs *)node->attrs)->shape;
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_rank(node, 0, 0, error));
    if (!tdi_shape_has_batch(shape))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "to %s, which has no batch", TDI_TEXT(shape));
    node->shape = *shape;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static void batch_mean_grad_reference(const tdi_call *call)
{
    const float *dy = call->in[0].data;
    float *out = call->out.data, share = *dy * call->control->inverse_rows / (float)per_row(&call->out.shape);
    int64_t count = tdi_shape_elements(&call->out.shape);
    for (int64_t i = 0; i < count; i++)
        out[i] = share;
}

/* dy is one number, which every thread reads whole. */
static tdi_split batch_mean_grad_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    (void)i;
    (void)split;
    return TDI_WHOLE;
}

const tdi_op tdi_op_batch_mean = {.name = "batch_mean",
                                  .min_in = 1,
                                  .max_in = 1,
                                  .infer = batch_mean_infer,
                                  .gradient = batch_mean_gradient,
                                  .reference = batch_mean_reference,
                                  .flops = tdi_flops_per_input};

const tdi_op tdi_op_batch_mean_grad = {.name = "batch_mean_grad",
                                       .min_in = 1,
                                       .max_in = 1,
                                       .attrs_size = sizeof(tdi_shape_attrs),
                                       .infer = batch_mean_grad_infer,
                                       .no_gradient = "second derivatives are not built",
                                       .reference = batch_mean_grad_reference,
                                       .reads = batch_mean_grad_reads};

tdi_node *tdi_batch_mean(tdi_graph *graph, tdi_node *x)
{
    return tdi_node_create(graph, &tdi_op_batch_mean, NULL, 1, &x);
}

tdi_node *tdi_batch_mean_grad(tdi_graph *graph, tdi_node *dy, const td_shape *shape)
{
    return tdi_node_create(graph, &tdi_op_batch_mean_grad, &(tdi_shape_attrs){*shape}, 1, &dy);
}
