/* rematerialize.c - less memory for more work: what backpropagation reads again, and is cheap to compute from values
 * that are kept for it anyway, is not kept but computed anew right before its first reader there.
 *
 * A normalized and rectified value comes from the convolution's result, which the normalization's gradient needs in any
 * case; a residual sum from the two values that were added. Chains of such ops are followed for a few steps: one step
 * longer, and a value is kept, from which the next chain begins. The same kernels on the same values give the same
 * numbers; random draws are named by the step, not by when they are made. */
#include <string.h>

#include "passes/passes.h"

/* Ops to compute anew for one value, at most. */
enum { LONGEST = 4 };

/* How a forward value can be had while backpropagation runs. */
typedef enum access { OUT_OF_REACH = 0, KEPT, COMPUTED } access;

typedef struct forward {
    access access;
    int cost;    /* COMPUTED: ops to compute anew, this one included */
    bool wanted; /* by a node of the backward part */
    tdi_node *copy;
} forward;

typedef struct rematerializer {
    tdi_graph *graph;
    int count;                 /* of forward nodes */
    forward *of;               /* by id */
    tdi_vec(tdi_node *) nodes; /* the new order */
    int copies;
    bool failed; /* memory */
} rematerializer;

static bool is_cheap(const tdi_node *node)
{
    static const tdi_op *const ops[] = {&tdi_op_batch_norm, &tdi_op_unary,  &tdi_op_binary,
                                        &tdi_op_bias_add,   &tdi_op_affine, &tdi_op_cast,
                                        &tdi_op_dropout,    &tdi_op_pad,    &tdi_op_concat};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (node->op == ops[i])
            return true;
    return node->op->view;
}

/* What is not an activation of the batch is small, or there anyway. */
static bool is_there(const tdi_node *node)
{
    return tdi_is_leaf(node) || node->home != TDI_HOME_ACTIVATIONS || !tdi_shape_has_batch(&node->shape);
}

static forward settle(const rematerializer *r, const tdi_node *node)
{
    forward f = r->of[node->id];
    f.access = f.wanted || is_there(node) ? KEPT : OUT_OF_REACH;
    if (is_there(node) || node->effect || !is_cheap(node))
        return f;
    int cost = node->op->view ? 0 : 1;
    for (int i = 0; i < node->n_in; i++) {
        const forward *in = node->in[i] ? &r->of[node->in[i]->id] : NULL;
        if (in && in->access == OUT_OF_REACH)
            return f;
        if (in && in->access == COMPUTED)
            cost += in->cost;
    }
    if (cost > LONGEST)
        return f;
    f.access = COMPUTED;
    f.cost = cost;
    return f;
}

static void settle_all(rematerializer *r)
{
    for (int i = r->count; i < r->graph->nodes.count; i++)
        for (int j = 0; j < r->graph->nodes.at[i]->n_in; j++) {
            const tdi_node *in = r->graph->nodes.at[i]->in[j];
            if (in && in->id < r->count)
                r->of[in->id].wanted = true;
        }
    for (int i = 0; i < r->count; i++)
        r->of[i] = settle(r, r->graph->nodes.at[i]);
}

static void push(rematerializer *r, tdi_node *node)
{
    if (!node || !tdi_push(&r->nodes, node))
        r->failed = true;
}

static tdi_node *reach(rematerializer *r, tdi_node *node);

static tdi_node *copy_of(rematerializer *r, const tdi_node *node)
{
    tdi_node *copy = TDI_NEW(r->graph->arena, tdi_node);
    tdi_node **in = TDI_NEW_ARRAY(r->graph->arena, tdi_node *, node->n_in);
    if (!copy || !in)
        return NULL;
    *copy = *node;
    copy->in = in;
    for (int i = 0; i < node->n_in; i++)
        in[i] = node->in[i] ? reach(r, node->in[i]) : NULL;
    r->copies += !node->op->view;
    return copy;
}

/* The node to read in the backward part for a forward one. */
static tdi_node *reach(rematerializer *r, tdi_node *node)
{
    if (node->id >= r->count || r->of[node->id].access != COMPUTED || r->failed)
        return node;
    forward *f = &r->of[node->id];
    if (!f->copy) {
        f->copy = copy_of(r, node);
        push(r, f->copy);
    }
    return f->copy;
}

static void rewire(rematerializer *r)
{
    for (int i = 0; i < r->count; i++)
        push(r, r->graph->nodes.at[i]);
    for (int i = r->count; i < r->graph->nodes.count; i++) {
        tdi_node *node = r->graph->nodes.at[i];
        for (int j = 0; j < node->n_in && !r->failed; j++)
            if (node->in[j])
                node->in[j] = reach(r, node->in[j]);
        push(r, node);
    }
}

td_status tdi_rematerialize(tdi_graph *graph, int forward_nodes, tdi_text *notes)
{
    rematerializer r = {.graph = graph, .count = forward_nodes};
    r.of = TDI_NEW_ARRAY(graph->arena, forward, forward_nodes + 1);
    if (!r.of)
        return tdi_no_memory(&graph->error);
    settle_all(&r);
    rewire(&r);
    if (r.failed) {
        tdi_vec_free(&r.nodes);
        return tdi_no_memory(&graph->error);
    }
    free(graph->nodes.at);
    graph->nodes.at = r.nodes.at;
    graph->nodes.count = r.nodes.count;
    graph->nodes.capacity = r.nodes.capacity;
    for (int i = 0; i < graph->nodes.count; i++)
        graph->nodes.at[i]->id = i;
    if (notes && r.copies == 0)
        tdi_text_format(notes, "no value is cheap to compute anew in backpropagation: all that it needs are kept\n");
    else if (notes)
        tdi_text_format(notes, "%d values are computed anew in backpropagation rather than kept\n", r.copies);
    return TD_OK;
}
