/* cases_linear.c - cases of matmul, and of the update that computes its gradient by one. */
#include "support/op_case.h"

#define ATTRS(type, ...) (&(const type){__VA_ARGS__})
#define BATCH            TDI_BATCH

static tdi_node *build_matmul(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    const tdi_matmul_attrs *attrs = c->attrs;
    return tdi_matmul(graph, leaf[0], leaf[1], attrs->transpose_a, attrs->transpose_b);
}

#define MATMUL(name_, a_, b_, ta_, tb_)                                                                                \
    {                                                                                                                  \
        .op = &tdi_op_matmul, .name = name_, .attrs = ATTRS(tdi_matmul_attrs, .transpose_a = ta_, .transpose_b = tb_), \
        .build = build_matmul, .n_leaves = 2, .leaf = {                                                                \
            {.shape = a_},                                                                                             \
            {.shape = b_}                                                                                              \
        }                                                                                                              \
    }

/* Nodes as the fuse pass leaves them. They have no gradient, since autodiff runs before that pass. */
#define FUSED(name_, ta_, tb_, a_, b_, activation_)                                                                    \
    {                                                                                                                  \
        .op = &tdi_op_matmul, .name = "fused " name_,                                                                  \
        .attrs = ATTRS(tdi_matmul_attrs, .transpose_a = ta_, .transpose_b = tb_, .activation = activation_),           \
        .n_leaves = 3, .leaf = {                                                                                       \
            {.shape = a_, .constant = true},                                                                           \
            {.shape = b_, .constant = true},                                                                           \
            {.shape = OP_DIMS(5), .constant = true}                                                                    \
        }                                                                                                              \
    }

/* A product by a transposed b, multiplied by the slope of the activation whose gradient it is. */
#define SLOPE(name_, a_, b_, out_, function_)                                                                          \
    {                                                                                                                  \
        .op = &tdi_op_matmul, .name = "times the slope of " name_,                                                     \
        .attrs = ATTRS(tdi_matmul_attrs, .transpose_b = true, .slope = function_), .n_leaves = 3, .leaf = {            \
            {.shape = a_, .constant = true},                                                                           \
            {.shape = b_, .constant = true},                                                                           \
            {.shape = out_, .constant = true}                                                                          \
        }                                                                                                              \
    }

tdi_node *op_case_update(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *node = tdi_node_create(graph, c->op, c->attrs, c->n_leaves, leaf);
    if (node) {
        node->home = TDI_HOME_VARIABLE;
        node->variable = leaf[0]->variable;
        node->update_phase = node->effect = true;
    }
    return node;
}

#define UPDATE(name_, update_, slots_, a_, b_, weight_, ...)                                                           \
    {                                                                                                                  \
        .op = &tdi_op_matmul_update, .name = name_,                                                                    \
        .attrs = ATTRS(tdi_matmul_update_attrs, &tdi_op_##update_, {__VA_ARGS__}), .build = op_case_update,            \
        .n_leaves = 3 + slots_, .leaf = {                                                                              \
            {.shape = weight_},                                                                                        \
            {.shape = a_},                                                                                             \
            {.shape = b_},                                                                                             \
            {.shape = weight_, .slot = 1},                                                                             \
            {.shape = weight_, .slot = 2, .fill = OP_UNIT},                                                            \
            {.shape = weight_, .slot = 3, .fill = OP_UNIT}                                                             \
        }                                                                                                              \
    }
#define ADAM .beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f

const op_case op_cases_linear[] = {
    MATMUL("dense", OP_DIMS(BATCH, 7), OP_DIMS(7, 5), false, false),
    MATMUL("one column", OP_DIMS(BATCH, 7), OP_DIMS(7, 1), false, false),
    MATMUL("one inner element", OP_DIMS(BATCH, 1), OP_DIMS(1, 4), false, false),
    MATMUL("wide", OP_DIMS(BATCH, 33), OP_DIMS(33, 67), false, false),
    MATMUL("rank 3", OP_DIMS(BATCH, 3, 4), OP_DIMS(4, 5), false, false),
    MATMUL("second transposed", OP_DIMS(BATCH, 7), OP_DIMS(5, 7), false, true),
    MATMUL("rank 3 times transposed", OP_DIMS(BATCH, 3, 4), OP_DIMS(5, 4), false, true),
    MATMUL("first transposed, over the batch", OP_DIMS(BATCH, 4), OP_DIMS(BATCH, 5), true, false),
    MATMUL("first transposed, rank 3", OP_DIMS(BATCH, 2, 4), OP_DIMS(BATCH, 2, 5), true, false),
    MATMUL("first transposed, split otherwise", OP_DIMS(BATCH, 6, 4), OP_DIMS(BATCH, 2, 3, 5), true, false),
    MATMUL("weights", OP_DIMS(3, 4), OP_DIMS(4, 2), false, false),
    MATMUL("weights, first transposed", OP_DIMS(4, 3), OP_DIMS(4, 2), true, false),
    MATMUL("weights, both transposed", OP_DIMS(4, 3), OP_DIMS(2, 4), true, true),
    MATMUL("second of rank 3", OP_DIMS(BATCH, 6), OP_DIMS(2, 3, 5), false, false),
    MATMUL("second of rank 3, transposed", OP_DIMS(BATCH, 5), OP_DIMS(2, 3, 5), false, true),
    FUSED("bias", false, false, OP_DIMS(BATCH, 7), OP_DIMS(7, 5), TD_LINEAR),
    FUSED("relu", false, false, OP_DIMS(BATCH, 7), OP_DIMS(7, 5), TD_RELU),
    FUSED("tanh", false, false, OP_DIMS(BATCH, 3, 7), OP_DIMS(7, 5), TD_TANH),
    FUSED("sigmoid, transposed", false, true, OP_DIMS(BATCH, 7), OP_DIMS(5, 7), TD_SIGMOID),
    SLOPE("relu", OP_DIMS(BATCH, 7), OP_DIMS(37, 7), OP_DIMS(BATCH, 37), TD_RELU),
    SLOPE("relu, many columns", OP_DIMS(BATCH, 3), OP_DIMS(131, 3), OP_DIMS(BATCH, 131), TD_RELU),
    SLOPE("relu, few columns", OP_DIMS(BATCH, 67), OP_DIMS(5, 67), OP_DIMS(BATCH, 5), TD_RELU),
    SLOPE("tanh", OP_DIMS(BATCH, 3, 7), OP_DIMS(18, 7), OP_DIMS(BATCH, 3, 18), TD_TANH),
    {.op = &tdi_op_matmul,
     .name = "fused relu6 without bias",
     .attrs = ATTRS(tdi_matmul_attrs, .activation = TD_RELU6),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 7), .constant = true}, {.shape = OP_DIMS(7, 5), .constant = true}}},
    UPDATE("adam", adam, 2, OP_DIMS(BATCH, 7), OP_DIMS(BATCH, 5), OP_DIMS(7, 5), ADAM),
    UPDATE("adam, wide", adam, 2, OP_DIMS(BATCH, 67), OP_DIMS(BATCH, 83), OP_DIMS(67, 83), ADAM),
    UPDATE("adam, few rows", adam, 2, OP_DIMS(BATCH, 3, 13), OP_DIMS(BATCH, 3, 130), OP_DIMS(13, 130), ADAM),
    UPDATE("amsgrad, rank 3", adam, 3, OP_DIMS(BATCH, 2, 19), OP_DIMS(BATCH, 2, 33), OP_DIMS(19, 33), ADAM,
           .amsgrad = true, .weight_decay = 0.01f),
    UPDATE("sgd", sgd, 0, OP_DIMS(BATCH, 9), OP_DIMS(BATCH, 17), OP_DIMS(9, 17), .clipvalue = 0.3f),
    UPDATE("momentum", sgd, 1, OP_DIMS(BATCH, 6), OP_DIMS(BATCH, 3), OP_DIMS(6, 3), .momentum = 0.9f, .nesterov = true),
    {0}};
