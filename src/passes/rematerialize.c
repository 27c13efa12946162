/* rematerialize.c - less memory for more work: a value that backpropagation reads, and that is cheap to compute from
 * values that are kept for it anyway, is not kept but computed anew right before its first reader there.
 *
 * A normalized and rectified value is computed from the convolution's result, which the normalization's gradient needs
 * in any case, and a residual sum from its two terms. An op is cheap if its tdi_op says so. A row of cheap ops may be
 * LONGEST long: the value behind it is kept, and the next row begins there.
 *
 * The numbers stay the same: the same kernels run on the same values, and random draws are named by the step, not by
 * when they are made. */
#include <string.h>

#include "graph/def_use.h"
#include "passes/passes.h"

/* At most so many ops are computed anew for one value. */
enum { LONGEST = 4 };

/* How backpropagation gets at a forward value. */
typedef enum access { OUT_OF_REACH = 0, KEPT, COMPUTED } access;

typedef struct forward {
    access access;
    int cost;    /* COMPUTED: ops to compute anew, this one included */
    bool wanted; /* a backward node reads it */
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

/* A value that is not an activation of the batch is small, or kept anyway. */
static bool is_kept_anyway(const tdi_node *node)
{
    return tdi_is_leaf(node) || node->home != TDI_HOME_ACTIVATIONS || !tdi_shape_has_batch(&node->shape);
}

static forward find_access(const rematerializer *r, const tdi_node *node)
{
    forward f = r->of[node->id];
    f.access = f.wanted || is_kept_anyway(node) ? KEPT : OUT_OF_REACH;
    if (is_kept_anyway(node) || node->effect || (!node->op->cheap && !node->op->view))
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

static bool find_accesses(rematerializer *r)
{
    const tdi_def_use *def_use = tdi_def_use_create(r->graph);
    for (int i = 0; i < r->count && def_use; i++) {
        tdi_uses uses = tdi_uses_of(def_use, r->graph->nodes.at[i]);
        r->of[i].wanted = uses.count && uses.at[uses.count - 1].reader->id >= r->count;
    }
    for (int i = 0; i < r->count && def_use; i++)
        r->of[i] = find_access(r, r->graph->nodes.at[i]);
    return def_use != NULL;
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

/* The node that backward nodes read in place of a forward one. */
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

td_status tdi_rematerialize(tdi_graph *graph, int forward_nodes, tdi_text *remarks)
{
    rematerializer r = {.graph = graph, .count = forward_nodes};
    r.of = TDI_NEW_ARRAY(graph->arena, forward, forward_nodes + 1);
    if (!r.of || !find_accesses(&r))
        return tdi_no_memory(&graph->error);
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
    if (remarks && r.copies == 0)
        tdi_text_format(remarks, "no value is cheap to compute anew in backpropagation: all that it needs are kept\n");
    else if (remarks)
        tdi_text_format(remarks, "%d values are computed anew in backpropagation rather than kept\n", r.copies);
    return TD_OK;
}
