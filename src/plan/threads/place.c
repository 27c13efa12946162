/* place.c - how, and how many of, the threads of a worker share each op.
 *
 * A thread that reads what it wrote needs no meeting and finds it in its cache. So an op is divided as its input is,
 * where it can be; an op whose share rule (tdi_op) begins a division of its own is divided by that rule, among as many
 * threads as make it soonest by the prices of price.c.
 *
 * Weights are what the rules are about. A thread that updates rows of a weight owns them: they stay in its cache until
 * the next step, whose product then reads no other rows. Products are divided by depth for that, where it pays. */
#include <math.h>

#include "graph/def_use.h"
#include "ops/ops.h"
#include "plan/threads/place.h"

/* A product's update is blocked by so many rows: with fewer a thread, it is shared by columns. */
enum { MIN_BLOCK_ROWS = 8 };

/* A share below these is too small to be worth another core's reading of it. */
enum { MIN_COLUMNS = 32, MIN_ELEMENTS = 1024 };

/* Elements. A smaller weight comes from another core's cache quickly. */
enum { MIN_OWNED = 16 * 1024 };

enum { LINE = 16 /* floats */ };

/* From this extent a thread on, a cut on a cache line costs the balance little. Rows, columns and depth are cut alike,
 * so that a thread reads as depth, without a meeting, what it wrote as columns. */
enum { MIN_FOR_LINES = 128 };

/* Stretches shorter than a page are slow to update where there are many: a core's prefetcher takes the other core's
 * lines away. */
enum { SHORT_STRETCH = 1024 /* floats */, MANY_ELEMENTS = 64 * 1024 };

/* From so many rows a thread on, a recurrence spends more time on products than on reading weights once. */
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

/* Shares are whole cache lines, or halves of them where those make shares equal. */
static int64_t unit_of(tdi_split split, int64_t extent, int threads)
{
    if (split == TDI_FLAT)
        return LINE;
    if (extent < (int64_t)MIN_FOR_LINES * threads)
        return 1;
    return extent % (LINE * threads) && extent % (LINE / 2 * threads) == 0 ? LINE / 2 : LINE;
}

void tdi_range(tdi_split split, int64_t extent, int thread, int threads, int64_t *begin, int64_t *end)
{
    if (split == TDI_WHOLE) {
        *begin = 0;
        *end = thread == 0 ? extent : 0;
        return;
    }
    int64_t unit = unit_of(split, extent, threads), units = (extent + unit - 1) / unit;
    int64_t first = units * thread / threads * unit, last = units * (thread + 1) / threads * unit;
    *begin = first < extent ? first : extent;
    *end = last < extent ? last : extent;
}

/* ---- which split, for a number of threads ---- */

static bool can(const tdi_node *node, unsigned splits, tdi_split split)
{
    return node->op->reads && (splits & 1u << split);
}

/* Does it compute a weight's gradient as a product, whose rows its threads own from then on? */
static bool makes_gradient(const tdi_node *node)
{
    bool gradient = node->home == TDI_HOME_GRADIENT && node->op->share == TDI_SHARE_PRODUCT;
    return gradient || node->op->share == TDI_SHARE_PRODUCT_UPDATE;
}

/* Does it multiply with a weight as it is kept? */
static bool multiplies_weight(const tdi_node *node)
{
    return node->op->share == TDI_SHARE_PRODUCT && node->in[1]->op == &tdi_op_parameter;
}

static bool owned_by_rows(const tdi_node *weight)
{
    tdi_node_list nodes = tdi_nodes_of_variable(weight->graph->def_use, weight->variable);
    for (int i = 0; i < nodes.count && weight->graph->shards == 1; i++)
        if (nodes.at[i]->id > weight->id && makes_gradient(nodes.at[i]))
            return true;
    return false;
}

/* By depth each thread reads only the rows of the weight that it owns. The price is the threads' sums, which all read:
 * more than it saves when there are many rows or threads. */
static bool by_depth(const tdi_node *node, const tdi_placing *p, int threads)
{
    const tdi_matmul_attrs *attrs = node->attrs;
    const tdi_node *weight = node->in[1];
    if (!multiplies_weight(node) || tdi_shape_elements(&weight->shape) < MIN_OWNED)
        return false;
    if (!can(node, p->splits, TDI_DEPTH) || attrs->transpose_a || attrs->transpose_b || weight->shape.rank != 2)
        return false;
    const td_shape *out = &p->call->out.shape;
    int64_t depth = weight->shape.dim[0], columns = tdi_split_extent(TDI_COLUMNS, out);
    int64_t rows = columns ? tdi_shape_elements(out) / columns : 0;
    return depth >= (int64_t)MIN_COLUMNS * threads && rows * threads <= depth && owned_by_rows(weight);
}

static tdi_split by_rows(const tdi_node *node, const tdi_placing *p, int threads)
{
    bool enough = tdi_split_extent(TDI_ROWS, &p->call->out.shape) >= threads;
    return can(node, p->splits, TDI_ROWS) && enough ? TDI_ROWS : TDI_WHOLE;
}

static tdi_split by_columns_or_rows(const tdi_node *node, const tdi_placing *p, int threads)
{
    bool enough = tdi_split_extent(TDI_COLUMNS, &p->call->out.shape) >= (int64_t)MIN_COLUMNS * threads;
    return can(node, p->splits, TDI_COLUMNS) && enough ? TDI_COLUMNS : by_rows(node, p, threads);
}

/* A weight's gradient (a transposed) goes by rows: its update then writes whole stretches of memory, where by columns
 * it would be 2.5 times slower (SHORT_STRETCH). A product with a weight that is so owned goes by depth, any other by
 * columns. */
static tdi_split split_product(const tdi_node *node, const tdi_placing *p, int threads)
{
    int64_t rows = tdi_split_extent(TDI_ROWS, &p->call->out.shape);
    bool gradient = ((const tdi_matmul_attrs *)node->attrs)->transpose_a && rows >= (int64_t)MIN_COLUMNS * threads;
    if (gradient && can(node, p->splits, TDI_ROWS))
        return TDI_ROWS;
    return by_depth(node, p, threads) ? TDI_DEPTH : by_columns_or_rows(node, p, threads);
}

static tdi_split split_product_update(const tdi_node *node, const tdi_placing *p, int threads)
{
    bool few = tdi_split_extent(TDI_ROWS, &p->call->out.shape) < (int64_t)MIN_BLOCK_ROWS * threads;
    return (few ? by_columns_or_rows : by_rows)(node, p, threads);
}

/* Nobody has to be waited for then, however small the work is. */
static bool starts_from_constants(const tdi_node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && !node->in[i]->op->constant)
            return false;
    return node->n_in > 0;
}

/* With few rows a thread would spend its time on reading all recurrent weights. By columns (units) it reads its own. */
static tdi_split split_steps(const tdi_node *node, const tdi_placing *p, int threads)
{
    const td_shape *out = &p->call->out.shape;
    int64_t rows = tdi_split_extent(TDI_ROWS, out), units = tdi_split_extent(TDI_COLUMNS, out);
    if (can(node, p->splits, TDI_COLUMNS) && rows < (int64_t)MIN_STEP_ROWS * threads && units >= (int64_t)16 * threads)
        return TDI_COLUMNS;
    return by_rows(node, p, threads);
}

/* Some rows of the result may be met far more often than others, so that one thread adds nearly all. This costs the
 * balance little where a thread's rows are more to clear, and later to update: not where only rows met are touched. */
static tdi_split split_scatter(const tdi_node *node, const tdi_placing *p, int threads)
{
    bool sparse = tdi_shape_elements(&p->call->in[1].shape) * threads <= tdi_shape_elements(&p->call->out.shape);
    return (sparse && !node->op->touches ? by_rows : by_columns_or_rows)(node, p, threads);
}

/* A convolution's filter is updated as a flat run of elements. Its gradient may be shared by columns, but as shares of
 * an update they would be the short stretches that split_product avoids. */
static bool updates_filter(const tdi_node *node)
{
    return node->home == TDI_HOME_VARIABLE && node->shape.rank > 2;
}

static tdi_split split_filter_update(const tdi_node *node, const tdi_placing *p)
{
    bool enough = tdi_shape_elements(&p->call->out.shape) >= MIN_ELEMENTS;
    return can(node, p->splits, TDI_FLAT) && enough ? TDI_FLAT : TDI_WHOLE;
}

static tdi_split split_as_input(const tdi_node *node, const tdi_placing *p, int threads)
{
    const td_shape *out = &p->call->out.shape;
    int64_t elements = tdi_shape_elements(out);
    if (by_rows(node, p, threads) == TDI_ROWS && (elements >= MIN_ELEMENTS || starts_from_constants(node)))
        return TDI_ROWS;
    bool wide = tdi_split_extent(TDI_COLUMNS, out) >= (int64_t)16 * threads;
    bool of_many = node->op->share == TDI_SHARE_SUMS && p->placement_of(p->context, node->in[0]).split != TDI_WHOLE;
    return can(node, p->splits, TDI_COLUMNS) && wide && (elements >= MIN_ELEMENTS || of_many) ? TDI_COLUMNS : TDI_WHOLE;
}

static tdi_split split_by(const tdi_node *node, const tdi_placing *p, int threads)
{
    static tdi_split (*const rules[TDI_SHARE_RULES])(const tdi_node *node, const tdi_placing *p, int threads) = {
        [TDI_SHARE_AS_INPUT] = split_as_input, [TDI_SHARE_SUMS] = split_as_input,
        [TDI_SHARE_PRODUCT] = split_product,   [TDI_SHARE_PRODUCT_UPDATE] = split_product_update,
        [TDI_SHARE_STEPS] = split_steps,       [TDI_SHARE_ROWS] = by_rows,
        [TDI_SHARE_SCATTER] = split_scatter};
    return updates_filter(node) ? split_filter_update(node, p) : rules[node->op->share](node, p, threads);
}

/* ---- how many threads ---- */

static bool begins_division(const tdi_node *node)
{
    return updates_filter(node) || (node->op->share != TDI_SHARE_AS_INPUT && node->op->share != TDI_SHARE_SUMS);
}

static bool updates_short_stretches(const tdi_node *node, tdi_placement like)
{
    return node->home == TDI_HOME_VARIABLE && like.split == TDI_COLUMNS &&
           tdi_split_extent(TDI_COLUMNS, &node->shape) < (int64_t)SHORT_STRETCH * like.threads &&
           tdi_shape_elements(&node->shape) >= MANY_ELEMENTS;
}

/* Divides a node as the first input that allows it, so that a thread goes on with what it has computed. */
static bool place_as_input(const tdi_node *node, const tdi_placing *p, tdi_placement *placement)
{
    if (begins_division(node))
        return false;
    for (int i = 0; i < node->n_in; i++) {
        tdi_placement like = node->in[i] ? p->placement_of(p->context, node->in[i]) : (tdi_placement){0};
        if (like.split != TDI_WHOLE && can(node, p->splits, like.split) &&
            node->op->reads(node, i, like.split) == like.split && !updates_short_stretches(node, like)) {
            *placement = (tdi_placement){like.split, like.threads, 0};
            return true;
        }
    }
    return false;
}

/* The first of the values computed before the node that the node's first reader reads too. */
static const tdi_node *read_beside(const tdi_node *node)
{
    tdi_uses uses = tdi_uses_of(node->graph->def_use, node);
    const tdi_node *reader = uses.count ? uses.at[0].reader : NULL;
    for (int i = 0; reader && i < reader->n_in; i++)
        if (reader->in[i] && reader->in[i]->id < node->id)
            return reader->in[i];
    return NULL;
}

/* Divides what is made of constants as the value beside it, so that threads need not meet before its reader. */
static bool place_as_reader(const tdi_node *node, const tdi_placing *p, tdi_placement *placement)
{
    const tdi_node *other = p->threads > 2 && starts_from_constants(node) ? read_beside(node) : NULL;
    tdi_placement like = other ? p->placement_of(p->context, other) : (tdi_placement){0};
    bool fits = like.split == TDI_WHOLE ||
                (can(node, p->splits, like.split) && tdi_split_extent(like.split, &p->call->out.shape) >= like.threads);
    if (other && fits)
        *placement = (tdi_placement){like.split, like.threads, 0};
    return other && fits;
}

/* How many threads of a product read, each, its own rows of the weight; 0: they read all of it. */
static int readers_by_rows(const tdi_node *product, const tdi_placing *p)
{
    tdi_placement placed = p->placement_of(p->context, product);
    if (placed.depth)
        return placed.depth;
    return placed.split != TDI_WHOLE && product->op->reads(product, 1, placed.split) == TDI_ROWS ? placed.threads : 0;
}

/* How many threads own rows of the weight that a product reads or computes the gradient of: those of the first product
 * before it that reads the weight by rows. 0: there is none. */
static int owners_of(const tdi_node *node, const tdi_placing *p)
{
    const tdi_variable *variable = multiplies_weight(node) ? node->in[1]->variable
                                   : makes_gradient(node)  ? node->variable
                                                           : NULL;
    const tdi_def_use *def_use = node->graph->def_use;
    tdi_node_list nodes = variable ? tdi_nodes_of_variable(def_use, variable) : (tdi_node_list){0};
    int owners = 0;
    for (int i = 0; i < nodes.count; i++) {
        tdi_uses uses = tdi_uses_of(def_use, nodes.at[i]);
        for (int j = 0; j < uses.count && uses.at[j].reader->id < node->id && !owners; j++)
            if (multiplies_weight(uses.at[j].reader) && uses.at[j].input == 1)
                owners = readers_by_rows(uses.at[j].reader, p);
    }
    return owners;
}

/* All threads that divide a product by depth read sums, by columns or rows. Fewer threads than those may complete the
 * sums: the next product reads their columns as depth. */
static tdi_placement place_completion(const tdi_placing *p, int threads)
{
    const td_shape *out = &p->call->out.shape;
    int64_t columns = p->splits & TDI_CAN_COLUMNS ? tdi_split_extent(TDI_COLUMNS, out) / MIN_COLUMNS : 0;
    int64_t rows = p->splits & TDI_CAN_ROWS ? tdi_split_extent(TDI_ROWS, out) : 0;
    columns = columns < threads ? columns : threads;
    rows = rows < threads ? rows : threads;
    if (columns > 1 && 2 * columns >= rows)
        return (tdi_placement){TDI_COLUMNS, (int)columns, threads};
    return rows > 1 ? (tdi_placement){TDI_ROWS, (int)rows, threads} : (tdi_placement){TDI_WHOLE, 1, threads};
}

tdi_placement tdi_place(const tdi_node *node, const tdi_placing *p)
{
    tdi_placement placement = {TDI_WHOLE, 1, 0};
    if (p->threads == 1 || place_as_input(node, p, &placement) || place_as_reader(node, p, &placement))
        return placement;
    int owners = owners_of(node, p);
    double least = p->threads > 2 ? tdi_price(node, p, TDI_WHOLE, 1, owners) : INFINITY;
    for (int threads = 2; threads <= p->threads; threads++) {
        tdi_split split = split_by(node, p, threads);
        double price = split == TDI_WHOLE ? INFINITY : tdi_price(node, p, split, threads, owners);
        if (price < least) {
            least = price;
            placement = split == TDI_DEPTH ? place_completion(p, threads) : (tdi_placement){split, threads, 0};
        }
    }
    return placement;
}
