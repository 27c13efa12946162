/* norm_isa.c - batch normalization: x as [rows, channels], the last axis being the channels.
 *
 * Channels are worked on in blocks whose sums and factors stay in the first-level caches; blocks are as long as that
 * allows, since memory is read fastest from end to end. Rows are read in chunks that stay in the caches for as long
 * as they are needed. Few channels: several rows go side by side as if they were one. Four such rows are added at a
 * time, so that sums are loaded and stored less often; with many channels that is done where x alone is read. Each
 * loop is compiled for float32 and for bfloat16 values (`narrow`); it computes in float32. */
#include <string.h>

#include "cpu/bfloat16_isa.h"

enum { BLOCK = 1024, CHUNK = 32, SIDE = 128, FOUR = 4 };

/* The region of x, rows and channels, that a call makes. */
typedef struct region {
    int64_t row_begin, row_end, begin, end, channels;
    int64_t together; /* rows that go side by side, as if they were one */
    int64_t inner;    /* rows of x in a row of the batch */
    bool few;         /* whole rows, which have few channels */
} region;

static region part_of(const tdi_call *call, const td_shape *x)
{
    int64_t rows = tdi_outer_extent(x), channels = tdi_last_extent(x), inner = x->dim[0] ? rows / x->dim[0] : 0;
    bool by_rows = call->split == TDI_ROWS, by_columns = call->split == TDI_COLUMNS;
    region p = {.row_begin = by_rows ? call->begin * inner : 0,
                .row_end = by_rows ? call->end * inner : rows,
                .begin = by_columns ? call->begin : 0,
                .end = by_columns ? call->end : channels,
                .channels = channels,
                .together = 1,
                .inner = inner};
    p.few = p.begin == 0 && p.end == channels && channels && channels <= SIDE;
    if (p.few)
        p.together = SIDE / channels;
    return p;
}

/* The rows of the region that belong to group `group`. */
static region region_of_group(const tdi_call *call, const td_shape *x, const region *all, int64_t group, int64_t groups)
{
    region p = *all;
    p.row_begin = tdi_most(p.row_begin, tdi_group_first_row(call, x->dim[0], group, groups) * p.inner);
    p.row_end = tdi_least(p.row_end, tdi_group_first_row(call, x->dim[0], group + 1, groups) * p.inner);
    return p;
}

static int64_t groups_of(const tdi_value *stats)
{
    return stats->shape.dim[0] / 3;
}

static int64_t block_size(const region *p, int64_t first)
{
    return p->end - first < BLOCK ? p->end - first : BLOCK;
}

/* How many numbers go side by side when `left` rows of n channels are left. */
static int64_t side_size(const region *p, int64_t left, int64_t n)
{
    return n * tdi_least(p->together, left);
}

/* Repeats the channels' numbers for each of the rows that go side by side. */
static void spread(const region *p, int64_t n, float *numbers)
{
    for (int64_t at = n; at < n * p->together; at += n)
        memcpy(numbers + at, numbers, (size_t)n * sizeof *numbers);
}

/* Adds the sums of the rows that went side by side into the first n. */
static void fold(const region *p, int64_t n, float *sums)
{
    for (int64_t at = n; at < n * p->together; at += n)
        TDI_LANES for (int64_t i = 0; i < n; i++) sums[i] += sums[at + i];
}

static void clear(const region *p, int64_t n, float *sums)
{
    memset(sums, 0, (size_t)(n * p->together) * sizeof *sums);
}

static const tdi_batch_norm_attrs *attrs_of(const tdi_call *call)
{
    return call->attrs;
}

static float epsilon_of(const tdi_call *call)
{
    return attrs_of(call)->epsilon;
}

/* ---- statistics: made chunk by chunk, merged by the formula of Chan et al. ---- */

typedef struct moments {
    double mean[BLOCK], m2[BLOCK];
    int64_t rows;
} moments;

/* Adds `rows` rows, a constant, which are `apart` elements from each other. It is written in vectors, since compilers'
 * own vectorisation of bfloat16 loops waits for memory where this does not. */
TDI_INLINE void sum_rows(bool narrow, int rows, const void *x, int64_t apart, int64_t n, float *sums)
{
    int64_t i = 0;
    for (; i + TDI_WIDTH <= n; i += TDI_WIDTH) {
        tdi_vector sum = tdi_load(sums + i);
        for (int r = 0; r < rows; r++)
            sum += tdi_get_vector(narrow, x, r * apart + i);
        tdi_store(sums + i, sum);
    }
    for (; i < n; i++)
        for (int r = 0; r < rows; r++)
            sums[i] += tdi_get(narrow, x, r * apart + i);
}

TDI_INLINE void square_rows(bool narrow, int rows, const void *x, int64_t apart, int64_t n, const float *mean,
                            float *squares)
{
    int64_t i = 0;
    for (; i + TDI_WIDTH <= n; i += TDI_WIDTH) {
        tdi_vector square = tdi_load(squares + i), middle = tdi_load(mean + i);
        for (int r = 0; r < rows; r++) {
            tdi_vector centred = tdi_get_vector(narrow, x, r * apart + i) - middle;
            square += centred * centred;
        }
        tdi_store(squares + i, square);
    }
    for (; i < n; i++)
        for (int r = 0; r < rows; r++) {
            float centred = tdi_get(narrow, x, r * apart + i) - mean[i];
            squares[i] += centred * centred;
        }
}

static void start_moments(moments *all, int64_t n)
{
    all->rows = 0;
    memset(all->mean, 0, (size_t)n * sizeof *all->mean);
    memset(all->m2, 0, (size_t)n * sizeof *all->m2);
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

/* Adds the statistics of rows [first, end) of x. */
TDI_INLINE void add_chunk(bool narrow, moments *all, const region *p, int64_t first, int64_t end, const void *x,
                          int64_t n)
{
    float mean[BLOCK], m2[BLOCK];
    clear(p, n, mean);
    clear(p, n, m2);
    int64_t four = FOUR * p->together, r = first;
    int64_t apart = p->channels * p->together;
    for (; end - r >= four; r += four)
        sum_rows(narrow, FOUR, tdi_skip(narrow, x, r * p->channels), apart, n * p->together, mean);
    for (; r < end; r += p->together)
        sum_rows(narrow, 1, tdi_skip(narrow, x, r * p->channels), apart, side_size(p, end - r, n), mean);
    fold(p, n, mean);
    for (int64_t i = 0; i < n; i++)
        mean[i] /= (float)(end - first);
    spread(p, n, mean);
    for (r = first; end - r >= four; r += four)
        square_rows(narrow, FOUR, tdi_skip(narrow, x, r * p->channels), apart, n * p->together, mean, m2);
    for (; r < end; r += p->together)
        square_rows(narrow, 1, tdi_skip(narrow, x, r * p->channels), apart, side_size(p, end - r, n), mean, m2);
    fold(p, n, m2);
    merge_chunk(all, end - first, n, mean, m2);
}

static int64_t chunk_end(const region *p, int64_t first)
{
    return tdi_least(p->row_end, first + CHUNK * p->together);
}

/* Adds the statistics of all rows of the region, for n channels from x on. */
static void add_region(moments *all, const region *p, bool narrow, const void *x, int64_t n)
{
    for (int64_t r = p->row_begin; r < p->row_end; r = chunk_end(p, r))
        if (narrow)
            add_chunk(true, all, p, r, chunk_end(p, r), x, n);
        else
            add_chunk(false, all, p, r, chunk_end(p, r), x, n);
}

/* Stores the statistics of n channels from c on: [3, channels]. */
static void put_moments(const moments *all, const region *p, int64_t c, int64_t n, float *to)
{
    for (int64_t i = 0, at = c; i < n; i++, at++) {
        to[at] = (float)all->rows;
        to[p->channels + at] = (float)all->mean[i];
        to[2 * p->channels + at] = (float)all->m2[i];
    }
}

/* Makes the call's share of x group by group; `stats` are those of all groups, [3 groups, channels]. */
static void make_groups(const tdi_call *call, const td_shape *x, const tdi_value *stats,
                        void (*make)(const tdi_call *call, const region *p, int64_t group))
{
    region whole = part_of(call, x);
    int64_t groups = groups_of(stats);
    for (int64_t g = 0; g < groups; g++) {
        region p = region_of_group(call, x, &whole, g, groups);
        make(call, &p, g);
    }
}

static bool is_empty(const region *p)
{
    return p->row_begin >= p->row_end;
}

/* The statistics of group `group` among all groups'. */
static float *stats_of(const tdi_value *stats, int64_t group)
{
    return (float *)stats->data + 3 * group * stats->shape.dim[1];
}

static void stats_of_group(const tdi_call *call, const region *p, int64_t group)
{
    for (int64_t c = p->begin; c < p->end; c += BLOCK) {
        moments all;
        int64_t n = block_size(p, c);
        start_moments(&all, n);
        add_region(&all, p, call->in[0].dtype == TD_BFLOAT16, tdi_element(&call->in[0], c), n);
        put_moments(&all, p, c, n, stats_of(&call->out, group));
    }
}

static void batch_norm_stats_run(const tdi_call *call)
{
    make_groups(call, &call->in[0].shape, &call->out, stats_of_group);
}
TDI_CPU_KERNEL(batch_norm_stats, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_COLUMNS, .run = batch_norm_stats_run);

/* ---- moving statistics ---- */

/* Sums the statistics of n channels from c on over all groups, given as [groups, 3, channels]; returns the rows. */
static double sum_groups(const tdi_value *gathered, bool variance, int64_t c, int64_t n, double *sums)
{
    int64_t groups = gathered->shape.dim[0] * gathered->shape.dim[1] / 3, channels = gathered->shape.dim[2];
    double rows = 0;
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t g = 0; g < groups; g++) {
        const float *count = (const float *)gathered->data + 3 * g * channels + c;
        const float *mean = count + channels, *m2 = mean + channels;
        rows += (double)count[0];
        if (variance)
            TDI_LANES for (int64_t i = 0; i < n; i++) sums[i] += (double)m2[i];
        else
            TDI_LANES for (int64_t i = 0; i < n; i++) sums[i] += (double)mean[i] * (double)count[0];
    }
    return rows;
}

static void batch_norm_moving_run(const tdi_call *call)
{
    float keep = attrs_of(call)->momentum, rate = tdi_one_minus(keep);
    const float *moving = call->in[0].data;
    float *out = call->out.data;
    int64_t channels = call->out.shape.dim[0];
    for (int64_t c = 0; c < channels; c += BLOCK) {
        double sums[BLOCK];
        int64_t n = tdi_least(BLOCK, channels - c);
        double rows = sum_groups(&call->in[1], attrs_of(call)->variance, c, n, sums);
        TDI_LANES for (int64_t i = c; i < c + n; i++) out[i] =
            rows > 0 ? moving[i] * keep + (float)(sums[i - c] / rows) * rate : moving[i];
    }
}

static const char *batch_norm_moving_declines(const tdi_call *call)
{
    const td_shape *gathered = &call->in[1].shape;
    bool one = gathered->dim[0] * gathered->dim[1] == 3, grouped = gathered->dim[1] > 3 && !attrs_of(call)->all;
    return one || grouped ? NULL : "statistics to be merged";
}
TDI_CPU_KERNEL(batch_norm_moving, .declines = batch_norm_moving_declines, .run = batch_norm_moving_run);

/* ---- (x - mean) * scale + shift ---- */

/* `inverse` is that of the deviation; it alone is not repeated for rows side by side. */
typedef struct factors {
    float mean[BLOCK], scale[BLOCK], shift[BLOCK], inverse[BLOCK];
} factors;

TDI_INLINE void normalize_vector(bool narrow, bool rectifies, const void *x, const void *add, int64_t i, int64_t count,
                                 const factors *f, void *to)
{
    tdi_vector zero = {0}, centred = tdi_get_first(narrow, x, i, count) - tdi_load(f->mean + i);
    tdi_vector y = centred * tdi_load(f->scale + i) + tdi_load(f->shift + i);
    if (add)
        y += tdi_get_first(narrow, add, i, count);
    if (rectifies)
        y = tdi_select(y < zero, zero, y);
    tdi_put_first(narrow, to, i, count, y);
}

TDI_INLINE void normalize_as(bool narrow, bool adds, bool rectifies, const region *p, const void *x, const void *add,
                             int64_t n, const factors *f, void *to)
{
    for (int64_t r = p->row_begin; r < p->row_end; r += p->together) {
        const void *from = tdi_skip(narrow, x, r * p->channels);
        const void *with = adds ? tdi_skip(narrow, add, r * p->channels) : NULL;
        void *out = tdi_skip(narrow, to, r * p->channels);
        int64_t side = side_size(p, p->row_end - r, n), i = 0;
        for (; i + TDI_WIDTH <= side; i += TDI_WIDTH)
            normalize_vector(narrow, rectifies, from, with, i, TDI_WIDTH, f, out);
        if (i < side)
            normalize_vector(narrow, rectifies, from, with, i, side - i, f, out);
    }
}

TDI_INLINE void normalize_rows(bool narrow, const region *p, const void *x, const void *add, bool rectifies, int64_t n,
                               const factors *f, void *to)
{
    if (add && rectifies)
        normalize_as(narrow, true, true, p, x, add, n, f, to);
    else if (add)
        normalize_as(narrow, true, false, p, x, add, n, f, to);
    else if (rectifies)
        normalize_as(narrow, false, true, p, x, NULL, n, f, to);
    else
        normalize_as(narrow, false, false, p, x, NULL, n, f, to);
}

/* Normalizes n channels from c on; `add` NULL: adds nothing. */
static void normalize(const tdi_call *call, const region *p, int64_t c, int64_t n, const tdi_value *add,
                      const factors *f)
{
    const void *x = tdi_element(&call->in[0], c), *with = add ? tdi_element(add, c) : NULL;
    void *to = tdi_element(&call->out, c);
    if (call->out.dtype == TD_BFLOAT16)
        normalize_rows(true, p, x, with, attrs_of(call)->relu, n, f, to);
    else
        normalize_rows(false, p, x, with, attrs_of(call)->relu, n, f, to);
}

TDI_INLINE float inverse_deviation(float variance, float epsilon)
{
    return 1.0f / sqrtf(variance + epsilon);
}

/* Makes the factors that follow from n means and inverse deviations; gamma and beta are all channels', or NULL. */
static void finish_factors(const region *p, int64_t c, int64_t n, const float *gamma, const float *beta, factors *f)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) f->scale[i] = gamma ? f->inverse[i] * gamma[c + i] : f->inverse[i];
    TDI_LANES for (int64_t i = 0; i < n; i++) f->shift[i] = beta ? beta[c + i] : 0.0f;
    spread(p, n, f->mean);
    spread(p, n, f->scale);
    spread(p, n, f->shift);
}

/* Makes the factors of n channels from c on by the batch's statistics. */
static void set_factors(const tdi_call *call, const region *p, int64_t c, int64_t n, const float *stats,
                        const float *gamma, const float *beta, factors *f)
{
    const float *count = stats + c, *m2 = stats + 2 * p->channels + c, epsilon = epsilon_of(call);
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        f->inverse[i] = inverse_deviation(count[i] > 0.0f ? m2[i] / count[i] : 0.0f, epsilon);
    }
    memcpy(f->mean, stats + p->channels + c, (size_t)n * sizeof *f->mean);
    finish_factors(p, c, n, gamma, beta, f);
}

/* Input i, or NULL where the call has none. */
static const tdi_value *residual_of(const tdi_call *call, int i)
{
    return call->n_in > i && call->in[i].data ? &call->in[i] : NULL;
}

static void normalize_group(const tdi_call *call, const region *p, int64_t group)
{
    factors f;
    for (int64_t c = p->begin; c < p->end && !is_empty(p); c += BLOCK) {
        int64_t n = block_size(p, c);
        set_factors(call, p, c, n, stats_of(&call->in[1], group), call->in[2].data, call->in[3].data, &f);
        normalize(call, p, c, n, residual_of(call, TDI_BATCH_NORM_RESIDUAL), &f);
    }
}

static void batch_norm_run(const tdi_call *call)
{
    make_groups(call, &call->out.shape, &call->in[1], normalize_group);
}
TDI_CPU_KERNEL(batch_norm, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = batch_norm_run);

/* Makes the factors by moving statistics. */
static void set_moving_factors(const tdi_call *call, const region *p, int64_t c, int64_t n, factors *f)
{
    const float *mean = call->in[1].data, *variance = call->in[2].data, epsilon = epsilon_of(call);
    TDI_LANES for (int64_t i = 0; i < n; i++) f->inverse[i] = inverse_deviation(variance[c + i], epsilon);
    memcpy(f->mean, mean + c, (size_t)n * sizeof *mean);
    finish_factors(p, c, n, call->in[3].data, call->in[4].data, f);
}

static void batch_norm_inference_run(const tdi_call *call)
{
    region p = part_of(call, &call->out.shape);
    factors f;
    for (int64_t c = p.begin; c < p.end; c += BLOCK) {
        int64_t n = block_size(&p, c);
        set_moving_factors(call, &p, c, n, &f);
        normalize(call, &p, c, n, residual_of(call, TDI_BATCH_NORM_INFERENCE_RESIDUAL), &f);
    }
}
TDI_CPU_KERNEL(batch_norm_inference, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
               .run = batch_norm_inference_run);

/* ---- gradient ---- */

static void flush(const region *p, int64_t n, float *sums, double *totals)
{
    for (int64_t at = 0; at < n * p->together; at += n)
        for (int64_t i = 0; i < n; i++)
            totals[i] += (double)sums[at + i];
    clear(p, n, sums);
}

/* Sums the rows' g and g (x - mean); g is dy, or 0 where the rectifier stops it. */
TDI_INLINE void grad_rows(bool narrow, bool rectified, int rows, const void *x, const void *dy, int64_t apart,
                          int64_t n, const factors *f, float *sums, float *dots)
{
    int64_t i = 0;
    for (; i + TDI_WIDTH <= n; i += TDI_WIDTH) {
        tdi_vector mean = tdi_load(f->mean + i), scale = tdi_load(f->scale + i), shift = tdi_load(f->shift + i);
        tdi_vector sum = tdi_load(sums + i), dot = tdi_load(dots + i), zero = {0};
        for (int r = 0; r < rows; r++) {
            tdi_vector centred = tdi_get_vector(narrow, x, r * apart + i) - mean;
            tdi_vector g = tdi_get_vector(narrow, dy, r * apart + i);
            if (rectified)
                g = tdi_select(centred * scale + shift > zero, g, zero);
            sum += g;
            dot += g * centred;
        }
        tdi_store(sums + i, sum);
        tdi_store(dots + i, dot);
    }
    for (; i < n; i++)
        for (int r = 0; r < rows; r++) {
            float centred = tdi_get(narrow, x, r * apart + i) - f->mean[i], g = tdi_get(narrow, dy, r * apart + i);
            if (rectified)
                g = centred * f->scale[i] + f->shift[i] > 0.0f ? g : 0.0f;
            sums[i] += g;
            dots[i] += g * centred;
        }
}

TDI_INLINE void grad_chunk(bool narrow, bool rectified, const region *p, int64_t first, int64_t end, const void *x,
                           const void *dy, int64_t n, const factors *f, float *sums, float *dots)
{
    int64_t apart = p->channels * p->together, four = FOUR * p->together, r = first;
    for (; p->few && end - r >= four; r += four)
        grad_rows(narrow, rectified, FOUR, tdi_skip(narrow, x, r * p->channels), tdi_skip(narrow, dy, r * p->channels),
                  apart, n * p->together, f, sums, dots);
    for (; r < end; r += p->together)
        grad_rows(narrow, rectified, 1, tdi_skip(narrow, x, r * p->channels), tdi_skip(narrow, dy, r * p->channels),
                  apart, side_size(p, end - r, n), f, sums, dots);
}

TDI_INLINE void grad_sums(bool narrow, const region *p, const void *x, const void *dy, bool rectified, int64_t n,
                          const factors *f, double *sum, double *dot)
{
    float sums[BLOCK], dots[BLOCK];
    clear(p, n, sums);
    clear(p, n, dots);
    for (int64_t r = p->row_begin; r < p->row_end; r = chunk_end(p, r)) {
        if (rectified)
            grad_chunk(narrow, true, p, r, chunk_end(p, r), x, dy, n, f, sums, dots);
        else
            grad_chunk(narrow, false, p, r, chunk_end(p, r), x, dy, n, f, sums, dots);
        flush(p, n, sums, sum);
        flush(p, n, dots, dot);
    }
}

/* The sums of group `group` among all groups', [2 groups, channels]. */
static float *sums_of(const tdi_value *sums, int64_t group)
{
    return (float *)sums->data + 2 * group * sums->shape.dim[1];
}

static void grad_sums_of_rows(const tdi_call *call, const region *p, const float *stats, float *out)
{
    factors f;
    for (int64_t c = p->begin; c < p->end; c += BLOCK) {
        double sum[BLOCK], dot[BLOCK];
        int64_t n = block_size(p, c);
        memset(sum, 0, (size_t)n * sizeof *sum);
        memset(dot, 0, (size_t)n * sizeof *dot);
        set_factors(call, p, c, n, stats, call->in[3].data, call->in[4].data, &f);
        const void *x = tdi_element(&call->in[0], c), *dy = tdi_element(&call->in[1], c);
        if (call->in[0].dtype == TD_BFLOAT16)
            grad_sums(true, p, x, dy, attrs_of(call)->relu, n, &f, sum, dot);
        else
            grad_sums(false, p, x, dy, attrs_of(call)->relu, n, &f, sum, dot);
        TDI_LANES for (int64_t i = 0; i < n; i++)
        {
            out[c + i] = (float)sum[i];
            out[p->channels + c + i] = (float)(dot[i] * (double)f.inverse[i]);
        }
    }
}

/* Clears the sums of a group without rows, whose statistics must not be divided by. */
static void clear_sums(const region *p, float *out)
{
    for (int row = 0; row < 2; row++)
        memset(out + row * p->channels + p->begin, 0, (size_t)(p->end - p->begin) * sizeof *out);
}

static void grad_sums_of_group(const tdi_call *call, const region *p, int64_t group)
{
    if (is_empty(p))
        clear_sums(p, sums_of(&call->out, group));
    else
        grad_sums_of_rows(call, p, stats_of(&call->in[2], group), sums_of(&call->out, group));
}

static void batch_norm_grad_stats_run(const tdi_call *call)
{
    make_groups(call, &call->in[0].shape, &call->in[2], grad_sums_of_group);
}
TDI_CPU_KERNEL(batch_norm_grad_stats, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_COLUMNS,
               .run = batch_norm_grad_stats_run);

/* dx = (g - share - (x - mean) * slope) * scale */
typedef struct grad_factors {
    float share[BLOCK], slope[BLOCK];
} grad_factors;

TDI_INLINE void grad_vector(bool narrow, bool rectified, const void *x, const void *dy, int64_t i, int64_t count,
                            const factors *f, const grad_factors *g, void *to)
{
    tdi_vector zero = {0}, centred = tdi_get_first(narrow, x, i, count) - tdi_load(f->mean + i);
    tdi_vector d = tdi_get_first(narrow, dy, i, count), scale = tdi_load(f->scale + i);
    if (rectified)
        d = tdi_select(centred * scale + tdi_load(f->shift + i) > zero, d, zero);
    tdi_vector dx = (d - tdi_load(g->share + i) - centred * tdi_load(g->slope + i)) * scale;
    tdi_put_first(narrow, to, i, count, dx);
}

TDI_INLINE void grad_as(bool narrow, bool rectified, const region *p, const void *x, const void *dy, int64_t n,
                        const factors *f, const grad_factors *g, void *to)
{
    for (int64_t r = p->row_begin; r < p->row_end; r += p->together) {
        const void *from = tdi_skip(narrow, x, r * p->channels), *with = tdi_skip(narrow, dy, r * p->channels);
        void *out = tdi_skip(narrow, to, r * p->channels);
        int64_t side = side_size(p, p->row_end - r, n), i = 0;
        for (; i + TDI_WIDTH <= side; i += TDI_WIDTH)
            grad_vector(narrow, rectified, from, with, i, TDI_WIDTH, f, g, out);
        if (i < side)
            grad_vector(narrow, rectified, from, with, i, side - i, f, g, out);
    }
}

/* Makes dx for n channels from c on. */
static void grad_block(const tdi_call *call, const region *p, int64_t c, int64_t n, const factors *f,
                       const grad_factors *g)
{
    const void *x = tdi_element(&call->in[0], c), *dy = tdi_element(&call->in[1], c);
    void *to = tdi_element(&call->out, c);
    bool narrow = call->out.dtype == TD_BFLOAT16;
    if (attrs_of(call)->relu && narrow)
        grad_as(true, true, p, x, dy, n, f, g, to);
    else if (attrs_of(call)->relu)
        grad_as(false, true, p, x, dy, n, f, g, to);
    else if (narrow)
        grad_as(true, false, p, x, dy, n, f, g, to);
    else
        grad_as(false, false, p, x, dy, n, f, g, to);
}

static void set_grad_factors(const region *p, int64_t c, int64_t n, const float *stats, const float *sums,
                             const factors *f, grad_factors *g)
{
    const float *count = stats + c, *sum = sums + c, *dot = sums + p->channels + c;
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        g->share[i] = sum[i] / count[i];
        g->slope[i] = dot[i] / count[i] * f->inverse[i];
    }
    spread(p, n, g->share);
    spread(p, n, g->slope);
}

static void grad_input_of_group(const tdi_call *call, const region *p, int64_t group)
{
    const float *stats = stats_of(&call->in[2], group), *sums = sums_of(&call->in[3], group);
    factors f;
    grad_factors g;
    for (int64_t c = p->begin; c < p->end && !is_empty(p); c += BLOCK) {
        int64_t n = block_size(p, c);
        set_factors(call, p, c, n, stats, call->in[4].data, call->in[5].data, &f);
        set_grad_factors(p, c, n, stats, sums, &f, &g);
        grad_block(call, p, c, n, &f, &g);
    }
}

static void batch_norm_grad_input_run(const tdi_call *call)
{
    make_groups(call, &call->out.shape, &call->in[2], grad_input_of_group);
}
TDI_CPU_KERNEL(batch_norm_grad_input, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
               .run = batch_norm_grad_input_run);
