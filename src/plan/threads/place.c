/* place.c - how, and how many of, the lanes of a replica share each op. */
#include <math.h>

#include "ops/ops.h"
#include "plan/threads/place.h"

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

/* An update of shorter stretches than a page is slow where there are many: a core's prefetcher takes the other core's
 * lines away. */
enum { SHORT_STRETCH = 1024 /* floats */, MANY_ELEMENTS = 64 * 1024 };

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

/* ---- by a number of lanes ---- */

static bool can(const tdi_node *node, unsigned splits, tdi_split split)
{
    return node->op->reads && (splits & 1u << split);
}

/* Is it what the weight's gradient is made by, a product of this step, which lanes share by rows? */
static bool makes_gradient(const tdi_node *node)
{
    bool gradient = node->home == TDI_HOME_GRADIENT && node->op == &tdi_op_matmul;
    return gradient || node->op == &tdi_op_matmul_update;
}

static bool owned_by_rows(const tdi_node *weight)
{
    const tdi_graph *graph = weight->graph;
    for (int i = weight->id + 1; i < graph->nodes.count && graph->parts == 1; i++)
        if (makes_gradient(graph->nodes.at[i]) && graph->nodes.at[i]->variable == weight->variable)
            return true;
    return false;
}

/* Each lane then reads no rows of the weights but its own, which are in its cache since it updated them; the price is
 * the lanes' sums, which all read: more than it saves when there are many rows or lanes. */
static bool by_depth(const tdi_node *node, const tdi_placing *p, int lanes)
{
    const tdi_matmul_attrs *attrs = node->attrs;
    const tdi_node *weight = node->in[1];
    if (weight->op != &tdi_op_parameter || tdi_shape_elements(&weight->shape) < MIN_OWNED)
        return false;
    if (!can(node, p->splits, TDI_DEPTH) || attrs->transpose_a || attrs->transpose_b || weight->shape.rank != 2)
        return false;
    const td_shape *out = &p->call->out.shape;
    int64_t depth = weight->shape.dim[0], columns = tdi_split_extent(TDI_COLUMNS, out);
    int64_t rows = columns ? tdi_shape_elements(out) / columns : 0;
    return depth >= (int64_t)MIN_COLUMNS * lanes && rows * lanes <= depth && owned_by_rows(weight);
}

static tdi_split by_rows(const tdi_node *node, const tdi_placing *p, int lanes)
{
    bool enough = tdi_split_extent(TDI_ROWS, &p->call->out.shape) >= lanes;
    return can(node, p->splits, TDI_ROWS) && enough ? TDI_ROWS : TDI_WHOLE;
}

static tdi_split by_columns_or_rows(const tdi_node *node, const tdi_placing *p, int lanes)
{
    bool enough = tdi_split_extent(TDI_COLUMNS, &p->call->out.shape) >= (int64_t)MIN_COLUMNS * lanes;
    return can(node, p->splits, TDI_COLUMNS) && enough ? TDI_COLUMNS : by_rows(node, p, lanes);
}

/* A weight's gradient (a transposed) by rows: the update then writes whole stretches of memory, where by columns each
 * row's stretch is so short that a core's prefetcher takes the other core's lines away (2.5 times slower). Products
 * with weights that are so owned by depth; others by columns. */
static tdi_split split_matmul(const tdi_node *node, const tdi_placing *p, int lanes)
{
    int64_t rows = tdi_split_extent(TDI_ROWS, &p->call->out.shape);
    bool gradient = ((const tdi_matmul_attrs *)node->attrs)->transpose_a && rows >= (int64_t)MIN_COLUMNS * lanes;
    if (gradient && can(node, p->splits, TDI_ROWS))
        return TDI_ROWS;
    return by_depth(node, p, lanes) ? TDI_DEPTH : by_columns_or_rows(node, p, lanes);
}

static tdi_split split_update(const tdi_node *node, const tdi_placing *p, int lanes)
{
    bool few = tdi_split_extent(TDI_ROWS, &p->call->out.shape) < (int64_t)MIN_BLOCK_ROWS * lanes;
    return (few ? by_columns_or_rows : by_rows)(node, p, lanes);
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
static tdi_split split_steps(const tdi_node *node, const tdi_placing *p, int lanes)
{
    const td_shape *out = &p->call->out.shape;
    int64_t rows = tdi_split_extent(TDI_ROWS, out), units = tdi_split_extent(TDI_COLUMNS, out);
    if (can(node, p->splits, TDI_COLUMNS) && rows < (int64_t)MIN_STEP_ROWS * lanes && units >= (int64_t)16 * lanes)
        return TDI_COLUMNS;
    return by_rows(node, p, lanes);
}

/* Of what is scattered some rows may be met far more often than others: one lane may have to add nearly all of it,
 * which costs the balance little where its own rows are more to clear, and later to update. */
static tdi_split split_scatter(const tdi_node *node, const tdi_placing *p, int lanes)
{
    bool sparse = tdi_shape_elements(&p->call->in[1].shape) * lanes <= tdi_shape_elements(&p->call->out.shape);
    return (sparse ? by_rows : by_columns_or_rows)(node, p, lanes);
}

static bool updates_filter(const tdi_node *node)
{
    return node->home == TDI_HOME_VARIABLE && node->shape.rank > 2;
}

/* The gradient may be shared by columns: as an update's share they would be the short stretches that split_matmul
 * avoids. */
static tdi_split split_filter_update(const tdi_node *node, const tdi_placing *p, int lanes)
{
    (void)lanes;
    bool enough = tdi_shape_elements(&p->call->out.shape) >= MIN_ELEMENTS;
    return can(node, p->splits, TDI_FLAT) && enough ? TDI_FLAT : TDI_WHOLE;
}

static tdi_split split_other(const tdi_node *node, const tdi_placing *p, int lanes)
{
    const td_shape *out = &p->call->out.shape;
    int64_t elements = tdi_shape_elements(out);
    if (by_rows(node, p, lanes) == TDI_ROWS && (elements >= MIN_ELEMENTS || starts_from_constants(node)))
        return TDI_ROWS;
    bool wide = tdi_split_extent(TDI_COLUMNS, out) >= (int64_t)16 * lanes;
    bool of_many = node->op == &tdi_op_reduce && p->placement_of(p->context, node->in[0]).split != TDI_WHOLE;
    return can(node, p->splits, TDI_COLUMNS) && wide && (elements >= MIN_ELEMENTS || of_many) ? TDI_COLUMNS : TDI_WHOLE;
}

typedef tdi_split split_rule(const tdi_node *node, const tdi_placing *p, int lanes);

/* Ops that are shared for their own sake, not as what they read; NULL: another. Norms and penalties are few numbers of
 * many. */
static split_rule *rule_of(const tdi_node *node)
{
    const tdi_op *op = node->op;
    return updates_filter(node)                            ? split_filter_update
           : op == &tdi_op_matmul                          ? split_matmul
           : op == &tdi_op_lstm || op == &tdi_op_lstm_grad ? split_steps
           : op == &tdi_op_squared_norm                    ? by_rows
           : op == &tdi_op_regularization                  ? by_rows
           : op == &tdi_op_scatter_add                     ? split_scatter
           : op == &tdi_op_matmul_update                   ? split_update
                                                           : NULL;
}

/* How so many lanes would share it. */
static tdi_split split_by(const tdi_node *node, const tdi_placing *p, int lanes)
{
    split_rule *rule = rule_of(node);
    return (rule ? rule : split_other)(node, p, lanes);
}

/* ---- how many lanes ---- */

static bool updates_short_stretches(const tdi_node *node, tdi_placement like)
{
    return node->home == TDI_HOME_VARIABLE && like.split == TDI_COLUMNS &&
           tdi_split_extent(TDI_COLUMNS, &node->shape) < (int64_t)SHORT_STRETCH * like.lanes &&
           tdi_shape_elements(&node->shape) >= MANY_ELEMENTS;
}

/* As another value is shared, so that a lane goes on with what it has made. */
static bool follows(const tdi_node *node, const tdi_placing *p, tdi_placement *placement)
{
    if (rule_of(node))
        return false;
    for (int i = 0; i < node->n_in; i++) {
        tdi_placement like = node->in[i] ? p->placement_of(p->context, node->in[i]) : (tdi_placement){0};
        if (like.split != TDI_WHOLE && can(node, p->splits, like.split) &&
            node->op->reads(node, i, like.split) == like.split && !updates_short_stretches(node, like)) {
            *placement = (tdi_placement){like.split, like.lanes, 0};
            return true;
        }
    }
    return false;
}

/* What the first reader of a value reads beside it, of what was made before. */
static const tdi_node *read_beside(const tdi_node *node)
{
    for (int i = node->id + 1; i < node->graph->nodes.count; i++) {
        const tdi_node *reader = node->graph->nodes.at[i], *other = NULL;
        bool reads = false;
        for (int j = 0; j < reader->n_in; j++) {
            reads = reads || reader->in[j] == node;
            if (!other && reader->in[j] && reader->in[j]->id < node->id)
                other = reader->in[j];
        }
        if (reads)
            return other;
    }
    return NULL;
}

/* So that the lanes need not meet before its reader. */
static bool goes_with_reader(const tdi_node *node, const tdi_placing *p, tdi_placement *placement)
{
    const tdi_node *other = p->lanes > 2 && starts_from_constants(node) ? read_beside(node) : NULL;
    tdi_placement like = other ? p->placement_of(p->context, other) : (tdi_placement){0};
    bool fits = like.split == TDI_WHOLE ||
                (can(node, p->splits, like.split) && tdi_split_extent(like.split, &p->call->out.shape) >= like.lanes);
    if (other && fits)
        *placement = (tdi_placement){like.split, like.lanes, 0};
    return other && fits;
}

/* A product whose lanes read, each, rows of the weight: so many of them; else 0. */
static int readers_by_rows(const tdi_node *node, const tdi_placing *p, const tdi_variable *variable)
{
    if (node->op != &tdi_op_matmul || node->in[1]->op != &tdi_op_parameter || node->in[1]->variable != variable)
        return 0;
    tdi_placement placed = p->placement_of(p->context, node);
    if (placed.depth)
        return placed.depth;
    return placed.split != TDI_WHOLE && node->op->reads(node, 1, placed.split) == TDI_ROWS ? placed.lanes : 0;
}

/* The lanes that own rows of the weight which a product reads or makes the gradient of: those of the first product with
 * it that reads it so. 0: there is none. */
static int owners_of(const tdi_node *node, const tdi_placing *p)
{
    bool reads = node->op == &tdi_op_matmul && node->in[1]->op == &tdi_op_parameter;
    const tdi_variable *variable = reads ? node->in[1]->variable : makes_gradient(node) ? node->variable : NULL;
    int owners = 0;
    for (int i = 0; i < node->id && variable && !owners; i++)
        owners = readers_by_rows(node->graph->nodes.at[i], p, variable);
    return owners;
}

/* All lanes that divide a product by depth read sums, by columns or rows. Fewer lanes' columns are fine too: the next
 * product reads them as depth. */
static tdi_placement place_ending(const tdi_placing *p, int lanes)
{
    const td_shape *out = &p->call->out.shape;
    int64_t columns = p->splits & TDI_CAN_COLUMNS ? tdi_split_extent(TDI_COLUMNS, out) / MIN_COLUMNS : 0;
    int64_t rows = p->splits & TDI_CAN_ROWS ? tdi_split_extent(TDI_ROWS, out) : 0;
    columns = columns < lanes ? columns : lanes;
    rows = rows < lanes ? rows : lanes;
    if (columns > 1 && 2 * columns >= rows)
        return (tdi_placement){TDI_COLUMNS, (int)columns, lanes};
    return rows > 1 ? (tdi_placement){TDI_ROWS, (int)rows, lanes} : (tdi_placement){TDI_WHOLE, 1, lanes};
}

tdi_placement tdi_place(const tdi_node *node, const tdi_placing *p)
{
    tdi_placement placement = {TDI_WHOLE, 1, 0};
    if (p->lanes == 1 || follows(node, p, &placement) || goes_with_reader(node, p, &placement))
        return placement;
    int owners = owners_of(node, p);
    double least = p->lanes > 2 ? tdi_price(node, p, TDI_WHOLE, 1, owners) : INFINITY;
    for (int lanes = 2; lanes <= p->lanes; lanes++) {
        tdi_split split = split_by(node, p, lanes);
        double price = split == TDI_WHOLE ? INFINITY : tdi_price(node, p, split, lanes, owners);
        if (price < least) {
            least = price;
            placement = split == TDI_DEPTH ? place_ending(p, lanes) : (tdi_placement){split, lanes, 0};
        }
    }
    return placement;
}
