/* evaluate.c - computes a graph node by node with the references. */
#include "support/evaluate.h"

#include <stdlib.h>

struct evaluation {
    evaluation_spec spec;
    tdi_control control;
    tdi_shard *shards; /* [shards] */
    float **gradients; /* [shards] */
    double **metrics;  /* [shards] */
    void **buffers;    /* everything to free */
    int n_buffers;
    void **data;     /* [nodes][shards] */
    tdi_call *calls; /* [nodes][shards] */
};

static void *room(evaluation *e, size_t size)
{
    void *buffer = tdi_buffer_create(size + 1);
    if (!buffer)
        abort();
    e->buffers = realloc(e->buffers, ((size_t)e->n_buffers + 1) * sizeof *e->buffers);
    if (!e->buffers)
        abort();
    return e->buffers[e->n_buffers++] = buffer;
}

static size_t index_of(const evaluation *e, const tdi_node *node, int shard)
{
    for (int i = 0; i < e->spec.graph->nodes.count; i++)
        if (e->spec.graph->nodes.at[i] == node)
            return (size_t)(i * e->spec.shards + shard);
    abort();
}

static int64_t all_rows(const evaluation *e)
{
    int64_t rows = 0;
    for (int p = 0; p < e->spec.shards; p++)
        rows += e->spec.rows[p];
    return rows;
}

static void make_shards(evaluation *e)
{
    int shards = e->spec.shards, group = e->spec.group_size ? e->spec.group_size : shards;
    int64_t first_row = 0;
    e->shards = room(e, (size_t)shards * sizeof *e->shards);
    e->gradients = room(e, (size_t)shards * sizeof *e->gradients);
    e->metrics = room(e, (size_t)shards * sizeof *e->metrics);
    for (int p = 0; p < shards; p++) {
        int first = p - p % group;
        e->gradients[p] = room(e, (size_t)e->spec.variable_floats * sizeof(float));
        e->metrics[p] = room(e, (size_t)e->spec.metrics * 2 * sizeof(double));
        e->shards[p] = (tdi_shard){.index = p,
                                   .shards = shards,
                                   .group_first = first,
                                   .group_count = first + group <= shards ? group : shards - first,
                                   .first_row = first_row,
                                   .gradients = e->gradients};
        first_row += e->spec.rows[p];
    }
}

static void *input_address(const evaluation *e, const tdi_node *node, int shard)
{
    char *input = (char *)(uintptr_t)e->spec.inputs[node->slot];
    if (!tdi_shape_has_batch(&node->shape))
        return input;
    int64_t elements = e->shards[shard].first_row * tdi_shape_per_row(&node->shape);
    return input + elements * (int64_t)td_dtype_size(node->dtype);
}

static void *address(evaluation *e, const tdi_node *node, int shard)
{
    td_shape shape = tdi_shape_at(&node->shape, e->spec.rows[shard]);
    if (node->op->view)
        return e->data[index_of(e, node->in[0], shard)];
    if ((node->update_phase || node->op == &tdi_op_all_gather) && shard > 0)
        return e->data[index_of(e, node, 0)];
    switch (node->home) {
    case TDI_HOME_INPUT:
        return input_address(e, node, shard);
    case TDI_HOME_VARIABLE:
        return e->spec.values + node->variable->offset;
    case TDI_HOME_SLOT:
        return e->spec.slots[node->slot] + node->variable->offset;
    case TDI_HOME_GRADIENT:
        return e->gradients[shard] + node->variable->offset;
    case TDI_HOME_METRIC:
        return e->metrics[shard] + 2 * node->slot;
    default:
        return room(e, (size_t)tdi_shape_elements(&shape) * td_dtype_size(node->dtype));
    }
}

static tdi_value value_of(const evaluation *e, const tdi_node *node, int shard)
{
    return (tdi_value){.data = e->data[index_of(e, node, shard)],
                       .shape = tdi_shape_at(&node->shape, e->spec.rows[shard]),
                       .dtype = node->dtype};
}

static void make_call(evaluation *e, const tdi_node *node, int shard)
{
    tdi_value *in = room(e, (size_t)node->n_in * sizeof *in);
    for (int i = 0; i < node->n_in; i++)
        in[i] = node->in[i] ? value_of(e, node->in[i], shard) : (tdi_value){0};
    e->data[index_of(e, node, shard)] = address(e, node, shard);
    e->calls[index_of(e, node, shard)] = (tdi_call){.run = node->op->reference,
                                                    .in = in,
                                                    .n_in = node->n_in,
                                                    .out = value_of(e, node, shard),
                                                    .attrs = node->attrs,
                                                    .split = TDI_WHOLE,
                                                    .end = 1,
                                                    .threads = 1,
                                                    .offset = node->variable ? node->variable->offset : 0,
                                                    .control = &e->control,
                                                    .shard = &e->shards[shard]};
}

evaluation *evaluation_create(const evaluation_spec *spec)
{
    evaluation *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    e->spec = *spec;
    e->control = spec->control;
    if (e->control.rows == 0)
        e->control.rows = all_rows(e);
    tdi_control_reckon(&e->control, spec->graph);
    make_shards(e);
    size_t count = (size_t)(spec->graph->nodes.count * spec->shards);
    e->data = room(e, count * sizeof *e->data);
    e->calls = room(e, count * sizeof *e->calls);
    for (int i = 0; i < spec->graph->nodes.count; i++)
        for (int p = 0; p < spec->shards; p++)
            make_call(e, spec->graph->nodes.at[i], p);
    return e;
}

void evaluation_free(evaluation *e)
{
    if (!e)
        return;
    for (int i = 0; i < e->n_buffers; i++)
        tdi_buffer_free(e->buffers[i]);
    free(e->buffers);
    free(e);
}

static void run_node(evaluation *e, int position)
{
    const tdi_node *node = e->spec.graph->nodes.at[position];
    for (int p = 0; p < (node->update_phase ? 1 : e->spec.shards); p++) {
        const tdi_call *call = &e->calls[position * e->spec.shards + p];
        if (!node->op->view)
            call->run(call);
    }
}

void evaluation_run_before(evaluation *e, const tdi_node *node)
{
    for (int p = 0; p < e->spec.shards; p++)
        for (int i = 0; i < 2 * e->spec.metrics; i++)
            e->metrics[p][i] = 0;
    for (int i = 0; i < e->spec.graph->nodes.count && e->spec.graph->nodes.at[i] != node; i++)
        run_node(e, i);
}

void evaluation_run(evaluation *e)
{
    evaluation_run_before(e, NULL);
}

const tdi_call *evaluation_call(const evaluation *e, const tdi_node *node, int shard)
{
    return &e->calls[index_of(e, node, shard)];
}

const void *evaluation_value(const evaluation *e, const tdi_node *node, int shard)
{
    return e->data[index_of(e, node, shard)];
}

const double *evaluation_metric(const evaluation *e, int slot, int shard)
{
    return e->metrics[shard] + 2 * slot;
}
