/* confusion.c - which class was taken for which, and how often. */
#include "ops/common.h"

static const char why_no_gradient[] = "it is a metric";

static td_status pairs_infer(tdi_node *node, tdi_error *error)
{
    bool numbers = node->in[1]->dtype == TD_INT32;
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    TDI_TRY(tdi_want_dtype(node, 1, numbers ? TD_INT32 : TD_FLOAT32, error));
    if (tdi_last_extent(&node->in[0]->shape) > TDI_MOST_CLASSES)
        return tdi_fail(error, TD_UNSUPPORTED, "a confusion of %lld classes; at most %d are possible",
                        (long long)tdi_last_extent(&node->in[0]->shape), TDI_MOST_CLASSES);
    node->shape = tdi_without_last(&node->in[0]->shape);
    node->dtype = TD_FLOAT32;
    return tdi_want_shape(node, 1, numbers ? &node->shape : &node->in[0]->shape, error);
}

static int64_t class_of(const float *x, int64_t width, float threshold)
{
    return width == 1 ? x[0] > threshold : tdi_argmax(x, width);
}

int64_t tdi_class_pair(const tdi_call *call, int64_t position)
{
    float threshold = ((const tdi_class_pairs_attrs *)call->attrs)->threshold;
    int64_t width = tdi_last_extent(&call->in[0].shape), classes = width == 1 ? 2 : width;
    const float *prediction = (const float *)call->in[0].data + position * width;
    int64_t actual = call->in[1].dtype == TD_INT32
                         ? ((const int32_t *)call->in[1].data)[position]
                         : class_of((const float *)call->in[1].data + position * width, width, 0.5f);
    if (actual < 0 || actual >= classes)
        return -1;
    return actual * classes + class_of(prediction, width, threshold);
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
    return tdi_want_dtype(node, 0, TD_FLOAT32, error);
}

static void count_reference(const tdi_call *call)
{
    const float *pairs = call->in[0].data;
    double *counts = call->out.data;
    int64_t count = tdi_shape_elements(&call->in[0].shape);
    for (int64_t i = 0; i < count; i++)
        if (pairs[i] >= 0)
            counts[(int64_t)pairs[i]]++;
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
                                   .max_in = 1,
                                   .attrs_size = sizeof(tdi_count_pairs_attrs),
                                   .infer = count_infer,
                                   .no_gradient = why_no_gradient,
                                   .reference = count_reference,
                                   .flops = tdi_flops_per_input};

tdi_node *tdi_class_pairs(tdi_graph *graph, tdi_node *prediction, tdi_node *target, float threshold)
{
    return tdi_node_create(graph, &tdi_op_class_pairs, &(tdi_class_pairs_attrs){threshold}, 2,
                           (tdi_node *[]){prediction, target});
}

tdi_node *tdi_count_pairs(tdi_graph *graph, tdi_node *pairs, int classes, int slot)
{
    tdi_node *node = tdi_node_create(graph, &tdi_op_count_pairs, &(tdi_count_pairs_attrs){classes}, 1, &pairs);
    if (node) {
        node->home = TDI_HOME_METRIC;
        node->slot = slot;
        node->effect = true;
    }
    return node;
}
