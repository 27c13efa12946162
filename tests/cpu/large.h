/* large.h - cases that are large enough for whole vectors, for blocks, and for what is left over at their ends. */
#ifndef TEST_CPU_LARGE_H
#define TEST_CPU_LARGE_H

#include "support/op_case.h"

#define ATTRS(type, ...) (&(const type){__VA_ARGS__})
#define BATCH            TDI_BATCH
#define MANY(...)        .shards = 1, .rows = {__VA_ARGS__}

static tdi_node *large_max_pool_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_max_pool2d_grad(graph, leaf[0], tdi_max_pool2d(graph, leaf[0], c->attrs), leaf[1], c->attrs);
}

/* The gradient's op with the losses as an extra output. */
static tdi_node *large_with_losses(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *losses = tdi_extra_output(graph, &leaf[2]->shape);
    return tdi_node_create(graph, c->op, c->attrs, 4, (tdi_node *[]){leaf[0], leaf[1], leaf[2], losses});
}

static tdi_node *large_average_pool_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_average_pool2d_grad(graph, leaf[0], c->attrs);
}

/* Leaves dy, x: what the activation gave. */
static tdi_node *large_average_slope(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_node_create(graph, c->op, c->attrs, 2, leaf);
}

static tdi_node *large_reduce_scatter(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)c;
    tdi_node *gradient = tdi_matmul(graph, leaf[0], leaf[1], true, false);
    gradient->home = TDI_HOME_GRADIENT;
    gradient->variable = leaf[2]->variable;
    return tdi_reduce_scatter(graph, gradient, leaf[2]->variable);
}

/* Leaves a, b, weight. */
static tdi_node *large_left(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *left = tdi_node_create(graph, c->op, c->attrs, 2, leaf);
    left->home = TDI_HOME_GRADIENT;
    left->variable = leaf[2]->variable;
    return left;
}

static tdi_node *large_batch_norm(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)c;
    return tdi_batch_norm(graph, leaf[0], tdi_batch_norm_stats(graph, leaf[0], 1), leaf[1], leaf[2], 1e-3f);
}

/* Leaves x, dy, gamma, beta. */
static tdi_node *large_rectified_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *stats = tdi_batch_norm_stats(graph, leaf[0], 1);
    tdi_node *sums = tdi_batch_norm_grad_stats(graph, leaf[0], leaf[1], stats, leaf[2], leaf[3], 1e-3f, true);
    if (c->op == &tdi_op_batch_norm_grad_stats)
        return sums;
    return tdi_batch_norm_grad_input(graph, leaf[0], leaf[1], stats, sums, leaf[2], leaf[3], 1e-3f, true);
}

#define RECTIFIED_GRAD(stem_)                                                                                          \
    {                                                                                                                  \
        .op = &tdi_op_##stem_, .name = "many, rectified", .build = large_rectified_grad, .n_leaves = 4, .leaf = {      \
            {.shape = OP_DIMS(BATCH, 21, 3, 300)},                                                                     \
            {.shape = OP_DIMS(BATCH, 21, 3, 300)},                                                                     \
            {.shape = OP_DIMS(300)},                                                                                   \
            {.shape = OP_DIMS(300)}                                                                                    \
        }                                                                                                              \
    }

static tdi_node *large_adam(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_adam(graph, leaf[0], leaf[1], c->n_leaves - 2, leaf + 2, c->attrs);
}

#define MATMUL(name_, rows_, a_, b_, ta_, tb_)                                                                         \
    {                                                                                                                  \
        .op = &tdi_op_matmul, .name = name_, .attrs = ATTRS(tdi_matmul_attrs, .transpose_a = ta_, .transpose_b = tb_), \
        .n_leaves = 2, .leaf = {{.shape = a_}, {.shape = b_}}, MANY(rows_)                                             \
    }
#define WITH_ZEROS(name_, rows_, depth_, zeros_, period_, columns_, fill_)                                             \
    {                                                                                                                  \
        .op = &tdi_op_matmul, .name = name_, .attrs = ATTRS(tdi_matmul_attrs, .activation = TD_LINEAR), .n_leaves = 2, \
        .leaf = {{.shape = OP_DIMS(BATCH, depth_), .fill = zeros_, .limit = period_},                                  \
                 {.shape = OP_DIMS(depth_, columns_), .fill = fill_}},                                                 \
        MANY(rows_)                                                                                                    \
    }
#define WITH_ZEROS_UPDATE(name_, rows_, features_, zeros_, period_, columns_, fill_)                                   \
    {                                                                                                                  \
        .op = &tdi_op_matmul_update, .name = name_,                                                                    \
        .attrs = ATTRS(tdi_matmul_update_attrs, &tdi_op_adam, {.beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f}),   \
        .build = op_case_update, .n_leaves = 5,                                                                        \
        .leaf = {{.shape = OP_DIMS(features_, columns_)},                                                              \
                 {.shape = OP_DIMS(BATCH, features_), .fill = zeros_, .limit = period_},                               \
                 {.shape = OP_DIMS(BATCH, columns_), .fill = fill_},                                                   \
                 {.shape = OP_DIMS(features_, columns_), .slot = 1},                                                   \
                 {.shape = OP_DIMS(features_, columns_), .slot = 2, .fill = OP_UNIT}},                                 \
        MANY(rows_)                                                                                                    \
    }
#define REDUCE(name_, rows_, shape_, kind_, axes_)                                                                     \
    {                                                                                                                  \
        .op = &tdi_op_reduce, .name = name_, .attrs = ATTRS(tdi_reduce_attrs, kind_, axes_, false), .n_leaves = 1,     \
        .leaf = {{.shape = shape_}}, MANY(rows_)                                                                       \
    }
/* Padding: exactly these zeros. */
#define AROUND     TD_VALID, .sides = {2, 1, 0, 1}
#define FAR_AROUND TD_VALID, .sides = {4, 0, 5, 1} /* the filter is smaller than the padding */
#define POOL_ATTRS(h_, w_, sh_, sw_, padding_)                                                                         \
    .pool_h = h_, .pool_w = w_, .stride_h = sh_, .stride_w = sw_, .padding = padding_
#define POOL(stem_, name_, shape_, h_, w_, sh_, sw_, padding_, fill_)                                                  \
    {                                                                                                                  \
        .op = &tdi_op_##stem_, .name = name_,                                                                          \
        .attrs = ATTRS(tdi_pool2d_attrs, POOL_ATTRS(h_, w_, sh_, sw_, padding_)), .n_leaves = 1, .leaf = {             \
            {.shape = shape_, .fill = fill_}                                                                           \
        }                                                                                                              \
    }
#define UPSAMPLE(stem_, name_, shape_, factor_h_, factor_w_, bilinear_)                                                \
    {                                                                                                                  \
        .op = &tdi_op_##stem_, .name = name_, .attrs = ATTRS(tdi_upsample2d_attrs, factor_h_, factor_w_, bilinear_),   \
        .n_leaves = 1, .leaf = {                                                                                       \
            {.shape = shape_}                                                                                          \
        }                                                                                                              \
    }
#define POOL_GRAD(name_, x_, y_, h_, w_, sh_, sw_, padding_, fill_)                                                    \
    {                                                                                                                  \
        .op = &tdi_op_max_pool2d_grad, .name = name_,                                                                  \
        .attrs = ATTRS(tdi_pool2d_attrs, POOL_ATTRS(h_, w_, sh_, sw_, padding_)), .build = large_max_pool_grad,        \
        .n_leaves = 2, .leaf = {                                                                                       \
            {.shape = x_, .fill = fill_},                                                                              \
            {.shape = y_}                                                                                              \
        }                                                                                                              \
    }
#define POOL_AVERAGE_GRAD(name_, x_, y_, h_, w_, sh_, sw_, padding_)                                                   \
    {                                                                                                                  \
        .op = &tdi_op_average_pool2d_grad, .name = name_,                                                              \
        .attrs = ATTRS(tdi_pool2d_attrs, POOL_ATTRS(h_, w_, sh_, sw_, padding_), .shape = x_),                         \
        .build = large_average_pool_grad, .n_leaves = 1, .leaf = {                                                     \
            {.shape = y_}                                                                                              \
        }                                                                                                              \
    }
#define POOL_SLOPE(name_, x_, y_, activation_)                                                                         \
    {                                                                                                                  \
        .op = &tdi_op_max_pool2d_grad, .name = name_,                                                                  \
        .attrs = ATTRS(tdi_pool2d_attrs, POOL_ATTRS(2, 2, 2, 2, TD_VALID), .activation = activation_),                 \
        .build = large_max_pool_grad, .n_leaves = 2, .leaf = {                                                         \
            {.shape = x_},                                                                                             \
            {.shape = y_}                                                                                              \
        }                                                                                                              \
    }
#define POOL_AVERAGE_SLOPE(name_, x_, y_, size_, padding_, activation_)                                                \
    {                                                                                                                  \
        .op = &tdi_op_average_pool2d_grad, .name = name_,                                                              \
        .attrs =                                                                                                       \
            ATTRS(tdi_pool2d_attrs, POOL_ATTRS(size_, size_, 2, 2, padding_), .shape = x_, .activation = activation_), \
        .build = large_average_slope, .n_leaves = 2, .leaf = {                                                         \
            {.shape = y_},                                                                                             \
            {.shape = x_}                                                                                              \
        }                                                                                                              \
    }
#define CONV(stem_, name_, rows_, a_, b_, shape_, stride_, padding_)                                                   \
    {                                                                                                                  \
        .op = &tdi_op_##stem_, .name = name_,                                                                          \
        .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = stride_, .stride_w = stride_, .dilation_h = 1, .dilation_w = 1,   \
                       .groups = 1, .padding = padding_, .shape = shape_),                                             \
        .n_leaves = 2, .leaf = {{.shape = a_}, {.shape = b_}}, MANY(rows_)                                             \
    }

/* Images with blank borders. Infinite factors come with four columns of the filter alone, which no Winograd kernel
 * takes: those would mix them into other pixels. */
#define FRAMED(op_, name_, rows_, x_, frame_, b_, fill_, shape_, sh_, sw_, ...)                                        \
    {                                                                                                                  \
        .op = &tdi_op_##op_, .name = "framed, " name_,                                                                 \
        .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = sh_, .stride_w = sw_, .dilation_h = 1, .dilation_w = 1,           \
                       .groups = 1, .shape = shape_, .padding = __VA_ARGS__),                                          \
        .n_leaves = 2, .leaf = {{.shape = x_, .fill = OP_FRAMED, .limit = frame_}, {.shape = b_, .fill = fill_}},      \
        MANY(rows_)                                                                                                    \
    }

static const op_case large_cases[] = {
    {.op = &tdi_op_unary,
     .name = "tanh",
     .attrs = ATTRS(tdi_unary_attrs, TD_TANH),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 5, 131)}}},
    {.op = &tdi_op_binary,
     .name = "a number per row",
     .attrs = ATTRS(tdi_binary_attrs, TDI_DIVIDE),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 67)}, {.shape = OP_DIMS(BATCH, 1), .fill = OP_POSITIVE}}},
    {.op = &tdi_op_binary,
     .name = "a row for every row, in front",
     .attrs = ATTRS(tdi_binary_attrs, TDI_SUBTRACT),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(67)}, {.shape = OP_DIMS(BATCH, 4, 67)}}},
    {.op = &tdi_op_bias_add,
     .name = "wide",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 4, 67)}, {.shape = OP_DIMS(67)}}},
    {.op = &tdi_op_affine,
     .name = "wide",
     .attrs = ATTRS(tdi_affine_attrs, 1.5f, -0.25f),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 131)}}},
    {.op = &tdi_op_cast,
     .name = "bytes",
     .attrs = ATTRS(tdi_cast_attrs, TD_FLOAT32),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 131), .dtype = TD_UINT8, .limit = 256}}},
    {.op = &tdi_op_dropout,
     .name = "wide",
     .attrs = ATTRS(tdi_dropout_attrs, .rate = 0.3f, .stream = 4),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 131)}}},
    {.op = &tdi_op_dropout,
     .name = "parts that begin inside a quad",
     .attrs = ATTRS(tdi_dropout_attrs, .rate = 0.5f, .stream = 9),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 7, 11)}},
     .shards = 3,
     .rows = {1, 4, 2}},

    REDUCE("columns, few", 700, OP_DIMS(BATCH, 6), TDI_SUM, 1),
    REDUCE("columns, many", 70, OP_DIMS(BATCH, 600), TDI_SUM, 1),
    REDUCE("rows", 5, OP_DIMS(BATCH, 2500), TDI_MEAN, 2),
    REDUCE("middle", 3, OP_DIMS(BATCH, 9, 9, 37), TDI_MEAN, 6),
    REDUCE("all", 9, OP_DIMS(BATCH, 333), TDI_SUM, 3),
    REDUCE("largest of rows", 5, OP_DIMS(BATCH, 100), TDI_MAX, 2),
    REDUCE("largest of columns", 40, OP_DIMS(BATCH, 100), TDI_MAX, 1),
    {.op = &tdi_op_batch_mean, .name = "wide", .n_leaves = 1, .leaf = {{.shape = OP_DIMS(BATCH, 1100)}}},

    {.op = &tdi_op_softmax, .name = "wide", .n_leaves = 1, .leaf = {{.shape = OP_DIMS(BATCH, 613)}}},
    {.op = &tdi_op_log_softmax, .name = "wide", .n_leaves = 1, .leaf = {{.shape = OP_DIMS(BATCH, 613)}}},
    {.op = &tdi_op_sparse_softmax_cross_entropy,
     .name = "wide",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 613)}, {.shape = OP_DIMS(BATCH), .dtype = TD_INT32, .limit = 613}}},
    {.op = &tdi_op_sparse_softmax_cross_entropy_grad,
     .name = "wide",
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 613)},
              {.shape = OP_DIMS(BATCH), .dtype = TD_INT32, .limit = 613},
              {.shape = OP_DIMS(BATCH)}}},
    {.op = &tdi_op_sparse_softmax_cross_entropy_grad,
     .name = "wide, and losses, a class too many",
     .build = large_with_losses,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 613)},
              {.shape = OP_DIMS(BATCH), .dtype = TD_INT32, .limit = 640},
              {.shape = OP_DIMS(BATCH)}},
     MANY(40)},
    {.op = &tdi_op_softmax_cross_entropy_grad,
     .name = "wide, and losses",
     .build = large_with_losses,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 613)},
              {.shape = OP_DIMS(BATCH, 613), .fill = OP_UNIT},
              {.shape = OP_DIMS(BATCH)}},
     MANY(3)},
    {.op = &tdi_op_sigmoid_cross_entropy_grad,
     .name = "wide, and losses",
     .build = large_with_losses,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 613)},
              {.shape = OP_DIMS(BATCH, 613), .fill = OP_UNIT},
              {.shape = OP_DIMS(BATCH, 613)}},
     MANY(3)},

    UPSAMPLE(upsample2d, "nearest, many channels", OP_DIMS(BATCH, 5, 7, 35), 2, 3, false),
    UPSAMPLE(upsample2d, "bilinear, many channels", OP_DIMS(BATCH, 5, 7, 35), 2, 4, true),
    UPSAMPLE(upsample2d, "bilinear, few channels", OP_DIMS(BATCH, 9, 11, 3), 8, 8, true),
    UPSAMPLE(upsample2d_grad, "nearest, many channels", OP_DIMS(BATCH, 6, 8, 35), 3, 2, false),
    UPSAMPLE(upsample2d_grad, "bilinear, many channels", OP_DIMS(BATCH, 6, 8, 35), 2, 2, true),
    {.op = &tdi_op_gather,
     .name = "wide",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(40, 2, 67)}, {.shape = OP_DIMS(BATCH, 9), .dtype = TD_INT32, .limit = 40}}},
    {.op = &tdi_op_scatter_add,
     .name = "wide",
     .attrs = ATTRS(tdi_shape_attrs, OP_DIMS(40, 2, 67)),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 9), .dtype = TD_INT32, .limit = 40}, {.shape = OP_DIMS(BATCH, 9, 2, 67)}}},
    {.op = &tdi_op_gather_update,
     .name = "wide",
     .attrs = ATTRS(tdi_optimizer_attrs, .momentum = 0),
     .build = op_case_update,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(40, 2, 67)},
              {.shape = OP_DIMS(BATCH, 9), .dtype = TD_INT32, .limit = 40},
              {.shape = OP_DIMS(BATCH, 9, 2, 67)}}},
    POOL(max_pool2d, "many channels", OP_DIMS(BATCH, 7, 9, 35), 2, 2, 2, 2, TD_VALID, OP_NORMAL),
    POOL(max_pool2d, "few channels", OP_DIMS(BATCH, 28, 28, 6), 2, 2, 2, 2, TD_VALID, OP_NORMAL),
    POOL(max_pool2d, "few channels, three by two, cells left over", OP_DIMS(BATCH, 11, 13, 3), 3, 2, 3, 2, TD_VALID,
         OP_NORMAL),
    POOL(max_pool2d, "windows partly in the padding", OP_DIMS(BATCH, 8, 7, 5), 3, 3, 3, 3, TD_SAME, OP_NORMAL),
    POOL(max_pool2d, "overlapping", OP_DIMS(BATCH, 9, 8, 5), 3, 3, 2, 1, TD_SAME, OP_NORMAL),
    POOL(average_pool2d, "many channels", OP_DIMS(BATCH, 7, 9, 35), 3, 2, 2, 2, TD_SAME, OP_NORMAL),
    POOL(average_pool2d, "one channel", OP_DIMS(BATCH, 28, 28, 1), 2, 2, 2, 2, TD_VALID, OP_NORMAL),
    POOL(average_pool2d, "nine channels", OP_DIMS(BATCH, 7, 6, 9), 2, 2, 2, 2, TD_VALID, OP_NORMAL),
    POOL_AVERAGE_GRAD("few channels, cells left over", OP_DIMS(BATCH, 7, 9, 6), OP_DIMS(BATCH, 3, 4, 6), 2, 2, 2, 2,
                      TD_VALID),
    POOL_AVERAGE_GRAD("one channel", OP_DIMS(BATCH, 9, 9, 1), OP_DIMS(BATCH, 3, 3, 1), 3, 3, 3, 3, TD_SAME),
    POOL_AVERAGE_GRAD("many channels", OP_DIMS(BATCH, 7, 9, 35), OP_DIMS(BATCH, 4, 5, 35), 2, 2, 2, 2, TD_SAME),
    POOL_GRAD("few channels, cells left over", OP_DIMS(BATCH, 7, 9, 6), OP_DIMS(BATCH, 3, 4, 6), 2, 2, 2, 2, TD_VALID,
              OP_NORMAL),
    POOL_GRAD("one channel", OP_DIMS(BATCH, 9, 9, 1), OP_DIMS(BATCH, 3, 3, 1), 3, 3, 3, 3, TD_SAME, OP_NORMAL),
    POOL_GRAD("three channels, one window wide", OP_DIMS(BATCH, 6, 2, 3), OP_DIMS(BATCH, 3, 1, 3), 2, 2, 2, 2, TD_VALID,
              OP_NORMAL),
    POOL_GRAD("many channels", OP_DIMS(BATCH, 8, 8, 35), OP_DIMS(BATCH, 4, 4, 35), 2, 2, 2, 2, TD_VALID, OP_NORMAL),
    POOL_SLOPE("slope, few channels", OP_DIMS(BATCH, 7, 9, 6), OP_DIMS(BATCH, 3, 4, 6), TD_RELU),
    POOL_SLOPE("slope, many channels", OP_DIMS(BATCH, 7, 9, 35), OP_DIMS(BATCH, 3, 4, 35), TD_RELU),
    POOL_AVERAGE_SLOPE("slope, few channels", OP_DIMS(BATCH, 7, 9, 6), OP_DIMS(BATCH, 3, 4, 6), 2, TD_VALID, TD_TANH),
    POOL_AVERAGE_SLOPE("slope, many channels", OP_DIMS(BATCH, 7, 9, 35), OP_DIMS(BATCH, 3, 4, 35), 2, TD_VALID,
                       TD_SIGMOID),
    POOL_AVERAGE_SLOPE("slope, overlapping", OP_DIMS(BATCH, 7, 7, 19), OP_DIMS(BATCH, 4, 4, 19), 3, TD_SAME, TD_TANH),
    POOL_GRAD("overlapping", OP_DIMS(BATCH, 7, 7, 19), OP_DIMS(BATCH, 7, 7, 19), 3, 3, 1, 1, TD_SAME, OP_NORMAL),
    POOL(max_pool2d, "many channels, ties and no numbers", OP_DIMS(BATCH, 7, 8, 35), 2, 2, 2, 2, TD_VALID, OP_MISSING),
    POOL(max_pool2d, "overlapping, ties and no numbers", OP_DIMS(BATCH, 7, 8, 35), 3, 3, 2, 1, TD_SAME, OP_MISSING),
    POOL_GRAD("ties and no numbers", OP_DIMS(BATCH, 8, 8, 35), OP_DIMS(BATCH, 4, 4, 35), 2, 2, 2, 2, TD_VALID,
              OP_MISSING),
    POOL_GRAD("overlapping, ties and no numbers", OP_DIMS(BATCH, 7, 7, 35), OP_DIMS(BATCH, 4, 4, 35), 3, 3, 2, 2,
              TD_SAME, OP_MISSING),

    {.op = &tdi_op_batch_norm_stats,
     .name = "many",
     .attrs = ATTRS(tdi_batch_norm_stats_attrs, .groups = 1),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 20, 3, 300)}}},
    {.op = &tdi_op_batch_norm_stats,
     .name = "many, of replicas",
     .attrs = ATTRS(tdi_batch_norm_stats_attrs, .groups = 2),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 20, 3, 300)}}},
    {.op = &tdi_op_batch_norm,
     .name = "many",
     .build = large_batch_norm,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 5, 300)}, {.shape = OP_DIMS(300)}, {.shape = OP_DIMS(300)}}},
    RECTIFIED_GRAD(batch_norm_grad_stats),
    RECTIFIED_GRAD(batch_norm_grad_input),
    {.op = &tdi_op_reduce_scatter,
     .name = "several blocks",
     .build = large_reduce_scatter,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 50)}, {.shape = OP_DIMS(BATCH, 70)}, {.shape = OP_DIMS(50, 70)}},
     .shards = 4,
     .rows = {2, 1, 3, 2}},
    {.op = &tdi_op_leave_gradient,
     .name = "a product to be packed",
     .attrs = ATTRS(tdi_matmul_attrs, .transpose_a = true),
     .build = large_left,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 300)}, {.shape = OP_DIMS(BATCH, 270)}, {.shape = OP_DIMS(300, 270)}},
     MANY(80)},
    {.op = &tdi_op_adam,
     .name = "wide",
     .attrs = ATTRS(tdi_optimizer_attrs, .beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f),
     .build = large_adam,
     .n_leaves = 4,
     .leaf = {{.shape = OP_DIMS(19, 259)},
              {.shape = OP_DIMS(19, 259)},
              {.shape = OP_DIMS(19, 259), .slot = 1},
              {.shape = OP_DIMS(19, 259), .slot = 2, .fill = OP_POSITIVE}}},

    MATMUL("dense", 32, OP_DIMS(BATCH, 200), OP_DIMS(200, 130), false, false),
    MATMUL("one column", 19, OP_DIMS(BATCH, 37), OP_DIMS(37, 1), false, false),
    MATMUL("one column, deep", 3, OP_DIMS(BATCH, 2101), OP_DIMS(2101, 1), false, false),
    MATMUL("four columns, deep", 9, OP_DIMS(BATCH, 1061), OP_DIMS(1061, 4), false, false),
    MATMUL("five columns, deep", 9, OP_DIMS(BATCH, 1061), OP_DIMS(1061, 5), false, false),
    MATMUL("one column, a transposed", 11, OP_DIMS(BATCH, 613), OP_DIMS(BATCH, 1), true, false),
    MATMUL("three columns, a transposed", 11, OP_DIMS(BATCH, 523), OP_DIMS(BATCH, 3), true, false),
    MATMUL("fifteen columns, a transposed", 2, OP_DIMS(BATCH, 17), OP_DIMS(BATCH, 15), true, false),
    MATMUL("a depth of one, b transposed", 21, OP_DIMS(BATCH, 1), OP_DIMS(77, 1), false, true),
    MATMUL("a depth of one, b transposed, few columns", 21, OP_DIMS(BATCH, 1), OP_DIMS(7, 1), false, true),
    WITH_ZEROS_UPDATE("one column", 33, 613, OP_NORMAL, 0, 1, OP_NORMAL),
    WITH_ZEROS("columns of zeros", 40, 613, OP_BANDED, 29, 131, OP_NORMAL),
    WITH_ZEROS("columns of zeros times infinities", 40, 613, OP_BANDED, 29, 131, OP_INFINITE),
    WITH_ZEROS("columns of zeros beside an infinity", 40, 37, OP_BANDED, 29, 131, OP_INFINITE),
    WITH_ZEROS("zeros here and there", 75, 613, OP_SPARSE, 0, 128, OP_NORMAL),
    WITH_ZEROS("zeros here and there, deep", 17, 2100, OP_SPARSE, 0, 140, OP_NORMAL),
    WITH_ZEROS("zeros here and there, shallow", 100, 5, OP_SPARSE, 0, 140, OP_NORMAL),
    WITH_ZEROS("zeros here and there, times infinities", 40, 613, OP_SPARSE, 0, 131, OP_INFINITE),
    WITH_ZEROS_UPDATE("columns of zeros", 40, 613, OP_BANDED, 29, 131, OP_NORMAL),
    WITH_ZEROS_UPDATE("columns of zeros, many columns", 33, 83, OP_BANDED, 29, 1100, OP_NORMAL),
    WITH_ZEROS_UPDATE("columns of zeros times infinities", 40, 150, OP_BANDED, 29, 150, OP_INFINITE),
    WITH_ZEROS_UPDATE("columns of zeros, whole vectors", 40, 613, OP_BANDED, 29, 256, OP_NORMAL),
    WITH_ZEROS_UPDATE("zeros here and there", 33, 613, OP_SPARSE, 0, 131, OP_NORMAL),
    WITH_ZEROS_UPDATE("zeros here and there, few samples", 3, 150, OP_SPARSE, 0, 140, OP_NORMAL),
    WITH_ZEROS_UPDATE("zeros here and there, times infinities", 40, 150, OP_SPARSE, 0, 150, OP_INFINITE),
    MATMUL("one row", 1, OP_DIMS(BATCH, 200), OP_DIMS(200, 130), false, false),
    MATMUL("gradient of the weights", 33, OP_DIMS(BATCH, 150), OP_DIMS(BATCH, 70), true, false),
    MATMUL("gradient of the input", 33, OP_DIMS(BATCH, 90), OP_DIMS(75, 90), false, true),
    {.op = &tdi_op_matmul,
     .name = "with bias and tanh",
     .attrs = ATTRS(tdi_matmul_attrs, .activation = TD_TANH),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 4, 9)}, {.shape = OP_DIMS(9, 75)}, {.shape = OP_DIMS(75)}},
     MANY(7)},
    MATMUL("deep, many rows", 200, OP_DIMS(BATCH, 600), OP_DIMS(600, 50), false, false),
    MATMUL("deep, second transposed", 20, OP_DIMS(BATCH, 600), OP_DIMS(53, 600), false, true),
    {.op = &tdi_op_matmul,
     .name = "slope of relu, many rows",
     .attrs = ATTRS(tdi_matmul_attrs, .transpose_b = true, .slope = TD_RELU),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 40), .constant = true},
              {.shape = OP_DIMS(115, 40), .constant = true},
              {.shape = OP_DIMS(BATCH, 115), .constant = true}},
     MANY(150)},
    MATMUL("large", 300, OP_DIMS(BATCH, 512), OP_DIMS(512, 450), false, false),

    {.op = &tdi_op_conv2d,
     .name = "3x3 by Winograd, bias and tanh, tiles cut off",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1,
                    .padding = TD_SAME, .activation = TD_TANH),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 9, 6, 48)}, {.shape = OP_DIMS(3, 3, 48, 80)}, {.shape = OP_DIMS(80)}},
     MANY(3)},
    CONV(conv2d, "3x3 by Winograd, several blocks", 5, OP_DIMS(BATCH, 22, 18, 64), OP_DIMS(3, 3, 64, 32), {0}, 1,
         TD_VALID),
    CONV(conv2d, "3x3 by Winograd, zeros around", 3, OP_DIMS(BATCH, 9, 6, 48), OP_DIMS(3, 3, 48, 32), {0}, 1, AROUND),
    CONV(conv2d_grad_input, "3x3 by Winograd, zeros around", 3, OP_DIMS(BATCH, 10, 5, 32), OP_DIMS(3, 3, 48, 32),
         OP_DIMS(BATCH, 9, 6, 48), 1, AROUND),
    CONV(conv2d_grad_filter, "3x3 by Winograd, zeros around", 3, OP_DIMS(BATCH, 9, 6, 48), OP_DIMS(BATCH, 10, 5, 32),
         OP_DIMS(3, 3, 48, 32), 1, AROUND),
    CONV(conv2d, "3x3 by Winograd, a filter in pieces, several blocks", 6, OP_DIMS(BATCH, 17, 17, 144),
         OP_DIMS(3, 3, 144, 112), {0}, 1, TD_SAME),
    CONV(conv2d_grad_input, "3x3 by Winograd, a filter in pieces", 3, OP_DIMS(BATCH, 5, 6, 144),
         OP_DIMS(3, 3, 112, 144), OP_DIMS(BATCH, 5, 6, 112), 1, TD_SAME),
    CONV(conv2d_grad_filter, "3x3 by Winograd, a filter in pieces", 3, OP_DIMS(BATCH, 5, 6, 144),
         OP_DIMS(BATCH, 5, 6, 112), OP_DIMS(3, 3, 144, 112), 1, TD_SAME),
    CONV(conv2d_grad_input, "3x3 by Winograd", 3, OP_DIMS(BATCH, 9, 6, 48), OP_DIMS(3, 3, 112, 48),
         OP_DIMS(BATCH, 9, 6, 112), 1, TD_SAME),
    CONV(conv2d_grad_input, "3x3 by Winograd, several blocks", 4, OP_DIMS(BATCH, 20, 16, 64), OP_DIMS(3, 3, 32, 64),
         OP_DIMS(BATCH, 22, 18, 32), 1, TD_VALID),
    CONV(conv2d_grad_input, "3x3 by Winograd, fewer tiles of dy", 5, OP_DIMS(BATCH, 4, 3, 64), OP_DIMS(3, 3, 64, 64),
         OP_DIMS(BATCH, 6, 5, 64), 1, TD_VALID),
    CONV(conv2d_grad_input, "3x3 by Winograd, fewer tiles of dy, zeros around", 3, OP_DIMS(BATCH, 8, 8, 16),
         OP_DIMS(3, 3, 48, 16), OP_DIMS(BATCH, 7, 9, 48), 1, AROUND),
    CONV(conv2d_grad_input, "3x3 by Winograd, fewer tiles of dy, more zeros around", 3, OP_DIMS(BATCH, 4, 8, 16),
         OP_DIMS(3, 3, 16, 16), OP_DIMS(BATCH, 2, 4, 16), 1, FAR_AROUND),
    /* Numbers of tiles that are a multiple neither of six rows nor of four. */
    CONV(conv2d, "3x3 by Winograd, seven tiles", 7, OP_DIMS(BATCH, 3, 3, 128), OP_DIMS(3, 3, 128, 128), {0}, 1,
         TD_SAME),
    CONV(conv2d, "3x3 by Winograd, thirteen tiles", 13, OP_DIMS(BATCH, 4, 4, 64), OP_DIMS(3, 3, 64, 64), {0}, 1,
         TD_SAME),
    CONV(conv2d, "3x3 by Winograd, fifteen tiles", 15, OP_DIMS(BATCH, 4, 4, 128), OP_DIMS(3, 3, 128, 64), {0}, 1,
         TD_SAME),
    CONV(conv2d_grad_input, "3x3 by Winograd, seven tiles", 7, OP_DIMS(BATCH, 3, 3, 128), OP_DIMS(3, 3, 128, 128),
         OP_DIMS(BATCH, 3, 3, 128), 1, TD_SAME),
    CONV(conv2d_grad_filter, "3x3 by Winograd", 3, OP_DIMS(BATCH, 9, 6, 48), OP_DIMS(BATCH, 9, 6, 80),
         OP_DIMS(3, 3, 48, 80), 1, TD_SAME),
    CONV(conv2d_grad_filter, "3x3 by Winograd, several blocks", 4, OP_DIMS(BATCH, 22, 18, 64),
         OP_DIMS(BATCH, 20, 16, 32), OP_DIMS(3, 3, 64, 32), 1, TD_VALID),
    {.op = &tdi_op_conv2d,
     .name = "5x5 by rows, bias and tanh",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1,
                    .padding = TD_SAME, .activation = TD_TANH),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 28, 28, 1)}, {.shape = OP_DIMS(5, 5, 1, 6)}, {.shape = OP_DIMS(6)}},
     MANY(16)},
    CONV(conv2d, "5x5 by rows, a tile cut off", 16, OP_DIMS(BATCH, 14, 14, 6), OP_DIMS(5, 5, 6, 16), {0}, 1, TD_VALID),
    CONV(conv2d, "5x5 by rows, several bands", 27, OP_DIMS(BATCH, 30, 30, 4), OP_DIMS(5, 5, 4, 9), {0}, 1, TD_SAME),
    CONV(conv2d, "3x3 by rows, zeros around", 16, OP_DIMS(BATCH, 9, 11, 5), OP_DIMS(3, 3, 5, 7), {0}, 1, AROUND),
    CONV(conv2d_grad_input, "5x5 by rows", 16, OP_DIMS(BATCH, 10, 10, 16), OP_DIMS(5, 5, 6, 16),
         OP_DIMS(BATCH, 14, 14, 6), 1, TD_VALID),
    CONV(conv2d_grad_input, "5x5 by rows, several bands", 27, OP_DIMS(BATCH, 30, 30, 9), OP_DIMS(5, 5, 4, 9),
         OP_DIMS(BATCH, 30, 30, 4), 1, TD_SAME),
    CONV(conv2d_grad_input, "3x3 by rows, zeros around", 16, OP_DIMS(BATCH, 10, 10, 7), OP_DIMS(3, 3, 5, 7),
         OP_DIMS(BATCH, 9, 11, 5), 1, AROUND),
    CONV(conv2d_grad_filter, "5x5 by rows, one channel", 16, OP_DIMS(BATCH, 28, 28, 1), OP_DIMS(BATCH, 28, 28, 6),
         OP_DIMS(5, 5, 1, 6), 1, TD_SAME),
    CONV(conv2d_grad_filter, "5x5 by rows, a tile cut off", 16, OP_DIMS(BATCH, 14, 14, 6), OP_DIMS(BATCH, 10, 10, 16),
         OP_DIMS(5, 5, 6, 16), 1, TD_VALID),
    CONV(conv2d_grad_filter, "5x5 by rows, several bands", 27, OP_DIMS(BATCH, 30, 30, 4), OP_DIMS(BATCH, 30, 30, 9),
         OP_DIMS(5, 5, 4, 9), 1, TD_SAME),
    CONV(conv2d_grad_filter, "3x3 by rows, zeros around", 16, OP_DIMS(BATCH, 9, 11, 5), OP_DIMS(BATCH, 10, 10, 7),
         OP_DIMS(3, 3, 5, 7), 1, AROUND),
    CONV(conv2d, "2x2, more zeros around", 16, OP_DIMS(BATCH, 3, 4, 2), OP_DIMS(2, 2, 2, 4), {0}, 1, FAR_AROUND),
    CONV(conv2d, "1x1, more zeros around, strides", 16, OP_DIMS(BATCH, 1, 1, 2), OP_DIMS(1, 1, 2, 4), {0}, 4,
         FAR_AROUND),
    CONV(conv2d, "3x3, more zeros around", 16, OP_DIMS(BATCH, 4, 6, 4), OP_DIMS(3, 3, 4, 6), {0}, 1, FAR_AROUND),
    CONV(conv2d_grad_input, "2x2, more zeros around", 16, OP_DIMS(BATCH, 6, 9, 4), OP_DIMS(2, 2, 2, 4),
         OP_DIMS(BATCH, 3, 4, 2), 1, FAR_AROUND),
    CONV(conv2d_grad_input, "1x1, more zeros around", 16, OP_DIMS(BATCH, 5, 7, 4), OP_DIMS(1, 1, 2, 4),
         OP_DIMS(BATCH, 1, 1, 2), 1, FAR_AROUND),
    CONV(conv2d_grad_input, "3x3, more zeros around", 16, OP_DIMS(BATCH, 6, 10, 6), OP_DIMS(3, 3, 4, 6),
         OP_DIMS(BATCH, 4, 6, 4), 1, FAR_AROUND),
    CONV(conv2d_grad_filter, "2x2, more zeros around", 16, OP_DIMS(BATCH, 3, 4, 2), OP_DIMS(BATCH, 6, 9, 4),
         OP_DIMS(2, 2, 2, 4), 1, FAR_AROUND),
    CONV(conv2d_grad_filter, "1x1, more zeros around, strides", 16, OP_DIMS(BATCH, 1, 1, 2), OP_DIMS(BATCH, 2, 2, 4),
         OP_DIMS(1, 1, 2, 4), 4, FAR_AROUND),
    CONV(conv2d_grad_filter, "3x3, more zeros around", 16, OP_DIMS(BATCH, 4, 6, 4), OP_DIMS(BATCH, 6, 10, 6),
         OP_DIMS(3, 3, 4, 6), 1, FAR_AROUND),
    FRAMED(conv2d, "5x5", 16, OP_DIMS(BATCH, 9, 13, 1), 3, OP_DIMS(5, 5, 1, 6), OP_NORMAL, {0}, 1, 1, TD_SAME),
    FRAMED(conv2d, "strides", 27, OP_DIMS(BATCH, 8, 12, 3), 2, OP_DIMS(3, 4, 3, 5), OP_NORMAL, {0}, 2, 2, AROUND),
    FRAMED(conv2d, "nothing inside", 16, OP_DIMS(BATCH, 4, 7, 2), 4, OP_DIMS(3, 3, 2, 4), OP_NORMAL, {0}, 1, 1,
           TD_SAME),
    FRAMED(conv2d, "infinite filter", 16, OP_DIMS(BATCH, 7, 9, 2), 2, OP_DIMS(4, 4, 2, 4), OP_INFINITE, {0}, 1, 1,
           TD_VALID),
    {.op = &tdi_op_conv2d,
     .name = "framed, bias and tanh",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 2, .stride_w = 2, .dilation_h = 1, .dilation_w = 1, .groups = 1,
                    .padding = TD_SAME, .activation = TD_TANH),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 11, 17, 2), .fill = OP_FRAMED, .limit = 4},
              {.shape = OP_DIMS(3, 4, 2, 7)},
              {.shape = OP_DIMS(7)}},
     MANY(27)},
    FRAMED(conv2d_grad_filter, "5x5", 16, OP_DIMS(BATCH, 9, 13, 1), 3, OP_DIMS(BATCH, 9, 13, 6), OP_NORMAL,
           OP_DIMS(5, 5, 1, 6), 1, 1, TD_SAME),
    FRAMED(conv2d_grad_filter, "4x4, two blocks", 27, OP_DIMS(BATCH, 9, 13, 3), 2, OP_DIMS(BATCH, 9, 11, 11), OP_NORMAL,
           OP_DIMS(4, 4, 3, 11), 1, 1, AROUND),
    FRAMED(conv2d_grad_filter, "strides", 16, OP_DIMS(BATCH, 8, 12, 3), 2, OP_DIMS(BATCH, 5, 5, 5), OP_NORMAL,
           OP_DIMS(3, 4, 3, 5), 2, 2, AROUND),
    FRAMED(conv2d_grad_filter, "strides downwards", 16, OP_DIMS(BATCH, 8, 12, 3), 2, OP_DIMS(BATCH, 5, 10, 5),
           OP_NORMAL, OP_DIMS(3, 4, 3, 5), 2, 1, AROUND),
    FRAMED(conv2d_grad_input, "all of it of zeros to the right", 16, OP_DIMS(BATCH, 4, 14, 3), 6, OP_DIMS(1, 1, 2, 3),
           OP_NORMAL, OP_DIMS(BATCH, 4, 2, 2), 1, 1, TD_VALID, .sides = {.right = 12}),
    FRAMED(conv2d_grad_input, "5x4", 16, OP_DIMS(BATCH, 7, 9, 5), 2, OP_DIMS(5, 4, 3, 5), OP_NORMAL,
           OP_DIMS(BATCH, 11, 12, 3), 1, 1, TD_VALID),
    FRAMED(conv2d_grad_filter, "nothing inside", 16, OP_DIMS(BATCH, 4, 7, 2), 4, OP_DIMS(BATCH, 4, 7, 4), OP_NORMAL,
           OP_DIMS(3, 3, 2, 4), 1, 1, TD_SAME),
    FRAMED(conv2d_grad_filter, "infinite gradient", 16, OP_DIMS(BATCH, 7, 9, 2), 2, OP_DIMS(BATCH, 4, 6, 14),
           OP_INFINITE, OP_DIMS(4, 4, 2, 14), 1, 1, TD_VALID),
    {.op = &tdi_op_conv2d,
     .name = "3x3 by broadcast, bias, tanh, dilation and strides",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 1, .stride_w = 2, .dilation_h = 3, .dilation_w = 2, .groups = 1,
                    .padding = TD_SAME, .activation = TD_TANH),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 13, 37, 5)}, {.shape = OP_DIMS(3, 3, 5, 23)}, {.shape = OP_DIMS(23)}},
     MANY(3)},
    {.op = &tdi_op_conv2d_grad_input,
     .name = "3x3 by broadcast, groups, dilation and strides",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 2, .stride_w = 3, .dilation_h = 2, .dilation_w = 1, .groups = 2,
                    .padding = TD_SAME, .shape = OP_DIMS(BATCH, 13, 10, 34)),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 7, 4, 42)}, {.shape = OP_DIMS(3, 3, 17, 42)}},
     MANY(3)},
    {.op = &tdi_op_conv2d_grad_filter,
     .name = "3x3 by broadcast, groups and dilation",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 1, .stride_w = 1, .dilation_h = 2, .dilation_w = 3, .groups = 2,
                    .padding = TD_SAME, .shape = OP_DIMS(3, 3, 17, 70)),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 9, 10, 34)}, {.shape = OP_DIMS(BATCH, 9, 10, 70)}},
     MANY(3)},
    CONV(conv2d, "7x7 by broadcast, strides", 2, OP_DIMS(BATCH, 29, 61, 3), OP_DIMS(7, 7, 3, 70), {0}, 2, AROUND),
    CONV(conv2d, "5x5 by broadcast, an image", 1, OP_DIMS(BATCH, 28, 28, 1), OP_DIMS(5, 5, 1, 6), {0}, 1, TD_SAME),
    CONV(conv2d_grad_input, "7x7 by broadcast, strides", 2, OP_DIMS(BATCH, 12, 28, 70), OP_DIMS(7, 7, 3, 70),
         OP_DIMS(BATCH, 29, 61, 3), 2, TD_VALID),
    CONV(conv2d_grad_input, "1x1 by broadcast, zeros around", 2, OP_DIMS(BATCH, 10, 13, 20), OP_DIMS(1, 1, 37, 20),
         OP_DIMS(BATCH, 7, 12, 37), 1, AROUND),
    CONV(conv2d_grad_filter, "7x7 by broadcast, several bands", 2, OP_DIMS(BATCH, 29, 61, 3),
         OP_DIMS(BATCH, 12, 28, 70), OP_DIMS(7, 7, 3, 70), 2, TD_VALID),

#ifdef TANDEM_ONEDNN
    {.op = &tdi_op_conv2d,
     .name = "3x3 by tiles, bias and tanh",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .groups = 1,
                    .padding = TD_SAME, .activation = TD_TANH),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 9, 6, 32)}, {.shape = OP_DIMS(3, 3, 32, 96)}, {.shape = OP_DIMS(96)}},
     MANY(3)},
    {.op = &tdi_op_conv2d,
     .name = "3x3 by tiles, bias, dilation and strides",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 2, .stride_w = 3, .dilation_h = 3, .dilation_w = 2, .groups = 1,
                    .padding = TD_SAME),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 13, 10, 64)}, {.shape = OP_DIMS(3, 3, 64, 32)}, {.shape = OP_DIMS(32)}},
     MANY(3)},
    {.op = &tdi_op_conv2d_grad_input,
     .name = "3x3 by tiles, dilation",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 1, .stride_w = 1, .dilation_h = 3, .dilation_w = 2, .groups = 1,
                    .padding = TD_SAME, .shape = OP_DIMS(BATCH, 13, 10, 64)),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 13, 10, 32)}, {.shape = OP_DIMS(3, 3, 64, 32)}},
     MANY(3)},
    CONV(conv2d, "3x5 by tiles, zeros around", 3, OP_DIMS(BATCH, 9, 14, 64), OP_DIMS(3, 5, 64, 32), {0}, 1, AROUND),
    CONV(conv2d, "3x3 by tiles, strides", 3, OP_DIMS(BATCH, 12, 9, 32), OP_DIMS(3, 3, 32, 64), {0}, 2, TD_SAME),
    CONV(conv2d, "2x3 by tiles, several chunks", 15, OP_DIMS(BATCH, 28, 21, 32), OP_DIMS(2, 3, 32, 32), {0}, 1,
         TD_VALID),
    CONV(conv2d, "1x1 by tiles, several chunks, past the caches", 7, OP_DIMS(BATCH, 9, 9, 32), OP_DIMS(1, 1, 32, 1056),
         {0}, 1, TD_SAME),
    CONV(conv2d, "1x1 by tiles, a filter in parts", 2, OP_DIMS(BATCH, 7, 7, 96), OP_DIMS(1, 1, 96, 576), {0}, 1,
         TD_SAME),
    CONV(conv2d, "1x1 by tiles, strides", 3, OP_DIMS(BATCH, 5, 8, 32), OP_DIMS(1, 1, 32, 64), {0}, 2, TD_VALID),
    CONV(conv2d, "1x1 by tiles, zeros around", 3, OP_DIMS(BATCH, 5, 8, 32), OP_DIMS(1, 1, 32, 32), {0}, 1, AROUND),
    CONV(conv2d_grad_input, "3x3 by tiles", 3, OP_DIMS(BATCH, 9, 6, 96), OP_DIMS(3, 3, 32, 96),
         OP_DIMS(BATCH, 9, 6, 32), 1, TD_SAME),
    CONV(conv2d_grad_input, "3x5 by tiles, zeros around", 3, OP_DIMS(BATCH, 10, 11, 32), OP_DIMS(3, 5, 64, 32),
         OP_DIMS(BATCH, 9, 14, 64), 1, AROUND),
    CONV(conv2d_grad_input, "2x3 by tiles, several chunks", 15, OP_DIMS(BATCH, 27, 19, 32), OP_DIMS(2, 3, 32, 32),
         OP_DIMS(BATCH, 28, 21, 32), 1, TD_VALID),
    CONV(conv2d_grad_input, "1x1 by tiles, several chunks, past the caches", 7, OP_DIMS(BATCH, 9, 9, 32),
         OP_DIMS(1, 1, 1056, 32), OP_DIMS(BATCH, 9, 9, 1056), 1, TD_SAME),
    CONV(conv2d_grad_input, "1x1 by tiles, a filter in parts", 2, OP_DIMS(BATCH, 7, 7, 96), OP_DIMS(1, 1, 576, 96),
         OP_DIMS(BATCH, 7, 7, 576), 1, TD_SAME),
    CONV(conv2d_grad_input, "1x1 by tiles, strides", 3, OP_DIMS(BATCH, 3, 4, 64), OP_DIMS(1, 1, 64, 64),
         OP_DIMS(BATCH, 5, 8, 64), 2, TD_VALID),
    CONV(conv2d_grad_input, "1x1 by tiles, zeros around", 3, OP_DIMS(BATCH, 8, 9, 32), OP_DIMS(1, 1, 32, 32),
         OP_DIMS(BATCH, 5, 8, 32), 1, AROUND),
    CONV(conv2d_grad_input, "1x1, an odd number of filters", 3, OP_DIMS(BATCH, 5, 6, 57), OP_DIMS(1, 1, 33, 57),
         OP_DIMS(BATCH, 5, 6, 33), 1, TD_VALID),
    CONV(conv2d_grad_input, "1x1, an odd number of filters, strides", 3, OP_DIMS(BATCH, 5, 6, 57),
         OP_DIMS(1, 1, 33, 57), OP_DIMS(BATCH, 9, 12, 33), 2, TD_VALID),
    CONV(conv2d_grad_filter, "places that see nothing", 1, OP_DIMS(BATCH, 13, 1, 32), OP_DIMS(BATCH, 7, 1, 128),
         OP_DIMS(3, 3, 32, 128), 2, TD_SAME),
    CONV(conv2d_grad_filter, "3x3 by tiles", 3, OP_DIMS(BATCH, 9, 6, 32), OP_DIMS(BATCH, 9, 6, 96),
         OP_DIMS(3, 3, 32, 96), 1, TD_SAME),
    CONV(conv2d_grad_filter, "3x5 by tiles, zeros around", 3, OP_DIMS(BATCH, 9, 6, 64), OP_DIMS(BATCH, 10, 3, 32),
         OP_DIMS(3, 5, 64, 32), 1, AROUND),
    CONV(conv2d_grad_filter, "2x3 by tiles, several chunks", 15, OP_DIMS(BATCH, 28, 21, 32), OP_DIMS(BATCH, 27, 19, 32),
         OP_DIMS(2, 3, 32, 32), 1, TD_VALID),
    CONV(conv2d_grad_filter, "1x1 by tiles, strides", 3, OP_DIMS(BATCH, 5, 8, 32), OP_DIMS(BATCH, 3, 4, 64),
         OP_DIMS(1, 1, 32, 64), 2, TD_VALID),
    CONV(conv2d_grad_filter, "1x1 by tiles, several chunks", 7, OP_DIMS(BATCH, 9, 9, 416), OP_DIMS(BATCH, 9, 9, 608),
         OP_DIMS(1, 1, 416, 608), 1, TD_SAME),
    CONV(conv2d_grad_filter, "7x7 of few channels by tiles, strides, several chunks", 5, OP_DIMS(BATCH, 61, 59, 3),
         OP_DIMS(BATCH, 28, 27, 64), OP_DIMS(7, 7, 3, 64), 2, TD_VALID),
    CONV(conv2d_grad_filter, "3x5 of one channel by tiles, zeros around", 3, OP_DIMS(BATCH, 9, 6, 1),
         OP_DIMS(BATCH, 10, 3, 32), OP_DIMS(3, 5, 1, 32), 1, AROUND),
    CONV(conv2d_grad_filter, "4x5 of few channels by tiles, more than x", 9, OP_DIMS(BATCH, 3, 2, 6),
         OP_DIMS(BATCH, 3, 2, 96), OP_DIMS(4, 5, 6, 96), 1, TD_SAME),
    CONV(conv2d_grad_filter, "16x2 of 16 channels by tiles, whole registers", 3, OP_DIMS(BATCH, 18, 9, 16),
         OP_DIMS(BATCH, 18, 9, 32), OP_DIMS(16, 2, 16, 32), 1, TD_SAME),
    {.op = &tdi_op_conv2d_grad_filter,
     .name = "3x3 of few channels by tiles, rows apart",
     .attrs = ATTRS(tdi_conv2d_attrs, .stride_h = 1, .stride_w = 2, .dilation_h = 3, .dilation_w = 1, .groups = 1,
                    .padding = TD_SAME, .shape = OP_DIMS(3, 3, 5, 32)),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 10, 12, 5)}, {.shape = OP_DIMS(BATCH, 10, 6, 32)}},
     MANY(3)},
    CONV(conv2d, "1x3, strides beyond the filter", 3, OP_DIMS(BATCH, 25, 20, 64), OP_DIMS(1, 3, 64, 64), {0}, 2,
         TD_VALID),
    CONV(conv2d, "2x2, strides beyond the filter", 3, OP_DIMS(BATCH, 26, 20, 64), OP_DIMS(2, 2, 64, 64), {0}, 3,
         TD_VALID),
    CONV(conv2d_grad_input, "1x3, strides beyond the filter", 3, OP_DIMS(BATCH, 13, 9, 64), OP_DIMS(1, 3, 64, 64),
         OP_DIMS(BATCH, 25, 20, 64), 2, TD_VALID),
    CONV(conv2d_grad_filter, "1x3, strides beyond the filter", 3, OP_DIMS(BATCH, 25, 20, 64), OP_DIMS(BATCH, 13, 9, 64),
         OP_DIMS(1, 3, 64, 64), 2, TD_VALID),
    CONV(conv2d_grad_filter, "1x1 by tiles, zeros around", 3, OP_DIMS(BATCH, 5, 8, 32), OP_DIMS(BATCH, 8, 9, 32),
         OP_DIMS(1, 1, 32, 32), 1, AROUND),
    CONV(conv2d, "1x1, zeros around", 3, OP_DIMS(BATCH, 5, 4, 40), OP_DIMS(1, 1, 40, 33), {0}, 1, AROUND),
    CONV(conv2d, "LeNet, first", 5, OP_DIMS(BATCH, 28, 28, 1), OP_DIMS(5, 5, 1, 6), {0}, 1, TD_SAME),
    CONV(conv2d, "LeNet, second", 5, OP_DIMS(BATCH, 14, 14, 6), OP_DIMS(5, 5, 6, 16), {0}, 1, TD_VALID),
    CONV(conv2d, "full lanes", 16, OP_DIMS(BATCH, 9, 8, 3), OP_DIMS(3, 5, 3, 13), {0}, 1, TD_SAME),
    CONV(conv2d, "full lanes twice and strides", 32, OP_DIMS(BATCH, 10, 9, 5), OP_DIMS(3, 3, 5, 16), {0}, 2, TD_SAME),
    CONV(conv2d, "lanes left empty, a line of y", 11, OP_DIMS(BATCH, 6, 4, 1), OP_DIMS(3, 3, 1, 7), {0}, 1, TD_VALID),
    CONV(conv2d, "strides that leave cells", 16, OP_DIMS(BATCH, 8, 8, 2), OP_DIMS(3, 3, 2, 4), {0}, 2, TD_VALID),
    CONV(conv2d_grad_input, "full lanes", 16, OP_DIMS(BATCH, 9, 8, 13), OP_DIMS(3, 5, 3, 13), OP_DIMS(BATCH, 9, 8, 3),
         1, TD_SAME),
    CONV(conv2d_grad_input, "lanes left empty", 27, OP_DIMS(BATCH, 4, 2, 7), OP_DIMS(3, 4, 2, 7),
         OP_DIMS(BATCH, 6, 5, 2), 1, TD_VALID),
    CONV(conv2d_grad_filter, "full lanes", 16, OP_DIMS(BATCH, 9, 8, 3), OP_DIMS(BATCH, 9, 8, 13), OP_DIMS(3, 5, 3, 13),
         1, TD_SAME),
    CONV(conv2d_grad_filter, "lanes left empty and strides", 30, OP_DIMS(BATCH, 10, 9, 5), OP_DIMS(BATCH, 5, 5, 16),
         OP_DIMS(3, 3, 5, 16), 2, TD_SAME),
    CONV(conv2d_grad_filter, "filters in lanes", 6, OP_DIMS(BATCH, 9, 8, 7), OP_DIMS(BATCH, 7, 6, 16),
         OP_DIMS(3, 3, 7, 16), 1, TD_VALID),
    CONV(conv2d_grad_filter, "filters in lanes, few taps", 3, OP_DIMS(BATCH, 9, 8, 1), OP_DIMS(BATCH, 4, 3, 16),
         OP_DIMS(3, 4, 1, 16), 2, TD_VALID),
    CONV(conv2d_grad_filter, "filters in lanes, two taps", 3, OP_DIMS(BATCH, 5, 6, 1), OP_DIMS(BATCH, 3, 5, 16),
         OP_DIMS(3, 2, 1, 16), 1, TD_VALID),
    CONV(conv2d, "1x1", 3, OP_DIMS(BATCH, 5, 4, 40), OP_DIMS(1, 1, 40, 33), {0}, 1, TD_SAME),
    CONV(conv2d, "1x1, strides", 3, OP_DIMS(BATCH, 5, 4, 17), OP_DIMS(1, 1, 17, 33), {0}, 2, TD_SAME),
    CONV(conv2d, "few pixels, copied in parts", 6, OP_DIMS(BATCH, 8, 7, 520), OP_DIMS(3, 3, 520, 16), {0}, 1, TD_SAME),
    CONV(conv2d_grad_input, "1x1", 3, OP_DIMS(BATCH, 5, 4, 40), OP_DIMS(1, 1, 24, 40), OP_DIMS(BATCH, 5, 4, 24), 1,
         TD_VALID),
    CONV(conv2d_grad_input, "1x1, strides", 3, OP_DIMS(BATCH, 3, 2, 40), OP_DIMS(1, 1, 24, 40),
         OP_DIMS(BATCH, 5, 4, 24), 2, TD_SAME),
    CONV(conv2d_grad_input, "few pixels, copied in parts", 6, OP_DIMS(BATCH, 8, 7, 16), OP_DIMS(3, 3, 520, 16),
         OP_DIMS(BATCH, 8, 7, 520), 1, TD_SAME),
    CONV(conv2d_grad_filter, "1x1", 3, OP_DIMS(BATCH, 5, 4, 24), OP_DIMS(BATCH, 5, 4, 40), OP_DIMS(1, 1, 24, 40), 1,
         TD_VALID),
    CONV(conv2d_grad_filter, "1x1, strides", 3, OP_DIMS(BATCH, 5, 4, 24), OP_DIMS(BATCH, 3, 2, 40),
         OP_DIMS(1, 1, 24, 40), 2, TD_SAME),
    CONV(conv2d_grad_filter, "few pixels, copied in parts", 6, OP_DIMS(BATCH, 8, 7, 520), OP_DIMS(BATCH, 6, 5, 16),
         OP_DIMS(3, 3, 520, 16), 1, TD_VALID),
    CONV(conv2d, "images", 4, OP_DIMS(BATCH, 16, 16, 3), OP_DIMS(3, 3, 3, 32), {0}, 1, TD_VALID),
    CONV(conv2d, "strides", 4, OP_DIMS(BATCH, 9, 9, 32), OP_DIMS(3, 3, 32, 64), {0}, 2, TD_SAME),
    CONV(conv2d_grad_input, "LeNet, second", 5, OP_DIMS(BATCH, 10, 10, 16), OP_DIMS(5, 5, 6, 16),
         OP_DIMS(BATCH, 14, 14, 6), 1, TD_VALID),
    CONV(conv2d_grad_input, "strides", 4, OP_DIMS(BATCH, 5, 5, 64), OP_DIMS(3, 3, 32, 64), OP_DIMS(BATCH, 9, 9, 32), 2,
         TD_SAME),
    CONV(conv2d_grad_filter, "LeNet, first", 5, OP_DIMS(BATCH, 28, 28, 1), OP_DIMS(BATCH, 28, 28, 6),
         OP_DIMS(5, 5, 1, 6), 1, TD_SAME),
    CONV(conv2d_grad_filter, "LeNet, second", 5, OP_DIMS(BATCH, 14, 14, 6), OP_DIMS(BATCH, 10, 10, 16),
         OP_DIMS(5, 5, 6, 16), 1, TD_VALID),
    CONV(conv2d_grad_filter, "strides", 4, OP_DIMS(BATCH, 9, 9, 32), OP_DIMS(BATCH, 5, 5, 64), OP_DIMS(3, 3, 32, 64), 2,
         TD_SAME),
#endif
    {0}};

#endif
