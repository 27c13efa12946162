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

/* The position of a window's first maximum. */
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

static void max_pool2d_reference(const tdi_call *call)
{
    tdi_pool2d_each(call, &call->in[0].shape, &call->out.shape, visit_forward);
}

/* A cell of x: row i, column j. */
typedef struct cell {
    int64_t n, i, j, c;
} cell;

static bool is_maximum(float x, float most)
{
    return x == most || (isnan(x) && isnan(most));
}

/* Is the cell the window's first maximum? Looks at no cell behind it, where dx may have been written already. */
static bool is_first_maximum(const tdi_call *call, const tdi_pool2d_cells *cells, const cell *at, float most)
{
    const td_shape *shape = &call->in[0].shape;
    const float *x = call->in[0].data;
    int64_t end = tdi_pool2d_at(shape, at->n, at->i, at->j, at->c);
    bool first = is_maximum(x[end], most);
    for (int64_t i = cells->top; i <= at->i && first; i++)
        for (int64_t j = cells->left; j < cells->right && first; j++) {
            int64_t before = tdi_pool2d_at(shape, at->n, i, j, at->c);
            first = before >= end || !is_maximum(x[before], most);
        }
    return first;
}

/* The sum of what the windows over a cell contribute to it. */
static float arriving(const tdi_call *call, const cell *at)
{
    const td_shape *shape = &call->in[2].shape;
    const float *y = call->in[1].data, *dy = call->in[2].data;
    float sum = 0;
    for (int64_t oy = 0; oy < shape->dim[1]; oy++)
        for (int64_t ox = 0; ox < shape->dim[2]; ox++) {
            tdi_pool2d_cells cells = tdi_pool2d_cells_under(call->attrs, &call->in[0].shape, oy, ox);
            bool covers = at->i >= cells.top && at->i < cells.bottom && at->j >= cells.left && at->j < cells.right;
            int64_t window = tdi_pool2d_at(shape, at->n, oy, ox, at->c);
            if (covers && is_first_maximum(call, &cells, at, y[window]))
                sum += dy[window];
        }
    return sum;
}

/* Goes from the last cell to the first, because dx may take x's storage. */
static void max_pool2d_grad_reference(const tdi_call *call)
{
    int activation = ((const tdi_pool2d_attrs *)call->attrs)->activation;
    const td_shape *shape = &call->out.shape;
    const int64_t *dim = shape->dim;
    const float *x = call->in[0].data;
    float *dx = call->out.data;
    for (int64_t k = tdi_shape_elements(shape) - 1; k >= 0; k--) {
        int64_t position = k / dim[3], row = position / dim[2];
        cell at = {row / dim[1], row % dim[1], position % dim[2], k % dim[3]};
        float gradient = arriving(call, &at);
        dx[k] = activation == TD_LINEAR ? gradient : gradient * tdi_unary_derivative(activation, x[k]);
    }
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
                                       .in_place = 1,
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
