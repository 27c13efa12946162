/* conv2d_filter_pairs_isa.c - the gradient of a convolution's filter from bfloat16 values, by AVX512-BF16: x^T . dy for
 * each place of the filter, [c, pixels] . [pixels, f] over the pixels of all samples' dy.
 *
 * Pixels go in pairs. Of some hundred of them dy is packed once, x for each place of the filter, as that place sees it:
 * nothing is multiplied for being beside an image but zeros in x. Both are packed by so many channels at a time as L2
 * holds with the filter's share. */
#include "cpu/kernels.h"
#include "cpu/narrow_isa.h"

#if defined(__AVX512BW__)

#include "cpu/pairs_isa.h"
#include "cpu/tiles.h"

enum {
    SIDE = TDI_PAIR_SIDE,
    WIDE = 2 * SIDE,   /* channels of either side that are packed and of dy that are multiplied at a time */
    MOST_PIXELS = 400, /* packed at a time */
    GROUP_OF_X = 256,  /* channels that are packed at a time */
    GROUP_OF_DY = 256,
    AHEAD = 2,
};

/* x [samples, h, w, c], dy [samples, oh, ow, f] */
typedef struct conv {
    int64_t samples, h, w, c, oh, ow, f, kh, kw;
    int64_t stride_h, stride_w, dilation_h, dilation_w;
    int64_t top, left;     /* zeros above and beside x that the first place sees */
    int64_t pixels, chunk; /* of dy; packed at a time, an even number */
} conv;

typedef struct packed {
    const tdi_bfloat16 **at; /* [chunk] */
    tdi_bfloat16 *zeros;     /* a pixel of x or of dy */
    tdi_bfloat16 *x, *dy;    /* [group / SIDE][chunk / 2][SIDE] pairs */
    tdi_ahead ahead[AHEAD];  /* of the next pixels: dy, x */
} packed;

static conv conv_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *dy = &call->in[1].shape, *filter = &call->out.shape;
    conv v = {.samples = x->dim[0],
              .h = x->dim[1],
              .w = x->dim[2],
              .c = x->dim[3],
              .oh = dy->dim[1],
              .ow = dy->dim[2],
              .f = dy->dim[3],
              .kh = filter->dim[0],
              .kw = filter->dim[1],
              .stride_h = a->stride_h,
              .stride_w = a->stride_w,
              .dilation_h = a->dilation_h,
              .dilation_w = a->dilation_w,
              .top = tdi_conv2d_window_h(a, x, filter).before,
              .left = tdi_conv2d_window_w(a, x, filter).before};
    v.pixels = v.samples * v.oh * v.ow;
    int64_t chunks = (v.pixels + MOST_PIXELS - 1) / MOST_PIXELS;
    v.chunk = tdi_rounded_up((v.pixels + chunks - 1) / chunks, 2);
    return v;
}

/* ---- packing ---- */

/* Of dy the pixels [first, first + count). */
static void find_dy(const conv *v, const tdi_bfloat16 *dy, int64_t first, int64_t count, const packed *p)
{
    for (int64_t i = 0; i < count; i++)
        p->at[i] = dy + (first + i) * v->f;
}

/* What place (i, j) of the filter sees of x from those. */
static void find_x(const conv *v, const tdi_bfloat16 *x, int64_t i, int64_t j, int64_t first, int64_t count,
                   const packed *p)
{
    int64_t row = first / v->ow, column = first % v->ow;
    for (int64_t k = 0; k < count; row++, column = 0) {
        int64_t y = row % v->oh * v->stride_h + i * v->dilation_h - v->top;
        const tdi_bfloat16 *line = y >= 0 && y < v->h ? x + (row / v->oh * v->h + y) * v->w * v->c : NULL;
        for (; column < v->ow && k < count; column++, k++) {
            int64_t at = column * v->stride_w + j * v->dilation_w - v->left;
            p->at[k] = line && at >= 0 && at < v->w ? line + at * v->c : p->zeros;
        }
    }
}

/* Channels [begin, begin + channels) of `count` pixels, an odd one with zeros. */
static void pack(const conv *v, const packed *p, int64_t begin, int64_t channels, int64_t count, tdi_bfloat16 *to)
{
    if (count % 2)
        p->at[count] = p->zeros;
    for (int64_t k = 0; k < count; k += 2, to += WIDE)
        for (int64_t c = 0; c < channels; c += WIDE)
            tdi_pair_up(p->at[k] + begin + c, p->at[k + 1] + begin + c, to + c * v->chunk, to + (c + SIDE) * v->chunk);
}

/* ---- multiplying ---- */

/* TDI_PAIR_ROWS channels of x by WIDE of dy over `pairs`: adds to, or makes, so many rows of the filter. */
TDI_PAIRS static void multiply(const conv *v, const tdi_bfloat16 *x, const tdi_bfloat16 *dy, int64_t pairs, bool adds,
                               tdi_lines ahead, float *to)
{
    const tdi_bfloat16 *beside = dy + SIDE * v->chunk;
    __m512 sums[TDI_PAIR_ROWS][2];
    TDI_UNROLL
    for (int i = 0; i < TDI_PAIR_ROWS; i++) {
        sums[i][0] = sums[i][1] = _mm512_setzero_ps();
        _mm_prefetch((const char *)(to + i * v->f), _MM_HINT_T0);
        _mm_prefetch((const char *)(to + i * v->f + SIDE), _MM_HINT_T0);
    }
    for (int64_t k = 0; k < pairs; k++, x += WIDE, dy += WIDE, beside += WIDE, ahead.at += ahead.step) {
        _mm_prefetch(ahead.at, _MM_HINT_T1);
        __m512bh low = (__m512bh)_mm512_loadu_si512(dy), high = (__m512bh)_mm512_loadu_si512(beside);
        TDI_UNROLL
        for (int i = 0; i < TDI_PAIR_ROWS; i++) {
            int32_t pair;
            memcpy(&pair, x + 2 * i, sizeof pair);
            __m512bh all = (__m512bh)_mm512_set1_epi32(pair);
            sums[i][0] = _mm512_dpbf16_ps(sums[i][0], all, low);
            sums[i][1] = _mm512_dpbf16_ps(sums[i][1], all, high);
        }
    }
    TDI_UNROLL
    for (int i = 0; i < TDI_PAIR_ROWS; i++, to += v->f) {
        _mm512_storeu_ps(to, adds ? _mm512_add_ps(_mm512_loadu_ps(to), sums[i][0]) : sums[i][0]);
        _mm512_storeu_ps(to + SIDE, adds ? _mm512_add_ps(_mm512_loadu_ps(to + SIDE), sums[i][1]) : sums[i][1]);
    }
}

/* The packed channels of x by those of dy. */
static void multiply_groups(const conv *v, packed *p, int64_t channels, int64_t filters, int64_t pairs, bool adds,
                            float *to)
{
    for (int64_t f = 0; f < filters; f += WIDE)
        for (int64_t c = 0; c < channels; c += TDI_PAIR_ROWS)
            multiply(v, p->x + c / SIDE * SIDE * v->chunk + c % SIDE * 2, p->dy + f * v->chunk, pairs, adds,
                     tdi_take_ahead(p->ahead, AHEAD, pairs), to + c * v->f + f);
}

/* ---- the kernel ---- */

static const char *declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *filter = &call->out.shape;
    if (!tdi_pairs_work())
        return "no AVX512-BF16";
    if (tdi_tiles_work())
        return "AMX multiplies more at a time";
    if (call->in[0].dtype != TD_BFLOAT16 || call->in[1].dtype != TD_BFLOAT16)
        return "a float32 operand";
    if (a->groups > 1)
        return "groups";
    return filter->dim[2] % WIDE || filter->dim[3] % WIDE ? "channels in other than multiples of 32" : NULL;
}

static size_t room(char **at, char *base, size_t used, int64_t bytes)
{
    *at = base ? base + used : NULL;
    return used + (size_t)tdi_rounded_up(bytes, TDI_LINE);
}

/* In scratch, NULL: none is there yet. Returns its size. */
static size_t lay_out(const conv *v, char *scratch, packed *p)
{
    char *at, *zeros, *x, *dy;
    size_t used = room(&at, scratch, 0, v->chunk * (int64_t)sizeof *p->at);
    used = room(&zeros, scratch, used, tdi_most(v->c, v->f) * (int64_t)sizeof *p->zeros);
    used = room(&x, scratch, used, tdi_least(v->c, GROUP_OF_X) * v->chunk * (int64_t)sizeof *p->x);
    used = room(&dy, scratch, used, tdi_least(v->f, GROUP_OF_DY) * v->chunk * (int64_t)sizeof *p->dy);
    *p = (packed){.at = (const tdi_bfloat16 **)(void *)at,
                  .zeros = (tdi_bfloat16 *)(void *)zeros,
                  .x = (tdi_bfloat16 *)(void *)x,
                  .dy = (tdi_bfloat16 *)(void *)dy};
    return used;
}

static td_status filter_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    conv v = conv_of(call);
    packed p;
    *scratch = lay_out(&v, NULL, &p);
    return TD_OK;
}

/* Place (i, j) of the filter, from `count` pixels and the packed channels of dy, `filters` from f on. */
static void make_place(const conv *v, const tdi_call *call, packed *p, int64_t i, int64_t j, int64_t first,
                       int64_t count, int64_t f, int64_t filters)
{
    float *place = (float *)call->out.data + (i * v->kw + j) * v->c * v->f + f;
    find_x(v, call->in[0].data, i, j, first, count, p);
    for (int64_t c = 0; c < v->c; c += GROUP_OF_X) {
        int64_t channels = tdi_least(GROUP_OF_X, v->c - c);
        pack(v, p, c, channels, count, p->x);
        multiply_groups(v, p, channels, filters, (count + 1) / 2, first > 0, place + c * v->f);
    }
}

/* For the chunk that begins with that pixel. */
static void ask_ahead(const conv *v, const tdi_call *call, int64_t first, packed *p)
{
    int64_t count = tdi_least(v->chunk, v->pixels - first), of_dy = v->f * 2,
            of_x = v->stride_h * v->stride_w * v->c * 2;
    p->ahead[0] = tdi_ahead_of((const char *)call->in[1].data + first * of_dy, count * of_dy);
    p->ahead[1] = tdi_ahead_of((const char *)call->in[0].data + first * of_x, count * of_x);
}

static void make_chunk(const conv *v, const tdi_call *call, packed *p, int64_t first, int64_t count)
{
    ask_ahead(v, call, first + count, p);
    for (int64_t f = 0; f < v->f; f += GROUP_OF_DY) {
        int64_t filters = tdi_least(GROUP_OF_DY, v->f - f);
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
    memset(p.zeros, 0, (size_t)tdi_most(v.c, v.f) * sizeof *p.zeros);
    for (int64_t first = 0; first < v.pixels; first += v.chunk)
        make_chunk(&v, call, &p, first, tdi_least(v.chunk, v.pixels - first));
}

/* float32 by Winograd's method may be faster, and so may the library be. */
static tdi_doubt filter_doubts(const tdi_call *call)
{
    (void)call;
    return TDI_LIKELY;
}

#else

static const char *declines(const tdi_call *call)
{
    (void)call;
    return "no AVX512-BF16";
}
#define filter_prepare NULL
#define filter_run     NULL
#define filter_doubts  NULL

#endif

const tdi_kernel TDI_ISA_NAME(tdi_cpu_pairs_conv2d_grad_filter) = {.name = TDI_ISA_TEXT " conv2d_grad_filter by pairs",
                                                                   .op = &tdi_op_conv2d_grad_filter,
                                                                   .takes = TDI_TAKES_BFLOAT16,
                                                                   .declines = declines,
                                                                   .doubts = filter_doubts,
                                                                   .prepare = filter_prepare,
                                                                   .run = filter_run};
