/* conv2d_isa.c - convolutions of few channels, a sample in each lane (conv2d_isa.h), and the gradient of their input.
 *
 * Samples stand abreast, [h, w, c, lane], or are turned that way and back block by block. In that layout the taps of
 * one filter row, [kw, c], are a straight run of vectors. The gradient of the input is a convolution of dy with the
 * filter turned about.
 *
 * Zeros of the padding stand left and right of each row that is read; above and below, filter rows are left out, and so
 * are the taps that only padding lies under, or the blank borders that a block's images have in common: handwritten
 * digits, say, fill two thirds of their rows. The results are the same but for the sign of a zero: blank
 * columns times an infinity or NaN, which is NaN, are not left out. */
#include "cpu/conv2d_isa.h"
#include "cpu/loops.h"
#include "cpu/math_isa.h"
#include "cpu/zeros_isa.h"

enum { ROWS = TDI_CONV_ROWS, COLUMNS = TDI_CONV_COLUMNS, SUMS = TDI_CONV_SUMS };

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
        if (x->abreast)
            memcpy(inside, from + i * line * TDI_WIDTH, (size_t)(columns * TDI_WIDTH) * sizeof *inside);
        else
            tdi_turn_in(from + i * line, sample, tdi_conv_lanes(p, block), columns, inside);
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

bool TDI_ISA_NAME(tdi_conv_find_filled)(const tdi_conv *p, const float *padded, tdi_span *filled)
{
    int64_t column = p->c * TDI_WIDTH, inside = tdi_least(p->row - p->before_w, p->w), blank = 0;
    const float *row = padded + p->before_w * column;
    for (int64_t i = 0; i < p->h; i++, row += tdi_conv_row_of_x(p)) {
        int64_t begin = 0, end = inside;
        while (begin < end && is_blank(row + begin * column, p->c))
            begin++;
        while (begin < end && is_blank(row + (end - 1) * column, p->c))
            end--;
        filled[i] = begin < end ? (tdi_span){(int32_t)begin, (int32_t)end} : TDI_CONV_BLANK;
        blank += inside - (end - begin);
    }
    return blank > 0;
}

/* ---- a row of y ---- */

/* What a row of y is made from: the rows of the filter that do not lie in the padding, and the first row of x they
 * meet. */
typedef struct sources {
    int64_t rows;
    const float *x, *filter, *bias;
    const tdi_span *filled; /* of those rows, or NULL */
} sources;

static sources sources_of(const tdi_conv *p, const float *padded, const float *filter, const float *bias, int64_t oy)
{
    int64_t top = oy * p->stride_h - p->before_h, begin = tdi_most(-top, 0), end = tdi_least(p->h - top, p->kh);
    return (sources){.rows = end - begin,
                     .x = padded + (top + begin) * tdi_conv_row_of_x(p),
                     .filter = filter + begin * p->kw * p->c * p->f,
                     .bias = bias,
                     .filled = p->filled ? p->filled + top + begin : NULL};
}

/* The taps under which, for any of `positions` neighbours from column `left` of the padded row on, columns [begin, end)
 * of x lie. */
TDI_INLINE tdi_rows taps_over(const tdi_conv *p, int64_t left, int positions, int64_t begin, int64_t end)
{
    int64_t first = p->before_w + begin - left - (positions - 1) * p->stride_w, last = p->before_w + end - left;
    return (tdi_rows){tdi_most(first, 0), tdi_least(last, p->kw)};
}

/* A tile of y: `filters` filters from `first` on, at `positions` neighbours from `column` on. `leave`: what is blank is
 * left out. */
TDI_INLINE void y_tile(bool leave, int filters, int positions, const tdi_conv *p, const sources *from, int64_t first,
                       int64_t column, float *to)
{
    tdi_vector sum[ROWS][COLUMNS];
    int64_t step = p->stride_w * p->c * TDI_WIDTH, left = column * p->stride_w;
    tdi_rows taps = taps_over(p, left, positions, 0, p->w);
    const float *x = from->x + left * p->c * TDI_WIDTH;
    const float *filter = from->filter + first, *bias = from->bias ? from->bias + first : NULL;
    TDI_UNROLL
    for (int i = 0; i < filters; i++) {
        TDI_UNROLL
        for (int j = 0; j < positions; j++)
            sum[i][j] = tdi_splat(bias ? bias[i] : 0.0f);
    }
    for (int64_t ky = 0; ky < from->rows; ky++, x += tdi_conv_row_of_x(p), filter += p->kw * p->c * p->f) {
        if (leave)
            taps = taps_over(p, left, positions, from->filled[ky].begin, from->filled[ky].end);
        for (int64_t k = taps.begin * p->c; k < taps.end * p->c; k++) {
            tdi_vector at[COLUMNS];
            TDI_UNROLL
            for (int j = 0; j < positions; j++)
                at[j] = tdi_load(x + k * TDI_WIDTH + j * step);
            TDI_UNROLL
            for (int i = 0; i < filters; i++) {
                TDI_UNROLL
                for (int j = 0; j < positions; j++)
                    sum[i][j] += filter[k * p->f + i] * at[j];
            }
        }
    }
    TDI_UNROLL
    for (int i = 0; i < filters; i++) {
        TDI_UNROLL
        for (int j = 0; j < positions; j++)
            tdi_store(to + ((column + j) * p->f + first + i) * TDI_WIDTH, sum[i][j]);
    }
}

/* A row of y for `filters` filters. */
TDI_INLINE void y_row(bool leave, int filters, const tdi_conv *p, const sources *from, int64_t first, float *to)
{
    enum { MOST = COLUMNS };
    int most_columns = filters * MOST > SUMS ? SUMS / filters : MOST;
    int64_t ox = 0;
    for (; ox + most_columns <= p->ow; ox += most_columns)
        y_tile(leave, filters, most_columns, p, from, first, ox, to);
    if (p->ow - ox == 3 && most_columns > 3)
        y_tile(leave, filters, 3, p, from, first, ox, to);
    else if (p->ow - ox == 2)
        y_tile(leave, filters, 2, p, from, first, ox, to);
    else if (p->ow - ox == 1)
        y_tile(leave, filters, 1, p, from, first, ox, to);
}

TDI_INLINE void any_y_row(bool leave, int64_t filters, const tdi_conv *p, const sources *from, int64_t first, float *to)
{
    switch (filters) {
#if defined(__AVX512F__)
    case 8:
        y_row(leave, 8, p, from, first, to);
        break;
    case 7:
        y_row(leave, 7, p, from, first, to);
        break;
    case 6:
        y_row(leave, 6, p, from, first, to);
        break;
    case 5:
        y_row(leave, 5, p, from, first, to);
        break;
#endif
    case 4:
        y_row(leave, 4, p, from, first, to);
        break;
    case 3:
        y_row(leave, 3, p, from, first, to);
        break;
    case 2:
        y_row(leave, 2, p, from, first, to);
        break;
    default:
        y_row(leave, 1, p, from, first, to);
        break;
    }
}

static void whole_y_row(int64_t filters, const tdi_conv *p, const sources *from, int64_t first, float *to)
{
    any_y_row(false, filters, p, from, first, to);
}

static void filled_y_row(int64_t filters, const tdi_conv *p, const sources *from, int64_t first, float *to)
{
    any_y_row(true, filters, p, from, first, to);
}

void TDI_ISA_NAME(tdi_conv_row)(const tdi_conv *p, const float *x, const float *filter, const float *bias, int64_t oy,
                                float *to)
{
    sources from = sources_of(p, x, filter, bias, oy);
    for (int64_t f = 0, now; f < p->f; f += now) {
        now = tdi_share_of(p->f - f, ROWS);
        (p->filled ? filled_y_row : whole_y_row)(now, p, &from, f, to);
    }
}

/* All rows of a block of samples; `row` is room for one that does not stand abreast. */
static void convolve_block(const tdi_conv *p, const float *x, const float *filter, const float *bias, int activation,
                           int64_t block, float *row, const tdi_value *y)
{
    int64_t line = p->ow * p->f, sample = p->oh * line, lanes = tdi_conv_lanes(p, block);
    float *to = (float *)y->data + (p->first + block * TDI_WIDTH) * sample;
    for (int64_t oy = 0; oy < p->oh; oy++) {
        float *made = y->abreast ? to + oy * tdi_conv_row_of_y(p) : row;
        TDI_ISA_NAME(tdi_conv_row)(p, x, filter, bias, oy, made);
        TDI_ISA_NAME(tdi_loops).epilogue(1, tdi_conv_row_of_y(p), 0, NULL, activation, made);
        if (!y->abreast)
            tdi_turn_out(row, lanes, line, to + oy * line, sample);
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
    tdi_span *filled = (tdi_span *)(row + tdi_conv_row_of_y(p));
    for (int64_t block = 0; block * TDI_WIDTH < p->samples; block++) {
        tdi_conv q = *p;
        const float *padded = TDI_ISA_NAME(tdi_conv_padded)(p, x, block, scratch);
        if (TDI_ISA_NAME(tdi_conv_find_filled)(p, padded, filled) && is_finite(p, filter))
            q.filled = filled;
        convolve_block(&q, padded, filter, bias, activation, block, row, y);
    }
}

static size_t convolve_room(const tdi_conv *p)
{
    int64_t floats = tdi_conv_padded_floats(p) + tdi_conv_row_of_y(p) + tdi_conv_span_floats(p);
    return (size_t)floats * sizeof(float);
}

/* ---- forward ---- */

static tdi_conv forward_conv(const tdi_call *call)
{
    tdi_conv p = tdi_conv_of(call, &call->in[0].shape, &call->in[1].shape, &call->out.shape);
    tdi_conv_set_row(&p, call->in[0].abreast);
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

TDI_CPU_KERNEL(conv2d, .splits = TDI_CAN_ROWS, .declines = conv2d_declines, .abreast = tdi_conv_leads_abreast,
               .prepare = conv2d_prepare, .run = conv2d_run);

/* ---- the gradient of the input ---- */

static tdi_conv grad_input_conv(const tdi_call *call)
{
    tdi_conv p = tdi_conv_of(call, &call->out.shape, &call->in[1].shape, &call->in[0].shape);
    p = tdi_conv_turned_about(&p);
    tdi_conv_set_row(&p, call->in[0].abreast);
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

/* [kh, kw, f, c] from the last tap to the first, for p.f of the one that gives dx: the forward filter's c. */
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
               .abreast = tdi_conv_leads_abreast, .prepare = conv2d_grad_input_prepare, .run = conv2d_grad_input_run);
