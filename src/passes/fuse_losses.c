/* fuse_losses.c - a loss and the gradient of its logits by one op, for both take the same exponentials.
 *
 * The gradient's op gets an extra output, to which it writes the losses. What is made of the losses (the mean, metrics)
 * has to come after the gradient then: it moves behind it, as long as the gradient is not made of it itself. */
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

static bool same_ignored(const tdi_node *loss, const tdi_node *gradient)
{
    const tdi_ignore_attrs *a = loss->attrs, *b = gradient->attrs;
    return !loss->op->attrs_size || (a->any == b->any && (!a->any || a->number == b->number));
}

static tdi_node *find_gradient(const tdi_rewriter *r, const tdi_node *loss)
{
    tdi_uses uses = tdi_uses_of(r->def_use, loss->in[0]);
    for (int i = 0; i < uses.count; i++) {
        tdi_node *node = uses.at[i].reader;
        if (node->op == loss->op->made_with && node->id > loss->id && node->n_in == 3 && uses.at[i].input == 0 &&
            node->in[1] == loss->in[1] && same_ignored(loss, node))
            return node;
    }
    return NULL;
}

/* By id, up to the gradient's: is the node made of the losses? NULL when memory is out. */
static bool *find_dependents(const tdi_node *loss, const tdi_node *gradient)
{
    bool *depends = TDI_NEW_ARRAY(loss->graph->arena, bool, gradient->id + 1);
    if (!depends)
        return NULL;
    depends[loss->id] = true;
    for (int i = loss->id + 1; i <= gradient->id; i++) {
        const tdi_node *node = loss->graph->nodes.at[i];
        for (int j = 0; j < node->n_in; j++)
            depends[i] = depends[i] || (node->in[j] && depends[node->in[j]->id]);
    }
    return depends;
}

/* Puts the extra output, which is the graph's last node, right before the gradient, and the dependents behind it. */
static bool put_in_order(tdi_graph *graph, const tdi_node *gradient, const bool *depends)
{
    int n = 0, count = graph->nodes.count;
    tdi_node **at = graph->nodes.at, **order = TDI_NEW_ARRAY(graph->arena, tdi_node *, count);
    if (!order)
        return false;
    for (int i = 0; i < gradient->id; i++)
        if (!depends[i])
            order[n++] = at[i];
    order[n++] = at[count - 1];
    order[n++] = at[gradient->id];
    for (int i = 0; i < gradient->id; i++)
        if (depends[i])
            order[n++] = at[i];
    for (int i = gradient->id + 1; i < count - 1; i++)
        order[n++] = at[i];
    memcpy(at, order, (size_t)count * sizeof(tdi_node *));
    for (int i = 0; i < count; i++)
        at[i]->id = i;
    return true;
}

/* Backpropagation does not begin with a node that moves behind the gradient, but with the one after it. */
static void begin_later(tdi_graph *graph, const tdi_node *gradient, const bool *depends)
{
    while (graph->backward && graph->backward->id < gradient->id && depends[graph->backward->id])
        graph->backward = graph->nodes.at[graph->backward->id + 1];
}

static bool fuse_loss(tdi_rewriter *r, tdi_node *loss)
{
    tdi_graph *graph = r->graph;
    tdi_node *gradient = loss->home == TDI_HOME_ACTIVATIONS ? find_gradient(r, loss) : NULL;
    bool *depends = gradient ? find_dependents(loss, gradient) : NULL;
    if (gradient && !depends)
        tdi_no_memory(&graph->error);
    if (!depends || depends[gradient->id])
        return false;
    tdi_remark(r, loss, loss->op->name, gradient->op->name);
    graph->scope = loss->scope;
    tdi_node *output = tdi_extra_output(graph, &loss->shape);
    tdi_node *in[] = {gradient->in[0], gradient->in[1], gradient->in[2], output};
    if (!output || !tdi_replace(gradient, gradient->op, gradient->attrs, 4, in) ||
        !tdi_replace(loss, &tdi_op_extra_output_of, NULL, 2, (tdi_node *[]){output, gradient}))
        return false;
    begin_later(graph, gradient, depends);
    bool complete = put_in_order(graph, gradient, depends);
    r->def_use = tdi_def_use_create(graph);
    if (!complete || !r->def_use)
        tdi_no_memory(&graph->error);
    return true;
}

td_status tdi_fuse_losses(tdi_graph *graph, tdi_text *remarks)
{
    static const tdi_rewrite_rule rules[] = {{&tdi_op_sparse_softmax_cross_entropy, fuse_loss},
                                             {&tdi_op_softmax_cross_entropy, fuse_loss},
                                             {&tdi_op_sigmoid_cross_entropy, fuse_loss},
                                             {0}};
    return tdi_rewrite(graph, rules, remarks);
}
