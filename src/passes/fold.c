/* fold.c - forward ops that another op can do on its way, before gradients are emitted: their gradients are then the
 * folded op's.
 *
 *   pad, conv2d                             conv2d with zeros around
 *   pad, max_pool2d of what is never < 0    max_pool2d with cells to skip around: a window's maximum is the same, and
 *                                           where it is 0 the gradient ends at the rectifier below it either way
 *   batch_norm, relu                        batch_norm that rectifies; so batch_norm_inference
 *   batch_norm, add, relu                   batch_norm that adds and rectifies; so batch_norm_inference
 *
 * An op is changed in place; those it has taken over stay for their other readers, and are dropped when there are none.
 */
#include <string.h>

#include "passes/passes.h"

typedef struct folder {
    tdi_graph *graph;
    int *readers;
    tdi_text *notes;
} folder;

static void *changed_attrs(const tdi_node *node)
{
    void *attrs = tdi_alloc(node->graph->arena, node->op->attrs_size);
    if (attrs)
        memcpy(attrs, node->attrs, node->op->attrs_size);
    return attrs;
}

static tdi_node **changed_inputs(const tdi_node *node, int count)
{
    tdi_node **in = TDI_NEW_ARRAY(node->graph->arena, tdi_node *, count);
    if (in)
        memcpy(in, node->in, (size_t)(node->n_in < count ? node->n_in : count) * sizeof(tdi_node *));
    return in;
}

static void note(const folder *f, const tdi_node *node, const char *what)
{
    if (f->notes)
        tdi_text_format(f->notes, "%s: %s went into %s\n", node->scope, what, node->op->name);
}

/* Which input of a batch normalization is added to its result; 0: the node is none. */
static int residual_input(const tdi_node *node)
{
    if (node->op == &tdi_op_batch_norm)
        return TDI_BATCH_NORM_RESIDUAL;
    return node->op == &tdi_op_batch_norm_inference ? TDI_BATCH_NORM_INFERENCE_RESIDUAL : 0;
}

/* ---- padding ---- */

static bool is_rectified(const tdi_node *node)
{
    if (residual_input(node))
        return ((const tdi_batch_norm_attrs *)node->attrs)->relu;
    int kind = node->op == &tdi_op_unary ? ((const tdi_unary_attrs *)node->attrs)->kind : TD_LINEAR;
    return kind == TD_RELU || kind == TD_RELU6;
}

/* Adds the zeros of the pads above `x` along height and width; returns what they pad. */
static tdi_node *peel_pads(tdi_node *x, td_sides *sides)
{
    for (; x->op == &tdi_op_pad; x = x->in[0]) {
        const tdi_pad_attrs *pad = x->attrs;
        bool height = pad->axis == 1;
        if ((!height && pad->axis != 2) || pad->before > INT16_MAX || pad->after > INT16_MAX)
            break;
        *(height ? &sides->top : &sides->left) += (int)pad->before;
        *(height ? &sides->bottom : &sides->right) += (int)pad->after;
    }
    return x;
}

/* Has every window a cell that is not to be skipped? */
static bool windows_reach(const tdi_pool2d_attrs *pool, const td_sides *sides)
{
    return sides->top < pool->pool_h && sides->bottom < pool->pool_h && sides->left < pool->pool_w &&
           sides->right < pool->pool_w;
}

static void fold_pads(const folder *f, tdi_node *node)
{
    bool convolution = node->op == &tdi_op_conv2d;
    td_sides sides = {0};
    tdi_node *x = peel_pads(node->in[0], &sides);
    const tdi_pool2d_attrs *pool = convolution ? NULL : node->attrs;
    if (x == node->in[0] || (pool && (pool->padding != TD_VALID || !is_rectified(x) || !windows_reach(pool, &sides))))
        return;
    void *attrs = changed_attrs(node);
    tdi_node **in = changed_inputs(node, node->n_in);
    if (!attrs || !in)
        return;
    *(convolution ? &((tdi_conv2d_attrs *)attrs)->sides : &((tdi_pool2d_attrs *)attrs)->sides) = sides;
    in[0] = x;
    node->attrs = attrs;
    node->in = in;
    note(f, node, "pad");
}

/* ---- batch normalization ---- */

static bool can_rectify(const folder *f, const tdi_node *node)
{
    int residual = residual_input(node);
    return residual && f->readers[node->id] == 1 && node->home == TDI_HOME_ACTIVATIONS && node->n_in == residual &&
           !((const tdi_batch_norm_attrs *)node->attrs)->relu;
}

/* Makes the rectifier `end` compute what `from` does, `residual` (or NULL) added. */
static void rectify(const folder *f, tdi_node *end, const tdi_node *from, tdi_node *residual)
{
    int at = residual_input(from);
    tdi_batch_norm_attrs *attrs = changed_attrs(from);
    tdi_node **in = changed_inputs(from, at + 1);
    if (!attrs || !in)
        return;
    attrs->relu = true;
    in[at] = residual;
    end->op = from->op;
    end->in = in;
    end->n_in = residual ? at + 1 : at;
    end->attrs = attrs;
    note(f, end, residual ? "add and relu" : "relu");
}

/* Of two normalizations the one whose input is made later: what is added to it is there then, and it can be made of
 * rows as they get ready. */
static int main_path_of(const folder *f, const tdi_node *sum)
{
    if (can_rectify(f, sum->in[0]) && can_rectify(f, sum->in[1]))
        return sum->in[1]->in[0]->id > sum->in[0]->in[0]->id;
    return can_rectify(f, sum->in[1]);
}

static void fold_relu(const folder *f, tdi_node *node)
{
    tdi_node *from = node->in[0];
    if (((const tdi_unary_attrs *)node->attrs)->kind != TD_RELU)
        return;
    if (can_rectify(f, from)) {
        rectify(f, node, from, NULL);
        return;
    }
    bool sum = from->op == &tdi_op_binary && ((const tdi_binary_attrs *)from->attrs)->kind == TDI_ADD;
    if (!sum || f->readers[from->id] != 1 || !tdi_shape_equal(&from->in[0]->shape, &from->in[1]->shape))
        return;
    int main_path = main_path_of(f, from);
    if (can_rectify(f, from->in[main_path]) && from->in[0] != from->in[1])
        rectify(f, node, from->in[main_path], from->in[1 - main_path]);
}

td_status tdi_fold(tdi_graph *graph, tdi_text *notes)
{
    folder f = {.graph = graph, .readers = tdi_count_readers(graph), .notes = notes};
    if (!f.readers)
        return tdi_no_memory(&graph->error);
    for (int i = 0; i < graph->nodes.count; i++) {
        tdi_node *node = graph->nodes.at[i];
        if (node->op == &tdi_op_conv2d || node->op == &tdi_op_max_pool2d)
            fold_pads(&f, node);
        else if (node->op == &tdi_op_unary)
            fold_relu(&f, node);
    }
    return TD_OK;
}
