/* conv2d_isa.c - convolutions of few channels: as many samples as a vector has lanes are worked on at once, one in
 * each.
 *
 * So the lanes are full whatever the number of channels. Samples come in as [h, w, c] each and are turned to
 * [h, w, c, lane], the padding put around them; results are turned back row by row. In that layout the taps of one
 * filter row, [kw, c], are a straight run of vectors. The gradient of the input is a convolution of dy, padded the
 * other way round, with the filter turned about; that of the filter keeps one sum per lane, and adds the lanes up last.
 */
#include "cpu/isa.h"
#include "cpu/loops.h"

#if defined(__AVX512F__)
enum { ROWS = 8, COLUMNS = 3 }; /* of a tile of sums, in registers */
#else
enum { ROWS = 4, COLUMNS = 3 };
#endif
enum { FEW = 16, /* channels */ CHUNK_BYTES = 24 * 1024 /* of dy: what stays in the first cache */ };

/* One convolution: padded x [padded_h, padded_w, c, lane], filter [kh, kw, c, f] -> y [oh, ow, f, lane]. */
typedef struct conv {
    int64_t samples; /* to make, from `first` on */
    int64_t first;
    int64_t h, w, c, kh, kw, f, oh, ow, stride_h, stride_w;
    int64_t before_h, before_w, padded_h, padded_w;
} conv;

static int64_t row_of_x(const conv *p)
{
    return p->padded_w * p->c * TDI_WIDTH;
}

static int64_t row_of_y(const conv *p)
{
    return p->ow * p->f * TDI_WIDTH;
}

static int64_t padded_floats(const conv *p)
{
    return p->padded_h * row_of_x(p);
}

static int64_t filter_floats(const conv *p)
{
    return p->kh * p->kw * p->c * p->f;
}

/* Rows of dy that are turned at a time. */
static int64_t chunk_rows(const conv *p)
{
    int64_t rows = CHUNK_BYTES / (row_of_y(p) * (int64_t)sizeof(float));
    return rows < 1 ? 1 : rows < p->oh ? rows : p->oh;
}

static void set_samples(conv *p, const tdi_call *call, int64_t all)
{
    bool rows = call->split == TDI_ROWS;
    p->first = rows ? call->begin : 0;
    p->samples = rows ? call->end - call->begin : all;
}

static conv conv_of(const tdi_call *call, const td_shape *x, const td_shape *filter, const td_shape *y)
{
    const tdi_conv2d_attrs *a = call->attrs;
    conv p = {.h = x->dim[1], .w = x->dim[2], .c = x->dim[3], .kh = filter->dim[0], .kw = filter->dim[1]};
    set_samples(&p, call, x->dim[0]);
    p.f = y->dim[3];
    p.oh = y->dim[1];
    p.ow = y->dim[2];
    p.stride_h = a->stride_h;
    p.stride_w = a->stride_w;
    p.before_h = tdi_window_around(p.h, p.kh, a->stride_h, 1, a->padding, a->sides.top, a->sides.bottom).before;
    p.before_w = tdi_window_around(p.w, p.kw, a->stride_w, 1, a->padding, a->sides.left, a->sides.right).before;
    p.padded_h = (p.oh - 1) * p.stride_h + p.kh;
    p.padded_w = (p.ow - 1) * p.stride_w + p.kw;
    return p;
}

/* The convolution of dy that gives the input's gradient; strides are 1. */
static conv turned_about(const conv *p)
{
    conv t = *p;
    t.h = p->oh;
    t.w = p->ow;
    t.c = p->f;
    t.f = p->c;
    t.oh = p->h;
    t.ow = p->w;
    t.before_h = p->kh - 1 - p->before_h;
    t.before_w = p->kw - 1 - p->before_w;
    t.padded_h = t.oh + t.kh - 1;
    t.padded_w = t.ow + t.kw - 1;
    return t;
}

/* ---- turning ---- */

/* Columns in whole squares; the last one overlaps the one before it, or, where there is none, `false`. */
static bool turn_squares(const float *from, int64_t from_row, int64_t columns, float *to)
{
    for (int64_t i = 0; i < columns && columns >= TDI_WIDTH; i += TDI_WIDTH) {
        int64_t at = i + TDI_WIDTH <= columns ? i : columns - TDI_WIDTH;
        tdi_transpose_square(from + at, from_row, to + at * TDI_WIDTH, TDI_WIDTH);
    }
    return columns >= TDI_WIDTH;
}

/* `count` numbers of each of `lanes` samples -> [count, lane]; lanes without a sample are zero. */
static void turn_in(const float *from, int64_t from_row, int64_t lanes, int64_t count, float *to)
{
    if (lanes == TDI_WIDTH && turn_squares(from, from_row, count, to))
        return;
    for (int64_t i = 0; i < count; i++)
        for (int64_t lane = 0; lane < TDI_WIDTH; lane++)
            to[i * TDI_WIDTH + lane] = lane < lanes ? from[lane * from_row + i] : 0.0f;
}

static void turn_out(const float *from, int64_t lanes, int64_t count, float *to, int64_t to_row)
{
    int64_t i = 0;
    for (; lanes == TDI_WIDTH && count >= TDI_WIDTH && i < count; i += TDI_WIDTH) {
        int64_t at = i + TDI_WIDTH <= count ? i : count - TDI_WIDTH;
        tdi_transpose_square(from + at * TDI_WIDTH, TDI_WIDTH, to + at, to_row);
    }
    for (; i < count; i++)
        for (int64_t lane = 0; lane < lanes; lane++)
            to[lane * to_row + i] = from[i * TDI_WIDTH + lane];
}

static void clear(float *to, int64_t count)
{
    memset(to, 0, (size_t)count * sizeof *to);
}

/* Samples [n, n + lanes) with their padding. */
static void turn_in_padded(const conv *p, const float *x, int64_t n, int64_t lanes, float *padded)
{
    int64_t sample = p->h * p->w * p->c, columns = p->padded_w - p->before_w;
    columns = columns < p->w ? columns : p->w;
    int64_t before = p->before_w * p->c * TDI_WIDTH, inside = columns * p->c * TDI_WIDTH;
    for (int64_t i = 0; i < p->padded_h; i++) {
        float *row = padded + i * row_of_x(p);
        int64_t from = i - p->before_h;
        if (from < 0 || from >= p->h) {
            clear(row, row_of_x(p));
            continue;
        }
        clear(row, before);
        turn_in(x + n * sample + from * p->w * p->c, sample, lanes, columns * p->c, row + before);
        clear(row + before + inside, row_of_x(p) - before - inside);
    }
}

/* ---- a row of y ---- */

/* What a row of y is made from: the rows of the filter that do not lie in the padding, and the first row of x they
 * meet. */
typedef struct sources {
    int64_t rows;
    const float *x, *filter, *bias;
} sources;

static sources sources_of(const conv *p, const float *padded, const float *filter, const float *bias, int64_t oy)
{
    int64_t top = oy * p->stride_h, begin = p->before_h - top, end = p->before_h + p->h - top;
    begin = begin > 0 ? begin : 0;
    end = end < p->kh ? end : p->kh;
    return (sources){.rows = end - begin,
                     .x = padded + (top + begin) * row_of_x(p),
                     .filter = filter + begin * p->kw * p->c * p->f,
                     .bias = bias};
}

/* A tile of y: `filters` filters from `first` on, at `positions` neighbours from `column` on. */
TDI_INLINE void y_tile(int filters, int positions, const conv *p, const sources *from, int64_t first, int64_t column,
                       float *to)
{
    const float *x = from->x + column * p->stride_w * p->c * TDI_WIDTH, *filter = from->filter + first;
    const float *bias = from->bias ? from->bias + first : NULL;
    tdi_vector sum[ROWS][COLUMNS];
    int64_t taps = p->kw * p->c, step = p->stride_w * p->c * TDI_WIDTH;
    for (int i = 0; i < filters; i++)
        for (int j = 0; j < positions; j++)
            sum[i][j] = tdi_splat(bias ? bias[i] : 0.0f);
    for (int64_t ky = 0; ky < from->rows; ky++, x += row_of_x(p))
        for (int64_t k = 0; k < taps; k++, filter += p->f) {
            tdi_vector at[COLUMNS];
            for (int j = 0; j < positions; j++)
                at[j] = tdi_load(x + k * TDI_WIDTH + j * step);
            for (int i = 0; i < filters; i++)
                for (int j = 0; j < positions; j++)
                    sum[i][j] += filter[i] * at[j];
        }
    for (int i = 0; i < filters; i++)
        for (int j = 0; j < positions; j++)
            tdi_store(to + ((column + j) * p->f + first + i) * TDI_WIDTH, sum[i][j]);
}

/* A row of y for `filters` filters; the last tile may overlap the one before it. */
TDI_INLINE void y_row(int filters, const conv *p, const sources *from, int64_t first, float *to)
{
    for (int64_t ox = 0; ox < p->ow && p->ow < COLUMNS; ox++)
        y_tile(filters, 1, p, from, first, ox, to);
    for (int64_t ox = 0; ox < p->ow && p->ow >= COLUMNS; ox += COLUMNS)
        y_tile(filters, COLUMNS, p, from, first, ox + COLUMNS <= p->ow ? ox : p->ow - COLUMNS, to);
}

static void any_y_row(int64_t filters, const conv *p, const sources *from, int64_t first, float *to)
{
    switch (filters) {
#if defined(__AVX512F__)
    case 8:
        y_row(8, p, from, first, to);
        break;
    case 7:
        y_row(7, p, from, first, to);
        break;
    case 6:
        y_row(6, p, from, first, to);
        break;
    case 5:
        y_row(5, p, from, first, to);
        break;
#endif
    case 4:
        y_row(4, p, from, first, to);
        break;
    case 3:
        y_row(3, p, from, first, to);
        break;
    case 2:
        y_row(2, p, from, first, to);
        break;
    default:
        y_row(1, p, from, first, to);
        break;
    }
}

/* All rows of one block of samples, whose padded input is ready; `row` is room for one. */
static void convolve_block(const conv *p, const float *padded, const float *filter, const float *bias, int activation,
                           int64_t n, int64_t lanes, float *row, float *y)
{
    int64_t sample = p->oh * p->ow * p->f;
    for (int64_t oy = 0; oy < p->oh; oy++) {
        sources from = sources_of(p, padded, filter, bias, oy);
        for (int64_t f = 0; f < p->f; f += ROWS)
            any_y_row(p->f - f < ROWS ? p->f - f : ROWS, p, &from, f, row);
        TDI_ISA_NAME(tdi_loops).epilogue(1, row_of_y(p), 0, NULL, activation, row);
        turn_out(row, lanes, p->ow * p->f, y + n * sample + oy * p->ow * p->f, sample);
    }
}

static void convolve(const conv *p, const float *x, const float *filter, const float *bias, int activation,
                     float *scratch, float *y)
{
    float *padded = scratch, *row = scratch + padded_floats(p);
    for (int64_t i = 0; i < p->samples; i += TDI_WIDTH) {
        int64_t lanes = p->samples - i < TDI_WIDTH ? p->samples - i : TDI_WIDTH;
        turn_in_padded(p, x, p->first + i, lanes, padded);
        convolve_block(p, padded, filter, bias, activation, p->first + i, lanes, row, y);
    }
}

static size_t convolve_room(const conv *p)
{
    return (size_t)(padded_floats(p) + row_of_y(p)) * sizeof(float);
}

/* ---- what is taken ---- */

static const char *declines_shapes(const tdi_call *call, const td_shape *x, const td_shape *y)
{
    const tdi_conv2d_attrs *a = call->attrs;
    if (a->groups > 1 || a->dilation_h > 1 || a->dilation_w > 1)
        return "groups or dilation";
    return x->dim[3] > FEW || y->dim[3] > FEW ? "many channels" : NULL;
}

/* Empty lanes are work for nothing. */
static td_status check_samples(const conv *p, tdi_error *error)
{
    int64_t lanes = (p->samples + TDI_WIDTH - 1) / TDI_WIDTH * TDI_WIDTH;
    if (3 * p->samples >= 2 * lanes)
        return TD_OK;
    return tdi_fail(error, TD_UNSUPPORTED, "%lld samples would leave many of %d lanes empty", (long long)p->samples,
                    (int)TDI_WIDTH);
}

/* ---- forward ---- */

static const char *conv2d_declines(const tdi_call *call)
{
    return declines_shapes(call, &call->in[0].shape, &call->out.shape);
}

static conv forward_conv(const tdi_call *call)
{
    return conv_of(call, &call->in[0].shape, &call->in[1].shape, &call->out.shape);
}

static td_status conv2d_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv p = forward_conv(call);
    *scratch = convolve_room(&p);
    return check_samples(&p, error);
}

static void conv2d_run(const tdi_call *call)
{
    conv p = forward_conv(call);
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    convolve(&p, call->in[0].data, call->in[1].data, bias, ((const tdi_conv2d_attrs *)call->attrs)->activation,
             call->scratch, call->out.data);
}

TDI_CPU_KERNEL(conv2d, .splits = TDI_CAN_ROWS, .declines = conv2d_declines, .prepare = conv2d_prepare,
               .run = conv2d_run);

/* ---- the gradient of the input ---- */

static const char *conv2d_grad_input_declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    if (a->stride_h > 1 || a->stride_w > 1)
        return "strides";
    return declines_shapes(call, &call->out.shape, &call->in[0].shape);
}

static conv grad_input_conv(const tdi_call *call)
{
    conv p = conv_of(call, &call->out.shape, &call->in[1].shape, &call->in[0].shape);
    return turned_about(&p);
}

static td_status conv2d_grad_input_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv p = grad_input_conv(call);
    *scratch = convolve_room(&p) + (size_t)filter_floats(&p) * sizeof(float);
    return check_samples(&p, error);
}

/* [kh, kw, f, c] from the last tap to the first, for p.f of the one that gives dx: the forward filter's c. */
static void turn_filter(const conv *p, const float *filter, float *to)
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
    conv p = grad_input_conv(call);
    float *filter = call->scratch;
    float *rest = filter + filter_floats(&p);
    turn_filter(&p, call->in[1].data, filter);
    convolve(&p, call->in[0].data, filter, NULL, TD_LINEAR, rest, call->out.data);
}

TDI_CPU_KERNEL(conv2d_grad_input, .splits = TDI_CAN_ROWS, .declines = conv2d_grad_input_declines,
               .prepare = conv2d_grad_input_prepare, .run = conv2d_grad_input_run);

/* ---- the gradient of the filter ---- */

/* Adds to `sums` [taps, f, lane] the products of `taps` taps from x on with `filters` filters of dy, over `rows` rows.
 */
TDI_INLINE void tap_tile(int filters, int taps, const conv *p, const float *x, const float *dy, int64_t rows,
                         float *sums)
{
    tdi_vector sum[ROWS][COLUMNS];
    for (int i = 0; i < filters; i++)
        for (int j = 0; j < taps; j++)
            sum[i][j] = tdi_load(sums + (j * p->f + i) * TDI_WIDTH);
    for (int64_t oy = 0; oy < rows; oy++) {
        const float *at_x = x + oy * p->stride_h * row_of_x(p), *at_y = dy + oy * row_of_y(p);
        for (int64_t ox = 0; ox < p->ow; ox++, at_x += p->stride_w * p->c * TDI_WIDTH, at_y += p->f * TDI_WIDTH) {
            tdi_vector tap[COLUMNS];
            for (int j = 0; j < taps; j++)
                tap[j] = tdi_load(at_x + j * TDI_WIDTH);
            for (int i = 0; i < filters; i++) {
                tdi_vector d = tdi_load(at_y + i * TDI_WIDTH);
                for (int j = 0; j < taps; j++)
                    sum[i][j] += d * tap[j];
            }
        }
    }
    for (int i = 0; i < filters; i++)
        for (int j = 0; j < taps; j++)
            tdi_store(sums + (j * p->f + i) * TDI_WIDTH, sum[i][j]);
}

/* One row of the filter for `filters` filters. */
TDI_INLINE void tap_row(int filters, const conv *p, const float *x, const float *dy, int64_t rows, float *sums)
{
    int64_t taps = p->kw * p->c, k = 0, step = p->f * TDI_WIDTH;
    for (; k + COLUMNS <= taps; k += COLUMNS)
        tap_tile(filters, COLUMNS, p, x + k * TDI_WIDTH, dy, rows, sums + k * step);
    if (taps - k == 2)
        tap_tile(filters, 2, p, x + k * TDI_WIDTH, dy, rows, sums + k * step);
    if (taps - k == 1)
        tap_tile(filters, 1, p, x + k * TDI_WIDTH, dy, rows, sums + k * step);
}

static void any_tap_row(int64_t filters, const conv *p, const float *x, const float *dy, int64_t rows, float *sums)
{
    switch (filters) {
#if defined(__AVX512F__)
    case 8:
        tap_row(8, p, x, dy, rows, sums);
        break;
    case 7:
        tap_row(7, p, x, dy, rows, sums);
        break;
    case 6:
        tap_row(6, p, x, dy, rows, sums);
        break;
    case 5:
        tap_row(5, p, x, dy, rows, sums);
        break;
#endif
    case 4:
        tap_row(4, p, x, dy, rows, sums);
        break;
    case 3:
        tap_row(3, p, x, dy, rows, sums);
        break;
    case 2:
        tap_row(2, p, x, dy, rows, sums);
        break;
    default:
        tap_row(1, p, x, dy, rows, sums);
        break;
    }
}

/* Rows [oy, oy + rows) of one block of samples. */
static void add_chunk(const conv *p, const float *padded, const float *dy, int64_t oy, int64_t rows, float *sums)
{
    int64_t row_of_sums = p->kw * p->c * p->f * TDI_WIDTH;
    for (int64_t ky = 0; ky < p->kh; ky++)
        for (int64_t f = 0; f < p->f; f += ROWS)
            any_tap_row(p->f - f < ROWS ? p->f - f : ROWS, p, padded + (oy * p->stride_h + ky) * row_of_x(p),
                        dy + f * TDI_WIDTH, rows, sums + ky * row_of_sums + f * TDI_WIDTH);
}

static void add_block(const conv *p, const float *x, const float *dy, int64_t n, int64_t lanes, float *padded,
                      float *chunk, float *sums)
{
    int64_t sample = p->oh * p->ow * p->f;
    turn_in_padded(p, x, n, lanes, padded);
    for (int64_t oy = 0; oy < p->oh; oy += chunk_rows(p)) {
        int64_t rows = p->oh - oy < chunk_rows(p) ? p->oh - oy : chunk_rows(p);
        turn_in(dy + n * sample + oy * p->ow * p->f, sample, lanes, rows * p->ow * p->f, chunk);
        add_chunk(p, padded, chunk, oy, rows, sums);
    }
}

/* The lanes of `count` vectors, added up: by squares, whose rows are then lanes. */
static void add_lanes(const float *sums, int64_t count, float *to)
{
    float square[TDI_WIDTH * TDI_WIDTH];
    int64_t i = 0;
    for (; i + TDI_WIDTH <= count; i += TDI_WIDTH) {
        tdi_vector total = {0};
        tdi_transpose_square(sums + i * TDI_WIDTH, TDI_WIDTH, square, TDI_WIDTH);
        for (int lane = 0; lane < TDI_WIDTH; lane++)
            total += tdi_load(square + lane * TDI_WIDTH);
        tdi_store(to + i, total);
    }
    for (; i < count; i++)
        to[i] = tdi_fold_sum(tdi_load(sums + i * TDI_WIDTH));
}

/* ---- the same with the filters in the lanes: where they fill whole vectors and nothing is padded, nothing is turned
 * ---- */

#if defined(__AVX512F__)
enum { TAPS = 16 };
#else
enum { TAPS = 8 };
#endif

static bool filters_fill_lanes(const conv *p)
{
    return p->f % TDI_WIDTH == 0 && p->before_h + p->before_w == 0 && p->padded_h <= p->h && p->padded_w <= p->w;
}

/* `taps` taps from x on, of all samples, with a vector of filters. */
TDI_INLINE void lane_tile(int taps, const conv *p, const float *x, const float *dy, float *to)
{
    tdi_vector sum[TAPS] = {{0}};
    for (int64_t n = 0; n < p->samples; n++)
        for (int64_t oy = 0; oy < p->oh; oy++) {
            const float *at_x = x + (n * p->h + oy * p->stride_h) * p->w * p->c;
            const float *at_y = dy + (n * p->oh + oy) * p->ow * p->f;
            for (int64_t ox = 0; ox < p->ow; ox++, at_x += p->stride_w * p->c, at_y += p->f) {
                tdi_vector d = tdi_load(at_y);
                for (int i = 0; i < taps; i++)
                    sum[i] += at_x[i] * d;
            }
        }
    for (int i = 0; i < taps; i++)
        tdi_store(to + i * p->f, sum[i]);
}

/* A row of the filter; the last tile may overlap the one before it. */
static void lane_row(const conv *p, const float *x, const float *dy, float *to)
{
    int64_t taps = p->kw * p->c;
    for (int64_t i = 0; i < taps && taps >= TAPS; i += TAPS) {
        int64_t k = i + TAPS <= taps ? i : taps - TAPS;
        lane_tile(TAPS, p, x + k, dy, to + k * p->f);
    }
    for (int64_t i = 0; i < taps && taps >= 3 && taps < TAPS; i += 3) {
        int64_t k = i + 3 <= taps ? i : taps - 3;
        lane_tile(3, p, x + k, dy, to + k * p->f);
    }
    for (int64_t k = 0; k < taps && taps < 3; k++)
        lane_tile(1, p, x + k, dy, to + k * p->f);
}

static void lane_sums(const conv *p, const float *x, const float *dy, float *to)
{
    for (int64_t ky = 0; ky < p->kh; ky++)
        for (int64_t f = 0; f < p->f; f += TDI_WIDTH)
            lane_row(p, x + ky * p->w * p->c, dy + f, to + ky * p->kw * p->c * p->f + f);
}

static const char *conv2d_grad_filter_declines(const tdi_call *call)
{
    return declines_shapes(call, &call->in[0].shape, &call->in[1].shape);
}

static conv grad_filter_conv(const tdi_call *call)
{
    return conv_of(call, &call->in[0].shape, &call->out.shape, &call->in[1].shape);
}

static td_status conv2d_grad_filter_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv p = grad_filter_conv(call);
    *scratch =
        (size_t)(padded_floats(&p) + chunk_rows(&p) * row_of_y(&p) + filter_floats(&p) * TDI_WIDTH) * sizeof(float);
    return filters_fill_lanes(&p) ? TD_OK : check_samples(&p, error);
}

static void conv2d_grad_filter_run(const tdi_call *call)
{
    conv p = grad_filter_conv(call);
    if (filters_fill_lanes(&p)) {
        lane_sums(&p, call->in[0].data, call->in[1].data, call->out.data);
        return;
    }
    float *padded = call->scratch, *chunk = padded + padded_floats(&p);
    float *sums = chunk + chunk_rows(&p) * row_of_y(&p);
    memset(sums, 0, (size_t)(filter_floats(&p) * TDI_WIDTH) * sizeof *sums);
    for (int64_t i = 0; i < p.samples; i += TDI_WIDTH)
        add_block(&p, call->in[0].data, call->in[1].data, i, p.samples - i < TDI_WIDTH ? p.samples - i : TDI_WIDTH,
                  padded, chunk, sums);
    add_lanes(sums, filter_floats(&p), call->out.data);
}

TDI_CPU_KERNEL(conv2d_grad_filter, .declines = conv2d_grad_filter_declines, .prepare = conv2d_grad_filter_prepare,
               .run = conv2d_grad_filter_run);
