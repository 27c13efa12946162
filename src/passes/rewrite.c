/* rewrite.c - applying rules to a graph; what rules have in common. */
#include "passes/rewrite.h"

#include <string.h>

bool tdi_can_take_over(const tdi_rewriter *r, const tdi_node *node)
{
    return tdi_use_count(r->def_use, node) == 1 && node->home == TDI_HOME_ACTIVATIONS;
}

void *tdi_replace(tdi_node *node, const tdi_op *op, const void *attrs, int n_in, tdi_node *const *in)
{
    tdi_arena *arena = node->graph->arena;
    tdi_node **inputs = TDI_NEW_ARRAY(arena, tdi_node *, n_in);
    void *copy = tdi_alloc(arena, op->attrs_size);
    if (!inputs || !copy) {
        tdi_no_memory(&node->graph->error);
        return NULL;
    }
    if (n_in)
        memcpy(inputs, in, (size_t)n_in * sizeof *inputs);
    if (op->attrs_size)
        memcpy(copy, attrs, op->attrs_size);
    node->op = op;
    node->attrs = copy;
    node->in = inputs;
    node->n_in = n_in;
    return copy;
}

bool tdi_remark(const tdi_rewriter *r, const tdi_node *node, const char *what, const char *into)
{
    if (r->remarks)
        tdi_text_format(r->remarks, "%s: %s went into %s\n", node->scope, what, into);
    return true;
}

static void apply_first(tdi_rewriter *r, const tdi_rewrite_rule *rules, tdi_node *node)
{
    const tdi_op *op = node->op;
    for (const tdi_rewrite_rule *rule = rules; rule->op; rule++)
        if (rule->op == op && rule->apply(r, node))
            return;
}

td_status tdi_rewrite(tdi_graph *graph, const tdi_rewrite_rule *rules, tdi_text *remarks)
{
    tdi_rewriter r = {.graph = graph, .def_use = tdi_def_use_create(graph), .remarks = remarks};
    int count = graph->nodes.count;
    tdi_node **nodes = TDI_NEW_ARRAY(graph->arena, tdi_node *, count); /* rules may move them */
    if (!r.def_use || !nodes)
        return tdi_no_memory(&graph->error);
    if (count)
        memcpy(nodes, graph->nodes.at, (size_t)count * sizeof *nodes);
    for (int i = 0; i < count && graph->error.status == TD_OK; i++)
        apply_first(&r, rules, nodes[i]);
    return graph->error.status;
}
