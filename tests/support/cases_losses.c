/* cases_losses.c - softmax, cross-entropies, batch_mean, accuracies, accumulate. */
#include "support/op_case.h"

#define ATTRS(type, ...) (&(const type){__VA_ARGS__})
#define BATCH            TDI_BATCH

static tdi_node *build_sparse_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_ignore_attrs none = {0};
    return tdi_sparse_softmax_cross_entropy_grad(graph, leaf[0], leaf[1], leaf[2],
                                                 c->attrs ? *(const tdi_ignore_attrs *)c->attrs : none);
}

static tdi_node *build_valid_weights(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    int32_t ignored = ((const tdi_ignore_attrs *)c->attrs)->number;
    return tdi_valid_weights(graph, leaf[0], tdi_all_gather(graph, tdi_count_valid(graph, leaf[0], ignored)), ignored);
}

static tdi_node *build_dense_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)c;
    return tdi_softmax_cross_entropy_grad(graph, leaf[0], leaf[1], leaf[2]);
}

/* The op of the gradient, which gives the losses as an extra output. */
static tdi_node *build_with_losses(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *losses = tdi_extra_output(graph, &leaf[2]->shape);
    return tdi_node_create(graph, c->op, c->attrs, 4, (tdi_node *[]){leaf[0], leaf[1], leaf[2], losses});
}

static tdi_node *build_extra_output(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    (void)c;
    return tdi_extra_output(graph, &leaf[0]->shape);
}

static tdi_node *build_extra_output_of(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    tdi_node *losses = tdi_extra_output(graph, &leaf[2]->shape);
    tdi_node *by = tdi_node_create(graph, &tdi_op_sigmoid_cross_entropy_grad, c->attrs, 4,
                                   (tdi_node *[]){leaf[0], leaf[1], leaf[2], losses});
    return tdi_extra_output_of(graph, losses, by);
}

static tdi_node *build_batch_mean_grad(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_batch_mean_grad(graph, leaf[0], &((const tdi_shape_attrs *)c->attrs)->shape);
}

static tdi_node *build_accumulate(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_accumulate(graph, leaf[0], c->n_leaves > 1 ? leaf[1] : NULL, 0);
}

static tdi_node *build_count_pairs(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_count_pairs(graph, leaf[0], c->n_leaves > 1 ? leaf[1] : NULL, &(tdi_count_pairs_attrs){2, true}, 0);
}

static const float class_weights[] = {0.5f, 2, 0};

static const float thresholds[] = {0.75f, 0.1f, 0.5f};

static tdi_node *build_bucket_sums(tdi_graph *graph, tdi_node *const *leaf, const op_case *c)
{
    return tdi_bucket_sums(graph, leaf[0], leaf[1], c->n_leaves > 2 ? leaf[2] : NULL, c->attrs, 0);
}

#define ONE(stem, name_, shape_)                                                                                       \
    {                                                                                                                  \
        .op = &tdi_op_##stem, .name = name_, .n_leaves = 1, .leaf = { {.shape = shape_} }                              \
    }
#define TWO(stem, name_, shape_)                                                                                       \
    {                                                                                                                  \
        .op = &tdi_op_##stem, .name = name_, .n_leaves = 2, .leaf = { {.shape = shape_}, {.shape = shape_} }           \
    }
#define LABELS(...)                                                                                                    \
    {                                                                                                                  \
        .shape = OP_DIMS(__VA_ARGS__), .dtype = TD_INT32, .fill = OP_LABELS, .limit = 4                                \
    }

const op_case op_cases_losses[] = {
    ONE(softmax, "classes", OP_DIMS(BATCH, 10)),
    ONE(softmax, "per position", OP_DIMS(BATCH, 3, 4)),
    ONE(softmax, "one class", OP_DIMS(BATCH, 1)),
    ONE(softmax, "a weight", OP_DIMS(5)),
    TWO(softmax_grad, "classes", OP_DIMS(BATCH, 10)),
    ONE(log_softmax, "classes", OP_DIMS(BATCH, 10)),
    ONE(log_softmax, "per position", OP_DIMS(BATCH, 3, 4)),
    TWO(log_softmax_grad, "classes", OP_DIMS(BATCH, 10)),

    {.op = &tdi_op_sparse_softmax_cross_entropy,
     .name = "classes",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, LABELS(BATCH)}},
    {.op = &tdi_op_sparse_softmax_cross_entropy,
     .name = "per position",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 4)}, LABELS(BATCH, 2)}},
    {.op = &tdi_op_sparse_softmax_cross_entropy_grad,
     .name = "classes",
     .build = build_sparse_grad,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, LABELS(BATCH), {.shape = OP_DIMS(BATCH)}}},
    {.op = &tdi_op_sparse_softmax_cross_entropy,
     .name = "but a class",
     .attrs = ATTRS(tdi_ignore_attrs, true, 2),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 9, 4)}, LABELS(BATCH, 9)}},
    {.op = &tdi_op_sparse_softmax_cross_entropy_grad,
     .name = "but a class",
     .attrs = ATTRS(tdi_ignore_attrs, true, 2),
     .build = build_sparse_grad,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 9, 4)}, LABELS(BATCH, 9), {.shape = OP_DIMS(BATCH, 9)}}},
    {.op = &tdi_op_softmax_cross_entropy,
     .name = "one distribution a row",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}, {.shape = OP_DIMS(BATCH, 5), .fill = OP_UNIT, .constant = true}}},
    {.op = &tdi_op_softmax_cross_entropy,
     .name = "per position",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 5)}, {.shape = OP_DIMS(BATCH, 2, 5), .fill = OP_BITS, .constant = true}}},
    {.op = &tdi_op_softmax_cross_entropy_grad,
     .name = "one distribution a row",
     .build = build_dense_grad,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}, {.shape = OP_DIMS(BATCH, 5), .fill = OP_UNIT}, {.shape = OP_DIMS(BATCH)}}},
    {.op = &tdi_op_sigmoid_cross_entropy,
     .name = "bits",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 3)}, {.shape = OP_DIMS(BATCH, 3), .fill = OP_BITS, .constant = true}}},
    {.op = &tdi_op_sigmoid_cross_entropy_grad,
     .name = "soft targets",
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 3)},
              {.shape = OP_DIMS(BATCH, 3), .fill = OP_UNIT},
              {.shape = OP_DIMS(BATCH, 3)}}},

    {.op = &tdi_op_sparse_softmax_cross_entropy_grad,
     .name = "and losses",
     .build = build_with_losses,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 3, 4)}, LABELS(BATCH, 3), {.shape = OP_DIMS(BATCH, 3)}}},
    {.op = &tdi_op_sparse_softmax_cross_entropy_grad,
     .name = "and losses, but a class",
     .attrs = ATTRS(tdi_ignore_attrs, true, 2),
     .build = build_with_losses,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 9, 4)}, LABELS(BATCH, 9), {.shape = OP_DIMS(BATCH, 9)}}},
    {.op = &tdi_op_softmax_cross_entropy_grad,
     .name = "and losses",
     .build = build_with_losses,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 5)}, {.shape = OP_DIMS(BATCH, 5), .fill = OP_UNIT}, {.shape = OP_DIMS(BATCH)}}},
    {.op = &tdi_op_sigmoid_cross_entropy_grad,
     .name = "and losses",
     .build = build_with_losses,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 7)},
              {.shape = OP_DIMS(BATCH, 7), .fill = OP_UNIT},
              {.shape = OP_DIMS(BATCH, 7)}}},
    {.op = &tdi_op_extra_output,
     .name = "losses",
     .build = build_extra_output,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 3)}}},
    {.op = &tdi_op_extra_output_of,
     .name = "losses",
     .build = build_extra_output_of,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 3)},
              {.shape = OP_DIMS(BATCH, 3), .fill = OP_UNIT},
              {.shape = OP_DIMS(BATCH, 3)}}},

    {.op = &tdi_op_count_valid,
     .name = "but a class",
     .attrs = ATTRS(tdi_ignore_attrs, true, 3),
     .n_leaves = 1,
     .leaf = {LABELS(BATCH, 5)}},
    {.op = &tdi_op_valid_weights,
     .name = "a class a row",
     .attrs = ATTRS(tdi_ignore_attrs, true, 3),
     .build = build_valid_weights,
     .n_leaves = 1,
     .leaf = {LABELS(BATCH)}},
    {.op = &tdi_op_valid_weights,
     .name = "uneven parts",
     .attrs = ATTRS(tdi_ignore_attrs, true, 3),
     .build = build_valid_weights,
     .n_leaves = 1,
     .leaf = {LABELS(BATCH, 5)},
     .shards = 3,
     .rows = {3, 0, 1}},
    {.op = &tdi_op_class_weights,
     .name = "class numbers",
     .attrs = ATTRS(tdi_class_weights_attrs, 3, class_weights),
     .n_leaves = 1,
     .leaf = {LABELS(BATCH, 5)}},
    {.op = &tdi_op_class_weights,
     .name = "one-hot",
     .attrs = ATTRS(tdi_class_weights_attrs, 3, class_weights),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 4), .fill = OP_BITS}}},
    {.op = &tdi_op_class_weights,
     .name = "a number a row",
     .attrs = ATTRS(tdi_class_weights_attrs, 1, class_weights),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 1), .fill = OP_UNIT}}},
    ONE(batch_mean, "a loss a row", OP_DIMS(BATCH)),
    ONE(batch_mean, "losses per position", OP_DIMS(BATCH, 3, 2)),
    {.op = &tdi_op_batch_mean,
     .name = "uneven parts",
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 3)}},
     .shards = 3,
     .rows = {3, 0, 1}},
    {.op = &tdi_op_batch_mean_grad,
     .name = "losses per position",
     .attrs = ATTRS(tdi_shape_attrs, OP_DIMS(BATCH, 3, 2)),
     .build = build_batch_mean_grad,
     .n_leaves = 1,
     .leaf = {{.shape = {0}}}},

    {.op = &tdi_op_sparse_categorical_accuracy,
     .name = "classes",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, LABELS(BATCH)}},
    {.op = &tdi_op_categorical_accuracy,
     .name = "per position",
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 4)}, {.shape = OP_DIMS(BATCH, 2, 4), .fill = OP_BITS}}},
    {.op = &tdi_op_binary_accuracy,
     .name = "three bits",
     .attrs = ATTRS(tdi_binary_accuracy_attrs, 0.5f),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 3), .fill = OP_UNIT}, {.shape = OP_DIMS(BATCH, 3), .fill = OP_BITS}}},
    {.op = &tdi_op_class_pairs,
     .name = "class numbers per position",
     .attrs = ATTRS(tdi_class_pairs_attrs, .classes = 4),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 3, 4)}, LABELS(BATCH, 3)}},
    {.op = &tdi_op_class_pairs,
     .name = "but a class, and fewer of them",
     .attrs = ATTRS(tdi_class_pairs_attrs, .classes = 3, .ignore = {true, 1}),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 9, 4)}, LABELS(BATCH, 9)}},
    {.op = &tdi_op_class_pairs,
     .name = "numbers",
     .attrs = ATTRS(tdi_class_pairs_attrs, .classes = 2, .predicted = TDI_NUMBER, .actual = TDI_NUMBER),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 5), .fill = OP_POSITIVE}, {.shape = OP_DIMS(BATCH, 5), .fill = OP_BITS}}},
    {.op = &tdi_op_class_pairs,
     .name = "several labels",
     .attrs =
         ATTRS(tdi_class_pairs_attrs, .classes = 2, .predicted = TDI_AT_LEAST, .actual = TDI_NUMBER, .threshold = .4f),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 7), .fill = OP_UNIT}, {.shape = OP_DIMS(BATCH, 7), .fill = OP_BITS}}},
    {.op = &tdi_op_in_top_k,
     .name = "class numbers",
     .attrs = ATTRS(tdi_in_top_k_attrs, 2),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 9, 4)}, LABELS(BATCH, 9)}},
    {.op = &tdi_op_in_top_k,
     .name = "one-hot",
     .attrs = ATTRS(tdi_in_top_k_attrs, 3),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 7)}, {.shape = OP_DIMS(BATCH, 7), .fill = OP_BITS}}},
    {.op = &tdi_op_class_pairs,
     .name = "one-hot",
     .attrs = ATTRS(tdi_class_pairs_attrs, .classes = 4),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}, {.shape = OP_DIMS(BATCH, 4), .fill = OP_BITS}}},
    {.op = &tdi_op_class_pairs,
     .name = "two classes by threshold",
     .attrs =
         ATTRS(tdi_class_pairs_attrs, .classes = 2, .predicted = TDI_ABOVE, .actual = TDI_ABOVE, .threshold = 0.5f),
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 1), .fill = OP_UNIT}, {.shape = OP_DIMS(BATCH, 1), .fill = OP_BITS}}},
    {.op = &tdi_op_count_pairs,
     .name = "two classes",
     .build = build_count_pairs,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 3), .fill = OP_BITS}}},
    {.op = &tdi_op_buckets,
     .name = "listed thresholds",
     .attrs = ATTRS(tdi_buckets_attrs, .thresholds = 3, .list = thresholds),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 5, 3), .fill = OP_UNIT}}},
    {.op = &tdi_op_buckets,
     .name = "... with ends, each label apart",
     .attrs = ATTRS(tdi_buckets_attrs, .thresholds = 5, .ends = true, .per_label = true, .list = thresholds),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 3)}}},
    {.op = &tdi_op_buckets,
     .name = "even thresholds",
     .attrs = ATTRS(tdi_buckets_attrs, .how = TDI_EVENLY, .thresholds = 200, .ends = true),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 7)}}},
    {.op = &tdi_op_buckets,
     .name = "the largest",
     .attrs = ATTRS(tdi_buckets_attrs, .how = TDI_TOP, .thresholds = 1, .per_label = true),
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 4)}}},
    {.op = &tdi_op_bucket_sums,
     .name = "two buckets",
     .attrs = ATTRS(tdi_bucket_sums_attrs, .buckets = 2, .truth = true),
     .build = build_bucket_sums,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 3), .fill = OP_BITS}, {.shape = OP_DIMS(BATCH, 3)}}},
    {.op = &tdi_op_count_pairs,
     .name = "two classes, weighted by the row",
     .build = build_count_pairs,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 3), .fill = OP_BITS}, {.shape = OP_DIMS(BATCH)}}},
    {.op = &tdi_op_bucket_sums,
     .name = "two buckets, weighted by the position",
     .attrs = ATTRS(tdi_bucket_sums_attrs, .buckets = 2, .truth = true),
     .build = build_bucket_sums,
     .n_leaves = 3,
     .leaf = {{.shape = OP_DIMS(BATCH, 2, 3), .fill = OP_BITS},
              {.shape = OP_DIMS(BATCH, 2, 3)},
              {.shape = OP_DIMS(BATCH, 2)}}},
    {.op = &tdi_op_accumulate,
     .name = "weighted",
     .build = build_accumulate,
     .n_leaves = 2,
     .leaf = {{.shape = OP_DIMS(BATCH, 2)}, {.shape = OP_DIMS(BATCH)}}},
    {.op = &tdi_op_accumulate,
     .name = "losses",
     .build = build_accumulate,
     .n_leaves = 1,
     .leaf = {{.shape = OP_DIMS(BATCH, 2)}}},
    {0}};
