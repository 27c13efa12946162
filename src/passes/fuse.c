/* fuse.c - ops that another op can do besides, once gradients are there:
 *
 *   matmul or conv2d, bias_add, activation   one op, with an epilogue
 *   matmul of few features, the steps of an  one op: each step computes its own part of the product
 *   LSTM
 *   matmul that is a weight's gradient,      one op: the gradient is never stored
 *   its update
 *   the same of several shards, whose sum    each shard leaves what the product is made of, and the update multiplies
 *   is in between                            it (joint_update.c)
 *   scatter_add that is a table's gradient,  one op: only the rows that were gathered are read and written
 *   its update by plain SGD
 *   matmul that is an activation's gradient, one op
 *   the gradient of the activation
 *   add, relu's gradient                     one op
 *   a pool's gradient, that of the           one op
 *   activation before the pool
 *   a loss, the gradient of its logits       one op (fuse_losses.c)
 *   the sum over rows of what comes out of   0, for what statistics took away has no gradient: no walk over memory is
 *   a batch normalization's gradient         spent on the rounding errors that the sum would consist of */
#include <string.h>

#include "ops/lstm.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static bool is_float32(const tdi_node *node)
{
    return node->dtype == TD_FLOAT32;
}

/* An activation whose derivative comes from its output; it is all that an epilogue can apply. */
static bool is_activation(int kind)
{
    return kind < TD_ACTIVATION_COUNT && tdi_unary_grad_from_output(kind);
}

/* ---- epilogues ---- */

static bool takes_epilogue(const tdi_rewriter *r, const tdi_node *node)
{
    size_t at = node->op->epilogue;
    return at && tdi_can_take_over(r, node) && *(const int *)((const char *)node->attrs + at) == TD_LINEAR;
}

/* Replaces `end` by the product or convolution `from` with an epilogue; `third` is the bias, NULL: there is none. */
static void *add_epilogue(tdi_node *end, const tdi_node *from, tdi_node *third, int activation)
{
    tdi_node *in[] = {from->in[0], from->in[1], third};
    char *attrs = tdi_replace(end, from->op, from->attrs, third ? 3 : 2, in);
    if (attrs)
        *(int *)(attrs + from->op->epilogue) = activation;
    return attrs;
}

static bool fuse_bias(tdi_rewriter *r, tdi_node *node)
{
    const tdi_node *from = node->in[0];
    return takes_epilogue(r, from) && from->n_in == 2 && add_epilogue(node, from, node->in[1], TD_LINEAR) &&
           tdi_remark(r, node, "bias_add", node->op->name);
}

static bool fuse_activation(tdi_rewriter *r, tdi_node *node)
{
    const tdi_node *from = node->in[0];
    int kind = ((const tdi_unary_attrs *)node->attrs)->kind;
    return is_activation(kind) && takes_epilogue(r, from) &&
           add_epilogue(node, from, from->n_in == 3 ? from->in[2] : NULL, kind) &&
           tdi_remark(r, node, "unary", node->op->name);
}

/* ---- LSTM ---- */

/* So few that the weights, read again at each step, are little beside the recurrent ones. */
static bool has_few_features(const tdi_node *product, int64_t units)
{
    const tdi_node *x = product->in[0], *weights = product->in[1];
    return x->shape.rank == 3 && weights->shape.rank == 2 && weights->shape.dim[0] <= units / 4 && is_float32(x) &&
           is_float32(weights);
}

/* The LSTM reads z, the product, as [batch, steps, 4, units]. */
static bool fuse_gates(tdi_rewriter *r, tdi_node *node)
{
    const tdi_node *z = node->in[TDI_LSTM_Z];
    if (node->in[TDI_LSTM_W] || z->op != &tdi_op_reshape || tdi_use_count(r->def_use, z) != 1)
        return false;
    const tdi_node *product = z->in[0];
    const tdi_matmul_attrs *attrs = product->attrs;
    if (product->op != &tdi_op_matmul || !takes_epilogue(r, product) || attrs->transpose_a || attrs->transpose_b ||
        !has_few_features(product, node->shape.dim[3]))
        return false;
    node->in[TDI_LSTM_Z] = product->in[0];
    node->in[TDI_LSTM_W] = product->in[1];
    node->in[TDI_LSTM_B] = product->n_in > 2 ? product->in[2] : NULL;
    return tdi_remark(r, node, "matmul", "lstm");
}

/* Drops the inputs that lstm_output has for its gradient rule alone. */
static void drop_gradient_inputs(tdi_graph *graph)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.at[i]->op == &tdi_op_lstm_output)
            graph->nodes.at[i]->n_in = 1;
}

/* ---- the gradient of an activation: node = in[1] * f'(in[0]) ---- */

static bool fuse_slope_of_pool(tdi_rewriter *r, tdi_node *node)
{
    tdi_node *value = node->in[0], *pool = node->in[1];
    int kind = ((const tdi_unary_attrs *)node->attrs)->kind;
    bool maximum = pool->op == &tdi_op_max_pool2d_grad && pool->in[0] == value;
    bool average = pool->op == &tdi_op_average_pool2d_grad && pool->n_in == 1;
    if ((!maximum && !average) || node->n_in != 2 || !tdi_can_take_over(r, pool) || !is_activation(kind) ||
        value->dtype != pool->dtype)
        return false;
    tdi_pool2d_attrs *attrs = maximum ? tdi_replace(node, pool->op, pool->attrs, 3, pool->in)
                                      : tdi_replace(node, pool->op, pool->attrs, 2, (tdi_node *[]){pool->in[0], value});
    if (!attrs)
        return false;
    attrs->activation = kind;
    return tdi_remark(r, node, "unary_grad", node->op->name);
}

/* A product with the transpose of a layer's weights, in float32. */
static bool is_product_with_slope(const tdi_node *product, const tdi_node *value)
{
    const tdi_matmul_attrs *attrs = product->attrs;
    return product->n_in == 2 && attrs->transpose_b && !attrs->slope &&
           tdi_shape_equal(&value->shape, &product->shape) && is_float32(value) && is_float32(product) &&
           is_float32(product->in[0]) && is_float32(product->in[1]);
}

static bool fuse_slope_of_product(tdi_rewriter *r, tdi_node *node)
{
    tdi_node *value = node->in[0], *product = node->in[1];
    int kind = ((const tdi_unary_attrs *)node->attrs)->kind;
    if (product->op != &tdi_op_matmul || node->n_in != 2 || !takes_epilogue(r, product) || kind == TD_LINEAR ||
        !is_activation(kind) || !is_product_with_slope(product, value))
        return false;
    tdi_matmul_attrs *attrs = add_epilogue(node, product, value, TD_LINEAR);
    if (!attrs)
        return false;
    attrs->slope = kind;
    return tdi_remark(r, node, "unary_grad", node->op->name);
}

static bool fuse_sum_of_gradients(tdi_rewriter *r, tdi_node *node)
{
    const tdi_node *sum = node->in[1];
    return ((const tdi_unary_attrs *)node->attrs)->kind == TD_RELU && node->n_in == 2 && sum->op == &tdi_op_binary &&
           ((const tdi_binary_attrs *)sum->attrs)->kind == TDI_ADD && tdi_can_take_over(r, sum) &&
           tdi_shape_equal(&sum->in[0]->shape, &sum->in[1]->shape) &&
           tdi_replace(node, node->op, node->attrs, 3, (tdi_node *[]){node->in[0], sum->in[0], sum->in[1]}) &&
           tdi_remark(r, node, "binary", node->op->name);
}

/* ---- the gradient of a bias that batch statistics take away again ---- */

static bool fuse_vanishing_sum(tdi_rewriter *r, tdi_node *node)
{
    const tdi_reduce_attrs *reduce = node->attrs;
    const tdi_node *x = node->in[0];
    unsigned all_but_last = (1u << (x->shape.rank - 1)) - 1;
    return x->op == &tdi_op_batch_norm_grad_input && reduce->kind == TDI_SUM && reduce->axes == all_but_last &&
           tdi_replace(node, &tdi_op_fill, &(tdi_fill_attrs){.value = 0, .shape = node->shape}, 0, NULL) &&
           tdi_remark(r, node, "reduce", "fill");
}

/* ---- updates ---- */

/* May an update compute the gradient itself? Not when another wants it: a regularizer, the caller. */
static bool is_own_gradient(const tdi_rewriter *r, const tdi_node *gradient)
{
    return gradient->home == TDI_HOME_GRADIENT && tdi_use_count(r->def_use, gradient) == 1 && !gradient->effect;
}

static bool is_own_product(const tdi_rewriter *r, const tdi_node *gradient)
{
    const tdi_matmul_attrs *attrs = gradient->attrs;
    return gradient->op == &tdi_op_matmul && attrs->transpose_a && !attrs->transpose_b && !attrs->activation &&
           gradient->n_in == 2 && is_float32(gradient->in[0]) && is_own_gradient(r, gradient) &&
           gradient->shape.rank == 2;
}

/* Of one shard: inputs weight, a, b, slots. */
static bool fuse_matmul_update(tdi_rewriter *r, tdi_node *node)
{
    const tdi_op *optimizer = node->op;
    const tdi_node *gradient = node->in[1];
    tdi_node *in[6] = {node->in[0]}; /* an optimizer has at most three slots */
    if (!is_own_product(r, gradient))
        return false;
    memcpy(in + 1, gradient->in, 2 * sizeof *in);
    memcpy(in + 3, node->in + 2, (size_t)(node->n_in - 2) * sizeof *in);
    tdi_matmul_update_attrs attrs = {optimizer, *(const tdi_optimizer_attrs *)node->attrs};
    return tdi_replace(node, &tdi_op_matmul_update, &attrs, node->n_in + 1, in) &&
           tdi_remark(r, node, "matmul", optimizer->name);
}

/* Where other processes have some of the shards, and rows are too many for factors: the product that one process would
 * compute in the update, with the same bits. */
static bool leave_product(tdi_rewriter *r, tdi_node *gradient)
{
    tdi_matmul_attrs attrs = *(const tdi_matmul_attrs *)gradient->attrs;
    attrs.factors = -1;
    return tdi_replace(gradient, &tdi_op_leave_gradient, &attrs, 2, gradient->in) != NULL &&
           tdi_remark(r, gradient, "matmul", "all_reduce");
}

/* Where they are few: the factors, which are gathered where the gradient would have been reduced. */
static bool gather_factors(tdi_node *sum, int64_t factors)
{
    tdi_node *gradient = sum->in[0];
    tdi_matmul_attrs attrs = *(const tdi_matmul_attrs *)gradient->attrs;
    attrs.factors = factors;
    if (!tdi_replace(gradient, &tdi_op_leave_gradient, &attrs, 2, gradient->in) ||
        !tdi_replace(sum, &tdi_op_all_gather, NULL, 1, sum->in))
        return false;
    gradient->shape = (td_shape){.rank = 1, .dim = {factors}};
    sum->shape = (td_shape){.rank = 2, .dim = {sum->graph->shards, factors}};
    gradient->home = sum->home = TDI_HOME_EXCHANGE;
    gradient->variable = sum->variable = NULL;
    sum->update_phase = false;
    sum->graph->gathers_factors = true;
    return true;
}

/* Of several shards: each leaves what the update computes the sum of their gradients from. Replicas share the update by
 * rows. What reads the new weight before they meet (an average) would go on with other ranges: then it is left. */
static bool fuse_joint_update(tdi_rewriter *r, tdi_node *node)
{
    const tdi_op *optimizer = node->op;
    tdi_node *sum = node->in[1];
    tdi_node *gradient = sum->op == &tdi_op_reduce_scatter || sum->op == &tdi_op_all_reduce ? sum->in[0] : NULL;
    if (!gradient || tdi_use_count(r->def_use, node) || tdi_use_count(r->def_use, sum) != 1 ||
        !is_own_product(r, gradient) || !is_float32(gradient->in[1]) || !tdi_shape_has_batch(&gradient->in[0]->shape))
        return false;
    const td_shape *a = &gradient->in[0]->shape;
    tdi_joint_update_attrs attrs = {.of = {optimizer, *(const tdi_optimizer_attrs *)node->attrs},
                                    .shards = node->graph->shards,
                                    .positions = tdi_shape_per_row(a) / a->dim[a->rank - 1]};
    bool exchanged = sum->op == &tdi_op_all_reduce;
    if (exchanged && !tdi_gathers_factors(node->graph, &gradient->shape, attrs.positions, &attrs.factors))
        return leave_product(r, gradient);
    if (exchanged && !gather_factors(sum, attrs.factors))
        return false;
    if (!tdi_replace(node, &tdi_op_joint_update, &attrs, node->n_in, node->in))
        return false;
    gradient->op = &tdi_op_leave_gradient;
    node->in[1] = exchanged ? sum : gradient;
    return tdi_remark(r, node, "matmul", optimizer->name);
}

/* Of one shard: with momentum or decay a step would change rows whose gradient is 0. */
static bool fuse_gather_update(tdi_rewriter *r, tdi_node *node)
{
    const tdi_optimizer_attrs *attrs = node->attrs;
    const tdi_node *gradient = node->in[1];
    if (gradient->op != &tdi_op_scatter_add || !is_own_gradient(r, gradient) || node->graph->shards > 1 ||
        attrs->momentum != 0.0f || attrs->weight_decay != 0.0f)
        return false;
    tdi_node *in[] = {node->in[0], gradient->in[0], gradient->in[1]};
    return tdi_replace(node, &tdi_op_gather_update, attrs, 3, in) && tdi_remark(r, node, "scatter_add", "sgd");
}

static bool fuse_update(tdi_rewriter *r, tdi_node *node)
{
    return (node->graph->shards == 1 ? fuse_matmul_update : fuse_joint_update)(r, node);
}

td_status tdi_fuse(tdi_graph *graph, tdi_text *remarks)
{
    static const tdi_rewrite_rule rules[] = {{&tdi_op_bias_add, fuse_bias},
                                             {&tdi_op_unary, fuse_activation},
                                             {&tdi_op_unary_grad, fuse_slope_of_pool},
                                             {&tdi_op_unary_grad, fuse_slope_of_product},
                                             {&tdi_op_unary_grad, fuse_sum_of_gradients},
                                             {&tdi_op_reduce, fuse_vanishing_sum},
                                             {&tdi_op_lstm, fuse_gates},
                                             {&tdi_op_adam, fuse_update},
                                             {&tdi_op_sgd, fuse_update},
                                             {&tdi_op_sgd, fuse_gather_update},
                                             {0}};
    drop_gradient_inputs(graph);
    TDI_TRY(tdi_rewrite(graph, rules, remarks));
    return tdi_fuse_losses(graph, remarks);
}
