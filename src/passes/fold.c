/* fold.c - forward ops that another op can do besides, before gradients are emitted: their gradients are then the
 * folded op's.
 *
 *   pad, conv2d                             conv2d with zeros around
 *   pad, max_pool2d of what is never < 0    max_pool2d with cells to skip around: a window's maximum is the same, and
 *                                           where it is 0 the gradient ends at the rectifier below it either way
 *   batch_norm, relu                        batch_norm that rectifies; so batch_norm_inference
 *   batch_norm, add, relu                   batch_norm that adds and rectifies; so batch_norm_inference
 *
 * The last node of a pattern is replaced. The others stay for their other readers, and die when there are none. */
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

/* ---- padding ---- */

static bool is_rectified(const tdi_node *node)
{
    if (node->op->residual)
        return ((const tdi_batch_norm_attrs *)node->attrs)->relu;
    int kind = node->op == &tdi_op_unary ? ((const tdi_unary_attrs *)node->attrs)->kind : TD_LINEAR;
    return kind == TD_RELU || kind == TD_RELU6;
}

/* Adds the zeros of the pads above `x` along height and width to `sides`; returns what they pad. */
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

static bool fold_pads_into_conv2d(tdi_rewriter *r, tdi_node *node)
{
    td_sides sides = {0};
    tdi_node *x = peel_pads(node->in[0], &sides);
    tdi_conv2d_attrs *attrs = x != node->in[0] ? tdi_replace(node, node->op, node->attrs, node->n_in, node->in) : NULL;
    if (!attrs)
        return false;
    attrs->sides = sides;
    node->in[0] = x;
    return tdi_remark(r, node, "pad", node->op->name);
}

/* Has every window a cell that is not to be skipped? */
static bool windows_reach(const tdi_pool2d_attrs *pool, const td_sides *sides)
{
    return sides->top < pool->pool_h && sides->bottom < pool->pool_h && sides->left < pool->pool_w &&
           sides->right < pool->pool_w;
}

static bool fold_pads_into_max_pool2d(tdi_rewriter *r, tdi_node *node)
{
    td_sides sides = {0};
    tdi_node *x = peel_pads(node->in[0], &sides);
    const tdi_pool2d_attrs *pool = node->attrs;
    bool fits = x != node->in[0] && pool->padding == TD_VALID && is_rectified(x) && windows_reach(pool, &sides);
    tdi_pool2d_attrs *attrs = fits ? tdi_replace(node, node->op, node->attrs, node->n_in, node->in) : NULL;
    if (!attrs)
        return false;
    attrs->sides = sides;
    node->in[0] = x;
    return tdi_remark(r, node, "pad", node->op->name);
}

/* ---- batch normalization ---- */

static bool can_rectify(const tdi_rewriter *r, const tdi_node *node)
{
    int residual = node->op->residual;
    return residual && tdi_can_take_over(r, node) && node->n_in == residual &&
           !((const tdi_batch_norm_attrs *)node->attrs)->relu;
}

/* Replaces a rectifier by the normalization `from`, which adds `residual` (NULL: nothing) and rectifies. */
static bool rectify(const tdi_rewriter *r, tdi_node *relu, const tdi_node *from, tdi_node *residual)
{
    tdi_node *in[TDI_BATCH_NORM_INFERENCE_RESIDUAL + 1] = {0};
    int n_in = from->op->residual;
    memcpy(in, from->in, (size_t)n_in * sizeof *in);
    if (residual)
        in[n_in++] = residual;
    tdi_batch_norm_attrs *attrs = tdi_replace(relu, from->op, from->attrs, n_in, in);
    if (!attrs)
        return false;
    attrs->relu = true;
    return tdi_remark(r, relu, residual ? "add and relu" : "relu", relu->op->name);
}

/* Of two normalizations the one whose input is computed later takes the sum: the other's value is there by then, and
 * the sum can be made of rows as they get ready. */
static int main_path_of(const tdi_rewriter *r, const tdi_node *sum)
{
    if (can_rectify(r, sum->in[0]) && can_rectify(r, sum->in[1]))
        return sum->in[1]->in[0]->id > sum->in[0]->in[0]->id;
    return can_rectify(r, sum->in[1]);
}

static bool is_sum_alike(const tdi_node *node)
{
    return node->op == &tdi_op_binary && ((const tdi_binary_attrs *)node->attrs)->kind == TDI_ADD &&
           tdi_shape_equal(&node->in[0]->shape, &node->in[1]->shape);
}

static bool fold_relu(tdi_rewriter *r, tdi_node *node)
{
    tdi_node *from = node->in[0];
    if (((const tdi_unary_attrs *)node->attrs)->kind != TD_RELU)
        return false;
    if (can_rectify(r, from))
        return rectify(r, node, from, NULL);
    if (!is_sum_alike(from) || tdi_use_count(r->def_use, from) != 1 || from->in[0] == from->in[1])
        return false;
    int main_path = main_path_of(r, from);
    return can_rectify(r, from->in[main_path]) && rectify(r, node, from->in[main_path], from->in[1 - main_path]);
}

td_status tdi_fold(tdi_graph *graph, tdi_text *remarks)
{
    static const tdi_rewrite_rule rules[] = {{&tdi_op_conv2d, fold_pads_into_conv2d},
                                             {&tdi_op_max_pool2d, fold_pads_into_max_pool2d},
                                             {&tdi_op_unary, fold_relu},
                                             {0}};
    return tdi_rewrite(graph, rules, remarks);
}
