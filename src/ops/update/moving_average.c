/* moving_average.c - Keras's use_ema: after each step average = momentum * average + (1 - momentum) * weight. The first
 * average is the weight, and every `overwrite_frequency` updates the weight takes over the average. With accumulated
 * gradients, steps that update nothing count as part of the update that follows them, as in Keras. */
#include "ops/update/optimizer.h"

static td_status moving_average_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    return tdi_want_shape(node, 1, &node->shape, error);
}

static void moving_average_numbers(const void *attributes, tdi_control *control)
{
    const tdi_moving_average_attrs *attrs = attributes;
    int64_t frequency = attrs->overwrite_frequency;
    control->optimizer.average = control->iteration ? attrs->momentum : 0.0f;
    control->optimizer.overwrite = frequency && (control->iteration + 1) % frequency == 0;
}

static void moving_average_reference(const tdi_call *call)
{
    const tdi_optimizer_numbers *n = tdi_optimizer_of(call);
    const float *weight = call->in[0].data;
    float *average = call->in[1].data, *out = call->out.data;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = runs.first + r * runs.stride, end = i + runs.length; i < end; i++) {
            average[i] = n->average * average[i] + (1.0f - n->average) * weight[i];
            out[i] = n->overwrite ? average[i] : weight[i];
        }
}

static double moving_average_flops(const tdi_call *call)
{
    return 3.0 * (double)tdi_shape_elements(&call->out.shape);
}

static void moving_average_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "momentum %g", (double)((const tdi_moving_average_attrs *)node->attrs)->momentum);
}

const tdi_op tdi_op_moving_average = {.name = "moving_average",
                                      .min_in = 2,
                                      .max_in = 2,
                                      .attrs_size = sizeof(tdi_moving_average_attrs),
                                      .infer = moving_average_infer,
                                      .no_gradient = "it is part of an update",
                                      .reference = moving_average_reference,
                                      .numbers = moving_average_numbers,
                                      .flops = moving_average_flops,
                                      .reads = tdi_reads_same,
                                      .in_place = 1,
                                      .describe = moving_average_describe};

tdi_node *tdi_moving_average(tdi_graph *graph, tdi_node *weight, tdi_node *average,
                             const tdi_moving_average_attrs *attrs)
{
    tdi_node *node = tdi_node_create(graph, &tdi_op_moving_average, attrs, 2, (tdi_node *[]){weight, average});
    if (node) {
        node->home = TDI_HOME_VARIABLE;
        node->variable = weight->variable;
        node->update_phase = node->effect = true;
    }
    return node;
}
