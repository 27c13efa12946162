/* winograd_isa.c - 3x3 convolutions without strides and their gradients by Winograd's F(4x4, 3x3): 36 products replace
 * 144.
 *
 * winograd_transforms_isa.h turns tiles into points and back. Summed over channels, each of the 36 points is a matrix
 * product, [tiles, c] . [c, f], where the time goes. The gradient of the input is the same convolution of dy with the
 * filter turned about; or, where dy has fewer tiles than x, it is made from the tiles of dy, whose results overlap.
 *
 * The filter's points take four times the filter's memory. Where L2 cannot hold them they are made piece by piece, each
 * right before it is multiplied by all tiles of a block, while what the next piece is made of is prefetched. Pieces of
 * the filter's gradient are turned back as soon as their sums are complete. Values may be bfloat16; products are
 * float32, and the filter is not rounded.
 *
 * Limits: rounding errors are larger than those of direct sums. Channels must be multiples of 16. The kernel is
 * timed against others, and is unlikely where tiles are few. */
#include "cpu/amx.h"
#include "cpu/bfloat16_isa.h"
#include "cpu/conv/conv2d_interleaved_isa.h"
#include "cpu/conv/winograd_transforms_isa.h"
#include "cpu/prefetch_lines.h"
#include "cpu/vector_loops.h"

#if defined(__AVX512F__)
enum {
    ROWS = 8,
    COLUMNS = 4
}; /* a block of sums in registers has a multiple of ROWS rows and at most COLUMNS vectors */
#else
enum { ROWS = 4, COLUMNS = 3 };
#endif
enum { OUT = TDI_TILE_OUT, TAPS = TDI_TILE_TAPS, IN = TDI_TILE_IN, POINTS = IN * IN };
enum { GRAIN = 16, FEWEST = 16, DEPTH = 64 /* channels */, ENOUGH_TILES = 16 };
enum { CACHE_FLOATS = 1 << 18, MOST_FLOATS = 5 << 17 };

/* x [samples, h, w, c] -> y [samples, oh, ow, f]. Tiles are numbered sample by sample, row by row. */
typedef struct winograd {
    int64_t first, samples; /* this call makes `samples` samples from `first` on */
    int64_t h, w, c, oh, ow, f, before_h, before_w;
    int64_t filter, filters; /* this call makes filters [filter, filter + f) of `filters` */
    int64_t tiles_h, tiles_w, tiles;
    int64_t block;    /* tiles worked on at a time: a multiple of ROWS */
    int64_t results;  /* panels of results that are kept at a time */
    bool narrow;      /* x and y, or their gradients, are bfloat16; the filter and its gradient never are */
    bool back;        /* x is dy, y its gradient dx; the filter's sides are swapped */
    bool overlapping; /* back, by tiles of dy, each of which makes a window of dx */
    bool whole;       /* all of the filter's points are kept, not one piece's alone */
} winograd;

/* ---- products ---- */

typedef struct operands {
    const float *a; /* element (i, k) at a[i * row + k * step] */
    int64_t row, step;
    const float *b; /* [depth, columns] */
    int64_t b_row;
    float *c; /* [rows, columns] */
    int64_t c_row;
    tdi_prefetch_lines prefetch;
} operands;

/* One step of a block: a row of b times one element of each of a's rows. */
TDI_INLINE void add_step(int rows, int columns, const operands *o, int64_t k, tdi_vector sum[ROWS][COLUMNS])
{
    tdi_vector of_b[COLUMNS];
    TDI_UNROLL_ALL
    for (int j = 0; j < columns; j++)
        of_b[j] = tdi_load(o->b + k * o->b_row + j * TDI_WIDTH);
    TDI_UNROLL_ALL
    for (int i = 0; i < rows; i++) {
        tdi_vector of_a = tdi_splat(o->a[i * o->row + k * o->step]);
        TDI_UNROLL_ALL
        for (int j = 0; j < columns; j++)
            sum[i][j] += of_a * of_b[j];
    }
}

/* c (+)= a . b over `depth` steps. */
TDI_INLINE void block(int rows, int columns, operands o, int64_t depth, bool add)
{
    tdi_vector sum[ROWS][COLUMNS];
    TDI_UNROLL_ALL
    for (int i = 0; i < rows; i++) {
        TDI_UNROLL_ALL
        for (int j = 0; j < columns; j++)
            sum[i][j] = add ? tdi_load(o.c + i * o.c_row + j * TDI_WIDTH) : (tdi_vector){0};
    }
    for (int64_t k = 0; k < depth; k++, o.prefetch.at += o.prefetch.step) {
        __builtin_prefetch(o.prefetch.at, 0, 2);
        add_step(rows, columns, &o, k, sum);
    }
    TDI_UNROLL_ALL
    for (int i = 0; i < rows; i++) {
        TDI_UNROLL_ALL
        for (int j = 0; j < columns; j++)
            tdi_store(o.c + i * o.c_row + j * TDI_WIDTH, sum[i][j]);
    }
}

typedef struct product {
    const float *a;
    int64_t row, step;
    const float *b;
    int64_t b_row;
    float *c;
    int64_t c_row;
    int64_t rows, depth;
    bool add;
    tdi_prefetch_region *prefetch; /* [TAPS * TAPS] */
} product;

TDI_INLINE void multiply_rows(int rows, int columns, const product *p, int64_t i)
{
    operands o = {p->a + i * p->row, p->row,
                  p->step,           p->b,
                  p->b_row,          p->c + i * p->c_row,
                  p->c_row,          tdi_next_prefetch(p->prefetch, TAPS * TAPS, p->depth)};
    block(rows, columns, o, p->depth, p->add);
}

TDI_INLINE void multiply(const product *p, int columns)
{
    for (int64_t i = 0; i < p->rows; i += ROWS)
        multiply_rows(ROWS, columns, p, i);
}

#if defined(__AVX512F__)
/* Six rows of four vectors need the fewest instructions a product among the blocks that fit into the registers. Blocks
 * of four rows make the rest, so that no row behind the next multiple of ROWS, which there is memory for, is touched.
 */
static void multiply_wide(const product *p)
{
    int64_t all = tdi_rounded_up(p->rows, ROWS);
    for (int64_t i = 0, rows; i < all; i += rows) {
        rows = all - i == 4 || all - i == 8 ? 4 : 6;
        if (rows == 6)
            multiply_rows(6, 4, p, i);
        else
            multiply_rows(4, 4, p, i);
    }
}
#endif

static void multiply_columns(const product *p, int columns)
{
#if defined(__AVX512F__)
    if (columns == 4)
        multiply_wide(p);
    else
#endif
        if (columns == 3)
        multiply(p, 3);
    else if (columns == 2)
        multiply(p, 2);
    else
        multiply(p, 1);
}

/* ---- pieces and tiles ---- */

/* A piece of the filter: a panel of some vectors of f by a slice of c. */
typedef struct piece {
    int64_t panel, f, slice, c, depth;
    int columns; /* vectors */
} piece;

static int64_t slices(const winograd *p)
{
    return (p->c + DEPTH - 1) / DEPTH;
}

static int64_t panels(const winograd *p)
{
    int64_t most = COLUMNS * TDI_WIDTH;
    return (p->f + most - 1) / most;
}

/* The piece at a panel and a slice. Filters are divided so that no panel has a single vector, if possible. */
static piece piece_of(const winograd *p, int64_t panel, int64_t f, int64_t slice)
{
    int64_t left = (p->f - f) / TDI_WIDTH, c = slice * DEPTH;
    return (piece){.panel = panel,
                   .f = f,
                   .columns = left <= COLUMNS          ? (int)left
                              : left < 2 * COLUMNS - 1 ? (int)(left + 1) / 2
                                                       : COLUMNS,
                   .slice = slice,
                   .c = c,
                   .depth = tdi_least(p->c - c, DEPTH)};
}

static piece first_piece(const winograd *p)
{
    return piece_of(p, 0, 0, 0);
}

static piece next_panel(const winograd *p, piece q)
{
    return piece_of(p, q.panel + 1, q.f + q.columns * TDI_WIDTH, 0);
}

/* The slices of a panel follow each other, then comes the next panel; behind the last piece f is p->f. */
static piece next_piece(const winograd *p, piece q)
{
    return q.slice + 1 < slices(p) ? piece_of(p, q.panel, q.f, q.slice + 1) : next_panel(p, q);
}

static int64_t width_of(piece q)
{
    return q.columns * TDI_WIDTH;
}

/* The width of the widest panel, which is the first, and the depth of the deepest slice. */
static int64_t panel_width(const winograd *p)
{
    return width_of(first_piece(p));
}

static int64_t slice_depth(const winograd *p)
{
    return first_piece(p).depth;
}

/* Floats from point to point in a slice of the image, [points, tiles, depth]. */
static int64_t image_stride(const winograd *p)
{
    return tdi_odd_lines(p->block * slice_depth(p));
}

/* ... in a panel of the result or its gradient, [points, tiles, columns]. */
static int64_t result_stride(const winograd *p)
{
    return tdi_odd_lines(p->block * panel_width(p));
}

/* ... in a piece of the filter, [points, depth, columns]. */
static int64_t filter_stride(const winograd *p)
{
    return tdi_odd_lines(slice_depth(p) * panel_width(p));
}

/* Whether all of the filter's points fit into the second-level cache. If not, they are made anew for each block. */
static bool filter_fits(const winograd *p)
{
    return POINTS * p->c * p->f <= CACHE_FLOATS;
}

static int64_t pieces(const winograd *p)
{
    return p->whole ? panels(p) * slices(p) : 1;
}

static float *place_of(const winograd *p, float *filter, piece q)
{
    return p->whole ? filter + (q.panel * slices(p) + q.slice) * POINTS * filter_stride(p) : filter;
}

typedef struct tile {
    int64_t sample, y, x; /* where its first output is */
} tile;

static tile tile_at(const winograd *p, int64_t index)
{
    int64_t each = p->tiles_h * p->tiles_w, inside = index % each;
    return (tile){p->first + index / each, inside / p->tiles_w * OUT, inside % p->tiles_w * OUT};
}

/* ---- to and from points ---- */

static const void *element(const winograd *p, const void *from, int64_t i)
{
    return tdi_skip(p->narrow, from, i);
}

/* A window of size x size in an image of [h, w, channels]. */
typedef struct window {
    int size;
    const void *at[POINTS]; /* each pixel, or zeros outside of the image */
} window;

static void locate(const winograd *p, const void *image, int64_t h, int64_t w, int64_t channels, int64_t y, int64_t x,
                   const void *zeros, window *of)
{
    for (int i = 0; i < of->size; i++)
        for (int j = 0; j < of->size; j++) {
            bool inside = y + i >= 0 && y + i < h && x + j >= 0 && x + j < w;
            of->at[i * of->size + j] = inside ? element(p, image, ((y + i) * w + x + j) * channels) : zeros;
        }
}

TDI_INLINE void points_of(bool narrow, tdi_transform *one_way, int size, const window *of, int64_t begin,
                          int64_t channels, int64_t stride, float *to)
{
    for (int64_t c = 0; c < channels; c += TDI_WIDTH) {
        tdi_vector from[POINTS], made[POINTS];
        for (int i = 0; i < size * size; i++)
            from[i] = tdi_get_vector(narrow, of->at[i], begin + c);
        tdi_both_ways(one_way, size, IN, from, made);
        for (int i = 0; i < POINTS; i++)
            tdi_store(to + i * stride + c, made[i]);
    }
}

/* Makes the points of a window of x for the channels of a slice. */
static void image_points_of(const winograd *p, const window *of, piece q, float *to)
{
    if (p->overlapping)
        points_of(false, tdi_evaluate_gradient, OUT, of, q.c, q.depth, image_stride(p), to);
    else if (p->narrow)
        points_of(true, tdi_evaluate_image, IN, of, q.c, q.depth, image_stride(p), to);
    else
        points_of(false, tdi_evaluate_image, IN, of, q.c, q.depth, image_stride(p), to);
}

/* Makes the points of a window of dy for the filters of a panel. */
static void gradient_points_of(const winograd *p, const window *of, piece q, float *to)
{
    if (p->narrow)
        points_of(true, tdi_evaluate_gradient, OUT, of, p->filter + q.f, width_of(q), result_stride(p), to);
    else
        points_of(false, tdi_evaluate_gradient, OUT, of, p->filter + q.f, width_of(q), result_stride(p), to);
}

/* Makes the points of tiles [begin, begin + count) of x: [slices, points, tile, depth]. */
static void image_points(const winograd *p, const void *x, const float *zeros, int64_t begin, int64_t count, float *to)
{
    window of = {.size = p->overlapping ? OUT : IN};
    int64_t above = p->overlapping ? 0 : p->before_h, left = p->overlapping ? 0 : p->before_w;
    for (int64_t i = 0; i < count; i++) {
        tile t = tile_at(p, begin + i);
        const void *image = element(p, x, t.sample * p->h * p->w * p->c);
        locate(p, image, p->h, p->w, p->c, t.y - above, t.x - left, zeros, &of);
        for (piece q = first_piece(p); q.panel == 0; q = next_piece(p, q))
            image_points_of(p, &of, q, to + q.slice * POINTS * image_stride(p) + i * slice_depth(p));
    }
}

/* Makes the points of tiles of dy: [panels, points, tile, columns]. */
static void gradient_points(const winograd *p, const void *dy, const float *zeros, int64_t begin, int64_t count,
                            float *to)
{
    window of = {.size = OUT};
    for (int64_t i = 0; i < count; i++) {
        tile t = tile_at(p, begin + i);
        const void *image = element(p, dy, t.sample * p->oh * p->ow * p->filters);
        locate(p, image, p->oh, p->ow, p->filters, t.y, t.x, zeros, &of);
        for (piece q = first_piece(p); q.f < p->f; q = next_panel(p, q))
            gradient_points_of(p, &of, q, to + q.panel * POINTS * result_stride(p) + i * width_of(q));
    }
}

/* Makes the points of a vector of the filter; `tap` and `stride` are the floats from tap to tap and from point to
 * point. */
TDI_INLINE void filter_points(const float *filter, int64_t tap, int64_t stride, float *to)
{
    tdi_vector from[TAPS * TAPS], made[POINTS];
    for (int i = 0; i < TAPS * TAPS; i++)
        from[i] = tdi_load(filter + i * tap);
    tdi_both_ways(tdi_evaluate_filter, TAPS, IN, from, made);
    for (int i = 0; i < POINTS; i++)
        tdi_store(to + i * stride, made[i]);
}

/* Makes a piece of the points of filter [3, 3, c, filters]. */
static void make_straight(const winograd *p, const float *filter, piece q, float *to)
{
    const int64_t stride = filter_stride(p), row = width_of(q), from_row = p->filters, tap = p->c * p->filters;
    filter += q.c * from_row + p->filter + q.f;
    for (int64_t k = 0; k < q.depth; k++)
        for (int j = 0; j < q.columns; j++)
            filter_points(filter + k * from_row + j * TDI_WIDTH, tap, stride, to + k * row + j * TDI_WIDTH);
}

/* Makes the points of a transposed square of the filter. The filter is turned about, except where results are windows.
 */
static void swapped_square(const winograd *p, const float *filter, float *to, int64_t row)
{
    enum { SQUARE = TDI_WIDTH * TDI_WIDTH };
    float square[TAPS * TAPS][SQUARE];
    const int64_t stride = filter_stride(p);
    for (int i = 0; i < TAPS * TAPS; i++)
        tdi_transpose_square(filter + (p->overlapping ? i : TAPS * TAPS - 1 - i) * p->c * p->filters, p->c, square[i],
                             TDI_WIDTH);
    for (int k = 0; k < TDI_WIDTH; k++)
        filter_points(square[0] + k * TDI_WIDTH, SQUARE, stride, to + k * row);
}

/* Makes a piece of the points of the filter that gives dx, of filter [3, 3, filters, c] with p's filters and c. */
static void make_swapped(const winograd *p, const float *filter, piece q, float *to)
{
    filter += (p->filter + q.f) * p->c + q.c;
    for (int j = 0; j < width_of(q); j += TDI_WIDTH)
        for (int64_t k = 0; k < q.depth; k += TDI_WIDTH)
            swapped_square(p, filter + j * p->c + k, to + k * width_of(q) + j, width_of(q));
}

static void make_piece(const winograd *p, const float *filter, piece q, float *to)
{
    if (p->back)
        make_swapped(p, filter, q, to);
    else
        make_straight(p, filter, q, to);
}

/* Prefetches the taps of the filter that a piece is made from, or is stored to. */
static void prefetch_taps(const winograd *p, const float *filter, piece q, tdi_prefetch_region *prefetch)
{
    enum { FLOAT = sizeof *filter };
    int64_t width = width_of(q);
    for (int tap = 0; tap < TAPS * TAPS && q.f < p->f; tap++, filter += p->c * p->filters)
        prefetch[tap] =
            p->back ? tdi_prefetch_rows(filter + (p->filter + q.f) * p->c + q.c, p->c * FLOAT, width, q.depth * FLOAT)
                    : tdi_prefetch_rows(filter + q.c * p->filters + p->filter + q.f, p->filters * FLOAT, q.depth,
                                        width * FLOAT);
}

/* Turns a tile's results back from points: [size, size, width]. */
TDI_INLINE void turn_back(tdi_transform *one_way, int size, const winograd *p, const float *from, int64_t width,
                          float *to)
{
    const int64_t stride = result_stride(p);
    for (int64_t f = 0; f < width; f += TDI_WIDTH) {
        tdi_vector points[POINTS], made[POINTS];
        for (int i = 0; i < POINTS; i++)
            points[i] = tdi_load(from + i * stride + f);
        tdi_both_ways(one_way, IN, size, points, made);
        for (int i = 0; i < size * size; i++)
            tdi_store(to + i * width + f, made[i]);
    }
}

TDI_INLINE void put_tile(bool narrow, const winograd *p, tile t, const float *from, piece q, void *y)
{
    int64_t height = tdi_least(p->oh - t.y, OUT), width = tdi_least(p->ow - t.x, OUT);
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++) {
            int64_t pixel = (t.sample * p->oh + t.y + i) * p->ow + t.x + j;
            for (int64_t f = 0; f < width_of(q); f += TDI_WIDTH)
                tdi_put_vector(narrow, y, pixel * p->filters + p->filter + q.f + f,
                               tdi_load(from + (i * OUT + j) * width_of(q) + f));
        }
}

/* Adds a window to y. Pixels that tiles above or to the left share in are there already; the others are stored. */
static void add_window(const winograd *p, tile t, const float *from, piece q, float *y)
{
    enum { SHARED = IN - OUT };
    int64_t above = t.y - (TAPS - 1 - p->before_h), left = t.x - (TAPS - 1 - p->before_w);
    for (int64_t i = tdi_most(-above, 0); i < tdi_least(p->oh - above, IN); i++)
        for (int64_t j = tdi_most(-left, 0); j < tdi_least(p->ow - left, IN); j++) {
            bool there = (t.y > 0 && i < SHARED) || (t.x > 0 && j < SHARED);
            const float *made = from + (i * IN + j) * width_of(q);
            float *to = y + ((t.sample * p->oh + above + i) * p->ow + left + j) * p->filters + p->filter + q.f;
            for (int64_t f = 0; f < width_of(q); f += TDI_WIDTH)
                tdi_store(to + f, there ? tdi_load(to + f) + tdi_load(made + f) : tdi_load(made + f));
        }
}

static void store_tile(const winograd *p, tile t, const float *from, piece q, const float *bias, int activation,
                       void *y)
{
    float made[OUT * OUT * COLUMNS * TDI_WIDTH];
    turn_back(tdi_interpolate_tile, OUT, p, from, width_of(q), made);
    if (bias || activation)
        TDI_ISA_NAME(tdi_vector_loops)
            .epilogue(OUT * OUT, width_of(q), width_of(q), bias ? bias + q.f : NULL, activation, made);
    if (p->narrow)
        put_tile(true, p, t, made, q, y);
    else
        put_tile(false, p, t, made, q, y);
}

static void store_window(const winograd *p, tile t, const float *from, piece q, float *y)
{
    float made[IN * IN * COLUMNS * TDI_WIDTH];
    turn_back(tdi_scatter_image, IN, p, from, width_of(q), made);
    add_window(p, t, made, q, y);
}

/* Stores a panel of the results of tiles [begin, begin + count). */
static void store_tiles(const winograd *p, const float *from, piece q, int64_t begin, int64_t count, const float *bias,
                        int activation, void *y)
{
    for (int64_t i = 0; i < count; i++, from += width_of(q)) {
        if (p->overlapping)
            store_window(p, tile_at(p, begin + i), from, q, y);
        else
            store_tile(p, tile_at(p, begin + i), from, q, bias, activation, y);
    }
}

/* ---- the convolution ---- */

/* scratch: zeros, image, result, filter where it is not kept, and for what follows */
typedef struct room {
    float *zeros, *image, *result, *filter;
} room;

static int64_t zeros_of(const winograd *p)
{
    return tdi_most(p->c, p->filters);
}

static int64_t image_floats(const winograd *p)
{
    return slices(p) * POINTS * image_stride(p);
}

static int64_t filter_floats(const winograd *p)
{
    return pieces(p) * POINTS * filter_stride(p);
}

static size_t packed_cache_bytes(const tdi_call *call, const winograd *p)
{
    return tdi_is_constant_input(call, 1) && filter_fits(p) ? (size_t)filter_floats(p) * sizeof(float) : 0;
}

static int64_t result_floats(const winograd *p)
{
    return p->results * POINTS * result_stride(p);
}

static size_t room_bytes(const tdi_call *call, const winograd *p)
{
    int64_t filter = packed_cache_bytes(call, p) ? 0 : filter_floats(p);
    int64_t floats = zeros_of(p) + image_floats(p) + result_floats(p) + filter;
    return (size_t)floats * sizeof(float);
}

static room room_of(const tdi_call *call, const winograd *p)
{
    room r = {.zeros = call->scratch};
    r.image = r.zeros + zeros_of(p);
    r.result = r.image + image_floats(p);
    r.filter = call->packed_cache ? tdi_packed_cache(call) : (void *)(r.result + result_floats(p));
    memset(r.zeros, 0, (size_t)zeros_of(p) * sizeof(float));
    return r;
}

static void multiply_piece(const winograd *p, const room *r, const float *filter, piece q, int64_t count,
                           tdi_prefetch_region *prefetch)
{
    for (int point = 0; point < POINTS; point++) {
        product of = {.a = r->image + (q.slice * POINTS + point) * image_stride(p),
                      .row = slice_depth(p),
                      .step = 1,
                      .b = filter + point * filter_stride(p),
                      .b_row = width_of(q),
                      .c = r->result + point * result_stride(p),
                      .c_row = width_of(q),
                      .rows = count,
                      .depth = q.depth,
                      .add = q.slice > 0,
                      .prefetch = prefetch};
        multiply_columns(&of, q.columns);
    }
}

/* Convolves a block of tiles. Its rows behind the last tile hold arbitrary numbers, which nothing reads. */
static void convolve_block(const winograd *p, const room *r, const tdi_call *call, bool make, int64_t begin,
                           int64_t count, const float *bias, int activation)
{
    const float *filter = call->in[1].data;
    image_points(p, call->in[0].data, r->zeros, begin, count, r->image);
    for (piece q = first_piece(p), next; q.f < p->f; q = next) {
        next = next_piece(p, q);
        float *points = place_of(p, r->filter, q);
        tdi_prefetch_region prefetch[TAPS * TAPS] = {{.at = (const char *)points}};
        if (make) {
            make_piece(p, filter, q, points);
            prefetch_taps(p, filter, next, prefetch);
        }
        multiply_piece(p, r, points, q, count, prefetch);
        if (next.panel > q.panel)
            store_tiles(p, r->result, q, begin, count, bias, activation, call->out.data);
    }
}

static void convolve(const winograd *p, const tdi_call *call, const float *bias, int activation)
{
    room r = room_of(call, p);
    bool make = tdi_must_pack(call);
    for (int64_t begin = 0; begin < p->tiles; begin += p->block) {
        int64_t count = tdi_least(p->tiles - begin, p->block);
        convolve_block(p, &r, call, !p->whole || (make && begin == 0), begin, count, bias, activation);
    }
}

/* ---- the gradient of the filter ---- */

static void add_products(const winograd *p, const room *r, piece q, int64_t count, bool add, float *filter,
                         tdi_prefetch_region *prefetch)
{
    for (int point = 0; point < POINTS; point++) {
        product of = {.a = r->image + (q.slice * POINTS + point) * image_stride(p),
                      .row = 1,
                      .step = slice_depth(p),
                      .b = r->result + (q.panel * POINTS + point) * result_stride(p),
                      .b_row = width_of(q),
                      .c = filter + point * filter_stride(p),
                      .c_row = width_of(q),
                      .rows = q.depth,
                      .depth = count,
                      .add = add,
                      .prefetch = prefetch};
        multiply_columns(&of, q.columns);
    }
}

static void store_piece(const winograd *p, const float *from, piece q, float *filter)
{
    const int64_t stride = filter_stride(p), row = width_of(q), to_row = p->filters, tap = p->c * p->filters;
    filter += q.c * to_row + p->filter + q.f;
    for (int64_t k = 0; k < q.depth; k++)
        for (int j = 0; j < q.columns; j++) {
            tdi_vector points[POINTS], made[TAPS * TAPS];
            for (int i = 0; i < POINTS; i++)
                points[i] = tdi_load(from + i * stride + k * row + j * TDI_WIDTH);
            tdi_both_ways(tdi_gather_filter, IN, TAPS, points, made);
            for (int i = 0; i < TAPS * TAPS; i++)
                tdi_store(filter + i * tap + k * to_row + j * TDI_WIDTH, made[i]);
        }
}

static void correlate_block(const winograd *p, const room *r, const tdi_call *call, int64_t begin, int64_t count)
{
    image_points(p, call->in[0].data, r->zeros, begin, count, r->image);
    gradient_points(p, call->in[1].data, r->zeros, begin, count, r->result);
    for (piece q = first_piece(p); q.f < p->f; q = next_piece(p, q)) {
        bool last = begin + count == p->tiles;
        float *points = place_of(p, r->filter, q);
        tdi_prefetch_region prefetch[TAPS * TAPS] = {{.at = (const char *)points}};
        if (last)
            prefetch_taps(p, call->out.data, q, prefetch);
        add_products(p, r, q, count, begin > 0, points, prefetch);
        if (last)
            store_piece(p, points, q, call->out.data);
    }
}

static void correlate(const winograd *p, const tdi_call *call)
{
    room r = room_of(call, p);
    for (int64_t begin = 0; begin < p->tiles; begin += p->block)
        correlate_block(p, &r, call, begin, tdi_least(p->tiles - begin, p->block));
}

/* ---- which calls are taken ---- */

static const char *declines(const tdi_call *call, const tdi_value *x, const tdi_value *filter, const tdi_value *y)
{
    const tdi_conv2d_attrs *a = call->attrs;
    int64_t c = x->shape.dim[3], f = y->shape.dim[3];
    if (filter->shape.dim[0] != TAPS || filter->shape.dim[1] != TAPS || a->stride_h > 1 || a->stride_w > 1)
        return "not 3x3 without strides";
    if (a->groups > 1 || a->dilation_h > 1 || a->dilation_w > 1)
        return "groups or dilation";
    if (c < FEWEST || f < FEWEST || c % GRAIN || f % GRAIN)
        return "few channels, or not a multiple of 16";
    if (x->dtype != y->dtype || filter->dtype != TD_FLOAT32)
        return "operands of different types";
    return x->dtype == TD_BFLOAT16 && tdi_amx_works() ? "AMX multiplies more at a time" : NULL;
}

static int64_t tiles_of(int64_t extent)
{
    return (extent + OUT - 1) / OUT;
}

static int64_t tiles_in(const td_shape *y)
{
    return y->dim[0] * tiles_of(y->dim[1]) * tiles_of(y->dim[2]);
}

/* Whether dx is made by tiles of dy, which are fewer. Not for bfloat16: where windows overlap, sums would be rounded
 * twice. */
static bool is_overlapping(const tdi_call *call)
{
    return call->in[0].dtype == TD_FLOAT32 && tiles_in(&call->in[0].shape) < tiles_in(&call->out.shape);
}

/* Tiles must be many enough to pay for the filter's transform, and mostly lie inside of the image. */
static tdi_confidence confidence_of_shape(const td_shape *y)
{
    int64_t tiles = tiles_in(y);
    int64_t made = y->dim[0] * y->dim[1] * y->dim[2];
    return tiles >= ENOUGH_TILES && 10 * made >= 6 * OUT * OUT * tiles ? TDI_LIKELY : TDI_UNLIKELY;
}

/* The tiles of a block. If the filter's points fit into the cache, the points of a block and of its results get as much
 * memory as they; if not, a block must be large enough to be worth making the filter's points. Blocks have about the
 * same size. */
static int64_t block_of(const winograd *p)
{
    int64_t of_tile = p->c + p->results * panel_width(p), wider = p->results > 1 ? tdi_most(p->c, p->f) : p->c;
    int64_t most = (filter_fits(p) ? CACHE_FLOATS / (POINTS * of_tile) : MOST_FLOATS / (POINTS * wider)) / ROWS * ROWS;
    return tdi_rounded_up(tdi_share_of(p->tiles, tdi_most(most, ROWS)), ROWS);
}

/* Describes the convolution with the filter, or the one back. */
static winograd winograd_of(const tdi_call *call, const td_shape *x, const td_shape *y, bool back)
{
    const tdi_conv2d_attrs *a = call->attrs;
    bool rows = call->split == TDI_ROWS, columns = call->split == TDI_COLUMNS;
    winograd p = {.narrow = call->in[0].dtype == TD_BFLOAT16,
                  .back = back,
                  .overlapping = back && is_overlapping(call),
                  .first = rows ? call->begin : 0,
                  .samples = rows ? call->end - call->begin : x->dim[0],
                  .h = x->dim[1],
                  .w = x->dim[2],
                  .c = x->dim[3],
                  .oh = y->dim[1],
                  .ow = y->dim[2],
                  .f = columns ? call->end - call->begin : y->dim[3],
                  .filter = columns ? call->begin : 0,
                  .filters = y->dim[3]};
    const td_shape *tiled = p.overlapping ? x : y;
    p.tiles_h = tiles_of(tiled->dim[1]);
    p.tiles_w = tiles_of(tiled->dim[2]);
    int64_t same = a->padding == TD_SAME ? 1 : 0, before_h = same + a->sides.top, before_w = same + a->sides.left;
    p.before_h = back ? TAPS - 1 - before_h : before_h;
    p.before_w = back ? TAPS - 1 - before_w : before_w;
    p.tiles = p.samples * p.tiles_h * p.tiles_w;
    p.results = 1;
    p.block = block_of(&p);
    p.whole = filter_fits(&p);
    return p;
}

/* ---- kernels ---- */

static const char *forward_declines(const tdi_call *call)
{
    return declines(call, &call->in[0], &call->in[1], &call->out);
}

static tdi_confidence forward_confidence(const tdi_call *call)
{
    return confidence_of_shape(&call->out.shape);
}

static winograd forward_of(const tdi_call *call)
{
    return winograd_of(call, &call->in[0].shape, &call->out.shape, false);
}

static td_status prepare(const tdi_call *call, const winograd *p, size_t *scratch, tdi_error *error)
{
    *scratch = room_bytes(call, p);
    return p->f % TDI_WIDTH ? tdi_fail(error, TD_UNSUPPORTED, "filters that are no whole vectors") : TD_OK;
}

static td_status forward_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    winograd p = forward_of(call);
    return prepare(call, &p, scratch, error);
}

static size_t forward_packed_cache_bytes(const tdi_call *call)
{
    winograd p = forward_of(call);
    return packed_cache_bytes(call, &p);
}

static void forward_run(const tdi_call *call)
{
    winograd p = forward_of(call);
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    convolve(&p, call, bias ? bias + p.filter : NULL, ((const tdi_conv2d_attrs *)call->attrs)->activation);
}

static const char *grad_input_declines(const tdi_call *call)
{
    return declines(call, &call->out, &call->in[1], &call->in[0]);
}

static tdi_confidence grad_input_confidence(const tdi_call *call)
{
    return confidence_of_shape(is_overlapping(call) ? &call->in[0].shape : &call->out.shape);
}

static winograd grad_input_of(const tdi_call *call)
{
    return winograd_of(call, &call->in[0].shape, &call->out.shape, true);
}

static td_status grad_input_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    winograd p = grad_input_of(call);
    return prepare(call, &p, scratch, error);
}

static size_t grad_input_packed_cache_bytes(const tdi_call *call)
{
    winograd p = grad_input_of(call);
    return packed_cache_bytes(call, &p);
}

static void grad_input_run(const tdi_call *call)
{
    winograd p = grad_input_of(call);
    convolve(&p, call, NULL, 0);
}

static const char *grad_filter_declines(const tdi_call *call)
{
    return declines(call, &call->in[0], &call->out, &call->in[1]);
}

static tdi_confidence grad_filter_confidence(const tdi_call *call)
{
    return confidence_of_shape(&call->in[1].shape);
}

/* With more than one block, sums continue from block to block, so that all of the filter's points are kept. */
static winograd grad_filter_of(const tdi_call *call)
{
    winograd p = winograd_of(call, &call->in[0].shape, &call->in[1].shape, false);
    p.results = panels(&p);
    p.block = block_of(&p);
    p.whole = p.block < p.tiles;
    return p;
}

static td_status grad_filter_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    winograd p = grad_filter_of(call);
    return prepare(call, &p, scratch, error);
}

static void grad_filter_run(const tdi_call *call)
{
    winograd p = grad_filter_of(call);
    correlate(&p, call);
}

#define WINOGRAD_KERNEL(stem, ...)                                                                                     \
    extern const tdi_kernel TDI_ISA_NAME(tdi_cpu_winograd_##stem);                                                     \
    const tdi_kernel TDI_ISA_NAME(tdi_cpu_winograd_##stem) = {                                                         \
        .name = TDI_ISA_TEXT " winograd " #stem, .op = &tdi_op_##stem, __VA_ARGS__}

WINOGRAD_KERNEL(conv2d, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .declines = forward_declines,
                .confidence = forward_confidence, .prepare = forward_prepare,
                .packed_cache_bytes = forward_packed_cache_bytes, .run = forward_run);
WINOGRAD_KERNEL(conv2d_grad_input, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                .declines = grad_input_declines, .confidence = grad_input_confidence, .prepare = grad_input_prepare,
                .packed_cache_bytes = grad_input_packed_cache_bytes, .run = grad_input_run);
WINOGRAD_KERNEL(conv2d_grad_filter, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_COLUMNS,
                .declines = grad_filter_declines, .confidence = grad_filter_confidence, .prepare = grad_filter_prepare,
                .run = grad_filter_run);
