/* gather.c - rows of a table, by their numbers; and the adjoint, which adds rows into a table. */
#include "ops/op_helpers.h"

static td_status check_table(const td_shape *table, tdi_error *error)
{
    if (table->rank && !tdi_shape_has_batch(table))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "a table of shape %s: it must be [n, ...], without a batch",
                    TDI_TEXT(table));
}

/* [indices..., a row of the table...] */
static td_status gathered_shape(const td_shape *table, const td_shape *indices, td_shape *out, tdi_error *error)
{
    if (indices->rank + table->rank - 1 > TD_MAX_RANK)
        return tdi_fail(error, TD_UNSUPPORTED, "rows of %s at indices %s would have %d axes; %d are the most",
                        TDI_TEXT(table), TDI_TEXT(indices), indices->rank + table->rank - 1, TD_MAX_RANK);
    *out = *indices;
    for (int i = 1; i < table->rank; i++)
        out->dim[out->rank++] = table->dim[i];
    return TD_OK;
}

static td_status gather_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    TDI_TRY(tdi_want_dtype(node, 1, TD_INT32, error));
    TDI_TRY(check_table(&node->in[0]->shape, error));
    node->dtype = TD_FLOAT32;
    return gathered_shape(&node->in[0]->shape, &node->in[1]->shape, &node->shape, error);
}

static void gather_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[0] = tdi_scatter_add(graph, node->in[1], dy, &node->in[0]->shape);
}

static void gather_reference(const tdi_call *call)
{
    const td_shape *table = &call->in[0].shape;
    const float *rows = call->in[0].data;
    const int32_t *indices = call->in[1].data;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->in[1].shape), width = tdi_shape_elements(table) / table->dim[0];
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < width; j++)
            out[i * width + j] =
                indices[i] >= 0 && indices[i] < table->dim[0] ? rows[indices[i] * width + j] : (float)NAN;
}

/* Columns of the result are columns of the table; of a table of single numbers they are columns of the indices. */
static tdi_split gather_reads(const tdi_node *node, int i, tdi_split split)
{
    bool indices = i == 1, numbers = node->in[0]->shape.rank == 1;
    if (split == TDI_COLUMNS)
        return indices == numbers ? TDI_COLUMNS : TDI_WHOLE;
    return split == TDI_ROWS && indices && node->in[1]->shape.rank ? TDI_ROWS : TDI_WHOLE;
}

const tdi_op tdi_op_gather = {.name = "gather",
                              .min_in = 2,
                              .max_in = 2,
                              .infer = gather_infer,
                              .gradient = gather_gradient,
                              .reference = gather_reference,
                              .flops = tdi_flops_none,
                              .reads = gather_reads,
                              .moves = true};

tdi_node *tdi_gather(tdi_graph *graph, tdi_node *table, tdi_node *indices)
{
    return tdi_node_create(graph, &tdi_op_gather, NULL, 2, (tdi_node *[]){table, indices});
}

/* ---- scatter_add ---- */

td_status tdi_want_gathered(const tdi_node *node, int i, const td_shape *table, tdi_error *error)
{
    td_shape expected = {0};
    TDI_TRY(tdi_want_dtype(node, i, TD_INT32, error));
    TDI_TRY(tdi_want_dtype(node, i + 1, TD_FLOAT32, error));
    TDI_TRY(check_table(table, error));
    const td_shape *indices = &node->in[i]->shape, *rows = &node->in[i + 1]->shape;
    TDI_TRY(gathered_shape(table, indices, &expected, error));
    if (tdi_shape_equal(&expected, rows))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "rows %s at indices %s into %s: the rows must be %s", TDI_TEXT(rows),
                    TDI_TEXT(indices), TDI_TEXT(table), TDI_TEXT(&expected));
}

static td_status scatter_add_infer(tdi_node *node, tdi_error *error)
{
    const td_shape *shape = &((const tdi_shape_attrs *)node->attrs)->shape;
    TDI_TRY(tdi_want_gathered(node, 0, shape, error));
    node->shape = *shape;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static void scatter_add_gradient(tdi_graph *graph, tdi_node *node, tdi_node *dy, tdi_node **dx)
{
    dx[1] = tdi_gather(graph, dy, node->in[0]);
}

static void scatter_add_reference(const tdi_call *call)
{
    const td_shape *table = &call->out.shape;
    const int32_t *indices = call->in[0].data;
    const float *dy = call->in[1].data;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(&call->in[0].shape), elements = tdi_shape_elements(table);
    int64_t width = elements / table->dim[0];
    memset(out, 0, (size_t)elements * sizeof *out);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < width; j++)
            if (indices[i] >= 0 && indices[i] < table->dim[0])
                out[indices[i] * width + j] += dy[i * width + j];
}

static tdi_split scatter_add_reads(const tdi_node *node, int i, tdi_split split)
{
    return split == TDI_COLUMNS && i == 1 && node->shape.rank > 1 ? TDI_COLUMNS : TDI_WHOLE;
}

const tdi_op tdi_op_scatter_add = {.name = "scatter_add",
                                   .min_in = 2,
                                   .max_in = 2,
                                   .attrs_size = sizeof(tdi_shape_attrs),
                                   .infer = scatter_add_infer,
                                   .gradient = scatter_add_gradient,
                                   .reference = scatter_add_reference,
                                   .flops = tdi_flops_per_input,
                                   .reads = scatter_add_reads,
                                   .share = TDI_SHARE_SCATTER};

tdi_node *tdi_scatter_add(tdi_graph *graph, tdi_node *indices, tdi_node *dy, const td_shape *shape)
{
    return tdi_node_create(graph, &tdi_op_scatter_add, &(tdi_shape_attrs){*shape}, 2, (tdi_node *[]){indices, dy});
}
