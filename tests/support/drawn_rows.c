/* drawn_rows.c - softmax and losses, sums, normalization, gathering, of random shapes. */
#include "ops/op_helpers.h"
#include "support/drawn_case.h"

#define BATCH TDI_BATCH

/* The cost of an element, in multiplications, which the bound counts. */
enum { ELEMENT = 100 };

/* Draws [batch, n], [batch, positions, n] or [batch, height, width, n]; false: it is too large. */
static bool draw_rows(drawn_case *d, int64_t last, td_shape *shape)
{
    *shape = (td_shape)OP_DIMS(BATCH, last);
    int more = drawn_often(d, 50) ? 0 : (int)drawn_between(d, 1, 2);
    for (int i = 0; i < more; i++) {
        shape->dim[shape->rank - 1] = drawn_extent(d, 12);
        shape->dim[shape->rank++] = last;
    }
    return drawn_batch(d, drawn_extent(d, 60), (double)(ELEMENT * tdi_shape_per_row(shape)));
}

static td_shape without_last(td_shape shape)
{
    shape.dim[--shape.rank] = 0;
    return shape;
}

/* ---- softmax and losses ---- */

static bool softmax(drawn_case *d)
{
    td_shape shape;
    d->c.op = drawn_often(d, 50) ? &tdi_op_softmax : &tdi_op_log_softmax;
    if (!draw_rows(d, drawn_extent(d, 700), &shape))
        return false;
    drawn_note(d, ", %s", d->c.op->name);
    drawn_leaf(d, shape);
    return true;
}

/* Leaves x, dy. */
static tdi_node *build_softmax_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *y = c->op == &tdi_op_softmax_grad ? tdi_softmax(graph, leaf[0]) : tdi_log_softmax(graph, leaf[0]);
    return tdi_node_create(graph, c->op, NULL, 2, (tdi_node *[]){y, leaf[1]});
}

static bool softmax_grad(drawn_case *d)
{
    td_shape shape;
    d->c.op = drawn_often(d, 50) ? &tdi_op_softmax_grad : &tdi_op_log_softmax_grad;
    if (!draw_rows(d, drawn_extent(d, 700), &shape))
        return false;
    d->c.build = build_softmax_grad;
    drawn_note(d, ", %s", d->c.op->name);
    drawn_leaf(d, shape);
    drawn_leaf(d, shape);
    return true;
}

static bool sparse_cross_entropy(drawn_case *d)
{
    td_shape shape;
    int64_t classes = drawn_extent(d, 700);
    bool gradient = drawn_often(d, 60);
    d->c.op = gradient ? &tdi_op_sparse_softmax_cross_entropy_grad : &tdi_op_sparse_softmax_cross_entropy;
    d->attrs.ignore.any = drawn_often(d, 30);
    d->attrs.ignore.number = (int32_t)drawn_between(d, 0, classes - 1);
    if (!draw_rows(d, classes, &shape))
        return false;
    drawn_note(d, ", %s, ignores %d", d->c.op->name, d->attrs.ignore.any ? d->attrs.ignore.number : -1);
    drawn_leaf(d, shape);
    drawn_numbers(d, without_last(shape), classes + (drawn_often(d, 10) ? 3 : 0));
    if (gradient) {
        drawn_leaf(d, without_last(shape));
        drawn_build_as(d, d->c.op, drawn_often(d, 50) ? "and losses" : "classes");
    }
    return true;
}

static bool cross_entropy(drawn_case *d)
{
    td_shape shape;
    bool gradient = drawn_often(d, 60), sigmoid = drawn_often(d, 40);
    d->c.op = sigmoid ? &tdi_op_sigmoid_cross_entropy : &tdi_op_softmax_cross_entropy;
    if (gradient)
        d->c.op = sigmoid ? &tdi_op_sigmoid_cross_entropy_grad : &tdi_op_softmax_cross_entropy_grad;
    if (!draw_rows(d, drawn_extent(d, 700), &shape))
        return false;
    drawn_note(d, ", %s", d->c.op->name);
    drawn_leaf(d, shape);
    drawn_leaf(d, shape)->fill = OP_UNIT;
    if (gradient) {
        drawn_leaf(d, sigmoid ? shape : without_last(shape));
        drawn_build_as(d, d->c.op, drawn_often(d, 50) ? "and losses" : NULL);
    }
    return true;
}

/* ---- sums ---- */

static bool reduce(drawn_case *d)
{
    td_shape shape;
    tdi_reduce_attrs *a = &d->attrs.reduce;
    d->c.op = &tdi_op_reduce;
    if (!draw_rows(d, drawn_extent(d, 300), &shape))
        return false;
    a->kind = DRAWN_OF(d, TDI_SUM, TDI_SUM, TDI_MEAN, TDI_MAX);
    a->axes = (unsigned)drawn_between(d, 0, (1 << shape.rank) - 1);
    a->keepdims = drawn_often(d, 30);
    if (a->kind == TDI_MEAN)
        a->axes &= ~1u; /* over the batch it is an op of its own */
    drawn_note(d, ", kind %d, axes %#x, kept %d", a->kind, a->axes, a->keepdims);
    drawn_leaf(d, shape);
    return true;
}

static bool bias_add(drawn_case *d)
{
    td_shape shape;
    d->c.op = &tdi_op_bias_add;
    int64_t channels = drawn_channels(d);
    drawn_leaf(d, (td_shape)OP_DIMS(BATCH, channels));
    if (!draw_rows(d, channels, &shape))
        return false;
    d->c.leaf[0].shape = shape;
    drawn_leaf(d, (td_shape)OP_DIMS(channels));
    return true;
}

static bool batch_mean(drawn_case *d)
{
    td_shape shape;
    d->c.op = &tdi_op_batch_mean;
    if (!draw_rows(d, drawn_extent(d, 700), &shape))
        return false;
    drawn_leaf(d, shape);
    return true;
}

/* ---- batch normalization ---- */

/* There are enough rows that no variance is close to zero. */
static bool draw_normalized(drawn_case *d, td_shape *shape)
{
    bool fits = draw_rows(d, drawn_channels(d), shape);
    return fits && d->c.rows[0] * tdi_shape_per_row(shape) / tdi_last_extent(shape) >= 8;
}

static void add_channels(drawn_case *d, int64_t channels, op_fill fill)
{
    drawn_leaf(d, (td_shape)OP_DIMS(channels))->fill = fill;
}

static bool batch_norm_stats(drawn_case *d)
{
    td_shape shape;
    d->c.op = &tdi_op_batch_norm_stats;
    if (!draw_normalized(d, &shape))
        return false;
    d->attrs.batch_norm_stats.groups = (int)drawn_between(d, 1, 3);
    drawn_note(d, ", groups %d", d->attrs.batch_norm_stats.groups);
    drawn_leaf(d, shape);
    return true;
}

/* Adds the leaf x, and builds the node with a relu or as the case of the other name; returns whether it has the relu.
 */
static bool draw_relu(drawn_case *d, td_shape shape, const char *otherwise)
{
    bool relu = drawn_often(d, 50);
    drawn_build_as(d, d->c.op, relu ? "relu" : otherwise);
    drawn_note(d, ", relu %d", relu);
    drawn_leaf(d, shape);
    return relu;
}

static bool batch_norm(drawn_case *d)
{
    td_shape shape;
    d->c.op = &tdi_op_batch_norm;
    if (!draw_normalized(d, &shape))
        return false;
    bool relu = draw_relu(d, shape, "dense");
    add_channels(d, tdi_last_extent(&shape), OP_POSITIVE);
    add_channels(d, tdi_last_extent(&shape), OP_NORMAL);
    if (relu && drawn_often(d, 50))
        drawn_leaf(d, shape);
    return true;
}

static bool batch_norm_grad(drawn_case *d)
{
    td_shape shape;
    d->c.op = drawn_often(d, 50) ? &tdi_op_batch_norm_grad_stats : &tdi_op_batch_norm_grad_input;
    if (!draw_normalized(d, &shape))
        return false;
    d->attrs.batch_norm.relu = drawn_often(d, 50);
    d->c.groups = (int)drawn_between(d, 1, 2);
    drawn_build_as(d, d->c.op, NULL);
    drawn_note(d, ", %s, relu %d, groups %d", d->c.op->name, d->attrs.batch_norm.relu, d->c.groups);
    drawn_leaf(d, shape);
    drawn_leaf(d, shape);
    add_channels(d, tdi_last_extent(&shape), OP_POSITIVE);
    add_channels(d, tdi_last_extent(&shape), OP_NORMAL);
    return true;
}

static bool batch_norm_inference(drawn_case *d)
{
    td_shape shape;
    d->c.op = &tdi_op_batch_norm_inference;
    if (!draw_rows(d, drawn_channels(d), &shape))
        return false;
    bool relu = draw_relu(d, shape, "feature map");
    add_channels(d, tdi_last_extent(&shape), OP_NORMAL);
    add_channels(d, tdi_last_extent(&shape), OP_POSITIVE);
    add_channels(d, tdi_last_extent(&shape), OP_POSITIVE);
    add_channels(d, tdi_last_extent(&shape), OP_NORMAL);
    if (relu && drawn_often(d, 50))
        drawn_leaf(d, shape);
    return true;
}

/* ---- gathering ---- */

/* Indices [batch] or [batch, positions] into a table whose rows have one or two axes. */
static bool draw_indices(drawn_case *d, td_shape *indices, td_shape *table)
{
    int64_t items = drawn_extent(d, 60), positions = drawn_extent(d, 12), middle = drawn_extent(d, 4);
    int64_t width = drawn_channels(d);
    *indices = drawn_often(d, 50) ? (td_shape)OP_DIMS(BATCH) : (td_shape)OP_DIMS(BATCH, positions);
    *table = drawn_often(d, 60) ? (td_shape)OP_DIMS(items, width) : (td_shape)OP_DIMS(items, middle, width);
    return drawn_batch(d, drawn_extent(d, 60), (double)(ELEMENT * positions * middle * width));
}

static bool gather(drawn_case *d)
{
    td_shape indices, table;
    d->c.op = &tdi_op_gather;
    if (!draw_indices(d, &indices, &table))
        return false;
    drawn_leaf(d, table);
    drawn_numbers(d, indices, table.dim[0]);
    return true;
}

static bool scatter_add(drawn_case *d)
{
    td_shape indices, table;
    d->c.op = &tdi_op_scatter_add;
    if (!draw_indices(d, &indices, &table))
        return false;
    td_shape rows = indices;
    for (int axis = 1; axis < table.rank; axis++)
        rows.dim[rows.rank++] = table.dim[axis];
    d->attrs.shape.shape = table;
    drawn_build_as(d, d->c.op, NULL);
    drawn_note(d, ", table of %lld", (long long)table.dim[0]);
    drawn_numbers(d, indices, table.dim[0]);
    drawn_leaf(d, rows);
    return true;
}

static bool gather_update(drawn_case *d)
{
    td_shape indices, table;
    d->c.op = &tdi_op_gather_update;
    if (!draw_indices(d, &indices, &table))
        return false;
    td_shape rows = indices;
    for (int axis = 1; axis < table.rank; axis++)
        rows.dim[rows.rank++] = table.dim[axis];
    drawn_build_as(d, d->c.op, NULL);
    drawn_leaf(d, table);
    drawn_numbers(d, indices, table.dim[0]);
    drawn_leaf(d, rows);
    return true;
}

const drawn_kind drawn_rows[] = {{"softmax", softmax, 1},
                                 {"softmax_grad", softmax_grad, 1},
                                 {"sparse cross-entropy", sparse_cross_entropy, 1},
                                 {"cross-entropy", cross_entropy, 1},
                                 {"reduce", reduce, 1},
                                 {"bias_add", bias_add, 1},
                                 {"batch_mean", batch_mean, 1},
                                 {"batch_norm_stats", batch_norm_stats, 1},
                                 {"batch_norm", batch_norm, 1},
                                 {"batch_norm_grad", batch_norm_grad, 1},
                                 {"batch_norm_inference", batch_norm_inference, 1},
                                 {"gather", gather, 1},
                                 {"scatter_add", scatter_add, 1},
                                 {"gather_update", gather_update, 1},
                                 {0}};
