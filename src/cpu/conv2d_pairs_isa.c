/* conv2d_pairs_isa.c - convolutions of bfloat16 values, and the gradients of their inputs, by AVX512-BF16.
 *
 * Images are read where they lie: of some hundred pixels that are made a table says where each place of the filter sees
 * what it multiplies, outside of an image zeros. A pair of channels of each of TDI_PAIR_ROWS pixels meets two vectors
 * of filters, whose sums stay in registers over all places and channels, so that their bits do not depend on the share.
 * The filter is rounded and packed in pairs of channels once a call, or once for weights that nothing changes.
 *
 * The gradient of an input is the convolution of dy with the filter turned round, its sides swapped; where a filter of
 * one place has strides, its pixels are set apart.
 *
 * Zeros around an image are multiplied like its pixels: by an infinite weight they give NaN, where the definition takes
 * no notice of them. */
#include "cpu/kernels.h"
#include "cpu/narrow_isa.h"

#if defined(__AVX512BW__)

#include "cpu/pairs_isa.h"
#include "cpu/tiles.h"

enum {
    ROWS = TDI_PAIR_ROWS,
    SIDE = TDI_PAIR_SIDE,
    WIDE = 2 * SIDE,   /* channels that are made at a time */
    ROOM = 1 << 17,    /* bfloat16s of x that are seen at a time, for L2 */
    FILTERS = 1 << 17, /* floats of the filter that are packed at a time, likewise */
    AHEAD = 2,
    KEPT = 1 << 20, /* bytes of y that the caches still have when the next op reads them */
};

/* x [samples, h, w, c] -> y [samples, y_h, y_w, f], of which pixels of a grid are made; or from dy to dx, which then
 * have these names. */
typedef struct conv {
    int64_t first, samples, h, w, c, y_h, y_w, f;
    int64_t grid_h, grid_w, apart_h, apart_w; /* made of an image, so far from each other in y */
    int64_t kh, kw, stride_h, stride_w, dilation_h, dilation_w;
    int64_t top, left;     /* zeros above and beside x that the first place sees */
    int64_t pixels, chunk; /* made; at a time, a multiple of ROWS */
    int64_t group;         /* filters packed at a time, a multiple of WIDE */
    bool whole;            /* all are packed before they are packed again */
    int activation;
    const float *bias; /* [f], or NULL */
    bool back;         /* the filter is turned, and makes its third axis */
    bool streams;      /* y goes past the caches, which would first read what is there */
} conv;

typedef struct packed {
    const tdi_bfloat16 **from;    /* [places][chunk] */
    tdi_bfloat16 **to;            /* [chunk], NULL: not of y */
    tdi_bfloat16 *zeros, *filter; /* [f / WIDE][places][c / 2][WIDE] pairs */
} packed;

/* ---- shapes ---- */

static int64_t places_of(const conv *v)
{
    return v->kh * v->kw;
}

static void set_chunks(conv *v, bool keeps)
{
    v->pixels = v->samples * v->grid_h * v->grid_w;
    int64_t most = tdi_most(ROOM / v->c, ROWS), chunks = (v->pixels + most - 1) / most;
    v->chunk = tdi_rounded_up((v->pixels + chunks - 1) / chunks, ROWS);
    int64_t fits = places_of(v) > 1 ? v->f : FILTERS / v->c / WIDE * WIDE;
    v->group = tdi_most(tdi_least(fits, v->f), WIDE);
    v->whole = keeps || v->chunk < v->pixels;
    v->streams = v->samples * v->y_h * v->y_w * v->f * (int64_t)sizeof(tdi_bfloat16) > KEPT;
}

static conv forward_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *filter = &call->in[1].shape, *y = &call->out.shape;
    bool rows = call->split == TDI_ROWS;
    conv v = {.first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : x->dim[0],
              .h = x->dim[1],
              .w = x->dim[2],
              .c = x->dim[3],
              .y_h = y->dim[1],
              .y_w = y->dim[2],
              .f = y->dim[3],
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
    set_chunks(&v, tdi_is_steady(call, 1));
    return v;
}

/* With strides the filter has one place, and only every so-and-so-many pixel of dx is made. */
static conv back_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *dy = &call->in[0].shape, *filter = &call->in[1].shape, *dx = &call->out.shape;
    bool rows = call->split == TDI_ROWS, apart = a->stride_h > 1 || a->stride_w > 1;
    conv v = {.first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : dx->dim[0],
              .h = dy->dim[1],
              .w = dy->dim[2],
              .c = dy->dim[3],
              .y_h = dx->dim[1],
              .y_w = dx->dim[2],
              .f = dx->dim[3],
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
    set_chunks(&v, tdi_is_steady(call, 1));
    return v;
}

/* ---- where x is seen, and y goes ---- */

/* What place (i, j) of the filter sees from the pixels [first, first + chunk); zeros behind the last. */
static void find_seen(const conv *v, const tdi_bfloat16 *x, int64_t i, int64_t j, int64_t first,
                      const tdi_bfloat16 *zeros, const tdi_bfloat16 **from)
{
    int64_t row = first / v->grid_w, column = first % v->grid_w;
    for (int64_t k = 0; k < v->chunk; row++, column = 0) {
        int64_t sample = row / v->grid_h, y = row % v->grid_h * v->stride_h + i * v->dilation_h - v->top;
        bool there = sample < v->samples && y >= 0 && y < v->h;
        const tdi_bfloat16 *line = there ? x + ((v->first + sample) * v->h + y) * v->w * v->c : NULL;
        for (; column < v->grid_w && k < v->chunk; column++, k++) {
            int64_t at = column * v->stride_w + j * v->dilation_w - v->left;
            from[k] = line && at >= 0 && at < v->w ? line + at * v->c : zeros;
        }
    }
}

static void find_made(const conv *v, tdi_bfloat16 *y, int64_t first, tdi_bfloat16 **to)
{
    int64_t row = first / v->grid_w, column = first % v->grid_w;
    for (int64_t k = 0; k < v->chunk; row++, column = 0) {
        int64_t sample = row / v->grid_h, down = row % v->grid_h * v->apart_h;
        tdi_bfloat16 *line = sample < v->samples ? y + ((v->first + sample) * v->y_h + down) * v->y_w * v->f : NULL;
        for (; column < v->grid_w && k < v->chunk; column++, k++)
            to[k] = line ? line + column * v->apart_w * v->f : NULL;
    }
}

/* ---- the filter ---- */

/* Filters from f on, which begins a block of WIDE: all are packed where they are read again. */
static tdi_bfloat16 *packed_from(const conv *v, const packed *p, int64_t f)
{
    return p->filter + (v->whole ? f : f % v->group) * places_of(v) * v->c;
}

static int64_t group_from(const conv *v, int64_t f)
{
    return tdi_least(v->group, v->f - f);
}

/* Of filter [places][c][f] the filters [f, f + group). */
TDI_PAIRS static void pack_forward(const conv *v, const float *filter, int64_t f, tdi_bfloat16 *to)
{
    int64_t depth = places_of(v) * v->c;
    for (int64_t k = 0; k < depth; k += 2, to += 2 * WIDE) {
        const float *first = filter + k * v->f + f, *second = first + v->f;
        for (int64_t i = 0; i < group_from(v, f); i += WIDE) {
            tdi_pair_floats(first + i, second + i, to + i * depth);
            tdi_pair_floats(first + i + SIDE, second + i + SIDE, to + i * depth + WIDE);
        }
    }
}

/* Of filter [places, the last one first][f][c]: x and y have changed places. */
static void pack_back(const conv *v, const float *filter, int64_t f, tdi_bfloat16 *to)
{
    int64_t places = places_of(v), depth = places * v->c;
    for (int64_t i = 0; i < group_from(v, f); i += SIDE)
        for (int64_t place = 0; place < places; place++) {
            const float *from = filter + ((places - 1 - place) * v->f + f + i) * v->c;
            tdi_bfloat16 *at = to + i / WIDE * WIDE * depth + place * v->c * WIDE + i % WIDE * 2;
            for (int64_t c = 0; c < v->c; c += WIDE)
                tdi_turn_floats(from + c, v->c, at + c * WIDE, 2 * WIDE);
        }
}

/* What of the filter the next group will be packed of. */
static tdi_ahead group_ahead(const conv *v, const float *filter, int64_t f)
{
    int64_t group = f < v->f ? group_from(v, f) : 0, floats = TDI_LINE / (int64_t)sizeof *filter;
    if (v->back)
        return (tdi_ahead){.at = (const char *)(filter + f * v->c),
                           .step = TDI_LINE,
                           .count = group * v->c / floats,
                           .run_step = v->c * v->f * (int64_t)sizeof *filter,
                           .runs = group ? places_of(v) : 0};
    return (tdi_ahead){.at = (const char *)(filter + f),
                       .step = v->f * (int64_t)sizeof *filter,
                       .count = places_of(v) * v->c,
                       .run_step = TDI_LINE,
                       .runs = group / floats};
}

/* ---- multiplying ---- */

/* Adds all places and channels of ROWS pixels to sums of WIDE channels. */
TDI_PAIRS TDI_INLINE void multiply(const conv *v, const tdi_bfloat16 *const *from, const tdi_bfloat16 *filter,
                                   tdi_lines ahead, __m512 sums[ROWS][2])
{
    for (int64_t place = 0; place < places_of(v); place++, from += v->chunk) {
        const tdi_bfloat16 *x[ROWS];
        TDI_UNROLL
        for (int i = 0; i < ROWS; i++)
            x[i] = from[i];
        for (int64_t c = 0; c < v->c; c += 2, filter += 2 * WIDE, ahead.at += ahead.step) {
            _mm_prefetch(ahead.at, _MM_HINT_T1);
            __m512bh low = (__m512bh)_mm512_loadu_si512(filter), high = (__m512bh)_mm512_loadu_si512(filter + WIDE);
            TDI_UNROLL
            for (int i = 0; i < ROWS; i++) {
                int32_t pair;
                memcpy(&pair, x[i] + c, sizeof pair);
                __m512bh all = (__m512bh)_mm512_set1_epi32(pair);
                sums[i][0] = _mm512_dpbf16_ps(sums[i][0], all, low);
                sums[i][1] = _mm512_dpbf16_ps(sums[i][1], all, high);
            }
        }
    }
}

/* Of ROWS pixels. */
static void activate(const conv *v, __m512 sums[ROWS][2])
{
    float made[ROWS][2][SIDE];
    memcpy(made, sums, sizeof made);
    TDI_ISA_NAME(tdi_loops).epilogue(ROWS, WIDE, WIDE, NULL, v->activation, made[0][0]);
    memcpy(sums, made, sizeof made);
}

TDI_PAIRS TDI_INLINE void put(bool streams, __m512 sums[ROWS][2], tdi_bfloat16 *const *to, int64_t f)
{
    TDI_UNROLL
    for (int i = 0; i < ROWS; i++) {
        __m512i row = (__m512i)_mm512_cvtne2ps_pbh(sums[i][1], sums[i][0]);
        if (to[i] && streams)
            _mm512_stream_si512((__m512i *)(void *)(to[i] + f), row);
        else if (to[i])
            _mm512_storeu_si512(to[i] + f, row);
    }
}

/* WIDE channels of ROWS pixels. */
TDI_PAIRS static void make(const conv *v, const tdi_bfloat16 *const *from, const tdi_bfloat16 *filter, int64_t f,
                           tdi_lines ahead, tdi_bfloat16 *const *to)
{
    __m512 low = v->bias ? _mm512_loadu_ps(v->bias + f) : _mm512_setzero_ps();
    __m512 high = v->bias ? _mm512_loadu_ps(v->bias + f + SIDE) : _mm512_setzero_ps();
    __m512 sums[ROWS][2];
    TDI_UNROLL
    for (int i = 0; i < ROWS; i++) {
        sums[i][0] = low;
        sums[i][1] = high;
    }
    multiply(v, from, filter, ahead, sums);
    if (v->activation != TD_LINEAR)
        activate(v, sums);
    if (v->streams)
        put(true, sums, to, f);
    else
        put(false, sums, to, f);
}

/* Of x, for the chunk that begins with that pixel. */
static tdi_ahead x_ahead(const conv *v, const tdi_call *call, int64_t first)
{
    int64_t count = tdi_least(v->chunk, v->pixels - first), pixel = v->stride_h * v->stride_w * v->c * 2;
    const char *x = (const char *)call->in[0].data + v->first * v->h * v->w * v->c * 2;
    return tdi_ahead_of(x + first * pixel, count * pixel);
}

/* Filters [f, f + group) of the chunk's `count` pixels. */
static void make_group(const conv *v, int64_t f, int64_t count, tdi_ahead *ahead, const packed *p)
{
    int64_t depth = places_of(v) * v->c;
    for (int64_t end = f + group_from(v, f); f < end; f += WIDE)
        for (int64_t i = 0; i < count; i += ROWS)
            make(v, p->from + i, packed_from(v, p, f), f, tdi_take_ahead(ahead, AHEAD, depth / 2), p->to + i);
}

static void make_chunk(const conv *v, const tdi_call *call, int64_t first, bool packs, const packed *p)
{
    int64_t count = tdi_least(v->chunk, v->pixels - first);
    tdi_ahead ahead[AHEAD] = {{0}, x_ahead(v, call, first + count)};
    for (int64_t i = 0; i < v->kh; i++)
        for (int64_t j = 0; j < v->kw; j++)
            find_seen(v, call->in[0].data, i, j, first, p->zeros, p->from + (i * v->kw + j) * v->chunk);
    find_made(v, call->out.data, first, p->to);
    for (int64_t f = 0; f < v->f; f += v->group) {
        if (packs) {
            (v->back ? pack_back : pack_forward)(v, call->in[1].data, f, packed_from(v, p, f));
            ahead[0] = group_ahead(v, call->in[1].data, f + v->group);
        }
        make_group(v, f, count, ahead, p);
    }
}

/* ---- the kernels ---- */

static int64_t filter_bytes(const conv *v, int64_t f)
{
    return places_of(v) * v->c * f * (int64_t)sizeof(tdi_bfloat16);
}

static size_t room(char **at, char *base, size_t used, int64_t bytes)
{
    *at = base ? base + used : NULL;
    return used + (size_t)tdi_rounded_up(bytes, TDI_LINE);
}

/* In scratch, NULL: none is there yet. Returns its size. */
static size_t lay_out(const conv *v, bool kept, char *scratch, packed *p)
{
    char *from, *to, *zeros, *filter;
    size_t used = room(&from, scratch, 0, places_of(v) * v->chunk * (int64_t)sizeof *p->from);
    used = room(&to, scratch, used, v->chunk * (int64_t)sizeof *p->to);
    used = room(&zeros, scratch, used, v->c * (int64_t)sizeof *p->zeros);
    used = room(&filter, scratch, used, kept ? 0 : filter_bytes(v, v->whole ? v->f : v->group));
    *p = (packed){(const tdi_bfloat16 **)(void *)from, (tdi_bfloat16 **)(void *)to, (tdi_bfloat16 *)(void *)zeros,
                  (tdi_bfloat16 *)(void *)filter};
    return used;
}

static void run(conv *v, const tdi_call *call)
{
    packed p;
    v->streams = v->streams && (uintptr_t)call->out.data % TDI_LINE == 0;
    lay_out(v, call->kept, call->scratch, &p);
    if (call->kept)
        p.filter = tdi_kept(call);
    memset(p.zeros, 0, (size_t)v->c * sizeof *p.zeros);
    bool packs = tdi_must_make(call);
    for (int64_t first = 0; first < v->pixels; first += v->chunk)
        make_chunk(v, call, first, packs && first == 0, &p);
    _mm_sfence(); /* other lanes see what was streamed */
}

static const char *declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *filter = &call->in[1].shape;
    if (!tdi_pairs_work())
        return "no AVX512-BF16";
    if (tdi_tiles_work())
        return "AMX multiplies more at a time";
    if (call->in[0].dtype != TD_BFLOAT16 || call->in[1].dtype != TD_FLOAT32)
        return "other than bfloat16 by a float32 filter";
    if (a->groups > 1)
        return "groups";
    return filter->dim[2] % WIDE || filter->dim[3] % WIDE ? "channels in other than multiples of 32" : NULL;
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

/* float32 by Winograd's method may be faster, and so may the library be. */
static tdi_doubt pairs_doubts(const tdi_call *call)
{
    (void)call;
    return TDI_LIKELY;
}

static size_t bytes_to_keep(const tdi_call *call, const conv *v)
{
    return tdi_is_steady(call, 1) ? (size_t)filter_bytes(v, v->f) : 0;
}

static td_status conv2d_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    conv v = forward_of(call);
    packed p;
    *scratch = lay_out(&v, tdi_is_steady(call, 1), NULL, &p);
    return TD_OK;
}

static size_t conv2d_keeps(const tdi_call *call)
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
    (void)state, (void)error;
    conv v = back_of(call);
    packed p;
    *scratch = lay_out(&v, tdi_is_steady(call, 1), NULL, &p);
    return TD_OK;
}

static size_t back_keeps(const tdi_call *call)
{
    conv v = back_of(call);
    return bytes_to_keep(call, &v);
}

static void back_run(const tdi_call *call)
{
    conv v = back_of(call);
    int64_t image = v.y_h * v.y_w * v.f;
    if (v.apart_h > 1 || v.apart_w > 1)
        memset((tdi_bfloat16 *)call->out.data + v.first * image, 0, (size_t)(v.samples * image) * sizeof(tdi_bfloat16));
    run(&v, call);
}

#else

static const char *declines(const tdi_call *call)
{
    (void)call;
    return "no AVX512-BF16";
}
#define back_declines  declines
#define pairs_doubts   NULL
#define conv2d_prepare NULL
#define conv2d_keeps   NULL
#define conv2d_run     NULL
#define back_prepare   NULL
#define back_keeps     NULL
#define back_run       NULL

#endif

const tdi_kernel TDI_ISA_NAME(tdi_cpu_pairs_conv2d) = {.name = TDI_ISA_TEXT " conv2d by pairs",
                                                       .op = &tdi_op_conv2d,
                                                       .takes = TDI_TAKES_BFLOAT16,
                                                       .splits = TDI_CAN_ROWS,
                                                       .declines = declines,
                                                       .doubts = pairs_doubts,
                                                       .prepare = conv2d_prepare,
                                                       .keeps = conv2d_keeps,
                                                       .run = conv2d_run};

const tdi_kernel TDI_ISA_NAME(tdi_cpu_pairs_conv2d_grad_input) = {.name = TDI_ISA_TEXT " conv2d_grad_input by pairs",
                                                                  .op = &tdi_op_conv2d_grad_input,
                                                                  .takes = TDI_TAKES_BFLOAT16,
                                                                  .splits = TDI_CAN_ROWS,
                                                                  .declines = back_declines,
                                                                  .doubts = pairs_doubts,
                                                                  .prepare = back_prepare,
                                                                  .keeps = back_keeps,
                                                                  .run = back_run};
