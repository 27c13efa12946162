/* cases_elementwise.c - cases of fill, identity, cast, affine, unary, binary, bias_add, dropout. */
#include "support/op_case.h"

#define ATTRS(type, ...) (&(const type){__VA_ARGS__})
#define BATCH            TDI_BATCH

static tdi_node *build_unary_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    int kind = ((const tdi_unary_attrs *)c->attrs)->kind;
    return tdi_unary_grad(graph, leaf[0], leaf[1], kind);
}

static tdi_node *build_dropout(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_dropout(graph, leaf[0], c->attrs);
}

static tdi_node *build_fill(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)leaf;
    const tdi_fill_attrs *attrs = c->attrs;
    return tdi_fill(graph, attrs->value, &attrs->shape);
}

static tdi_node *build_input(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)graph;
    (void)c;
    return leaf[0];
}

#define UNARY(kind_, fill_, step_)                                                                                     \
    {                                                                                                                  \
        .op = &tdi_op_unary, .name = #kind_, .attrs = ATTRS(tdi_unary_attrs, kind_), .n_leaves = 1, .leaf = {          \
            {.shape = OP_DIMS(BATCH, 9), .fill = fill_, .step = step_}                                                 \
        }                                                                                                              \
    }

#define UNARY_GRAD(kind_)                                                                                              \
    {                                                                                                                  \
        .op = &tdi_op_unary_grad, .name = #kind_ "'s slope", .attrs = ATTRS(tdi_unary_attrs, kind_),                   \
        .build = build_unary_grad, .n_leaves = 2, .leaf = {                                                            \
            {.shape = OP_DIMS(BATCH, 33), .fill = OP_SPREAD},                                                          \
            {.shape = OP_DIMS(BATCH, 33)}                                                                              \
        }                                                                                                              \
    }

#define BINARY(name_, kind_, a_, b_, fill_a, fill_b)                                                                   \
    {                                                                                                                  \
        .op = &tdi_op_binary, .name = name_, .attrs = ATTRS(tdi_binary_attrs, kind_), .n_leaves = 2, .leaf = {         \
            {.shape = a_, .fill = fill_a},                                                                             \
            {.shape = b_, .fill = fill_b}                                                                              \
        }                                                                                                              \
    }

const op_case op_cases_elementwise[] = {
    {.op = &tdi_op_input, .name = "input", .build = build_input, .n_leaves = 1, .leaf = {{.shape = OP_DIMS(BATCH, 4)}}},
    {.op = &tdi_op_parameter,
     .name = "parameter",
     .build = build_input,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(4, 3)}}},
    {.op = &tdi_op_fill,
     .name = "fill per row",
     .attrs = ATTRS(tdi_fill_attrs, 3.0f, OP_DIMS(BATCH, 2)),
     .build = build_fill},
    {.op = &tdi_op_fill, .name = "fill scalar", .attrs = ATTRS(tdi_fill_attrs, -1.5f, {0}), .build = build_fill},
    {.op = &tdi_op_identity, .name = "identity", .n_leaves = 1, .leaf = {{.shape = OP_DIMS(BATCH, 5)}}},
    {.op = &tdi_op_cast,
     .name = "float32 to float64",
     .attrs = ATTRS(tdi_cast_attrs, TD_FLOAT64),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}}},
    {.op = &tdi_op_cast,
     .name = "float64 to float32",
     .attrs = ATTRS(tdi_cast_attrs, TD_FLOAT32),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 5), .dtype = TD_FLOAT64}}},
    {.op = &tdi_op_cast,
     .name = "uint8 to float32",
     .attrs = ATTRS(tdi_cast_attrs, TD_FLOAT32),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 5), .dtype = TD_UINT8, .limit = 256}}},
    {.op = &tdi_op_cast,
     .name = "int64 to int32",
     .attrs = ATTRS(tdi_cast_attrs, TD_INT32),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH), .dtype = TD_INT64, .limit = 1000}}},
    {.op = &tdi_op_cast,
     .name = "float32 to bfloat16",
     .attrs = ATTRS(tdi_cast_attrs, TD_BFLOAT16),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 67), .constant = true}}},
    {.op = &tdi_op_affine,
     .name = "scale and shift",
     .attrs = ATTRS(tdi_affine_attrs, -2.5f, 0.75f),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 3, 2)}}},

    UNARY(TD_LINEAR, OP_SPREAD, 0.3),
    UNARY(TD_RELU, OP_SPREAD, 0.3),
    UNARY(TD_TANH, OP_SPREAD, 0.3),
    UNARY(TD_SIGMOID, OP_SPREAD, 0.3),
    UNARY(TD_LEAKY_RELU, OP_SPREAD, 0.3),
    UNARY(TD_RELU6, OP_SPREAD, 0.7),
    UNARY(TD_ELU, OP_SPREAD, 0.3),
    UNARY(TD_SELU, OP_SPREAD, 0.3),
    UNARY(TD_CELU, OP_SPREAD, 0.3),
    UNARY(TD_GELU, OP_SPREAD, 0.3),
    UNARY(TD_SILU, OP_SPREAD, 0.3),
    UNARY(TD_SOFTPLUS, OP_SPREAD, 0.3),
    UNARY(TD_SOFTSIGN, OP_SPREAD, 0.3),
    UNARY(TD_EXPONENTIAL, OP_SPREAD, 0.1),
    UNARY(TD_HARD_SIGMOID, OP_SPREAD, 0.3),
    UNARY(TD_HARD_SILU, OP_SPREAD, 0.3),
    UNARY(TD_HARD_TANH, OP_SPREAD, 0.3),
    UNARY(TD_MISH, OP_SPREAD, 0.3),
    UNARY(TD_LOG_SIGMOID, OP_SPREAD, 0.3),
    UNARY(TD_TANH_SHRINK, OP_SPREAD, 0.3),
    UNARY(TD_SQUAREPLUS, OP_SPREAD, 0.3),
    UNARY(TDI_UNARY_LOG, OP_POSITIVE, 0),
    UNARY(TDI_UNARY_SQRT, OP_POSITIVE, 0),
    UNARY(TDI_UNARY_RSQRT, OP_POSITIVE, 0),
    UNARY(TDI_UNARY_SQUARE, OP_NORMAL, 0),
    UNARY(TDI_UNARY_NEGATE, OP_NORMAL, 0),
    UNARY(TDI_UNARY_ABS, OP_SPREAD, 0.1),
    UNARY(TDI_UNARY_SIGN, OP_SPREAD, 0.1),
    UNARY(TDI_UNARY_CLIP_PROBABILITY, OP_SPREAD, 0.1),
    {.op = &tdi_op_unary_grad,
     .name = "relu of a sum",
     .attrs = ATTRS(tdi_unary_attrs, TD_RELU),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 5, 7), .fill = OP_SPREAD},
              {.shape = OP_DIMS(BATCH, 5, 7)},
              {.shape = OP_DIMS(BATCH, 5, 7)}}},
    {.op = &tdi_op_unary_grad,
     .name = "tanh from output",
     .attrs = ATTRS(tdi_unary_attrs, TD_TANH),
     .build = build_unary_grad,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 7), .fill = OP_UNIT}, {.shape = OP_DIMS(BATCH, 7)}}},
    UNARY_GRAD(TD_RELU),
    UNARY_GRAD(TD_SIGMOID),
    UNARY_GRAD(TD_LEAKY_RELU),
    UNARY_GRAD(TD_RELU6),
    UNARY_GRAD(TD_ELU),
    UNARY_GRAD(TD_SELU),
    UNARY_GRAD(TD_CELU),
    UNARY_GRAD(TD_GELU),
    UNARY_GRAD(TD_SILU),
    UNARY_GRAD(TD_SOFTPLUS),
    UNARY_GRAD(TD_SOFTSIGN),
    UNARY_GRAD(TD_HARD_SIGMOID),
    UNARY_GRAD(TD_HARD_SILU),
    UNARY_GRAD(TD_HARD_TANH),
    UNARY_GRAD(TD_MISH),
    UNARY_GRAD(TD_LOG_SIGMOID),
    UNARY_GRAD(TD_TANH_SHRINK),
    UNARY_GRAD(TD_SQUAREPLUS),

    BINARY("add", TDI_ADD, OP_DIMS(BATCH, 4), OP_DIMS(BATCH, 4), OP_NORMAL, OP_NORMAL),
    BINARY("subtract a vector", TDI_SUBTRACT, OP_DIMS(BATCH, 2, 4), OP_DIMS(4), OP_NORMAL, OP_NORMAL),
    BINARY("subtract from a vector", TDI_SUBTRACT, OP_DIMS(4), OP_DIMS(BATCH, 2, 4), OP_NORMAL, OP_NORMAL),
    BINARY("multiply both ways", TDI_MULTIPLY, OP_DIMS(BATCH, 1, 4), OP_DIMS(BATCH, 3, 1), OP_NORMAL, OP_NORMAL),
    BINARY("multiply by a kept axis", TDI_MULTIPLY, OP_DIMS(BATCH, 3, 4), OP_DIMS(3, 1), OP_NORMAL, OP_NORMAL),
    BINARY("multiply by one row", TDI_MULTIPLY, OP_DIMS(BATCH, 3), OP_DIMS(1, 3), OP_NORMAL, OP_NORMAL),
    BINARY("multiply by a scalar", TDI_MULTIPLY, OP_DIMS(BATCH, 3), {0}, OP_NORMAL, OP_NORMAL),
    BINARY("divide", TDI_DIVIDE, OP_DIMS(BATCH, 4), OP_DIMS(BATCH, 4), OP_NORMAL, OP_POSITIVE),
    BINARY("divide by a column", TDI_DIVIDE, OP_DIMS(BATCH, 4), OP_DIMS(BATCH, 1), OP_NORMAL, OP_POSITIVE),
    BINARY("maximum", TDI_MAXIMUM, OP_DIMS(BATCH, 4), OP_DIMS(BATCH, 4), OP_SPREAD, OP_UNIT),
    BINARY("minimum of weights", TDI_MINIMUM, OP_DIMS(2, 4), OP_DIMS(4), OP_SPREAD, OP_ZERO),

    {.op = &tdi_op_bias_add,
     .name = "dense",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}, {.shape = OP_DIMS(5)}}},
    {.op = &tdi_op_bias_add,
     .name = "feature map",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3, 4)}, {.shape = OP_DIMS(4)}}},
    {.op = &tdi_op_bias_add,
     .name = "one channel",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 3, 1)}, {.shape = OP_DIMS(1)}}},

    {.op = &tdi_op_dropout,
     .name = "dropout",
     .attrs = ATTRS(tdi_dropout_attrs, .rate = 0.4f, .stream = 3),
     .build = build_dropout,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 7)}}},
    {.op = &tdi_op_dropout,
     .name = "dropout in uneven parts",
     .attrs = ATTRS(tdi_dropout_attrs, .rate = 0.25f, .stream = 1),
     .build = build_dropout,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 3, 3)}},
     .shards = 3,
     .rows = {2, 0, 3}},
    {0}};
