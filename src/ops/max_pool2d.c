/* max_pool2d.c - the maximum of each window; padding takes no part. NaN wins. */
#include "ops/pool2d.h"

static td_status max_pool2d_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    node->dtype = tdi_float_dtype(node);
    return tdi_pool2d_shape(node->attrs, &node->in[0]->shape, &node->shape, error);
}

static td_status max_pool2d_grad_infer(tdi_node *node, tdi_error *error)
{
    td_shape y;
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_pool2d_shape(node->attrs, &node->in[0]->shape, &y, error));
    TDI_TRY(tdi_want_shape(node, 1, &y, error));
    TDI_TRY(tdi_want_shape(node, 2, &y, error));
    node->shape = node->in[0]->shape;
    node->dtype = tdi_float_dtype(node);
    return TD_OK;
}

static void max_pool2d_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_max_pool2d_grad(graph, node->in[0], node, dy, node->attrs);
}

/* Where the first maximum of a window is. */
static int64_t first_maximum(const td_shape *shape, const float *x, const tdi_pool2d_cells *cells, int64_t n, int64_t c)
{
    int64_t best = tdi_pool2d_at(shape, n, cells->top, cells->left, c);
    for (int64_t i = cells->top; i < cells->bottom; i++)
        for (int64_t j = cells->left; j < cells->right; j++) {
            int64_t here = tdi_pool2d_at(shape, n, i, j, c);
            if (x[here] > x[best] || (isnan(x[here]) && !isnan(x[best])))
                best = here;
        }
    return best;
}

static void visit_forward(const tdi_call *call, const tdi_pool2d_cells *cells, int64_t n, int64_t c, int64_t y_index)
{
    const float *x = call->in[0].data;
    ((float *)call->out.data)[y_index] = x[first_maximum(&call->in[0].shape, x, cells, n, c)];
}

static void visit_backward(const tdi_call *call, const tdi_pool2d_cells *cells, int64_t n, int64_t c, int64_t y_index)
{
    const float *x = call->in[0].data, *dy = call->in[2].data;
    ((float *)call->out.data)[first_maximum(&call->in[0].shape, x, cells, n, c)] += dy[y_index];
}

static void max_pool2d_reference(const tdi_call *call)
{
    tdi_pool2d_each(call, &call->in[0].shape, &call->out.shape, visit_forward);
}

static void max_pool2d_grad_reference(const tdi_call *call)
{
    int activation = ((const tdi_pool2d_attrs *)call->attrs)->activation;
    const float *x = call->in[0].data;
    float *dx = call->out.data;
    int64_t elements = tdi_shape_elements(&call->out.shape);
    memset(dx, 0, (size_t)elements * sizeof *dx);
    tdi_pool2d_each(call, &call->in[0].shape, &call->in[2].shape, visit_backward);
    for (int64_t i = 0; activation != TD_LINEAR && i < elements; i++)
        dx[i] *= tdi_unary_derivative(activation, x[i]);
}

const tdi_op tdi_op_max_pool2d = {.name = "max_pool2d",
                                  .min_in = 1,
                                  .max_in = 1,
                                  .attrs_size = sizeof(tdi_pool2d_attrs),
                                  .bfloat16 = 1,
                                  .infer = max_pool2d_infer,
                                  .gradient = max_pool2d_gradient,
                                  .reference = max_pool2d_reference,
                                  .flops = tdi_pool2d_flops,
                                  .reads = tdi_pool2d_reads,
                                  .describe = tdi_pool2d_describe};

const tdi_op tdi_op_max_pool2d_grad = {.name = "max_pool2d_grad",
                                       .min_in = 3,
                                       .max_in = 3,
                                       .attrs_size = sizeof(tdi_pool2d_attrs),
                                       .bfloat16 = 7,
                                       .infer = max_pool2d_grad_infer,
                                       .no_gradient = "second derivatives are not built",
                                       .reference = max_pool2d_grad_reference,
                                       .flops = tdi_pool2d_grad_flops,
                                       .reads = tdi_pool2d_reads,
                                       .describe = tdi_pool2d_describe};

tdi_node *tdi_max_pool2d(tdi_graph *graph, tdi_node *x, const tdi_pool2d_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_max_pool2d, attrs, 1, &x);
}

tdi_node *tdi_max_pool2d_grad(tdi_graph *graph, tdi_node *x, tdi_node *y, tdi_node *dy, const tdi_pool2d_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_max_pool2d_grad, attrs, 3, (tdi_node *[]){x, y, dy});
}
