/* reduce_isa.c - sums, means and maxima over adjacent axes: x as [outer, reduced, inner] -> [outer, inner]; a batch's
 * mean, sums for the log, and penalties of regularizers.
 *
 * Where there are few columns, several rows are added side by side, so that all lanes are in use. Every so many rows
 * the float sums are added to doubles, so that rounding errors do not grow with the number of rows. The order of the
 * additions depends on shapes alone. */
#include "cpu/batch_interleaved_isa.h"

static const char *declines(const tdi_call *call)
{
    tdi_reduce_extents e;
    return tdi_find_reduce_extents(call, &e) ? NULL : "reduced axes that are not adjacent";
}

static float finish(int kind, double value, int64_t count)
{
    return (float)(kind == TDI_MEAN ? value / (double)count : value);
}

static float reduce_row(int kind, const float *x, int64_t n)
{
    return kind == TDI_MAX ? tdi_largest(x, n) : finish(kind, tdi_sum(x, n), n);
}

enum {
    SIDE = 512,
    /* sums side by side, at most */ FLUSH = 64 /* additions to a float sum before it goes to a double */
};

static void add_stretch(int64_t n, const float *x, float *sums)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) sums[i] += x[i];
}

/* Adds `vectors` vectors of each of `rows` rows; the sums stay in registers. */
TDI_INLINE void add_vectors(const float *x, int64_t rows, int64_t stride, int vectors, float *sums)
{
    tdi_vector sum[8];
    TDI_UNROLL
    for (int v = 0; v < vectors; v++)
        sum[v] = tdi_load(sums + v * TDI_WIDTH);
    for (int64_t r = 0; r < rows; r++) {
        TDI_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[v] += tdi_load(x + r * stride + v * TDI_WIDTH);
    }
    TDI_UNROLL
    for (int v = 0; v < vectors; v++)
        tdi_store(sums + v * TDI_WIDTH, sum[v]);
}

static void add_rows(const float *x, int64_t rows, int64_t stride, int64_t n, float *sums)
{
    int64_t i = 0;
    for (; i + 8 * TDI_WIDTH <= n; i += 8 * TDI_WIDTH)
        add_vectors(x + i, rows, stride, 8, sums + i);
    for (; i + 4 * TDI_WIDTH <= n; i += 4 * TDI_WIDTH)
        add_vectors(x + i, rows, stride, 4, sums + i);
    for (; i + 2 * TDI_WIDTH <= n; i += 2 * TDI_WIDTH)
        add_vectors(x + i, rows, stride, 2, sums + i);
    for (int64_t r = 0; r < rows && i < n; r++)
        add_stretch(n - i, x + r * stride + i, sums + i);
}

static void flush(int64_t n, int64_t columns, float *sums, double *totals)
{
    for (int64_t begin = 0; begin < n; begin += columns) {
        TDI_LANES
        for (int64_t c = 0; c < columns; c++)
            totals[c] += (double)sums[begin + c];
    }
    memset(sums, 0, (size_t)n * sizeof *sums);
}

/* Sums `rows` contiguous rows of `columns` <= SIDE numbers. */
static void sum_narrow(const float *x, int64_t rows, int64_t columns, double *totals)
{
    float sums[SIDE] = {0};
    int64_t together = columns < 64 ? 64 / columns : 1, side = together * columns, blocks = rows / together;
    for (int64_t b = 0; b < blocks; b += FLUSH) {
        add_rows(x + b * side, tdi_least(FLUSH, blocks - b), side, side, sums);
        flush(side, columns, sums, totals);
    }
    add_stretch((rows - blocks * together) * columns, x + blocks * side, sums);
    flush(side, columns, sums, totals);
}

/* Sums n <= SIDE numbers of rows that are `stride` apart. */
static void sum_wide(const float *x, int64_t rows, int64_t stride, int64_t n, double *totals)
{
    float sums[SIDE] = {0};
    for (int64_t first = 0; first < rows; first += FLUSH) {
        add_rows(x + first * stride, tdi_least(FLUSH, rows - first), stride, n, sums);
        flush(n, n, sums, totals);
    }
}

static void sum_columns(int kind, const float *x, int64_t rows, int64_t stride, int64_t n, float *to)
{
    double totals[SIDE] = {0};
    if (n == stride)
        sum_narrow(x, rows, n, totals);
    else
        sum_wide(x, rows, stride, n, totals);
    for (int64_t i = 0; i < n; i++)
        to[i] = finish(kind, totals[i], rows);
}

static void max_columns(const float *x, int64_t rows, int64_t stride, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = -INFINITY;
    for (int64_t r = 0; r < rows; r++)
        TDI_LANES for (int64_t i = 0; i < n; i++)
        {
            float a = x[r * stride + i];
            to[i] = ((a > to[i]) | (a != a)) ? a : to[i];
        }
}

/* Makes elements [begin, begin + n) of the result. */
static void reduce_stretch(const tdi_call *call, const tdi_reduce_extents *e, int64_t begin, int64_t n)
{
    int kind = ((const tdi_reduce_attrs *)call->attrs)->kind;
    const float *x = call->in[0].data;
    float *to = call->out.data;
    if (e->reduced == 1) { /* a sum of one row */
        memcpy(to + begin, x + begin, (size_t)n * sizeof *to);
        return;
    }
    while (n > 0) {
        int64_t o = begin / e->inner, c = begin % e->inner, now = e->inner - c < n ? e->inner - c : n;
        const float *from = x + o * e->reduced * e->inner + c;
        now = now < SIDE ? now : SIDE;
        if (e->inner == 1)
            to[begin] = reduce_row(kind, from, e->reduced);
        else if (kind == TDI_MAX)
            max_columns(from, e->reduced, e->inner, now, to + begin);
        else
            sum_columns(kind, from, e->reduced, e->inner, now, to + begin);
        begin += now;
        n -= now;
    }
}

/* Takes batch-interleaved x for sums over all axes but the channels: the gradient of a bias. */
static tdi_batch_interleaving accepts_interleaving(const tdi_call *call)
{
    const tdi_reduce_attrs *attrs = call->attrs;
    const td_shape *x = &call->in[0].shape;
    bool all_but_last = attrs->axes == (1u << (x->rank - 1)) - 1;
    return x->rank > 1 && all_but_last && attrs->kind == TDI_SUM ? TDI_ACCEPTS_INTERLEAVING : TDI_NO_INTERLEAVING;
}

/* Sums n channels from `first` on of a batch-interleaved x. */
static void sum_interleaved(const tdi_value *x, int64_t first, int64_t n, float *to)
{
    int64_t channels = tdi_last_extent(&x->shape), stride = channels * TDI_WIDTH;
    int64_t positions = tdi_per_sample(x) / channels, samples = x->shape.dim[0];
    double sums[SIDE / TDI_WIDTH] = {0};
    for (int64_t block = 0; block * TDI_WIDTH < samples; block++) {
        double totals[SIDE] = {0};
        const float *from = (const float *)x->data + block * positions * stride + first * TDI_WIDTH;
        if (n == channels)
            sum_narrow(from, positions, stride, totals);
        else
            sum_wide(from, positions, stride, n * TDI_WIDTH, totals);
        for (int64_t c = 0; c < n; c++)
            for (int64_t lane = 0; lane < tdi_block_samples(x, block); lane++)
                sums[c] += totals[c * TDI_WIDTH + lane];
    }
    for (int64_t c = 0; c < n; c++)
        to[c] = (float)sums[c];
}

static void reduce_interleaved(const tdi_call *call)
{
    enum { MOST = SIDE / TDI_WIDTH };
    int64_t channels = tdi_last_extent(&call->in[0].shape);
    for (int64_t c = 0; c < channels; c += MOST)
        sum_interleaved(&call->in[0], c, channels - c < MOST ? channels - c : MOST, (float *)call->out.data + c);
}

static void reduce_run(const tdi_call *call)
{
    if (call->in[0].batch_interleaved) {
        reduce_interleaved(call);
        return;
    }
    tdi_reduce_extents e;
    tdi_find_reduce_extents(call, &e);
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        reduce_stretch(call, &e, runs.first + r * runs.stride, runs.length);
}

TDI_CPU_KERNEL(reduce, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT, .declines = declines,
               .interleaving = accepts_interleaving, .run = reduce_run);

/* sum(x) / rows of the global batch / (elements per row) */
static void batch_mean_run(const tdi_call *call)
{
    const td_shape *x = &call->in[0].shape;
    int64_t elements = tdi_shape_elements(x), rows = x->rank ? x->dim[0] : 1, per_row = rows ? elements / rows : 1;
    double sum = tdi_sum(call->in[0].data, elements);
    *(float *)call->out.data = (float)(sum * (double)call->control->inverse_rows / (double)per_row);
}

TDI_CPU_KERNEL(batch_mean, .run = batch_mean_run);

/* ---- sums for the log: in doubles, in CHAINS independent chains of additions ---- */

enum { CHAINS = 16 };

static double fold_chains(const double *chain)
{
    double sum = 0;
    for (int i = 0; i < CHAINS; i++)
        sum += chain[i];
    return sum;
}

static const char *accumulate_declines(const tdi_call *call)
{
    return call->n_in > 1 ? "weighted sums are left to the reference" : NULL;
}

static void accumulate_run(const tdi_call *call)
{
    const float *x = call->in[0].data;
    double *out = call->out.data, sum[CHAINS] = {0};
    int64_t count = tdi_shape_elements(&call->in[0].shape), i = 0;
    for (; i + CHAINS <= count; i += CHAINS)
        TDI_UNROLL
    for (int j = 0; j < CHAINS; j++)
        sum[j] += (double)x[i + j];
    for (; i < count; i++)
        sum[i % CHAINS] += (double)x[i];
    out[0] += fold_chains(sum);
    out[1] += (double)count;
}

TDI_CPU_KERNEL(accumulate, .declines = accumulate_declines, .run = accumulate_run);

/* ---- penalties of regularizers ---- */

static void regularization_run(const tdi_call *call)
{
    const tdi_regularize_attrs *attrs = call->attrs;
    float *out = call->out.data;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t row = runs.first; row < runs.first + runs.length; row++) {
        tdi_penalty_range of = tdi_penalty_range_of(call, row);
        const float *w = (const float *)call->in[0].data + of.begin;
        double sum = 0;
        if (attrs->l1 != 0.0f)
            sum += (double)attrs->l1 * tdi_sum_of(TDI_ITS_SIZE, w, of.end - of.begin);
        if (attrs->l2 != 0.0f)
            sum += (double)attrs->l2 * tdi_sum_of(TDI_ITS_SQUARE, w, of.end - of.begin);
        out[row] = (float)((double)of.rows * sum);
    }
}

TDI_CPU_KERNEL(regularization, .splits = TDI_CAN_ROWS, .run = regularization_run);
