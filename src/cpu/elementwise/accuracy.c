/* accuracy.c - accuracies, and weights of positions. Threads share the rows, so that none waits for another before a
 * metric. */
#include "cpu/kernels.h"
#include "ops/op_helpers.h"

/* The predictions that a call judges: rows [begin, end) of `width` numbers each. */
typedef struct judged {
    int64_t begin, end, width;
} judged;

static judged rows_of(const tdi_call *call)
{
    int64_t rows = tdi_shape_elements(&call->out.shape), width = tdi_last_extent(&call->in[0].shape);
    if (call->split != TDI_ROWS)
        return (judged){0, rows, width};
    int64_t inner = rows / call->out.shape.dim[0];
    return (judged){call->begin * inner, call->end * inner, width};
}

static void sparse_categorical_accuracy_run(const tdi_call *call)
{
    const float *prediction = call->in[0].data;
    const int32_t *labels = call->in[1].data;
    judged j = rows_of(call);
    for (int64_t r = j.begin; r < j.end; r++)
        ((float *)call->out.data)[r] = tdi_argmax(prediction + r * j.width, j.width) == labels[r];
}

static void categorical_accuracy_run(const tdi_call *call)
{
    const float *prediction = call->in[0].data, *targets = call->in[1].data;
    judged j = rows_of(call);
    for (int64_t r = j.begin; r < j.end; r++)
        ((float *)call->out.data)[r] =
            tdi_argmax(prediction + r * j.width, j.width) == tdi_argmax(targets + r * j.width, j.width);
}

static void binary_accuracy_run(const tdi_call *call)
{
    const float *prediction = call->in[0].data, *targets = call->in[1].data;
    float threshold = ((const tdi_binary_accuracy_attrs *)call->attrs)->threshold;
    judged j = rows_of(call);
    for (int64_t r = j.begin; r < j.end; r++) {
        int64_t right = 0;
        for (int64_t i = r * j.width; i < (r + 1) * j.width; i++)
            right += (float)(prediction[i] > threshold) == targets[i];
        ((float *)call->out.data)[r] = (float)right / (float)j.width;
    }
}

static void in_top_k_run(const tdi_call *call)
{
    judged j = rows_of(call);
    for (int64_t r = j.begin; r < j.end; r++)
        ((float *)call->out.data)[r] = tdi_is_in_top_k(call, r);
}

static void class_pairs_run(const tdi_call *call)
{
    judged j = rows_of(call);
    for (int64_t r = j.begin; r < j.end; r++)
        ((float *)call->out.data)[r] = (float)tdi_class_pair(call, r);
}

static void buckets_run(const tdi_call *call)
{
    judged j = rows_of(call);
    tdi_fill_buckets(call, j.begin / j.width, j.end / j.width);
}

/* Calls `fill` on this thread's positions of the result. */
static void fill_positions(const tdi_call *call, void (*fill)(const tdi_call *call, int64_t begin, int64_t end))
{
    int64_t rows = call->out.shape.dim[0], count = tdi_shape_elements(&call->out.shape);
    int64_t inner = rows ? count / rows : 0;
    bool split = call->split == TDI_ROWS;
    fill(call, split ? call->begin * inner : 0, split ? call->end * inner : count);
}

static void valid_weights_run(const tdi_call *call)
{
    fill_positions(call, tdi_valid_weights_of);
}

static void class_weights_run(const tdi_call *call)
{
    fill_positions(call, tdi_class_weights_of);
}

#define ACCURACY(stem)                                                                                                 \
    const tdi_kernel tdi_cpu_##stem = {                                                                                \
        .name = "cpu " #stem, .op = &tdi_op_##stem, .splits = TDI_CAN_ROWS, .run = stem##_run};
ACCURACY(sparse_categorical_accuracy)
ACCURACY(categorical_accuracy)
ACCURACY(binary_accuracy)
ACCURACY(in_top_k)
ACCURACY(class_pairs)
ACCURACY(buckets)
ACCURACY(valid_weights)
ACCURACY(class_weights)
