/* matmul.c - activation(op(a) . op(b) + bias), or op(a) . op(b) times the slope of an activation. */
#include "ops/op_helpers.h"

typedef struct matrix {
    int64_t rows; /* per row of the batch, if there is a batch */
    int64_t columns;
    bool batch; /* the rows contain the batch */
} matrix;

static matrix as_matrix(const td_shape *shape)
{
    int64_t columns = tdi_last_extent(shape);
    return (matrix){tdi_shape_per_row(shape) / columns, columns, tdi_shape_has_batch(shape)};
}

static td_status check_inner(const tdi_node *node, const matrix *a, const matrix *b, tdi_error *error)
{
    const tdi_matmul_attrs *attrs = node->attrs;
    int64_t inner_a = attrs->transpose_a ? a->rows : a->columns, inner_b = attrs->transpose_b ? b->columns : b->rows;
    bool batch_a = attrs->transpose_a && a->batch, batch_b = !attrs->transpose_b && b->batch;
    bool batch_out = attrs->transpose_b && b->batch; /* then the batch would be the result's columns */
    if (inner_a == inner_b && batch_a == batch_b && !batch_out)
        return TD_OK;
    return tdi_fail(
        error, TD_INVALID_ARGUMENT, "%s%s times %s%s: %s, %lld, must equal %s, %lld", TDI_TEXT(&node->in[0]->shape),
        attrs->transpose_a ? " transposed" : "", TDI_TEXT(&node->in[1]->shape), attrs->transpose_b ? " transposed" : "",
        attrs->transpose_a ? "the rows of the first" : "the last extent of the first", (long long)inner_a,
        attrs->transpose_b ? "the last extent of the second" : "the rows of the second", (long long)inner_b);
}

static td_status check_activation(int activation, tdi_error *error)
{
    if (activation >= 0 && activation < TD_ACTIVATION_COUNT && tdi_unary_grad_from_output(activation))
        return TD_OK;
    return tdi_fail(error, TD_INTERNAL, "activation %s cannot be part of another op", tdi_unary_name(activation));
}

static td_status matmul_infer(tdi_node *node, tdi_error *error)
{
    const tdi_matmul_attrs *attrs = node->attrs;
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    TDI_TRY(tdi_want_last_axis(node, 1, error));
    matrix a = as_matrix(&node->in[0]->shape), b = as_matrix(&node->in[1]->shape);
    TDI_TRY(check_inner(node, &a, &b, error));
    TDI_TRY(check_activation(attrs->activation, error));
    TDI_TRY(check_activation(attrs->slope, error));
    int64_t columns = attrs->transpose_b ? b.rows : b.columns;
    node->shape = attrs->transpose_a ? (td_shape){.rank = 2, .dim = {a.columns}} : node->in[0]->shape;
    node->shape.dim[node->shape.rank - 1] = columns;
    node->dtype = attrs->transpose_a ? TD_FLOAT32 : tdi_float_dtype(node);
    if (attrs->slope)
        return tdi_want_shape(node, 2, &node->shape, error);
    return node->n_in > 2 && node->in[2] ? tdi_want_vector(node, 2, columns, error) : TD_OK;
}

/* With z = op(a) . op(b): the gradient of op(a) is dz . op(b)', that of op(b) is op(a)' . dz. */
static void matmul_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dz, tdi_node **dx)
{
    const tdi_matmul_attrs *attrs = node->attrs;
    bool ta = attrs->transpose_a, tb = attrs->transpose_b;
    tdi_node *a = node->in[0], *b = node->in[1];
    tdi_node *da = ta ? tdi_matmul(graph, b, dz, tb, true) : tdi_matmul(graph, dz, b, false, !tb);
    tdi_node *db = tb ? tdi_matmul(graph, dz, a, true, ta) : tdi_matmul(graph, a, dz, !ta, false);
    dx[0] = tdi_reshape(graph, da, &a->shape);
    dx[1] = tdi_reshape(graph, db, &b->shape);
}

typedef struct operand {
    const float *data;
    int64_t row, column; /* strides */
} operand;

static operand operand_of(const tdi_value *value, bool transposed)
{
    int64_t columns = tdi_last_extent(&value->shape);
    return transposed ? (operand){value->data, 1, columns} : (operand){value->data, columns, 1};
}

static int64_t inner_of(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    const td_shape *b = &call->in[1].shape;
    return attrs->transpose_b ? tdi_last_extent(b) : tdi_outer_extent(b);
}

static void matmul_reference(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    operand a = operand_of(&call->in[0], attrs->transpose_a), b = operand_of(&call->in[1], attrs->transpose_b);
    const float *bias = call->n_in > 2 && !attrs->slope ? call->in[2].data : NULL;
    float *out = call->out.data;
    int64_t rows = tdi_outer_extent(&call->out.shape), columns = tdi_last_extent(&call->out.shape);
    int64_t inner = inner_of(call);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = bias ? (double)bias[j] : 0;
            for (int64_t k = 0; k < inner; k++)
                sum += (double)a.data[i * a.row + k * a.column] * (double)b.data[k * b.row + j * b.column];
            if (attrs->slope)
                sum *= (double)tdi_unary_derivative(attrs->slope, ((const float *)call->in[2].data)[i * columns + j]);
            out[i * columns + j] = tdi_unary_value(attrs->activation, (float)sum);
        }
}

static double matmul_flops(const tdi_call *call)
{
    return (2.0 * (double)inner_of(call) + (call->n_in > 2 ? 1 : 0)) * (double)tdi_shape_elements(&call->out.shape);
}

static tdi_split matmul_reads(const tdi_node *node, int i, tdi_split split)
{
    const tdi_matmul_attrs *attrs = node->attrs;
    if (i == 2 && attrs->slope)
        return split == TDI_DEPTH ? TDI_WHOLE : split;
    if (split == TDI_DEPTH)
        return i == 0 ? TDI_COLUMNS : i == 1 ? TDI_ROWS : TDI_WHOLE;
    if (split == TDI_COLUMNS) {
        if (i == 1 && attrs->transpose_b)
            return node->in[1]->shape.rank == 2 ? TDI_ROWS : TDI_WHOLE;
        if (i == 1)
            return TDI_COLUMNS;
        return i == 2 ? TDI_COLUMNS : TDI_WHOLE;
    }
    if (split == TDI_ROWS && i == 0)
        return attrs->transpose_a ? TDI_COLUMNS : TDI_ROWS;
    return TDI_WHOLE;
}

static void matmul_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_matmul_attrs *attrs = node->attrs;
    bool bias = node->n_in > 2 && node->in[2] && !attrs->slope;
    int function = attrs->slope ? attrs->slope : attrs->activation;
    snprintf(text, size, "a%s . b%s%s%s%s", attrs->transpose_a ? "'" : "", attrs->transpose_b ? "'" : "",
             bias ? " + bias" : "",
             attrs->slope ? ", slope of "
             : function   ? ", "
                          : "",
             function ? tdi_unary_name(function) : "");
}

const tdi_op tdi_op_matmul = {.name = "matmul",
                              .min_in = 2,
                              .max_in = 3,
                              .attrs_size = sizeof(tdi_matmul_attrs),
                              .bfloat16 = 3,
                              .multiplies = true,
                              .infer = matmul_infer,
                              .gradient = matmul_gradient,
                              .reference = matmul_reference,
                              .flops = matmul_flops,
                              .reads = matmul_reads,
                              .describe = matmul_describe,
                              .share = TDI_SHARE_PRODUCT,
                              .epilogue = offsetof(tdi_matmul_attrs, activation)};

tdi_node *tdi_matmul(tdi_graph *graph, tdi_node *a, tdi_node *b, bool transpose_a, bool transpose_b)
{
    tdi_matmul_attrs attrs = {.transpose_a = transpose_a, .transpose_b = transpose_b};
    return tdi_node_create(graph, &tdi_op_matmul, &attrs, 2, (tdi_node *[]){a, b});
}
