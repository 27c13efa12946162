/* optimizer_update_isa.c - the optimizers, and what happens to a gradient before them: one pass over the range that a
 * thread owns.
 *
 * An element's result depends neither on its place in a vector nor on how the range was cut: what is left over
 * behind whole vectors goes through the same instructions. */
#include "cpu/elementwise/optimizer_update.h"
#include "cpu/isa.h"
#include "cpu/prefetch_lines.h"
#include "cpu/vector_loops.h"

enum { ANY_SPLIT = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT };
enum { CLAIMED = 16 * TDI_LINE / sizeof(float) /* floats that are claimed at a time */ };

/* x / (sqrt(v) + epsilon) for v >= 0 */
TDI_INLINE tdi_vector over_root(tdi_vector x, tdi_vector v, float epsilon)
{
#if defined(__AVX512F__)
    /* 1 / sqrt(v) to 14 bits, then one step of Newton's method gives twice the root, while the divider works beside the
     * multipliers. The error is at most 2 units in the last place. A v of 0, or an infinite v from a gradient whose
     * square overflows, is replaced by the nearest normal number: the quotient is then x / epsilon, or 0. */
    __m512i above = _mm512_max_epi32((__m512i)v, _mm512_set1_epi32(0x00800000));
    __m512i within = _mm512_min_epi32(above, _mm512_set1_epi32(0x7f7fffff));
    tdi_vector r = (tdi_vector)_mm512_rsqrt14_ps((__m512)within);
    tdi_vector root = v * r;
    return (x + x) / (root * (3.0f - root * r) + 2.0f * epsilon);
#elif defined(__AVX2__)
    return x / ((tdi_vector)_mm256_sqrt_ps((__m256)v) + epsilon);
#elif defined(__x86_64__)
    return x / ((tdi_vector)_mm_sqrt_ps((__m128)v) + epsilon);
#else
    tdi_vector root;
    for (int i = 0; i < TDI_WIDTH; i++)
        root[i] = __builtin_sqrtf(v[i]);
    return x / (root + epsilon);
#endif
}

TDI_INLINE tdi_vector clipped(tdi_vector gradient, float limit)
{
    gradient = tdi_select(gradient > limit, tdi_splat(limit), gradient);
    return tdi_select(gradient < -limit, tdi_splat(-limit), gradient);
}

TDI_INLINE void adam_vector(tdi_update k, tdi_stretch s)
{
    tdi_vector g = tdi_load(s.gradient), w = tdi_load(s.weight), m = tdi_load(s.slot[0]), v = tdi_load(s.slot[1]);
    if (k.clip < INFINITY)
        g = clipped(g, k.clip);
    if (k.decay != 0.0f)
        w -= w * k.decay;
    m += (g - m) * k.rate_1;
    v += (g * g - v) * k.rate_2;
    tdi_store(s.slot[0], m);
    tdi_store(s.slot[1], v);
    if (k.amsgrad) {
        tdi_vector largest = tdi_load(s.slot[2]);
        v = tdi_select(v > largest, v, largest);
        tdi_store(s.slot[2], v);
    }
    tdi_store(s.out, w - over_root(m, v, k.epsilon) * k.rate);
}

TDI_INLINE void plain_sgd_vector(tdi_update k, tdi_stretch s)
{
    tdi_vector w = tdi_load(s.weight);
    w -= w * k.decay;
    tdi_store(s.out, w - clipped(tdi_load(s.gradient), k.clip) * k.rate);
}

/* The product as it is: not fused with what it is added to, where the compiler could fuse either of two products. */
TDI_INLINE tdi_vector rounded(tdi_vector product)
{
#if defined(__x86_64__)
    __asm__("" : "+x"(product));
#elif defined(__aarch64__)
    __asm__("" : "+w"(product));
#endif
    return product;
}

/* With momentum. */
TDI_INLINE void sgd_vector(tdi_update k, tdi_stretch s)
{
    tdi_vector w = tdi_load(s.weight), step = rounded(clipped(tdi_load(s.gradient), k.clip) * k.rate);
    w -= w * k.decay;
    tdi_vector fast = tdi_load(s.slot[0]) * k.kept - step;
    tdi_store(s.slot[0], fast);
    tdi_store(s.out, w + (k.nesterov ? fast * k.momentum - step : fast));
}

/* Updates the last n < TDI_WIDTH elements by way of whole vectors. */
TDI_INLINE void rest(tdi_update k, tdi_stretch s, int64_t n, void (*vector)(tdi_update k, tdi_stretch s))
{
    float copy[6][TDI_WIDTH] = {{0}};
    size_t size = (size_t)n * sizeof(float);
    tdi_stretch padded = {copy[0], copy[1], {NULL}, copy[5]};
    memcpy(copy[0], s.weight, size);
    memcpy(copy[1], s.gradient, size);
    for (int i = 0; i < 3; i++)
        if (s.slot[i]) {
            padded.slot[i] = copy[2 + i];
            memcpy(copy[2 + i], s.slot[i], size);
        }
    vector(k, padded);
    memcpy(s.out, copy[5], size);
    for (int i = 0; i < 3; i++)
        if (s.slot[i])
            memcpy(s.slot[i], copy[2 + i], size);
}

/* Updates n elements. A line of the weights that another core has read must be claimed before it can be written;
 * claiming many at a time takes not much longer than claiming one. */
TDI_INLINE void loop(tdi_update k, tdi_stretch s, int64_t n, void (*vector)(tdi_update k, tdi_stretch s))
{
    int64_t i = 0;
    while (i + TDI_WIDTH <= n) {
        int64_t end = i + tdi_least(n - i, CLAIMED);
        tdi_claim(s.out + i, end - i);
        for (; i + TDI_WIDTH <= end; i += TDI_WIDTH)
            vector(k, tdi_stretch_at(s, i));
    }
    if (i < n)
        rest(k, tdi_stretch_at(s, i), n - i, vector);
}

static void adam_loop(tdi_update k, tdi_stretch s, int64_t n)
{
    loop(k, s, n, adam_vector);
}

/* The case of most models, compiled without its branches. */
static void plain_adam_loop(tdi_update k, tdi_stretch s, int64_t n)
{
    k.clip = INFINITY;
    k.decay = 0.0f;
    k.amsgrad = false;
    s.slot[2] = NULL;
    loop(k, s, n, adam_vector);
}

/* Without a branch inside: the compiler would fuse multiplications behind it in some loops and not in others. */
static void sgd_loop(tdi_update k, tdi_stretch s, int64_t n)
{
    if (s.slot[0])
        loop(k, s, n, sgd_vector);
    else
        loop(k, s, n, plain_sgd_vector);
}

void TDI_ISA_NAME(tdi_update_stretch)(const tdi_update *update, int64_t n, tdi_stretch s)
{
    if (update->op == &tdi_op_sgd)
        sgd_loop(*update, s, n);
    else if (update->clip < INFINITY || update->decay != 0.0f || update->amsgrad)
        adam_loop(*update, s, n);
    else
        plain_adam_loop(*update, s, n);
}

static void run(const tdi_call *call, const tdi_op *op)
{
    tdi_update update = tdi_update_of(op, call->attrs, call->control);
    tdi_stretch s = {call->in[0].data, call->in[1].data, {NULL}, call->out.data};
    for (int i = 2; i < call->n_in; i++)
        s.slot[i - 2] = call->in[i].data;
    tdi_runs runs = tdi_call_runs(call);
    if (call->control->skip)
        return;
    for (int64_t r = 0, at = runs.first; r < runs.count; r++, at += runs.stride)
        TDI_ISA_NAME(tdi_update_stretch)(&update, runs.length, tdi_stretch_at(s, at));
}

static void adam_run(const tdi_call *call)
{
    run(call, &tdi_op_adam);
}
TDI_CPU_KERNEL(adam, .splits = ANY_SPLIT, .run = adam_run);

static void sgd_run(const tdi_call *call)
{
    run(call, &tdi_op_sgd);
}
TDI_CPU_KERNEL(sgd, .splits = ANY_SPLIT, .run = sgd_run);

/* ---- after the update ---- */

static void moving_average_run(const tdi_call *call)
{
    const tdi_optimizer_numbers *numbers = tdi_optimizer_of(call);
    float old = numbers->average, new = 1.0f - old;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0, at = runs.first; r < runs.count; r++, at += runs.stride) {
        const float *weight = (const float *)call->in[0].data + at;
        float *average = (float *)call->in[1].data + at, *out = (float *)call->out.data + at;
        TDI_LANES for (int64_t i = 0; i < runs.length; i++) average[i] = old * average[i] + new *weight[i];
        const float *from = numbers->overwrite ? average : weight;
        if (out != from)
            memcpy(out, from, (size_t)runs.length * sizeof *out);
    }
}
TDI_CPU_KERNEL(moving_average, .splits = ANY_SPLIT, .run = moving_average_run);

/* ---- before the update ---- */

static void accumulate_gradient_run(const tdi_call *call)
{
    float steps = (float)((const tdi_accumulate_gradient_attrs *)call->attrs)->steps;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0, at = runs.first; r < runs.count; r++, at += runs.stride) {
        const float *gradient = (const float *)call->in[0].data + at;
        float *sum = (float *)call->in[1].data + at, *out = (float *)call->out.data + at;
        float kept = call->control->skip ? 1.0f : 0.0f;
        TDI_LANES for (int64_t i = 0; i < runs.length; i++)
        {
            float all = gradient[i] + sum[i];
            out[i] = all / steps;
            sum[i] = kept != 0.0f ? all : 0.0f;
        }
    }
}
TDI_CPU_KERNEL(accumulate_gradient, .splits = ANY_SPLIT, .run = accumulate_gradient_run);

static void squared_norm_run(const tdi_call *call)
{
    const float *x = call->in[0].data;
    int64_t elements = tdi_shape_elements(&call->in[0].shape);
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t b = runs.first; b < runs.first + runs.length; b++) {
        int64_t i = b * TDI_NORM_BLOCK, end = i + TDI_NORM_BLOCK < elements ? i + TDI_NORM_BLOCK : elements;
        tdi_vector sum[4] = {{0}};
        for (; i + 4 * TDI_WIDTH <= end; i += 4 * TDI_WIDTH)
            for (int j = 0; j < 4; j++)
                sum[j] += tdi_load(x + i + j * TDI_WIDTH) * tdi_load(x + i + j * TDI_WIDTH);
        float rest = 0;
        for (; i < end; i++)
            rest += x[i] * x[i];
        ((float *)call->out.data)[b] = tdi_fold_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
    }
}
TDI_CPU_KERNEL(squared_norm, .splits = TDI_CAN_ROWS, .run = squared_norm_run);

static void clip_by_norm_run(const tdi_call *call)
{
    float factor = *(const float *)call->in[1].data;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0, at = runs.first; r < runs.count; r++, at += runs.stride) {
        const float *gradient = (const float *)call->in[0].data + at;
        float *out = (float *)call->out.data + at;
        TDI_LANES for (int64_t i = 0; i < runs.length; i++) out[i] = gradient[i] * factor;
    }
}
TDI_CPU_KERNEL(clip_by_norm, .splits = ANY_SPLIT, .run = clip_by_norm_run);

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

enum { TREE_BLOCK = 512, TREE_DEPTH = 8 /* for 2^8 shards at most */ };

/* Sums `count` shards at `offset` into to[0 .. n), in the order of tdi_tree_sum; below[] holds the right halves. */
static void tree_sum(float *const *shards, int count, int64_t offset, int64_t n, float *to, float (*below)[TREE_BLOCK])
{
    if (count == 1) {
        memcpy(to, shards[0] + offset, (size_t)n * sizeof *to);
        return;
    }
    int half = tdi_tree_half(count);
    tree_sum(shards, half, offset, n, to, below);
    if (count - half == 1) {
        add_from(n, shards[half] + offset, to);
        return;
    }
    tree_sum(shards + half, count - half, offset, n, *below, below + 1);
    add_from(n, *below, to);
}

/* The result may be shard 0's own gradients, so a block is summed on the stack before it is stored. */
static void reduce_scatter_run(const tdi_call *call)
{
    const tdi_shard *shard = call->shard;
    float sum[TREE_BLOCK], below[TREE_DEPTH][TREE_BLOCK];
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++) {
        int64_t first = runs.first + r * runs.stride;
        for (int64_t i = 0; i < runs.length; i += TREE_BLOCK) {
            int64_t n = runs.length - i < TREE_BLOCK ? runs.length - i : TREE_BLOCK;
            tree_sum(shard->gradients, shard->shards, call->offset + first + i, n, sum, below);
            memcpy((float *)call->out.data + first + i, sum, (size_t)n * sizeof *sum);
        }
    }
}
TDI_CPU_KERNEL(reduce_scatter, .splits = ANY_SPLIT, .run = reduce_scatter_run);
