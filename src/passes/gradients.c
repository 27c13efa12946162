/* gradients.c - reverse-mode differentiation: walks the nodes backwards and lets each op emit its gradients' nodes.
 *
 * Only nodes between the loss and the wanted nodes are walked. Where a value has several readers, their gradients are
 * added in the order of the walk. */

#include "passes/passes.h"

typedef struct backward {
    tdi_graph *graph;
    int count;       /* nodes of the forward graph */
    bool *needed;    /* by id: it is wanted, or computed from a wanted node */
    tdi_node **grad; /* by id: the sum of the gradients that have arrived so far */
} backward;

static int position_of(const backward *b, const tdi_node *node)
{
    return node->id < b->count ? node->id : -1;
}

static void mark_needed(backward *b, int count, tdi_node *const *of)
{
    for (int i = 0; i < count; i++)
        if (of[i])
            b->needed[of[i]->id] = true;
    for (int i = 0; i < b->count; i++) {
        const tdi_node *node = b->graph->nodes.at[i];
        for (int j = 0; j < node->n_in; j++)
            if (node->in[j] && b->needed[node->in[j]->id])
                b->needed[i] = true;
    }
}

static void arrive(backward *b, tdi_node *at, tdi_node *dx)
{
    int i = position_of(b, at);
    if (!dx || i < 0 || !b->needed[i])
        return;
    b->grad[i] = b->grad[i] ? tdi_binary(b->graph, TDI_ADD, b->grad[i], dx) : dx;
}

static td_status step_back(backward *b, tdi_node *node)
{
    tdi_graph *graph = b->graph;
    tdi_node *dy = b->grad[node->id];
    if (!node->op->gradient)
        return tdi_fail(&graph->error, TD_UNSUPPORTED, "%s: op %s has no gradient: %s", node->scope, node->op->name,
                        node->op->no_gradient);
    tdi_node **dx = TDI_NEW_ARRAY(graph->arena, tdi_node *, node->n_in);
    if (!dx)
        return tdi_no_memory(&graph->error);
    graph->scope = node->scope;
    graph->bfloat16 = node->bfloat16;
    node->op->gradient(graph, node, dy, dx);
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i])
            arrive(b, node->in[i], dx[i]);
    return graph->error.status;
}

static bool has_needed_input(const backward *b, const tdi_node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && b->needed[node->in[i]->id])
            return true;
    return false;
}

td_status tdi_gradients(tdi_graph *graph, tdi_node *loss, int count, tdi_node *const *of, tdi_node **result)
{
    if (!loss || graph->error.status != TD_OK)
        return graph->error.status;
    backward b = {.graph = graph, .count = graph->nodes.count};
    b.needed = TDI_NEW_ARRAY(graph->arena, bool, b.count);
    b.grad = TDI_NEW_ARRAY(graph->arena, tdi_node *, b.count);
    if (!b.needed || !b.grad)
        return tdi_no_memory(&graph->error);
    mark_needed(&b, count, of);
    graph->scope = loss->scope;
    b.grad[loss->id] = tdi_fill(graph, 1.0f, &loss->shape);
    for (int i = b.count - 1; i >= 0; i--)
        if (b.grad[i] && b.needed[i] && has_needed_input(&b, graph->nodes.at[i]))
            TDI_TRY(step_back(&b, graph->nodes.at[i]));
    graph->bfloat16 = false;
    for (int i = 0; i < count; i++)
        result[i] = of[i] ? b.grad[of[i]->id] : NULL;
    return graph->error.status;
}
