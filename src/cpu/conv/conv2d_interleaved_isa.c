/* conv2d_interleaved_isa.c - convolutions of few channels, one sample per SIMD lane (conv2d_interleaved_isa.h), and the
 * gradients of their inputs.
 *
 * Values are batch-interleaved, [h, w, c, lane], or are interleaved and back block by block. In that layout the taps of
 * one row of the filter, [kw, c], are a straight run of vectors. The gradient of the input is a convolution of dy with
 * the filter turned about.
 *
 * The zeros of the padding stand left and right of each row that is read. Above and below the image, rows of the filter
 * are left out, and so are the taps under which there is only padding.
 *
 * Where all images of a block have blank borders, as handwritten digits do, a pixel that sees nothing else is not
 * computed: it is what the bias alone gives. Results are the same but for the sign of a zero: blank columns are not
 * left out where they would be multiplied by an infinity or NaN, which gives NaN. */
#include "cpu/conv/conv2d_interleaved_isa.h"
#include "cpu/math_isa.h"
#include "cpu/skip_zeros_isa.h"
#include "cpu/vector_loops.h"

enum { ROWS = TDI_CONV_ROWS, COLUMNS = TDI_CONV_COLUMNS };

/* ---- x ---- */

const float *TDI_ISA_NAME(tdi_conv_padded)(const tdi_conv *p, const tdi_value *x, int64_t block, float *padded)
{
    int64_t line = p->w * p->c, sample = p->h * line, n = p->first + block * TDI_WIDTH;
    const float *from = (const float *)x->data + n * sample;
    if (p->in_place)
        return from;
    int64_t columns = tdi_least(p->row - p->before_w, p->w) * p->c, before = p->before_w * p->c * TDI_WIDTH;
    for (int64_t i = 0; i < p->h; i++) {
        float *row = padded + i * tdi_conv_row_of_x(p), *inside = row + before;
        tdi_clear(row, before);
        if (x->batch_interleaved)
            memcpy(inside, from + i * line * TDI_WIDTH, (size_t)(columns * TDI_WIDTH) * sizeof *inside);
        else
            tdi_interleave(from + i * line, sample, tdi_conv_block_samples(p, block), columns, inside);
        tdi_clear(inside + columns * TDI_WIDTH, tdi_conv_row_of_x(p) - before - columns * TDI_WIDTH);
    }
    return padded;
}

static bool is_blank(const float *column, int64_t channels)
{
    tdi_vector_bits any = {0};
    for (int64_t c = 0; c < channels; c++)
        any |= (tdi_vector_bits)tdi_load(column + c * TDI_WIDTH);
    return !tdi_nonzero_bits(any);
}

bool TDI_ISA_NAME(tdi_conv_find_nonblank)(const tdi_conv *p, const float *padded, tdi_span *nonblank)
{
    int64_t column = p->c * TDI_WIDTH, inside = tdi_least(p->row - p->before_w, p->w), blank = 0;
    const float *row = padded + p->before_w * column;
    for (int64_t i = 0; i < p->h; i++, row += tdi_conv_row_of_x(p)) {
        int64_t begin = 0, end = inside;
        while (begin < end && is_blank(row + begin * column, p->c))
            begin++;
        while (begin < end && is_blank(row + (end - 1) * column, p->c))
            end--;
        nonblank[i] = begin < end ? (tdi_span){(int32_t)begin, (int32_t)end} : TDI_CONV_BLANK;
        blank += inside - (end - begin);
    }
    return blank > 0;
}

/* ---- a row of y ---- */

/* The columns of y that see any of columns [begin, end) of x. There are none where x lies in the padding of the forward
 * convolution. */
static tdi_rows columns_seeing(const tdi_conv *p, int64_t begin, int64_t end)
{
    int64_t first = tdi_most(begin + p->before_w - p->kw + 1, 0), last = end - 1 + p->before_w;
    return (tdi_rows){tdi_least((first + p->stride_w - 1) / p->stride_w, p->ow),
                      tdi_least(last / p->stride_w + 1, p->ow)};
}

/* What a row of y is made from: the rows of the filter that lie neither over the padding nor over blank rows, the first
 * row of x that they meet, and the columns of y that see nonblank columns. */
typedef struct sources {
    int64_t rows;
    const float *x, *filter, *bias;
    tdi_rows columns;
} sources;

static tdi_rows filled_columns(const tdi_conv *p, tdi_rows of_x)
{
    int64_t begin = p->w, end = 0;
    for (int64_t i = of_x.begin; i < of_x.end; i++) {
        begin = tdi_least(begin, p->nonblank[i].begin);
        end = tdi_most(end, p->nonblank[i].end);
    }
    return begin < end ? columns_seeing(p, begin, end) : (tdi_rows){0, 0};
}

static bool is_blank_row(const tdi_conv *p, int64_t row)
{
    return p->nonblank && p->nonblank[row].begin >= p->nonblank[row].end;
}

static sources sources_of(const tdi_conv *p, const float *padded, const float *filter, const float *bias, int64_t oy)
{
    int64_t top = oy * p->stride_h - p->before_h;
    tdi_rows of_x = {tdi_most(top, 0), tdi_least(p->h, top + p->kh)};
    while (of_x.begin < of_x.end && is_blank_row(p, of_x.begin))
        of_x.begin++;
    while (of_x.begin < of_x.end && is_blank_row(p, of_x.end - 1))
        of_x.end--;
    return (sources){.rows = of_x.end - of_x.begin,
                     .x = padded + of_x.begin * tdi_conv_row_of_x(p),
                     .filter = filter + (of_x.begin - top) * p->kw * p->c * p->f,
                     .bias = bias,
                     .columns = p->nonblank ? filled_columns(p, of_x) : (tdi_rows){0, p->ow}};
}

/* The taps that meet a column of x, not only padding, for any of `positions` neighbours from column `left` of the
 * padded row on. */
TDI_INLINE tdi_rows taps_inside(const tdi_conv *p, int64_t left, int positions)
{
    int64_t first = p->before_w - left - (positions - 1) * p->stride_w, last = p->before_w + p->w - left;
    return (tdi_rows){tdi_most(first, 0), tdi_least(last, p->kw)};
}

/* A tile of y: some filters at some neighbouring positions, whose sums stay in registers. */
typedef struct tile {
    const float *x, *filter, *bias; /* x and filter at the first tap; bias may be NULL */
    float *to;
    int64_t rows, steps;         /* rows of the filter; taps of each, times channels */
    int64_t apart, x_row;        /* floats from position to position, and from row to row */
    int64_t filters, filter_row; /* floats from step to step, and from row to row */
} tile;

/* Each size of tile becomes a function of its own, so that other sizes' addresses do not take its registers. */
TDI_INLINE void make_tile(int filters, int positions, const tile *t)
{
    tdi_vector sum[ROWS][COLUMNS];
    const float *x = t->x, *filter = t->filter;
    int64_t apart = t->apart, next = t->filters;
    TDI_UNROLL
    for (int i = 0; i < filters; i++) {
        TDI_UNROLL
        for (int j = 0; j < positions; j++)
            sum[i][j] = tdi_splat(t->bias ? t->bias[i] : 0.0f);
    }
    for (int64_t ky = 0; ky < t->rows; ky++, x += t->x_row, filter += t->filter_row) {
        const float *under = x, *tap = filter, *behind = x + t->steps * TDI_WIDTH;
        for (; under < behind; under += TDI_WIDTH, tap += next) {
            tdi_vector at[COLUMNS];
            TDI_UNROLL
            for (int j = 0; j < positions; j++)
                at[j] = tdi_load(under + j * apart);
            TDI_UNROLL
            for (int i = 0; i < filters; i++) {
                TDI_UNROLL
                for (int j = 0; j < positions; j++)
                    sum[i][j] += tap[i] * at[j];
            }
        }
    }
    TDI_UNROLL
    for (int i = 0; i < filters; i++) {
        TDI_UNROLL
        for (int j = 0; j < positions; j++)
            tdi_store(t->to + (j * t->filters + i) * TDI_WIDTH, sum[i][j]);
    }
}

typedef void tile_of(const tile *t);

/* The sizes of tiles whose sums fit into the registers. */
#define THREE(X, filters_) X(filters_, 1) X(filters_, 2) X(filters_, 3)
#define FOUR(X, filters_)  THREE(X, filters_) X(filters_, 4)
#if defined(__AVX512F__)
#define ALL_TILES(X) FOUR(X, 1) FOUR(X, 2) FOUR(X, 3) FOUR(X, 4) FOUR(X, 5) FOUR(X, 6) THREE(X, 7) THREE(X, 8)
#else
#define ALL_TILES(X) THREE(X, 1) THREE(X, 2) THREE(X, 3) THREE(X, 4)
#endif

#define TILE(filters_, positions_)                                                                                     \
    static __attribute__((noinline)) void tile_##filters_##_##positions_(const tile *t)                                \
    {                                                                                                                  \
        make_tile(filters_, positions_, t);                                                                            \
    }
ALL_TILES(TILE)

#define PLACE(filters_, positions_) [filters_ - 1][positions_ - 1] = tile_##filters_##_##positions_,
static tile_of *const tiles[ROWS][COLUMNS] = {ALL_TILES(PLACE)};

/* Makes a row of y for `filters` filters from `first` on. */
static void y_row(int64_t filters, const tdi_conv *p, const sources *from, int64_t first, float *to)
{
    int64_t most = tiles[filters - 1][COLUMNS - 1] ? COLUMNS : COLUMNS - 1;
    tile t = {.bias = from->bias ? from->bias + first : NULL,
              .rows = from->rows,
              .apart = p->stride_w * p->c * TDI_WIDTH,
              .x_row = tdi_conv_row_of_x(p),
              .filters = p->f,
              .filter_row = p->kw * p->c * p->f};
    for (int64_t ox = from->columns.begin, now; ox < from->columns.end; ox += now) {
        now = tdi_least(from->columns.end - ox, most);
        int64_t left = ox * p->stride_w;
        tdi_rows taps = taps_inside(p, left, (int)now);
        t.x = from->x + (left + taps.begin) * p->c * TDI_WIDTH;
        t.filter = from->filter + taps.begin * p->c * p->f + first;
        t.steps = (taps.end - taps.begin) * p->c;
        t.to = to + (ox * p->f + first) * TDI_WIDTH;
        tiles[filters - 1][now - 1](&t);
    }
}

tdi_rows TDI_ISA_NAME(tdi_conv_row)(const tdi_conv *p, const float *x, const float *filter, const float *bias,
                                    int64_t oy, float *to)
{
    sources from = sources_of(p, x, filter, bias, oy);
    for (int64_t f = 0, now; f < p->f; f += now) {
        now = tdi_share_of(p->f - f, ROWS);
        y_row(now, p, &from, f, to);
    }
    return from.columns;
}

/* Makes a column of y that sees nothing but blank columns. */
static void make_blank(const tdi_conv *p, const float *bias, int activation, float *column)
{
    for (int64_t f = 0; f < p->f; f++)
        tdi_store(column + f * TDI_WIDTH, tdi_splat(bias ? bias[f] : 0.0f));
    TDI_ISA_NAME(tdi_vector_loops).epilogue(1, p->f * TDI_WIDTH, 0, NULL, activation, column);
}

static void fill(const float *blank, int64_t size, tdi_rows columns, float *row)
{
    for (int64_t i = columns.begin; i < columns.end; i++)
        memcpy(row + i * size, blank, (size_t)size * sizeof *row);
}

/* Makes all rows of a block of samples. `row` has room for a row that is not interleaved, and for a column. */
static void convolve_block(const tdi_conv *p, const float *x, const float *filter, const float *bias, int activation,
                           int64_t block, float *row, const tdi_value *y)
{
    int64_t column = p->f * TDI_WIDTH, line = p->ow * p->f, sample = p->oh * line,
            lanes = tdi_conv_block_samples(p, block);
    float *to = (float *)y->data + (p->first + block * TDI_WIDTH) * sample, *blank = row + tdi_conv_row_of_y(p);
    if (p->nonblank)
        make_blank(p, bias, activation, blank);
    for (int64_t oy = 0; oy < p->oh; oy++) {
        float *made = y->batch_interleaved ? to + oy * tdi_conv_row_of_y(p) : row;
        tdi_rows seen = TDI_ISA_NAME(tdi_conv_row)(p, x, filter, bias, oy, made);
        tdi_conv_activate(p, seen, activation, made);
        fill(blank, column, (tdi_rows){0, seen.begin}, made);
        fill(blank, column, (tdi_rows){seen.end, p->ow}, made);
        if (!y->batch_interleaved)
            tdi_deinterleave(row, lanes, line, to + oy * line, sample);
    }
}

static bool is_finite(const tdi_conv *p, const float *filter)
{
    const int32_t exponent = 0x7f800000;
    int32_t others = 0;
    for (int64_t i = 0; i < tdi_conv_filter_floats(p); i++)
        others |= (math_bits(filter[i]) & exponent) == exponent;
    return !others;
}

static void convolve(const tdi_conv *p, const tdi_value *x, const float *filter, const float *bias, int activation,
                     float *scratch, const tdi_value *y)
{
    float *row = scratch + tdi_conv_padded_floats(p);
    tdi_span *nonblank = (tdi_span *)(row + tdi_conv_row_of_y(p) + p->f * TDI_WIDTH);
    for (int64_t block = 0; block * TDI_WIDTH < p->samples; block++) {
        tdi_conv q = *p;
        const float *padded = TDI_ISA_NAME(tdi_conv_padded)(p, x, block, scratch);
        if (TDI_ISA_NAME(tdi_conv_find_nonblank)(p, padded, nonblank) && is_finite(p, filter))
            q.nonblank = nonblank;
        convolve_block(&q, padded, filter, bias, activation, block, row, y);
    }
}

static size_t convolve_room(const tdi_conv *p)
{
    int64_t floats = tdi_conv_padded_floats(p) + tdi_conv_row_of_y(p) + p->f * TDI_WIDTH + tdi_conv_span_floats(p);
    return (size_t)floats * sizeof(float);
}

/* ---- forward ---- */

static tdi_conv forward_conv(const tdi_call *call)
{
    tdi_conv p = tdi_conv_of(call, &call->in[0].shape, &call->in[1].shape, &call->out.shape);
    tdi_conv_set_row(&p, call->in[0].batch_interleaved);
    return p;
}

static const char *conv2d_declines(const tdi_call *call)
{
    tdi_conv p = forward_conv(call);
    const char *why = tdi_conv_declines(call, &call->in[0].shape, &call->out.shape);
    return why ? why : tdi_conv_declines_padding(&p);
}

static td_status conv2d_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    tdi_conv p = forward_conv(call);
    *scratch = convolve_room(&p);
    return tdi_conv_check_samples(&p, error);
}

static void conv2d_run(const tdi_call *call)
{
    tdi_conv p = forward_conv(call);
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    convolve(&p, &call->in[0], call->in[1].data, bias, ((const tdi_conv2d_attrs *)call->attrs)->activation,
             call->scratch, &call->out);
}

TDI_CPU_KERNEL(conv2d, .splits = TDI_CAN_ROWS, .declines = conv2d_declines,
               .interleaving = tdi_conv_prefers_interleaving, .prepare = conv2d_prepare, .run = conv2d_run);

/* ---- the gradient of the input ---- */

static tdi_conv grad_input_conv(const tdi_call *call)
{
    tdi_conv p = tdi_conv_of(call, &call->out.shape, &call->in[1].shape, &call->in[0].shape);
    p = tdi_conv_turned_about(&p);
    tdi_conv_set_row(&p, call->in[0].batch_interleaved);
    return p;
}

static const char *conv2d_grad_input_declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    if (a->stride_h > 1 || a->stride_w > 1)
        return "strides";
    tdi_conv p = grad_input_conv(call);
    const char *why = tdi_conv_declines(call, &call->out.shape, &call->in[0].shape);
    return why ? why : tdi_conv_declines_padding(&p);
}

static td_status conv2d_grad_input_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    tdi_conv p = grad_input_conv(call);
    *scratch = convolve_room(&p) + (size_t)tdi_conv_filter_floats(&p) * sizeof(float);
    return tdi_conv_check_samples(&p, error);
}

/* Turns the filter about: [kh, kw, f, c] from the last tap to the first. `p` is the convolution that gives dx, whose
 * p.f is the forward filter's c. */
static void turn_filter(const tdi_conv *p, const float *filter, float *to)
{
    for (int64_t k = 0; k < p->kh * p->kw; k++) {
        const float *tap = filter + (p->kh * p->kw - 1 - k) * p->c * p->f;
        for (int64_t f = 0; f < p->c; f++)
            for (int64_t c = 0; c < p->f; c++)
                *to++ = tap[c * p->c + f];
    }
}

static void conv2d_grad_input_run(const tdi_call *call)
{
    tdi_conv p = grad_input_conv(call);
    float *rest = call->scratch, *filter = rest + convolve_room(&p) / sizeof *rest;
    turn_filter(&p, call->in[1].data, filter);
    convolve(&p, &call->in[0], filter, NULL, TD_LINEAR, rest, &call->out);
}

TDI_CPU_KERNEL(conv2d_grad_input, .splits = TDI_CAN_ROWS, .declines = conv2d_grad_input_declines,
               .interleaving = tdi_conv_prefers_interleaving, .prepare = conv2d_grad_input_prepare,
               .run = conv2d_grad_input_run);
