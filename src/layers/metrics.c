/* metrics.c - accuracies as Keras computes them, and its choice of one for "accuracy". */
#include <string.h>

#include "layers/training.h"
#include "ops/ops.h"

static const struct {
    const char *name, *class_name;
} names[TD_METRIC_COUNT] = {
    [TD_ACCURACY] = {"accuracy", NULL},
    [TD_SPARSE_CATEGORICAL_ACCURACY] = {"sparse_categorical_accuracy", "SparseCategoricalAccuracy"},
    [TD_CATEGORICAL_ACCURACY] = {"categorical_accuracy", "CategoricalAccuracy"},
    [TD_BINARY_ACCURACY] = {"binary_accuracy", "BinaryAccuracy"},
};

const char *tdi_metric_name(td_metric metric)
{
    return names[metric].name;
}

td_metric tdi_metric_parse(const char *name)
{
    if (strcmp(name, "acc") == 0)
        return TD_ACCURACY;
    for (td_metric metric = TD_ACCURACY; metric < TD_METRIC_COUNT; metric++)
        if (strcmp(name, names[metric].name) == 0 ||
            (names[metric].class_name && strcmp(name, names[metric].class_name) == 0))
            return metric;
    return TD_METRIC_END;
}

static int64_t last_extent(const tdi_node *node)
{
    return node->shape.dim[node->shape.rank - 1];
}

/* keras/src/trainers/compile_utils.py, get_metric: by the shapes alone. */
static td_metric resolve(td_metric metric, const tdi_node *prediction, const tdi_node *target)
{
    if (metric != TD_ACCURACY)
        return metric;
    if (last_extent(prediction) == 1)
        return TD_BINARY_ACCURACY;
    if (target->shape.rank < prediction->shape.rank || last_extent(target) == 1)
        return TD_SPARSE_CATEGORICAL_ACCURACY;
    return TD_CATEGORICAL_ACCURACY;
}

/* Class numbers for a single class per sample are compared as numbers: [batch] becomes [batch, 1]. */
static tdi_node *as_prediction(tdi_graph *graph, const tdi_node *prediction, tdi_node *target)
{
    if (target->dtype != TD_FLOAT32)
        target = tdi_cast(graph, target, TD_FLOAT32);
    if (target && target->shape.rank == prediction->shape.rank - 1 && last_extent(prediction) == 1)
        target = tdi_reshape(graph, target, &prediction->shape);
    return target;
}

static bool check_target(tdi_graph *graph, td_metric metric, const tdi_loss *loss, const tdi_node *prediction,
                         const tdi_node *target)
{
    bool classes = tdi_loss_wants_classes(loss), wants = metric == TD_SPARSE_CATEGORICAL_ACCURACY;
    char text[TDI_SHAPE_TEXT];
    if (prediction->shape.rank < 2) {
        tdi_fail(&graph->error, TD_INVALID_ARGUMENT, "%s: the prediction %s has no axis but the batch",
                 tdi_metric_name(metric), tdi_shape_text(&prediction->shape, text));
        return false;
    }
    if (classes == wants || (metric == TD_BINARY_ACCURACY && last_extent(prediction) == 1))
        return true;
    tdi_fail(&graph->error, TD_INVALID_ARGUMENT,
             "%s does not go with %s, whose targets %s are %s: use \"accuracy\", which chooses by the shapes",
             tdi_metric_name(metric), tdi_loss_class(loss->kind), tdi_shape_text(&target->shape, text),
             classes ? "class numbers" : "not class numbers");
    return false;
}

tdi_node *tdi_metric_emit(tdi_graph *graph, td_metric metric, const tdi_loss *loss, tdi_node *prediction,
                          tdi_node *target)
{
    if (!prediction || !target)
        return NULL;
    metric = resolve(metric, prediction, target);
    if (!check_target(graph, metric, loss, prediction, target))
        return NULL;
    switch (metric) {
    case TD_SPARSE_CATEGORICAL_ACCURACY:
        return tdi_sparse_categorical_accuracy(graph, prediction, target);
    case TD_CATEGORICAL_ACCURACY:
        return tdi_categorical_accuracy(graph, prediction, target);
    default:
        return tdi_binary_accuracy(graph, prediction, as_prediction(graph, prediction, target), 0.5f);
    }
}
