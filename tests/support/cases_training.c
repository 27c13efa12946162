/* cases_training.c - batch normalization, collectives, regularizers, optimizers. */
#include "support/op_case.h"

#define ATTRS(type, ...) (&(const type){__VA_ARGS__})
#define BATCH            TDI_BATCH
#define EPSILON          1e-3f

/* ---- batch normalization: leaves x, gamma, beta ---- */

static tdi_node *build_merge(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)c;
    return tdi_batch_norm_merge(graph, tdi_all_gather(graph, tdi_batch_norm_stats(graph, leaf[0], 1)), false);
}

static tdi_node *build_stats(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_batch_norm_stats(graph, leaf[0], c->groups ? c->groups : 1);
}

static bool merges(const op_case *c)
{
    return c->shards && !c->groups;
}

static tdi_node *statistics(tdi_graph *graph, tdi_node *x, const op_case *c)
{
    return merges(c) ? build_merge(graph, &x, c) : build_stats(graph, &x, c);
}

static tdi_node *build_batch_norm(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *gamma = c->n_leaves > 1 ? leaf[1] : NULL, *beta = c->n_leaves > 2 ? leaf[2] : NULL;
    return tdi_batch_norm(graph, leaf[0], statistics(graph, leaf[0], c), gamma, beta, EPSILON);
}

static tdi_node *build_batch_norm_without_gamma(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_batch_norm(graph, leaf[0], statistics(graph, leaf[0], c), NULL, leaf[1], EPSILON);
}

/* Leaves: x, gamma, beta, and a value to add, as the fold pass makes it. */
static tdi_node *build_batch_norm_relu(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *in[] = {leaf[0], statistics(graph, leaf[0], c), leaf[1], leaf[2], c->n_leaves > 3 ? leaf[3] : NULL};
    return tdi_node_create(graph, &tdi_op_batch_norm, &(tdi_batch_norm_attrs){.epsilon = EPSILON, .relu = true},
                           c->n_leaves > 3 ? 5 : 4, in);
}

static bool rectified(const op_case *c)
{
    return c->attrs && ((const tdi_batch_norm_attrs *)c->attrs)->relu;
}

/* Leaves: x, dy, gamma, beta. The node has no statistics of its own. */
static tdi_node *grad_stats(tdi_graph *graph, tdi_node *const *leaf, tdi_node *stats, const op_case *c)
{
    return tdi_batch_norm_grad_stats(graph, leaf[0], leaf[1], stats, c->n_leaves > 2 ? leaf[2] : NULL,
                                     c->n_leaves > 3 ? leaf[3] : NULL, EPSILON, rectified(c));
}

static tdi_node *build_grad_stats(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return grad_stats(graph, leaf, statistics(graph, leaf[0], c), c);
}

static tdi_node *build_grad_merge(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_batch_norm_grad_merge(graph, tdi_all_gather(graph, build_grad_stats(graph, leaf, c)), false);
}

static tdi_node *build_grad_input(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *stats = statistics(graph, leaf[0], c);
    tdi_node *sums = grad_stats(graph, leaf, stats, c);
    if (merges(c))
        sums = tdi_batch_norm_grad_merge(graph, tdi_all_gather(graph, sums), false);
    return tdi_batch_norm_grad_input(graph, leaf[0], leaf[1], stats, sums, c->n_leaves > 2 ? leaf[2] : NULL,
                                     c->n_leaves > 3 ? leaf[3] : NULL, EPSILON, rectified(c));
}

/* Leaves x, mean, variance, gamma, beta. */
static tdi_node *build_inference(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *gamma = c->n_leaves > 3 ? leaf[3] : NULL, *beta = c->n_leaves > 4 ? leaf[4] : NULL;
    return tdi_batch_norm_inference(graph, leaf[0], leaf[1], leaf[2], gamma, beta, EPSILON);
}

/* The same leaves and a value to add, as the fold pass makes it. */
static tdi_node *build_inference_relu(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_node_create(graph, &tdi_op_batch_norm_inference,
                           &(tdi_batch_norm_attrs){.epsilon = EPSILON, .relu = true}, c->n_leaves,
                           (tdi_node **)(uintptr_t)leaf);
}

static tdi_node *build_gradients_without_epsilon(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_batch_norm_grad_stats(graph, leaf[0], leaf[1], statistics(graph, leaf[0], c), NULL, NULL, 0, false);
}

/* Leaves x, moving. */
static tdi_node *build_moving(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    const tdi_batch_norm_attrs *attrs = c->attrs;
    tdi_node *gathered = tdi_all_gather(graph, build_stats(graph, leaf, c));
    return tdi_batch_norm_moving(graph, leaf[1], gathered, attrs->momentum, attrs->variance, false);
}

/* ---- collectives, regularizers, optimizers ---- */

static tdi_node *build_all_gather(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)c;
    return tdi_all_gather(graph, tdi_reduce(graph, TDI_SUM, leaf[0], 1u, false));
}

/* Leaves: x, dy, weight. Each shard's gradient of the weight stands in an arena of its own. */
static tdi_node *build_reduce_scatter(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)c;
    tdi_node *gradient = tdi_matmul(graph, leaf[0], leaf[1], true, false);
    if (!gradient)
        return NULL;
    gradient->home = TDI_HOME_GRADIENT;
    gradient->variable = leaf[2]->variable;
    return tdi_reduce_scatter(graph, gradient, leaf[2]->variable);
}

/* Leaves: x, dy, weight. Nobody brings a sum here: the first shard's gradient stands in its place. */
static tdi_node *build_all_reduce(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *node = build_reduce_scatter(graph, leaf, c);
    return node ? tdi_all_reduce(graph, node->in[0], leaf[2]->variable) : NULL;
}

/* Leaves weight, x, dy. */
static tdi_node *build_left(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    const void *attrs = c->op == &tdi_op_leave_gradient ? c->attrs : ATTRS(tdi_matmul_attrs, .transpose_a = true);
    tdi_node *left = tdi_node_create(graph, &tdi_op_leave_gradient, attrs, 2, leaf + 1);
    if (left) {
        left->home = TDI_HOME_GRADIENT;
        left->variable = leaf[0]->variable;
    }
    return left;
}

static tdi_node *build_gathered(tdi_graph *graph, tdi_node *const *leaf, int64_t factors)
{
    const tdi_matmul_attrs attrs = {.transpose_a = true, .factors = factors};
    return tdi_all_gather(graph, tdi_node_create(graph, &tdi_op_leave_gradient, &attrs, 2, leaf + 1));
}

/* The same leaves, and slots. */
static tdi_node *build_joint_update(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    int64_t factors = ((const tdi_joint_update_attrs *)c->attrs)->factors;
    tdi_node *left = factors ? build_gathered(graph, leaf, factors) : build_left(graph, leaf, c);
    tdi_node *in[OP_MAX_LEAVES] = {leaf[0], left};
    for (int i = 3; i < c->n_leaves; i++)
        in[i - 1] = leaf[i];
    op_case updated = *c;
    updated.n_leaves = c->n_leaves - 1;
    return op_case_update(graph, in, &updated);
}

static tdi_node *build_regularization(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    const tdi_regularize_attrs *attrs = c->attrs;
    return tdi_regularization(graph, leaf[0], attrs->l1, attrs->l2);
}

/* Leaves weight, gradient. */
static tdi_node *build_regularize(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    const tdi_regularize_attrs *attrs = c->attrs;
    return tdi_regularize(graph, leaf[1], leaf[0], attrs->l1, attrs->l2);
}

/* Leaves weight, gradient, slots. */
static tdi_node *build_sgd(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_sgd(graph, leaf[0], leaf[1], c->n_leaves - 2, leaf + 2, c->attrs);
}

static tdi_node *build_adam(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_adam(graph, leaf[0], leaf[1], c->n_leaves - 2, leaf + 2, c->attrs);
}

/* Leaves weight, gradient, accumulator. */
static tdi_node *build_accumulate_gradient(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    const tdi_accumulate_gradient_attrs *attrs = c->attrs;
    return tdi_accumulate_gradient(graph, leaf[1], leaf[2], attrs->steps, leaf[0]->variable);
}

/* Leaf gradient. */
static tdi_node *build_squared_norm(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)c;
    return tdi_squared_norm(graph, leaf[0], leaf[0]->variable);
}

/* Leaves: gradients. */
static tdi_node *build_clip_factor(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    const tdi_clip_factor_attrs *attrs = c->attrs;
    tdi_node *norms[OP_MAX_LEAVES];
    for (int i = 0; i < c->n_leaves; i++)
        norms[i] = tdi_squared_norm(graph, leaf[i], leaf[i]->variable);
    return tdi_clip_factor(graph, c->n_leaves, norms, attrs->limit, attrs->global);
}

/* Leaf gradient. */
static tdi_node *build_clip_by_norm(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *norm = build_squared_norm(graph, leaf, c);
    return tdi_clip_by_norm(graph, leaf[0], tdi_clip_factor(graph, 1, &norm, 0.5f, false), leaf[0]->variable);
}

/* Leaves weight, average. */
static tdi_node *build_moving_average(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_moving_average(graph, leaf[0], leaf[1], c->attrs);
}

static tdi_node *build_slot(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)graph;
    (void)c;
    return leaf[1];
}

#define SHARES(...) .shards = 3, .rows = {__VA_ARGS__}
/* 11 rows in six slices: 1, 2, 2, 2, 2, 2. */
#define REPLICAS    .shards = 2, .rows = {5, 6}, .groups = 3
/* 3 rows in eight: 0, 0, 1, 0, 0, 1, 0, 1. */
#define FEW_ROWS    .shards = 2, .rows = {1, 2}, .groups = 4
/* The shards have the rows that a batch is cut into. */
#define LEAVE(name_, weight_, a_, b_, ...)                                                                             \
    {                                                                                                                  \
        .op = &tdi_op_leave_gradient, .name = name_, .attrs = ATTRS(tdi_matmul_attrs, .transpose_a = true),            \
        .build = build_left, .n_leaves = 3, .leaf = {{.shape = weight_}, {.shape = a_}, {.shape = b_}}, __VA_ARGS__    \
    }
#define JOINT_UPDATE(name_, update_, slots_, weight_, a_, b_, positions_, r0_, r1_, r2_, ...)                          \
    {                                                                                                                  \
        .op = &tdi_op_joint_update, .name = name_,                                                                     \
        .attrs = ATTRS(tdi_joint_update_attrs, .of = {&tdi_op_##update_, {__VA_ARGS__}}, .shards = 3,                  \
                       .positions = positions_),                                                                       \
        .build = build_joint_update, .n_leaves = 3 + slots_,                                                           \
        .leaf = {{.shape = weight_},                                                                                   \
                 {.shape = a_},                                                                                        \
                 {.shape = b_},                                                                                        \
                 {.shape = weight_, .slot = 1},                                                                        \
                 {.shape = weight_, .slot = 2, .fill = OP_UNIT},                                                       \
                 {.shape = weight_, .slot = 3, .fill = OP_UNIT}},                                                      \
        SHARES(r0_, r1_, r2_)                                                                                          \
    }
#define OPTIMIZER(stem, name_, shape_, slots_, ...)                                                                    \
    {                                                                                                                  \
        .op = &tdi_op_##stem, .name = name_, .attrs = ATTRS(tdi_optimizer_attrs, __VA_ARGS__), .build = build_##stem,  \
        .n_leaves = 2 + slots_, .leaf = {                                                                              \
            {.shape = shape_},                                                                                         \
            {.shape = shape_},                                                                                         \
            {.shape = shape_, .slot = 1},                                                                              \
            {.shape = shape_, .slot = 2, .fill = OP_UNIT},                                                             \
            {.shape = shape_, .slot = 3, .fill = OP_UNIT}                                                              \
        }                                                                                                              \
    }
/* the table, indices below a limit, the gradient of the rows */
#define GATHER_UPDATE(name_, table_, indices_, limit_, rows_, ...)                                                     \
    {                                                                                                                  \
        .op = &tdi_op_gather_update, .name = name_, .attrs = ATTRS(tdi_optimizer_attrs, __VA_ARGS__),                  \
        .build = op_case_update, .n_leaves = 3, .leaf = {                                                              \
            {.shape = table_},                                                                                         \
            {.shape = indices_, .dtype = TD_INT32, .limit = limit_},                                                   \
            {.shape = rows_}                                                                                           \
        }                                                                                                              \
    }
#define ADAM .beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f

/* x, gamma, beta, and what is added. */
#define ADDED_LEAVES                                                                                                   \
    .n_leaves = 4, .leaf = {{.shape = OP_DIMS(BATCH, 3, 2), .fill = OP_SPREAD},                                        \
                            {.shape = OP_DIMS(2), .fill = OP_POSITIVE},                                                \
                            {.shape = OP_DIMS(2)},                                                                     \
                            {.shape = OP_DIMS(BATCH, 3, 2), .fill = OP_SPREAD}}
/* x, dy, gamma, beta. */
#define GRADIENT_LEAVES                                                                                                \
    .n_leaves = 4, .leaf = {{.shape = OP_DIMS(BATCH, 5, 7, 19)},                                                       \
                            {.shape = OP_DIMS(BATCH, 5, 7, 19)},                                                       \
                            {.shape = OP_DIMS(19), .fill = OP_POSITIVE},                                               \
                            {.shape = OP_DIMS(19)}}

const op_case op_cases_training[] = {
    {.op = &tdi_op_batch_norm_stats,
     .name = "dense",
     .build = build_stats,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}}},
    {.op = &tdi_op_batch_norm_stats,
     .name = "feature map",
     .build = build_stats,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 4)}}},
    {.op = &tdi_op_batch_norm_stats,
     .name = "of replicas",
     .build = build_stats,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 4)}},
     REPLICAS},
    {.op = &tdi_op_batch_norm_merge,
     .name = "uneven parts",
     .build = build_merge,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}},
     SHARES(2, 0, 3)},
    {.op = &tdi_op_batch_norm_merge,
     .name = "groups of two",
     .build = build_merge,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}},
     .shards = 4,
     .rows = {2, 1, 3, 2},
     .group_size = 2},
    {.op = &tdi_op_batch_norm,
     .name = "dense",
     .build = build_batch_norm,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, {.shape = OP_DIMS(4), .fill = OP_POSITIVE}, {.shape = OP_DIMS(4)}}},
    {.op = &tdi_op_batch_norm,
     .name = "feature map",
     .build = build_batch_norm,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 2)}, {.shape = OP_DIMS(2), .fill = OP_POSITIVE}, {.shape = OP_DIMS(2)}}},
    {.op = &tdi_op_batch_norm,
     .name = "without gamma",
     .build = build_batch_norm_without_gamma,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 4)}, {.shape = OP_DIMS(4)}}},
    {.op = &tdi_op_batch_norm,
     .name = "without gamma and beta",
     .build = build_batch_norm,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 4)}}},
    {.op = &tdi_op_batch_norm,
     .name = "merged over uneven parts",
     .build = build_batch_norm,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, {.shape = OP_DIMS(4), .fill = OP_POSITIVE}, {.shape = OP_DIMS(4)}},
     SHARES(2, 0, 3)},
    {.op = &tdi_op_batch_norm,
     .name = "of replicas",
     .build = build_batch_norm,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 4)}, {.shape = OP_DIMS(4), .fill = OP_POSITIVE}, {.shape = OP_DIMS(4)}},
     REPLICAS},
    {.op = &tdi_op_batch_norm,
     .name = "relu",
     .build = build_batch_norm_relu,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 2), .fill = OP_SPREAD},
              {.shape = OP_DIMS(2), .fill = OP_POSITIVE},
              {.shape = OP_DIMS(2), .fill = OP_UNIT}}},
    {.op = &tdi_op_batch_norm,
     .name = "add and relu, merged over uneven parts",
     .build = build_batch_norm_relu,
     ADDED_LEAVES,
     SHARES(2, 0, 3)},
    {.op = &tdi_op_batch_norm,
     .name = "add and relu, of replicas",
     .build = build_batch_norm_relu,
     ADDED_LEAVES,
     REPLICAS},
    {.op = &tdi_op_batch_norm_grad_stats,
     .name = "relu, of replicas",
     .attrs = ATTRS(tdi_batch_norm_attrs, .relu = true),
     .build = build_grad_stats,
     GRADIENT_LEAVES,
     REPLICAS},
    {.op = &tdi_op_batch_norm_grad_stats,
     .name = "of replicas, some without rows, no epsilon",
     .build = build_gradients_without_epsilon,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 3, 5, 4)}, {.shape = OP_DIMS(BATCH, 3, 5, 4)}},
     FEW_ROWS},
    {.op = &tdi_op_batch_norm_grad_input,
     .name = "relu, of replicas",
     .attrs = ATTRS(tdi_batch_norm_attrs, .relu = true),
     .build = build_grad_input,
     GRADIENT_LEAVES,
     REPLICAS},
    {.op = &tdi_op_batch_norm_grad_stats,
     .name = "relu",
     .attrs = ATTRS(tdi_batch_norm_attrs, .relu = true),
     .build = build_grad_stats,
     GRADIENT_LEAVES},
    {.op = &tdi_op_batch_norm_grad_input,
     .name = "relu",
     .attrs = ATTRS(tdi_batch_norm_attrs, .relu = true),
     .build = build_grad_input,
     GRADIENT_LEAVES},
    {.op = &tdi_op_batch_norm_grad_stats,
     .name = "feature map",
     .build = build_grad_stats,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 4)}, {.shape = OP_DIMS(BATCH, 2, 3, 4)}}},
    {.op = &tdi_op_batch_norm_grad_merge,
     .name = "uneven parts",
     .build = build_grad_merge,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, {.shape = OP_DIMS(BATCH, 4)}},
     SHARES(2, 0, 3)},
    {.op = &tdi_op_batch_norm_grad_input,
     .name = "feature map",
     .build = build_grad_input,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 4)}, {.shape = OP_DIMS(BATCH, 2, 3, 4)}, {.shape = OP_DIMS(4)}}},
    {.op = &tdi_op_batch_norm_grad_input,
     .name = "merged, without gamma",
     .build = build_grad_input,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, {.shape = OP_DIMS(BATCH, 4)}},
     SHARES(2, 0, 3)},
    {.op = &tdi_op_batch_norm_inference,
     .name = "feature map",
     .build = build_inference,
     .n_leaves = 5,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 4)},
              {.shape = OP_DIMS(4), .constant = true},
              {.shape = OP_DIMS(4), .fill = OP_POSITIVE, .constant = true},
              {.shape = OP_DIMS(4)},
              {.shape = OP_DIMS(4)}}},
    {.op = &tdi_op_batch_norm_inference,
     .name = "without gamma and beta",
     .build = build_inference,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)},
              {.shape = OP_DIMS(4), .constant = true},
              {.shape = OP_DIMS(4), .fill = OP_POSITIVE, .constant = true}}},
    {.op = &tdi_op_batch_norm_inference,
     .name = "relu",
     .build = build_inference_relu,
     .n_leaves = 5,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 2), .fill = OP_SPREAD},
              {.shape = OP_DIMS(2), .fill = OP_ZERO, .constant = true},
              {.shape = OP_DIMS(2), .fill = OP_POSITIVE, .constant = true},
              {.shape = OP_DIMS(2), .fill = OP_POSITIVE},
              {.shape = OP_DIMS(2), .fill = OP_ZERO}}},
    {.op = &tdi_op_batch_norm_inference,
     .name = "add and relu",
     .build = build_inference_relu,
     .n_leaves = 6,
     .leaf = {{.shape = OP_DIMS(BATCH, 3, 2), .fill = OP_SPREAD},
              {.shape = OP_DIMS(2), .constant = true},
              {.shape = OP_DIMS(2), .fill = OP_POSITIVE, .constant = true},
              {.shape = OP_DIMS(2), .fill = OP_POSITIVE},
              {.shape = OP_DIMS(2)},
              {.shape = OP_DIMS(BATCH, 3, 2), .fill = OP_SPREAD}}},
    {.op = &tdi_op_batch_norm_inference,
     .name = "add and relu, many channels",
     .build = build_inference_relu,
     .n_leaves = 6,
     .leaf = {{.shape = OP_DIMS(BATCH, 5, 7, 19), .constant = true},
              {.shape = OP_DIMS(19), .constant = true},
              {.shape = OP_DIMS(19), .fill = OP_POSITIVE, .constant = true},
              {.shape = OP_DIMS(19), .constant = true},
              {.shape = OP_DIMS(19), .constant = true},
              {.shape = OP_DIMS(BATCH, 5, 7, 19), .constant = true}}},
    {.op = &tdi_op_batch_norm_moving,
     .name = "mean",
     .attrs = ATTRS(tdi_batch_norm_attrs, .momentum = 0.99f),
     .build = build_moving,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, {.shape = OP_DIMS(4)}},
     SHARES(2, 0, 3),
     .group_size = 1},
    {.op = &tdi_op_batch_norm_moving,
     .name = "variance",
     .attrs = ATTRS(tdi_batch_norm_attrs, .momentum = 0.9f, .variance = true),
     .build = build_moving,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, {.shape = OP_DIMS(4)}}},
    {.op = &tdi_op_batch_norm_moving,
     .name = "variance of replicas",
     .attrs = ATTRS(tdi_batch_norm_attrs, .momentum = 0.9f, .variance = true),
     .build = build_moving,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, {.shape = OP_DIMS(4)}},
     REPLICAS},

    {.op = &tdi_op_all_gather,
     .name = "sums of uneven parts",
     .build = build_all_gather,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}},
     SHARES(2, 0, 3)},
    {.op = &tdi_op_reduce_scatter,
     .name = "uneven parts",
     .build = build_reduce_scatter,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}, {.shape = OP_DIMS(BATCH, 7)}, {.shape = OP_DIMS(5, 7)}},
     SHARES(2, 0, 3)},
    {.op = &tdi_op_all_reduce,
     .name = "a sum that is there",
     .build = build_all_reduce,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}, {.shape = OP_DIMS(BATCH, 7)}, {.shape = OP_DIMS(5, 7)}}},
    {.op = &tdi_op_leave_gradient,
     .name = "the product, which others add up",
     .attrs = ATTRS(tdi_matmul_attrs, .transpose_a = true, .factors = -1),
     .build = build_left,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(33, 21)}, {.shape = OP_DIMS(BATCH, 33)}, {.shape = OP_DIMS(BATCH, 21)}},
     SHARES(1, 2, 2)},
    LEAVE("its factors, which are few", OP_DIMS(33, 21), OP_DIMS(BATCH, 33), OP_DIMS(BATCH, 21), SHARES(1, 2, 2)),
    LEAVE("the product, which is small", OP_DIMS(5, 7), OP_DIMS(BATCH, 5), OP_DIMS(BATCH, 7), SHARES(0, 1, 1)),
    LEAVE("factors of several positions", OP_DIMS(70, 30), OP_DIMS(BATCH, 3, 70), OP_DIMS(BATCH, 3, 30),
          SHARES(0, 1, 1)),
    JOINT_UPDATE("adam of factors", adam, 2, OP_DIMS(33, 21), OP_DIMS(BATCH, 33), OP_DIMS(BATCH, 21), 1, 1, 2, 2, ADAM),
    JOINT_UPDATE("adam with amsgrad, of products", adam, 3, OP_DIMS(5, 7), OP_DIMS(BATCH, 5), OP_DIMS(BATCH, 7), 1, 2,
                 2, 3, ADAM, .amsgrad = true, .weight_decay = 0.01f),
    JOINT_UPDATE("sgd, of factors and of a product", sgd, 0, OP_DIMS(20, 10), OP_DIMS(BATCH, 20), OP_DIMS(BATCH, 10), 1,
                 3, 3, 4, .clipvalue = 0.5f),
    JOINT_UPDATE("momentum, of many positions", sgd, 1, OP_DIMS(150, 90), OP_DIMS(BATCH, 9, 150), OP_DIMS(BATCH, 9, 90),
                 9, 2, 3, 3, .momentum = 0.9f, .nesterov = true),
    {.op = &tdi_op_joint_update,
     .name = "of gathered factors",
     .attrs = ATTRS(tdi_joint_update_attrs, .of = {&tdi_op_adam, {ADAM}}, .shards = 3, .positions = 1,
                    .factors = 27 * (33 + 21) /* of as many rows as any test has */),
     .build = build_joint_update,
     .n_leaves = 5,
     .leaf = {{.shape = OP_DIMS(33, 21)},
              {.shape = OP_DIMS(BATCH, 33)},
              {.shape = OP_DIMS(BATCH, 21)},
              {.shape = OP_DIMS(33, 21), .slot = 1},
              {.shape = OP_DIMS(33, 21), .slot = 2, .fill = OP_UNIT}},
     SHARES(1, 2, 2)},
    JOINT_UPDATE("narrow", adam, 2, OP_DIMS(300, 3), OP_DIMS(BATCH, 300), OP_DIMS(BATCH, 3), 1, 0, 0, 1, ADAM),
    {.op = &tdi_op_regularization,
     .name = "l1 and l2",
     .attrs = ATTRS(tdi_regularize_attrs, 0.01f, 0.02f),
     .build = build_regularization,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(5, 3)}},
     SHARES(2, 0, 3)},
    {.op = &tdi_op_regularization,
     .name = "stretches of some rows",
     .attrs = ATTRS(tdi_regularize_attrs, 0.01f, 0.02f),
     .build = build_regularization,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(67, 19), .fill = OP_SPREAD}},
     SHARES(2, 0, 3)},
    {.op = &tdi_op_regularization,
     .name = "l2 of a row alone",
     .attrs = ATTRS(tdi_regularize_attrs, 0, 0.02f),
     .build = build_regularization,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(67, 79)}},
     .rows = {1}},
    {.op = &tdi_op_regularize,
     .name = "l1 and l2",
     .attrs = ATTRS(tdi_regularize_attrs, 0.01f, 0.02f),
     .build = build_regularize,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(5, 3), .fill = OP_SPREAD}, {.shape = OP_DIMS(5, 3)}}},

    {.op = &tdi_op_slot,
     .name = "slot",
     .build = build_slot,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(4, 3)}, {.shape = OP_DIMS(4, 3), .slot = 1}}},
    {.op = &tdi_op_accumulate_gradient,
     .name = "the last step",
     .attrs = ATTRS(tdi_accumulate_gradient_attrs, 3),
     .build = build_accumulate_gradient,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(5, 7)}, {.shape = OP_DIMS(5, 7)}, {.shape = OP_DIMS(5, 7), .slot = 1}}},
    {.op = &tdi_op_accumulate_gradient,
     .name = "a step before",
     .attrs = ATTRS(tdi_accumulate_gradient_attrs, 3),
     .build = build_accumulate_gradient,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(5, 7)}, {.shape = OP_DIMS(5, 7)}, {.shape = OP_DIMS(5, 7), .slot = 1}},
     .skip = true},
    {.op = &tdi_op_squared_norm,
     .name = "one block",
     .build = build_squared_norm,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(5, 7)}}},
    {.op = &tdi_op_squared_norm,
     .name = "blocks",
     .build = build_squared_norm,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(3, 5003)}}},
    {.op = &tdi_op_clip_factor,
     .name = "of one",
     .attrs = ATTRS(tdi_clip_factor_attrs, .limit = 0.5f),
     .build = build_clip_factor,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(2, 4099)}}},
    {.op = &tdi_op_clip_factor,
     .name = "of all, too small to be clipped",
     .attrs = ATTRS(tdi_clip_factor_attrs, .limit = 1000, .global = true),
     .build = build_clip_factor,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(2, 4099)}, {.shape = OP_DIMS(5)}, {.shape = OP_DIMS(3, 3)}}},
    {.op = &tdi_op_clip_by_norm,
     .name = "to a half",
     .build = build_clip_by_norm,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(9, 7)}}},
    {.op = &tdi_op_moving_average,
     .name = "beside the weight",
     .attrs = ATTRS(tdi_moving_average_attrs, .momentum = 0.9f, .overwrite_frequency = 2),
     .build = build_moving_average,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(9, 7)}, {.shape = OP_DIMS(9, 7), .slot = 1}}},
    {.op = &tdi_op_moving_average,
     .name = "over the weight",
     .attrs = ATTRS(tdi_moving_average_attrs, .momentum = 0.9f, .overwrite_frequency = 3),
     .build = build_moving_average,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(9, 7)}, {.shape = OP_DIMS(9, 7), .slot = 1}}},
    OPTIMIZER(sgd, "plain", OP_DIMS(6, 5), 0, .momentum = 0),
    OPTIMIZER(sgd, "momentum", OP_DIMS(6, 5), 1, .momentum = 0.9f),
    OPTIMIZER(sgd, "nesterov, decay, clipping", OP_DIMS(33), 1, .momentum = 0.9f, .nesterov = true,
              .weight_decay = 0.01f, .clipvalue = 0.5f),
    {.op = &tdi_op_sgd,
     .name = "a step that updates nothing",
     .attrs = ATTRS(tdi_optimizer_attrs, .momentum = 0.9f),
     .build = build_sgd,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(6, 5)}, {.shape = OP_DIMS(6, 5)}, {.shape = OP_DIMS(6, 5), .slot = 1}},
     .skip = true},
    {.op = &tdi_op_adam,
     .name = "a step that updates nothing",
     .attrs = ATTRS(tdi_optimizer_attrs, ADAM),
     .build = build_adam,
     .n_leaves = 4,
     .leaf = {{.shape = OP_DIMS(6, 5)},
              {.shape = OP_DIMS(6, 5)},
              {.shape = OP_DIMS(6, 5), .slot = 1},
              {.shape = OP_DIMS(6, 5), .slot = 2, .fill = OP_UNIT}},
     .skip = true},
    GATHER_UPDATE("rows, with repeats", OP_DIMS(4, 3), OP_DIMS(BATCH, 5), 4, OP_DIMS(BATCH, 5, 3), .momentum = 0),
    GATHER_UPDATE("few rows of many, clipping", OP_DIMS(900, 37), OP_DIMS(BATCH), 900, OP_DIMS(BATCH, 37),
                  .clipvalue = 0.5f),
    GATHER_UPDATE("numbers", OP_DIMS(7), OP_DIMS(BATCH, 5), 7, OP_DIMS(BATCH, 5), .momentum = 0),
    GATHER_UPDATE("rows of two axes", OP_DIMS(9, 2, 19), OP_DIMS(BATCH, 4), 9, OP_DIMS(BATCH, 4, 2, 19), .momentum = 0),
    GATHER_UPDATE("indices out of range", OP_DIMS(4, 18), OP_DIMS(BATCH, 5), 9, OP_DIMS(BATCH, 5, 18), .momentum = 0),
    {.op = &tdi_op_gather_update,
     .name = "a step that updates nothing",
     .attrs = ATTRS(tdi_optimizer_attrs, .momentum = 0),
     .build = op_case_update,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(4, 3)},
              {.shape = OP_DIMS(BATCH, 5), .dtype = TD_INT32, .limit = 4},
              {.shape = OP_DIMS(BATCH, 5, 3)}},
     .skip = true},
    OPTIMIZER(adam, "defaults", OP_DIMS(6, 5), 2, ADAM),
    OPTIMIZER(adam, "wide", OP_DIMS(3, 67), 2, ADAM),
    OPTIMIZER(adam, "amsgrad", OP_DIMS(3, 3, 2, 4), 3, ADAM, .amsgrad = true),
    OPTIMIZER(adam, "decay and clipping", OP_DIMS(17), 2, ADAM, .weight_decay = 0.004f, .clipvalue = 0.3f),
    {0}};
