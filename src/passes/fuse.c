/* fuse.c - ops that another op can do on its way:
 *
 *   matmul or conv2d, bias_add, activation   one op
 *   matmul of few features, the steps of an  one op: each step makes what it takes
 *   LSTM
 *   matmul that is a weight's gradient,      one op: the gradient is never stored
 *   its update
 *   the same of several parts, whose sum is  what each part leaves of it, and one op that makes it of that
 *   in between
 *   matmul that is an activation's gradient, one op
 *   the gradient of the activation
 *   add, relu's gradient                     one op
 *   a pool's gradient, that of the           one op
 *   activation before the pool
 *   a loss, the gradient of its logits       one op (fuse_losses.c)
 *   the sum over rows of what comes out of   0, for what statistics took away has no gradient: no pass over memory is
 *   a batch normalization's gradient         spent on the rounding errors that it would consist of */
#include <string.h>

#include "ops/lstm.h"
#include "passes/passes.h"

int *tdi_count_readers(const tdi_graph *graph)
{
    int *readers = TDI_NEW_ARRAY(graph->arena, int, graph->nodes.count);
    if (!readers)
        return NULL;
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.at[i]->n_in; j++)
            if (graph->nodes.at[i]->in[j])
                readers[graph->nodes.at[i]->in[j]->id]++;
    for (int i = 0; i < graph->outputs.count; i++)
        readers[graph->outputs.at[i]->id]++;
    return readers;
}

static bool has_epilogue(const tdi_node *node)
{
    return node->op == &tdi_op_matmul || node->op == &tdi_op_conv2d;
}

static int *activation_of(const tdi_node *node, void *attrs)
{
    return node->op == &tdi_op_matmul ? &((tdi_matmul_attrs *)attrs)->activation
                                      : &((tdi_conv2d_attrs *)attrs)->activation;
}

/* May `node` be swallowed by its only reader? */
static bool can_absorb(const tdi_node *node, const int *readers)
{
    void *attrs = (void *)(uintptr_t)node->attrs;
    return has_epilogue(node) && readers[node->id] == 1 && node->home == TDI_HOME_ACTIVATIONS &&
           *activation_of(node, attrs) == TD_LINEAR;
}

/* Makes `end` compute what `from` does, with a bias and an activation on top. */
static bool absorb(tdi_node *end, const tdi_node *from, tdi_node *bias, int activation)
{
    tdi_arena *arena = end->graph->arena;
    tdi_node **in = TDI_NEW_ARRAY(arena, tdi_node *, 3);
    void *attrs = tdi_alloc(arena, from->op->attrs_size);
    if (!in || !attrs)
        return false;
    in[0] = from->in[0];
    in[1] = from->in[1];
    in[2] = bias;
    memcpy(attrs, from->attrs, from->op->attrs_size);
    *activation_of(from, attrs) = activation;
    end->op = from->op;
    end->in = in;
    end->n_in = bias ? 3 : 2;
    end->attrs = attrs;
    return true;
}

static bool fuse_bias(tdi_node *node, const int *readers)
{
    const tdi_node *from = node->in[0];
    return can_absorb(from, readers) && from->n_in == 2 && absorb(node, from, node->in[1], TD_LINEAR);
}

static bool fuse_activation(tdi_node *node, const int *readers)
{
    const tdi_node *from = node->in[0];
    int kind = ((const tdi_unary_attrs *)node->attrs)->kind;
    return kind < TD_ACTIVATION_COUNT && tdi_unary_grad_from_output(kind) && can_absorb(from, readers) &&
           absorb(node, from, from->n_in == 3 ? from->in[2] : NULL, kind);
}

/* So few that the weights, read again at each step, are little beside the recurrent ones. */
static bool has_few_features(const tdi_node *product, int64_t units)
{
    const tdi_node *x = product->in[0], *weights = product->in[1];
    return x->shape.rank == 3 && weights->shape.rank == 2 && weights->shape.dim[0] <= units / 4 &&
           x->dtype == TD_FLOAT32 && weights->dtype == TD_FLOAT32;
}

/* z is the product as [B, T, 4, u]. */
static bool fuse_gates(tdi_node *node, const int *readers)
{
    const tdi_node *z = node->in[TDI_LSTM_Z];
    if (node->in[TDI_LSTM_W] || z->op != &tdi_op_reshape || readers[z->id] != 1)
        return false;
    const tdi_node *product = z->in[0];
    const tdi_matmul_attrs *attrs = product->attrs;
    if (product->op != &tdi_op_matmul || !can_absorb(product, readers) || attrs->transpose_a || attrs->transpose_b ||
        !has_few_features(product, node->shape.dim[3]))
        return false;
    node->in[TDI_LSTM_Z] = product->in[0];
    node->in[TDI_LSTM_W] = product->in[1];
    node->in[TDI_LSTM_B] = product->n_in > 2 ? product->in[2] : NULL;
    return true;
}

/* What lstm_output has for its gradient's rule alone, it has no longer. */
static void forget_rules(tdi_graph *graph)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.at[i]->op == &tdi_op_lstm_output)
            graph->nodes.at[i]->n_in = 1;
}

/* A pool's gradient takes in the derivative of the activation before the pool. */
static bool fuse_slope(tdi_node *node, const int *readers)
{
    const tdi_node *pool = node->in[1];
    int kind = ((const tdi_unary_attrs *)node->attrs)->kind;
    bool maximum = pool->op == &tdi_op_max_pool2d_grad && pool->in[0] == node->in[0];
    bool average = pool->op == &tdi_op_average_pool2d_grad && pool->n_in == 1;
    if ((!maximum && !average) || node->n_in != 2 || readers[pool->id] != 1 || pool->home != TDI_HOME_ACTIVATIONS ||
        kind >= TD_ACTIVATION_COUNT || !tdi_unary_grad_from_output(kind) || node->in[0]->dtype != pool->dtype)
        return false;
    tdi_arena *arena = node->graph->arena;
    tdi_node **in = TDI_NEW_ARRAY(arena, tdi_node *, 3);
    tdi_pool2d_attrs *attrs = TDI_NEW(arena, tdi_pool2d_attrs);
    if (!in || !attrs)
        return false;
    memcpy(in, pool->in, (size_t)pool->n_in * sizeof(tdi_node *));
    if (average)
        in[1] = node->in[0];
    *attrs = *(const tdi_pool2d_attrs *)pool->attrs;
    attrs->activation = kind;
    node->op = pool->op;
    node->in = in;
    node->n_in = maximum ? 3 : 2;
    node->attrs = attrs;
    return true;
}

static bool is_float32(const tdi_node *node)
{
    return node->dtype == TD_FLOAT32;
}

/* So does a product with the transpose of a layer's weights. */
static bool fuse_slope_of_product(tdi_node *node, const int *readers)
{
    const tdi_node *product = node->in[1];
    tdi_node *value = node->in[0];
    const tdi_matmul_attrs *of_product = product->attrs;
    int kind = ((const tdi_unary_attrs *)node->attrs)->kind;
    if (product->op != &tdi_op_matmul || node->n_in != 2 || !can_absorb(product, readers) || product->n_in != 2 ||
        !of_product->transpose_b || of_product->slope || kind == TD_LINEAR || kind >= TD_ACTIVATION_COUNT ||
        !tdi_unary_grad_from_output(kind) || !tdi_shape_equal(&value->shape, &product->shape) || !is_float32(value) ||
        !is_float32(product) || !is_float32(product->in[0]) || !is_float32(product->in[1]))
        return false;
    if (!absorb(node, product, value, TD_LINEAR))
        return false;
    ((tdi_matmul_attrs *)(uintptr_t)node->attrs)->slope = kind;
    return true;
}

static bool fuse_sum_of_gradients(tdi_node *node, const int *readers)
{
    const tdi_node *sum = node->in[1];
    if (((const tdi_unary_attrs *)node->attrs)->kind != TD_RELU || node->n_in != 2 || sum->op != &tdi_op_binary ||
        ((const tdi_binary_attrs *)sum->attrs)->kind != TDI_ADD || readers[sum->id] != 1 ||
        sum->home != TDI_HOME_ACTIVATIONS || !tdi_shape_equal(&sum->in[0]->shape, &sum->in[1]->shape))
        return false;
    tdi_node **in = TDI_NEW_ARRAY(node->graph->arena, tdi_node *, 3);
    if (!in)
        return false;
    in[0] = node->in[0];
    in[1] = sum->in[0];
    in[2] = sum->in[1];
    node->in = in;
    node->n_in = 3;
    return true;
}

/* The gradient of a bias that batch statistics take away again. */
static bool fuse_vanishing_sum(tdi_node *node)
{
    const tdi_reduce_attrs *reduce = node->attrs;
    unsigned all_but_last = (1u << (node->in[0]->shape.rank - 1)) - 1;
    if (node->in[0]->op != &tdi_op_batch_norm_grad_input || reduce->kind != TDI_SUM || reduce->axes != all_but_last)
        return false;
    tdi_fill_attrs *attrs = TDI_NEW(node->graph->arena, tdi_fill_attrs);
    if (!attrs)
        return false;
    *attrs = (tdi_fill_attrs){.value = 0, .shape = node->shape};
    node->op = &tdi_op_fill;
    node->attrs = attrs;
    node->n_in = 0;
    return true;
}

/* May an update make the gradient itself? Not when someone else wants it: a regularizer, the caller. */
static bool is_own_gradient(const tdi_node *gradient, const int *readers)
{
    const tdi_matmul_attrs *attrs = gradient->attrs;
    return gradient->op == &tdi_op_matmul && attrs->transpose_a && !attrs->transpose_b && !attrs->activation &&
           gradient->n_in == 2 && gradient->in[0]->dtype == TD_FLOAT32 && gradient->home == TDI_HOME_GRADIENT &&
           readers[gradient->id] == 1 && !gradient->effect && gradient->shape.rank == 2;
}

static bool fuse_update(tdi_node *node, const int *readers)
{
    const tdi_node *gradient = node->in[1];
    if (!is_own_gradient(gradient, readers))
        return false;
    tdi_arena *arena = node->graph->arena;
    tdi_node **in = TDI_NEW_ARRAY(arena, tdi_node *, node->n_in + 1);
    tdi_matmul_update_attrs *attrs = TDI_NEW_ARRAY(arena, tdi_matmul_update_attrs, 1);
    if (!in || !attrs)
        return false;
    *attrs = (tdi_matmul_update_attrs){node->op, *(const tdi_optimizer_attrs *)node->attrs};
    in[0] = node->in[0];
    in[1] = gradient->in[0];
    in[2] = gradient->in[1];
    memcpy(in + 3, node->in + 2, (size_t)(node->n_in - 2) * sizeof *in);
    node->op = &tdi_op_matmul_update;
    node->attrs = attrs;
    node->in = in;
    node->n_in++;
    return true;
}

/* Parts leave what the update makes the sum of their gradients of. Replicas share it by rows: what reads the new weight
 * before they meet, an average, goes on with the ranges that they have of all other weights. */
static bool fuse_joint_update(tdi_node *node, const int *readers)
{
    tdi_node *sum = node->in[1], *gradient = sum->op == &tdi_op_reduce_scatter ? sum->in[0] : NULL;
    if (!gradient || readers[node->id] || readers[sum->id] != 1 || !is_own_gradient(gradient, readers) ||
        gradient->in[1]->dtype != TD_FLOAT32 || !tdi_shape_has_batch(&gradient->in[0]->shape))
        return false;
    const td_shape *a = &gradient->in[0]->shape;
    tdi_joint_update_attrs *attrs = TDI_NEW(node->graph->arena, tdi_joint_update_attrs);
    if (!attrs)
        return false;
    *attrs = (tdi_joint_update_attrs){.of = {node->op, *(const tdi_optimizer_attrs *)node->attrs},
                                      .parts = node->graph->parts,
                                      .positions = tdi_shape_per_row(a) / a->dim[a->rank - 1]};
    gradient->op = &tdi_op_leave_gradient;
    node->op = &tdi_op_joint_update;
    node->attrs = attrs;
    node->in[1] = gradient;
    return true;
}

static bool fuse_any_update(tdi_node *node, const int *readers)
{
    return (node->graph->parts == 1 ? fuse_update : fuse_joint_update)(node, readers);
}

td_status tdi_fuse(tdi_graph *graph, tdi_text *notes)
{
    forget_rules(graph);
    int *readers = tdi_count_readers(graph);
    if (!readers)
        return tdi_no_memory(&graph->error);
    for (int i = 0; i < graph->nodes.count; i++) {
        tdi_node *node = graph->nodes.at[i];
        const char *what = node->op->name;
        bool fused =
            (node->op == &tdi_op_bias_add && fuse_bias(node, readers)) ||
            (node->op == &tdi_op_unary && fuse_activation(node, readers)) ||
            (node->op == &tdi_op_unary_grad && (fuse_slope(node, readers) || fuse_slope_of_product(node, readers))) ||
            (node->op == &tdi_op_reduce && fuse_vanishing_sum(node));
        if (fused && notes)
            tdi_text_format(notes, "%s: %s went into %s\n", node->scope, what, node->op->name);
        if (node->op == &tdi_op_unary_grad && fuse_sum_of_gradients(node, readers) && notes)
            tdi_text_format(notes, "%s: binary went into %s\n", node->scope, what);
        if (node->op == &tdi_op_lstm && fuse_gates(node, readers) && notes)
            tdi_text_format(notes, "%s: matmul went into %s\n", node->scope, what);
        bool update = node->op == &tdi_op_adam || node->op == &tdi_op_sgd;
        if (update && fuse_any_update(node, readers) && notes)
            tdi_text_format(notes, "%s: matmul went into %s\n", node->scope, what);
    }
    return tdi_fuse_losses(graph, notes);
}
