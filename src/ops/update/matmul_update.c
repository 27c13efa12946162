/* matmul_update.c - an optimizer's step whose gradient is a product, a' . b: the gradient is consumed as it is
 * computed, and never stored. Only the fuse pass makes it. */
#include "ops/update/optimizer.h"

static const td_shape *shape_of(const tdi_node *node, int i)
{
    return &node->in[i]->shape;
}

static td_status matmul_update_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_rank(node, 0, 2, error));
    node->shape = *shape_of(node, 0);
    node->dtype = TD_FLOAT32;
    for (int i = 3; i < node->n_in; i++)
        TDI_TRY(tdi_want_shape(node, i, &node->shape, error));
    const td_shape *a = shape_of(node, 1), *b = shape_of(node, 2);
    int64_t rows = tdi_last_extent(a), columns = tdi_last_extent(b);
    bool depths = tdi_shape_has_batch(a) == tdi_shape_has_batch(b) &&
                  tdi_shape_per_row(a) / rows == tdi_shape_per_row(b) / columns;
    if (depths && rows == node->shape.dim[0] && columns == node->shape.dim[1])
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s transposed times %s is not a gradient of %s", TDI_TEXT(a),
                    TDI_TEXT(b), TDI_TEXT(&node->shape));
}

enum { STRETCH = 256 };

static void make_gradient(const tdi_call *call, int64_t begin, int64_t n, float *gradient)
{
    const float *a = call->in[1].data, *b = call->in[2].data;
    int64_t rows = call->out.shape.dim[0], columns = call->out.shape.dim[1],
            depth = tdi_outer_extent(&call->in[1].shape);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < depth; k++)
            sum += (double)a[k * rows + (begin + i) / columns] * (double)b[k * columns + (begin + i) % columns];
        gradient[i] = (float)sum;
    }
}

static void matmul_update_reference(const tdi_call *call)
{
    float gradient[STRETCH];
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = 0; i < runs.length; i += STRETCH) {
            int64_t first = runs.first + r * runs.stride + i, n = runs.length - i < STRETCH ? runs.length - i : STRETCH;
            make_gradient(call, first, n, gradient);
            tdi_reference_update(call, call->attrs, 3, first, n, gradient);
        }
}

static void matmul_update_numbers(const void *attributes, tdi_control *control)
{
    const tdi_matmul_update_attrs *attrs = attributes;
    attrs->update->numbers(&attrs->optimizer, control);
}

static double matmul_update_flops(const tdi_call *call)
{
    return (2.0 * (double)tdi_outer_extent(&call->in[1].shape) + 11.0) * (double)tdi_shape_elements(&call->out.shape);
}

static tdi_split matmul_update_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    if (i == 1)
        return split == TDI_ROWS ? TDI_COLUMNS : TDI_WHOLE;
    if (i == 2)
        return split == TDI_COLUMNS ? TDI_COLUMNS : TDI_WHOLE;
    return split;
}

static void matmul_update_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "%s of a' . b", ((const tdi_matmul_update_attrs *)node->attrs)->update->name);
}

const tdi_op tdi_op_matmul_update = {.name = "matmul_update",
                                     .min_in = 3,
                                     .max_in = 6,
                                     .attrs_size = sizeof(tdi_matmul_update_attrs),
                                     .infer = matmul_update_infer,
                                     .no_gradient = "it is an update",
                                     .reference = matmul_update_reference,
                                     .numbers = matmul_update_numbers,
                                     .flops = matmul_update_flops,
                                     .reads = matmul_update_reads,
                                     .in_place = 1,
                                     .describe = matmul_update_describe,
                                     .share = TDI_SHARE_PRODUCT_UPDATE};
