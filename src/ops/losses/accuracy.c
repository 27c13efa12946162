/* accuracy.c - 1 where a prediction is right: by class number, by distribution, or by threshold. */
#include "ops/op_helpers.h"

static const char why_no_gradient[] = "it is constant almost everywhere";

static td_status sparse_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_dtype(node, 0, TD_FLOAT32, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    TDI_TRY(tdi_want_dtype(node, 1, TD_INT32, error));
    node->shape = tdi_without_last(&node->in[0]->shape);
    node->dtype = TD_FLOAT32;
    return tdi_want_shape(node, 1, &node->shape, error);
}

static td_status dense_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    TDI_TRY(tdi_want_last_axis(node, 0, error));
    node->shape = tdi_without_last(&node->in[0]->shape);
    node->dtype = TD_FLOAT32;
    return tdi_want_shape(node, 1, &node->in[0]->shape, error);
}

static void sparse_reference(const tdi_call *call)
{
    const float *prediction = call->in[0].data;
    const int32_t *labels = call->in[1].data;
    float *out = call->out.data;
    int64_t rows = tdi_shape_elements(&call->out.shape), classes = tdi_last_extent(&call->in[0].shape);
    for (int64_t r = 0; r < rows; r++)
        out[r] = tdi_argmax(prediction + r * classes, classes) == labels[r];
}

static void categorical_reference(const tdi_call *call)
{
    const float *prediction = call->in[0].data, *targets = call->in[1].data;
    float *out = call->out.data;
    int64_t rows = tdi_shape_elements(&call->out.shape), classes = tdi_last_extent(&call->in[0].shape);
    for (int64_t r = 0; r < rows; r++)
        out[r] = tdi_argmax(prediction + r * classes, classes) == tdi_argmax(targets + r * classes, classes);
}

static void binary_reference(const tdi_call *call)
{
    const float *prediction = call->in[0].data, *targets = call->in[1].data;
    float *out = call->out.data, threshold = ((const tdi_binary_accuracy_attrs *)call->attrs)->threshold;
    int64_t rows = tdi_shape_elements(&call->out.shape), width = tdi_last_extent(&call->in[0].shape);
    for (int64_t r = 0; r < rows; r++) {
        int64_t right = 0;
        for (int64_t i = r * width; i < (r + 1) * width; i++)
            right += (float)(prediction[i] > threshold) == targets[i];
        out[r] = (float)right / (float)width;
    }
}

static td_status top_k_infer(tdi_node *node, tdi_error *error)
{
    return node->in[1]->dtype == TD_INT32 ? sparse_infer(node, error) : dense_infer(node, error);
}

/* As in Keras, a prediction that is NaN is below all others. */
float tdi_is_in_top_k(const tdi_call *call, int64_t position)
{
    int64_t classes = tdi_last_extent(&call->in[0].shape), above = 0;
    const float *row = (const float *)call->in[0].data + position * classes;
    bool numbers = call->in[1].dtype == TD_INT32;
    int64_t actual = numbers ? ((const int32_t *)call->in[1].data)[position]
                             : tdi_argmax((const float *)call->in[1].data + position * classes, classes);
    if (actual < 0 || actual >= classes)
        return 0;
    float own = isnan(row[actual]) ? -INFINITY : row[actual];
    for (int64_t i = 0; i < classes; i++)
        above += row[i] > own;
    return above < ((const tdi_in_top_k_attrs *)call->attrs)->k;
}

static void top_k_reference(const tdi_call *call)
{
    int64_t count = tdi_shape_elements(&call->out.shape);
    for (int64_t i = 0; i < count; i++)
        ((float *)call->out.data)[i] = tdi_is_in_top_k(call, i);
}

static void top_k_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "k %d", ((const tdi_in_top_k_attrs *)node->attrs)->k);
}

static void binary_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "threshold %g", (double)((const tdi_binary_accuracy_attrs *)node->attrs)->threshold);
}

const tdi_op tdi_op_sparse_categorical_accuracy = {.name = "sparse_categorical_accuracy",
                                                   .min_in = 2,
                                                   .max_in = 2,
                                                   .infer = sparse_infer,
                                                   .no_gradient = why_no_gradient,
                                                   .reference = sparse_reference,
                                                   .flops = tdi_flops_per_input,
                                                   .reads = tdi_reads_rows};

const tdi_op tdi_op_categorical_accuracy = {.name = "categorical_accuracy",
                                            .min_in = 2,
                                            .max_in = 2,
                                            .infer = dense_infer,
                                            .no_gradient = why_no_gradient,
                                            .reference = categorical_reference,
                                            .flops = tdi_flops_per_input,
                                            .reads = tdi_reads_rows};

const tdi_op tdi_op_binary_accuracy = {.name = "binary_accuracy",
                                       .min_in = 2,
                                       .max_in = 2,
                                       .attrs_size = sizeof(tdi_binary_accuracy_attrs),
                                       .infer = dense_infer,
                                       .no_gradient = why_no_gradient,
                                       .reference = binary_reference,
                                       .flops = tdi_flops_per_input,
                                       .reads = tdi_reads_rows,
                                       .describe = binary_describe};

const tdi_op tdi_op_in_top_k = {.name = "in_top_k",
                                .min_in = 2,
                                .max_in = 2,
                                .attrs_size = sizeof(tdi_in_top_k_attrs),
                                .infer = top_k_infer,
                                .no_gradient = why_no_gradient,
                                .reference = top_k_reference,
                                .flops = tdi_flops_per_input,
                                .reads = tdi_reads_rows,
                                .describe = top_k_describe};

tdi_node *tdi_sparse_categorical_accuracy(tdi_graph *graph, tdi_node *prediction, tdi_node *labels)
{
    return tdi_node_create(graph, &tdi_op_sparse_categorical_accuracy, NULL, 2, (tdi_node *[]){prediction, labels});
}

tdi_node *tdi_categorical_accuracy(tdi_graph *graph, tdi_node *prediction, tdi_node *targets)
{
    return tdi_node_create(graph, &tdi_op_categorical_accuracy, NULL, 2, (tdi_node *[]){prediction, targets});
}

tdi_node *tdi_binary_accuracy(tdi_graph *graph, tdi_node *prediction, tdi_node *targets, float threshold)
{
    return tdi_node_create(graph, &tdi_op_binary_accuracy, &(tdi_binary_accuracy_attrs){threshold}, 2,
                           (tdi_node *[]){prediction, targets});
}

tdi_node *tdi_in_top_k(tdi_graph *graph, tdi_node *prediction, tdi_node *target, int k)
{
    return tdi_node_create(graph, &tdi_op_in_top_k, &(tdi_in_top_k_attrs){k}, 2, (tdi_node *[]){prediction, target});
}
