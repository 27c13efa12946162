/* rewrite.h - the toolkit of passes that let one op do another's work: match, replace, remark.
 *
 * Such a pass is a table of rules, each about the nodes of one op. A rule looks at a node and what it reads; where the
 * pattern matches, it replaces the node and leaves a remark:
 *
 *     static bool fuse_bias(tdi_rewriter *r, tdi_node *node)
 *     {
 *         tdi_node *product = node->in[0];
 *         return tdi_can_take_over(r, product) && product->n_in == 2 &&
 *                tdi_replace(node, product->op, product->attrs, 3,
 *                            (tdi_node *[]){product->in[0], product->in[1], node->in[1]}) &&
 *                tdi_remark(r, node, "bias_add", product->op->name);
 *     }
 *
 * Nodes that were taken over stay in the graph, dead, and the scheduler drops them. The def-use table stays as it was
 * when the pass began, so that a dead node's reads do not count twice. */
#ifndef TDI_PASSES_REWRITE_H
#define TDI_PASSES_REWRITE_H

#include "base/text.h"
#include "graph/def_use.h"
#include "graph/op.h"

typedef struct tdi_rewriter {
    tdi_graph *graph;
    const tdi_def_use *def_use; /* a rule that adds or moves nodes renews it */
    tdi_text *remarks;          /* NULL: nobody wants them */
} tdi_rewriter;

typedef struct tdi_rewrite_rule {
    const tdi_op *op; /* of the nodes that the rule looks at */
    /* Rewrites the node and returns true, or returns false and leaves the graph as it is. */
    bool (*apply)(tdi_rewriter *r, tdi_node *node);
} tdi_rewrite_rule;

/* Applies to each node of the graph, in order, the first rule of its op that matches; `rules` ends with an op NULL. */
td_status tdi_rewrite(tdi_graph *graph, const tdi_rewrite_rule *rules, tdi_text *remarks);

/* ---- match ---- */

/* May the only reader of `node` compute it too? Not when another reads it, nor when its value has a home of its own. */
bool tdi_can_take_over(const tdi_rewriter *r, const tdi_node *node);

/* ---- replace ---- */

/* Gives the node another op, copies of attributes and inputs, and keeps its shape, home and readers. Returns the
 * attributes, to be changed further; NULL when memory is out, which is the graph's error then. */
void *tdi_replace(tdi_node *node, const tdi_op *op, const void *attrs, int n_in, tdi_node *const *in);

/* ---- remark ---- */

/* "<the node's scope>: <what> went into <into>", for explain. Always true, so that a rule can end with it. */
bool tdi_remark(const tdi_rewriter *r, const tdi_node *node, const char *what, const char *into);

#endif
