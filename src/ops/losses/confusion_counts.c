/* confusion_counts.c - a confusion matrix: pairs of actual and predicted classes, and how often each occurs. It is
 * counted in a mode of its own, so that an ordinary evaluation does not pay for it. */
#include "ops/op_helpers.h"

static const char why_no_gradient[] = "it is a metric";

static int64_t classes_of_row(const tdi_node *node, int i, tdi_reading how)
{
    const td_shape *shape = &node->in[i]->shape;
    bool largest = how == TDI_LARGEST && node->in[i]->dtype == TD_FLOAT32;
    return tdi_shape_per_row(shape) / (largest ? tdi_last_extent(shape) : 1);
}

static td_status pairs_infer(tdi_node *node, tdi_error *error)
{
    const tdi_class_pairs_attrs *attrs = node->attrs;
    bool numbers = node->in[1]->dtype == TD_INT32;
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    TDI_TRY(tdi_want_dtype(node, 1, numbers ? TD_INT32 : TD_FLOAT32, error));
    if (attrs->classes > TDI_MOST_CLASSES)
        return tdi_fail(error, TD_UNSUPPORTED, "a confusion of %d classes; at most %d are possible", attrs->classes,
                        TDI_MOST_CLASSES);
    if (classes_of_row(node, 0, attrs->predicted) != classes_of_row(node, 1, attrs->actual))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "input 1 is %s, which has not a class for each that %s predicts",
                        TDI_TEXT(&node->in[1]->shape), TDI_TEXT(&node->in[0]->shape));
    node->shape = attrs->predicted == TDI_LARGEST ? tdi_without_last(&node->in[0]->shape) : node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static int64_t whole_number(float x)
{
    return x > -1 && x < (float)TDI_MOST_LABEL ? (int64_t)x : -1;
}

static int64_t class_at(const tdi_value *value, int64_t position, tdi_reading how, float threshold)
{
    const float *x = value->data;
    int64_t width = tdi_last_extent(&value->shape);
    if (value->dtype == TD_INT32)
        return ((const int32_t *)value->data)[position];
    switch (how) {
    case TDI_LARGEST:
        return tdi_argmax(x + position * width, width);
    case TDI_NUMBER:
        return whole_number(x[position]);
    case TDI_ABOVE:
        return x[position] > threshold;
    default:
        return x[position] >= threshold;
    }
}

int64_t tdi_class_pair(const tdi_call *call, int64_t position)
{
    const tdi_class_pairs_attrs *attrs = call->attrs;
    int64_t actual = class_at(&call->in[1], position, attrs->actual, 0.5f);
    if (actual < 0 || actual >= attrs->classes || tdi_ignores(&attrs->ignore, (int32_t)actual))
        return -1;
    int64_t predicted = class_at(&call->in[0], position, attrs->predicted, attrs->threshold);
    return predicted >= 0 && predicted < attrs->classes ? actual * attrs->classes + predicted : -1;
}

static void pairs_reference(const tdi_call *call)
{
    int64_t count = tdi_shape_elements(&call->out.shape);
    for (int64_t i = 0; i < count; i++)
        ((float *)call->out.data)[i] = (float)tdi_class_pair(call, i);
}

static td_status count_infer(tdi_node *node, tdi_error *error)
{
    int64_t classes = ((const tdi_count_pairs_attrs *)node->attrs)->classes;
    node->shape = (td_shape){.rank = 2, .dim = {classes, classes}};
    node->dtype = TD_FLOAT64;
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    return tdi_want_weights(node, 1, error);
}

static void count_reference(const tdi_call *call)
{
    const float *pairs = call->in[0].data;
    double *counts = call->out.data;
    const float *weights = call->n_in > 1 ? call->in[1].data : NULL;
    bool whole = ((const tdi_count_pairs_attrs *)call->attrs)->whole;
    int64_t count = tdi_shape_elements(&call->in[0].shape), each = weights ? tdi_elements_per_weight(call, 1) : 1;
    for (int64_t i = 0; i < count; i++) {
        double weight = weights ? (double)weights[i / each] : 1;
        if (pairs[i] >= 0)
            counts[(int64_t)pairs[i]] += whole ? trunc(weight) : weight;
    }
}

const tdi_op tdi_op_class_pairs = {.name = "class_pairs",
                                   .min_in = 2,
                                   .max_in = 2,
                                   .attrs_size = sizeof(tdi_class_pairs_attrs),
                                   .infer = pairs_infer,
                                   .no_gradient = why_no_gradient,
                                   .reference = pairs_reference,
                                   .flops = tdi_flops_per_input,
                                   .reads = tdi_reads_rows};

const tdi_op tdi_op_count_pairs = {.name = "count_pairs",
                                   .min_in = 1,
                                   .max_in = 2,
                                   .attrs_size = sizeof(tdi_count_pairs_attrs),
                                   .infer = count_infer,
                                   .no_gradient = why_no_gradient,
                                   .reference = count_reference,
                                   .flops = tdi_flops_per_input};

tdi_node *tdi_class_pairs(tdi_graph *graph, tdi_node *prediction, tdi_node *target, const tdi_class_pairs_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_class_pairs, attrs, 2, (tdi_node *[]){prediction, target});
}

tdi_node *tdi_count_pairs(tdi_graph *graph, tdi_node *pairs, tdi_node *weights, const tdi_count_pairs_attrs *attrs,
                          int slot)
{
    tdi_node *node =
        tdi_node_create(graph, &tdi_op_count_pairs, attrs, weights ? 2 : 1, (tdi_node *[]){pairs, weights});
    if (node) {
        node->home = TDI_HOME_METRIC;
        node->slot = slot;
        node->effect = true;
    }
    return node;
}
