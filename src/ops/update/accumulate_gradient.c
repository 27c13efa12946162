/* accumulate_gradient.c - Keras's gradient_accumulation_steps. Of each `steps` steps all but the last add their
 * gradient to the accumulator and update nothing (control->skip); the last gives the mean and clears the accumulator.
 */
#include "ops/update/optimizer.h"

static td_status accumulate_gradient_infer(tdi_node *node, tdi_error *error)
{
    TDI_TRY(tdi_want_floats(node, error));
    node->shape = node->in[0]->shape;
    node->dtype = TD_FLOAT32;
    return tdi_want_shape(node, 1, &node->shape, error);
}

static void accumulate_gradient_reference(const tdi_call *call)
{
    const float *gradient = call->in[0].data;
    float *sum = call->in[1].data, *out = call->out.data;
    float steps = (float)((const tdi_accumulate_gradient_attrs *)call->attrs)->steps;
    bool skip = call->control->skip;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = runs.first + r * runs.stride, end = i + runs.length; i < end; i++) {
            float all = gradient[i] + sum[i];
            sum[i] = skip ? all : 0.0f;
            out[i] = all / steps;
        }
}

static double accumulate_gradient_flops(const tdi_call *call)
{
    return 2.0 * (double)tdi_shape_elements(&call->out.shape);
}

static void accumulate_gradient_describe(const tdi_node *node, char *text, size_t size)
{
    snprintf(text, size, "of %d steps", ((const tdi_accumulate_gradient_attrs *)node->attrs)->steps);
}

const tdi_op tdi_op_accumulate_gradient = {.name = "accumulate_gradient",
                                           .min_in = 2,
                                           .max_in = 2,
                                           .attrs_size = sizeof(tdi_accumulate_gradient_attrs),
                                           .infer = accumulate_gradient_infer,
                                           .no_gradient = "it is part of an update",
                                           .reference = accumulate_gradient_reference,
                                           .flops = accumulate_gradient_flops,
                                           .reads = tdi_reads_same,
                                           .in_place = 1,
                                           .describe = accumulate_gradient_describe};

tdi_node *tdi_accumulate_gradient(tdi_graph *graph, tdi_node *gradient, tdi_node *accumulator, int steps,
                                  tdi_variable *variable)
{
    tdi_node *in[] = {gradient, accumulator};
    return tdi_reduced_gradient(
        tdi_node_create(graph, &tdi_op_accumulate_gradient, &(tdi_accumulate_gradient_attrs){steps}, 2, in), variable);
}
