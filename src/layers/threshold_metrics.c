/* threshold_metrics.c - Precision, Recall, AUC and F1Score (keras/src/metrics/confusion_metrics.py,
 * f_score_metrics.py).
 *
 * The bucket of a score is the number of thresholds below it. A step adds each score's target, and a count, to its
 * bucket. The scores above threshold number t of the sorted thresholds are those in the buckets after t: TP is the sum
 * of their targets, and FP the rest of their count.
 *
 * - Precision is TP / (TP + FP), recall TP / (TP + FN).
 * - F1 is 2 P R / (P + R), by class.
 * - AUC is the area under the curve of (FP / N, TP / P), ROC, or of (recall, precision), PR, by its thresholds. */
#include <math.h>

#include "layers/threshold_metrics.h"

bool tdi_has_thresholds(const td_metric *metric)
{
    return metric->kind == TD_METRIC_PRECISION || metric->kind == TD_METRIC_RECALL || metric->kind == TD_METRIC_AUC ||
           metric->kind == TD_METRIC_F1_SCORE;
}

/* ---- the thresholds ---- */

static int listed(const td_metric *metric)
{
    int count = 0;
    while (metric->thresholds && metric->thresholds[count] != TD_THRESHOLDS_END)
        count++;
    return count;
}

/* True when the thresholds are numpy.allclose to 0, 1 / (n - 1), ..., 1. Keras then computes with these numbers. */
static bool are_even(const td_metric *metric, int count, bool ends)
{
    for (int i = 0; i < count; i++) {
        bool end = ends && (i == 0 || i == count - 1);
        double even = (double)((float)i / (float)(count - 1)), is = end ? even : (double)metric->thresholds[i - ends];
        if (fabs(is - even) > 1e-7 + 1e-5 * even)
            return false;
    }
    return count >= 3;
}

static tdi_buckets_attrs buckets_of(const td_metric *metric)
{
    static const float half = 0.5f;
    bool auc = metric->kind == TD_METRIC_AUC;
    tdi_buckets_attrs attrs = {.list = metric->thresholds, .thresholds = listed(metric) + (auc ? 2 : 0), .ends = auc};
    attrs.per_label = metric->num_labels > 0;
    if (metric->thresholds)
        attrs.how = are_even(metric, attrs.thresholds, auc) ? TDI_EVENLY : TDI_LISTED;
    else if (auc) {
        attrs.how = TDI_EVENLY;
        attrs.thresholds = metric->num_thresholds;
    } else {
        attrs.how = metric->kind == TD_METRIC_F1_SCORE && !metric->threshold.is_set ? TDI_TOP : TDI_LISTED;
        attrs.list = metric->threshold.is_set ? &metric->threshold.value : &half;
        attrs.thresholds = 1;
    }
    return attrs;
}

static int labels_of(const td_metric *metric)
{
    return metric->num_labels ? metric->num_labels : 1;
}

/* ---- resolved for an output ---- */

static td_status check_thresholds(const td_metric *metric, tdi_error *error)
{
    int count = listed(metric);
    if (metric->thresholds && !count)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "thresholds: none is listed");
    for (int i = 0; i < count; i++)
        if (!(metric->thresholds[i] >= 0 && metric->thresholds[i] <= 1))
            return tdi_fail(error, TD_INVALID_ARGUMENT, "thresholds: %g is not from 0 to 1",
                            (double)metric->thresholds[i]);
    return TD_OK;
}

static td_status check_classes(const td_shape *prediction, const char *what, tdi_error *error)
{
    if (prediction->rank == 1)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s needs one row of numbers a sample; the output has %d axes", what,
                    prediction->rank);
}

/* Refuses fields that belong to another of these metrics, and numbers that no enumerator has. */
static td_status check_fields(const td_metric *metric, tdi_error *error)
{
    bool auc = metric->kind == TD_METRIC_AUC, f1 = metric->kind == TD_METRIC_F1_SCORE;
    if (metric->num_labels && !auc && !f1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "num_labels is AUC's alone");
    if (metric->thresholds && f1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "F1Score has one threshold, not a list");
    if (metric->class_id.is_set && (auc || f1))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "class_id is Precision's and Recall's alone");
    if ((unsigned)metric->curve > TD_PRGAIN || (unsigned)metric->summation_method > TD_MAJORING ||
        (unsigned)metric->average > TD_WEIGHTED)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "curve, summation_method or average is none that there is");
    return TD_OK;
}

static td_status check_label_weights(const td_metric *metric, tdi_error *error)
{
    const float *weights = metric->label_weights;
    int count = 0;
    for (; weights && weights[count] != TD_LABEL_WEIGHTS_END; count++)
        if (!(weights[count] >= 0) || !isfinite(weights[count]))
            return tdi_fail(error, TD_INVALID_ARGUMENT, "label_weights: %g; numbers not below 0 were expected",
                            (double)weights[count]);
    if (!weights || count == metric->num_labels)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "label_weights: %d numbers, but the output has %d labels", count,
                    metric->num_labels);
}

static td_status resolve_auc(td_metric *metric, const td_shape *prediction, tdi_error *error)
{
    if (metric->thresholds)
        metric->num_thresholds = listed(metric) + 2;
    if (metric->num_thresholds < 2)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "num_thresholds is %d and must be above 1", metric->num_thresholds);
    if (metric->multi_label != TD_YES && (metric->num_labels || metric->label_weights))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s goes with multi_label alone",
                        metric->num_labels ? "num_labels" : "label_weights");
    if (metric->multi_label != TD_YES)
        return TD_OK;
    TDI_TRY(check_classes(prediction, "multi_label", error));
    if (metric->num_labels && metric->num_labels != prediction->dim[0])
        return tdi_fail(error, TD_INVALID_ARGUMENT, "num_labels is %d, but the output has %lld numbers",
                        metric->num_labels, (long long)prediction->dim[0]);
    metric->num_labels = (int)prediction->dim[0];
    return check_label_weights(metric, error);
}

static td_status resolve_f1(td_metric *metric, const td_shape *prediction, tdi_error *error)
{
    float threshold = metric->threshold.value;
    if (metric->threshold.is_set && !(threshold > 0 && threshold <= 1))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "the threshold is %g and must be above 0 and at most 1",
                        (double)threshold);
    TDI_TRY(check_classes(prediction, "it", error));
    metric->num_labels = metric->average == TD_MICRO ? 0 : (int)prediction->dim[0];
    return TD_OK;
}

td_status tdi_thresholds_resolve(td_metric *metric, const td_shape *prediction, tdi_error *error)
{
    TDI_TRY(check_thresholds(metric, error));
    TDI_TRY(check_fields(metric, error));
    if (metric->kind == TD_METRIC_AUC)
        TDI_TRY(resolve_auc(metric, prediction, error));
    if (metric->kind == TD_METRIC_F1_SCORE)
        TDI_TRY(resolve_f1(metric, prediction, error));
    int64_t thresholds = buckets_of(metric).thresholds, labels = labels_of(metric);
    if ((thresholds + 1) * labels > TDI_MOST_BUCKETS)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%lld thresholds of %lld labels are more than %d",
                        (long long)thresholds, (long long)labels, TDI_MOST_BUCKETS);
    return TD_OK;
}

/* ---- sums ---- */

static tdi_node *one_class(tdi_graph *graph, const td_metric *metric, tdi_node *x)
{
    if (!metric->class_id.is_set)
        return x;
    return tdi_slice(graph, x, x->shape.rank - 1, (int64_t)metric->class_id.value, 1);
}

tdi_node *tdi_thresholds_emit(tdi_graph *graph, const td_metric *metric, tdi_node *prediction)
{
    tdi_buckets_attrs attrs = buckets_of(metric);
    if (metric->from_logits == TD_YES)
        prediction = tdi_unary(graph, prediction, TD_SIGMOID);
    return tdi_buckets(graph, one_class(graph, metric, prediction), &attrs);
}

int tdi_thresholds_accumulators(const td_metric *metric)
{
    return (buckets_of(metric).thresholds + 1) * labels_of(metric);
}

/* Precision, Recall and AUC take a target as true or false; F1Score takes it as it is. */
void tdi_thresholds_accumulate(tdi_graph *graph, const td_metric *metric, tdi_node *buckets, tdi_node *target,
                               tdi_node *weights, int slot)
{
    tdi_bucket_sums_attrs attrs = {tdi_thresholds_accumulators(metric), metric->kind != TD_METRIC_F1_SCORE};
    tdi_bucket_sums(graph, buckets, one_class(graph, metric, target), weights, &attrs, slot);
}

/* ---- results ---- */

/* Counts above a threshold (tp, fp) and in all. */
typedef struct tally {
    double tp, fp;
    double positives, negatives;
} tally;

static void add_bucket(double *positives, double *negatives, const double *sum)
{
    *positives += sum[0];
    *negatives += sum[1] - sum[0];
}

/* tp and fp over the buckets [first, count), the rest over all `count` buckets. */
static tally tally_from(const double *sums, int first, int count)
{
    tally t = {0};
    for (int b = 0; b < count; b++) {
        add_bucket(&t.positives, &t.negatives, sums + 2 * b);
        if (b >= first)
            add_bucket(&t.tp, &t.fp, sums + 2 * b);
    }
    return t;
}

static double ratio(double numerator, double denominator)
{
    return denominator > 0 ? numerator / denominator : 0;
}

static double positives_result(const td_metric *metric, const double *sums, int which)
{
    tdi_buckets_attrs attrs = buckets_of(metric);
    int first = 0; /* the first bucket above the threshold: the number of thresholds that are not larger */
    for (int i = 0; i < attrs.thresholds; i++)
        first += attrs.list[i] <= attrs.list[which];
    tally t = tally_from(sums, first, attrs.thresholds + 1);
    return ratio(t.tp, metric->kind == TD_METRIC_PRECISION ? t.tp + t.fp : t.positives);
}

/* Keras adds 1e-7 to every divisor. */
static double f1(const tally *t)
{
    double precision = t->tp / (t->tp + t->fp + 1e-7), recall = t->tp / (t->positives + 1e-7);
    return 2 * precision * recall / (precision + recall + 1e-7);
}

static double f1_result(const td_metric *metric, const double *sums, int which)
{
    int labels = labels_of(metric);
    double sum = 0, weights = 0, weighted = 0;
    for (int l = 0; l < labels; l++) {
        tally t = tally_from(sums + 4 * l, 1, 2);
        if (metric->average == TD_NO_AVERAGE && l == which)
            return f1(&t);
        sum += f1(&t);
        weights += t.positives;
        weighted += t.positives * f1(&t);
    }
    return metric->average == TD_WEIGHTED ? weighted / (weights + 1e-7) : sum / labels;
}

/* ---- areas ---- */

/* Keras's definition, which has a value where no score is above the threshold too. */
static void precision_recall_gain(const tally *t, double *x, double *y)
{
    double scale = ratio(t->positives, t->negatives), fn = t->positives - t->tp;
    *x = t->tp > 0 ? fmax(1 - scale * fn / t->tp, 0) : 0;
    *y = t->tp > 0 ? 1 - scale * t->fp / t->tp : 1;
}

static void point(const td_metric *metric, const tally *t, double *x, double *y)
{
    double recall = ratio(t->tp, t->positives);
    *x = metric->curve == TD_ROC ? ratio(t->fp, t->negatives) : recall;
    *y = metric->curve == TD_ROC ? recall : ratio(t->tp, t->tp + t->fp);
    if (metric->curve == TD_PRGAIN)
        precision_recall_gain(t, x, y);
}

/* Davis & Goadrich (2006): between two thresholds TP and FP are linear, precision is not. */
static double interpolated_precision(const tally *low, const tally *high)
{
    double all_low = low->tp + low->fp, all_high = high->tp + high->fp, dtp = low->tp - high->tp;
    double slope = ratio(dtp, all_low - all_high), intercept = high->tp - slope * all_high;
    double between = all_low > 0 && all_high > 0 ? log(all_low / all_high) : 0;
    return ratio(slope * (dtp + intercept * between), low->positives);
}

/* The area under the curve between two neighbouring thresholds. */
static double area_between(const td_metric *metric, const tally *low, const tally *high)
{
    double x[2], y[2];
    if (metric->curve == TD_PR && metric->summation_method == TD_INTERPOLATION)
        return interpolated_precision(low, high);
    point(metric, low, &x[0], &y[0]);
    point(metric, high, &x[1], &y[1]);
    double height = metric->summation_method == TD_INTERPOLATION ? (y[0] + y[1]) / 2
                    : metric->summation_method == TD_MINORING    ? fmin(y[0], y[1])
                                                                 : fmax(y[0], y[1]);
    return (x[0] - x[1]) * height;
}

static double area(const td_metric *metric, const double *sums)
{
    int thresholds = metric->num_thresholds;
    tally high = tally_from(sums, thresholds, thresholds + 1);
    double all = 0;
    for (int i = thresholds - 1; i > 0; i--) {
        tally low = high;
        add_bucket(&low.tp, &low.fp, sums + 2 * i);
        all += area_between(metric, &low, &high);
        high = low;
    }
    return all;
}

static double auc_result(const td_metric *metric, const double *sums)
{
    double sum = 0, weights = 0;
    int labels = labels_of(metric);
    for (int l = 0; l < labels; l++) {
        double weight = metric->label_weights ? (double)metric->label_weights[l] : 1;
        sum += weight * area(metric, sums + 2 * l * (metric->num_thresholds + 1));
        weights += weight;
    }
    return ratio(sum, weights);
}

int tdi_thresholds_results(const td_metric *metric)
{
    if (metric->kind == TD_METRIC_F1_SCORE)
        return metric->average == TD_NO_AVERAGE ? labels_of(metric) : 1;
    return metric->kind == TD_METRIC_AUC || !metric->thresholds ? 1 : listed(metric);
}

double tdi_thresholds_result(const td_metric *metric, const double *sums, int which)
{
    switch (metric->kind) {
    case TD_METRIC_AUC:
        return auc_result(metric, sums);
    case TD_METRIC_F1_SCORE:
        return f1_result(metric, sums, which);
    default:
        return positives_result(metric, sums, which);
    }
}
