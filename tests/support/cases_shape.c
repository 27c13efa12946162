/* cases_shape.c - cases of reduce, broadcast, reshape, concat, slice, pad, gather, scatter_add. */
#include "support/op_case.h"

#define ATTRS(type, ...) (&(const type){__VA_ARGS__})
#define BATCH            TDI_BATCH

static tdi_node *build_scatter_add(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_scatter_add(graph, leaf[0], leaf[1], &((const tdi_shape_attrs *)c->attrs)->shape);
}

#define REDUCE(name_, kind_, axes_, keep_, shape_)                                                                     \
    {                                                                                                                  \
        .op = &tdi_op_reduce, .name = name_, .attrs = ATTRS(tdi_reduce_attrs, kind_, axes_, keep_), .n_leaves = 1,     \
        .leaf = {                                                                                                      \
            {.shape = shape_, .fill = OP_SPREAD}                                                                       \
        }                                                                                                              \
    }

#define RESHAPED(op_, name_, from_, to_)                                                                               \
    {                                                                                                                  \
        .op = &tdi_op_##op_, .name = name_, .attrs = ATTRS(tdi_shape_attrs, to_), .n_leaves = 1, .leaf = {             \
            {.shape = from_}                                                                                           \
        }                                                                                                              \
    }

#define SLICE(name_, shape_, axis_, begin_, size_)                                                                     \
    {                                                                                                                  \
        .op = &tdi_op_slice, .name = name_, .attrs = ATTRS(tdi_slice_attrs, axis_, begin_, size_), .n_leaves = 1,      \
        .leaf = {                                                                                                      \
            {.shape = shape_}                                                                                          \
        }                                                                                                              \
    }

#define PAD(name_, shape_, axis_, before_, after_)                                                                     \
    {                                                                                                                  \
        .op = &tdi_op_pad, .name = name_, .attrs = ATTRS(tdi_pad_attrs, axis_, before_, after_), .n_leaves = 1,        \
        .leaf = {                                                                                                      \
            {.shape = shape_}                                                                                          \
        }                                                                                                              \
    }

const op_case op_cases_shape[] = {
    REDUCE("sum over the batch", TDI_SUM, 1u, false, OP_DIMS(BATCH, 5)),
    REDUCE("sum over the batch, kept", TDI_SUM, 1u, true, OP_DIMS(BATCH, 5)),
    REDUCE("sum over leading axes", TDI_SUM, 7u, false, OP_DIMS(BATCH, 2, 3, 4)),
    REDUCE("sum over the middle", TDI_SUM, 2u, false, OP_DIMS(BATCH, 3, 4)),
    REDUCE("sum over everything", TDI_SUM, 7u, false, OP_DIMS(BATCH, 3, 4)),
    REDUCE("sum over nothing", TDI_SUM, 0u, false, OP_DIMS(BATCH, 3)),
    REDUCE("mean over height and width", TDI_MEAN, 6u, false, OP_DIMS(BATCH, 3, 2, 4)),
    REDUCE("mean over height and width, kept", TDI_MEAN, 6u, true, OP_DIMS(BATCH, 3, 2, 4)),
    REDUCE("mean of a weight", TDI_MEAN, 3u, false, OP_DIMS(3, 4)),
    REDUCE("max over the last axis", TDI_MAX, 2u, false, OP_DIMS(BATCH, 6)),
    REDUCE("max over the middle, kept", TDI_MAX, 2u, true, OP_DIMS(BATCH, 4, 3)),
    REDUCE("max of a weight", TDI_MAX, 3u, false, OP_DIMS(4, 3)),

    RESHAPED(broadcast, "a vector to rows", OP_DIMS(4), OP_DIMS(BATCH, 4)),
    RESHAPED(broadcast, "a scalar to rows", {0}, OP_DIMS(BATCH)),
    RESHAPED(broadcast, "middle axes", OP_DIMS(BATCH, 1, 1, 3), OP_DIMS(BATCH, 2, 4, 3)),
    RESHAPED(broadcast, "columns", OP_DIMS(BATCH, 1), OP_DIMS(BATCH, 6)),

    RESHAPED(reshape, "flatten", OP_DIMS(BATCH, 2, 3), OP_DIMS(BATCH, 6)),
    RESHAPED(reshape, "unflatten", OP_DIMS(BATCH, 6), OP_DIMS(BATCH, 3, 1, 2)),
    RESHAPED(reshape, "a weight", OP_DIMS(2, 3, 4), OP_DIMS(6, 4)),

    {.op = &tdi_op_concat,
     .name = "last axis, three widths",
     .attrs = ATTRS(tdi_concat_attrs, 1),
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 2)}, {.shape = OP_DIMS(BATCH, 5)}, {.shape = OP_DIMS(BATCH, 1)}}},
    {.op = &tdi_op_concat,
     .name = "middle axis",
     .attrs = ATTRS(tdi_concat_attrs, 1),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 1, 3)}, {.shape = OP_DIMS(BATCH, 2, 3)}}},
    {.op = &tdi_op_concat,
     .name = "first axis of weights",
     .attrs = ATTRS(tdi_concat_attrs, 0),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(2, 3)}, {.shape = OP_DIMS(4, 3)}}},
    {.op = &tdi_op_concat,
     .name = "integers",
     .attrs = ATTRS(tdi_concat_attrs, 1),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 2), .dtype = TD_INT32, .limit = 9},
              {.shape = OP_DIMS(BATCH, 3), .dtype = TD_INT32, .limit = 9}}},

    SLICE("columns", OP_DIMS(BATCH, 7), 1, 2, 3),
    SLICE("the middle", OP_DIMS(BATCH, 4, 3), 1, 3, 1),
    SLICE("rows of a weight", OP_DIMS(5, 3), 0, 1, 2),
    PAD("columns", OP_DIMS(BATCH, 3), 1, 1, 2),
    PAD("the middle", OP_DIMS(BATCH, 2, 3), 1, 0, 2),
    PAD("rows of a weight", OP_DIMS(2, 3), 0, 2, 1),

    {.op = &tdi_op_gather,
     .name = "rows",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(6, 3)}, {.shape = OP_DIMS(BATCH), .dtype = TD_INT32, .limit = 6}}},
    {.op = &tdi_op_gather,
     .name = "sequences",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(4, 2, 3)}, {.shape = OP_DIMS(BATCH, 5), .dtype = TD_INT32, .limit = 4}}},
    {.op = &tdi_op_gather,
     .name = "numbers",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(4)}, {.shape = OP_DIMS(BATCH, 3), .dtype = TD_INT32, .limit = 4}}},
    {.op = &tdi_op_scatter_add,
     .name = "rows, with repeats",
     .attrs = ATTRS(tdi_shape_attrs, OP_DIMS(4, 3)),
     .build = build_scatter_add,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 5), .dtype = TD_INT32, .limit = 4}, {.shape = OP_DIMS(BATCH, 5, 3)}}},
    {.op = &tdi_op_scatter_add,
     .name = "numbers",
     .attrs = ATTRS(tdi_shape_attrs, OP_DIMS(4)),
     .build = build_scatter_add,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 5), .dtype = TD_INT32, .limit = 4}, {.shape = OP_DIMS(BATCH, 5)}}},
    {0}};
