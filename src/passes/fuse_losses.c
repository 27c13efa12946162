/* fuse_losses.c - a loss and the gradient of its logits by one op, for both take the same exponentials: the gradient's
 * fills a room with the losses, and what is made of them is put behind it. */
#include <string.h>

#include "passes/passes.h"

static const tdi_op *gradient_of(const tdi_op *loss)
{
    return loss == &tdi_op_sparse_softmax_cross_entropy ? &tdi_op_sparse_softmax_cross_entropy_grad
           : loss == &tdi_op_softmax_cross_entropy      ? &tdi_op_softmax_cross_entropy_grad
           : loss == &tdi_op_sigmoid_cross_entropy      ? &tdi_op_sigmoid_cross_entropy_grad
                                                        : NULL;
}

static bool same_ignored(const tdi_node *loss, const tdi_node *gradient)
{
    const tdi_ignore_attrs *a = loss->attrs, *b = gradient->attrs;
    return loss->op != &tdi_op_sparse_softmax_cross_entropy ||
           (a->any == b->any && (!a->any || a->number == b->number));
}

static tdi_node *find_gradient(const tdi_node *loss)
{
    const tdi_op *op = gradient_of(loss->op);
    for (int i = loss->id + 1; op && i < loss->graph->nodes.count; i++) {
        tdi_node *node = loss->graph->nodes.at[i];
        if (node->op == op && node->n_in == 3 && node->in[0] == loss->in[0] && node->in[1] == loss->in[1] &&
            same_ignored(loss, node))
            return node;
    }
    return NULL;
}

/* By id, up to the gradient's: what is made of the losses. NULL for lack of memory. */
static bool *find_followers(const tdi_node *loss, const tdi_node *gradient)
{
    bool *follows = TDI_NEW_ARRAY(loss->graph->arena, bool, gradient->id + 1);
    if (!follows)
        return NULL;
    follows[loss->id] = true;
    for (int i = loss->id + 1; i <= gradient->id; i++) {
        const tdi_node *node = loss->graph->nodes.at[i];
        for (int j = 0; j < node->n_in; j++)
            follows[i] = follows[i] || (node->in[j] && follows[node->in[j]->id]);
    }
    return follows;
}

/* The room, which is the graph's last node, right before the gradient; the followers right behind it. */
static void put_in_order(tdi_graph *graph, const tdi_node *gradient, const bool *follows, tdi_node **order)
{
    int n = 0, count = graph->nodes.count;
    tdi_node **at = graph->nodes.at;
    for (int i = 0; i < gradient->id; i++)
        if (!follows[i])
            order[n++] = at[i];
    order[n++] = at[count - 1];
    order[n++] = at[gradient->id];
    for (int i = 0; i < gradient->id; i++)
        if (follows[i])
            order[n++] = at[i];
    for (int i = gradient->id + 1; i < count - 1; i++)
        order[n++] = at[i];
    memcpy(at, order, (size_t)count * sizeof(tdi_node *));
    for (int i = 0; i < count; i++)
        at[i]->id = i;
}

/* Backpropagation begins before what it is that moves behind the gradient. */
static void begin_earlier(tdi_graph *graph, const tdi_node *gradient, const bool *follows)
{
    while (graph->backward && graph->backward->id < gradient->id && follows[graph->backward->id])
        graph->backward = graph->nodes.at[graph->backward->id + 1];
}

static td_status fuse(tdi_node *loss, tdi_node *gradient, const bool *follows)
{
    tdi_graph *graph = loss->graph;
    tdi_node **in = TDI_NEW_ARRAY(graph->arena, tdi_node *, 4), **of_loss = TDI_NEW_ARRAY(graph->arena, tdi_node *, 2);
    tdi_node **order = TDI_NEW_ARRAY(graph->arena, tdi_node *, graph->nodes.count + 1);
    if (!in || !of_loss || !order)
        return tdi_no_memory(&graph->error);
    graph->scope = loss->scope;
    tdi_node *room = tdi_extra_output(graph, &loss->shape);
    if (!room)
        return graph->error.status;
    memcpy(in, gradient->in, 3 * sizeof *in);
    in[3] = of_loss[0] = room;
    of_loss[1] = gradient;
    gradient->in = in;
    gradient->n_in = 4;
    loss->op = &tdi_op_extra_output_of;
    loss->in = of_loss;
    begin_earlier(graph, gradient, follows);
    put_in_order(graph, gradient, follows, order);
    return TD_OK;
}

td_status tdi_fuse_losses(tdi_graph *graph, tdi_text *notes)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        tdi_node *loss = graph->nodes.at[i], *gradient = find_gradient(loss);
        if (!gradient || loss->home != TDI_HOME_ACTIVATIONS)
            continue;
        bool *follows = find_followers(loss, gradient);
        if (!follows)
            return tdi_no_memory(&graph->error);
        if (follows[gradient->id])
            continue;
        if (notes)
            tdi_text_format(notes, "%s: %s went into %s\n", loss->scope, loss->op->name, gradient->op->name);
        TDI_TRY(fuse(loss, gradient, follows));
        i--; /* another node stands there now */
    }
    return TD_OK;
}
