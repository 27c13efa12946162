/* precision.c - which values are bfloat16. They are half the bytes to move, and some processors multiply several times
 * as many of them in a second.
 *
 * A node emitted under a mixed_bfloat16 policy computes in bfloat16 if the device has a kernel for that and if it is a
 * convolution or a matrix product, or one of its operands is bfloat16 already. All others compute in float32. So values
 * are rounded where it pays, casts stand only between the two types, and each value is cast at most once.
 *
 * Weights stay float32: kernels round them as they pack them. Gradients of weights, statistics and whatever leaves the
 * activations are float32. */
#include "passes/passes.h"

typedef struct precision {
    tdi_graph *graph;
    const tdi_kernel *const *kernels;
    tdi_node **cast; /* by id: the node's value in the other of the two types; NULL: there is none yet */
} precision;

static bool has_kernel(const precision *p, const tdi_op *op)
{
    for (const tdi_kernel *const *k = p->kernels; *k; k++)
        if ((*k)->op == op && (*k)->takes != TDI_TAKES_FLOAT32)
            return true;
    return op->view;
}

/* Kernels of products round weights themselves, as they pack them. */
static bool is_packed(const tdi_node *node, const tdi_node *from)
{
    return node->op->multiplies && from->op == &tdi_op_parameter;
}

static bool computes_narrow(const precision *p, const tdi_node *node)
{
    const tdi_op *op = node->op;
    if (!node->bfloat16 || !op->bfloat16 || op == &tdi_op_cast || !has_kernel(p, op))
        return false;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && tdi_may_be_bfloat16(op, i) && node->in[i]->dtype == TD_BFLOAT16)
            return true;
    return op->multiplies;
}

static tdi_node *as(precision *p, tdi_node *from, td_dtype dtype)
{
    if (from->dtype == dtype)
        return from;
    if (!p->cast[from->id])
        p->cast[from->id] = tdi_cast(p->graph, from, dtype);
    tdi_node *made = p->cast[from->id];
    if (made)
        p->cast[made->id] = from;
    return made;
}

static bool is_floating(const tdi_node *node)
{
    return node->dtype == TD_FLOAT32 || node->dtype == TD_BFLOAT16;
}

static bool set_inputs(precision *p, tdi_node *node)
{
    bool narrow = computes_narrow(p, node);
    for (int i = 0; i < node->n_in && node->op != &tdi_op_cast; i++) {
        tdi_node *from = node->in[i];
        if (!from || !is_floating(from) || (narrow && is_packed(node, from)))
            continue;
        node->in[i] = as(p, from, narrow && tdi_may_be_bfloat16(node->op, i) ? TD_BFLOAT16 : TD_FLOAT32);
        if (!node->in[i])
            return false;
    }
    return true;
}

static void replace_output(tdi_graph *graph, const tdi_node *old, tdi_node *now)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.at[i] == old)
            graph->outputs.at[i] = now;
}

/* Values that live elsewhere than in the activations are float32: a cast takes over the node's home. */
static bool move_home(precision *p, tdi_node *node)
{
    if (node->dtype != TD_BFLOAT16 || node->home == TDI_HOME_ACTIVATIONS)
        return true;
    tdi_node *wide = as(p, node, TD_FLOAT32);
    if (!wide)
        return false;
    wide->home = node->home;
    wide->slot = node->slot;
    wide->variable = node->variable;
    wide->effect = node->effect;
    node->home = TDI_HOME_ACTIVATIONS;
    node->slot = 0;
    node->variable = NULL;
    node->effect = false;
    replace_output(p->graph, node, wide);
    return true;
}

static td_status add(precision *p, tdi_node *node)
{
    tdi_graph *graph = p->graph;
    graph->scope = node->scope;
    if (!set_inputs(p, node))
        return graph->error.status;
    node->id = graph->nodes.count;
    if (!tdi_push(&graph->nodes, node))
        return tdi_no_memory(&graph->error);
    TDI_TRY(node->op->infer(node, &graph->error));
    return move_home(p, node) ? TD_OK : graph->error.status;
}

static bool wished(const tdi_graph *graph)
{
    bool any = false;
    for (int i = 0; i < graph->nodes.count; i++)
        any = any || graph->nodes.at[i]->bfloat16;
    return any;
}

td_status tdi_precision(tdi_graph *graph, const tdi_kernel *const *kernels)
{
    int count = graph->nodes.count;
    if (!wished(graph))
        return TD_OK;
    /* Each node may be cast once. */
    precision p = {.graph = graph, .kernels = kernels, .cast = TDI_NEW_ARRAY(graph->arena, tdi_node *, 2 * count)};
    tdi_node **nodes = TDI_NEW_ARRAY(graph->arena, tdi_node *, count);
    if (!p.cast || !nodes)
        return tdi_no_memory(&graph->error);
    for (int i = 0; i < count; i++)
        nodes[i] = graph->nodes.at[i];
    graph->nodes.count = 0;
    for (int i = 0; i < count; i++)
        TDI_TRY(add(&p, nodes[i]));
    return TD_OK;
}
