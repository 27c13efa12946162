/* norm_isa.c - batch normalization: x as [rows, channels], the last axis the channels. Channels go in blocks whose sums
 * and factors stay in the first cache. */
#include "cpu/isa.h"

enum { BLOCK = 256, FLUSH = 64 };

/* The rows and channels that a call is to make of x. */
typedef struct part {
    int64_t row_begin, row_end, begin, end, channels;
} part;

static part part_of(const tdi_call *call, const td_shape *x)
{
    int64_t rows = tdi_outer_extent(x), channels = tdi_last_extent(x);
    part p = {0, rows, 0, channels, channels};
    if (call->split == TDI_COLUMNS) {
        p.begin = call->begin;
        p.end = call->end;
    } else if (call->split == TDI_ROWS) {
        int64_t inner = x->dim[0] ? rows / x->dim[0] : 0;
        p.row_begin = call->begin * inner;
        p.row_end = call->end * inner;
    }
    return p;
}

static int64_t block_size(const part *p, int64_t first)
{
    return p->end - first < BLOCK ? p->end - first : BLOCK;
}

static float inverse_deviation(double m2, double count, float epsilon)
{
    return (float)(1 / sqrt((count > 0 ? m2 / count : 0) + (double)epsilon));
}

static float epsilon_of(const tdi_call *call)
{
    return ((const tdi_batch_norm_attrs *)call->attrs)->epsilon;
}

/* ---- statistics ---- */

static void flush(int64_t n, float *sums, double *totals)
{
    for (int64_t i = 0; i < n; i++) {
        totals[i] += (double)sums[i];
        sums[i] = 0;
    }
}

static void sum_rows(const part *p, const float *x, int64_t n, double *totals)
{
    float sums[BLOCK] = {0};
    for (int64_t r = p->row_begin; r < p->row_end; r++) {
        const float *row = x + r * p->channels;
        TDI_LANES for (int64_t i = 0; i < n; i++) sums[i] += row[i];
        if ((r - p->row_begin) % FLUSH == FLUSH - 1)
            flush(n, sums, totals);
    }
    flush(n, sums, totals);
}

static void sum_squares(const part *p, const float *x, int64_t n, const float *mean, double *totals)
{
    float sums[BLOCK] = {0};
    for (int64_t r = p->row_begin; r < p->row_end; r++) {
        const float *row = x + r * p->channels;
        TDI_LANES for (int64_t i = 0; i < n; i++) sums[i] += (row[i] - mean[i]) * (row[i] - mean[i]);
        if ((r - p->row_begin) % FLUSH == FLUSH - 1)
            flush(n, sums, totals);
    }
    flush(n, sums, totals);
}

static void stats_block(const part *p, const float *x, int64_t n, float *count, float *mean, float *m2)
{
    double totals[BLOCK] = {0}, squares[BLOCK] = {0};
    int64_t rows = p->row_end - p->row_begin;
    sum_rows(p, x, n, totals);
    for (int64_t i = 0; i < n; i++) {
        count[i] = (float)rows;
        mean[i] = (float)(rows ? totals[i] / (double)rows : 0);
    }
    sum_squares(p, x, n, mean, squares);
    for (int64_t i = 0; i < n; i++)
        m2[i] = (float)squares[i];
}

static void batch_norm_stats_run(const tdi_call *call)
{
    const float *x = call->in[0].data;
    float *out = call->out.data;
    part p = part_of(call, &call->in[0].shape);
    for (int64_t c = p.begin; c < p.end; c += BLOCK)
        stats_block(&p, x + c, block_size(&p, c), out + c, out + p.channels + c, out + 2 * p.channels + c);
}
TDI_CPU_KERNEL(batch_norm_stats, .splits = TDI_CAN_COLUMNS, .run = batch_norm_stats_run);

/* ---- (x - mean) * scale + shift ---- */

typedef struct factors {
    float mean[BLOCK], scale[BLOCK], shift[BLOCK];
} factors;

static void normalize(const part *p, const float *x, int64_t n, const factors *f, float *to)
{
    for (int64_t r = p->row_begin; r < p->row_end; r++) {
        const float *from = x + r * p->channels;
        float *out = to + r * p->channels;
        TDI_LANES for (int64_t i = 0; i < n; i++) out[i] = (from[i] - f->mean[i]) * f->scale[i] + f->shift[i];
    }
}

static void set_factor(factors *f, int64_t i, float mean, float inverse, const float *gamma, const float *beta)
{
    f->mean[i] = mean;
    f->scale[i] = gamma ? inverse * *gamma : inverse;
    f->shift[i] = beta ? *beta : 0.0f;
}

static const float *channel(const float *vector, int64_t c)
{
    return vector ? vector + c : NULL;
}

static void batch_norm_run(const tdi_call *call)
{
    const float *x = call->in[0].data, *stats = call->in[1].data, *gamma = call->in[2].data, *beta = call->in[3].data;
    part p = part_of(call, &call->out.shape);
    factors f;
    for (int64_t c = p.begin; c < p.end; c += BLOCK) {
        int64_t n = block_size(&p, c);
        for (int64_t i = 0, at = c; i < n; i++, at++) {
            float inverse = inverse_deviation((double)stats[2 * p.channels + at], (double)stats[at], epsilon_of(call));
            set_factor(&f, i, stats[p.channels + at], inverse, channel(gamma, at), channel(beta, at));
        }
        normalize(&p, x + c, n, &f, (float *)call->out.data + c);
    }
}
TDI_CPU_KERNEL(batch_norm, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = batch_norm_run);

static void batch_norm_inference_run(const tdi_call *call)
{
    const float *x = call->in[0].data, *mean = call->in[1].data, *variance = call->in[2].data;
    const float *gamma = call->in[3].data, *beta = call->in[4].data;
    part p = part_of(call, &call->out.shape);
    factors f;
    for (int64_t c = p.begin; c < p.end; c += BLOCK) {
        int64_t n = block_size(&p, c);
        for (int64_t i = 0, at = c; i < n; i++, at++)
            set_factor(&f, i, mean[at], inverse_deviation((double)variance[at], 1, epsilon_of(call)),
                       channel(gamma, at), channel(beta, at));
        normalize(&p, x + c, n, &f, (float *)call->out.data + c);
    }
}
TDI_CPU_KERNEL(batch_norm_inference, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = batch_norm_inference_run);

/* ---- gradient ---- */

static void grad_sums(const part *p, const float *x, const float *dy, int64_t n, const float *mean, double *sum,
                      double *dot)
{
    float sums[BLOCK] = {0}, dots[BLOCK] = {0};
    for (int64_t r = p->row_begin; r < p->row_end; r++) {
        const float *from = x + r * p->channels, *with = dy + r * p->channels;
        TDI_LANES for (int64_t i = 0; i < n; i++)
        {
            sums[i] += with[i];
            dots[i] += with[i] * (from[i] - mean[i]);
        }
        if ((r - p->row_begin) % FLUSH == FLUSH - 1 || r + 1 == p->row_end) {
            flush(n, sums, sum);
            flush(n, dots, dot);
        }
    }
}

static void batch_norm_grad_stats_run(const tdi_call *call)
{
    const float *x = call->in[0].data, *dy = call->in[1].data, *stats = call->in[2].data;
    float *out = call->out.data;
    part p = part_of(call, &call->in[0].shape);
    for (int64_t c = p.begin; c < p.end; c += BLOCK) {
        double sum[BLOCK] = {0}, dot[BLOCK] = {0};
        int64_t n = block_size(&p, c);
        grad_sums(&p, x + c, dy + c, n, stats + p.channels + c, sum, dot);
        for (int64_t i = 0, at = c; i < n; i++, at++) {
            double m2 = (double)stats[2 * p.channels + at], count = (double)stats[at];
            out[at] = (float)sum[i];
            out[p.channels + at] = (float)(dot[i] * (double)inverse_deviation(m2, count, epsilon_of(call)));
        }
    }
}
TDI_CPU_KERNEL(batch_norm_grad_stats, .splits = TDI_CAN_COLUMNS, .run = batch_norm_grad_stats_run);

/* dx = (dy - share - (x - mean) * slope) * scale */
typedef struct grad_factors {
    float mean[BLOCK], share[BLOCK], slope[BLOCK], scale[BLOCK];
} grad_factors;

static void grad_block(const part *p, const float *x, const float *dy, int64_t n, const grad_factors *f, float *to)
{
    for (int64_t r = p->row_begin; r < p->row_end; r++) {
        const float *from = x + r * p->channels, *with = dy + r * p->channels;
        float *out = to + r * p->channels;
        TDI_LANES for (int64_t i = 0; i < n; i++) out[i] =
            (with[i] - f->share[i] - (from[i] - f->mean[i]) * f->slope[i]) * f->scale[i];
    }
}

static void set_grad_factor(const tdi_call *call, int64_t channels, int64_t c, int64_t i, grad_factors *f)
{
    const float *stats = call->in[2].data, *sums = call->in[3].data, *gamma = call->in[4].data;
    float count = stats[c],
          inverse = inverse_deviation((double)stats[2 * channels + c], (double)count, epsilon_of(call));
    f->mean[i] = stats[channels + c];
    f->share[i] = sums[c] / count;
    f->slope[i] = sums[channels + c] / count * inverse;
    f->scale[i] = gamma ? inverse * gamma[c] : inverse;
}

static void batch_norm_grad_input_run(const tdi_call *call)
{
    const float *x = call->in[0].data, *dy = call->in[1].data;
    part p = part_of(call, &call->out.shape);
    grad_factors f;
    for (int64_t c = p.begin; c < p.end; c += BLOCK) {
        int64_t n = block_size(&p, c);
        for (int64_t i = 0; i < n; i++)
            set_grad_factor(call, p.channels, c + i, i, &f);
        grad_block(&p, x + c, dy + c, n, &f, (float *)call->out.data + c);
    }
}
TDI_CPU_KERNEL(batch_norm_grad_input, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = batch_norm_grad_input_run);
