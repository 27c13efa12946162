/* class_weights.c - the weight of each position's class, as Keras's class_weight gives it to a sample
 * (keras/src/trainers/data_adapters/data_adapter_utils.py, class_weight_to_sample_weights). A target is a class number,
 * or a row of the last axis whose largest number is the class's, or the only one of its row, rounded. */
#include <math.h>

#include "ops/op_helpers.h"

static td_status weights_infer(tdi_node *node, tdi_error *error)
{
    bool numbers = node->in[0]->dtype == TD_INT32;
    TDI_TRY(tdi_want_dtype(node, 0, numbers ? TD_INT32 : TD_FLOAT32, error));
    if (!tdi_shape_has_batch(&node->in[0]->shape))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "of %s, which has no batch", TDI_TEXT(&node->in[0]->shape));
    if (!numbers)
        TDI_TRY(tdi_want_last_axis(node, 0, error));
    node->shape = numbers ? node->in[0]->shape : tdi_without_last(&node->in[0]->shape);
    node->dtype = TD_FLOAT32;
    return TD_OK;
}

static int64_t class_of(const tdi_value *target, int64_t position)
{
    int64_t width = tdi_last_extent(&target->shape);
    if (target->dtype == TD_INT32)
        return ((const int32_t *)target->data)[position];
    const float *row = (const float *)target->data + position * width;
    if (width > 1)
        return tdi_argmax(row, width);
    return fabsf(*row) < (float)TDI_MOST_LABEL ? (int64_t)rintf(*row) : -1;
}

void tdi_class_weights_of(const tdi_call *call, int64_t begin, int64_t end)
{
    const tdi_class_weights_attrs *attrs = call->attrs;
    for (int64_t i = begin; i < end; i++) {
        int64_t class = class_of(&call->in[0], i);
        ((float *)call->out.data)[i] = class >= 0 && class < attrs->count ? attrs->weights[class] : 1;
    }
}

static void weights_reference(const tdi_call *call)
{
    tdi_class_weights_of(call, 0, tdi_shape_elements(&call->out.shape));
}

static tdi_split weights_reads(const tdi_node *node, int i, tdi_split split)
{
    (void)node;
    (void)i;
    return split == TDI_ROWS ? TDI_ROWS : TDI_WHOLE;
}

const tdi_op tdi_op_class_weights = {.name = "class_weights",
                                     .min_in = 1,
                                     .max_in = 1,
                                     .attrs_size = sizeof(tdi_class_weights_attrs),
                                     .infer = weights_infer,
                                     .no_gradient = "targets are data",
                                     .reference = weights_reference,
                                     .flops = tdi_flops_per_input,
                                     .reads = weights_reads};

tdi_node *tdi_class_weights(tdi_graph *graph, tdi_node *target, const tdi_class_weights_attrs *attrs)
{
    return tdi_node_create(graph, &tdi_op_class_weights, attrs, 1, &target);
}
