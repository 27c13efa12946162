/* adam.c - Kingma & Ba (1412.6980) as Keras computes it: m += (g - m) (1 - b1); v += (g^2 - v) (1 - b2);
 * w -= alpha m / (sqrt(v) + epsilon), alpha = lr sqrt(1 - b2^t) / (1 - b1^t); with amsgrad the largest v so far. */
#include "ops/update/optimizer.h"

static td_status adam_infer(tdi_node *node, tdi_error *error)
{
    int slots = ((const tdi_optimizer_attrs *)node->attrs)->amsgrad ? 3 : 2;
    if (node->n_in != 2 + slots)
        return tdi_fail(error, TD_INTERNAL, "%d slots are needed, not %d", slots, node->n_in - 2);
    return tdi_optimizer_infer(node, error);
}

static void adam_numbers(const void *attributes, tdi_control *control)
{
    const tdi_optimizer_attrs *attrs = attributes;
    float t = (float)(control->iteration + 1);
    float power_1 = powf(attrs->beta_1, t), power_2 = powf(attrs->beta_2, t);
    tdi_update_numbers(attrs, control);
    control->optimizer.rate = control->learning_rate * sqrtf(1.0f - power_2) / (1.0f - power_1);
    control->optimizer.rate_1 = tdi_one_minus(attrs->beta_1);
    control->optimizer.rate_2 = tdi_one_minus(attrs->beta_2);
    control->optimizer.epsilon = attrs->epsilon;
}

static void adam_reference(const tdi_call *call)
{
    const float *weight = call->in[0].data, *gradient = call->in[1].data;
    float *out = call->out.data, *m = call->in[2].data, *v = call->in[3].data;
    float *largest = call->n_in > 4 ? call->in[4].data : NULL;
    const tdi_optimizer_numbers *n = tdi_optimizer_of(call);
    tdi_runs runs = tdi_call_runs(call);
    if (call->control->skip)
        return;
    for (int64_t r = 0; r < runs.count; r++)
        for (int64_t i = runs.first + r * runs.stride, end = i + runs.length; i < end; i++) {
            float g = tdi_clipped(n, gradient[i]), w = tdi_decayed(n, weight[i]);
            m[i] += (g - m[i]) * n->rate_1;
            v[i] += (g * g - v[i]) * n->rate_2;
            if (largest && v[i] > largest[i])
                largest[i] = v[i];
            out[i] = w - m[i] * n->rate / (sqrtf(largest ? largest[i] : v[i]) + n->epsilon);
        }
}

static double adam_flops(const tdi_call *call)
{
    return 11.0 * (double)tdi_shape_elements(&call->out.shape);
}

static void adam_describe(const tdi_node *node, char *text, size_t size)
{
    const tdi_optimizer_attrs *attrs = node->attrs;
    snprintf(text, size, "beta %g %g%s", (double)attrs->beta_1, (double)attrs->beta_2,
             attrs->amsgrad ? ", amsgrad" : "");
}

const tdi_op tdi_op_adam = {.name = "adam",
                            .min_in = 4,
                            .max_in = 5,
                            .attrs_size = sizeof(tdi_optimizer_attrs),
                            .infer = adam_infer,
                            .no_gradient = "it is an update",
                            .reference = adam_reference,
                            .numbers = adam_numbers,
                            .flops = adam_flops,
                            .reads = tdi_reads_same,
                            .in_place = 1,
                            .describe = adam_describe};

tdi_node *tdi_adam(tdi_graph *graph, tdi_node *weight, tdi_node *gradient, int n_slots, tdi_node *const *slots,
                   const tdi_optimizer_attrs *attrs)
{
    return tdi_optimizer_node(graph, &tdi_op_adam, weight, gradient, n_slots, slots, attrs);
}
