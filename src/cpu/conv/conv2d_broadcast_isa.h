/* conv2d_broadcast_isa.h - what the broadcast convolutions share: one filter per SIMD lane, by which one broadcast
 * number of x is multiplied at a time. They take any channels and any number of samples.
 *
 * One description serves all three directions: along an axis, pixel o meets at place k of the filter what is at
 * o * stride + k * dilation - before. Going forward, what it meets is a cell of x. For the gradient of the input the
 * cells are those of dy, which lie `apart` places from each other (the forward strides), with nothing between them. */
#ifndef TDI_CPU_CONV_CONV2D_BROADCAST_ISA_H
#define TDI_CPU_CONV_CONV2D_BROADCAST_ISA_H

#include "cpu/conv/conv2d_interleaved_isa.h"

/* How many of the places first, first + apart, ... lie before `end`. */
static inline int64_t tdi_places_before(int64_t end, int64_t first, int64_t apart)
{
    return end <= first ? 0 : (end - first + apart - 1) / apart;
}

/* One axis, as above. `cells` of x lie at 0, apart, 2 apart, ... */
typedef struct tdi_axis {
    int64_t cells, size; /* extents of x and of the filter */
    int64_t stride, dilation, apart, before;
} tdi_axis;

/* An image [h, w, c] with columns of zeros added left and right of it, as the loops read it. */
typedef struct tdi_padded {
    int64_t h, w, c;
    int64_t left, columns; /* columns before the image's first (negative: columns left out); columns in all */
} tdi_padded;

/* The places of the filter that meet cells: `count` of them, first, first + step, ...; the first meets cell `cell`,
 * each next one the cell `cells` further on. */
typedef struct tdi_places {
    int64_t first, count, step;
    int64_t cell, cells;
} tdi_places;

/* The places at which pixel o meets cells, as if there were cells without end on both sides. */
static inline tdi_places tdi_places_of_pixel(const tdi_axis *a, int64_t o)
{
    tdi_places m = {.step = 1};
    int64_t at = o * a->stride - a->before;
    while (m.step * a->dilation % a->apart)
        m.step++;
    while (m.first < a->size && (at + m.first * a->dilation) % a->apart)
        m.first++;
    m.count = tdi_places_before(a->size, m.first, m.step);
    m.cell = (at + m.first * a->dilation) / a->apart;
    m.cells = m.step * a->dilation / a->apart;
    return m;
}

/* Drops the places that meet no cell of x. */
static inline tdi_places tdi_places_inside(const tdi_axis *a, tdi_places m)
{
    int64_t before = tdi_least(tdi_places_before(0, m.cell, m.cells), m.count);
    m.first += before * m.step;
    m.cell += before * m.cells;
    m.count = tdi_least(m.count - before, tdi_places_before(a->cells, m.cell, m.cells));
    return m;
}

static inline tdi_axis tdi_rows_forward(const tdi_conv2d_attrs *a, const td_shape *x, const td_shape *filter)
{
    return (tdi_axis){
        x->dim[1], filter->dim[0], a->stride_h, a->dilation_h, 1, tdi_conv2d_window_h(a, x, filter).before};
}

static inline tdi_axis tdi_columns_forward(const tdi_conv2d_attrs *a, const td_shape *x, const td_shape *filter)
{
    return (tdi_axis){
        x->dim[2], filter->dim[1], a->stride_w, a->dilation_w, 1, tdi_conv2d_window_w(a, x, filter).before};
}

/* The padded image that rows of `pixels` pixels read of x [samples, h, w, c]. */
static inline tdi_padded tdi_padded_for(const td_shape *x, const tdi_axis *w, int64_t pixels)
{
    int64_t before = w->before, apart = w->apart;
    int64_t left = before >= 0 ? before / apart : -tdi_places_before(-before, 0, apart);
    int64_t last = ((pixels - 1) * w->stride + (w->size - 1) * w->dilation - before + left * apart) / apart;
    return (tdi_padded){x->dim[1], x->dim[2], x->dim[3], left, last + 1};
}

/* Whether images need no padding and are read where they lie. */
static inline bool tdi_padded_in_place(const tdi_padded *s)
{
    return s->left == 0 && s->columns <= s->w;
}

static inline int64_t tdi_padded_row(const tdi_padded *s)
{
    return (tdi_padded_in_place(s) ? s->w : s->columns) * s->c;
}

static inline int64_t tdi_padded_floats(const tdi_padded *s)
{
    return tdi_padded_in_place(s) ? 0 : s->h * s->columns * s->c;
}

/* Clears `room`, tdi_padded_floats of it, before the first image is padded there. Does nothing where images are read in
 * place. */
static inline void tdi_padded_clear(const tdi_padded *s, float *room)
{
    if (!tdi_padded_in_place(s))
        tdi_clear(room, tdi_padded_floats(s));
}

/* Returns the image where it lies, or its padded copy in `room`, which was cleared and may hold another image. */
static inline const float *tdi_pad_image(const tdi_padded *s, const float *image, float *room)
{
    if (tdi_padded_in_place(s))
        return image;
    int64_t begin = tdi_most(-s->left, 0), end = tdi_least(s->columns - s->left, s->w);
    for (int64_t y = 0; y < s->h && begin < end; y++)
        memcpy(room + y * tdi_padded_row(s) + (s->left + begin) * s->c, image + (y * s->w + begin) * s->c,
               (size_t)((end - begin) * s->c) * sizeof *room);
    return room;
}

/* ---- what is taken ---- */

/* Operations: those that the convolution needs, and those that the loops do, which include empty lanes and the zeros
 * between cells. */
typedef struct tdi_work {
    double useful, total;
} tdi_work;

/* Whether a core needs a tenth of a millisecond at most. */
static inline bool tdi_is_small_work(tdi_work w)
{
    return w.total <= 12e6;
}

/* Whether to prefer these loops to oneDNN without timing. oneDNN allocates and does other work around a call, which
 * would show in a small model's step; but the loops must not waste most of more than a dozen microseconds. */
static inline bool tdi_is_for_broadcast(tdi_work w)
{
    return tdi_is_small_work(w) && (w.total <= 2e6 || w.total <= 6 * w.useful);
}

static inline tdi_confidence tdi_broadcast_confidence(tdi_work w)
{
    return tdi_is_for_broadcast(w) ? TDI_SURE : w.total > 2 * w.useful ? TDI_UNLIKELY : TDI_LIKELY;
}

/* Where there is oneDNN: with many channels Winograd's method and matrix products are faster, and other kernels need no
 * padded copy of a large image. */
static inline const char *tdi_broadcast_declines(const tdi_padded *x, const tdi_axis *rows, const tdi_axis *columns,
                                                 const td_shape *filter, tdi_work w)
{
#if defined(TANDEM_ONEDNN)
    enum { MANY = 32, LARGE = 1 << 22 /* floats */ };
    bool strides = rows->stride * rows->apart > 1 || columns->stride * columns->apart > 1;
    bool point = filter->dim[0] == 1 && filter->dim[1] == 1;
    if (filter->dim[2] >= MANY && filter->dim[3] >= MANY && (point || !strides) && !tdi_is_small_work(w))
        return "many channels";
    return tdi_padded_floats(x) > LARGE && !tdi_is_for_broadcast(w) ? "a large image with zeros around" : NULL;
#else
    (void)x, (void)rows, (void)columns, (void)filter, (void)w;
    return NULL;
#endif
}

/* Fails with TD_UNSUPPORTED when threads share the filters of a grouped convolution. */
static inline td_status tdi_broadcast_check_share(const tdi_call *call, tdi_error *error)
{
    bool groups = ((const tdi_conv2d_attrs *)call->attrs)->groups > 1;
    return call->split == TDI_COLUMNS && groups ? tdi_fail(error, TD_UNSUPPORTED, "groups by filters") : TD_OK;
}

#endif
