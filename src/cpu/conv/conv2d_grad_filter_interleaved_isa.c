/* conv2d_grad_filter_interleaved_isa.c - the gradient of the filter of a convolution of few channels, one sample per
 * SIMD lane (conv2d_interleaved_isa.h). Each lane keeps a sum of its own; the lanes are added up last. Columns of x
 * that are blank in all images of a block are left out, where what they would be multiplied by is finite and columns
 * are not strided. */
#include "cpu/conv/conv2d_interleaved_isa.h"
#include "cpu/skip_zeros_isa.h"

enum { ROWS = TDI_CONV_ROWS, COLUMNS = TDI_CONV_COLUMNS, SUMS = TDI_CONV_SUMS };
enum { CHUNK_BYTES = 24 * 1024 /* of dy; they stay in the first-level cache */ };

/* Rows of dy, and the rows of x that one row of the filter meets for them. */
typedef struct strip {
    const float *x, *dy;
    const tdi_span *nonblank; /* each row of x's nonblank columns, or NULL */
    int64_t rows;
} strip;

/* The columns of dy for which any of `taps` taps from tap k on meets nonblank columns of x. Columns are not strided. */
TDI_INLINE tdi_rows columns_under(const tdi_conv *p, const tdi_span *nonblank, int64_t k, int taps)
{
    int64_t first = p->before_w - k / p->c, last = p->before_w - (k + taps - 1) / p->c;
    return (tdi_rows){tdi_most(nonblank->begin + last, 0), tdi_least(nonblank->end + first, p->ow)};
}

/* Adds to `sums` [taps, f, lane] the products of `taps` taps from tap k on with `filters` filters of dy. The products
 * are summed on their own first, so that rounding errors do not grow with the sums so far. `leave`: blank columns are
 * left out. */
TDI_INLINE void tap_tile(bool leave, int filters, int taps, const tdi_conv *p, const strip *from, int64_t k, bool fresh,
                         float *sums)
{
    tdi_vector sum[ROWS][COLUMNS];
    TDI_UNROLL
    for (int i = 0; i < filters; i++) {
        TDI_UNROLL
        for (int j = 0; j < taps; j++)
            sum[i][j] = (tdi_vector){0};
    }
    const float *x = from->x + k * TDI_WIDTH, *dy = from->dy;
    for (int64_t oy = 0; oy < from->rows; oy++) {
        const float *at_x = x + oy * p->stride_h * tdi_conv_row_of_x(p), *at_y = dy + oy * tdi_conv_row_of_y(p);
        int64_t count = p->ow;
        if (leave) {
            tdi_rows columns = columns_under(p, from->nonblank + oy * p->stride_h, k, taps);
            if (columns.begin >= columns.end)
                continue;
            at_x += columns.begin * p->c * TDI_WIDTH;
            at_y += columns.begin * p->f * TDI_WIDTH;
            count = columns.end - columns.begin;
        }
        for (int64_t ox = 0; ox < count; ox++, at_x += p->stride_w * p->c * TDI_WIDTH, at_y += p->f * TDI_WIDTH) {
            tdi_vector tap[COLUMNS];
            TDI_UNROLL
            for (int j = 0; j < taps; j++)
                tap[j] = tdi_load(at_x + j * TDI_WIDTH);
            TDI_UNROLL
            for (int i = 0; i < filters; i++) {
                tdi_vector d = tdi_load_to_register(at_y + i * TDI_WIDTH);
                TDI_UNROLL
                for (int j = 0; j < taps; j++)
                    sum[i][j] += d * tap[j];
            }
        }
    }
    TDI_UNROLL
    for (int i = 0; i < filters; i++) {
        TDI_UNROLL
        for (int j = 0; j < taps; j++) {
            float *to = sums + ((k + j) * p->f + i) * TDI_WIDTH;
            tdi_store(to, fresh ? sum[i][j] : tdi_load(to) + sum[i][j]);
        }
    }
}

/* Makes one row of the filter for `filters` filters. */
TDI_INLINE void tap_row(bool leave, int filters, const tdi_conv *p, const strip *from, bool fresh, float *sums)
{
    enum { MOST = COLUMNS };
    int most_taps = filters * MOST > SUMS ? SUMS / filters : MOST;
    int64_t taps = p->kw * p->c, k = 0;
    for (; k + most_taps <= taps; k += most_taps)
        tap_tile(leave, filters, most_taps, p, from, k, fresh, sums);
    if (taps - k == 3 && most_taps > 3)
        tap_tile(leave, filters, 3, p, from, k, fresh, sums);
    else if (taps - k == 2)
        tap_tile(leave, filters, 2, p, from, k, fresh, sums);
    else if (taps - k == 1)
        tap_tile(leave, filters, 1, p, from, k, fresh, sums);
}

TDI_INLINE void any_tap_row(bool leave, int64_t filters, const tdi_conv *p, const strip *from, bool fresh, float *sums)
{
    switch (filters) {
#if defined(__AVX512F__)
    case 8:
        tap_row(leave, 8, p, from, fresh, sums);
        break;
    case 7:
        tap_row(leave, 7, p, from, fresh, sums);
        break;
    case 6:
        tap_row(leave, 6, p, from, fresh, sums);
        break;
    case 5:
        tap_row(leave, 5, p, from, fresh, sums);
        break;
#endif
    case 4:
        tap_row(leave, 4, p, from, fresh, sums);
        break;
    case 3:
        tap_row(leave, 3, p, from, fresh, sums);
        break;
    case 2:
        tap_row(leave, 2, p, from, fresh, sums);
        break;
    default:
        tap_row(leave, 1, p, from, fresh, sums);
        break;
    }
}

static void whole_tap_row(int64_t filters, const tdi_conv *p, const strip *from, bool fresh, float *sums)
{
    any_tap_row(false, filters, p, from, fresh, sums);
}

static void filled_tap_row(int64_t filters, const tdi_conv *p, const strip *from, bool fresh, float *sums)
{
    any_tap_row(true, filters, p, from, fresh, sums);
}

/* The rows of y in [begin, end) for which row ky of the filter does not lie in the padding. */
static tdi_rows rows_under(const tdi_conv *p, int64_t ky, int64_t begin, int64_t end)
{
    int64_t above = p->before_h - ky, below = p->h + above;
    return (tdi_rows){tdi_most(begin, above > 0 ? (above + p->stride_h - 1) / p->stride_h : 0),
                      tdi_least(end, below > 0 ? (below + p->stride_h - 1) / p->stride_h : 0)};
}

/* Adds rows `y` of a block of samples, for `now` filters; dy begins with the first of these rows. */
static void add_rows(const tdi_conv *p, const float *padded, const float *dy, tdi_rows y, int64_t f, int64_t now,
                     bool fresh, float *sums)
{
    int64_t row_of_sums = p->kw * p->c * p->f * TDI_WIDTH;
    for (int64_t ky = 0; ky < p->kh; ky++) {
        tdi_rows r = rows_under(p, ky, y.begin, y.end);
        if (r.begin >= r.end)
            continue;
        int64_t top = r.begin * p->stride_h + ky - p->before_h;
        strip from = {.x = padded + top * tdi_conv_row_of_x(p),
                      .dy = dy + (r.begin - y.begin) * tdi_conv_row_of_y(p) + f * TDI_WIDTH,
                      .nonblank = p->nonblank ? p->nonblank + top : NULL,
                      .rows = r.end - r.begin};
        (p->nonblank ? filled_tap_row : whole_tap_row)(now, p, &from, fresh, sums + ky * row_of_sums + f * TDI_WIDTH);
    }
}

void TDI_ISA_NAME(tdi_conv_correlate)(const tdi_conv *p, const float *x, const float *dy, tdi_rows y, bool fresh,
                                      float *sums)
{
    for (int64_t f = 0, now; f < p->f; f += now) {
        now = tdi_share_of(p->f - f, ROWS);
        add_rows(p, x, dy, y, f, now, fresh, sums);
    }
}

/* How many rows of dy are worked on at a time. */
static int64_t chunk_rows(const tdi_conv *p)
{
    int64_t rows = CHUNK_BYTES / (p->ow * tdi_least(p->f, ROWS) * TDI_WIDTH * (int64_t)sizeof(float));
    return tdi_share_of(p->oh, tdi_most(rows, 1));
}

static int64_t chunk_floats(const tdi_conv *p, bool interleaved)
{
    return interleaved ? 0 : chunk_rows(p) * tdi_conv_row_of_y(p);
}

static void add_block(const tdi_conv *p, const tdi_value *x, const tdi_value *dy, int64_t block, float *room,
                      float *sums)
{
    int64_t line = p->ow * p->f, sample = p->oh * line, lanes = tdi_conv_block_samples(p, block);
    const float *padded = TDI_ISA_NAME(tdi_conv_padded)(p, x, block, room),
                *from = (const float *)dy->data + block * TDI_WIDTH * sample;
    float *chunk = room + tdi_conv_padded_floats(p);
    tdi_span *nonblank = (tdi_span *)(chunk + chunk_floats(p, dy->batch_interleaved));
    bool any_blank = p->stride_w == 1 && TDI_ISA_NAME(tdi_conv_find_nonblank)(p, padded, nonblank);
    tdi_conv q = *p;
    for (int64_t oy = 0; oy < p->oh; oy += chunk_rows(p)) {
        tdi_rows y = {oy, tdi_least(oy + chunk_rows(p), p->oh)};
        if (!dy->batch_interleaved)
            tdi_interleave(from + oy * line, sample, lanes, (y.end - y.begin) * line, chunk);
        const float *at = dy->batch_interleaved ? from + oy * tdi_conv_row_of_y(p) : chunk;
        bool leave = any_blank && tdi_all_finite(at, 0, 1, NULL, (y.end - y.begin) * tdi_conv_row_of_y(p));
        q.nonblank = leave ? nonblank : NULL;
        TDI_ISA_NAME(tdi_conv_correlate)(&q, padded, at, y, false, sums);
    }
}

/* A block that is not full comes first, so that the sums of its empty lanes can be cleared. */
static void add_blocks(const tdi_conv *p, const tdi_value *x, const tdi_value *dy, float *room, float *sums)
{
    int64_t full = p->samples / TDI_WIDTH, rest = p->samples % TDI_WIDTH, count = tdi_conv_filter_floats(p);
    tdi_clear(sums, count * TDI_WIDTH);
    if (rest) {
        add_block(p, x, dy, full, room, sums);
        for (int64_t i = 0; i < count; i++)
            tdi_clear(sums + i * TDI_WIDTH + rest, TDI_WIDTH - rest);
    }
    for (int64_t block = 0; block < full; block++)
        add_block(p, x, dy, block, room, sums);
}

void TDI_ISA_NAME(tdi_conv_add_lanes)(const float *sums, int64_t count, float *to)
{
    int64_t i = 0;
    for (; i + TDI_WIDTH <= count; i += TDI_WIDTH)
        tdi_store(to + i, tdi_fold_rows(sums + i * TDI_WIDTH));
    for (; i < count; i++)
        to[i] = tdi_fold_sum(tdi_load(sums + i * TDI_WIDTH));
}

static tdi_conv grad_filter_conv(const tdi_call *call)
{
    tdi_conv p = tdi_conv_of(call, &call->in[0].shape, &call->out.shape, &call->in[1].shape);
    tdi_conv_set_row(&p, call->in[0].batch_interleaved);
    return p;
}

static const char *conv2d_grad_filter_declines(const tdi_call *call)
{
    tdi_conv p = grad_filter_conv(call);
    const char *why = tdi_conv_declines(call, &call->in[0].shape, &call->in[1].shape);
    return why ? why : tdi_conv_declines_padding(&p);
}

static td_status conv2d_grad_filter_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    tdi_conv p = grad_filter_conv(call);
    int64_t floats = tdi_conv_padded_floats(&p) + chunk_floats(&p, call->in[1].batch_interleaved) +
                     tdi_conv_span_floats(&p) + tdi_conv_filter_floats(&p) * TDI_WIDTH;
    *scratch = (size_t)floats * sizeof(float);
    return tdi_conv_check_samples(&p, error);
}

static void conv2d_grad_filter_run(const tdi_call *call)
{
    tdi_conv p = grad_filter_conv(call);
    float *sums = call->scratch, *room = sums + tdi_conv_filter_floats(&p) * TDI_WIDTH;
    add_blocks(&p, &call->in[0], &call->in[1], room, sums);
    TDI_ISA_NAME(tdi_conv_add_lanes)(sums, tdi_conv_filter_floats(&p), call->out.data);
}

TDI_CPU_KERNEL(conv2d_grad_filter, .declines = conv2d_grad_filter_declines,
               .interleaving = tdi_conv_prefers_interleaving, .prepare = conv2d_grad_filter_prepare,
               .run = conv2d_grad_filter_run);
