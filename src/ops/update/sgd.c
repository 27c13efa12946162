/* sgd.c - with momentum v = momentum * v - lr * g and w += v, or with Nesterov w += momentum * v - lr * g; without
 * momentum w -= lr * g. The velocity contains the learning rate, as in Keras. */
#include "ops/update/optimizer.h"

static td_status sgd_infer(tdi_node *node, tdi_error *error)
{
    const tdi_optimizer_attrs *attrs = node->attrs;
    int slots = attrs->momentum != 0.0f ? 1 : 0;
    if (node->n_in != 2 + slots)
        return tdi_fail(error, TD_INTERNAL, "momentum %g needs %d slots, not %d", (double)attrs->momentum, slots,
                        node->n_in - 2);
    return tdi_optimizer_infer(node, error);
}

static void sgd_numbers(const void *attrs, tdi_control *control)
{
    tdi_update_numbers(attrs, control);
}

static void sgd_reference(const tdi_call *call)
{
    const tdi_optimizer_attrs *attrs = call->attrs;
    const float *weight = call->in[0].data, *gradient = call->in[1].data;
    float *out = call->out.data, *velocity = call->n_in > 2 ? call->in[2].data : NULL;
    const tdi_optimizer_numbers *n = tdi_optimizer_of(call);
    tdi_runs runs = tdi_call_runs(call);
    if (call->control->skip)
        return;
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = runs.first + r * runs.stride, end = i + runs.length; i < end; i++) {
            float step = tdi_clipped(n, gradient[i]) * n->rate, w = tdi_decayed(n, weight[i]);
            if (!velocity) {
                out[i] = w - step;
                continue;
            }
            velocity[i] = velocity[i] * n->kept - step;
            out[i] = w + (attrs->nesterov ? velocity[i] * n->momentum - step : velocity[i]);
        }
}

static double sgd_flops(const tdi_call *call)
{
    return (call->n_in > 2 ? 4.0 : 2.0) * (double)tdi_shape_elements(&call->out.shape);
}

static void sgd_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_optimizer_attrs *attrs = node->attrs;
    snprintf(text, size, "momentum %g%s", (double)attrs->momentum, attrs->nesterov ? ", nesterov" : "");
}

const tdi_op tdi_op_sgd = {.name = "sgd",
                           .min_in = 2,
                           .max_in = 3,
                           .attrs_size = sizeof(tdi_optimizer_attrs),
                           .infer = sgd_infer,
                           .no_gradient = "it is an update",
                           .reference = sgd_reference,
                           .numbers = sgd_numbers,
                           .flops = sgd_flops,
                           .reads = tdi_reads_same,
                           .in_place = 1,
                           .describe = sgd_describe};

tdi_node *tdi_sgd(tdi_graph *graph, tdi_node *weight, tdi_node *gradient, int n_slots, tdi_node *const *slots,
                  const tdi_optimizer_attrs *attrs)
{
    return tdi_optimizer_node(graph, &tdi_op_sgd, weight, gradient, n_slots, slots, attrs);
}
