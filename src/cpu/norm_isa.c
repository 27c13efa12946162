/* norm_isa.c - batch normalization: x as [rows, channels], the last axis the channels. Channels go in blocks whose sums
 * and factors stay in the first cache, rows in chunks that stay there for as long as they are read. */
#include "cpu/isa.h"

enum { BLOCK = 256, CHUNK = 32, TOGETHER = 4 };

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

static const tdi_batch_norm_attrs *attrs_of(const tdi_call *call)
{
    return call->attrs;
}

static float epsilon_of(const tdi_call *call)
{
    return attrs_of(call)->epsilon;
}

/* ---- statistics: chunk by chunk, merged as Chan et al. do ---- */

typedef struct moments {
    double mean[BLOCK], m2[BLOCK];
    int64_t rows;
} moments;

/* Adds `rows`, a constant, rows at a time. */
TDI_INLINE void sum_rows(int rows, int64_t stride, const float *x, int64_t n, float *sums)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        float sum = sums[i];
        for (int r = 0; r < rows; r++)
            sum += x[r * stride + i];
        sums[i] = sum;
    }
}

TDI_INLINE void square_rows(int rows, int64_t stride, const float *x, int64_t n, const float *mean, float *squares)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        float square = squares[i];
        for (int r = 0; r < rows; r++)
            square += (x[r * stride + i] - mean[i]) * (x[r * stride + i] - mean[i]);
        squares[i] = square;
    }
}

static void merge_chunk(moments *all, int64_t rows, int64_t n, const float *mean, const float *m2)
{
    double total = (double)(all->rows + rows), share = (double)rows / total, weight = (double)all->rows * share;
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        double apart = (double)mean[i] - all->mean[i];
        all->mean[i] += apart * share;
        all->m2[i] += (double)m2[i] + apart * apart * weight;
    }
    all->rows += rows;
}

static void add_chunk(moments *all, int64_t rows, int64_t stride, const float *x, int64_t n)
{
    float mean[BLOCK] = {0}, m2[BLOCK] = {0};
    int64_t whole = rows / TOGETHER * TOGETHER;
    for (int64_t r = 0; r < whole; r += TOGETHER)
        sum_rows(TOGETHER, stride, x + r * stride, n, mean);
    for (int64_t r = whole; r < rows; r++)
        sum_rows(1, stride, x + r * stride, n, mean);
    for (int64_t i = 0; i < n; i++)
        mean[i] /= (float)rows;
    for (int64_t r = 0; r < whole; r += TOGETHER)
        square_rows(TOGETHER, stride, x + r * stride, n, mean, m2);
    for (int64_t r = whole; r < rows; r++)
        square_rows(1, stride, x + r * stride, n, mean, m2);
    merge_chunk(all, rows, n, mean, m2);
}

static int64_t chunk_size(const part *p, int64_t first)
{
    return p->row_end - first < CHUNK ? p->row_end - first : CHUNK;
}

static void stats_block(const part *p, const float *x, int64_t n, float *count, float *mean, float *m2)
{
    moments all = {.rows = 0};
    for (int64_t r = p->row_begin; r < p->row_end; r += CHUNK)
        add_chunk(&all, chunk_size(p, r), p->channels, x + r * p->channels, n);
    for (int64_t i = 0; i < n; i++) {
        count[i] = (float)all.rows;
        mean[i] = (float)all.mean[i];
        m2[i] = (float)all.m2[i];
    }
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

TDI_INLINE void normalize_as(bool adds, bool rectifies, const part *p, const float *x, const float *add, int64_t n,
                             const factors *f, float *to)
{
    for (int64_t r = p->row_begin; r < p->row_end; r++) {
        const float *from = x + r * p->channels, *with = adds ? add + r * p->channels : NULL;
        float *out = to + r * p->channels;
        TDI_LANES for (int64_t i = 0; i < n; i++)
        {
            float y = (from[i] - f->mean[i]) * f->scale[i] + f->shift[i];
            if (adds)
                y += with[i];
            out[i] = rectifies && y < 0.0f ? 0.0f : y;
        }
    }
}

static void normalize(const part *p, const float *x, const float *add, bool rectifies, int64_t n, const factors *f,
                      float *to)
{
    if (add && rectifies)
        normalize_as(true, true, p, x, add, n, f, to);
    else if (add)
        normalize_as(true, false, p, x, add, n, f, to);
    else if (rectifies)
        normalize_as(false, true, p, x, NULL, n, f, to);
    else
        normalize_as(false, false, p, x, NULL, n, f, to);
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

/* Of n channels from c on, by the batch's statistics. */
static void set_factors(const tdi_call *call, int64_t channels, int64_t c, int64_t n, const float *stats,
                        const float *gamma, const float *beta, factors *f)
{
    for (int64_t i = 0, at = c; i < n; i++, at++) {
        float inverse = inverse_deviation((double)stats[2 * channels + at], (double)stats[at], epsilon_of(call));
        set_factor(f, i, stats[channels + at], inverse, channel(gamma, at), channel(beta, at));
    }
}

static void batch_norm_run(const tdi_call *call)
{
    const float *x = call->in[0].data, *stats = call->in[1].data, *gamma = call->in[2].data, *beta = call->in[3].data;
    const float *add = call->n_in > 4 ? call->in[4].data : NULL;
    part p = part_of(call, &call->out.shape);
    factors f;
    for (int64_t c = p.begin; c < p.end; c += BLOCK) {
        int64_t n = block_size(&p, c);
        set_factors(call, p.channels, c, n, stats, gamma, beta, &f);
        normalize(&p, x + c, channel(add, c), attrs_of(call)->relu, n, &f, (float *)call->out.data + c);
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
        normalize(&p, x + c, NULL, false, n, &f, (float *)call->out.data + c);
    }
}
TDI_CPU_KERNEL(batch_norm_inference, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = batch_norm_inference_run);

/* ---- gradient ---- */

static void flush(int64_t n, float *sums, double *totals)
{
    for (int64_t i = 0; i < n; i++) {
        totals[i] += (double)sums[i];
        sums[i] = 0;
    }
}

/* The rows' sums of g and of g * (x - mean), g being dy where it is not stopped by the rectifier. */
TDI_INLINE void grad_rows(bool rectified, int rows, int64_t stride, const float *x, const float *dy, int64_t n,
                          const factors *f, float *sums, float *dots)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        float sum = sums[i], dot = dots[i];
        for (int r = 0; r < rows; r++) {
            float centred = x[r * stride + i] - f->mean[i], g = dy[r * stride + i];
            if (rectified)
                g = centred * f->scale[i] + f->shift[i] > 0.0f ? g : 0.0f;
            sum += g;
            dot += g * centred;
        }
        sums[i] = sum;
        dots[i] = dot;
    }
}

TDI_INLINE void grad_chunk(bool rectified, int64_t rows, int64_t stride, const float *x, const float *dy, int64_t n,
                           const factors *f, float *sums, float *dots)
{
    int64_t r = 0;
    for (; r + TOGETHER <= rows; r += TOGETHER)
        grad_rows(rectified, TOGETHER, stride, x + r * stride, dy + r * stride, n, f, sums, dots);
    for (; r < rows; r++)
        grad_rows(rectified, 1, stride, x + r * stride, dy + r * stride, n, f, sums, dots);
}

static void grad_sums(const part *p, const float *x, const float *dy, bool rectified, int64_t n, const factors *f,
                      double *sum, double *dot)
{
    float sums[BLOCK] = {0}, dots[BLOCK] = {0};
    for (int64_t r = p->row_begin; r < p->row_end; r += CHUNK) {
        int64_t at = r * p->channels;
        if (rectified)
            grad_chunk(true, chunk_size(p, r), p->channels, x + at, dy + at, n, f, sums, dots);
        else
            grad_chunk(false, chunk_size(p, r), p->channels, x + at, dy + at, n, f, sums, dots);
        flush(n, sums, sum);
        flush(n, dots, dot);
    }
}

static void batch_norm_grad_stats_run(const tdi_call *call)
{
    const float *x = call->in[0].data, *dy = call->in[1].data, *stats = call->in[2].data;
    float *out = call->out.data;
    part p = part_of(call, &call->in[0].shape);
    factors f;
    for (int64_t c = p.begin; c < p.end; c += BLOCK) {
        double sum[BLOCK] = {0}, dot[BLOCK] = {0};
        int64_t n = block_size(&p, c);
        set_factors(call, p.channels, c, n, stats, call->in[3].data, call->in[4].data, &f);
        grad_sums(&p, x + c, dy + c, attrs_of(call)->relu, n, &f, sum, dot);
        for (int64_t i = 0, at = c; i < n; i++, at++) {
            double m2 = (double)stats[2 * p.channels + at], count = (double)stats[at];
            out[at] = (float)sum[i];
            out[p.channels + at] = (float)(dot[i] * (double)inverse_deviation(m2, count, epsilon_of(call)));
        }
    }
}
TDI_CPU_KERNEL(batch_norm_grad_stats, .splits = TDI_CAN_COLUMNS, .run = batch_norm_grad_stats_run);

/* dx = (g - share - (x - mean) * slope) * scale */
typedef struct grad_factors {
    float share[BLOCK], slope[BLOCK];
} grad_factors;

TDI_INLINE void grad_block(bool rectified, const part *p, const float *x, const float *dy, int64_t n, const factors *f,
                           const grad_factors *g, float *to)
{
    for (int64_t r = p->row_begin; r < p->row_end; r++) {
        const float *from = x + r * p->channels, *with = dy + r * p->channels;
        float *out = to + r * p->channels;
        TDI_LANES for (int64_t i = 0; i < n; i++)
        {
            float centred = from[i] - f->mean[i], d = with[i];
            if (rectified)
                d = centred * f->scale[i] + f->shift[i] > 0.0f ? d : 0.0f;
            out[i] = (d - g->share[i] - centred * g->slope[i]) * f->scale[i];
        }
    }
}

static void set_grad_factors(const tdi_call *call, int64_t channels, int64_t c, int64_t n, grad_factors *g)
{
    const float *stats = call->in[2].data, *sums = call->in[3].data;
    for (int64_t i = 0, at = c; i < n; i++, at++) {
        float count = stats[at];
        float inverse = inverse_deviation((double)stats[2 * channels + at], (double)count, epsilon_of(call));
        g->share[i] = sums[at] / count;
        g->slope[i] = sums[channels + at] / count * inverse;
    }
}

static void batch_norm_grad_input_run(const tdi_call *call)
{
    const float *x = call->in[0].data, *dy = call->in[1].data;
    part p = part_of(call, &call->out.shape);
    factors f;
    grad_factors g;
    for (int64_t c = p.begin; c < p.end; c += BLOCK) {
        int64_t n = block_size(&p, c);
        float *to = (float *)call->out.data + c;
        set_factors(call, p.channels, c, n, call->in[2].data, call->in[4].data, call->in[5].data, &f);
        set_grad_factors(call, p.channels, c, n, &g);
        if (attrs_of(call)->relu)
            grad_block(true, &p, x + c, dy + c, n, &f, &g, to);
        else
            grad_block(false, &p, x + c, dy + c, n, &f, &g, to);
    }
}
TDI_CPU_KERNEL(batch_norm_grad_input, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = batch_norm_grad_input_run);
