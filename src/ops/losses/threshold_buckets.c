/* threshold_buckets.c - how many thresholds a prediction is above (its bucket), and sums of targets for each bucket.
 * The metrics AUC, F1Score, Precision and Recall are computed from these (keras/src/metrics/metrics_utils.py,
 * update_confusion_matrix_variables). */
#include <math.h>

#include "ops/op_helpers.h"

static const char why_no_gradient[] = "it is a metric";

static td_status buckets_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

/* Keras puts the first and the last of thresholds from 0 to 1 a little outside. */
static int above_listed(const tdi_buckets_attrs *attrs, float x)
{
    int count = attrs->ends && x > -1e-7f, inner = attrs->thresholds - (attrs->ends ? 2 : 0);
    for (int i = 0; i < inner; i++)
        count += x > attrs->list[i];
    return count + (attrs->ends && x > 1 + 1e-7f);
}

static int above_even(const tdi_buckets_attrs *attrs, float x)
{
    float inside = x > 0 ? (x < 1 ? x : 1) : 0;
    int count = (int)ceilf(inside * (float)(attrs->thresholds - 1));
    return attrs->ends && count < 1 && !isnan(x) ? 1 : count;
}

static int bucket_of(const tdi_buckets_attrs *attrs, float x, float largest)
{
    switch (attrs->how) {
    case TDI_EVENLY:
        return above_even(attrs, x);
    case TDI_TOP:
        return x >= largest && fabsf(x) > 1e-9f;
    default:
        return above_listed(attrs, x);
    }
}

void tdi_fill_buckets(const tdi_call *call, int64_t begin, int64_t end)
{
    const tdi_buckets_attrs *attrs = call->attrs;
    int64_t width = tdi_last_extent(&call->in[0].shape), label = attrs->per_label ? attrs->thresholds + 1 : 0;
    for (int64_t r = begin; r < end; r++) {
        const float *row = (const float *)call->in[0].data + r * width;
        float largest = attrs->how == TDI_TOP ? row[tdi_argmax(row, width)] : 0;
        for (int64_t i = 0; i < width; i++)
            ((float *)call->out.data)[r * width + i] = (float)(i * label + bucket_of(attrs, row[i], largest));
    }
}

static void buckets_reference(const tdi_call *call)
{
    const td_shape *shape = &call->in[0].shape;
    tdi_fill_buckets(call, 0, tdi_shape_elements(shape) / tdi_last_extent(shape));
}

static td_status sums_infer(tdi_node *node, tdi_error *error)
{
    const tdi_bucket_sums_attrs *attrs = node->attrs;
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    TDI_TRY(tdi_want_dtype(node, 1, TD_FLOAT32, error));
    if (tdi_shape_per_row(&node->in[0]->shape) != tdi_shape_per_row(&node->in[1]->shape))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "input 1 is %s, which has not a number for each of %s",
                        TDI_TEXT(&node->in[1]->shape), TDI_TEXT(&node->in[0]->shape));
    node->shape = (td_shape){.rank = 2, .dim = {attrs->buckets, 2}};
    node->dtype = TD_FLOAT64;
    return tdi_want_weights(node, 2, error);
}

static void sums_reference(const tdi_call *call)
{
    const tdi_bucket_sums_attrs *attrs = call->attrs;
    const float *buckets = call->in[0].data, *targets = call->in[1].data;
    const float *weights = call->n_in > 2 ? call->in[2].data : NULL;
    int64_t count = tdi_shape_elements(&call->in[0].shape), each = weights ? tdi_elements_per_weight(call, 2) : 1;
    for (int64_t i = 0; i < count; i++) {
        double *sum = (double *)call->out.data + 2 * (int64_t)buckets[i];
        double weight = weights ? (double)weights[i / each] : 1, target = (double)targets[i];
        sum[0] += weight * (attrs->truth ? target != 0 : target);
        sum[1] += weight;
    }
}

const tdi_op tdi_op_buckets = {.name = "buckets",
                               .min_in = 1,
                               .max_in = 1,
                               .attrs_size = sizeof(tdi_buckets_attrs),
                               .infer = buckets_infer,
                               .no_gradient = why_no_gradient,
                               .reference = buckets_reference,
                               .flops = tdi_flops_per_input,
                               .reads = tdi_reads_rows};

const tdi_op tdi_op_bucket_sums = {.name = "bucket_sums",
                                   .min_in = 2,
                                   .max_in = 3,
                                   .attrs_size = sizeof(tdi_bucket_sums_attrs),
                                   .infer = sums_infer,
                                   .no_gradient = why_no_gradient,
                                   .reference = sums_reference,
                                   .flops = tdi_flops_per_input};

tdi_node *tdi_buckets(tdi_graph *graph, tdi_node *prediction, const tdi_buckets_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_buckets, attrs, 1, &prediction);
}

tdi_node *tdi_bucket_sums(tdi_graph *graph, tdi_node *buckets, tdi_node *target, tdi_node *weights,
                          const tdi_bucket_sums_attrs *attrs, int slot)
{
    tdi_node *node =
        tdi_node_create(graph, &tdi_op_bucket_sums, attrs, weights ? 3 : 2, (tdi_node *[]){buckets, target, weights});
    if (node) {
        node->home = TDI_HOME_METRIC;
        node->slot = slot;
        node->effect = true;
    }
    return node;
}
