/* conv2d_grad_filter_amx_isa.c - the gradient of a convolution's filter from bfloat16 values, by AMX: x^T . dy for each
 * place of the filter, [c, pixels] . [pixels, f] over the pixels of all samples.
 *
 * The images lie end to end in one line of pixels: each row of x is followed by as many zeros as the filter reaches
 * beyond its sides, each image by as many rows of zeros. dy stands at the same places, with zeros between. Every place
 * of the filter multiplies the same x by the line of dy, shifted. x is transposed once for all places. dy is packed in
 * pairs of pixels, as AMX wants its second factor, twice: beginning with an even pixel and with an odd one. Only 1x1
 * filters may have strides.
 *
 * With few channels each pixel of dy meets a patch of x instead, whose rows are contiguous. The patches are the
 * pixels of an image of kh * kw * c channels, whose filter has one place; strides do not matter then. */
#include "cpu/bfloat16_isa.h"
#include "cpu/kernels.h"

#if defined(__AVX512BW__)

#include <immintrin.h>

#include "cpu/amx.h"

enum {
    SIDE = 16,            /* rows of a tile, and floats in a row */
    DEPTH = 32,           /* bfloat16s in a row of a tile */
    WIDE = 2 * SIDE,      /* channels of x, and of dy, that are multiplied at a time */
    BLOCK = 256,          /* pixels whose x, of WIDE channels, stays in L1 */
    RUN = 256,            /* channels of x that are read in one go */
    ROOM = 1 << 19,       /* bfloat16s of x and dy that are packed at a time; they fit into L2 */
    LEAST_TIMES_HALO = 4, /* least ratio of the pixels of a chunk to those that the next chunk packs again */
    PATCH = 512,          /* bfloat16s of the largest patch */
};

/* x [samples, h, w, c], dy [samples, oh, ow, f] */
typedef struct line {
    int64_t samples, h, w, c, oh, ow, f, kh, kw;
    int64_t stride_h, stride_w, step_h, step_w; /* steps: pixels of the line between places of the filter */
    int64_t rows, columns;                      /* pixels of an image in the line, with its zeros */
    int64_t before, halo;               /* pixels that the first place looks back; and from there to the last place */
    int64_t pixels, chunk;              /* pixels of the line; those packed at a time */
    int64_t dy_pixels, copies;          /* pixels of dy that are packed; how many times */
    bool patches;                       /* x is patches: c is a patch's size, and kh and kw are 1 */
    int64_t top, left;                  /* zeros above and left of x in the first patch */
    int64_t patch_h, patch_w, channels; /* of a patch; of x */
    int64_t dilation_h;
} line;

typedef struct packed {
    const tdi_bfloat16 **at; /* where each pixel is */
    tdi_bfloat16 *zeros, *x, *dy;
    tdi_bfloat16 *patches; /* [DEPTH][c] */
    float *sums;           /* of patches, [c][f] */
} packed;

/* Finds the pixels of an axis of an image in the line, and how far the first place of the filter looks back. */
static int64_t extent(int64_t in, int64_t out, int64_t span, int64_t before)
{
    int64_t after = out + span - 1 - before - in;
    return tdi_most(out, in + tdi_most(before, after));
}

static void set_chunk(line *l)
{
    l->halo = (l->kh - 1) * l->step_h + (l->kw - 1) * l->step_w;
    l->pixels = l->samples * l->rows * l->columns;
    int64_t fits = tdi_most(tdi_most(ROOM / (l->c + l->f), LEAST_TIMES_HALO * l->halo), 1);
    l->chunk = tdi_least(tdi_rounded_up(fits, BLOCK), tdi_rounded_up(l->pixels, DEPTH));
    l->dy_pixels = tdi_rounded_up(l->chunk + l->halo, DEPTH);
    l->copies = l->halo ? 2 : 1;
}

static bool has_few_channels(const td_shape *filter)
{
    int64_t row = filter->dim[1] * filter->dim[2];
    bool point = filter->dim[0] == 1 && filter->dim[1] == 1;
    return !point && filter->dim[2] % WIDE && row <= DEPTH && filter->dim[0] * row <= PATCH;
}

static void see_patches(line *l)
{
    l->patch_h = l->kh;
    l->patch_w = l->kw;
    l->channels = l->c;
    l->c = tdi_rounded_up(l->kh * l->kw * l->c, WIDE);
    l->kh = l->kw = 1;
}

static line line_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *dy = &call->in[1].shape, *filter = &call->out.shape;
    line l = {.samples = x->dim[0],
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
              .patches = has_few_channels(filter)};
    l.top = tdi_conv2d_window_h(a, x, filter).before;
    l.left = tdi_conv2d_window_w(a, x, filter).before;
    if (l.patches)
        see_patches(&l);
    bool as_dy = l.stride_h > 1 || l.stride_w > 1 || l.patches;
    l.rows = as_dy ? l.oh : extent(l.h, l.oh, (l.kh - 1) * a->dilation_h + 1, l.top);
    l.columns = as_dy ? l.ow : extent(l.w, l.ow, (l.kw - 1) * a->dilation_w + 1, l.left);
    l.step_h = a->dilation_h * l.columns;
    l.step_w = a->dilation_w;
    l.before = l.patches ? 0 : l.top * l.columns + l.left;
    set_chunk(&l);
    return l;
}

/* ---- packing ---- */

/* Finds pixels [first, first + count) of the line that holds images of h * w pixels, which are `stride` apart in images
 * of `width` columns. */
static void find_pixels(const line *l, int64_t first, int64_t count, const tdi_value *value, bool strided,
                        const packed *to)
{
    const tdi_bfloat16 *image = value->data;
    int64_t height = value->shape.dim[1], width = value->shape.dim[2], channels = value->shape.dim[3];
    int64_t stride_h = strided ? l->stride_h : 1, stride_w = strided ? l->stride_w : 1, size = height * width;
    int64_t row = first >= 0 ? first / l->columns : -((l->columns - 1 - first) / l->columns);
    int64_t column = first - row * l->columns;
    for (int64_t i = 0; i < count; row++, column = 0) {
        int64_t sample = row >= 0 ? row / l->rows : -1, y = row >= 0 ? row % l->rows * stride_h : height;
        bool there = sample >= 0 && sample < l->samples && y < height;
        for (; column < l->columns && i < count; column++, i++)
            to->at[i] = there && column * stride_w < width
                            ? image + (sample * size + y * width + column * stride_w) * channels
                            : to->zeros;
    }
}

/* Which of a filter row's `places` lie inside of a row of `width` pixels, as bits of their bfloat16s. */
static __mmask32 inside_bits(int64_t first, int64_t places, int64_t width, int64_t c)
{
    int64_t begin = tdi_least(places, tdi_most(0, -first)), end = tdi_most(begin, tdi_least(places, width - first));
    return (__mmask32)(((1ull << end * c) - 1) & ~((1ull << begin * c) - 1));
}

/* Copies the patch of x that pixel (row, column) of dy meets; outside of the image it is zeros. */
static void fill_patch(const line *l, const tdi_bfloat16 *x, int64_t row, int64_t column, tdi_bfloat16 *to)
{
    int64_t length = l->patch_w * l->channels;
    int64_t top = row * l->stride_h - l->top, left = column * l->stride_w - l->left;
    __mmask32 seen = inside_bits(left, l->patch_w, l->w, l->channels), whole = (__mmask32)((1ull << length) - 1);
    for (int64_t i = 0; i < l->patch_h; i++, to += length) {
        int64_t y = top + i * l->dilation_h;
        bool there = y >= 0 && y < l->h;
        uintptr_t from = (uintptr_t)x + (uintptr_t)(((there ? y : 0) * l->w + left) * l->channels) * sizeof *x;
        _mm512_mask_storeu_epi16(to, whole, _mm512_maskz_loadu_epi16(there ? seen : 0, (const void *)from));
    }
}

/* Copies the patches of the line's DEPTH pixels from `first` on. */
static void fill_patches(const line *l, const tdi_bfloat16 *x, int64_t first, const packed *p)
{
    int64_t image = l->h * l->w * l->channels;
    for (int64_t i = 0; i < DEPTH; i++) {
        int64_t at = first + i, row = at / l->columns;
        p->at[i] = at < l->pixels ? p->patches + i * l->c : p->zeros;
        if (at < l->pixels)
            fill_patch(l, x + row / l->rows * image, row % l->rows, at % l->columns, p->patches + i * l->c);
    }
}

/* Pairs SIDE channels of two pixels, as 32-bit words. */
TDI_INLINE __m512i pair(const tdi_bfloat16 *first, const tdi_bfloat16 *second)
{
    __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)first));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)second));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* Transposes `channels` <= RUN channels from c on of DEPTH pixels by pairs; each pixel is read from end to end. */
static void turn(const line *l, const tdi_bfloat16 *const *at, int64_t c, int64_t channels, tdi_bfloat16 *to)
{
    float pairs[RUN / SIDE][SIDE][SIDE];
    for (int64_t i = 0; i < SIDE; i++)
        for (int64_t j = 0; j < channels / SIDE; j++)
            _mm512_storeu_si512(pairs[j][i], pair(at[2 * i] + c + j * SIDE, at[2 * i + 1] + c + j * SIDE));
    for (int64_t j = 0; j < channels / SIDE; j++)
        tdi_transpose_square(pairs[j][0], SIDE, (float *)(void *)(to + (c + j * SIDE) * l->chunk), SIDE);
}

static void turn_all(const line *l, const tdi_bfloat16 *const *at, tdi_bfloat16 *to)
{
    for (int64_t c = 0; c < l->c; c += RUN)
        turn(l, at, c, tdi_least(RUN, l->c - c), to);
}

/* Packs `count` pixels, a multiple of DEPTH, of x: [c / SIDE][chunk / DEPTH] tiles with a channel in each row. They are
 * tiles, since rows that are far apart come from L2 one by one. */
static void pack_x(const line *l, int64_t count, const packed *p)
{
    for (int64_t k = 0; k < count; k += DEPTH)
        turn_all(l, p->at + k, p->x + k * SIDE);
}

static void pack_patches(const line *l, const tdi_bfloat16 *x, int64_t first, int64_t count, const packed *p)
{
    memset(p->patches, 0, (size_t)(DEPTH * l->c) * sizeof *p->patches);
    for (int64_t k = 0; k < count; k += DEPTH) {
        fill_patches(l, x, first + k, p);
        turn_all(l, p->at, p->x + k * SIDE);
    }
}

/* Packs dy: [copies][f / SIDE][pairs of pixels], each a row of SIDE channels. */
static void pack_dy(const line *l, int64_t count, const packed *p)
{
    for (int64_t odd = 0; odd < l->copies; odd++) {
        tdi_bfloat16 *to = p->dy + odd * l->f * l->dy_pixels;
        for (int64_t k = 0; k < count; k += 2)
            for (int64_t f = 0; f < l->f; f += SIDE)
                _mm512_storeu_si512(to + f * l->dy_pixels + k * SIDE, pair(p->at[k + odd] + f, p->at[k + odd + 1] + f));
    }
}

/* ---- multiplying ---- */

/* Multiplies WIDE channels of x by WIDE of dy over `depth` pixels; stores WIDE rows of the filter, or adds to them. */
__attribute__((target("amx-tile,amx-bf16"))) static void
multiply(const line *l, const tdi_bfloat16 *x, const tdi_bfloat16 *dy, int64_t depth, bool adds, float *to)
{
    const int64_t to_row = l->f * 4;
    const tdi_bfloat16 *x_below = x + SIDE * l->chunk, *dy_beside = dy + SIDE * l->dy_pixels;
    float *below = to + SIDE * l->f;
    if (adds) {
        _tile_loadd(0, to, to_row);
        _tile_loadd(1, to + SIDE, to_row);
        _tile_loadd(2, below, to_row);
        _tile_loadd(3, below + SIDE, to_row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t k = 0; k < depth; k += DEPTH) {
        _tile_loadd(4, x + k * SIDE, 64);
        _tile_loadd(6, dy + k * SIDE, 64);
        _tile_loadd(7, dy_beside + k * SIDE, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, x_below + k * SIDE, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, to, to_row);
    _tile_stored(1, to + SIDE, to_row);
    _tile_stored(2, below, to_row);
    _tile_stored(3, below + SIDE, to_row);
}

/* Multiplies the chunk's pixels [k, k + depth) of x, for all places and channels. */
static void multiply_block(const line *l, const packed *p, int64_t k, int64_t depth, bool adds, float *filter)
{
    for (int64_t c = 0; c < l->c; c += WIDE)
        for (int64_t i = 0; i < l->kh; i++)
            for (int64_t j = 0; j < l->kw; j++) {
                int64_t moved = l->halo - i * l->step_h - j * l->step_w + k, odd = moved % 2;
                const tdi_bfloat16 *dy = p->dy + odd * l->f * l->dy_pixels + (moved - odd) * SIDE;
                float *to = filter + ((i * l->kw + j) * l->c + c) * l->f;
                for (int64_t f = 0; f < l->f; f += WIDE)
                    multiply(l, p->x + c * l->chunk + k * SIDE, dy + f * l->dy_pixels, depth, adds, to + f);
            }
}

/* ---- the kernel ---- */

static const char *declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *filter = &call->out.shape;
    bool point = filter->dim[0] == 1 && filter->dim[1] == 1, few = has_few_channels(filter);
    if (!tdi_amx_works())
        return "no AMX";
    if (call->in[0].dtype != TD_BFLOAT16 || call->in[1].dtype != TD_BFLOAT16)
        return "a float32 operand";
    if (a->groups > 1)
        return "groups";
    if ((filter->dim[2] % WIDE && !few) || filter->dim[3] % WIDE)
        return "channels in other than multiples of 32";
    if (few)
        return a->dilation_w > 1 ? "few channels and dilation" : NULL;
    if ((a->stride_h > 1 || a->stride_w > 1) &&
        (!point || a->sides.top || a->sides.bottom || a->sides.left || a->sides.right))
        return "strides";
    return NULL;
}

static size_t bytes_of_pixels(const line *l)
{
    return (size_t)(l->dy_pixels + DEPTH) * sizeof(tdi_bfloat16 *); /* an odd copy reads one more pixel */
}

static size_t bytes_of_zeros(const line *l)
{
    return (size_t)tdi_rounded_up(tdi_most(l->c, l->f), DEPTH) * sizeof(tdi_bfloat16);
}

static size_t bytes_of_patches(const line *l)
{
    return l->patches ? (size_t)(DEPTH * l->c) * sizeof(tdi_bfloat16) : 0;
}

static size_t bytes_of_sums(const line *l)
{
    return l->patches ? (size_t)(l->c * l->f) * sizeof(float) : 0;
}

static td_status filter_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    line l = line_of(call);
    *scratch = bytes_of_pixels(&l) + bytes_of_zeros(&l) + bytes_of_patches(&l) + bytes_of_sums(&l) +
               (size_t)(l.c * l.chunk + l.copies * l.f * l.dy_pixels) * sizeof(tdi_bfloat16);
    return TD_OK;
}

static packed places(const line *l, char *scratch)
{
    packed p = {.at = (const tdi_bfloat16 **)(void *)scratch};
    p.zeros = (tdi_bfloat16 *)(void *)(scratch += bytes_of_pixels(l));
    p.patches = (tdi_bfloat16 *)(void *)(scratch += bytes_of_zeros(l));
    p.sums = (float *)(void *)(scratch += bytes_of_patches(l));
    p.x = (tdi_bfloat16 *)(void *)(scratch + bytes_of_sums(l));
    p.dy = p.x + l->c * l->chunk;
    memset(p.zeros, 0, bytes_of_zeros(l));
    return p;
}

static void pack_chunk(const line *l, const tdi_call *call, int64_t first, int64_t count, const packed *p)
{
    int64_t seen = tdi_rounded_up(count + l->halo, DEPTH);
    if (l->patches) {
        pack_patches(l, call->in[0].data, first, count, p);
    } else {
        find_pixels(l, first, count, &call->in[0], true, p);
        pack_x(l, count, p);
    }
    find_pixels(l, first + l->before - l->halo, seen + l->copies, &call->in[1], false, p);
    pack_dy(l, seen, p);
}

static void filter_run(const tdi_call *call)
{
    line l = line_of(call);
    packed p = places(&l, call->scratch);
    float *filter = l.patches ? p.sums : call->out.data;
    tdi_amx_begin();
    for (int64_t first = 0; first < l.pixels; first += l.chunk) {
        int64_t count = tdi_least(l.chunk, tdi_rounded_up(l.pixels - first, DEPTH));
        pack_chunk(&l, call, first, count, &p);
        for (int64_t k = 0; k < count; k += BLOCK)
            multiply_block(&l, &p, k, tdi_least(BLOCK, count - k), first + k > 0, filter);
    }
    tdi_amx_end();
    if (l.patches)
        memcpy(call->out.data, filter, (size_t)tdi_shape_elements(&call->out.shape) * sizeof *filter);
}

/* Not sure for filters of several places, which read x several times, or read patches padded to a multiple of 32. */
static tdi_confidence filter_confidence(const tdi_call *call)
{
    const td_shape *filter = &call->out.shape;
    return filter->dim[0] * filter->dim[1] > 1 ? TDI_LIKELY : TDI_SURE;
}

#else

static const char *declines(const tdi_call *call)
{
    (void)call;
    return "no AMX";
}
#define filter_prepare    NULL
#define filter_run        NULL
#define filter_confidence NULL

#endif

const tdi_kernel TDI_ISA_NAME(tdi_cpu_amx_conv2d_grad_filter) = {.name = TDI_ISA_TEXT " conv2d_grad_filter by tiles",
                                                                 .op = &tdi_op_conv2d_grad_filter,
                                                                 .takes = TDI_TAKES_BFLOAT16,
                                                                 .declines = declines,
                                                                 .confidence = filter_confidence,
                                                                 .prepare = filter_prepare,
                                                                 .run = filter_run};
