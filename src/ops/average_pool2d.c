/* average_pool2d.c - the mean of each window, over the cells that are not padding. */
#include "ops/pool2d.h"

static td_status average_pool2d_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    node->dtype = tdi_float_dtype(node);
    return tdi_pool2d_shape(node->attrs, &node->in[0]->shape, &node->shape, error);
}

static td_status average_pool2d_grad_infer(tdi_node *node, tdi_error *error)
{
    const tdi_pool2d_attrs *attrs = node->attrs;
    td_shape y;
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_pool2d_shape(attrs, &attrs->shape, &y, error));
    TDI_TRY(tdi_want_shape(node, 0, &y, error));
    node->shape = attrs->shape;
    node->dtype = tdi_float_dtype(node);
    return attrs->activation ? tdi_want_shape(node, 1, &node->shape, error) : TD_OK;
}

static void average_pool2d_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    tdi_pool2d_attrs attrs = *(const tdi_pool2d_attrs *)node->attrs;
    attrs.shape = node->in[0]->shape;
    dx[0] = tdi_average_pool2d_grad(graph, dy, &attrs);
}

static void average_pool2d_grad_gradient(tdi_graph *graph, tdi_node *node, tdi_node *d, tdi_node **dx)
{
    dx[0] = tdi_average_pool2d(graph, d, node->attrs);
}

static int64_t cell_count(const tdi_pool2d_cells *cells)
{
    return (cells->bottom - cells->top) * (cells->right - cells->left);
}

static void visit_forward(const tdi_call *call, const tdi_pool2d_cells *cells, int64_t n, int64_t c, int64_t y_index)
{
    const float *x = call->in[0].data;
    double sum = 0;
    for (int64_t i = cells->top; i < cells->bottom; i++)
        for (int64_t j = cells->left; j < cells->right; j++)
            sum += (double)x[tdi_pool2d_at(&call->in[0].shape, n, i, j, c)];
    ((float *)call->out.data)[y_index] = (float)(sum / (double)cell_count(cells));
}

/* The sum of what the windows over an element of dx contribute to it. */
static float arriving(const tdi_call *call, int64_t n, int64_t i, int64_t j, int64_t c)
{
    const td_shape *y = &call->in[0].shape;
    float sum = 0;
    for (int64_t oy = 0; oy < y->dim[1]; oy++)
        for (int64_t ox = 0; ox < y->dim[2]; ox++) {
            tdi_pool2d_cells cells = tdi_pool2d_cells_under(call->attrs, &call->out.shape, oy, ox);
            bool covers = i >= cells.top && i < cells.bottom && j >= cells.left && j < cells.right;
            if (covers)
                sum += ((const float *)call->in[0].data)[tdi_pool2d_at(y, n, oy, ox, c)] / (float)cell_count(&cells);
        }
    return sum;
}

static void average_pool2d_reference(const tdi_call *call)
{
    tdi_pool2d_each(call, &call->in[0].shape, &call->out.shape, visit_forward);
}

/* Goes element by element, because dx may take the storage of the activation's value. */
static void average_pool2d_grad_reference(const tdi_call *call)
{
    const td_shape *x = &call->out.shape;
    int activation = ((const tdi_pool2d_attrs *)call->attrs)->activation;
    const float *value = call->n_in > 1 ? call->in[1].data : NULL;
    float *dx = call->out.data;
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t i = 0; i < x->dim[1]; i++)
            for (int64_t j = 0; j < x->dim[2]; j++)
                for (int64_t c = 0; c < x->dim[3]; c++, dx++)
                    *dx = arriving(call, n, i, j, c) * (value ? tdi_unary_derivative(activation, *value++) : 1.0f);
}

const tdi_op tdi_op_average_pool2d = {.name = "average_pool2d",
                                      .min_in = 1,
                                      .max_in = 1,
                                      .attrs_size = sizeof(tdi_pool2d_attrs),
                                      .bfloat16 = 1,
                                      .infer = average_pool2d_infer,
                                      .gradient = average_pool2d_gradient,
                                      .reference = average_pool2d_reference,
                                      .flops = tdi_pool2d_flops,
                                      .reads = tdi_pool2d_reads,
                                      .describe = tdi_pool2d_describe};

const tdi_op tdi_op_average_pool2d_grad = {.name = "average_pool2d_grad",
                                           .min_in = 1,
                                           .max_in = 2,
                                           .attrs_size = sizeof(tdi_pool2d_attrs),
                                           .bfloat16 = 3,
                                           .in_place = 1u << 1,
                                           .infer = average_pool2d_grad_infer,
                                           .gradient = average_pool2d_grad_gradient,
                                           .reference = average_pool2d_grad_reference,
                                           .flops = tdi_pool2d_grad_flops,
                                           .reads = tdi_pool2d_reads,
                                           .describe = tdi_pool2d_describe};

tdi_node *tdi_average_pool2d(tdi_graph *graph, tdi_node *x, const tdi_pool2d_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_average_pool2d, attrs, 1, &x);
}

tdi_node *tdi_average_pool2d_grad(tdi_graph *graph, tdi_node *dy, const tdi_pool2d_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_average_pool2d_grad, attrs, 1, &dy);
}
