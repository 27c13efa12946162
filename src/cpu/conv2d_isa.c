/* conv2d_isa.c - convolutions of few channels: as many samples as a vector has lanes are worked on at once, one in
 * each.
 *
 * So the lanes are full whatever the number of channels. Samples stand abreast, [h, w, c, lane], or are turned that way
 * and back block by block. In that layout the taps of one filter row, [kw, c], are a straight run of vectors. The
 * gradient of the input is a convolution of dy with the filter turned about; that of the filter keeps one sum per lane,
 * and adds the lanes up last.
 *
 * Zeros of the padding stand left and right of each row that is read; above and below, filter rows are left out, and so
 * are the taps that only padding lies under. */
#include "cpu/abreast_isa.h"
#include "cpu/loops.h"

#if defined(__AVX512F__)
enum { ROWS = 8, COLUMNS = 4, SUMS = 24 }; /* of a tile of sums, in registers */
#else
enum { ROWS = 4, COLUMNS = 3, SUMS = 12 };
#endif
enum { FEW = 16, /* channels */ CHUNK_BYTES = 24 * 1024 /* of dy: what stays in the first cache */ };

/* One convolution: x [h, row, c, lane], filter [kh, kw, c, f] -> y [oh, ow, f, lane]. */
typedef struct conv {
    int64_t samples; /* to make, from `first` on */
    int64_t first;
    int64_t h, w, c, kh, kw, f, oh, ow, stride_h, stride_w;
    int64_t before_h, before_w;
    int64_t row; /* columns of x with the padding left and right; w when x is read where it is */
    bool in_place;
} conv;

static int64_t row_of_x(const conv *p)
{
    return p->row * p->c * TDI_WIDTH;
}

static int64_t row_of_y(const conv *p)
{
    return p->ow * p->f * TDI_WIDTH;
}

/* Room for x with its padding. */
static int64_t padded_floats(const conv *p)
{
    return p->in_place ? 0 : p->h * row_of_x(p);
}

static int64_t filter_floats(const conv *p)
{
    return p->kh * p->kw * p->c * p->f;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* `all` in nearly equal shares of at most `limit`: the next of them. */
static int64_t share_of(int64_t all, int64_t limit)
{
    int64_t shares = (all + limit - 1) / limit;
    return (all + shares - 1) / shares;
}

static void set_samples(conv *p, const tdi_call *call, int64_t all)
{
    bool rows = call->split == TDI_ROWS;
    p->first = rows ? call->begin : 0;
    p->samples = rows ? call->end - call->begin : all;
}

/* How rows of x are read: where they are, when nothing is missing left or right. */
static void set_row(conv *p, bool abreast)
{
    int64_t padded = (p->ow - 1) * p->stride_w + p->kw;
    p->in_place = abreast && p->before_w == 0 && padded <= p->w;
    p->row = p->in_place ? p->w : padded;
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
    return t;
}

/* ---- x ---- */

static void clear(float *to, int64_t count)
{
    memset(to, 0, (size_t)count * sizeof *to);
}

/* Block `block` of x, with the padding left and right. */
static const float *padded_block(const conv *p, const tdi_value *x, int64_t block, float *padded)
{
    int64_t line = p->w * p->c, sample = p->h * line, n = p->first + block * TDI_WIDTH;
    const float *from = (const float *)x->data + n * sample;
    if (p->in_place)
        return from;
    int64_t columns = least(p->row - p->before_w, p->w) * p->c, before = p->before_w * p->c * TDI_WIDTH;
    for (int64_t i = 0; i < p->h; i++) {
        float *row = padded + i * row_of_x(p), *inside = row + before;
        clear(row, before);
        if (x->abreast)
            memcpy(inside, from + i * line * TDI_WIDTH, (size_t)(columns * TDI_WIDTH) * sizeof *inside);
        else
            tdi_turn_in(from + i * line, sample, least(p->samples - block * TDI_WIDTH, TDI_WIDTH), columns, inside);
        clear(inside + columns * TDI_WIDTH, row_of_x(p) - before - columns * TDI_WIDTH);
    }
    return padded;
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
    int64_t top = oy * p->stride_h - p->before_h, begin = most(-top, 0), end = least(p->h - top, p->kh);
    return (sources){.rows = end - begin,
                     .x = padded + (top + begin) * row_of_x(p),
                     .filter = filter + begin * p->kw * p->c * p->f,
                     .bias = bias};
}

/* A tile of y: `filters` filters from `first` on, at `positions` neighbours from `column` on. */
TDI_INLINE void y_tile(int filters, int positions, const conv *p, const sources *from, int64_t first, int64_t column,
                       float *to)
{
    tdi_vector sum[ROWS][COLUMNS];
    int64_t step = p->stride_w * p->c * TDI_WIDTH, left = column * p->stride_w;
    int64_t begin = most(p->before_w - left - (positions - 1) * p->stride_w, 0);
    int64_t end = least(p->before_w + p->w - left, p->kw), taps = (end - begin) * p->c;
    const float *x = from->x + (left + begin) * p->c * TDI_WIDTH;
    const float *filter = from->filter + begin * p->c * p->f + first, *bias = from->bias ? from->bias + first : NULL;
    for (int i = 0; i < filters; i++)
        for (int j = 0; j < positions; j++)
            sum[i][j] = tdi_splat(bias ? bias[i] : 0.0f);
    for (int64_t ky = 0; ky < from->rows; ky++, x += row_of_x(p), filter += p->kw * p->c * p->f)
        for (int64_t k = 0; k < taps; k++) {
            tdi_vector at[COLUMNS];
            for (int j = 0; j < positions; j++)
                at[j] = tdi_load(x + k * TDI_WIDTH + j * step);
            for (int i = 0; i < filters; i++)
                for (int j = 0; j < positions; j++)
                    sum[i][j] += filter[k * p->f + i] * at[j];
        }
    for (int i = 0; i < filters; i++)
        for (int j = 0; j < positions; j++)
            tdi_store(to + ((column + j) * p->f + first + i) * TDI_WIDTH, sum[i][j]);
}

/* A row of y for `filters` filters. */
TDI_INLINE void y_row(int filters, const conv *p, const sources *from, int64_t first, float *to)
{
    enum { MOST = COLUMNS };
    int most_columns = filters * MOST > SUMS ? SUMS / filters : MOST;
    int64_t ox = 0;
    for (; ox + most_columns <= p->ow; ox += most_columns)
        y_tile(filters, most_columns, p, from, first, ox, to);
    if (p->ow - ox == 3 && most_columns > 3)
        y_tile(filters, 3, p, from, first, ox, to);
    else if (p->ow - ox == 2)
        y_tile(filters, 2, p, from, first, ox, to);
    else if (p->ow - ox == 1)
        y_tile(filters, 1, p, from, first, ox, to);
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

/* All rows of a block of samples; `row` is room for one that does not stand abreast. */
static void convolve_block(const conv *p, const float *x, const float *filter, const float *bias, int activation,
                           int64_t block, float *row, const tdi_value *y)
{
    int64_t line = p->ow * p->f, sample = p->oh * line, lanes = least(p->samples - block * TDI_WIDTH, TDI_WIDTH);
    float *to = (float *)y->data + (p->first + block * TDI_WIDTH) * sample;
    for (int64_t oy = 0; oy < p->oh; oy++) {
        sources from = sources_of(p, x, filter, bias, oy);
        float *made = y->abreast ? to + oy * row_of_y(p) : row;
        for (int64_t f = 0, now; f < p->f; f += now) {
            now = share_of(p->f - f, ROWS);
            any_y_row(now, p, &from, f, made);
        }
        TDI_ISA_NAME(tdi_loops).epilogue(1, row_of_y(p), 0, NULL, activation, made);
        if (!y->abreast)
            tdi_turn_out(row, lanes, line, to + oy * line, sample);
    }
}

static void convolve(const conv *p, const tdi_value *x, const float *filter, const float *bias, int activation,
                     float *scratch, const tdi_value *y)
{
    for (int64_t block = 0; block * TDI_WIDTH < p->samples; block++) {
        const float *padded = padded_block(p, x, block, scratch);
        convolve_block(p, padded, filter, bias, activation, block, scratch + padded_floats(p), y);
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
static bool fills_lanes(int64_t samples)
{
    return 3 * samples >= 2 * ((samples + TDI_WIDTH - 1) / TDI_WIDTH * TDI_WIDTH);
}

static td_status check_samples(const conv *p, tdi_error *error)
{
    if (fills_lanes(p->samples))
        return TD_OK;
    return tdi_fail(error, TD_UNSUPPORTED, "%lld samples would leave many of %d lanes empty", (long long)p->samples,
                    (int)TDI_WIDTH);
}

static tdi_abreast leads_abreast(const tdi_call *call)
{
    return fills_lanes(call->in[0].shape.dim[0]) ? TDI_LEADS_ABREAST : TDI_NOT_ABREAST;
}

/* ---- forward ---- */

static const char *conv2d_declines(const tdi_call *call)
{
    return declines_shapes(call, &call->in[0].shape, &call->out.shape);
}

static conv forward_conv(const tdi_call *call)
{
    conv p = conv_of(call, &call->in[0].shape, &call->in[1].shape, &call->out.shape);
    set_row(&p, call->in[0].abreast);
    return p;
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
    convolve(&p, &call->in[0], call->in[1].data, bias, ((const tdi_conv2d_attrs *)call->attrs)->activation,
             call->scratch, &call->out);
}

TDI_CPU_KERNEL(conv2d, .splits = TDI_CAN_ROWS, .declines = conv2d_declines, .abreast = leads_abreast,
               .prepare = conv2d_prepare, .run = conv2d_run);

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
    p = turned_about(&p);
    set_row(&p, call->in[0].abreast);
    return p;
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
    float *rest = call->scratch, *filter = rest + convolve_room(&p) / sizeof *rest;
    turn_filter(&p, call->in[1].data, filter);
    convolve(&p, &call->in[0], filter, NULL, TD_LINEAR, rest, &call->out);
}

TDI_CPU_KERNEL(conv2d_grad_input, .splits = TDI_CAN_ROWS, .declines = conv2d_grad_input_declines,
               .abreast = leads_abreast, .prepare = conv2d_grad_input_prepare, .run = conv2d_grad_input_run);

/* ---- the gradient of the filter ---- */

/* Rows [begin, end) of y that a row of the filter meets x in, of those in a stretch of them. */
typedef struct rows {
    int64_t begin, end;
} rows;

/* Adds to `sums` [taps, f, lane] the products of `taps` taps from x on with `filters` filters of dy, over `count` rows.
 */
TDI_INLINE void tap_tile(int filters, int taps, const conv *p, const float *x, const float *dy, int64_t count,
                         float *sums)
{
    tdi_vector sum[ROWS][COLUMNS];
    for (int i = 0; i < filters; i++)
        for (int j = 0; j < taps; j++)
            sum[i][j] = tdi_load(sums + (j * p->f + i) * TDI_WIDTH);
    for (int64_t oy = 0; oy < count; oy++) {
        const float *at_x = x + oy * p->stride_h * row_of_x(p), *at_y = dy + oy * row_of_y(p);
        for (int64_t ox = 0; ox < p->ow; ox++, at_x += p->stride_w * p->c * TDI_WIDTH, at_y += p->f * TDI_WIDTH) {
            tdi_vector tap[COLUMNS];
            for (int j = 0; j < taps; j++)
                tap[j] = tdi_load(at_x + j * TDI_WIDTH);
            for (int i = 0; i < filters; i++) {
                tdi_vector d = tdi_load_once(at_y + i * TDI_WIDTH);
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
TDI_INLINE void tap_row(int filters, const conv *p, const float *x, const float *dy, int64_t count, float *sums)
{
    enum { MOST = COLUMNS };
    int most_taps = filters * MOST > SUMS ? SUMS / filters : MOST;
    int64_t taps = p->kw * p->c, k = 0, step = p->f * TDI_WIDTH;
    for (; k + most_taps <= taps; k += most_taps)
        tap_tile(filters, most_taps, p, x + k * TDI_WIDTH, dy, count, sums + k * step);
    if (taps - k == 3 && most_taps > 3)
        tap_tile(filters, 3, p, x + k * TDI_WIDTH, dy, count, sums + k * step);
    else if (taps - k == 2)
        tap_tile(filters, 2, p, x + k * TDI_WIDTH, dy, count, sums + k * step);
    else if (taps - k == 1)
        tap_tile(filters, 1, p, x + k * TDI_WIDTH, dy, count, sums + k * step);
}

static void any_tap_row(int64_t filters, const conv *p, const float *x, const float *dy, int64_t count, float *sums)
{
    switch (filters) {
#if defined(__AVX512F__)
    case 8:
        tap_row(8, p, x, dy, count, sums);
        break;
    case 7:
        tap_row(7, p, x, dy, count, sums);
        break;
    case 6:
        tap_row(6, p, x, dy, count, sums);
        break;
    case 5:
        tap_row(5, p, x, dy, count, sums);
        break;
#endif
    case 4:
        tap_row(4, p, x, dy, count, sums);
        break;
    case 3:
        tap_row(3, p, x, dy, count, sums);
        break;
    case 2:
        tap_row(2, p, x, dy, count, sums);
        break;
    default:
        tap_row(1, p, x, dy, count, sums);
        break;
    }
}

/* The rows of y in [begin, end) whose filter row ky does not lie in the padding. */
static rows rows_under(const conv *p, int64_t ky, int64_t begin, int64_t end)
{
    int64_t above = p->before_h - ky, below = p->h + above;
    return (rows){most(begin, above > 0 ? (above + p->stride_h - 1) / p->stride_h : 0),
                  least(end, below > 0 ? (below + p->stride_h - 1) / p->stride_h : 0)};
}

/* Rows [begin, end) of y of one block of samples, for `now` filters; dy begins with row `begin`. */
static void add_rows(const conv *p, const float *padded, const float *dy, rows y, int64_t f, int64_t now, float *sums)
{
    int64_t row_of_sums = p->kw * p->c * p->f * TDI_WIDTH;
    for (int64_t ky = 0; ky < p->kh; ky++) {
        rows r = rows_under(p, ky, y.begin, y.end);
        if (r.begin < r.end)
            any_tap_row(now, p, padded + (r.begin * p->stride_h + ky - p->before_h) * row_of_x(p),
                        dy + (r.begin - y.begin) * row_of_y(p) + f * TDI_WIDTH, r.end - r.begin,
                        sums + ky * row_of_sums + f * TDI_WIDTH);
    }
}

/* Rows of dy that are worked on at a time. */
static int64_t chunk_rows(const conv *p)
{
    int64_t rows = CHUNK_BYTES / (p->ow * least(p->f, ROWS) * TDI_WIDTH * (int64_t)sizeof(float));
    return share_of(p->oh, most(rows, 1));
}

static int64_t chunk_floats(const conv *p, bool abreast)
{
    return abreast ? 0 : chunk_rows(p) * row_of_y(p);
}

static void add_block(const conv *p, const tdi_value *x, const tdi_value *dy, int64_t block, float *room, float *sums)
{
    int64_t line = p->ow * p->f, sample = p->oh * line, lanes = least(p->samples - block * TDI_WIDTH, TDI_WIDTH);
    const float *padded = padded_block(p, x, block, room), *from = (const float *)dy->data + block * TDI_WIDTH * sample;
    float *chunk = room + padded_floats(p);
    for (int64_t oy = 0; oy < p->oh; oy += chunk_rows(p)) {
        rows y = {oy, least(oy + chunk_rows(p), p->oh)};
        if (!dy->abreast)
            tdi_turn_in(from + oy * line, sample, lanes, (y.end - y.begin) * line, chunk);
        const float *at = dy->abreast ? from + oy * row_of_y(p) : chunk;
        for (int64_t f = 0, now; f < p->f; f += now) {
            now = share_of(p->f - f, ROWS);
            add_rows(p, padded, at, y, f, now, sums);
        }
    }
}

/* A block that is not full comes first: what its empty lanes hold is forgotten. */
static void add_blocks(const conv *p, const tdi_value *x, const tdi_value *dy, float *room, float *sums)
{
    int64_t full = p->samples / TDI_WIDTH, rest = p->samples % TDI_WIDTH, count = filter_floats(p);
    clear(sums, count * TDI_WIDTH);
    if (rest) {
        add_block(p, x, dy, full, room, sums);
        for (int64_t i = 0; i < count; i++)
            clear(sums + i * TDI_WIDTH + rest, TDI_WIDTH - rest);
    }
    for (int64_t block = 0; block < full; block++)
        add_block(p, x, dy, block, room, sums);
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

static bool filters_fill_lanes(const tdi_call *call, const conv *p)
{
    bool inside = (p->oh - 1) * p->stride_h + p->kh <= p->h && (p->ow - 1) * p->stride_w + p->kw <= p->w;
    return !tdi_is_abreast(call) && p->f % TDI_WIDTH == 0 && p->before_h + p->before_w == 0 && inside;
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
    conv p = conv_of(call, &call->in[0].shape, &call->out.shape, &call->in[1].shape);
    set_row(&p, call->in[0].abreast);
    return p;
}

static td_status conv2d_grad_filter_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv p = grad_filter_conv(call);
    int64_t floats = padded_floats(&p) + chunk_floats(&p, call->in[1].abreast) + filter_floats(&p) * TDI_WIDTH;
    *scratch = (size_t)floats * sizeof(float);
    return filters_fill_lanes(call, &p) ? TD_OK : check_samples(&p, error);
}

static void conv2d_grad_filter_run(const tdi_call *call)
{
    conv p = grad_filter_conv(call);
    if (filters_fill_lanes(call, &p)) {
        lane_sums(&p, call->in[0].data, call->in[1].data, call->out.data);
        return;
    }
    float *sums = call->scratch, *room = sums + filter_floats(&p) * TDI_WIDTH;
    add_blocks(&p, &call->in[0], &call->in[1], room, sums);
    add_lanes(sums, filter_floats(&p), call->out.data);
}

TDI_CPU_KERNEL(conv2d_grad_filter, .declines = conv2d_grad_filter_declines, .abreast = leads_abreast,
               .prepare = conv2d_grad_filter_prepare, .run = conv2d_grad_filter_run);
