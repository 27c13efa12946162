/* graph.c - making graphs and nodes; the three ops whose values are there before a step begins. */
#include "graph/graph.h"

#include <string.h>

#include "graph/op.h"

tdi_graph *tdi_graph_create(void)
{
    tdi_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return NULL;
    graph->arena = tdi_arena_create();
    graph->scope = "";
    graph->shards = 1;
    if (!graph->arena) {
        free(graph);
        return NULL;
    }
    return graph;
}

void tdi_graph_free(tdi_graph *graph)
{
    if (!graph)
        return;
    tdi_vec_free(&graph->nodes);
    tdi_vec_free(&graph->outputs);
    tdi_vec_free(&graph->parameters);
    tdi_arena_free(graph->arena);
    free(graph);
}

static bool poisoned(tdi_graph *graph, const tdi_op *op, int n_in, tdi_node *const *in)
{
    if (graph->error.status != TD_OK)
        return true;
    for (int i = 0; i < n_in && i < op->min_in; i++)
        if (!in[i])
            return true;
    return false;
}

static tdi_node *node_allocate(tdi_graph *graph, const tdi_op *op, const void *attrs, int n_in, tdi_node *const *in)
{
    tdi_node *node = TDI_NEW(graph->arena, tdi_node);
    tdi_node **inputs = TDI_NEW_ARRAY(graph->arena, tdi_node *, n_in);
    void *copy = tdi_alloc(graph->arena, op->attrs_size);
    if (!node || !inputs || !copy) {
        tdi_no_memory(&graph->error);
        return NULL;
    }
    if (n_in)
        memcpy(inputs, in, (size_t)n_in * sizeof *in);
    if (attrs && op->attrs_size)
        memcpy(copy, attrs, op->attrs_size);
    *node = (tdi_node){.id = graph->nodes.count,
                       .op = op,
                       .graph = graph,
                       .in = inputs,
                       .n_in = n_in,
                       .attrs = copy,
                       .scope = graph->scope,
                       .bfloat16 = graph->bfloat16};
    return node;
}

tdi_node *tdi_node_create(tdi_graph *graph, const tdi_op *op, const void *attrs, int n_in, tdi_node *const *in)
{
    if (poisoned(graph, op, n_in, in))
        return NULL;
    if (n_in < op->min_in || (op->max_in >= 0 && n_in > op->max_in)) {
        tdi_fail(&graph->error, TD_INTERNAL, "%s: op %s takes %d to %d inputs, not %d", graph->scope, op->name,
                 op->min_in, op->max_in, n_in);
        return NULL;
    }
    tdi_node *node = node_allocate(graph, op, attrs, n_in, in);
    if (!node)
        return NULL;
    if (op->infer(node, &graph->error) != TD_OK) {
        tdi_error_prefix(&graph->error, "%s (%s)", graph->scope, op->name);
        return NULL;
    }
    if (!tdi_push(&graph->nodes, node)) {
        tdi_no_memory(&graph->error);
        return NULL;
    }
    return node;
}

/* ---- leaves ---- */

typedef struct leaf_attrs {
    td_shape shape;
    td_dtype dtype;
} leaf_attrs;

static td_status leaf_infer(tdi_node *node, tdi_error *error)
{
    (void)error;
    const leaf_attrs *attrs = node->attrs;
    node->shape = attrs->shape;
    node->dtype = attrs->dtype;
    return TD_OK;
}

static void leaf_reference(const tdi_call *call)
{
    (void)call;
}

static double no_flops(const tdi_call *call)
{
    (void)call;
    return 0;
}

#define LEAF_OP(stem, why)                                                                                             \
    const tdi_op tdi_op_##stem = {.name = #stem,                                                                       \
                                  .attrs_size = sizeof(leaf_attrs),                                                    \
                                  .infer = leaf_infer,                                                                 \
                                  .no_gradient = why,                                                                  \
                                  .reference = leaf_reference,                                                         \
                                  .flops = no_flops,                                                                   \
                                  .leaf = true}

LEAF_OP(input, "it has no inputs");
LEAF_OP(parameter, "it has no inputs");
LEAF_OP(slot, "it has no inputs");

tdi_node *tdi_input(tdi_graph *graph, int slot, const td_shape *shape, td_dtype dtype)
{
    tdi_node *node = tdi_node_create(graph, &tdi_op_input, &(leaf_attrs){*shape, dtype}, 0, NULL);
    if (node) {
        node->home = TDI_HOME_INPUT;
        node->slot = slot;
    }
    return node;
}

tdi_node *tdi_parameter(tdi_graph *graph, tdi_variable *variable)
{
    for (int i = 0; i < graph->parameters.count; i++)
        if (graph->parameters.at[i]->variable == variable)
            return graph->parameters.at[i];
    tdi_node *node = tdi_node_create(graph, &tdi_op_parameter, &(leaf_attrs){variable->shape, TD_FLOAT32}, 0, NULL);
    if (!node)
        return NULL;
    node->home = TDI_HOME_VARIABLE;
    node->variable = variable;
    if (!tdi_push(&graph->parameters, node)) {
        tdi_no_memory(&graph->error);
        return NULL;
    }
    return node;
}

tdi_node *tdi_slot(tdi_graph *graph, tdi_variable *variable, int slot)
{
    tdi_node *node = tdi_node_create(graph, &tdi_op_slot, &(leaf_attrs){variable->shape, TD_FLOAT32}, 0, NULL);
    if (node) {
        node->home = TDI_HOME_SLOT;
        node->variable = variable;
        node->slot = slot;
    }
    return node;
}

bool tdi_is_leaf(const tdi_node *node)
{
    return node->op->leaf;
}

const tdi_node *tdi_root(const tdi_node *node)
{
    while (node->op->view)
        node = node->in[0];
    return node;
}

int tdi_dealt_among(const tdi_node *node)
{
    return node->op->dealt && !node->update_phase ? node->graph->shards : 1;
}
