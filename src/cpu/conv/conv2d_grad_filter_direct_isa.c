/* conv2d_grad_filter_direct_isa.c - the gradient of a convolution's filter of many channels by AVX-512, of bfloat16
 * values by AVX512-BF16: x^T . dy for each place of the filter, [c, pixels] . [pixels, f] over the pixels of all
 * samples' dy.
 *
 * bfloat16 values are multiplied in pairs of pixels. For some hundred pixels at a time dy is packed once, and x once
 * for each place of the filter, as that place reads it; only the zeros of x outside of an image are multiplied in
 * vain. So many channels are packed at a time as L2 holds beside the filter's share, and the next pixels are
 * prefetched while these are multiplied. */
#include "cpu/bfloat16_isa.h"
#include "cpu/kernels.h"

#if defined(__AVX512BW__)

#include "cpu/amx.h"
#include "cpu/conv/pair_products_isa.h"

enum {
    SIDE = TDI_SIDE,
    VECTORS = TDI_TILE_VECTORS, /* vectors of dy of a tile, at most */
    TURN = 2,                   /* steps in a turn of a tile's loop */
    LEAST = 2 * SIDE,           /* channels of x, and of dy, at least */
    STEPS = 136,                /* pixels, or pairs of them, that are packed at a time */
    FEWER_STEPS = 72,           /* where tiles have four vectors of dy, which shall stay in L1 */
    MORE_STEPS = 200,           /* for filters with places of LARGE size, whose sums come from L2 or beyond each time */
    LARGE = 1 << 15,
    GROUP_OF_X = 256, /* channels that are packed at a time */
    GROUP_OF_DY = 256,
    PREFETCHES = 2,
};

/* x [samples, h, w, c], dy [samples, oh, ow, f] */
typedef struct conv {
    int64_t samples, h, w, c, oh, ow, f, kh, kw;
    int64_t begin, end; /* this call makes filters [begin, end) */
    int64_t stride_h, stride_w, dilation_h, dilation_w;
    int64_t top, left;    /* zeros above and left of x that the first place reads */
    int64_t element;      /* bytes of a channel of x and of dy */
    int64_t step, pixels; /* pixels in a word; pixels of dy */
    int64_t chunk;        /* steps that are packed at a time, a multiple of TURN */
    int64_t wide;         /* channels of dy in a tile */
    bool pairs;           /* words are pairs of bfloat16 values */
} conv;

typedef struct packed {
    const char **at;                          /* [chunk * step] pixels */
    char *zeros;                              /* a pixel's worth, of x or of dy */
    tdi_word *x, *dy;                         /* [group / SIDE][chunk][SIDE] */
    tdi_prefetch_region prefetch[PREFETCHES]; /* prefetches of the next pixels of dy and x */
} packed;

static int64_t steps_of(const conv *v)
{
    if (v->wide == VECTORS * SIDE)
        return FEWER_STEPS;
    return v->c * v->f > LARGE ? MORE_STEPS : STEPS;
}

static conv conv_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *dy = &call->in[1].shape, *filter = &call->out.shape;
    bool columns = call->split == TDI_COLUMNS;
    conv v = {.samples = x->dim[0],
              .h = x->dim[1],
              .w = x->dim[2],
              .c = x->dim[3],
              .oh = dy->dim[1],
              .ow = dy->dim[2],
              .f = dy->dim[3],
              .begin = columns ? call->begin : 0,
              .end = columns ? call->end : dy->dim[3],
              .kh = filter->dim[0],
              .kw = filter->dim[1],
              .stride_h = a->stride_h,
              .stride_w = a->stride_w,
              .dilation_h = a->dilation_h,
              .dilation_w = a->dilation_w,
              .top = tdi_conv2d_window_h(a, x, filter).before,
              .left = tdi_conv2d_window_w(a, x, filter).before};
    v.pairs = call->in[0].dtype == TD_BFLOAT16;
    v.element = (int64_t)td_dtype_size(call->in[0].dtype);
    v.step = v.pairs ? 2 : 1;
    v.wide = v.pairs || (v.end - v.begin) % (VECTORS * SIDE) ? 2 * SIDE : VECTORS * SIDE;
    v.pixels = v.samples * v.oh * v.ow;
    v.chunk = tdi_rounded_up(tdi_share_of((v.pixels + v.step - 1) / v.step, steps_of(&v)), TURN);
    return v;
}

/* ---- packing ---- */

/* Finds pixels [first, first + count) of dy. */
static void find_dy(const conv *v, const char *dy, int64_t first, int64_t count, const packed *p)
{
    for (int64_t i = 0; i < count; i++)
        p->at[i] = dy + (first + i) * v->f * v->element;
}

/* Finds what place (i, j) of the filter reads of x for those pixels. */
static void find_x(const conv *v, const char *x, int64_t i, int64_t j, int64_t first, int64_t count, const packed *p)
{
    int64_t row = first / v->ow, column = first % v->ow, pixel = v->c * v->element;
    for (int64_t k = 0; k < count; row++, column = 0) {
        int64_t y = row % v->oh * v->stride_h + i * v->dilation_h - v->top;
        const char *line = y >= 0 && y < v->h ? x + (row / v->oh * v->h + y) * v->w * pixel : NULL;
        for (; column < v->ow && k < count; column++, k++) {
            int64_t at = column * v->stride_w + j * v->dilation_w - v->left;
            p->at[k] = line && at >= 0 && at < v->w ? line + at * pixel : p->zeros;
        }
    }
}

static void pack_floats(const packed *p, int64_t begin, int64_t channels, int64_t panel, int64_t pixels, tdi_word *to)
{
    for (int64_t k = 0; k < pixels; k++, to += SIDE) {
        const float *from = (const float *)(const void *)p->at[k] + begin;
        for (int64_t c = 0; c < channels; c += SIDE)
            _mm512_storeu_ps(to + c / SIDE * panel, _mm512_loadu_ps(from + c));
    }
}

static void pack_pairs(const packed *p, int64_t begin, int64_t channels, int64_t panel, int64_t pixels, tdi_word *to)
{
    for (int64_t k = 0; k < pixels; k += 2, to += SIDE) {
        const tdi_bfloat16 *first = (const tdi_bfloat16 *)(const void *)p->at[k] + begin;
        const tdi_bfloat16 *second = (const tdi_bfloat16 *)(const void *)p->at[k + 1] + begin;
        tdi_word *at = to;
        for (int64_t c = 0; c < channels; c += 2 * SIDE, at += 2 * panel)
            tdi_pair_up(first + c, second + c, at, at + panel);
    }
}

static int64_t steps_from(const conv *v, int64_t count)
{
    return tdi_rounded_up((count + v->step - 1) / v->step, TURN);
}

/* Packs channels [begin, begin + channels) of `count` pixels, with zeros behind them up to whole steps and turns. */
static void pack(const conv *v, const packed *p, int64_t begin, int64_t channels, int64_t count, tdi_word *to)
{
    int64_t pixels = steps_from(v, count) * v->step;
    for (int64_t k = count; k < pixels; k++)
        p->at[k] = p->zeros;
    (v->pairs ? pack_pairs : pack_floats)(p, begin, channels, SIDE * v->chunk, pixels, to);
}

/* ---- multiplying ---- */

typedef struct product {
    const tdi_word *x, *dy;
    int64_t panel; /* words from SIDE channels of dy to the next */
    int64_t steps;
    int64_t row; /* floats of a row of the filter */
    bool adds;   /* adds to what is there */
    tdi_prefetch_lines prefetch;
} product;

/* Clears a tile's sums and prefetches its rows of the filter, which storing, too, would have to wait for. */
TDI_INLINE void begin(int rows, int vectors, const product *m, const float *to, tdi_tile sums)
{
    TDI_UNROLL_ALL
    for (int i = 0; i < rows; i++) {
        TDI_UNROLL_ALL
        for (int j = 0; j < vectors; j++) {
            sums[i][j] = _mm512_setzero_ps();
            _mm_prefetch((const char *)(to + i * m->row + j * SIDE), _MM_HINT_T0);
        }
    }
}

/* Makes a tile: stores `rows` rows of the filter, or adds to them. */
TDI_INLINE void multiply(bool pairs, int rows, int vectors, product m, float *to)
{
    tdi_tile sums;
    begin(rows, vectors, &m, to, sums);
    for (int64_t k = 0; k < m.steps;
         k += TURN, m.x += TURN * SIDE, m.dy += TURN * SIDE, m.prefetch.at += m.prefetch.step) {
        _mm_prefetch(m.prefetch.at, _MM_HINT_T1);
        const tdi_word *x[TDI_TILE_ROWS];
        TDI_UNROLL_ALL
        for (int i = 0; i < rows; i++)
            x[i] = m.x + i;
        TDI_UNROLL_ALL
        for (int t = 0; t < TURN; t++)
            tdi_add_step(pairs, rows, vectors, x, t * SIDE, m.dy + t * SIDE, m.panel, sums);
    }
    TDI_UNROLL_ALL
    for (int i = 0; i < rows; i++, to += m.row) {
        TDI_UNROLL_ALL
        for (int j = 0; j < vectors; j++) {
            float *at = to + j * SIDE;
            _mm512_storeu_ps(at, m.adds ? _mm512_add_ps(_mm512_loadu_ps(at), sums[i][j]) : sums[i][j]);
        }
    }
}

static void six_by_four(product m, float *to)
{
    multiply(false, 6, 4, m, to);
}

static void four_by_four(product m, float *to)
{
    multiply(false, 4, 4, m, to);
}

static void eight_by_two(product m, float *to)
{
    multiply(false, 8, 2, m, to);
}

static void eight_by_two_of_pairs(product m, float *to)
{
    multiply(true, 8, 2, m, to);
}

typedef struct tile {
    int64_t rows;
    void (*multiply)(product, float *);
} tile;

/* The tiles that make up SIDE channels of x. */
static const tile of_floats[] = {{6, six_by_four}, {6, six_by_four}, {4, four_by_four}},
                  of_few_floats[] = {{8, eight_by_two}, {8, eight_by_two}},
                  of_pairs[] = {{8, eight_by_two_of_pairs}, {8, eight_by_two_of_pairs}};

static const tile *tiles_of(const conv *v)
{
    if (v->pairs)
        return of_pairs;
    return v->wide == VECTORS * SIDE ? of_floats : of_few_floats;
}

/* Multiplies the packed channels of x by those of dy. */
static void multiply_groups(const conv *v, packed *p, int64_t channels, int64_t filters, product m, float *to)
{
    const tile *tiles = tiles_of(v);
    for (int64_t f = 0; f < filters; f += v->wide)
        for (int64_t c = 0, i = 0; c < channels; c += tiles[i].rows, i = c % SIDE ? i + 1 : 0) {
            m.x = p->x + c / SIDE * SIDE * v->chunk + c % SIDE;
            m.dy = p->dy + f / SIDE * m.panel;
            m.prefetch = tdi_next_prefetch(p->prefetch, PREFETCHES, m.steps / TURN);
            tiles[i].multiply(m, to + c * v->f + f);
        }
}

/* ---- the kernel ---- */

static const char *declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *filter = &call->out.shape;
    bool pairs = call->in[0].dtype == TD_BFLOAT16;
    if (pairs && !tdi_pairs_work())
        return "no AVX512-BF16";
    if (pairs && tdi_amx_works())
        return "AMX multiplies more at a time";
    if (call->in[0].dtype != call->in[1].dtype)
        return "operands of different types";
    if (a->groups > 1)
        return "groups";
    return filter->dim[2] % LEAST || filter->dim[3] % LEAST ? "channels in other than multiples of 32" : NULL;
}

/* Lays the scratch out and returns its size; `scratch` NULL: the size alone is wanted. */
static size_t lay_out(const conv *v, char *scratch, packed *p)
{
    char *at, *x, *dy;
    size_t used = tdi_take_room(&at, scratch, 0, v->chunk * v->step * (int64_t)sizeof *p->at);
    used = tdi_take_room(&p->zeros, scratch, used, tdi_most(v->c, v->f) * v->element);
    used = tdi_take_room(&x, scratch, used, tdi_least(v->c, GROUP_OF_X) * v->chunk * (int64_t)sizeof *p->x);
    used = tdi_take_room(&dy, scratch, used, tdi_least(v->f, GROUP_OF_DY) * v->chunk * (int64_t)sizeof *p->dy);
    p->at = (const char **)(void *)at;
    p->x = (tdi_word *)(void *)x;
    p->dy = (tdi_word *)(void *)dy;
    return used;
}

static td_status filter_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv v = conv_of(call);
    packed p;
    *scratch = lay_out(&v, NULL, &p);
    return (v.end - v.begin) % LEAST ? tdi_fail(error, TD_UNSUPPORTED, "filters in other than multiples of 32") : TD_OK;
}

/* Makes place (i, j) of the filter from `count` pixels, for the packed channels of dy, `filters` from f on. */
static void make_place(const conv *v, const tdi_call *call, packed *p, int64_t i, int64_t j, int64_t first,
                       int64_t count, int64_t f, int64_t filters)
{
    float *place = (float *)call->out.data + (i * v->kw + j) * v->c * v->f + f;
    product m = {.panel = SIDE * v->chunk, .steps = steps_from(v, count), .row = v->f, .adds = first > 0};
    find_x(v, call->in[0].data, i, j, first, count, p);
    for (int64_t c = 0; c < v->c; c += GROUP_OF_X) {
        int64_t channels = tdi_least(GROUP_OF_X, v->c - c);
        pack(v, p, c, channels, count, p->x);
        multiply_groups(v, p, channels, filters, m, place + c * v->f);
    }
}

/* Prepares the prefetches for the chunk that begins with pixel `first`. */
static void prefetch_pixels(const conv *v, const tdi_call *call, int64_t first, packed *p)
{
    int64_t count = tdi_least(v->chunk * v->step, v->pixels - first);
    int64_t of_dy = v->f * v->element, of_x = v->stride_h * v->stride_w * v->c * v->element;
    p->prefetch[0] = tdi_prefetch_run((const char *)call->in[1].data + first * of_dy, count * of_dy);
    p->prefetch[1] = tdi_prefetch_run((const char *)call->in[0].data + first * of_x, count * of_x);
}

static void make_chunk(const conv *v, const tdi_call *call, packed *p, int64_t first, int64_t count)
{
    prefetch_pixels(v, call, first + count, p);
    for (int64_t f = v->begin; f < v->end; f += GROUP_OF_DY) {
        int64_t filters = tdi_least(GROUP_OF_DY, v->end - f);
        find_dy(v, call->in[1].data, first, count, p);
        pack(v, p, f, filters, count, p->dy);
        for (int64_t i = 0; i < v->kh; i++)
            for (int64_t j = 0; j < v->kw; j++)
                make_place(v, call, p, i, j, first, count, f, filters);
    }
}

static void filter_run(const tdi_call *call)
{
    conv v = conv_of(call);
    packed p;
    lay_out(&v, call->scratch, &p);
    memset(p.zeros, 0, (size_t)(tdi_most(v.c, v.f) * v.element));
    for (int64_t first = 0; first < v.pixels; first += v.chunk * v.step)
        make_chunk(&v, call, &p, first, tdi_least(v.chunk * v.step, v.pixels - first));
}

/* Not sure in float32: Winograd's method or oneDNN may be faster. */
static tdi_confidence filter_confidence(const tdi_call *call)
{
    return call->in[0].dtype == TD_BFLOAT16 ? TDI_SURE : TDI_LIKELY;
}

#else

static const char *declines(const tdi_call *call)
{
    (void)call;
    return "no AVX-512";
}
#define filter_prepare    NULL
#define filter_run        NULL
#define filter_confidence NULL

#endif

const tdi_kernel TDI_ISA_NAME(tdi_cpu_direct_conv2d_grad_filter) = {.name = TDI_ISA_TEXT " direct conv2d_grad_filter",
                                                                    .op = &tdi_op_conv2d_grad_filter,
                                                                    .takes = TDI_TAKES_BOTH,
                                                                    .splits = TDI_CAN_COLUMNS,
                                                                    .declines = declines,
                                                                    .confidence = filter_confidence,
                                                                    .prepare = filter_prepare,
                                                                    .run = filter_run};
