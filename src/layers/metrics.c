/* metrics.c - Keras's metrics: the ops that add up values of a prediction, and the results that follow from the sums.
 *
 * Most metrics are means of a number per position: an accuracy, an error. An IoU needs counts n[actual][predicted]: it
 * is the mean of n[c][c] / (n[c][.] + n[.][c] - n[c][c]) over the target classes c that occur
 * (keras/src/metrics/iou_metrics.py). Metrics that compare scores with thresholds are in threshold_metrics.c.
 *
 * Every shard has accumulators of its own. They are added up in the order of shards and saved in backups.
 *
 * To add a metric: its kind, macro and arguments in include/tandem/model.h, a row in `types` here, a case in
 * tdi_metric_emit and, unless it is a mean, in counted_classes and tdi_metric_result; its name in tools/options.c and
 * the manual pages; a model compiled with it in tests/conformance/metrics.py. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "layers/threshold_metrics.h"

/* ---- types ---- */

#define FIELD(kind, member, key, number) TDI_FIELD(kind, td_metric, member, key, number)

static const tdi_field none[] = {{0}};
static const tdi_field threshold[] = {FIELD(OPTIONAL, threshold, "threshold", 0.5), {0}};
static const tdi_field k[] = {FIELD(INT, k, "k", 5), {0}};
static const tdi_field positives[] = {FIELD(CLASS, class_id, "class_id", 0), TDI_FIXED_FIELD("top_k", "null"), {0}};
static const tdi_field auc[] = {
    FIELD(INT, num_thresholds, "num_thresholds", 200),
    TDI_WORD_FIELD(td_metric, curve, "curve", "ROC|PR|PRGAIN"),
    TDI_WORD_FIELD(td_metric, summation_method, "summation_method", "interpolation|minoring|majoring"),
    FIELD(CHOICE, multi_label, "multi_label", 0),
    FIELD(COUNT, num_labels, "num_labels", 0),
    FIELD(CHOICE, from_logits, "from_logits", 0),
    {0}};
static const tdi_field f1_score[] = {TDI_WORD_FIELD(td_metric, average, "average", "null|micro|macro|weighted"),
                                     FIELD(IF_SET, threshold, "threshold", 0),
                                     {0}};
static const tdi_field iou[] = {FIELD(INT, num_classes, "num_classes", 0),
                                FIELD(CLASS, ignore_class, "ignore_class", 0),
                                FIELD(CHOICE, sparse_y_true, "sparse_y_true", 1),
                                FIELD(CHOICE, sparse_y_pred, "sparse_y_pred", 1),
                                TDI_FIXED_FIELD("axis", "-1"),
                                {0}};

static const tdi_metric_type types[TD_METRIC_COUNT] = {
    [TD_METRIC_ACCURACY] = {NULL, "accuracy", "acc", none, NULL},
    [TD_METRIC_SPARSE_CATEGORICAL_ACCURACY] = {"SparseCategoricalAccuracy", "sparse_categorical_accuracy", NULL, none,
                                               NULL},
    [TD_METRIC_CATEGORICAL_ACCURACY] = {"CategoricalAccuracy", "categorical_accuracy", NULL, none, NULL},
    [TD_METRIC_BINARY_ACCURACY] = {"BinaryAccuracy", "binary_accuracy", NULL, threshold, NULL},
    [TD_METRIC_SPARSE_TOP_K_CATEGORICAL_ACCURACY] = {"SparseTopKCategoricalAccuracy",
                                                     "sparse_top_k_categorical_accuracy", NULL, k, NULL},
    [TD_METRIC_TOP_K_CATEGORICAL_ACCURACY] = {"TopKCategoricalAccuracy", "top_k_categorical_accuracy", NULL, k, NULL},
    [TD_METRIC_PRECISION] = {"Precision", "precision", NULL, positives, "thresholds"},
    [TD_METRIC_RECALL] = {"Recall", "recall", NULL, positives, "thresholds"},
    [TD_METRIC_MEAN_IOU] = {"MeanIoU", "mean_io_u", NULL, iou, NULL},
    [TD_METRIC_IOU] = {"IoU", "io_u", NULL, iou, "target_class_ids"},
    [TD_METRIC_BINARY_IOU] = {"BinaryIoU", "binary_io_u", NULL, threshold, "target_class_ids"},
    [TD_METRIC_MEAN_SQUARED_ERROR] = {"MeanSquaredError", "mean_squared_error", "mse", none, NULL},
    [TD_METRIC_ROOT_MEAN_SQUARED_ERROR] = {"RootMeanSquaredError", "root_mean_squared_error", NULL, none, NULL},
    [TD_METRIC_MEAN_ABSOLUTE_ERROR] = {"MeanAbsoluteError", "mean_absolute_error", "mae", none, NULL},
    [TD_METRIC_AUC] = {"AUC", "auc", NULL, auc, "thresholds"},
    [TD_METRIC_F1_SCORE] = {"F1Score", "f1_score", NULL, f1_score, NULL},
};

const tdi_metric_type *tdi_metric_type_of(td_metric_kind kind)
{
    return &types[kind];
}

static bool is_name(const tdi_metric_type *type, const char *name)
{
    return strcmp(type->name, name) == 0 || (type->class_name && strcmp(type->class_name, name) == 0) ||
           (type->alias && strcasecmp(type->alias, name) == 0);
}

td_metric_kind tdi_metric_parse(const char *name)
{
    for (int kind = TD_METRIC_ACCURACY; kind < TD_METRIC_COUNT; kind++)
        if (is_name(&types[kind], name))
            return (td_metric_kind)kind;
    return TD_METRIC_END;
}

const char *tdi_metric_name(const td_metric *metric)
{
    return metric->name ? metric->name : types[metric->kind].name;
}

bool tdi_metric_falls(const td_metric *metric)
{
    return metric->kind == TD_METRIC_MEAN_SQUARED_ERROR || metric->kind == TD_METRIC_ROOT_MEAN_SQUARED_ERROR ||
           metric->kind == TD_METRIC_MEAN_ABSOLUTE_ERROR;
}

/* ---- resolved for an output ---- */

static int64_t last_extent(const td_shape *shape)
{
    return shape->rank ? shape->dim[shape->rank - 1] : 1;
}

static bool is_iou(const td_metric *metric)
{
    return metric->kind == TD_METRIC_IOU || metric->kind == TD_METRIC_MEAN_IOU;
}

bool tdi_metric_wants_classes(const td_metric *metric, const td_shape *prediction)
{
    switch (metric->kind) {
    case TD_METRIC_ACCURACY:
    case TD_METRIC_IOU:
    case TD_METRIC_MEAN_IOU:
        return last_extent(prediction) > 1 && metric->sparse_y_true != TD_NO;
    case TD_METRIC_SPARSE_CATEGORICAL_ACCURACY:
    case TD_METRIC_SPARSE_TOP_K_CATEGORICAL_ACCURACY:
        return true;
    default:
        return false;
    }
}

/* Keras must be told these numbers; here they follow from the shapes. */
static void resolve_iou(td_metric *metric, const tdi_loss *loss, const td_shape *prediction)
{
    int64_t width = last_extent(prediction);
    if (metric->num_classes == 0)
        metric->num_classes = width > 1 ? (int)width : 2;
    if (metric->sparse_y_pred == TD_DEFAULT)
        metric->sparse_y_pred = width > 1 ? TD_NO : TD_YES;
    if (metric->sparse_y_true == TD_DEFAULT)
        metric->sparse_y_true = width > 1 && !tdi_loss_wants_classes(loss) ? TD_NO : TD_YES;
}

static td_status check_class(const char *what, td_optional number, double least, double most, tdi_error *error)
{
    if (!number.is_set || ((double)number.value == floor((double)number.value) && (double)number.value >= least &&
                           (double)number.value <= most))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s is %g; a whole number from %.0f to %.0f was expected", what,
                    (double)number.value, least, most);
}

static td_status check_targets(const td_metric *metric, int classes, tdi_error *error)
{
    for (int i = 0; metric->target_class_ids && metric->target_class_ids[i] != TD_CLASSES_END; i++)
        if (metric->target_class_ids[i] < 0 || metric->target_class_ids[i] >= classes)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "target_class_ids: %d is none of %d classes",
                            metric->target_class_ids[i], classes);
    return TD_OK;
}

/* A Keras file has "accuracy" as a bare string, which leaves no place for a name of its own. */
static td_status check_name(const td_metric *metric, tdi_error *error)
{
    if (metric->kind != TD_METRIC_ACCURACY || !metric->name || is_name(&types[TD_METRIC_ACCURACY], metric->name))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "\"accuracy\", which chooses by the shapes, can only be called so, or \"acc\"; name one of the "
                    "accuracies that it chooses from");
}

static td_status check_numbers(const td_metric *metric, const td_shape *prediction, tdi_error *error)
{
    TDI_TRY(check_name(metric, error));
    if (types[metric->kind].fields == k && metric->k < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "k is %d and must be at least 1", metric->k);
    if (is_iou(metric) && (metric->num_classes < 1 || metric->num_classes > TDI_MOST_CLASSES))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "num_classes is %d; a number from 1 to %d was expected",
                        metric->num_classes, TDI_MOST_CLASSES);
    if (metric->threshold.is_set && !isfinite(metric->threshold.value))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "the threshold is not a finite number");
    TDI_TRY(check_class("ignore_class", metric->ignore_class, -TDI_MOST_LABEL, TDI_MOST_LABEL, error));
    TDI_TRY(check_class("class_id", metric->class_id, 0, (double)(last_extent(prediction) - 1), error));
    if (tdi_has_thresholds(metric))
        return TD_OK;
    return check_targets(metric, metric->kind == TD_METRIC_BINARY_IOU ? 2 : metric->num_classes, error);
}

td_status tdi_metric_resolve(td_metric *metric, const tdi_loss *loss, const td_shape *prediction, tdi_error *error)
{
    if (is_iou(metric))
        resolve_iou(metric, loss, prediction);
    tdi_fields_resolve(types[metric->kind].fields, metric);
    if (check_numbers(metric, prediction, error) == TD_OK &&
        (!tdi_has_thresholds(metric) || tdi_thresholds_resolve(metric, prediction, error) == TD_OK))
        return TD_OK;
    tdi_error_prefix(error, "%s", tdi_metric_name(metric));
    return error ? error->status : TD_INVALID_ARGUMENT;
}

/* ---- emission ---- */

/* Chooses the accuracy that "accuracy" stands for, by the shapes alone, as get_metric does in
 * keras/src/trainers/compile_utils.py. */
static td_metric_kind accuracy_for(td_metric_kind kind, const tdi_node *prediction, const tdi_node *target)
{
    if (kind != TD_METRIC_ACCURACY)
        return kind;
    if (last_extent(&prediction->shape) == 1)
        return TD_METRIC_BINARY_ACCURACY;
    if (target->shape.rank < prediction->shape.rank || last_extent(&target->shape) == 1)
        return TD_METRIC_SPARSE_CATEGORICAL_ACCURACY;
    return TD_METRIC_CATEGORICAL_ACCURACY;
}

/* Class numbers are compared with a prediction [batch, 1] as floats: [batch] becomes [batch, 1]. */
static tdi_node *as_prediction(tdi_graph *graph, const tdi_node *prediction, tdi_node *target)
{
    if (target->dtype != TD_FLOAT32)
        target = tdi_cast(graph, target, TD_FLOAT32);
    if (target && target->shape.rank == prediction->shape.rank - 1 && last_extent(&prediction->shape) == 1)
        target = tdi_reshape(graph, target, &prediction->shape);
    return target;
}

/* True when the metric can be computed from the targets of its output: class numbers where the loss wants them, else
 * one number for each of the prediction's. */
static bool takes_target(td_metric_kind kind, const tdi_loss *loss, const tdi_node *prediction)
{
    bool classes = tdi_loss_wants_classes(loss);
    switch (kind) {
    case TD_METRIC_SPARSE_CATEGORICAL_ACCURACY:
    case TD_METRIC_SPARSE_TOP_K_CATEGORICAL_ACCURACY:
        return classes;
    case TD_METRIC_IOU:
    case TD_METRIC_MEAN_IOU:
        return true;
    case TD_METRIC_BINARY_ACCURACY:
        return !classes || last_extent(&prediction->shape) == 1;
    default:
        return !classes;
    }
}

static bool check_target(tdi_graph *graph, const td_metric *metric, td_metric_kind kind, const tdi_loss *loss,
                         const tdi_node *prediction, const tdi_node *target)
{
    char text[TDI_SHAPE_TEXT];
    if (prediction->shape.rank < 2) {
        tdi_fail(&graph->error, TD_INVALID_ARGUMENT, "%s: the prediction %s has no axis but the batch",
                 tdi_metric_name(metric), tdi_shape_text(&prediction->shape, text));
        return false;
    }
    if (takes_target(kind, loss, prediction))
        return true;
    const char *other = tdi_loss_class(loss->kind);
    tdi_fail(&graph->error, TD_INVALID_ARGUMENT, "%s does not go with %s, whose targets %s are %s%s",
             tdi_metric_name(metric), other ? other : "the output's other metrics",
             tdi_shape_text(&target->shape, text), tdi_loss_wants_classes(loss) ? "class numbers" : "not class numbers",
             kind <= TD_METRIC_BINARY_ACCURACY ? ": use \"accuracy\", which chooses by the shapes" : "");
    return false;
}

static int64_t positions(const tdi_node *node, tdi_reading how)
{
    int64_t all = tdi_shape_per_row(&node->shape);
    return how == TDI_LARGEST ? all / last_extent(&node->shape) : all;
}

static tdi_node *classes_taken(tdi_graph *graph, const td_metric *metric, tdi_node *prediction, tdi_node *target)
{
    bool numbers = target->dtype == TD_INT32;
    tdi_class_pairs_attrs attrs = {.classes = metric->num_classes,
                                   .predicted = metric->sparse_y_pred == TD_YES ? TDI_NUMBER : TDI_LARGEST,
                                   .actual = metric->sparse_y_true == TD_YES ? TDI_NUMBER : TDI_LARGEST,
                                   .ignore = {metric->ignore_class.is_set, (int32_t)metric->ignore_class.value}};
    int64_t predicted = positions(prediction, attrs.predicted), actual = positions(target, attrs.actual);
    if (numbers && attrs.actual == TDI_LARGEST)
        tdi_fail(&graph->error, TD_INVALID_ARGUMENT, "%s: sparse_y_true is false, but the targets are class numbers",
                 tdi_metric_name(metric));
    else if (predicted != actual)
        tdi_fail(&graph->error, TD_INVALID_ARGUMENT,
                 "%s: a sample has %lld classes as predicted, but %lld as they are; where the last axis holds a number "
                 "for each class, sparse_y_pred (sparse_y_true) must be false",
                 tdi_metric_name(metric), (long long)predicted, (long long)actual);
    return graph->error.status == TD_OK ? tdi_class_pairs(graph, prediction, target, &attrs) : NULL;
}

static float threshold_of(const td_metric *metric)
{
    return metric->threshold.is_set ? metric->threshold.value : 0.5f;
}

static tdi_node *error_of(tdi_graph *graph, tdi_node *prediction, tdi_node *target, int kind)
{
    tdi_node *error = tdi_unary(graph, tdi_binary(graph, TDI_SUBTRACT, prediction, target), kind);
    return tdi_reduce(graph, TDI_MEAN, error, 1u << (prediction->shape.rank - 1), false);
}

tdi_node *tdi_metric_emit(tdi_graph *graph, const td_metric *metric, const tdi_loss *loss, tdi_node *prediction,
                          tdi_node *target)
{
    if (!prediction || !target)
        return NULL;
    td_metric_kind kind = accuracy_for(metric->kind, prediction, target);
    if (!check_target(graph, metric, kind, loss, prediction, target))
        return NULL;
    switch (kind) {
    case TD_METRIC_SPARSE_CATEGORICAL_ACCURACY:
        return tdi_sparse_categorical_accuracy(graph, prediction, target);
    case TD_METRIC_CATEGORICAL_ACCURACY:
        return tdi_categorical_accuracy(graph, prediction, target);
    case TD_METRIC_BINARY_ACCURACY:
        return tdi_binary_accuracy(graph, prediction, as_prediction(graph, prediction, target), threshold_of(metric));
    case TD_METRIC_SPARSE_TOP_K_CATEGORICAL_ACCURACY:
    case TD_METRIC_TOP_K_CATEGORICAL_ACCURACY:
        return tdi_in_top_k(graph, prediction, target, metric->k);
    case TD_METRIC_PRECISION:
    case TD_METRIC_RECALL:
    case TD_METRIC_AUC:
    case TD_METRIC_F1_SCORE:
        return tdi_thresholds_emit(graph, metric, prediction);
    case TD_METRIC_IOU:
    case TD_METRIC_MEAN_IOU:
        return classes_taken(graph, metric, prediction, target);
    case TD_METRIC_BINARY_IOU:
        return tdi_class_pairs(graph, prediction, target,
                               &(tdi_class_pairs_attrs){2, TDI_AT_LEAST, TDI_NUMBER, threshold_of(metric), {0}});
    case TD_METRIC_MEAN_ABSOLUTE_ERROR:
        return error_of(graph, prediction, target, TDI_UNARY_ABS);
    default:
        return error_of(graph, prediction, target, TDI_UNARY_SQUARE);
    }
}

/* ---- sums ---- */

/* The side of the metric's matrix of counts; 0: it is a mean, with a sum and a count. */
static int counted_classes(const td_metric *metric)
{
    switch (metric->kind) {
    case TD_METRIC_IOU:
    case TD_METRIC_MEAN_IOU:
        return metric->num_classes;
    case TD_METRIC_BINARY_IOU:
        return 2;
    default:
        return 0;
    }
}

int tdi_metric_accumulators(const td_metric *metric)
{
    int classes = counted_classes(metric);
    if (tdi_has_thresholds(metric))
        return tdi_thresholds_accumulators(metric);
    return classes ? tdi_count_accumulators(classes) : 1;
}

void tdi_metric_accumulate(tdi_graph *graph, const td_metric *metric, tdi_node *values, tdi_node *target,
                           tdi_node *weights, int slot)
{
    int classes = counted_classes(metric);
    if (tdi_has_thresholds(metric))
        tdi_thresholds_accumulate(graph, metric, values, target, weights, slot);
    else if (classes)
        tdi_count_pairs(graph, values, weights, &(tdi_count_pairs_attrs){classes, metric->fractions != TD_YES}, slot);
    else
        tdi_accumulate(graph, values, weights, slot);
}

/* Keras adds 1e-7 to every divisor. */
static void add_iou(const double *counts, int classes, int c, double *sum, int *there)
{
    double of_class = 0, taken = 0, right = counts[c * classes + c];
    for (int other = 0; other < classes; other++) {
        of_class += counts[c * classes + other];
        taken += counts[other * classes + c];
    }
    double either = of_class + taken - right;
    if (either == 0)
        return;
    *sum += right / (either + 1e-7);
    ++*there;
}

static double mean_iou(const td_metric *metric, const double *counts)
{
    int classes = counted_classes(metric), there = 0;
    const int *targets = metric->target_class_ids;
    double sum = 0;
    for (int c = 0; !targets && c < classes; c++)
        add_iou(counts, classes, c, &sum, &there);
    for (int i = 0; targets && targets[i] != TD_CLASSES_END; i++)
        add_iou(counts, classes, targets[i], &sum, &there);
    return sum / (there + 1e-7);
}

static double ratio(double numerator, double denominator)
{
    return denominator > 0 ? numerator / denominator : 0;
}

int tdi_metric_results(const td_metric *metric)
{
    return tdi_has_thresholds(metric) ? tdi_thresholds_results(metric) : 1;
}

double tdi_metric_result(const td_metric *metric, const double *sums, int which)
{
    if (tdi_has_thresholds(metric))
        return tdi_thresholds_result(metric, sums, which);
    switch (metric->kind) {
    case TD_METRIC_IOU:
    case TD_METRIC_MEAN_IOU:
    case TD_METRIC_BINARY_IOU:
        return mean_iou(metric, sums);
    case TD_METRIC_ROOT_MEAN_SQUARED_ERROR:
        return sqrt(ratio(sums[0], sums[1]));
    default:
        return ratio(sums[0], sums[1]);
    }
}
