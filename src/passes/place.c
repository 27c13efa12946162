/* place.c - how the lanes of a replica share each op. */
#include "passes/passes.h"

/* Rows of which products make a block: an update of fewer is shared by columns. */
enum { MIN_BLOCK_ROWS = 8 };

/* Below these a lane's share is too small to be worth another core's reading of it. */
enum { MIN_COLUMNS = 32, MIN_ELEMENTS = 1024 };

/* Smaller weights come from another core's cache quickly. */
enum { MIN_OWNED = 16 * 1024 };

enum { LINE = 16 /* floats */ };

/* From this extent per lane on, a cut on a cache line costs the balance little. Rows, columns and depth are cut alike:
 * what a lane has made as columns it reads, without a meeting, as depth. */
enum { MIN_FOR_LINES = 128 };

/* From so many rows a lane on, products are worth more than reading weights once. */
enum { MIN_STEP_ROWS = 4 };

int64_t tdi_split_extent(tdi_split split, const td_shape *shape)
{
    switch (split) {
    case TDI_ROWS:
        return shape->rank ? shape->dim[0] : 1;
    case TDI_COLUMNS:
        return shape->rank ? shape->dim[shape->rank - 1] : 1;
    case TDI_FLAT:
    case TDI_DEPTH:
        return tdi_shape_elements(shape);
    case TDI_WHOLE:
        break;
    }
    return 1;
}

/* Whole lines, or halves of them where that is what makes shares equal. */
static int64_t unit_of(tdi_split split, int64_t extent, int lanes)
{
    if (split == TDI_FLAT)
        return LINE;
    if (extent < (int64_t)MIN_FOR_LINES * lanes)
        return 1;
    return extent % (LINE * lanes) && extent % (LINE / 2 * lanes) == 0 ? LINE / 2 : LINE;
}

void tdi_range(tdi_split split, int64_t extent, int lane, int lanes, int64_t *begin, int64_t *end)
{
    if (split == TDI_WHOLE) {
        *begin = 0;
        *end = lane == 0 ? extent : 0;
        return;
    }
    int64_t unit = unit_of(split, extent, lanes), units = (extent + unit - 1) / unit;
    int64_t first = units * lane / lanes * unit, last = units * (lane + 1) / lanes * unit;
    *begin = first < extent ? first : extent;
    *end = last < extent ? last : extent;
}

static bool can(const tdi_node *node, unsigned splits, tdi_split split)
{
    return node->op->reads && (splits & 1u << split);
}

/* Is the weight's gradient a product of this step, which lanes share by rows? */
static bool owned_by_rows(const tdi_node *weight)
{
    const tdi_graph *graph = weight->graph;
    for (int i = weight->id + 1; i < graph->nodes.count && graph->parts == 1; i++) {
        const tdi_node *node = graph->nodes.at[i];
        bool gradient = node->home == TDI_HOME_GRADIENT && node->op == &tdi_op_matmul;
        if ((gradient || node->op == &tdi_op_matmul_update) && node->variable == weight->variable)
            return true;
    }
    return false;
}

/* Each lane then reads no rows of the weights but its own, which are in its cache since it updated them; the price is
 * the lanes' sums, which all read: more than it saves when there are many rows or lanes. */
static bool by_depth(const tdi_node *node, const td_shape *shape, unsigned splits, int lanes)
{
    const tdi_matmul_attrs *attrs = node->attrs;
    const tdi_node *weight = node->in[1];
    if (weight->op != &tdi_op_parameter || tdi_shape_elements(&weight->shape) < MIN_OWNED)
        return false;
    if (!can(node, splits, TDI_DEPTH) || attrs->transpose_a || attrs->transpose_b || weight->shape.rank != 2)
        return false;
    int64_t depth = weight->shape.dim[0], columns = tdi_split_extent(TDI_COLUMNS, shape);
    int64_t rows = columns ? tdi_shape_elements(shape) / columns : 0;
    return depth >= (int64_t)MIN_COLUMNS * lanes && rows * lanes <= depth && owned_by_rows(weight);
}

/* A weight's gradient (a transposed) by rows: the update then writes whole stretches of memory, where by columns each
 * row's stretch is so short that a core's prefetcher takes the other core's lines away (2.5 times slower). Products
 * with weights that are so owned by depth; others by columns. */
static tdi_split place_matmul(const tdi_node *node, const td_shape *shape, unsigned splits, int lanes)
{
    int64_t rows = tdi_split_extent(TDI_ROWS, shape);
    bool by_rows = can(node, splits, TDI_ROWS) && rows >= lanes;
    bool gradient = ((const tdi_matmul_attrs *)node->attrs)->transpose_a && rows >= (int64_t)MIN_COLUMNS * lanes;
    if (by_rows && gradient)
        return TDI_ROWS;
    return by_depth(node, shape, splits, lanes) ? TDI_DEPTH : tdi_place_sums(shape, splits, lanes);
}

tdi_split tdi_place_sums(const td_shape *shape, unsigned splits, int lanes)
{
    bool columns = tdi_split_extent(TDI_COLUMNS, shape) >= (int64_t)MIN_COLUMNS * lanes;
    if ((splits & TDI_CAN_COLUMNS) && columns)
        return TDI_COLUMNS;
    return (splits & TDI_CAN_ROWS) && tdi_split_extent(TDI_ROWS, shape) >= lanes ? TDI_ROWS : TDI_WHOLE;
}

static tdi_split place_update(const tdi_node *node, const td_shape *shape, unsigned splits, int lanes)
{
    int64_t rows = tdi_split_extent(TDI_ROWS, shape);
    if (rows < (int64_t)MIN_BLOCK_ROWS * lanes && can(node, splits, TDI_COLUMNS) &&
        tdi_split_extent(TDI_COLUMNS, shape) >= (int64_t)MIN_COLUMNS * lanes)
        return TDI_COLUMNS;
    return can(node, splits, TDI_ROWS) && rows >= lanes ? TDI_ROWS : TDI_WHOLE;
}

/* Nobody has to be waited for then, however small the work. */
static bool starts_from_constants(const tdi_node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && node->in[i]->op != &tdi_op_fill)
            return false;
    return node->n_in > 0;
}

/* The steps of an LSTM: with few rows a lane spends its time on reading weights, of which by units each reads its own.
 */
static tdi_split place_steps(const tdi_node *node, const td_shape *shape, unsigned splits, int lanes)
{
    int64_t rows = tdi_split_extent(TDI_ROWS, shape), units = tdi_split_extent(TDI_COLUMNS, shape);
    if (can(node, splits, TDI_COLUMNS) && rows < (int64_t)MIN_STEP_ROWS * lanes && units >= (int64_t)16 * lanes)
        return TDI_COLUMNS;
    return can(node, splits, TDI_ROWS) && rows >= lanes ? TDI_ROWS : TDI_WHOLE;
}

tdi_split tdi_place(const tdi_node *node, const td_shape *shape, unsigned splits, int lanes,
                    tdi_split (*split_of)(const void *context, const tdi_node *node), const void *context)
{
    if (lanes == 1)
        return TDI_WHOLE;
    if (node->op == &tdi_op_matmul)
        return place_matmul(node, shape, splits, lanes);
    if (node->op == &tdi_op_lstm || node->op == &tdi_op_lstm_grad)
        return place_steps(node, shape, splits, lanes);
    if (node->op == &tdi_op_squared_norm) /* few numbers of many */
        return can(node, splits, TDI_ROWS) && tdi_split_extent(TDI_ROWS, shape) >= lanes ? TDI_ROWS : TDI_WHOLE;
    if (node->op == &tdi_op_scatter_add) /* by columns: some rows are met far more often than others */
        return tdi_place_sums(shape, splits, lanes);
    if (node->op == &tdi_op_matmul_update)
        return place_update(node, shape, splits, lanes);
    for (int i = 0; i < node->n_in; i++) {
        tdi_split like = node->in[i] ? split_of(context, node->in[i]) : TDI_WHOLE;
        if (like != TDI_WHOLE && can(node, splits, like) && node->op->reads(node, i, like) == like)
            return like;
    }
    int64_t elements = tdi_shape_elements(shape);
    bool by_rows = can(node, splits, TDI_ROWS) && tdi_split_extent(TDI_ROWS, shape) >= lanes;
    if (by_rows && (elements >= MIN_ELEMENTS || starts_from_constants(node)))
        return TDI_ROWS;
    bool wide = tdi_split_extent(TDI_COLUMNS, shape) >= (int64_t)16 * lanes;
    bool of_many = node->op == &tdi_op_reduce && split_of(context, node->in[0]) != TDI_WHOLE;
    return can(node, splits, TDI_COLUMNS) && wide && (elements >= MIN_ELEMENTS || of_many) ? TDI_COLUMNS : TDI_WHOLE;
}
