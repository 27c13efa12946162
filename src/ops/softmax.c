/* softmax.c - softmax and log-softmax over the last axis, and their gradients. */
#include "ops/softmax.h"

double tdi_log_sum_exp(const float *x, int64_t count, double *largest)
{
    double top = (double)-INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        if ((double)x[i] > top)
            top = (double)x[i];
    for (int64_t i = 0; i < count; i++)
        sum += exp((double)x[i] - top);
    *largest = top;
    return log(sum);
}

static td_status softmax_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    return node->n_in == 2 ? tdi_want_shape(node, 1, &node->shape, error) : TD_OK;
}

static void softmax_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_softmax_grad(graph, node, dy);
}

static void log_softmax_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_log_softmax_grad(graph, node, dy);
}

/* Computes one row of `count` numbers of the result: rows of in[0], in[1] (or NULL) and out. */
typedef void row_function(int64_t count, const float *first, const float *second, float *out);

static void each_row(const tdi_call *call, row_function *function)
{
    int64_t rows = tdi_outer_extent(&call->out.shape), count = tdi_last_extent(&call->out.shape);
    const float *first = call->in[0].data, *second = call->n_in > 1 ? call->in[1].data : NULL;
    float *out = call->out.data;
    for (int64_t r = 0; r < rows; r++)
        function(count, first + r * count, second ? second + r * count : NULL, out + r * count);
}

static void softmax_row(int64_t count, const float *x, const float *unused, float *out)
{
    (void)unused;
    double top, log_sum = tdi_log_sum_exp(x, count, &top);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)exp((double)x[i] - top - log_sum);
}

static void log_softmax_row(int64_t count, const float *x, const float *unused, float *out)
{
    (void)unused;
    double top, log_sum = tdi_log_sum_exp(x, count, &top);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((double)x[i] - top - log_sum);
}

static void softmax_grad_row(int64_t count, const float *y, const float *dy, float *out)
{
    double dot = 0;
    for (int64_t i = 0; i < count; i++)
        dot += (double)y[i] * (double)dy[i];
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((double)y[i] * ((double)dy[i] - dot));
}

static void log_softmax_grad_row(int64_t count, const float *y, const float *dy, float *out)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)dy[i];
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((double)dy[i] - exp((double)y[i]) * sum);
}

static void softmax_reference(const tdi_call *call)
{
    each_row(call, softmax_row);
}

static void log_softmax_reference(const tdi_call *call)
{
    each_row(call, log_softmax_row);
}

static void softmax_grad_reference(const tdi_call *call)
{
    each_row(call, softmax_grad_row);
}

static void log_softmax_grad_reference(const tdi_call *call)
{
    each_row(call, log_softmax_grad_row);
}

/* An exponential counts as one operation. */
static double softmax_flops(const tdi_call *call)
{
    return 4.0 * (double)tdi_shape_elements(&call->out.shape);
}

const tdi_op tdi_op_softmax = {.name = "softmax",
                               .min_in = 1,
                               .max_in = 1,
                               .infer = softmax_infer,
                               .gradient = softmax_gradient,
                               .reference = softmax_reference,
                               .flops = softmax_flops,
                               .reads = tdi_reads_rows};

const tdi_op tdi_op_softmax_grad = {.name = "softmax_grad",
                                    .min_in = 2,
                                    .max_in = 2,
                                    .infer = softmax_infer,
                                    .no_gradient = "second derivatives are not built",
                                    .reference = softmax_grad_reference,
                                    .flops = softmax_flops,
                                    .reads = tdi_reads_rows};

const tdi_op tdi_op_log_softmax = {.name = "log_softmax",
                                   .min_in = 1,
                                   .max_in = 1,
                                   .infer = softmax_infer,
                                   .gradient = log_softmax_gradient,
                                   .reference = log_softmax_reference,
                                   .flops = softmax_flops,
                                   .reads = tdi_reads_rows};

const tdi_op tdi_op_log_softmax_grad = {.name = "log_softmax_grad",
                                        .min_in = 2,
                                        .max_in = 2,
                                        .infer = softmax_infer,
                                        .no_gradient = "second derivatives are not built",
                                        .reference = log_softmax_grad_reference,
                                        .flops = softmax_flops,
                                        .reads = tdi_reads_rows};

tdi_node *tdi_softmax(tdi_graph *graph, tdi_node *x)
{
    return tdi_node_create(graph, &tdi_op_softmax, NULL, 1, &x);
}

tdi_node *tdi_softmax_grad(tdi_graph *graph, tdi_node *y, tdi_node *dy)
{
    return tdi_node_create(graph, &tdi_op_softmax_grad, NULL, 2, (tdi_node *[]){y, dy});
}

tdi_node *tdi_log_softmax(tdi_graph *graph, tdi_node *x)
{
    return tdi_node_create(graph, &tdi_op_log_softmax, NULL, 1, &x);
}

tdi_node *tdi_log_softmax_grad(tdi_graph *graph, tdi_node *y, tdi_node *dy)
{
    return tdi_node_create(graph, &tdi_op_log_softmax_grad, NULL, 2, (tdi_node *[]){y, dy});
}
