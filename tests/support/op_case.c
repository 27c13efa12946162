/* op_case.c - makes a case ready to run. */
#include "support/op_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

static const op_case *const tables[] = {op_cases_elementwise, op_cases_shape,    op_cases_linear, op_cases_windows,
                                        op_cases_losses,      op_cases_training, op_cases_lstm};

int op_case_count(void)
{
    int count = 0;
    while (op_case_at(count))
        count++;
    return count;
}

const op_case *op_case_at(int index)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const op_case *c = tables[t]; c->op; c++)
            if (index-- == 0)
                return c;
    return NULL;
}

static void *room(size_t size)
{
    void *buffer = tdi_buffer_create(size + 1);
    if (!buffer)
        abort();
    return buffer;
}

static void fail(const op_run *run, const char *what)
{
    fprintf(stderr, "case \"%s\" of %s: %s: %s\n", run->c->name, run->c->op->name, what, run->graph->error.message);
    abort();
}

/* ---- numbers ---- */

static void fill_spread(tdi_random *random, float *values, int64_t count, double step)
{
    int64_t *order = room((size_t)count * sizeof *order);
    tdi_random_permutation(random, order, count);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(((double)(order[i] - count / 2) + 0.5) * (step > 0 ? step : 0.1));
    tdi_buffer_free(order);
}

static float draw(tdi_random *random, op_fill fill)
{
    switch (fill) {
    case OP_POSITIVE:
        return (float)(0.5 + 2 * tdi_random_uniform(random));
    case OP_UNIT:
        return (float)(0.05 + 0.9 * tdi_random_uniform(random));
    case OP_BITS:
    case OP_MISSING:
        return (float)tdi_random_below(random, 2);
    case OP_ZERO:
        return 0.0f;
    default:
        return (float)tdi_random_normal(random);
    }
}

static bool is_in_frame(const op_leaf *leaf, int64_t i)
{
    const int64_t *dim = leaf->shape.dim, pixel = i / dim[3], row = pixel / dim[2] % dim[1], column = pixel % dim[2];
    return row == 0 || column < leaf->limit + row % 2 || column >= dim[2] - leaf->limit;
}

static float draw_at(tdi_random *random, const op_leaf *leaf, int64_t i, int64_t count)
{
    if (leaf->fill == OP_INFINITE && i % 4999 == 0)
        return INFINITY;
    if (leaf->fill == OP_MISSING && i % 5 == 0)
        return NAN;
    if (leaf->fill == OP_SPARSE && tdi_random_below(random, 10) > 0)
        return 0.0f;
    if (leaf->fill == OP_FRAMED && is_in_frame(leaf, i))
        return 0.0f;
    if (leaf->fill == OP_BANDED) {
        int64_t columns = leaf->shape.dim[leaf->shape.rank - 1], at = i % columns % leaf->limit;
        if (at >= leaf->limit * 3 / 5 || (at == 1 && i < count - columns))
            return 0.0f;
    }
    return draw(random, leaf->fill);
}

static void fill_leaf(const op_leaf *leaf, uint64_t stream, void *data, int64_t count)
{
    tdi_random random = tdi_random_create(7, stream);
    if (leaf->fill == OP_SPREAD) {
        fill_spread(&random, data, count, leaf->step);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (leaf->dtype == TD_FLOAT32)
            ((float *)data)[i] = draw_at(&random, leaf, i, count);
        else if (leaf->dtype == TD_FLOAT64)
            ((double *)data)[i] = tdi_random_normal(&random);
        else if (leaf->dtype == TD_INT32)
            ((int32_t *)data)[i] = (int32_t)tdi_random_below(&random, (uint64_t)leaf->limit);
        else if (leaf->dtype == TD_INT64)
            ((int64_t *)data)[i] = (int64_t)tdi_random_below(&random, (uint64_t)leaf->limit);
        else
            ((uint8_t *)data)[i] = (uint8_t)tdi_random_below(&random, (uint64_t)leaf->limit);
    }
}

/* ---- leaves ---- */

static tdi_node *add_input(op_run *run, int slot, const td_shape *shape, td_dtype dtype)
{
    int64_t count = run->all_rows * tdi_shape_per_row(shape);
    run->inputs[slot] = room((size_t)count * td_dtype_size(dtype));
    return tdi_input(run->graph, slot, shape, dtype);
}

static tdi_node *add_weight(op_run *run, int index, const td_shape *shape)
{
    tdi_variable *variable = &run->variables[index];
    int64_t elements = tdi_shape_elements(shape);
    *variable = (tdi_variable){.layer = "case",
                               .name = "weight",
                               .shape = *shape,
                               .trainable = true,
                               .index = index,
                               .elements = elements,
                               .offset = run->variable_floats};
    run->variable_floats += (elements + 15) / 16 * 16;
    return tdi_parameter(run->graph, variable);
}

static tdi_node *add_leaf(op_run *run, int i)
{
    const op_leaf *leaf = &run->c->leaf[i];
    if (leaf->slot)
        return tdi_slot(run->graph, &run->variables[0], leaf->slot - 1);
    if (tdi_shape_has_batch(&leaf->shape))
        return add_input(run, i, &leaf->shape, leaf->dtype);
    return add_weight(run, i, &leaf->shape);
}

static void fill_leaves(op_run *run)
{
    run->values = room((size_t)run->variable_floats * sizeof(float));
    for (int s = 0; s < 3; s++)
        run->slots[s] = room((size_t)run->variable_floats * sizeof(float));
    for (int i = 0; i < run->c->n_leaves; i++) {
        const op_leaf *leaf = &run->c->leaf[i];
        int64_t rows = tdi_shape_has_batch(&leaf->shape) ? run->all_rows : 1;
        void *data = leaf->slot ? run->slots[leaf->slot - 1] : run->values + run->variables[i].offset;
        if (!leaf->slot && run->inputs[i])
            data = run->inputs[i];
        fill_leaf(leaf, (uint64_t)i, data, rows * tdi_shape_per_row(&leaf->shape));
    }
}

/* ---- the graph ---- */

static void emit_gradients(op_run *run)
{
    tdi_graph *graph = run->graph;
    tdi_node *node = run->node, *of[OP_MAX_LEAVES] = {0};
    if (node->dtype != TD_FLOAT32)
        node = tdi_cast(graph, node, TD_FLOAT32);
    bool batch = tdi_shape_has_batch(&node->shape);
    tdi_node *weights =
        batch ? add_input(run, OP_MAX_LEAVES, &node->shape, TD_FLOAT32) : add_weight(run, OP_MAX_LEAVES, &node->shape);
    tdi_node *product = tdi_binary(graph, TDI_MULTIPLY, node, weights);
    tdi_node *loss = tdi_reduce(graph, TDI_SUM, product, (1u << node->shape.rank) - 1, false);
    for (int i = 0; i < run->c->n_leaves; i++)
        of[i] = run->leaf[i]->dtype == TD_FLOAT32 && !run->c->leaf[i].constant ? run->leaf[i] : NULL;
    if (tdi_gradients(graph, loss, run->c->n_leaves, of, run->gradient) != TD_OK)
        fail(run, "no gradients");
}

static void fill_loss_weights(op_run *run)
{
    const td_shape *shape = &run->node->shape;
    bool batch = tdi_shape_has_batch(shape);
    float *weights = batch ? run->inputs[OP_MAX_LEAVES] : run->values + run->variables[OP_MAX_LEAVES].offset;
    fill_leaf(&(op_leaf){.fill = OP_NORMAL}, 99, weights, (batch ? run->all_rows : 1) * tdi_shape_per_row(shape));
}

static void emit(op_run *run)
{
    const op_case *c = run->c;
    run->graph->shards = run->shards;
    run->graph->scope = "case";
    for (int i = 0; i < c->n_leaves; i++)
        run->leaf[i] = add_leaf(run, i);
    run->node = c->build ? c->build(run->graph, run->leaf, c)
                         : tdi_node_create(run->graph, c->op, c->attrs, c->n_leaves, run->leaf);
    if (!run->node)
        fail(run, "does not build");
}

static void settle_rows(op_run *run, int64_t rows)
{
    run->shards = run->c->shards ? run->c->shards : 1;
    for (int p = 0; p < run->shards; p++) {
        run->rows[p] = rows >= 0 ? rows : run->c->shards ? run->c->rows[p] : 3;
        run->all_rows += run->rows[p];
    }
}

op_run *op_run_create(const op_case *c, op_run_options options)
{
    op_run *run = room(sizeof *run);
    run->c = c;
    run->graph = tdi_graph_create();
    if (!run->graph)
        abort();
    settle_rows(run, options.rows);
    emit(run);
    if (options.gradients)
        emit_gradients(run);
    fill_leaves(run);
    if (options.gradients)
        fill_loss_weights(run);
    evaluation_spec spec = {.graph = run->graph,
                            .shards = run->shards,
                            .rows = run->rows,
                            .group_size = c->group_size,
                            .control = {.learning_rate = 0.01f, .iteration = 2, .step = 5, .seed = 11, .skip = c->skip},
                            .inputs = (const void *const *)run->inputs,
                            .variable_floats = run->variable_floats,
                            .values = run->values,
                            .slots = run->slots,
                            .metrics = 1};
    run->evaluation = evaluation_create(&spec);
    return run;
}

void op_run_free(op_run *run)
{
    evaluation_free(run->evaluation);
    tdi_graph_free(run->graph);
    for (int i = 0; i <= OP_MAX_LEAVES; i++)
        tdi_buffer_free(run->inputs[i]);
    for (int s = 0; s < 3; s++)
        tdi_buffer_free(run->slots[s]);
    tdi_buffer_free(run->values);
    tdi_buffer_free(run);
}

float *op_run_leaf(op_run *run, int leaf, int64_t *count)
{
    const td_shape *shape = &run->leaf[leaf]->shape;
    if (tdi_shape_has_batch(shape)) {
        *count = run->all_rows * tdi_shape_per_row(shape);
        return run->inputs[leaf];
    }
    *count = tdi_shape_elements(shape);
    return run->values + run->variables[leaf].offset;
}

const float *op_run_loss_weights(const op_run *run, int shard)
{
    const td_shape *shape = &run->node->shape;
    if (!tdi_shape_has_batch(shape))
        return run->values + run->variables[OP_MAX_LEAVES].offset;
    int64_t first = 0;
    for (int p = 0; p < shard; p++)
        first += run->rows[p];
    return (const float *)run->inputs[OP_MAX_LEAVES] + first * tdi_shape_per_row(shape);
}
