/* drawn_linear.c - products of matrices of random shapes, updates that take one in, and LSTMs. */
#include "support/drawn_case.h"

#define BATCH TDI_BATCH

/* Extents of rows or columns, and of depth. */
static int64_t extent(drawn_case *d)
{
    if (drawn_often(d, 25))
        return DRAWN_OF(d, 16, 32, 48, 64, 96, 128, 256, 512);
    return drawn_extent(d, 700);
}

static void thin_out(drawn_case *d, op_leaf *leaf)
{
    if (drawn_often(d, 15))
        leaf->fill = OP_SPARSE;
    else if (drawn_often(d, 15)) {
        leaf->fill = OP_BANDED;
        leaf->limit = (int)drawn_between(d, 5, 40);
    }
}

/* a [rows, depth] by b [depth, columns], or b transposed: with a bias, an activation or a slope. */
static bool matmul(drawn_case *d)
{
    int64_t rows = drawn_extent(d, 300), depth = extent(d), columns = extent(d);
    tdi_matmul_attrs *a = &d->attrs.matmul;
    a->transpose_b = drawn_often(d, 40);
    bool slope = a->transpose_b && drawn_often(d, 40);
    *(slope ? &a->slope : &a->activation) = drawn_activation(d, columns);
    drawn_note(d, ", b%s transposed, activation %d, slope %d", a->transpose_b ? "" : " not", a->activation, a->slope);
    d->c.op = &tdi_op_matmul;
    thin_out(d, drawn_leaf(d, (td_shape)OP_DIMS(BATCH, depth)));
    drawn_leaf(d, a->transpose_b ? (td_shape)OP_DIMS(columns, depth) : (td_shape)OP_DIMS(depth, columns));
    if (a->slope != TD_LINEAR)
        drawn_leaf(d, (td_shape)OP_DIMS(BATCH, columns));
    else if (drawn_often(d, 40))
        drawn_leaf(d, (td_shape)OP_DIMS(columns));
    return drawn_batch(d, rows, 2.0 * (double)(depth * columns));
}

/* The transpose of a [depth, rows] by b [depth, columns]; the depth is the batch. */
static bool matmul_of_batch(drawn_case *d)
{
    int64_t rows = extent(d), depth = drawn_extent(d, 150), columns = extent(d);
    d->attrs.matmul.transpose_a = true;
    d->c.op = &tdi_op_matmul;
    thin_out(d, drawn_leaf(d, (td_shape)OP_DIMS(BATCH, rows)));
    drawn_leaf(d, (td_shape)OP_DIMS(BATCH, columns));
    return drawn_batch(d, depth, 2.0 * (double)(rows * columns));
}

/* Products of two weights, each transposed or not. */
static bool matmul_of_weights(drawn_case *d)
{
    int64_t rows = drawn_extent(d, 100), depth = extent(d), columns = drawn_extent(d, 200);
    tdi_matmul_attrs *a = &d->attrs.matmul;
    a->transpose_a = drawn_often(d, 50);
    a->transpose_b = drawn_often(d, 50);
    drawn_note(d, ", a%s transposed, b%s transposed", a->transpose_a ? "" : " not", a->transpose_b ? "" : " not");
    d->c.op = &tdi_op_matmul;
    drawn_leaf(d, a->transpose_a ? (td_shape)OP_DIMS(depth, rows) : (td_shape)OP_DIMS(rows, depth));
    drawn_leaf(d, a->transpose_b ? (td_shape)OP_DIMS(columns, depth) : (td_shape)OP_DIMS(depth, columns));
    return drawn_batch(d, 1, 2.0 * (double)(rows * depth * columns));
}

/* ---- updates ---- */

/* The number of slots of the optimizer. */
static int draw_optimizer(drawn_case *d, tdi_matmul_update_attrs *attrs)
{
    tdi_optimizer_attrs *o = &attrs->optimizer;
    bool adam = drawn_often(d, 60), more = drawn_often(d, 30);
    attrs->update = adam ? &tdi_op_adam : &tdi_op_sgd;
    o->clipvalue = drawn_often(d, 20) ? 0.3f : 0;
    o->weight_decay = drawn_often(d, 20) ? 0.01f : 0;
    if (adam) {
        o->beta_1 = 0.9f;
        o->beta_2 = 0.999f;
        o->epsilon = 1e-7f;
        o->amsgrad = more;
    } else if (more) {
        o->momentum = 0.9f;
        o->nesterov = drawn_often(d, 50);
    }
    int slots = adam ? 2 + more : more;
    drawn_note(d, ", %s with %d slots, clipvalue %g, weight decay %g, nesterov %d", attrs->update->name, slots,
               (double)o->clipvalue, (double)o->weight_decay, o->nesterov);
    return slots;
}

static void add_slots(drawn_case *d, int slots)
{
    for (int s = 1; s <= slots; s++) {
        op_leaf *leaf = drawn_leaf(d, d->c.leaf[0].shape);
        leaf->slot = s;
        leaf->fill = s > 1 ? OP_UNIT : OP_NORMAL;
    }
}

/* Leaves weight, a, b. */
static bool draw_factors(drawn_case *d, int64_t positions)
{
    int64_t rows = extent(d), columns = extent(d);
    drawn_leaf(d, (td_shape)OP_DIMS(rows, columns));
    thin_out(d,
             drawn_leaf(d, positions > 1 ? (td_shape)OP_DIMS(BATCH, positions, rows) : (td_shape)OP_DIMS(BATCH, rows)));
    drawn_leaf(d, positions > 1 ? (td_shape)OP_DIMS(BATCH, positions, columns) : (td_shape)OP_DIMS(BATCH, columns));
    return drawn_batch(d, drawn_extent(d, 90), 2.0 * (double)(positions * rows * columns));
}

static bool matmul_update(drawn_case *d)
{
    int slots = draw_optimizer(d, &d->attrs.matmul_update);
    int64_t positions = drawn_often(d, 20) ? drawn_between(d, 2, 5) : 1;
    d->c.op = &tdi_op_matmul_update;
    d->c.build = op_case_update;
    if (!draw_factors(d, positions))
        return false;
    add_slots(d, slots);
    return true;
}

static bool leave_gradient(drawn_case *d)
{
    d->c.op = &tdi_op_leave_gradient;
    d->attrs.matmul.transpose_a = true;
    drawn_build_as(d, d->c.op, NULL);
    return draw_factors(d, drawn_often(d, 20) ? drawn_between(d, 2, 5) : 1);
}

static bool joint_update(drawn_case *d)
{
    tdi_joint_update_attrs *a = &d->attrs.joint_update;
    int slots = draw_optimizer(d, &a->of);
    a->shards = (int)drawn_between(d, 1, OP_MAX_SHARDS);
    a->positions = drawn_often(d, 20) ? drawn_between(d, 2, 5) : 1;
    d->c.op = &tdi_op_joint_update;
    drawn_build_as(d, d->c.op, NULL);
    if (!draw_factors(d, a->positions))
        return false;
    add_slots(d, slots);
    /* The shards have the rows that a plan cuts a batch into. */
    int64_t rows = d->c.rows[0];
    d->c.shards = a->shards;
    for (int p = 0; p < a->shards; p++)
        d->c.rows[p] = tdi_shard_first_row(rows, p + 1, a->shards) - tdi_shard_first_row(rows, p, a->shards);
    return true;
}

/* ---- LSTMs ---- */

/* Weights are small where there are many units or steps, because large ones would magnify rounding errors. */
static void add_recurrent(drawn_case *d, int64_t units, int64_t steps)
{
    op_leaf *leaf = drawn_leaf(d, (td_shape)OP_DIMS(units, 4 * units));
    if (units * steps > 100) {
        leaf->fill = OP_SPREAD;
        leaf->step = 0.05 / (double)(units * units);
    }
}

static void draw_steps(drawn_case *d, int64_t *units, int64_t *steps)
{
    *units = drawn_often(d, 30) ? DRAWN_OF(d, 8, 16, 32, 64, 128) : drawn_extent(d, 150);
    *steps = drawn_between(d, 1, 12);
    d->attrs.lstm = (tdi_lstm_attrs){.activation = TD_TANH, .recurrent_activation = TD_SIGMOID, .gates = true};
    d->attrs.lstm.backwards = drawn_often(d, 30);
    drawn_note(d, ", backwards %d", d->attrs.lstm.backwards);
}

static int64_t rows_of(drawn_case *d)
{
    return drawn_often(d, 30) ? 1 : drawn_between(d, 2, 20);
}

static bool lstm(drawn_case *d)
{
    int64_t units, steps, features = drawn_extent(d, 20);
    draw_steps(d, &units, &steps);
    bool from_x = drawn_often(d, 50);
    d->c.op = &tdi_op_lstm;
    d->attrs.lstm.gates = drawn_often(d, 60);
    drawn_note(d, ", gates %d", d->attrs.lstm.gates);
    drawn_build_as(d, d->c.op, from_x ? "from x" : "usual");
    drawn_leaf(d, from_x ? (td_shape)OP_DIMS(BATCH, steps, features) : (td_shape)OP_DIMS(BATCH, steps, 4, units));
    add_recurrent(d, units, steps);
    if (from_x) {
        drawn_leaf(d, (td_shape)OP_DIMS(features, 4 * units));
        drawn_leaf(d, (td_shape)OP_DIMS(4 * units));
    }
    return drawn_batch(d, rows_of(d), 8.0 * (double)(steps * units * (units + features)));
}

static bool lstm_grad(drawn_case *d)
{
    int64_t units, steps;
    draw_steps(d, &units, &steps);
    d->c.op = &tdi_op_lstm_grad;
    d->attrs.lstm.sequences = drawn_often(d, 50);
    drawn_build_as(d, d->c.op, NULL);
    drawn_leaf(d, (td_shape)OP_DIMS(BATCH, steps, 4, units));
    add_recurrent(d, units, steps);
    drawn_leaf(d, d->attrs.lstm.sequences ? (td_shape)OP_DIMS(BATCH, steps, units) : (td_shape)OP_DIMS(BATCH, units));
    return drawn_batch(d, rows_of(d), 16.0 * (double)(steps * units * units));
}

static bool lstm_grad_recurrent(drawn_case *d)
{
    int64_t units, steps;
    draw_steps(d, &units, &steps);
    d->c.op = &tdi_op_lstm_grad_recurrent;
    drawn_build_as(d, d->c.op, NULL);
    drawn_leaf(d, (td_shape)OP_DIMS(BATCH, steps, 4, units));
    add_recurrent(d, units, steps);
    return drawn_batch(d, rows_of(d), 16.0 * (double)(steps * units * units));
}

const drawn_kind drawn_linear[] = {{"matmul", matmul, 1},
                                   {"matmul of batch", matmul_of_batch, 1},
                                   {"matmul of weights", matmul_of_weights, 1},
                                   {"matmul_update", matmul_update, 1},
                                   {"leave_gradient", leave_gradient, 1},
                                   {"joint_update", joint_update, 1},
                                   {"lstm", lstm, 1},
                                   {"lstm_grad", lstm_grad, 1},
                                   {"lstm_grad_recurrent", lstm_grad_recurrent, 1},
                                   {0}};
