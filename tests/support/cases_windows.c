/* cases_windows.c - cases of conv2d and pooling. */
#include "support/op_case.h"

#define ATTRS(type, ...) (&(const type){__VA_ARGS__})
#define BATCH            TDI_BATCH

static tdi_node *build_conv2d(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_conv2d(graph, leaf[0], leaf[1], c->attrs);
}

static tdi_node *build_grad_input(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_conv2d_grad_input(graph, leaf[0], leaf[1], c->attrs);
}

static tdi_node *build_grad_filter(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_conv2d_grad_filter(graph, leaf[0], leaf[1], c->attrs);
}

static tdi_node *build_max_pool2d(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_max_pool2d(graph, leaf[0], c->attrs);
}

static tdi_node *build_max_pool2d_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_max_pool2d_grad(graph, leaf[0], tdi_max_pool2d(graph, leaf[0], c->attrs), leaf[1], c->attrs);
}

static tdi_node *build_average_pool2d(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_average_pool2d(graph, leaf[0], c->attrs);
}

static tdi_node *build_average_pool2d_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_average_pool2d_grad(graph, leaf[0], c->attrs);
}

/* The padding comes last because it may bring `.sides` along. */
#define AROUND     TD_VALID, .sides = {2, 1, 0, 1}
#define FAR_AROUND TD_VALID, .sides = {4, 0, 5, 1} /* the filter is smaller than this padding */

#define CONV_ATTRS(sh, sw, dh, dw, groups_, ...)                                                                       \
    .stride_h = sh, .stride_w = sw, .dilation_h = dh, .dilation_w = dw, .groups = groups_, .padding = __VA_ARGS__

#define CONV(name_, x_, filter_, sh, sw, dh, dw, groups_, padding_)                                                    \
    {                                                                                                                  \
        .op = &tdi_op_conv2d, .name = name_,                                                                           \
        .attrs = ATTRS(tdi_conv2d_attrs, CONV_ATTRS(sh, sw, dh, dw, groups_, padding_)), .build = build_conv2d,        \
        .n_leaves = 2, .leaf = {                                                                                       \
            {.shape = x_},                                                                                             \
            {.shape = filter_}                                                                                         \
        }                                                                                                              \
    }

#define CONV_GRAD_INPUT(name_, x_, filter_, y_, sh, sw, dh, dw, groups_, padding_)                                     \
    {                                                                                                                  \
        .op = &tdi_op_conv2d_grad_input, .name = name_,                                                                \
        .attrs = ATTRS(tdi_conv2d_attrs, CONV_ATTRS(sh, sw, dh, dw, groups_, padding_), .shape = x_),                  \
        .build = build_grad_input, .n_leaves = 2, .leaf = {                                                            \
            {.shape = y_},                                                                                             \
            {.shape = filter_}                                                                                         \
        }                                                                                                              \
    }

#define CONV_GRAD_FILTER(name_, x_, filter_, y_, sh, sw, dh, dw, groups_, padding_)                                    \
    {                                                                                                                  \
        .op = &tdi_op_conv2d_grad_filter, .name = name_,                                                               \
        .attrs = ATTRS(tdi_conv2d_attrs, CONV_ATTRS(sh, sw, dh, dw, groups_, padding_), .shape = filter_),             \
        .build = build_grad_filter, .n_leaves = 2, .leaf = {                                                           \
            {.shape = x_},                                                                                             \
            {.shape = y_}                                                                                              \
        }                                                                                                              \
    }

#define CONV_FUSED(name_, x_, filter_, bias_, stride_, padding_, activation_)                                          \
    {                                                                                                                  \
        .op = &tdi_op_conv2d, .name = "fused " name_,                                                                  \
        .attrs = ATTRS(tdi_conv2d_attrs, CONV_ATTRS(stride_, stride_, 1, 1, 1, padding_), .activation = activation_),  \
        .n_leaves = 3, .leaf = {                                                                                       \
            {.shape = x_, .constant = true},                                                                           \
            {.shape = filter_, .constant = true},                                                                      \
            {.shape = bias_, .constant = true}                                                                         \
        }                                                                                                              \
    }

#define POOL_ATTRS(ph, pw, sh, sw, ...)                                                                                \
    .pool_h = ph, .pool_w = pw, .stride_h = sh, .stride_w = sw, .padding = __VA_ARGS__

#define POOL(stem, name_, x_, ph, pw, sh, sw, padding_)                                                                \
    {                                                                                                                  \
        .op = &tdi_op_##stem, .name = name_, .attrs = ATTRS(tdi_pool2d_attrs, POOL_ATTRS(ph, pw, sh, sw, padding_)),   \
        .build = build_##stem, .n_leaves = 1, .leaf = {                                                                \
            {.shape = x_, .fill = OP_SPREAD}                                                                           \
        }                                                                                                              \
    }

#define MAX_GRAD(name_, x_, y_, ph, pw, sh, sw, padding_)                                                              \
    {                                                                                                                  \
        .op = &tdi_op_max_pool2d_grad, .name = name_,                                                                  \
        .attrs = ATTRS(tdi_pool2d_attrs, POOL_ATTRS(ph, pw, sh, sw, padding_)), .build = build_max_pool2d_grad,        \
        .n_leaves = 2, .leaf = {                                                                                       \
            {.shape = x_, .fill = OP_SPREAD},                                                                          \
            {.shape = y_}                                                                                              \
        }                                                                                                              \
    }

/* The result is multiplied by the slope of the activation that gave x. */
#define MAX_SLOPE(name_, activation_, x_, y_, ph, pw, sh, sw, padding_)                                                \
    {                                                                                                                  \
        .op = &tdi_op_max_pool2d_grad, .name = "times the slope, " name_,                                              \
        .attrs = ATTRS(tdi_pool2d_attrs, POOL_ATTRS(ph, pw, sh, sw, padding_), .activation = activation_),             \
        .build = build_max_pool2d_grad, .n_leaves = 2, .leaf = {                                                       \
            {.shape = x_, .constant = true, .fill = OP_SPREAD},                                                        \
            {.shape = y_, .constant = true}                                                                            \
        }                                                                                                              \
    }

#define AVERAGE_GRAD(name_, x_, y_, ph, pw, sh, sw, padding_)                                                          \
    {                                                                                                                  \
        .op = &tdi_op_average_pool2d_grad, .name = name_,                                                              \
        .attrs = ATTRS(tdi_pool2d_attrs, POOL_ATTRS(ph, pw, sh, sw, padding_), .shape = x_),                           \
        .build = build_average_pool2d_grad, .n_leaves = 1, .leaf = {                                                   \
            {.shape = y_}                                                                                              \
        }                                                                                                              \
    }

/* The result is multiplied by the slope of the activation that gave x, or written over x. */
#define AVERAGE_SLOPE(name_, activation_, x_, y_, ph, pw, sh, sw, padding_)                                            \
    {                                                                                                                  \
        .op = &tdi_op_average_pool2d_grad, .name = "times the slope, " name_,                                          \
        .attrs =                                                                                                       \
            ATTRS(tdi_pool2d_attrs, POOL_ATTRS(ph, pw, sh, sw, padding_), .shape = x_, .activation = activation_),     \
        .n_leaves = 2, .leaf = {                                                                                       \
            {.shape = y_, .constant = true},                                                                           \
            {.shape = x_, .constant = true, .fill = OP_SPREAD}                                                         \
        }                                                                                                              \
    }

#define UPSAMPLE(op_, name_, shape_, factor_h_, factor_w_, bilinear_)                                                  \
    {                                                                                                                  \
        .op = &tdi_op_##op_, .name = name_, .attrs = ATTRS(tdi_upsample2d_attrs, factor_h_, factor_w_, bilinear_),     \
        .n_leaves = 1, .leaf = {                                                                                       \
            {.shape = shape_}                                                                                          \
        }                                                                                                              \
    }

const op_case op_cases_windows[] = {
    CONV("3x3 valid", OP_DIMS(BATCH, 5, 6, 2), OP_DIMS(3, 3, 2, 4), 1, 1, 1, 1, 1, TD_VALID),
    CONV("5x5 same, one channel", OP_DIMS(BATCH, 6, 6, 1), OP_DIMS(5, 5, 1, 3), 1, 1, 1, 1, 1, TD_SAME),
    CONV("even kernel, same", OP_DIMS(BATCH, 5, 4, 2), OP_DIMS(2, 4, 2, 3), 1, 1, 1, 1, 1, TD_SAME),
    CONV("same, stride 2, even extent", OP_DIMS(BATCH, 6, 4, 2), OP_DIMS(3, 3, 2, 3), 2, 2, 1, 1, 1, TD_SAME),
    CONV("same, stride 2, odd extent", OP_DIMS(BATCH, 5, 7, 2), OP_DIMS(3, 3, 2, 3), 2, 2, 1, 1, 1, TD_SAME),
    CONV("uneven kernel and strides", OP_DIMS(BATCH, 7, 8, 2), OP_DIMS(3, 2, 2, 3), 2, 3, 1, 1, 1, TD_VALID),
    CONV("dilation", OP_DIMS(BATCH, 7, 8, 2), OP_DIMS(3, 2, 2, 3), 1, 1, 2, 3, 1, TD_VALID),
    CONV("dilation, same", OP_DIMS(BATCH, 5, 6, 2), OP_DIMS(3, 2, 2, 3), 1, 1, 2, 3, 1, TD_SAME),
    CONV("groups", OP_DIMS(BATCH, 4, 5, 4), OP_DIMS(3, 3, 2, 6), 1, 1, 1, 1, 2, TD_SAME),
    CONV("depthwise, stride 2", OP_DIMS(BATCH, 5, 4, 3), OP_DIMS(2, 2, 1, 3), 2, 2, 1, 1, 3, TD_VALID),
    CONV("1x1", OP_DIMS(BATCH, 3, 4, 5), OP_DIMS(1, 1, 5, 6), 1, 1, 1, 1, 1, TD_VALID),
    CONV("1x1, stride 2, same", OP_DIMS(BATCH, 4, 5, 2), OP_DIMS(1, 1, 2, 3), 2, 2, 1, 1, 1, TD_SAME),
    CONV("filter as large as the image", OP_DIMS(BATCH, 4, 3, 2), OP_DIMS(4, 3, 2, 5), 1, 1, 1, 1, 1, TD_VALID),
    CONV("sixteen filters", OP_DIMS(BATCH, 6, 6, 6), OP_DIMS(5, 5, 6, 16), 1, 1, 1, 1, 1, TD_VALID),
    CONV("5x5, rows of ten", OP_DIMS(BATCH, 6, 14, 3), OP_DIMS(5, 5, 3, 5), 1, 1, 1, 1, 1, TD_VALID),
    CONV("3x3 same, rows of eight", OP_DIMS(BATCH, 4, 8, 4), OP_DIMS(3, 3, 4, 6), 1, 1, 1, 1, 1, TD_SAME),
    CONV("3x3, rows of seventeen", OP_DIMS(BATCH, 4, 19, 3), OP_DIMS(3, 3, 3, 6), 1, 1, 1, 1, 1, TD_VALID),
    CONV("zeros around", OP_DIMS(BATCH, 5, 6, 2), OP_DIMS(3, 3, 2, 4), 1, 1, 1, 1, 1, AROUND),
    CONV("zeros around, stride 2", OP_DIMS(BATCH, 6, 5, 3), OP_DIMS(4, 3, 3, 4), 2, 2, 1, 1, 1, AROUND),
    CONV("more zeros around than the filter sees", OP_DIMS(BATCH, 3, 4, 2), OP_DIMS(2, 2, 2, 4), 1, 1, 1, 1, 1,
         FAR_AROUND),
    CONV("more zeros around, 1x1, strides", OP_DIMS(BATCH, 1, 1, 2), OP_DIMS(1, 1, 2, 4), 3, 4, 1, 1, 1, FAR_AROUND),
    CONV("more zeros around, 3x3", OP_DIMS(BATCH, 4, 6, 4), OP_DIMS(3, 3, 4, 6), 1, 1, 1, 1, 1, FAR_AROUND),
    CONV_FUSED("bias", OP_DIMS(BATCH, 5, 5, 2), OP_DIMS(3, 3, 2, 4), OP_DIMS(4), 1, TD_VALID, TD_LINEAR),
    CONV_FUSED("relu", OP_DIMS(BATCH, 6, 5, 3), OP_DIMS(3, 3, 3, 8), OP_DIMS(8), 1, TD_SAME, TD_RELU),
    CONV_FUSED("tanh", OP_DIMS(BATCH, 6, 6, 1), OP_DIMS(5, 5, 1, 6), OP_DIMS(6), 1, TD_SAME, TD_TANH),
    CONV_FUSED("sigmoid, stride 2", OP_DIMS(BATCH, 6, 5, 3), OP_DIMS(3, 3, 3, 8), OP_DIMS(8), 2, TD_SAME, TD_SIGMOID),

    CONV_GRAD_INPUT("valid", OP_DIMS(BATCH, 5, 6, 2), OP_DIMS(3, 3, 2, 4), OP_DIMS(BATCH, 3, 4, 4), 1, 1, 1, 1, 1,
                    TD_VALID),
    CONV_GRAD_INPUT("rows that no window sees", OP_DIMS(BATCH, 6, 6, 2), OP_DIMS(2, 2, 2, 3), OP_DIMS(BATCH, 2, 2, 3),
                    3, 4, 1, 1, 1, TD_VALID),
    CONV_GRAD_INPUT("same, stride 2, groups", OP_DIMS(BATCH, 5, 4, 4), OP_DIMS(3, 3, 2, 6), OP_DIMS(BATCH, 3, 2, 6), 2,
                    2, 1, 1, 2, TD_SAME),
    CONV_GRAD_INPUT("dilation", OP_DIMS(BATCH, 7, 8, 2), OP_DIMS(3, 2, 2, 3), OP_DIMS(BATCH, 3, 5, 3), 1, 1, 2, 3, 1,
                    TD_VALID),
    CONV_GRAD_INPUT("strides and dilation", OP_DIMS(BATCH, 9, 13, 3), OP_DIMS(3, 4, 3, 5), OP_DIMS(BATCH, 2, 2, 5), 2,
                    6, 3, 2, 1, TD_VALID),
    CONV_GRAD_INPUT("strides and dilation, zeros around", OP_DIMS(BATCH, 6, 7, 2), OP_DIMS(2, 3, 2, 3),
                    OP_DIMS(BATCH, 2, 1, 3), 4, 4, 2, 3, 1, AROUND),
    CONV_GRAD_INPUT("zeros around", OP_DIMS(BATCH, 5, 6, 2), OP_DIMS(3, 3, 2, 4), OP_DIMS(BATCH, 6, 5, 4), 1, 1, 1, 1,
                    1, AROUND),
    CONV_GRAD_INPUT("zeros around, stride 2", OP_DIMS(BATCH, 6, 5, 3), OP_DIMS(4, 3, 3, 4), OP_DIMS(BATCH, 3, 2, 4), 2,
                    2, 1, 1, 1, AROUND),
    CONV_GRAD_INPUT("5x5, rows of ten", OP_DIMS(BATCH, 6, 14, 3), OP_DIMS(5, 5, 3, 5), OP_DIMS(BATCH, 2, 10, 5), 1, 1,
                    1, 1, 1, TD_VALID),
    CONV_GRAD_INPUT("3x3 same, rows of eight", OP_DIMS(BATCH, 4, 8, 4), OP_DIMS(3, 3, 4, 6), OP_DIMS(BATCH, 4, 8, 6), 1,
                    1, 1, 1, 1, TD_SAME),
    CONV_GRAD_INPUT("more zeros around than the filter sees", OP_DIMS(BATCH, 3, 4, 2), OP_DIMS(2, 2, 2, 4),
                    OP_DIMS(BATCH, 6, 9, 4), 1, 1, 1, 1, 1, FAR_AROUND),
    CONV_GRAD_INPUT("more zeros around, 3x3", OP_DIMS(BATCH, 4, 6, 4), OP_DIMS(3, 3, 4, 6), OP_DIMS(BATCH, 6, 10, 6), 1,
                    1, 1, 1, 1, FAR_AROUND),
    CONV_GRAD_FILTER("more zeros around than the filter sees", OP_DIMS(BATCH, 3, 4, 2), OP_DIMS(2, 2, 2, 4),
                     OP_DIMS(BATCH, 6, 9, 4), 1, 1, 1, 1, 1, FAR_AROUND),
    CONV_GRAD_FILTER("more zeros around, 1x1, strides", OP_DIMS(BATCH, 1, 1, 2), OP_DIMS(1, 1, 2, 4),
                     OP_DIMS(BATCH, 2, 2, 4), 3, 4, 1, 1, 1, FAR_AROUND),
    CONV_GRAD_FILTER("more zeros around, 3x3", OP_DIMS(BATCH, 4, 6, 4), OP_DIMS(3, 3, 4, 6), OP_DIMS(BATCH, 6, 10, 6),
                     1, 1, 1, 1, 1, FAR_AROUND),
    CONV_GRAD_FILTER("5x5, rows of ten", OP_DIMS(BATCH, 6, 14, 3), OP_DIMS(5, 5, 3, 5), OP_DIMS(BATCH, 2, 10, 5), 1, 1,
                     1, 1, 1, TD_VALID),
    CONV_GRAD_FILTER("3x3 same, rows of four", OP_DIMS(BATCH, 3, 4, 4), OP_DIMS(3, 3, 4, 6), OP_DIMS(BATCH, 3, 4, 6), 1,
                     1, 1, 1, 1, TD_SAME),
    CONV_GRAD_FILTER("3x3 same, rows of eight", OP_DIMS(BATCH, 4, 8, 4), OP_DIMS(3, 3, 4, 6), OP_DIMS(BATCH, 4, 8, 6),
                     1, 1, 1, 1, 1, TD_SAME),
    CONV_GRAD_FILTER("zeros around", OP_DIMS(BATCH, 5, 6, 2), OP_DIMS(3, 3, 2, 4), OP_DIMS(BATCH, 6, 5, 4), 1, 1, 1, 1,
                     1, AROUND),
    CONV_GRAD_FILTER("zeros around, stride 2", OP_DIMS(BATCH, 6, 5, 3), OP_DIMS(4, 3, 3, 4), OP_DIMS(BATCH, 3, 2, 4), 2,
                     2, 1, 1, 1, AROUND),
    CONV_GRAD_FILTER("valid", OP_DIMS(BATCH, 5, 6, 2), OP_DIMS(3, 3, 2, 4), OP_DIMS(BATCH, 3, 4, 4), 1, 1, 1, 1, 1,
                     TD_VALID),
    CONV_GRAD_FILTER("even kernel, same", OP_DIMS(BATCH, 5, 4, 2), OP_DIMS(2, 4, 2, 3), OP_DIMS(BATCH, 5, 4, 3), 1, 1,
                     1, 1, 1, TD_SAME),
    CONV_GRAD_FILTER("same, stride 2, groups", OP_DIMS(BATCH, 5, 4, 4), OP_DIMS(3, 3, 2, 6), OP_DIMS(BATCH, 3, 2, 6), 2,
                     2, 1, 1, 2, TD_SAME),
    CONV_GRAD_FILTER("dilation", OP_DIMS(BATCH, 7, 8, 2), OP_DIMS(3, 2, 2, 3), OP_DIMS(BATCH, 3, 5, 3), 1, 1, 2, 3, 1,
                     TD_VALID),

    POOL(max_pool2d, "2x2", OP_DIMS(BATCH, 4, 6, 3), 2, 2, 2, 2, TD_VALID),
    POOL(max_pool2d, "uneven, a rest left over", OP_DIMS(BATCH, 5, 7, 2), 2, 3, 2, 3, TD_VALID),
    POOL(max_pool2d, "overlapping", OP_DIMS(BATCH, 5, 5, 1), 3, 3, 1, 2, TD_VALID),
    POOL(max_pool2d, "same, odd extents", OP_DIMS(BATCH, 5, 3, 2), 2, 2, 2, 2, TD_SAME),
    POOL(max_pool2d, "same, 3x3 stride 2", OP_DIMS(BATCH, 4, 5, 2), 3, 3, 2, 2, TD_SAME),
    POOL(max_pool2d, "stride larger than the pool", OP_DIMS(BATCH, 7, 5, 2), 1, 2, 3, 3, TD_SAME),
    POOL(max_pool2d, "sixteen channels", OP_DIMS(BATCH, 4, 4, 16), 2, 2, 2, 2, TD_VALID),
    POOL(max_pool2d, "cells around", OP_DIMS(BATCH, 5, 5, 2), 3, 3, 2, 2, AROUND),
    POOL(max_pool2d, "cells around, side by side", OP_DIMS(BATCH, 6, 6, 2), 3, 3, 3, 3, AROUND),
    MAX_GRAD("cells around", OP_DIMS(BATCH, 5, 5, 2), OP_DIMS(BATCH, 3, 2, 2), 3, 3, 2, 2, AROUND),
    MAX_GRAD("2x2", OP_DIMS(BATCH, 4, 6, 3), OP_DIMS(BATCH, 2, 3, 3), 2, 2, 2, 2, TD_VALID),
    MAX_GRAD("overlapping", OP_DIMS(BATCH, 5, 5, 1), OP_DIMS(BATCH, 3, 2, 1), 3, 3, 1, 2, TD_VALID),
    MAX_GRAD("same, odd extents", OP_DIMS(BATCH, 5, 3, 2), OP_DIMS(BATCH, 3, 2, 2), 2, 2, 2, 2, TD_SAME),
    MAX_SLOPE("2x2, rest, few channels", TD_RELU, OP_DIMS(BATCH, 5, 7, 3), OP_DIMS(BATCH, 2, 3, 3), 2, 2, 2, 2,
              TD_VALID),
    MAX_SLOPE("2x2, rest, many channels", TD_TANH, OP_DIMS(BATCH, 5, 7, 19), OP_DIMS(BATCH, 2, 3, 19), 2, 2, 2, 2,
              TD_VALID),
    MAX_SLOPE("one column wide", TD_RELU, OP_DIMS(BATCH, 6, 3, 2), OP_DIMS(BATCH, 2, 3, 2), 3, 1, 3, 1, TD_VALID),
    MAX_SLOPE("3x3 side by side", TD_TANH, OP_DIMS(BATCH, 7, 6, 17), OP_DIMS(BATCH, 2, 2, 17), 3, 3, 3, 3, TD_VALID),
    MAX_SLOPE("overlapping", TD_RELU, OP_DIMS(BATCH, 7, 6, 5), OP_DIMS(BATCH, 3, 2, 5), 5, 3, 1, 2, TD_VALID),
    MAX_SLOPE("cells around", TD_RELU, OP_DIMS(BATCH, 5, 5, 18), OP_DIMS(BATCH, 3, 2, 18), 3, 3, 2, 2, AROUND),
    MAX_SLOPE("gaps between", TD_TANH, OP_DIMS(BATCH, 8, 7, 4), OP_DIMS(BATCH, 3, 4, 4), 2, 1, 3, 2, TD_VALID),
    POOL(average_pool2d, "2x2", OP_DIMS(BATCH, 4, 6, 3), 2, 2, 2, 2, TD_VALID),
    POOL(average_pool2d, "uneven, a rest left over", OP_DIMS(BATCH, 5, 7, 2), 2, 3, 2, 3, TD_VALID),
    POOL(average_pool2d, "overlapping", OP_DIMS(BATCH, 5, 5, 1), 3, 3, 1, 2, TD_VALID),
    POOL(average_pool2d, "same, odd extents", OP_DIMS(BATCH, 5, 3, 2), 2, 2, 2, 2, TD_SAME),
    POOL(average_pool2d, "same, 3x3 stride 2", OP_DIMS(BATCH, 4, 5, 2), 3, 3, 2, 2, TD_SAME),
    POOL(average_pool2d, "sixteen channels", OP_DIMS(BATCH, 4, 4, 16), 2, 2, 2, 2, TD_VALID),
    AVERAGE_GRAD("2x2", OP_DIMS(BATCH, 4, 6, 3), OP_DIMS(BATCH, 2, 3, 3), 2, 2, 2, 2, TD_VALID),
    AVERAGE_GRAD("overlapping", OP_DIMS(BATCH, 5, 5, 1), OP_DIMS(BATCH, 3, 2, 1), 3, 3, 1, 2, TD_VALID),
    AVERAGE_GRAD("same, 3x3 stride 2", OP_DIMS(BATCH, 4, 5, 2), OP_DIMS(BATCH, 2, 3, 2), 3, 3, 2, 2, TD_SAME),
    AVERAGE_GRAD("one window wide, few channels", OP_DIMS(BATCH, 4, 2, 3), OP_DIMS(BATCH, 2, 1, 3), 2, 2, 2, 2,
                 TD_VALID),
    AVERAGE_GRAD("one window wide, ten channels", OP_DIMS(BATCH, 2, 3, 10), OP_DIMS(BATCH, 1, 1, 10), 2, 3, 2, 3,
                 TD_VALID),
    AVERAGE_SLOPE("2x2", TD_TANH, OP_DIMS(BATCH, 4, 6, 3), OP_DIMS(BATCH, 2, 3, 3), 2, 2, 2, 2, TD_VALID),
    AVERAGE_SLOPE("uncovered", TD_RELU, OP_DIMS(BATCH, 5, 5, 20), OP_DIMS(BATCH, 1, 2, 20), 3, 2, 3, 2, TD_VALID),
    AVERAGE_SLOPE("overlapping", TD_SIGMOID, OP_DIMS(BATCH, 5, 5, 1), OP_DIMS(BATCH, 3, 2, 1), 3, 3, 1, 2, TD_VALID),
    AVERAGE_SLOPE("same, 3x3 stride 2", TD_TANH, OP_DIMS(BATCH, 4, 5, 2), OP_DIMS(BATCH, 2, 3, 2), 3, 3, 2, 2, TD_SAME),
    AVERAGE_SLOPE("apart", TD_TANH, OP_DIMS(BATCH, 7, 6, 2), OP_DIMS(BATCH, 3, 2, 2), 2, 2, 2, 4, TD_VALID),

    UPSAMPLE(upsample2d, "nearest, 2x2", OP_DIMS(BATCH, 3, 4, 2), 2, 2, false),
    UPSAMPLE(upsample2d, "nearest, 3x1", OP_DIMS(BATCH, 2, 3, 3), 3, 1, false),
    UPSAMPLE(upsample2d, "bilinear, 2x2", OP_DIMS(BATCH, 3, 4, 2), 2, 2, true),
    UPSAMPLE(upsample2d, "bilinear, 3x4", OP_DIMS(BATCH, 2, 3, 1), 3, 4, true),
    UPSAMPLE(upsample2d, "bilinear, one pixel", OP_DIMS(BATCH, 1, 1, 3), 4, 2, true),
    UPSAMPLE(upsample2d_grad, "nearest, 2x2", OP_DIMS(BATCH, 4, 6, 2), 2, 2, false),
    UPSAMPLE(upsample2d_grad, "nearest, 1x3", OP_DIMS(BATCH, 2, 6, 3), 1, 3, false),
    UPSAMPLE(upsample2d_grad, "bilinear, 2x2", OP_DIMS(BATCH, 6, 4, 2), 2, 2, true),
    UPSAMPLE(upsample2d_grad, "bilinear, 3x4", OP_DIMS(BATCH, 6, 8, 1), 3, 4, true),
    {0}};
