/* verify.c - what must hold of every graph, whichever pass made it. A broken rule is a bug of a pass. */

#include "graph/op.h"

static td_status verify_edges(const tdi_graph *graph, int position, tdi_error *error)
{
    const tdi_node *node = graph->nodes.at[position];
    for (int i = 0; i < node->n_in; i++) {
        const tdi_node *from = node->in[i];
        if (from && (from->id >= position || graph->nodes.at[from->id] != from))
            return tdi_fail(error, TD_INTERNAL, "node %d (%s) in %s: input %d (%s) does not stand before it", node->id,
                            node->op->name, node->scope, i, from->op->name);
    }
    return TD_OK;
}

static td_status verify_shape(const tdi_node *node, tdi_error *error)
{
    tdi_node again = *node;
    char now[TDI_SHAPE_TEXT], rule[TDI_SHAPE_TEXT];
    TDI_TRY(node->op->infer(&again, error));
    if (!tdi_shape_equal(&again.shape, &node->shape) || again.dtype != node->dtype)
        return tdi_fail(error, TD_INTERNAL, "node %d (%s) in %s: shape %s %s, but the op's rule gives %s %s", node->id,
                        node->op->name, node->scope, tdi_shape_text(&node->shape, now), td_dtype_name(node->dtype),
                        tdi_shape_text(&again.shape, rule), td_dtype_name(again.dtype));
    return TD_OK;
}

static td_status verify_home(const tdi_node *node, tdi_error *error)
{
    bool needs_variable =
        node->home == TDI_HOME_VARIABLE || node->home == TDI_HOME_SLOT || node->home == TDI_HOME_GRADIENT;
    if (needs_variable && !node->variable)
        return tdi_fail(error, TD_INTERNAL, "node %d (%s) in %s lives with a variable but names none", node->id,
                        node->op->name, node->scope);
    if (needs_variable && tdi_shape_elements(&node->shape) != node->variable->elements)
        return tdi_fail(error, TD_INTERNAL, "node %d (%s) in %s: size differs from its variable %s/%s", node->id,
                        node->op->name, node->scope, node->variable->layer, node->variable->name);
    return TD_OK;
}

td_status tdi_graph_verify(const tdi_graph *graph, tdi_error *error)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        const tdi_node *node = graph->nodes.at[i];
        if (!node->op || !node->attrs || node->graph != graph || node->id != i)
            return tdi_fail(error, TD_INTERNAL, "node at position %d is incomplete", i);
        TDI_TRY(verify_edges(graph, i, error));
        TDI_TRY(verify_shape(node, error));
        TDI_TRY(verify_home(node, error));
    }
    return TD_OK;
}
