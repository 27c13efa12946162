/* evaluate.c - computes a graph node by node with the references. */
#include "support/evaluate.h"

#include <stdlib.h>

struct evaluation {
    evaluation_spec spec;
    tdi_control control;
    tdi_part *parts;   /* [parts] */
    float **gradients; /* [parts] */
    double **metrics;  /* [parts] */
    void **buffers;    /* everything to free */
    int n_buffers;
    void **data;     /* [nodes][parts] */
    tdi_call *calls; /* [nodes][parts] */
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

static size_t index_of(const evaluation *e, const tdi_node *node, int part)
{
    for (int i = 0; i < e->spec.graph->nodes.count; i++)
        if (e->spec.graph->nodes.at[i] == node)
            return (size_t)(i * e->spec.parts + part);
    abort();
}

static int64_t all_rows(const evaluation *e)
{
    int64_t rows = 0;
    for (int p = 0; p < e->spec.parts; p++)
        rows += e->spec.rows[p];
    return rows;
}

static void make_parts(evaluation *e)
{
    int parts = e->spec.parts, group = e->spec.group_size ? e->spec.group_size : parts;
    int64_t first_row = 0;
    e->parts = room(e, (size_t)parts * sizeof *e->parts);
    e->gradients = room(e, (size_t)parts * sizeof *e->gradients);
    e->metrics = room(e, (size_t)parts * sizeof *e->metrics);
    for (int p = 0; p < parts; p++) {
        int first = p - p % group;
        e->gradients[p] = room(e, (size_t)e->spec.variable_floats * sizeof(float));
        e->metrics[p] = room(e, (size_t)e->spec.metrics * 2 * sizeof(double));
        e->parts[p] = (tdi_part){.index = p,
                                 .parts = parts,
                                 .group_first = first,
                                 .group_count = first + group <= parts ? group : parts - first,
                                 .first_row = first_row,
                                 .gradients = e->gradients};
        first_row += e->spec.rows[p];
    }
}

static void *input_address(const evaluation *e, const tdi_node *node, int part)
{
    char *input = (char *)(uintptr_t)e->spec.inputs[node->slot];
    if (!tdi_shape_has_batch(&node->shape))
        return input;
    int64_t elements = e->parts[part].first_row * tdi_shape_per_row(&node->shape);
    return input + elements * (int64_t)td_dtype_size(node->dtype);
}

static void *address(evaluation *e, const tdi_node *node, int part)
{
    td_shape shape = tdi_shape_at(&node->shape, e->spec.rows[part]);
    if (node->op->view)
        return e->data[index_of(e, node->in[0], part)];
    if ((node->once || node->op == &tdi_op_all_gather) && part > 0)
        return e->data[index_of(e, node, 0)];
    switch (node->home) {
    case TDI_HOME_INPUT:
        return input_address(e, node, part);
    case TDI_HOME_VARIABLE:
        return e->spec.values + node->variable->offset;
    case TDI_HOME_SLOT:
        return e->spec.slots[node->slot] + node->variable->offset;
    case TDI_HOME_GRADIENT:
        return e->gradients[part] + node->variable->offset;
    case TDI_HOME_METRIC:
        return e->metrics[part] + 2 * node->slot;
    default:
        return room(e, (size_t)tdi_shape_elements(&shape) * td_dtype_size(node->dtype));
    }
}

static tdi_value value_of(const evaluation *e, const tdi_node *node, int part)
{
    return (tdi_value){.data = e->data[index_of(e, node, part)],
                       .shape = tdi_shape_at(&node->shape, e->spec.rows[part]),
                       .dtype = node->dtype};
}

static void make_call(evaluation *e, const tdi_node *node, int part)
{
    tdi_value *in = room(e, (size_t)node->n_in * sizeof *in);
    for (int i = 0; i < node->n_in; i++)
        in[i] = node->in[i] ? value_of(e, node->in[i], part) : (tdi_value){0};
    e->data[index_of(e, node, part)] = address(e, node, part);
    e->calls[index_of(e, node, part)] = (tdi_call){.run = node->op->reference,
                                                   .in = in,
                                                   .n_in = node->n_in,
                                                   .out = value_of(e, node, part),
                                                   .attrs = node->attrs,
                                                   .split = TDI_WHOLE,
                                                   .end = 1,
                                                   .lanes = 1,
                                                   .offset = node->variable ? node->variable->offset : 0,
                                                   .control = &e->control,
                                                   .part = &e->parts[part]};
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
    make_parts(e);
    size_t count = (size_t)(spec->graph->nodes.count * spec->parts);
    e->data = room(e, count * sizeof *e->data);
    e->calls = room(e, count * sizeof *e->calls);
    for (int i = 0; i < spec->graph->nodes.count; i++)
        for (int p = 0; p < spec->parts; p++)
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
    for (int p = 0; p < (node->once ? 1 : e->spec.parts); p++) {
        const tdi_call *call = &e->calls[position * e->spec.parts + p];
        if (!node->op->view)
            call->run(call);
    }
}

void evaluation_run_before(evaluation *e, const tdi_node *node)
{
    for (int p = 0; p < e->spec.parts; p++)
        for (int i = 0; i < 2 * e->spec.metrics; i++)
            e->metrics[p][i] = 0;
    for (int i = 0; i < e->spec.graph->nodes.count && e->spec.graph->nodes.at[i] != node; i++)
        run_node(e, i);
}

void evaluation_run(evaluation *e)
{
    evaluation_run_before(e, NULL);
}

const tdi_call *evaluation_call(const evaluation *e, const tdi_node *node, int part)
{
    return &e->calls[index_of(e, node, part)];
}

const void *evaluation_value(const evaluation *e, const tdi_node *node, int part)
{
    return e->data[index_of(e, node, part)];
}

const double *evaluation_metric(const evaluation *e, int slot, int part)
{
    return e->metrics[part] + 2 * slot;
}
