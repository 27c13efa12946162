/* cross_entropy.c - softmax with cross-entropy, for class numbers and for distributions, and sigmoid with
 * cross-entropy; one op each for the loss and for its gradient, so that neither probabilities nor their logarithms are
 * ever rounded to 0. Targets have no gradient: they are data. With a fourth input, an extra output, the gradient's op
 * computes the losses too. */
#include "ops/softmax.h"

static td_status want_extra_output(const tdi_node *node, const td_shape *losses, tdi_error *error)
{
    return node->n_in > 3 ? tdi_want_shape(node, 3, losses, error) : TD_OK;
}

/* The losses by the loss's own reference, into the extra output. */
static void write_losses(const tdi_call *call, void (*reference)(const tdi_call *call))
{
    if (call->n_in <= 3)
        return;
    tdi_call losses = *call;
    losses.out = call->in[3];
    reference(&losses);
}

static void grad_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "%s", node->n_in > 3 ? "and the losses" : "without the losses");
}

/* ---- class numbers ---- */

static td_status sparse_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    td_shape outer = tdi_without_last(&node->in[0]->shape);
    TDI_TRY(tdi_want_dtype(node, 1, TD_INT32, error));
    TDI_TRY(tdi_want_shape(node, 1, &outer, error));
    node->shape = outer;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static td_status sparse_grad_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(sparse_infer(node, error));
    TDI_TRY(tdi_want_dtype(node, 2, TD_FLOAT32, error));
    TDI_TRY(tdi_want_shape(node, 2, &node->shape, error));
    TDI_TRY(want_extra_output(node, &node->shape, error));
    node->shape = node->in[0]->shape;
    return TD_OK;
}

static void sparse_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    const tdi_ignore_attrs *ignore = node->attrs;
    dx[0] = tdi_sparse_softmax_cross_entropy_grad(graph, node->in[0], node->in[1], dy, *ignore);
}

static void sparse_reference(const tdi_call *call)
{
    const float *logits = call->in[0].data;
    const int32_t *labels = call->in[1].data;
    float *out = call->out.data;
    int64_t rows = tdi_shape_elements(&call->out.shape), classes = tdi_last_extent(&call->in[0].shape);
    for (int64_t r = 0; r < rows; r++) {
        const float *row = logits + r * classes;
        double top, log_sum = tdi_log_sum_exp(row, classes, &top);
        bool valid = labels[r] >= 0 && labels[r] < classes;
        out[r] = valid ? (float)(log_sum - ((double)row[labels[r]] - top)) : (float)NAN;
        if (tdi_ignores(call->attrs, labels[r]))
            out[r] = 0;
    }
}

static void sparse_grad_reference(const tdi_call *call)
{
    const float *logits = call->in[0].data, *dloss = call->in[2].data;
    const int32_t *labels = call->in[1].data;
    float *out = call->out.data;
    int64_t rows = tdi_outer_extent(&call->out.shape), classes = tdi_last_extent(&call->out.shape);
    write_losses(call, sparse_reference);
    for (int64_t r = 0; r < rows; r++) {
        double top, log_sum = tdi_log_sum_exp(logits + r * classes, classes, &top);
        bool valid = labels[r] >= 0 && labels[r] < classes;
        for (int64_t i = 0; i < classes; i++) {
            double p = exp((double)logits[r * classes + i] - top - log_sum);
            double d = valid ? p - (labels[r] == i) : (double)NAN;
            out[r * classes + i] = tdi_ignores(call->attrs, labels[r]) ? 0 : (float)(d * (double)dloss[r]);
        }
    }
}

/* ---- distributions ---- */

static td_status dense_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    TDI_TRY(tdi_want_shape(node, 1, &node->in[0]->shape, error));
    node->shape = tdi_without_last(&node->in[0]->shape);
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static td_status dense_grad_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(dense_infer(node, error));
    TDI_TRY(tdi_want_shape(node, 2, &node->shape, error));
    TDI_TRY(want_extra_output(node, &node->shape, error));
    node->shape = node->in[0]->shape;
    return TD_OK;
}

static void dense_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_softmax_cross_entropy_grad(graph, node->in[0], node->in[1], dy);
}

static void dense_reference(const tdi_call *call)
{
    const float *logits = call->in[0].data, *targets = call->in[1].data;
    float *out = call->out.data;
    int64_t rows = tdi_shape_elements(&call->out.shape), classes = tdi_last_extent(&call->in[0].shape);
    for (int64_t r = 0; r < rows; r++) {
        double top, log_sum = tdi_log_sum_exp(logits + r * classes, classes, &top), loss = 0;
        for (int64_t i = r * classes; i < (r + 1) * classes; i++)
            loss += (double)targets[i] * (log_sum - ((double)logits[i] - top));
        out[r] = (float)loss;
    }
}

static void dense_grad_reference(const tdi_call *call)
{
    const float *logits = call->in[0].data, *targets = call->in[1].data, *dloss = call->in[2].data;
    float *out = call->out.data;
    int64_t rows = tdi_outer_extent(&call->out.shape), classes = tdi_last_extent(&call->out.shape);
    write_losses(call, dense_reference);
    for (int64_t r = 0; r < rows; r++) {
        double top, log_sum = tdi_log_sum_exp(logits + r * classes, classes, &top), mass = 0;
        for (int64_t i = r * classes; i < (r + 1) * classes; i++)
            mass += (double)targets[i];
        for (int64_t i = r * classes; i < (r + 1) * classes; i++) {
            double p = exp((double)logits[i] - top - log_sum);
            out[i] = (float)((p * mass - (double)targets[i]) * (double)dloss[r]);
        }
    }
}

/* ---- sigmoid ---- */

static td_status sigmoid_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    for (int i = 1; i < node->n_in; i++)
        TDI_TRY(tdi_want_shape(node, i, &node->shape, error));
    return TD_OK;
}

static void sigmoid_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_sigmoid_cross_entropy_grad(graph, node->in[0], node->in[1], dy);
}

static void sigmoid_reference(const tdi_call *call)
{
    const float *logits = call->in[0].data, *targets = call->in[1].data;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->out.shape);
    for (int64_t i = 0; i < count; i++) {
        double x = (double)logits[i];
        out[i] = (float)((x < 0 ? 0 : x) - x * (double)targets[i] + log1p(exp(-fabs(x))));
    }
}

static void sigmoid_grad_reference(const tdi_call *call)
{
    const float *logits = call->in[0].data, *targets = call->in[1].data, *dloss = call->in[2].data;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->out.shape);
    write_losses(call, sigmoid_reference);
    for (int64_t i = 0; i < count; i++) {
        double x = (double)logits[i], p = x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
        out[i] = (float)((p - (double)targets[i]) * (double)dloss[i]);
    }
}

/* ---- the ops ---- */

static double cross_entropy_flops(const tdi_call *call)
{
    return 4.0 * (double)tdi_shape_elements(&call->in[0].shape);
}

const tdi_op tdi_op_sparse_softmax_cross_entropy = {.name = "sparse_softmax_cross_entropy",
                                                    .min_in = 2,
                                                    .max_in = 2,
                                                    .attrs_size = sizeof(tdi_ignore_attrs),
                                                    .infer = sparse_infer,
                                                    .gradient = sparse_gradient,
                                                    .reference = sparse_reference,
                                                    .flops = cross_entropy_flops,
                                                    .reads = tdi_reads_rows,
                                                    .made_with = &tdi_op_sparse_softmax_cross_entropy_grad};

const tdi_op tdi_op_sparse_softmax_cross_entropy_grad = {.name = "sparse_softmax_cross_entropy_grad",
                                                         .min_in = 3,
                                                         .max_in = 4,
                                                         .attrs_size = sizeof(tdi_ignore_attrs),
                                                         .infer = sparse_grad_infer,
                                                         .no_gradient = "second derivatives are not built",
                                                         .reference = sparse_grad_reference,
                                                         .flops = cross_entropy_flops,
                                                         .reads = tdi_reads_rows,
                                                         .in_place = 1,
                                                         .describe = grad_describe};

const tdi_op tdi_op_softmax_cross_entropy = {.name = "softmax_cross_entropy",
                                             .min_in = 2,
                                             .max_in = 2,
                                             .infer = dense_infer,
                                             .gradient = dense_gradient,
                                             .reference = dense_reference,
                                             .flops = cross_entropy_flops,
                                             .reads = tdi_reads_rows,
                                             .made_with = &tdi_op_softmax_cross_entropy_grad};

const tdi_op tdi_op_softmax_cross_entropy_grad = {.name = "softmax_cross_entropy_grad",
                                                  .min_in = 3,
                                                  .max_in = 4,
                                                  .infer = dense_grad_infer,
                                                  .no_gradient = "second derivatives are not built",
                                                  .reference = dense_grad_reference,
                                                  .flops = cross_entropy_flops,
                                                  .reads = tdi_reads_rows,
                                                  .describe = grad_describe};

const tdi_op tdi_op_sigmoid_cross_entropy = {.name = "sigmoid_cross_entropy",
                                             .min_in = 2,
                                             .max_in = 2,
                                             .infer = sigmoid_infer,
                                             .gradient = sigmoid_gradient,
                                             .reference = sigmoid_reference,
                                             .flops = cross_entropy_flops,
                                             .reads = tdi_reads_same,
                                             .made_with = &tdi_op_sigmoid_cross_entropy_grad};

const tdi_op tdi_op_sigmoid_cross_entropy_grad = {.name = "sigmoid_cross_entropy_grad",
                                                  .min_in = 3,
                                                  .max_in = 4,
                                                  .infer = sigmoid_infer,
                                                  .no_gradient = "second derivatives are not built",
                                                  .reference = sigmoid_grad_reference,
                                                  .flops = cross_entropy_flops,
                                                  .reads = tdi_reads_same,
                                                  .describe = grad_describe};

tdi_node *tdi_sparse_softmax_cross_entropy(tdi_graph *graph, tdi_node *logits, tdi_node *labels,
                                           tdi_ignore_attrs ignore)
{
    return tdi_node_create(graph, &tdi_op_sparse_softmax_cross_entropy, &ignore, 2, (tdi_node *[]){logits, labels});
}

tdi_node *tdi_sparse_softmax_cross_entropy_grad(tdi_graph *graph, tdi_node *logits, tdi_node *labels, tdi_node *dloss,
                                                tdi_ignore_attrs ignore)
{
    return tdi_node_create(graph, &tdi_op_sparse_softmax_cross_entropy_grad, &ignore, 3,
                           (tdi_node *[]){logits, labels, dloss});
}

tdi_node *tdi_softmax_cross_entropy(tdi_graph *graph, tdi_node *logits, tdi_node *targets)
{
    return tdi_node_create(graph, &tdi_op_softmax_cross_entropy, NULL, 2, (tdi_node *[]){logits, targets});
}

tdi_node *tdi_softmax_cross_entropy_grad(tdi_graph *graph, tdi_node *logits, tdi_node *targets, tdi_node *dloss)
{
    return tdi_node_create(graph, &tdi_op_softmax_cross_entropy_grad, NULL, 3, (tdi_node *[]){logits, targets, dloss});
}

tdi_node *tdi_sigmoid_cross_entropy(tdi_graph *graph, tdi_node *logits, tdi_node *targets)
{
    return tdi_node_create(graph, &tdi_op_sigmoid_cross_entropy, NULL, 2, (tdi_node *[]){logits, targets});
}

tdi_node *tdi_sigmoid_cross_entropy_grad(tdi_graph *graph, tdi_node *logits, tdi_node *targets, tdi_node *dloss)
{
    return tdi_node_create(graph, &tdi_op_sigmoid_cross_entropy_grad, NULL, 3, (tdi_node *[]){logits, targets, dloss});
}
