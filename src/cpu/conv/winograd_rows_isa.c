/* winograd_rows_isa.c - convolutions of few channels, one sample per SIMD lane (conv2d_interleaved_isa.h), by
 * Winograd's method along rows (winograd_rows_transforms_isa.h): eight products replace 18 (filters of 3 columns) or 20
 * (of 5); in a narrow tile six replace 12 or 10.
 *
 * A tile is `out` neighbours in a row of y. Between the transforms each point has a convolution of its own, over
 * tiles, rows and channels, with a filter of one column. */
#include "cpu/conv/conv2d_interleaved_isa.h"
#include "cpu/conv/winograd_rows_transforms_isa.h"

enum { MOST_TAPS = 5, LINE = 16 /* floats */ };
enum { BAND_BYTES = 384 * 1024 /* of points; they stay in the second-level cache */ };

/* The convolution, and how its rows are cut into tiles, each of which makes `out` columns. */
typedef struct winograd {
    tdi_conv conv; /* for the gradient of the input, the one that is turned about */
    bool turned;
    int taps, out;
    int64_t tiles; /* in a row */
    bool narrow;   /* the last tile is narrow */
    int64_t band;  /* rows made at a time */
} winograd;

/* ---- layouts ---- */

/* Values at points are [point, tile, row, channel, lane], so that the rows under a column of the filter are a straight
 * run; rows in the padding are zeros. For the gradient of the input, most of whose padding is never multiplied, they
 * are [point, row, tile, channel, lane] without padding. Filters at points are [point, kh, c, f]. Points are an odd
 * number of cache lines apart, so that a tile's eight values do not fall into one cache set. */
typedef struct steps {
    int64_t point, tile, row;
} steps;

static steps steps_of(const winograd *p, int64_t rows, int64_t channels)
{
    int64_t one = channels * TDI_WIDTH, point = tdi_odd_lines(rows * p->tiles * one);
    return p->turned ? (steps){point, one, p->tiles * one} : (steps){point, rows * one, one};
}

/* The rows that `rows` of the result are made from; those outside of [0, h) are zeros. */
static tdi_rows rows_from(const winograd *p, tdi_rows rows)
{
    int64_t begin = rows.begin - p->conv.before_h, end = rows.end - p->conv.before_h + p->conv.kh - 1;
    return p->turned ? (tdi_rows){tdi_most(begin, 0), tdi_least(end, p->conv.h)} : (tdi_rows){begin, end};
}

static tdi_rows band_at(const winograd *p, int64_t begin)
{
    return (tdi_rows){begin, tdi_least(begin + p->band, p->conv.oh)};
}

static int64_t from_floats(const winograd *p)
{
    return TDI_POINTS * steps_of(p, p->band + p->conv.kh - 1, p->conv.c).point;
}

static int64_t to_floats(const winograd *p)
{
    return TDI_POINTS * steps_of(p, p->band, p->conv.f).point;
}

/* Floats of a row of the filter at a point, [c, f]. */
static int64_t filter_row(const winograd *p)
{
    return p->conv.c * p->conv.f;
}

/* Floats from point to point. Whole vectors are written, the last of which may reach beyond the end. */
static int64_t filter_stride(const winograd *p)
{
    return tdi_odd_lines(p->conv.kh * filter_row(p) + TDI_WIDTH);
}

static int64_t line_floats(int64_t floats)
{
    return (floats + LINE - 1) / LINE * LINE;
}

/* ---- the filter ---- */

/* Where the vector at float i of a row begins; the last one may overlap the one before it. */
static int64_t vector_at(const winograd *p, int64_t i)
{
    int64_t row = filter_row(p);
    return row >= TDI_WIDTH && i + TDI_WIDTH > row ? row - TDI_WIDTH : i;
}

TDI_INLINE void filter_points_of(int taps, const winograd *p, const float *filter, float *to)
{
    int64_t row = filter_row(p);
    for (int64_t ky = 0; ky < p->conv.kh; ky++)
        for (int64_t i = 0; i < row; i += TDI_WIDTH) {
            tdi_vector tap[MOST_TAPS], made[TDI_POINTS];
            for (int j = 0; j < taps; j++)
                tap[j] = tdi_load(filter + (ky * taps + j) * row + vector_at(p, i));
            tdi_evaluate(TDI_PAIRS, taps, tap, made);
            for (int k = 0; k < TDI_POINTS; k++)
                tdi_store(to + k * filter_stride(p) + ky * row + vector_at(p, i), tdi_share_of_point(k) * made[k]);
        }
}

/* Makes the points of filter [kh, taps, c, f], which can be read as whole vectors. */
static void filter_points(const winograd *p, const float *filter, float *to)
{
    if (p->taps == 3)
        filter_points_of(3, p, filter, to);
    else
        filter_points_of(5, p, filter, to);
}

TDI_INLINE void gather_filter_of(int taps, const winograd *p, const float *from, float *filter)
{
    int64_t row = filter_row(p);
    for (int64_t ky = 0; ky < p->conv.kh; ky++)
        for (int64_t i = 0; i < row; i += TDI_WIDTH) {
            tdi_vector made[TDI_POINTS], tap[MOST_TAPS];
            for (int k = 0; k < TDI_POINTS; k++)
                made[k] = tdi_share_of_point(k) * tdi_load(from + k * filter_stride(p) + ky * row + vector_at(p, i));
            tdi_interpolate(TDI_PAIRS, taps, made, tap);
            for (int j = 0; j < taps; j++)
                tdi_store(filter + (ky * taps + j) * row + vector_at(p, i), tap[j]);
        }
}

/* The way back, for the filter's gradient: G' u. */
static void gather_filter(const winograd *p, const float *from, float *filter)
{
    if (p->taps == 3)
        gather_filter_of(3, p, from, filter);
    else
        gather_filter_of(5, p, from, filter);
}

/* Turns the filter about for the convolution that gives dx: rows from the last to the first, f and c exchanged. */
static void turn_filter(const winograd *p, const float *filter, float *to)
{
    const tdi_conv *conv = &p->conv;
    for (int64_t ky = conv->kh - 1; ky >= 0; ky--)
        for (int j = 0; j < p->taps; j++)
            for (int64_t f = 0; f < conv->c; f++)
                for (int64_t c = 0; c < conv->f; c++)
                    *to++ = filter[((ky * p->taps + j) * conv->f + c) * conv->c + f];
}

/* ---- from rows to points ---- */

/* Finds `count` columns of `channels` vectors from `column` on; zeros outside of the row. */
static void locate(const float *row, int64_t width, int64_t channels, int64_t column, int count, const float *zeros,
                   const float **at)
{
    for (int j = 0; j < count; j++)
        at[j] = column + j >= 0 && column + j < width ? row + (column + j) * channels * TDI_WIDTH : zeros;
}

typedef void transform(int pairs, int count, const tdi_vector *from, tdi_vector *to);

/* A block of samples, [h, w, channels], that is turned into points. */
typedef struct image {
    const tdi_value *value;
    int64_t first, samples, h, w, channels; /* the first sample; how many */
    float *row, *zeros;                     /* room for a row that is not interleaved; a column of zeros */
} image;

/* Makes the points of tile t of a row [w, channels, lane], from `count` columns from t * out - before on. */
TDI_INLINE void tile_points(transform *make, int pairs, int count, const winograd *p, const image *from,
                            const float *row, int64_t before, int64_t t, steps step, float *to)
{
    const float *at[TDI_POINTS];
    locate(row, from->w, from->channels, t * p->out - before, count, from->zeros, at);
    for (int64_t i = 0; i < from->channels * TDI_WIDTH; i += TDI_WIDTH) {
        tdi_vector column[TDI_POINTS], made[TDI_POINTS];
        for (int j = 0; j < count; j++)
            column[j] = tdi_load(at[j] + i);
        make(pairs, count, column, made);
        for (int k = 0; k < TDI_POINTS; k++)
            if (!tdi_lacks_point(pairs, k))
                tdi_store(to + k * step.point + t * step.tile + i, made[k]);
    }
}

TDI_INLINE void row_points(transform *make, int count, const winograd *p, const image *from, const float *row,
                           int64_t before, steps step, float *to)
{
    int64_t whole = p->tiles - p->narrow;
    for (int64_t t = 0; t < whole; t++)
        tile_points(make, TDI_PAIRS, count, p, from, row, before, t, step, to);
    if (p->narrow)
        tile_points(make, TDI_NARROW_PAIRS, count - TDI_NARROW_LACKS, p, from, row, before, whole, step, to);
}

typedef void to_points(const winograd *p, const image *from, const float *row, steps step, float *to);

static void x_row_points(const winograd *p, const image *from, const float *row, steps step, float *to)
{
    row_points(tdi_evaluate_window, TDI_POINTS, p, from, row, p->conv.before_w, step, to);
}

static void y_row_points(const winograd *p, const image *from, const float *row, steps step, float *to)
{
    if (p->taps == 3)
        row_points(tdi_evaluate, 6, p, from, row, 0, step, to);
    else
        row_points(tdi_evaluate, 4, p, from, row, 0, step, to);
}

static void zero_row_points(const winograd *p, const image *from, steps step, float *to)
{
    for (int k = 0; k < TDI_POINTS; k++)
        for (int64_t t = 0; t < p->tiles; t++)
            tdi_clear(to + k * step.point + t * step.tile, from->channels * TDI_WIDTH);
}

static const float *interleaved_row(const image *from, int64_t i)
{
    int64_t line = from->w * from->channels, sample = from->h * line;
    const float *data = (const float *)from->value->data + from->first * sample;
    if (from->value->batch_interleaved)
        return data + i * line * TDI_WIDTH;
    tdi_interleave(data + i * line, sample, from->samples, line, from->row);
    return from->row;
}

static void image_points(const winograd *p, const image *from, tdi_rows rows, to_points *make, float *to)
{
    steps step = steps_of(p, rows.end - rows.begin, from->channels);
    for (int64_t i = rows.begin; i < rows.end; i++, to += step.row)
        if (i >= 0 && i < from->h)
            make(p, from, interleaved_row(from, i), step, to);
        else
            zero_row_points(p, from, step, to);
}

/* ---- from points to rows ---- */

/* Makes the `count` columns of tile t of y, [ow, f, lane]. */
TDI_INLINE void interpolate_tile(int pairs, int count, const winograd *p, const float *points, int64_t t, steps step,
                                 const float *bias, float *row)
{
    int64_t channels = p->conv.f, width = p->conv.ow, first = t * p->out;
    for (int64_t f = 0; f < channels; f++) {
        tdi_vector from[TDI_POINTS], made[TDI_POINTS];
        for (int k = 0; k < TDI_POINTS; k++)
            if (!tdi_lacks_point(pairs, k))
                from[k] = tdi_load(points + k * step.point + t * step.tile + f * TDI_WIDTH);
        tdi_interpolate(pairs, count, from, made);
        for (int64_t j = 0; j < count && first + j < width; j++)
            tdi_store(row + ((first + j) * channels + f) * TDI_WIDTH, bias ? made[j] + bias[f] : made[j]);
    }
}

TDI_INLINE void interpolate_row(int out, const winograd *p, const float *points, steps step, const float *bias,
                                float *row)
{
    int64_t whole = p->tiles - p->narrow;
    for (int64_t t = 0; t < whole; t++)
        interpolate_tile(TDI_PAIRS, out, p, points, t, step, bias, row);
    if (p->narrow)
        interpolate_tile(TDI_NARROW_PAIRS, out - TDI_NARROW_LACKS, p, points, whole, step, bias, row);
}

/* Stores a column of a row of dx, unless it lies in the padding. */
TDI_INLINE void put(const winograd *p, int64_t column, tdi_vector v, float *channel)
{
    if (column >= 0 && column < p->conv.ow)
        tdi_store(channel + column * p->conv.f * TDI_WIDTH, v);
}

/* Makes a row of dx, [w, c, lane]. A window's last columns are kept until the next window's first are added. */
TDI_INLINE void spread_row(int out, const winograd *p, const float *points, steps step, float *row)
{
    int64_t before = p->conv.before_w;
    for (int64_t c = 0; c < p->conv.f; c++, row += TDI_WIDTH, points += TDI_WIDTH) {
        tdi_vector from[TDI_POINTS], made[TDI_POINTS], left[TDI_POINTS] = {{0}};
        for (int64_t t = 0; t < p->tiles; t++) {
            for (int k = 0; k < TDI_POINTS; k++)
                from[k] = tdi_load(points + k * step.point + t * step.tile);
            tdi_spread_window(p->narrow && t == p->tiles - 1 ? TDI_NARROW_PAIRS : TDI_PAIRS, from, made);
            for (int j = 0; j < out; j++)
                put(p, t * out + j - before, j < TDI_POINTS - out ? made[j] + left[j] : made[j], row);
            for (int j = 0; j < TDI_POINTS - out; j++)
                left[j] = made[out + j];
        }
        for (int j = 0; j < TDI_POINTS - out; j++)
            put(p, p->tiles * out + j - before, left[j], row);
    }
}

static void row_of(const winograd *p, const float *points, steps step, const float *bias, float *row)
{
    if (p->turned && p->taps == 3)
        spread_row(6, p, points, step, row);
    else if (p->turned)
        spread_row(4, p, points, step, row);
    else if (p->taps == 3)
        interpolate_row(6, p, points, step, bias, row);
    else
        interpolate_row(4, p, points, step, bias, row);
}

/* ---- bands of rows ---- */

/* The number of tiles that have this point. */
static int64_t tiles_at(const winograd *p, int point)
{
    return p->tiles - (p->narrow && tdi_lacks_point(TDI_NARROW_PAIRS, point));
}

/* The convolution of one point, from rows `from` to rows `to`. */
static tdi_conv conv_of_point(const winograd *p, int point, tdi_rows from, tdi_rows to)
{
    tdi_conv q = p->conv;
    int64_t read = from.end - from.begin, made = to.end - to.begin, tiles = tiles_at(p, point);
    q.before_h = p->turned ? p->conv.before_h - to.begin + from.begin : 0;
    q.before_w = 0;
    q.h = p->turned ? read : tiles;
    q.w = p->turned ? tiles : read;
    q.row = p->turned ? p->tiles : read;
    q.kh = p->turned ? p->conv.kh : 1;
    q.kw = p->turned ? 1 : p->conv.kh;
    q.oh = p->turned ? made : tiles;
    q.ow = p->turned ? tiles : made;
    q.in_place = true;
    return q;
}

/* The scratch: the filter and its points; zeros; a row that is read and one that is made; the points of both. */
typedef struct room {
    float *plain, *filter, *zeros, *from_row, *to_row, *from, *to;
} room;

static int64_t plain_floats(const winograd *p)
{
    return line_floats(p->conv.kh * p->taps * filter_row(p) + TDI_WIDTH);
}

static size_t room_bytes(const winograd *p)
{
    const tdi_conv *c = &p->conv;
    int64_t rows = (c->c + c->w * c->c + c->ow * c->f) * TDI_WIDTH;
    int64_t floats = plain_floats(p) + rows + TDI_POINTS * filter_stride(p) + from_floats(p) + to_floats(p);
    return (size_t)floats * sizeof(float);
}

static room room_of(const winograd *p, void *scratch)
{
    const tdi_conv *c = &p->conv;
    room r = {.plain = scratch};
    r.filter = r.plain + plain_floats(p);
    r.zeros = r.filter + TDI_POINTS * filter_stride(p);
    r.from_row = r.zeros + c->c * TDI_WIDTH;
    r.to_row = r.from_row + c->w * c->c * TDI_WIDTH;
    r.from = r.to_row + c->ow * c->f * TDI_WIDTH;
    r.to = r.from + from_floats(p);
    tdi_clear(r.zeros, c->c * TDI_WIDTH);
    return r;
}

static void multiply_points(const winograd *p, const room *r, tdi_rows from, tdi_rows to)
{
    steps read = steps_of(p, from.end - from.begin, p->conv.c), made = steps_of(p, to.end - to.begin, p->conv.f);
    for (int k = 0; k < TDI_POINTS; k++) {
        tdi_conv q = conv_of_point(p, k, from, to);
        const float *at = r->from + k * read.point, *filter = r->filter + k * filter_stride(p);
        for (int64_t i = 0; i < q.oh; i++)
            TDI_ISA_NAME(tdi_conv_row)
        (&q, at, filter, NULL, i, r->to + k * made.point + i * (p->turned ? made.row : made.tile));
    }
}

static void store_rows(const winograd *p, const room *r, tdi_rows rows, int64_t block, const float *bias,
                       int activation, const tdi_value *y)
{
    const tdi_conv *c = &p->conv;
    int64_t line = c->ow * c->f, sample = c->oh * line;
    float *data = (float *)y->data + (c->first + block * TDI_WIDTH) * sample;
    steps step = steps_of(p, rows.end - rows.begin, c->f);
    for (int64_t i = rows.begin; i < rows.end; i++) {
        float *row = y->batch_interleaved ? data + i * line * TDI_WIDTH : r->to_row;
        row_of(p, r->to + (i - rows.begin) * step.row, step, bias, row);
        tdi_conv_activate(c, (tdi_rows){0, c->ow}, activation, row);
        if (!y->batch_interleaved)
            tdi_deinterleave(row, tdi_conv_block_samples(c, block), line, data + i * line, sample);
    }
}

/* Convolves; the filter's points, r->filter, are there already. */
static void convolve(const winograd *p, const room *r, const tdi_value *x, const float *bias, int activation,
                     const tdi_value *y)
{
    const tdi_conv *c = &p->conv;
    for (int64_t block = 0; block * TDI_WIDTH < c->samples; block++) {
        image from = {
            x, c->first + block * TDI_WIDTH, tdi_conv_block_samples(c, block), c->h, c->w, c->c, r->from_row, r->zeros};
        for (int64_t begin = 0; begin < c->oh; begin += p->band) {
            tdi_rows made = band_at(p, begin), read = rows_from(p, made);
            image_points(p, &from, read, p->turned ? y_row_points : x_row_points, r->from);
            multiply_points(p, r, read, made);
            store_rows(p, r, made, block, bias, activation, y);
        }
    }
}

/* ---- the gradient of the filter ---- */

static int64_t sums_floats(const winograd *p)
{
    return p->conv.kh * filter_row(p) * TDI_WIDTH;
}

/* Scratch behind the rest of it: a sum for each lane, [point, kh, c, f, lane], and a row of zeros for dy. */
static size_t filter_room_bytes(const winograd *p)
{
    return room_bytes(p) + (size_t)(TDI_POINTS * sums_floats(p) + p->conv.f * TDI_WIDTH) * sizeof(float);
}

static void correlate_block(const winograd *p, const room *r, const tdi_value *x, const tdi_value *dy, int64_t block,
                            bool fresh, float *sums)
{
    const tdi_conv *c = &p->conv;
    float *zeros = sums + TDI_POINTS * sums_floats(p);
    int64_t first = c->first + block * TDI_WIDTH, lanes = tdi_conv_block_samples(c, block);
    image of_x = {x, first, lanes, c->h, c->w, c->c, r->from_row, r->zeros};
    image of_dy = {dy, first, lanes, c->oh, c->ow, c->f, r->to_row, zeros};
    tdi_clear(zeros, c->f * TDI_WIDTH);
    for (int64_t begin = 0; begin < c->oh; begin += p->band) {
        tdi_rows y = band_at(p, begin), read = rows_from(p, y);
        image_points(p, &of_x, read, x_row_points, r->from);
        image_points(p, &of_dy, y, y_row_points, r->to);
        int64_t of_x_point = steps_of(p, read.end - read.begin, c->c).point;
        int64_t of_dy_point = steps_of(p, y.end - y.begin, c->f).point;
        for (int k = 0; k < TDI_POINTS; k++) {
            tdi_conv q = conv_of_point(p, k, read, y);
            const float *at_x = r->from + k * of_x_point, *at_y = r->to + k * of_dy_point;
            TDI_ISA_NAME(tdi_conv_correlate)
            (&q, at_x, at_y, (tdi_rows){0, q.oh}, fresh && begin == 0, sums + k * sums_floats(p));
        }
    }
}

/* A block that is not full comes first, so that the sums of its empty lanes can be cleared. */
static void correlate(const winograd *p, const room *r, const tdi_value *x, const tdi_value *dy, float *sums)
{
    int64_t full = p->conv.samples / TDI_WIDTH, rest = p->conv.samples % TDI_WIDTH, count = TDI_POINTS * sums_floats(p);
    if (rest) {
        correlate_block(p, r, x, dy, full, true, sums);
        for (int64_t i = 0; i < count; i += TDI_WIDTH)
            tdi_clear(sums + i + rest, TDI_WIDTH - rest);
    }
    for (int64_t block = 0; block < full; block++)
        correlate_block(p, r, x, dy, block, block == 0 && !rest, sums);
}

/* ---- which calls are taken ---- */

/* Whether the products that are saved clearly pay for the transforms, counted in vector additions a tile. "Clearly",
 * since direct sums leave out the blank borders that images of one channel often have. */
static bool pays(const td_shape *filter, int64_t out)
{
    enum { TRANSFORM = 52 };
    int64_t kh = filter->dim[0], kw = filter->dim[1], c = filter->dim[2], f = filter->dim[3];
    return kh * c * f * (kw * out - TDI_POINTS) > TRANSFORM * (c + f);
}

static const char *declines_shapes(const tdi_call *call, const td_shape *x, const td_shape *filter, const td_shape *y)
{
    const tdi_conv2d_attrs *a = call->attrs;
    if ((filter->dim[1] != 3 && filter->dim[1] != 5) || a->stride_h > 1 || a->stride_w > 1)
        return "not 3 or 5 columns without strides";
    int64_t out = TDI_POINTS + 1 - filter->dim[1], tiles = (y->dim[2] + out - 1) / out;
    if (4 * tiles * out > 5 * y->dim[2] + 4)
        return "rows that leave tiles empty";
    const char *why = tdi_conv_declines(call, x, y);
    return why || pays(filter, out) ? why : "too few products to save";
}

/* The rows of a band: as many as stay in the cache with what they are made from. For the gradient of the input no band
 * is made from more rows than dy has. */
static int64_t band_of(const winograd *p)
{
    int64_t row_bytes = TDI_POINTS * p->tiles * TDI_WIDTH * (int64_t)sizeof(float);
    int64_t from = row_bytes * p->conv.c, to = row_bytes * p->conv.f;
    if (p->turned && p->conv.h * from + p->conv.oh * to <= BAND_BYTES)
        return p->conv.oh;
    int64_t rows = (BAND_BYTES - (p->conv.kh - 1) * from) / (from + to);
    return tdi_share_of(p->conv.oh, tdi_most(rows, 1));
}

static winograd winograd_of(const tdi_call *call, const td_shape *x, const td_shape *filter, const td_shape *y,
                            bool turned)
{
    winograd p = {.conv = tdi_conv_of(call, x, filter, y), .turned = turned, .taps = (int)filter->dim[1]};
    int64_t before_w = p.conv.before_w;
    p.out = TDI_POINTS + 1 - p.taps;
    p.tiles = (p.conv.ow + p.out - 1) / p.out;
    /* At least one tile must have +-C: the filter's sums at those points begin with it. */
    p.narrow = p.tiles > 1 && p.tiles * p.out - p.conv.ow >= TDI_NARROW_LACKS;
    if (turned)
        p.conv = tdi_conv_turned_about(&p.conv);
    p.conv.before_w = before_w;
    p.band = band_of(&p);
    return p;
}

/* ---- kernels ---- */

static tdi_confidence likely(const tdi_call *call)
{
    (void)call;
    return TDI_LIKELY;
}

static const char *forward_declines(const tdi_call *call)
{
    return declines_shapes(call, &call->in[0].shape, &call->in[1].shape, &call->out.shape);
}

static winograd forward_of(const tdi_call *call)
{
    return winograd_of(call, &call->in[0].shape, &call->in[1].shape, &call->out.shape, false);
}

static td_status forward_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    winograd p = forward_of(call);
    *scratch = room_bytes(&p);
    return tdi_conv_check_samples(&p.conv, error);
}

static void forward_run(const tdi_call *call)
{
    winograd p = forward_of(call);
    room r = room_of(&p, call->scratch);
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    memcpy(r.plain, call->in[1].data, (size_t)(p.conv.kh * p.taps * filter_row(&p)) * sizeof *r.plain);
    filter_points(&p, r.plain, r.filter);
    convolve(&p, &r, &call->in[0], bias, ((const tdi_conv2d_attrs *)call->attrs)->activation, &call->out);
}

static const char *grad_input_declines(const tdi_call *call)
{
    return declines_shapes(call, &call->out.shape, &call->in[1].shape, &call->in[0].shape);
}

static winograd grad_input_of(const tdi_call *call)
{
    return winograd_of(call, &call->out.shape, &call->in[1].shape, &call->in[0].shape, true);
}

static td_status grad_input_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    winograd p = grad_input_of(call);
    *scratch = room_bytes(&p);
    return tdi_conv_check_samples(&p.conv, error);
}

static void grad_input_run(const tdi_call *call)
{
    winograd p = grad_input_of(call);
    room r = room_of(&p, call->scratch);
    turn_filter(&p, call->in[1].data, r.plain);
    filter_points(&p, r.plain, r.filter);
    convolve(&p, &r, &call->in[0], NULL, TD_LINEAR, &call->out);
}

static const char *grad_filter_declines(const tdi_call *call)
{
    return declines_shapes(call, &call->in[0].shape, &call->out.shape, &call->in[1].shape);
}

static winograd grad_filter_of(const tdi_call *call)
{
    return winograd_of(call, &call->in[0].shape, &call->out.shape, &call->in[1].shape, false);
}

static td_status grad_filter_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    winograd p = grad_filter_of(call);
    *scratch = filter_room_bytes(&p);
    return tdi_conv_check_samples(&p.conv, error);
}

static void grad_filter_run(const tdi_call *call)
{
    winograd p = grad_filter_of(call);
    room r = room_of(&p, call->scratch);
    float *sums = (float *)call->scratch + room_bytes(&p) / sizeof *sums;
    correlate(&p, &r, &call->in[0], &call->in[1], sums);
    for (int k = 0; k < TDI_POINTS; k++) {
        float *at_point = r.filter + k * filter_stride(&p);
        TDI_ISA_NAME(tdi_conv_add_lanes)(sums + k * sums_floats(&p), p.conv.kh * filter_row(&p), at_point);
    }
    gather_filter(&p, r.filter, r.plain);
    memcpy(call->out.data, r.plain, (size_t)(p.conv.kh * p.taps * filter_row(&p)) * sizeof *r.plain);
}

#define WINOGRAD_ROWS_KERNEL(stem, ...)                                                                                \
    extern const tdi_kernel TDI_ISA_NAME(tdi_cpu_winograd_rows_##stem);                                                \
    const tdi_kernel TDI_ISA_NAME(tdi_cpu_winograd_rows_##stem) = {.name = TDI_ISA_TEXT " winograd rows " #stem,       \
                                                                   .op = &tdi_op_##stem,                               \
                                                                   .confidence = likely,                               \
                                                                   .interleaving = tdi_conv_prefers_interleaving,      \
                                                                   __VA_ARGS__}

WINOGRAD_ROWS_KERNEL(conv2d, .splits = TDI_CAN_ROWS, .declines = forward_declines, .prepare = forward_prepare,
                     .run = forward_run);
WINOGRAD_ROWS_KERNEL(conv2d_grad_input, .splits = TDI_CAN_ROWS, .declines = grad_input_declines,
                     .prepare = grad_input_prepare, .run = grad_input_run);
WINOGRAD_ROWS_KERNEL(conv2d_grad_filter, .declines = grad_filter_declines, .prepare = grad_filter_prepare,
                     .run = grad_filter_run);
