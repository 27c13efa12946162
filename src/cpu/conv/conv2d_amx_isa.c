/* conv2d_amx_isa.c - convolutions of bfloat16 values, and the gradients of their inputs, by AMX.
 *
 * The images that are read lie end to end in one line of pixels, with zeros between rows and between images. Place (i,
 * j) of the filter reads the line shifted by a fixed number of pixels, and a tile is 16 neighbouring pixels. With
 * strides there is one line for each phase, for example of every second pixel. A stretch of the line is packed 32
 * channels at a time, so that a tile is one contiguous kilobyte; images that a 1x1 filter reads unchanged stay where
 * they lie. The filter is rounded and packed once a call, in pairs of channels, as AMX wants its second factor. Sums
 * stay in tiles over all places and channels, so that their bits do not depend on the share of a thread. Large results
 * bypass the caches.
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
    SIDE = 16,            /* rows of a tile, and floats in a row */
    DEPTH = 32,           /* bfloat16s in a row of a tile */
    TILE = SIDE * DEPTH,  /* bfloat16s */
    WIDE = 2 * SIDE,      /* pixels, and filters, that are multiplied at a time */
    GROUP = 256,          /* filters that are packed at a time */
    ROOM = 1 << 15,       /* bfloat16s of x and y that are worked on at a time */
    LEAST_TIMES_HALO = 4, /* least ratio of the pixels of a chunk to those that the next chunk packs again */
    KEPT = 1 << 20,       /* bytes of y that are still in L2 when the next op reads them */
};

/* One axis: for pixel o, place i of the filter reads pixel o * stride + i * dilation - before. */
typedef struct axis {
    int64_t in, out, places, before, stride, dilation;
    int64_t phases, halo; /* lines; pixels of a line behind those that the first place reads */
    int64_t extent;       /* pixels of a row, or rows of an image, in the line */
} axis;

/* x [samples, h, w, c] -> y [samples, oh, ow, f]. Going back, `x` is dy and `y` is dx. */
typedef struct conv {
    axis h, w;
    int64_t first, samples, c, f;
    int64_t apart_h, apart_w;    /* rows and columns of y from one pixel that is made to the next */
    int64_t pixels, chunk, halo; /* pixels of the line; those made at a time; those read behind them */
    int64_t seen;                /* pixels packed of each phase */
    bool back;                   /* the filter is turned about, and its third axis is made */
    bool direct;                 /* x is the line as it lies: nothing stands between its pixels */
    bool streams;                /* y bypasses the caches, which would first read what is there */
} conv;

typedef struct packed {
    const tdi_bfloat16 **from; /* [seen] */
    tdi_bfloat16 **to;         /* [chunk]; NULL: no pixel of y */
    int64_t *moved;            /* [places]: bfloat16s from a pixel to what each place reads */
    tdi_bfloat16 *zeros, *x, *filter;
    float *sums;
} packed;

/* ---- shapes ---- */

/* Zeros at the end of a row also serve as those before the next row. */
static int64_t shared_zeros(const axis *a)
{
    int64_t shared = a->halo;
    for (int64_t phase = 0; phase < a->phases; phase++) {
        int64_t zeros = tdi_most(0, a->before - phase), begin = tdi_rounded_up(zeros, a->stride) / a->stride;
        int64_t there = tdi_most(0, a->in + a->before - phase), end = tdi_rounded_up(there, a->stride) / a->stride;
        shared = tdi_least(shared, tdi_least(begin, tdi_most(0, a->out + a->halo - end)));
    }
    return shared;
}

static axis axis_of(int64_t in, int64_t out, int64_t places, int64_t before, int64_t stride, int64_t dilation)
{
    axis a = {.in = in, .out = out, .places = places, .before = before, .stride = stride, .dilation = dilation};
    int64_t reach = (places - 1) * dilation;
    a.phases = tdi_least(stride, reach + 1);
    a.halo = reach / stride;
    a.extent = out + a.halo - shared_zeros(&a);
    return a;
}

static void set_chunks(conv *v)
{
    v->pixels = v->samples * v->h.extent * v->w.extent;
    v->halo = v->h.halo * v->w.extent + v->w.halo;
    int64_t filter = v->h.places * v->w.places * v->c * v->f; /* each chunk reads it once */
    int64_t fits = tdi_most(tdi_most(ROOM, filter) / (v->c + v->f), LEAST_TIMES_HALO * v->halo);
    v->chunk = tdi_least(tdi_rounded_up(tdi_most(fits, 1), WIDE), tdi_rounded_up(v->pixels, WIDE));
    v->streams = v->samples * v->h.out * v->w.out * v->f * (int64_t)sizeof(tdi_bfloat16) > KEPT;
    v->direct = v->h.places == 1 && v->w.places == 1 && v->h.stride == 1 && v->w.stride == 1 && v->h.before == 0 &&
                v->w.before == 0 && v->h.in == v->h.out && v->w.in == v->w.out;
    /* An odd number, so that 32 channels and the next 32 fall into different cache sets. */
    v->seen = v->direct ? WIDE : (v->chunk + v->halo) | 1;
}

static conv forward_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *filter = &call->in[1].shape, *y = &call->out.shape;
    bool rows = call->split == TDI_ROWS;
    conv v = {.first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : x->dim[0],
              .c = x->dim[3],
              .f = y->dim[3],
              .apart_h = 1,
              .apart_w = 1};
    v.h = axis_of(x->dim[1], y->dim[1], filter->dim[0], tdi_conv2d_window_h(a, x, filter).before, a->stride_h,
                  a->dilation_h);
    v.w = axis_of(x->dim[2], y->dim[2], filter->dim[1], tdi_conv2d_window_w(a, x, filter).before, a->stride_w,
                  a->dilation_w);
    set_chunks(&v);
    return v;
}

/* Describes the gradient of the input. With strides the filter has one place, and only every stride-th pixel of dx is
 * made. */
static conv back_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *dy = &call->in[0].shape, *filter = &call->in[1].shape, *dx = &call->out.shape;
    bool rows = call->split == TDI_ROWS, apart = a->stride_h > 1 || a->stride_w > 1;
    int64_t reach_h = (filter->dim[0] - 1) * a->dilation_h, reach_w = (filter->dim[1] - 1) * a->dilation_w;
    conv v = {.first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : dx->dim[0],
              .c = dy->dim[3],
              .f = dx->dim[3],
              .apart_h = a->stride_h,
              .apart_w = a->stride_w,
              .back = true};
    v.h = axis_of(dy->dim[1], apart ? dy->dim[1] : dx->dim[1], filter->dim[0],
                  reach_h - tdi_conv2d_window_h(a, dx, filter).before, 1, a->dilation_h);
    v.w = axis_of(dy->dim[2], apart ? dy->dim[2] : dx->dim[2], filter->dim[1],
                  reach_w - tdi_conv2d_window_w(a, dx, filter).before, 1, a->dilation_w);
    set_chunks(&v);
    return v;
}

static int64_t places_of(const conv *v)
{
    return v->h.places * v->w.places;
}

/* ---- packing x ---- */

/* Finds the line's pixels [first, first + seen) of a phase in x; outside of it they are zeros. */
static void find_seen(const conv *v, int64_t first, int64_t phase_h, int64_t phase_w, const tdi_bfloat16 *x,
                      const packed *p)
{
    int64_t row = first / v->w.extent, column = first % v->w.extent;
    for (int64_t i = 0; i < v->seen; row++, column = 0) {
        int64_t sample = row / v->h.extent, y = row % v->h.extent * v->h.stride + phase_h - v->h.before;
        bool there = sample < v->samples && y >= 0 && y < v->h.in;
        const tdi_bfloat16 *line = there ? x + (sample * v->h.in + y) * v->w.in * v->c : NULL;
        for (; column < v->w.extent && i < v->seen; column++, i++) {
            int64_t at = column * v->w.stride + phase_w - v->w.before;
            p->from[i] = line && at >= 0 && at < v->w.in ? line + at * v->c : p->zeros;
        }
    }
}

/* [c / DEPTH][seen][DEPTH] */
static void pack_seen(const conv *v, const packed *p, tdi_bfloat16 *to)
{
    for (int64_t i = 0; i < v->seen; i++)
        for (int64_t c = 0; c < v->c; c += DEPTH)
            _mm512_storeu_si512(to + c * v->seen + i * DEPTH, _mm512_loadu_si512(p->from[i] + c));
}

static void pack_x(const conv *v, int64_t first, const tdi_bfloat16 *x, const packed *p)
{
    for (int64_t i = 0; i < v->h.phases; i++)
        for (int64_t j = 0; j < v->w.phases; j++) {
            find_seen(v, first, i, j, x, p);
            pack_seen(v, p, p->x + (i * v->w.phases + j) * v->c * v->seen);
        }
}

/* Finds v's `moved` within what is packed. */
static void find_moved(const conv *v, int64_t *moved)
{
    for (int64_t i = 0; i < v->h.places; i++)
        for (int64_t j = 0; j < v->w.places; j++) {
            int64_t down = i * v->h.dilation, right = j * v->w.dilation;
            int64_t phase = down % v->h.stride * v->w.phases + right % v->w.stride;
            int64_t pixels = down / v->h.stride * v->w.extent + right / v->w.stride;
            *moved++ = phase * v->c * v->seen + pixels * DEPTH;
        }
}

/* Finds where the line's pixels [first, first + chunk) go in y. */
static void find_made(const conv *v, int64_t first, const tdi_value *value, const packed *p)
{
    int64_t row = first / v->w.extent, column = first % v->w.extent;
    int64_t height = value->shape.dim[1], width = value->shape.dim[2];
    for (int64_t i = 0; i < v->chunk; row++, column = 0) {
        int64_t sample = row / v->h.extent, y = row % v->h.extent;
        bool there = sample < v->samples && y < v->h.out;
        int64_t line = ((v->first + sample) * height + y * v->apart_h) * width * v->f;
        for (; column < v->w.extent && i < v->chunk; column++, i++)
            p->to[i] =
                there && column < v->w.out ? (tdi_bfloat16 *)value->data + line + column * v->apart_w * v->f : NULL;
    }
}

/* ---- packing the filter ---- */

/* The packed filter is [f / WIDE] blocks, each of which makes WIDE channels: [places][c / DEPTH][2] tiles of SIDE
 * channels, whose rows are pairs of c. */
static tdi_bfloat16 *block_of(const conv *v, const packed *p, int64_t f)
{
    int64_t kept = v->chunk < v->pixels ? f : f % GROUP;
    return p->filter + kept * places_of(v) * v->c;
}

/* Packs `count` filters from `begin` on of filter [places][c][f]. */
static void pack_forward(const conv *v, const float *filter, int64_t begin, int64_t count, tdi_bfloat16 *to)
{
    int64_t depth = places_of(v) * v->c;
    for (int64_t k = 0; k < depth; k += 2) {
        const float *row = filter + k * v->f + begin;
        tdi_bfloat16 *at = to + k / DEPTH * 2 * TILE + k % DEPTH * SIDE;
        for (int64_t f = 0; f < count; f += WIDE) {
            tdi_pair_floats(row + f, row + v->f + f, at + f * depth);
            tdi_pair_floats(row + f + SIDE, row + v->f + f + SIDE, at + f * depth + TILE);
        }
    }
}

/* The same going back: filter [places][f][c], the last place first. */
static void pack_back(const conv *v, const float *filter, int64_t begin, int64_t count, tdi_bfloat16 *to)
{
    int64_t places = places_of(v);
    for (int64_t f = 0; f < count; f += SIDE)
        for (int64_t place = 0; place < places; place++) {
            const float *from = filter + ((places - 1 - place) * v->f + begin + f) * v->c;
            tdi_bfloat16 *at = to + f / WIDE * WIDE * places * v->c + place * v->c * WIDE + f % WIDE / SIDE * TILE;
            for (int64_t c = 0; c < v->c; c += DEPTH)
                tdi_turn_floats(from + c, v->c, at + c * WIDE, SIDE);
        }
}

/* ---- multiplying ---- */

typedef struct product {
    int64_t places, blocks;
    int64_t row, apart; /* x: bytes from pixel to pixel; bfloat16s from DEPTH channels to the next */
    const int64_t *moved;
} product;

/* Multiplies WIDE pixels of x by a block of the filter: [WIDE][WIDE] sums. */
__attribute__((target("amx-tile,amx-bf16"))) static void multiply(const product *m, const tdi_bfloat16 *x,
                                                                  const tdi_bfloat16 *filter, float *sums)
{
    enum { ROW = WIDE * sizeof(float) };
    const int64_t row = m->row, below = row / 2 * SIDE;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t place = 0; place < m->places; place++) {
        const tdi_bfloat16 *from = x + m->moved[place];
        for (int64_t c = 0; c < m->blocks; c++, from += m->apart, filter += 2 * TILE) {
            _tile_loadd(4, from, row);
            _tile_loadd(6, filter, TDI_LINE);
            _tile_loadd(7, filter + TILE, TDI_LINE);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_loadd(5, from + below, row);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums, ROW);
    _tile_stored(1, sums + SIDE, ROW);
    _tile_stored(2, sums + SIDE * WIDE, ROW);
    _tile_stored(3, sums + SIDE * WIDE + SIDE, ROW);
}

/* Rounds WIDE channels of WIDE pixels, and stores them where they belong. */
TDI_INLINE void put_all(bool streams, const float *sums, const float *bias, tdi_bfloat16 *const *to, int64_t f)
{
    __m512 low = bias ? _mm512_loadu_ps(bias) : _mm512_setzero_ps();
    __m512 high = bias ? _mm512_loadu_ps(bias + SIDE) : _mm512_setzero_ps();
    for (int64_t i = 0; i < WIDE; i++, sums += WIDE) {
        __m512i row = tdi_narrowed_two(_mm512_add_ps(_mm512_loadu_ps(sums), low),
                                       _mm512_add_ps(_mm512_loadu_ps(sums + SIDE), high));
        if (to[i] && streams)
            _mm512_stream_si512((__m512i *)(void *)(to[i] + f), row);
        else if (to[i])
            _mm512_storeu_si512(to[i] + f, row);
    }
}

static void put(bool streams, const float *sums, const float *bias, tdi_bfloat16 *const *to, int64_t f)
{
    if (streams)
        put_all(true, sums, bias, to, f);
    else
        put_all(false, sums, bias, to, f);
}

/* Makes channels [f, f + WIDE) of WIDE pixels. */
static void make_square(const conv *v, const tdi_call *call, const product *m, const tdi_bfloat16 *x, int64_t f,
                        tdi_bfloat16 *const *to, const packed *p)
{
    const float *bias = !v->back && call->n_in > 2 ? call->in[2].data : NULL;
    int activation = v->back ? TD_LINEAR : ((const tdi_conv2d_attrs *)call->attrs)->activation;
    multiply(m, x, block_of(v, p, f), p->sums);
    if (activation != TD_LINEAR)
        TDI_ISA_NAME(tdi_vector_loops).epilogue(WIDE, WIDE, WIDE, bias ? bias + f : NULL, activation, p->sums);
    put(v->streams, p->sums, bias && activation == TD_LINEAR ? bias + f : NULL, to, f);
}

/* Makes the chunk's first `count` pixels, read from `x` in place or from where they are packed; those that do not fill
 * a tile are always packed. */
static void make_channels(const conv *v, const tdi_call *call, const tdi_bfloat16 *x, int64_t f, int64_t count,
                          const packed *p)
{
    const product there = {places_of(v), v->c / DEPTH, v->c * 2, DEPTH, p->moved};
    const product here = {places_of(v), v->c / DEPTH, TDI_LINE, v->seen * DEPTH, p->moved};
    int64_t whole = v->direct ? count - count % WIDE : 0;
    for (int64_t i = 0; i < whole; i += WIDE)
        make_square(v, call, &there, x + i * v->c, f, p->to + i, p);
    for (int64_t i = whole; i < count; i += WIDE)
        make_square(v, call, &here, p->x + (i - whole) * DEPTH, f, p->to + i, p);
}

static void make_chunk(const conv *v, const tdi_call *call, int64_t first, const packed *p)
{
    int64_t image = v->h.in * v->w.in * v->c, count = tdi_least(v->chunk, v->pixels - first);
    const tdi_bfloat16 *x = (const tdi_bfloat16 *)call->in[0].data + v->first * image;
    if (!v->direct)
        pack_x(v, first, x, p);
    else if (count % WIDE)
        pack_x(v, first + count - count % WIDE, x, p);
    find_made(v, first, &call->out, p);
    for (int64_t f = 0; f < v->f; f += WIDE) {
        if (first == 0 && f % GROUP == 0)
            (v->back ? pack_back : pack_forward)(v, call->in[1].data, f, tdi_least(GROUP, v->f - f), block_of(v, p, f));
        make_channels(v, call, v->direct ? x + first * v->c : NULL, f, count, p);
    }
}

/* ---- the kernels ---- */

/* Lays the scratch out and returns its size; `scratch` NULL: the size alone is wanted. */
static size_t lay_out(const conv *v, char *scratch, packed *p)
{
    char *from, *to, *moved, *zeros, *x, *filter, *sums;
    int64_t kept = v->chunk < v->pixels ? v->f : tdi_least(GROUP, v->f);
    size_t used = tdi_take_room(&from, scratch, 0, v->seen * (int64_t)sizeof *p->from);
    used = tdi_take_room(&to, scratch, used, v->chunk * (int64_t)sizeof *p->to);
    used = tdi_take_room(&moved, scratch, used, places_of(v) * (int64_t)sizeof *p->moved);
    used = tdi_take_room(&zeros, scratch, used, v->c * (int64_t)sizeof *p->zeros);
    used = tdi_take_room(&sums, scratch, used, WIDE * WIDE * (int64_t)sizeof *p->sums);
    used = tdi_take_room(&x, scratch, used, v->h.phases * v->w.phases * v->c * v->seen * (int64_t)sizeof *p->x);
    used = tdi_take_room(&filter, scratch, used, places_of(v) * v->c * kept * (int64_t)sizeof *p->filter);
    *p = (packed){(const tdi_bfloat16 **)(void *)from,
                  (tdi_bfloat16 **)(void *)to,
                  (int64_t *)(void *)moved,
                  (tdi_bfloat16 *)(void *)zeros,
                  (tdi_bfloat16 *)(void *)x,
                  (tdi_bfloat16 *)(void *)filter,
                  (float *)(void *)sums};
    return used;
}

static void run(conv *v, const tdi_call *call)
{
    packed p;
    v->streams = v->streams && (uintptr_t)call->out.data % TDI_LINE == 0;
    lay_out(v, call->scratch, &p);
    memset(p.zeros, 0, (size_t)v->c * sizeof *p.zeros);
    find_moved(v, p.moved);
    tdi_amx_begin();
    for (int64_t first = 0; first < v->pixels; first += v->chunk)
        make_chunk(v, call, first, &p);
    _mm_sfence(); /* makes what was streamed visible to other threads */
    tdi_amx_end();
}

/* Whether images are smaller than the zeros around them: most of the line would be made in vain. */
static bool is_wasteful(conv v)
{
    return v.h.extent * v.w.extent > 2 * v.h.out * v.w.out;
}

static const char *declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *filter = &call->in[1].shape;
    if (!tdi_amx_works())
        return "no AMX";
    if (call->in[0].dtype != TD_BFLOAT16 || call->in[1].dtype != TD_FLOAT32)
        return "other than bfloat16 by a float32 filter";
    if (a->groups > 1)
        return "groups";
    return filter->dim[2] % WIDE || filter->dim[3] % WIDE ? "channels in other than multiples of 32" : NULL;
}

static const char *forward_declines(const tdi_call *call)
{
    const char *why = declines(call);
    return why || !is_wasteful(forward_of(call)) ? why : "a filter as large as the image";
}

static td_status conv2d_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    conv v = forward_of(call);
    packed p;
    *scratch = lay_out(&v, NULL, &p);
    return TD_OK;
}

static void conv2d_run(const tdi_call *call)
{
    conv v = forward_of(call);
    run(&v, call);
}

/* With few filters oneDNN is about as fast. */
static tdi_confidence conv2d_confidence(const tdi_call *call)
{
    enum { MANY = 256 };
    return call->out.shape.dim[3] < MANY ? TDI_LIKELY : TDI_SURE;
}

static const char *back_declines(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *filter = &call->in[1].shape;
    bool point = filter->dim[0] == 1 && filter->dim[1] == 1;
    bool zeros = a->sides.top || a->sides.bottom || a->sides.left || a->sides.right;
    const char *why = declines(call);
    if (why)
        return why;
    if ((a->stride_h > 1 || a->stride_w > 1) && (!point || zeros))
        return "strides";
    return is_wasteful(back_of(call)) ? "a filter as large as the image" : NULL;
}

static td_status back_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    conv v = back_of(call);
    packed p;
    *scratch = lay_out(&v, NULL, &p);
    return TD_OK;
}

static void back_run(const tdi_call *call)
{
    conv v = back_of(call);
    int64_t image = call->out.shape.dim[1] * call->out.shape.dim[2] * v.f;
    if (v.apart_h > 1 || v.apart_w > 1)
        memset((tdi_bfloat16 *)call->out.data + v.first * image, 0, (size_t)(v.samples * image) * sizeof(tdi_bfloat16));
    run(&v, call);
}

#else

static const char *declines(const tdi_call *call)
{
    (void)call;
    return "no AMX";
}
#define forward_declines  declines
#define back_declines     declines
#define conv2d_confidence NULL
#define conv2d_prepare    NULL
#define conv2d_run        NULL
#define back_prepare      NULL
#define back_run          NULL

#endif

const tdi_kernel TDI_ISA_NAME(tdi_cpu_amx_conv2d) = {.name = TDI_ISA_TEXT " conv2d by tiles",
                                                     .op = &tdi_op_conv2d,
                                                     .takes = TDI_TAKES_BFLOAT16,
                                                     .splits = TDI_CAN_ROWS,
                                                     .declines = forward_declines,
                                                     .confidence = conv2d_confidence,
                                                     .prepare = conv2d_prepare,
                                                     .run = conv2d_run};

const tdi_kernel TDI_ISA_NAME(tdi_cpu_amx_conv2d_grad_input) = {.name = TDI_ISA_TEXT " conv2d_grad_input by tiles",
                                                                .op = &tdi_op_conv2d_grad_input,
                                                                .takes = TDI_TAKES_BFLOAT16,
                                                                .splits = TDI_CAN_ROWS,
                                                                .declines = back_declines,
                                                                .prepare = back_prepare,
                                                                .run = back_run};
