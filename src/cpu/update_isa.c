/* update_isa.c - the optimizers, and what happens to a gradient before: one pass over the range a lane owns. */
#include "cpu/isa.h"
#include "ops/optimizer.h"

enum { ANY_SPLIT = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT };

typedef struct adam_numbers {
    float alpha, rate_1, rate_2, epsilon, clip, decay;
} adam_numbers;

TDI_INLINE float clipped(float gradient, float limit)
{
    return gradient > limit ? limit : gradient < -limit ? -limit : gradient;
}

TDI_INLINE void adam_loop(int64_t n, adam_numbers k, bool clip, const float *weight, const float *gradient, float *m,
                          float *v, float *out)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        float g = clip ? clipped(gradient[i], k.clip) : gradient[i], w = weight[i] - weight[i] * k.decay;
        float first = m[i] + (g - m[i]) * k.rate_1, second = v[i] + (g * g - v[i]) * k.rate_2;
        m[i] = first;
        v[i] = second;
        out[i] = w - first * k.alpha / (__builtin_sqrtf(second) + k.epsilon);
    }
}

static void amsgrad_loop(int64_t n, adam_numbers k, const float *weight, const float *gradient, float *m, float *v,
                         float *largest, float *out)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        float g = clipped(gradient[i], k.clip), w = weight[i] - weight[i] * k.decay;
        float first = m[i] + (g - m[i]) * k.rate_1, second = v[i] + (g * g - v[i]) * k.rate_2;
        float top = second > largest[i] ? second : largest[i];
        m[i] = first;
        v[i] = second;
        largest[i] = top;
        out[i] = w - first * k.alpha / (__builtin_sqrtf(top) + k.epsilon);
    }
}

static adam_numbers adam_numbers_of(const tdi_call *call)
{
    const tdi_optimizer_attrs *attrs = call->attrs;
    tdi_adam_rates rates = tdi_adam_rates_at(attrs, call->control);
    return (adam_numbers){.alpha = rates.alpha,
                          .rate_1 = rates.rate_1,
                          .rate_2 = rates.rate_2,
                          .epsilon = attrs->epsilon,
                          .clip = attrs->clipvalue > 0.0f ? attrs->clipvalue : INFINITY,
                          .decay = attrs->weight_decay * call->control->learning_rate};
}

static void adam_run(const tdi_call *call)
{
    adam_numbers k = adam_numbers_of(call);
    const float *weight = call->in[0].data, *gradient = call->in[1].data;
    float *m = call->in[2].data, *v = call->in[3].data, *out = call->out.data;
    float *largest = ((const tdi_optimizer_attrs *)call->attrs)->amsgrad ? call->in[4].data : NULL;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0, at = runs.first; r < runs.count; r++, at += runs.stride)
        if (largest)
            amsgrad_loop(runs.length, k, weight + at, gradient + at, m + at, v + at, largest + at, out + at);
        else if (k.clip < INFINITY)
            adam_loop(runs.length, k, true, weight + at, gradient + at, m + at, v + at, out + at);
        else
            adam_loop(runs.length, k, false, weight + at, gradient + at, m + at, v + at, out + at);
}
TDI_CPU_KERNEL(adam, .splits = ANY_SPLIT, .run = adam_run);

/* ---- SGD ---- */

typedef struct sgd_numbers {
    float rate, momentum, clip, decay;
} sgd_numbers;

static void plain_loop(int64_t n, sgd_numbers k, const float *weight, const float *gradient, float *out)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        float step = clipped(gradient[i], k.clip) * k.rate;
        out[i] = weight[i] - weight[i] * k.decay - step;
    }
}

TDI_INLINE void momentum_loop(int64_t n, sgd_numbers k, bool nesterov, const float *weight, const float *gradient,
                              float *velocity, float *out)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        float step = clipped(gradient[i], k.clip) * k.rate, fast = velocity[i] * k.momentum - step;
        velocity[i] = fast;
        out[i] = weight[i] - weight[i] * k.decay + (nesterov ? fast * k.momentum - step : fast);
    }
}

static void sgd_run(const tdi_call *call)
{
    const tdi_optimizer_attrs *attrs = call->attrs;
    float rate = call->control->learning_rate, clip = attrs->clipvalue > 0.0f ? attrs->clipvalue : INFINITY;
    sgd_numbers k = {rate, attrs->momentum, clip, attrs->weight_decay * rate};
    const float *weight = call->in[0].data, *gradient = call->in[1].data;
    float *velocity = call->n_in > 2 ? call->in[2].data : NULL, *out = call->out.data;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0, at = runs.first; r < runs.count; r++, at += runs.stride)
        if (!velocity)
            plain_loop(runs.length, k, weight + at, gradient + at, out + at);
        else if (attrs->nesterov)
            momentum_loop(runs.length, k, true, weight + at, gradient + at, velocity + at, out + at);
        else
            momentum_loop(runs.length, k, false, weight + at, gradient + at, velocity + at, out + at);
}
TDI_CPU_KERNEL(sgd, .splits = ANY_SPLIT, .run = sgd_run);

/* ---- before the update ---- */

static void regularize_run(const tdi_call *call)
{
    float l1 = ((const tdi_regularize_attrs *)call->attrs)->l1, l2 = ((const tdi_regularize_attrs *)call->attrs)->l2;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0, at = runs.first; r < runs.count; r++, at += runs.stride) {
        const float *gradient = (const float *)call->in[0].data + at, *weight = (const float *)call->in[1].data + at;
        float *out = (float *)call->out.data + at;
        TDI_LANES for (int64_t i = 0; i < runs.length; i++)
        {
            float sign = weight[i] < 0.0f ? -1.0f : 1.0f;
            out[i] = gradient[i] + l1 * sign + 2.0f * l2 * weight[i];
        }
    }
}
TDI_CPU_KERNEL(regularize, .splits = ANY_SPLIT, .run = regularize_run);

static void add_from(int64_t n, const float *x, float *sum)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

enum { TREE_BLOCK = 1024, TREE_DEPTH = 24 };

/* The sum of `count` parts at `offset` into to[0 .. n), in the order of tdi_tree_sum; below[] holds the right halves.
 */
static void tree_sum(float *const *parts, int count, int64_t offset, int64_t n, float *to, float (*below)[TREE_BLOCK])
{
    if (count == 1) {
        memcpy(to, parts[0] + offset, (size_t)n * sizeof *to);
        return;
    }
    int half = 1;
    while (2 * half < count)
        half *= 2;
    tree_sum(parts, half, offset, n, to, below);
    if (count - half == 1) {
        add_from(n, parts[half] + offset, to);
        return;
    }
    tree_sum(parts + half, count - half, offset, n, *below, below + 1);
    add_from(n, *below, to);
}

/* The result may be part 0's own gradients: a block is summed aside first. */
static void reduce_scatter_run(const tdi_call *call)
{
    const tdi_part *part = call->part;
    float sum[TREE_BLOCK], below[TREE_DEPTH][TREE_BLOCK];
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++) {
        int64_t first = runs.first + r * runs.stride;
        for (int64_t i = 0; i < runs.length; i += TREE_BLOCK) {
            int64_t n = runs.length - i < TREE_BLOCK ? runs.length - i : TREE_BLOCK;
            tree_sum(part->gradients, part->parts, call->offset + first + i, n, sum, below);
            memcpy((float *)call->out.data + first + i, sum, (size_t)n * sizeof *sum);
        }
    }
}
TDI_CPU_KERNEL(reduce_scatter, .splits = ANY_SPLIT, .run = reduce_scatter_run);
