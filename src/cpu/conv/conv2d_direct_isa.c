/* conv2d_direct_isa.c - convolutions of many channels, and the gradients of their inputs, by AVX-512; of bfloat16
 * values by AVX512-BF16.
 *
 * Images are read where they lie. For some hundred pixels at a time a table says where each place of the filter reads:
 * an image's pixel, or zeros outside of it. A word (pair_products_isa.h) of each pixel of a tile is multiplied by each
 * vector of filters. The sums stay in registers over all places and channels, so that their bits do not depend on the
 * share of a thread. Meanwhile the next pixels are prefetched. The filter is packed once a call, or once in all if it
 * is a constant input; a 1x1 filter is packed by groups of filters, so that the next group is prefetched while one is
 * multiplied.
 *
 * The gradient of an input is the convolution of dy with the filter turned about and its sides swapped. Where a 1x1
 * filter has strides, its pixels are spread apart.
 *
 * Limit: zeros around an image are multiplied like its pixels, so that an infinite weight gives NaN there, where the
 * definition ignores them. */
#include "cpu/bfloat16_isa.h"
#include "cpu/kernels.h"

#if defined(__AVX512BW__)

#include "cpu/amx.h"
#include "cpu/conv/pair_products_isa.h"

enum {
    SIDE = TDI_SIDE,
    ROWS = TDI_TILE_ROWS,       /* pixels of a tile, at most */
    VECTORS = TDI_TILE_VECTORS, /* vectors of filters of a tile, at most */
    LEAST = 2 * SIDE,           /* filters of a tile, at least */
    TURN = 2,                   /* words in a turn of the loop over them */
    FILTERS = 1 << 16,          /* floats of a place of the filter that are packed at a time */
    PREFETCHES = 2,
};

/* x [samples, h, w, c] -> y [samples, y_h, y_w, filters], of which the pixels of a grid and filters from `filter` on
 * are made. Going back, `x` is dy and `y` is dx. */
typedef struct conv {
    int64_t first, samples, h, w, c, y_h, y_w, filters;
    int64_t filter, f;                        /* this call makes filters [filter, filter + f) */
    int64_t grid_h, grid_w, apart_h, apart_w; /* the pixels of an image that are made, and their distances in y */
    int64_t kh, kw, stride_h, stride_w, dilation_h, dilation_w;
    int64_t top, left;      /* zeros above and left of x that the first place reads */
    int64_t rows, wide;     /* pixels and filters of a tile */
    int64_t pixels, chunk;  /* pixels that are made; those at a time, a multiple of `rows` */
    int64_t words, element; /* words of a pixel of x; bytes of a channel of x and of y */
    int64_t group, span;    /* filters that are packed at a time, a multiple of `wide`; places of each */
    bool whole;             /* all filters stay packed for the next pixels, or for the next call */
    int activation;
    const float *bias; /* [f], or NULL */
    bool pairs;        /* words are pairs of bfloat16 values */
    bool back;         /* the filter is turned about, and its third axis is made */
} conv;

typedef struct packed {
    const tdi_word **from;    /* [places][chunk] */
    char **to;                /* [chunk]; NULL: no pixel of y */
    tdi_word *zeros, *filter; /* [f or group / wide][span][words][wide] */
    float *sums;              /* [group / wide][chunk][wide]: sums kept from one span to the next */
} packed;

/* ---- shapes ---- */

static int64_t places_of(const conv *v)
{
    return v->kh * v->kw;
}

/* Pixels of a tile that has `vectors` vectors of filters. */
TDI_INLINE int rows_of(int vectors)
{
    return vectors == 2 ? ROWS : 6;
}

static void set_tile(conv *v)
{
    int vectors = v->pairs || v->f % (VECTORS * SIDE) ? 2 : VECTORS;
    v->rows = rows_of(vectors);
    v->wide = vectors * SIDE;
}

/* Words of x that are read at a time, for L2. More of them make packing the filter worth while. But where all of the
 * filter stays in L2, fewer words come back to it sooner, and the pixels made are still near when their other channels
 * are made. */
static int64_t room_for(const conv *v)
{
    if (!v->pairs && places_of(v) * v->words * v->f <= FILTERS)
        return 1 << 13;
    return v->pairs || places_of(v) > 1 ? 1 << 16 : 1 << 17;
}

static void set_chunks(conv *v, const tdi_call *call)
{
    v->pairs = call->in[0].dtype == TD_BFLOAT16;
    v->element = (int64_t)td_dtype_size(call->in[0].dtype);
    set_tile(v);
    v->words = v->c * v->element / (int64_t)sizeof(tdi_word);
    v->pixels = v->samples * v->grid_h * v->grid_w;
    v->chunk = tdi_rounded_up(tdi_share_of(v->pixels, tdi_most(room_for(v) / v->words, v->rows)), v->rows);
    v->whole = tdi_is_constant_input(call, 1) || v->chunk < v->pixels;
    v->span = v->whole ? places_of(v) : 1;
    int64_t fits = v->span > 1 ? v->f : FILTERS / v->c / v->wide * v->wide;
    v->group = tdi_most(tdi_least(fits, v->f), v->wide);
}

static conv forward_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *filter = &call->in[1].shape, *y = &call->out.shape;
    bool rows = call->split == TDI_ROWS, columns = call->split == TDI_COLUMNS;
    conv v = {.first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : x->dim[0],
              .h = x->dim[1],
              .w = x->dim[2],
              .c = x->dim[3],
              .y_h = y->dim[1],
              .y_w = y->dim[2],
              .filters = y->dim[3],
              .filter = columns ? call->begin : 0,
              .f = columns ? call->end - call->begin : y->dim[3],
              .grid_h = y->dim[1],
              .grid_w = y->dim[2],
              .apart_h = 1,
              .apart_w = 1,
              .kh = filter->dim[0],
              .kw = filter->dim[1],
              .stride_h = a->stride_h,
              .stride_w = a->stride_w,
              .dilation_h = a->dilation_h,
              .dilation_w = a->dilation_w,
              .top = tdi_conv2d_window_h(a, x, filter).before,
              .left = tdi_conv2d_window_w(a, x, filter).before,
              .activation = a->activation,
              .bias = call->n_in > 2 ? call->in[2].data : NULL};
    if (v.bias)
        v.bias += v.filter;
    set_chunks(&v, call);
    return v;
}

/* Describes the gradient of the input. With strides the filter has one place, and only every stride-th pixel of dx is
 * made. */
static conv back_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *dy = &call->in[0].shape, *filter = &call->in[1].shape, *dx = &call->out.shape;
    bool rows = call->split == TDI_ROWS, columns = call->split == TDI_COLUMNS;
    bool apart = a->stride_h > 1 || a->stride_w > 1;
    conv v = {.first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : dx->dim[0],
              .h = dy->dim[1],
              .w = dy->dim[2],
              .c = dy->dim[3],
              .y_h = dx->dim[1],
              .y_w = dx->dim[2],
              .filters = dx->dim[3],
              .filter = columns ? call->begin : 0,
              .f = columns ? call->end - call->begin : dx->dim[3],
              .grid_h = apart ? dy->dim[1] : dx->dim[1],
              .grid_w = apart ? dy->dim[2] : dx->dim[2],
              .apart_h = a->stride_h,
              .apart_w = a->stride_w,
              .kh = filter->dim[0],
              .kw = filter->dim[1],
              .stride_h = 1,
              .stride_w = 1,
              .dilation_h = a->dilation_h,
              .dilation_w = a->dilation_w,
              .activation = TD_LINEAR,
              .back = true};
    v.top = (v.kh - 1) * v.dilation_h - tdi_conv2d_window_h(a, dx, filter).before;
    v.left = (v.kw - 1) * v.dilation_w - tdi_conv2d_window_w(a, dx, filter).before;
    set_chunks(&v, call);
    return v;
}

/* ---- where x is read, and where y goes ---- */

/* Finds what place (i, j) of the filter reads for pixels [first, first + chunk): zeros behind the last pixel. */
static void find_seen(const conv *v, const tdi_word *x, int64_t i, int64_t j, int64_t first, const tdi_word *zeros,
                      const tdi_word **from)
{
    int64_t row = first / v->grid_w, column = first % v->grid_w;
    for (int64_t k = 0; k < v->chunk; row++, column = 0) {
        int64_t sample = row / v->grid_h, y = row % v->grid_h * v->stride_h + i * v->dilation_h - v->top;
        bool there = sample < v->samples && y >= 0 && y < v->h;
        const tdi_word *line = there ? x + ((v->first + sample) * v->h + y) * v->w * v->words : NULL;
        for (; column < v->grid_w && k < v->chunk; column++, k++) {
            int64_t at = column * v->stride_w + j * v->dilation_w - v->left;
            from[k] = line && at >= 0 && at < v->w ? line + at * v->words : zeros;
        }
    }
}

static void find_made(const conv *v, char *y, int64_t first, char **to)
{
    int64_t row = first / v->grid_w, column = first % v->grid_w, pixel = v->filters * v->element;
    for (int64_t k = 0; k < v->chunk; row++, column = 0) {
        int64_t sample = row / v->grid_h, down = row % v->grid_h * v->apart_h;
        char *line = sample < v->samples ? y + ((v->first + sample) * v->y_h + down) * v->y_w * pixel : NULL;
        for (; column < v->grid_w && k < v->chunk; column++, k++)
            to[k] = line ? line + column * v->apart_w * pixel + v->filter * v->element : NULL;
    }
}

/* ---- the filter ---- */

/* Where the packed span of filters from f on is; f begins a tile. */
static tdi_word *packed_from(const conv *v, const packed *p, int64_t f)
{
    return p->filter + (v->whole ? f : f % v->group) * v->span * v->words;
}

static int64_t group_from(const conv *v, int64_t f)
{
    return tdi_least(v->group, v->f - f);
}

/* Packs a tile's filters for one word of x. */
TDI_INLINE void pack_word(bool pairs, const conv *v, const float *from, tdi_word *to)
{
    for (int64_t i = 0; i < v->wide; i += SIDE)
        if (pairs)
            tdi_pair_floats(from + i, from + v->filters + i, to + i);
        else
            _mm512_storeu_ps(to + i, _mm512_loadu_ps(from + i));
}

/* Packs a group of filters, from f on, of filter [places][c][filters]: its span from a place on. */
TDI_INLINE void pack_rows(bool pairs, const conv *v, const float *filter, int64_t place, int64_t f, tdi_word *to)
{
    int64_t depth = v->span * v->words, rows = pairs ? 2 : 1, group = group_from(v, f);
    const float *from = filter + place * v->c * v->filters + v->filter + f;
    for (int64_t k = 0; k < depth; k++, from += rows * v->filters, to += v->wide)
        for (int64_t i = 0; i < group; i += v->wide)
            pack_word(pairs, v, from + i, to + i * depth);
}

/* Packs SIDE rows of a place going back: rows are what is made. */
TDI_INLINE void turn_rows(bool pairs, const conv *v, const float *from, tdi_word *to)
{
    for (int64_t c = 0; c < v->c; c += pairs ? 2 * SIDE : SIDE, to += SIDE * v->wide)
        if (pairs)
            tdi_turn_floats(from + c, v->c, to, v->wide);
        else
            tdi_transpose_square(from + c, v->c, (float *)(void *)to, v->wide);
}

/* The same going back: filter [places][filters][c], the last place first. */
TDI_INLINE void pack_turned(bool pairs, const conv *v, const float *filter, int64_t place, int64_t f, tdi_word *to)
{
    int64_t last = places_of(v) - 1 - place, group = group_from(v, f), block = v->words * v->wide;
    for (int64_t i = 0; i < group; i += SIDE)
        for (int64_t j = 0; j < v->span; j++)
            turn_rows(pairs, v, filter + ((last - j) * v->filters + v->filter + f + i) * v->c,
                      to + (i / v->wide * v->span + j) * block + i % v->wide);
}

static void pack_span(const conv *v, const float *filter, int64_t place, int64_t f, tdi_word *to)
{
    if (v->back && v->pairs)
        pack_turned(true, v, filter, place, f, to);
    else if (v->back)
        pack_turned(false, v, filter, place, f, to);
    else if (v->pairs)
        pack_rows(true, v, filter, place, f, to);
    else
        pack_rows(false, v, filter, place, f, to);
}

/* The memory to prefetch for the next span of the filter. */
static tdi_prefetch_region prefetch_of_span(const conv *v, const float *filter, int64_t place, int64_t f)
{
    place += v->span;
    if (place == places_of(v)) {
        place = 0;
        f += v->group;
    }
    int64_t group = f < v->f ? group_from(v, f) : 0, floats = TDI_LINE / (int64_t)sizeof *filter,
            size = v->c * v->filters;
    if (v->back)
        return tdi_prefetch_run(filter + (places_of(v) - 1 - place) * size + (v->filter + f) * v->c,
                                group * v->c * (int64_t)sizeof *filter);
    return (tdi_prefetch_region){.at = (const char *)(filter + place * size + v->filter + f),
                                 .step = v->filters * (int64_t)sizeof *filter,
                                 .count = v->c,
                                 .run_step = TDI_LINE,
                                 .runs = group / floats};
}

/* ---- multiplying ---- */

typedef struct product {
    const tdi_word *const *from, *filter;
    bool begins, ends; /* it has the first place; the last place */
    float *sums;       /* [rows][wide]: sums kept from one span to the next */
    char *const *to;
    int64_t f;
    tdi_prefetch_lines prefetch;
} product;

/* Adds the products of a span's places and all channels. */
TDI_INLINE void multiply(bool pairs, int vectors, const conv *v, product m, tdi_tile sums)
{
    const int wide = vectors * SIDE;
    for (int64_t place = 0; place < v->span; place++, m.from += v->chunk) {
        const tdi_word *x[ROWS];
        TDI_UNROLL_ALL
        for (int i = 0; i < rows_of(vectors); i++)
            x[i] = m.from[i];
        for (int64_t k = 0; k < v->words; k += TURN, m.filter += TURN * wide, m.prefetch.at += m.prefetch.step) {
            _mm_prefetch(m.prefetch.at, _MM_HINT_T1);
            TDI_UNROLL_ALL
            for (int t = 0; t < TURN; t++)
                tdi_add_step(pairs, rows_of(vectors), vectors, x, k + t, m.filter + t * wide, SIDE, sums);
        }
    }
}

TDI_INLINE void activate(int vectors, const conv *v, tdi_tile sums)
{
    const int rows = rows_of(vectors), wide = vectors * SIDE;
    float made[ROWS * VECTORS * SIDE];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            _mm512_storeu_ps(made + i * wide + j * SIDE, sums[i][j]);
    TDI_ISA_NAME(tdi_vector_loops).epilogue(rows, wide, wide, NULL, v->activation, made);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            sums[i][j] = _mm512_loadu_ps(made + i * wide + j * SIDE);
}

TDI_INLINE void put(bool pairs, int vectors, tdi_tile sums, char *const *to, int64_t offset)
{
    TDI_UNROLL_ALL
    for (int i = 0; i < rows_of(vectors); i++) {
        if (!to[i])
            continue;
        char *at = to[i] + offset;
        if (pairs)
            _mm512_storeu_si512(at, tdi_narrowed_two(sums[i][0], sums[i][1]));
        else {
            TDI_UNROLL_ALL
            for (int j = 0; j < vectors; j++)
                _mm512_storeu_ps(at + j * TDI_LINE, sums[i][j]);
        }
    }
}

/* Prefetches the floats that `put` will write, which it would have to wait for. */
TDI_INLINE void ask_for(int vectors, char *const *to, int64_t offset)
{
    TDI_UNROLL_ALL
    for (int i = 0; i < rows_of(vectors); i++) {
        if (!to[i])
            continue;
        TDI_UNROLL_ALL
        for (int j = 0; j < vectors; j++)
            _mm_prefetch(to[i] + offset + j * TDI_LINE, _MM_HINT_T0);
    }
}

/* Begins the sums with those of the places before, or with the bias. */
TDI_INLINE void begin(int vectors, const conv *v, const product *m, tdi_tile sums)
{
    TDI_UNROLL_ALL
    for (int i = 0; i < rows_of(vectors); i++) {
        TDI_UNROLL_ALL
        for (int j = 0; j < vectors; j++)
            sums[i][j] = !m->begins ? _mm512_loadu_ps(m->sums + (i * vectors + j) * SIDE)
                         : v->bias  ? _mm512_loadu_ps(v->bias + m->f + j * SIDE)
                                    : _mm512_setzero_ps();
    }
}

TDI_INLINE void keep(int vectors, const product *m, tdi_tile sums)
{
    TDI_UNROLL_ALL
    for (int i = 0; i < rows_of(vectors); i++) {
        TDI_UNROLL_ALL
        for (int j = 0; j < vectors; j++)
            _mm512_storeu_ps(m->sums + (i * vectors + j) * SIDE, sums[i][j]);
    }
}

TDI_INLINE void make(bool pairs, int vectors, const conv *v, const product *m)
{
    tdi_tile sums;
    begin(vectors, v, m, sums);
    if (m->ends && !pairs)
        ask_for(vectors, m->to, m->f * v->element);
    multiply(pairs, vectors, v, *m, sums);
    if (!m->ends) {
        keep(vectors, m, sums);
        return;
    }
    if (v->activation != TD_LINEAR)
        activate(vectors, v, sums);
    put(pairs, vectors, sums, m->to, m->f * v->element);
}

static void make_of_floats(const conv *v, const product *m)
{
    make(false, 2, v, m);
}

static void make_of_many_floats(const conv *v, const product *m)
{
    make(false, VECTORS, v, m);
}

static void make_of_pairs(const conv *v, const product *m)
{
    make(true, 2, v, m);
}

/* The function that makes a tile. */
static void (*maker_of(const conv *v))(const conv *, const product *)
{
    if (v->pairs)
        return make_of_pairs;
    return v->wide == VECTORS * SIDE ? make_of_many_floats : make_of_floats;
}

/* The memory of x to prefetch for the chunk that begins with pixel `first`. */
static tdi_prefetch_region prefetch_of_x(const conv *v, const tdi_call *call, int64_t first)
{
    int64_t count = tdi_least(v->chunk, v->pixels - first), seen = v->stride_h * v->stride_w * v->words;
    const tdi_word *x = (const tdi_word *)call->in[0].data + v->first * v->h * v->w * v->words;
    return tdi_prefetch_run(x + first * seen, count * seen * (int64_t)sizeof *x);
}

/* Adds a span's share to filters [f, f + group) of the chunk's `count` pixels. */
static void make_span(const conv *v, int64_t place, int64_t f, int64_t count, tdi_prefetch_region *prefetch,
                      const packed *p)
{
    product m = {.begins = place == 0, .ends = place + v->span == places_of(v)};
    float *sums = p->sums;
    void (*make_tile)(const conv *, const product *) = maker_of(v);
    for (int64_t end = f + group_from(v, f); f < end; f += v->wide, sums += v->chunk * v->wide)
        for (int64_t i = 0; i < count; i += v->rows) {
            m.from = p->from + place * v->chunk + i;
            m.filter = packed_from(v, p, f);
            m.sums = sums + i * v->wide;
            m.to = p->to + i;
            m.f = f;
            m.prefetch = tdi_next_prefetch(prefetch, PREFETCHES, v->span * v->words / TURN);
            make_tile(v, &m);
        }
}

static void make_chunk(const conv *v, const tdi_call *call, int64_t first, bool packs, const packed *p)
{
    int64_t count = tdi_least(v->chunk, v->pixels - first);
    tdi_prefetch_region prefetch[PREFETCHES] = {{0}, prefetch_of_x(v, call, first + count)};
    for (int64_t i = 0; i < v->kh; i++)
        for (int64_t j = 0; j < v->kw; j++)
            find_seen(v, call->in[0].data, i, j, first, p->zeros, p->from + (i * v->kw + j) * v->chunk);
    find_made(v, call->out.data, first, p->to);
    for (int64_t f = 0; f < v->f; f += v->group)
        for (int64_t place = 0; place < places_of(v); place += v->span) {
            if (packs) {
                pack_span(v, call->in[1].data, place, f, packed_from(v, p, f));
                prefetch[0] = prefetch_of_span(v, call->in[1].data, place, f);
            }
            make_span(v, place, f, count, prefetch, p);
        }
}

/* ---- the kernels ---- */

static int64_t filter_bytes(const conv *v, int64_t f)
{
    return v->span * v->words * f * (int64_t)sizeof(tdi_word);
}

/* Lays the scratch out and returns its size; `scratch` NULL: the size alone is wanted. */
static size_t lay_out(const conv *v, bool kept, char *scratch, packed *p)
{
    char *from, *to, *zeros, *filter, *sums;
    int64_t spans = v->span < places_of(v) ? v->group : 0;
    size_t used = tdi_take_room(&from, scratch, 0, places_of(v) * v->chunk * (int64_t)sizeof *p->from);
    used = tdi_take_room(&to, scratch, used, v->chunk * (int64_t)sizeof *p->to);
    used = tdi_take_room(&zeros, scratch, used, v->words * (int64_t)sizeof *p->zeros);
    used = tdi_take_room(&filter, scratch, used, kept ? 0 : filter_bytes(v, v->whole ? v->f : v->group));
    used = tdi_take_room(&sums, scratch, used, spans * v->chunk * (int64_t)sizeof *p->sums);
    *p = (packed){(const tdi_word **)(void *)from, (char **)(void *)to, (tdi_word *)(void *)zeros,
                  (tdi_word *)(void *)filter, (float *)(void *)sums};
    return used;
}

static void run(conv *v, const tdi_call *call)
{
    packed p;
    lay_out(v, call->packed_cache, call->scratch, &p);
    if (call->packed_cache)
        p.filter = tdi_packed_cache(call);
    memset(p.zeros, 0, (size_t)v->words * sizeof *p.zeros);
    bool packs = tdi_must_pack(call);
    for (int64_t first = 0; first < v->pixels; first += v->chunk)
        make_chunk(v, call, first, packs && first == 0, &p);
}

static const char *declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *filter = &call->in[1].shape;
    bool pairs = call->in[0].dtype == TD_BFLOAT16;
    if (pairs && !tdi_pairs_work())
        return "no AVX512-BF16";
    if (pairs && tdi_amx_works())
        return "AMX multiplies more at a time";
    if (call->in[1].dtype != TD_FLOAT32 || call->out.dtype != call->in[0].dtype)
        return "operands of different types";
    if (a->groups > 1)
        return "groups";
    return filter->dim[2] % LEAST || filter->dim[3] % LEAST ? "channels in other than multiples of 32" : NULL;
}

static const char *back_declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *filter = &call->in[1].shape;
    bool point = filter->dim[0] == 1 && filter->dim[1] == 1;
    bool zeros = a->sides.top || a->sides.bottom || a->sides.left || a->sides.right;
    const char *why = declines(call);
    return why ? why : (a->stride_h > 1 || a->stride_w > 1) && (!point || zeros) ? "strides" : NULL;
}

/* Not sure in float32: Winograd's method or oneDNN may be faster. */
static tdi_confidence direct_confidence(const tdi_call *call)
{
    return call->in[0].dtype == TD_BFLOAT16 ? TDI_SURE : TDI_LIKELY;
}

static size_t bytes_to_keep(const tdi_call *call, const conv *v)
{
    return tdi_is_constant_input(call, 1) ? (size_t)filter_bytes(v, v->f) : 0;
}

static td_status prepare(const tdi_call *call, const conv *v, size_t *scratch, tdi_error *error)
{
    packed p;
    *scratch = lay_out(v, tdi_is_constant_input(call, 1), NULL, &p);
    return v->f % LEAST ? tdi_fail(error, TD_UNSUPPORTED, "filters in other than multiples of 32") : TD_OK;
}

static td_status conv2d_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv v = forward_of(call);
    return prepare(call, &v, scratch, error);
}

static size_t conv2d_packed_cache_bytes(const tdi_call *call)
{
    conv v = forward_of(call);
    return bytes_to_keep(call, &v);
}

static void conv2d_run(const tdi_call *call)
{
    conv v = forward_of(call);
    run(&v, call);
}

static td_status back_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv v = back_of(call);
    return prepare(call, &v, scratch, error);
}

static size_t back_packed_cache_bytes(const tdi_call *call)
{
    conv v = back_of(call);
    return bytes_to_keep(call, &v);
}

/* Clears dx, also where no pixel goes. */
static void clear_made(const conv *v, char *y)
{
    int64_t image = v->y_h * v->y_w, pixel = v->filters * v->element;
    y += v->first * image * pixel + v->filter * v->element;
    for (int64_t i = 0; i < v->samples * image; i++, y += pixel)
        memset(y, 0, (size_t)(v->f * v->element));
}

static void back_run(const tdi_call *call)
{
    conv v = back_of(call);
    if (v.apart_h > 1 || v.apart_w > 1)
        clear_made(&v, call->out.data);
    run(&v, call);
}

#else

static const char *declines(const tdi_call *call)
{
    (void)call;
    return "no AVX-512";
}
#define back_declines             declines
#define direct_confidence         NULL
#define conv2d_prepare            NULL
#define conv2d_packed_cache_bytes NULL
#define conv2d_run                NULL
#define back_prepare              NULL
#define back_packed_cache_bytes   NULL
#define back_run                  NULL

#endif

const tdi_kernel TDI_ISA_NAME(tdi_cpu_direct_conv2d) = {.name = TDI_ISA_TEXT " direct conv2d",
                                                        .op = &tdi_op_conv2d,
                                                        .takes = TDI_TAKES_BOTH,
                                                        .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                                        .declines = declines,
                                                        .confidence = direct_confidence,
                                                        .prepare = conv2d_prepare,
                                                        .packed_cache_bytes = conv2d_packed_cache_bytes,
                                                        .run = conv2d_run};

const tdi_kernel TDI_ISA_NAME(tdi_cpu_direct_conv2d_grad_input) = {.name = TDI_ISA_TEXT " direct conv2d_grad_input",
                                                                   .op = &tdi_op_conv2d_grad_input,
                                                                   .takes = TDI_TAKES_BOTH,
                                                                   .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                                                   .declines = back_declines,
                                                                   .confidence = direct_confidence,
                                                                   .prepare = back_prepare,
                                                                   .packed_cache_bytes = back_packed_cache_bytes,
                                                                   .run = back_run};
