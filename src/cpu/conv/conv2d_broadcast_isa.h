/* conv2d_broadcast_isa.h - what convolutions share that have filters in the lanes of their vectors and meet them with
 * one number of x at a time: of any channels and any number of samples. */
#ifndef TDI_CPU_CONV_CONV2D_BROADCAST_ISA_H
#define TDI_CPU_CONV_CONV2D_BROADCAST_ISA_H

#include "cpu/conv/conv2d_interleaved_isa.h"

/* How many of the places first, first + apart, .. lie before `end`. */
static inline int64_t tdi_places_before(int64_t end, int64_t first, int64_t apart)
{
    return end <= first ? 0 : (end - first + apart - 1) / apart;
}

/* Along one axis pixel o meets with place k of the filter what is at o * stride + k * dilation - before; every
 * `apart`th place there is a cell of x, of so many, the first one is at 0. */
typedef struct tdi_axis {
    int64_t cells, size; /* of x; of the filter */
    int64_t stride, dilation, apart, before;
} tdi_axis;

/* An image [h, w, c] as it is seen: with columns of zeros left and right of it. */
typedef struct tdi_seen {
    int64_t h, w, c;
    int64_t left, columns; /* where its first column is seen; of all */
} tdi_seen;

/* Places of the filter that meet cells: so many, from place `first` on every `step`th; the first of them meets cell
 * `cell`, the next one the one `cells` behind. */
typedef struct tdi_met {
    int64_t first, count, step;
    int64_t cell, cells;
} tdi_met;

/* By pixel o, were there cells without end on both sides. */
static inline tdi_met tdi_met_by(const tdi_axis *a, int64_t o)
{
    tdi_met m = {.step = 1};
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

/* Without those that meet nothing. */
static inline tdi_met tdi_met_inside(const tdi_axis *a, tdi_met m)
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

/* Of x, [samples, h, w, c], by `pixels` in a row. */
static inline tdi_seen tdi_seen_by(const td_shape *x, const tdi_axis *w, int64_t pixels)
{
    int64_t before = w->before, apart = w->apart;
    int64_t left = before >= 0 ? before / apart : -tdi_places_before(-before, 0, apart);
    int64_t last = ((pixels - 1) * w->stride + (w->size - 1) * w->dilation - before + left * apart) / apart;
    return (tdi_seen){x->dim[1], x->dim[2], x->dim[3], left, last + 1};
}

static inline bool tdi_seen_in_place(const tdi_seen *s)
{
    return s->left == 0 && s->columns <= s->w;
}

static inline int64_t tdi_seen_row(const tdi_seen *s)
{
    return (tdi_seen_in_place(s) ? s->w : s->columns) * s->c;
}

static inline int64_t tdi_seen_floats(const tdi_seen *s)
{
    return tdi_seen_in_place(s) ? 0 : s->h * s->columns * s->c;
}

/* Before the first image is seen in `room`, tdi_seen_floats of it; nothing where images are seen in place. */
static inline void tdi_seen_clear(const tdi_seen *s, float *room)
{
    if (!tdi_seen_in_place(s))
        tdi_clear(room, tdi_seen_floats(s));
}

/* Where it lies, or in `room`, which was cleared, or holds another image. */
static inline const float *tdi_see(const tdi_seen *s, const float *image, float *room)
{
    if (tdi_seen_in_place(s))
        return image;
    int64_t begin = tdi_most(-s->left, 0), end = tdi_least(s->columns - s->left, s->w);
    for (int64_t y = 0; y < s->h && begin < end; y++)
        memcpy(room + y * tdi_seen_row(s) + (s->left + begin) * s->c, image + (y * s->w + begin) * s->c,
               (size_t)((end - begin) * s->c) * sizeof *room);
    return room;
}

/* ---- what is taken ---- */

/* Operations, by what is asked for and by what the loops do: of lanes that stay empty and of zeros between cells too.
 */
typedef struct tdi_work {
    double asked, done;
} tdi_work;

/* Takes a core a tenth of a millisecond at most. */
static inline bool tdi_is_little(tdi_work w)
{
    return w.done <= 12e6;
}

/* What the library does around its work, allocating among it, would show in the call of a control loop; unless most of
 * more than a dozen microseconds would be in vain. */
static inline bool tdi_is_for_broadcast(tdi_work w)
{
    return tdi_is_little(w) && (w.done <= 2e6 || w.done <= 6 * w.asked);
}

static inline tdi_confidence tdi_broadcast_confidence(tdi_work w)
{
    return tdi_is_for_broadcast(w) ? TDI_SURE : w.done > 2 * w.asked ? TDI_UNLIKELY : TDI_LIKELY;
}

/* Of many channels Winograd's method and products make more; room for large images others do not need. */
static inline const char *tdi_broadcast_declines(const tdi_seen *x, const tdi_axis *rows, const tdi_axis *columns,
                                                 const td_shape *filter, tdi_work w)
{
#if defined(TANDEM_ONEDNN)
    enum { MANY = 32, LARGE = 1 << 22 /* floats */ };
    bool strides = rows->stride * rows->apart > 1 || columns->stride * columns->apart > 1;
    bool point = filter->dim[0] == 1 && filter->dim[1] == 1;
    if (filter->dim[2] >= MANY && filter->dim[3] >= MANY && (point || !strides) && !tdi_is_little(w))
        return "many channels";
    return tdi_seen_floats(x) > LARGE && !tdi_is_for_broadcast(w) ? "a large image with zeros around" : NULL;
#else
    (void)x, (void)rows, (void)columns, (void)filter, (void)w;
    return NULL;
#endif
}

/* TD_UNSUPPORTED: lanes do not share the channels of groups. */
static inline td_status tdi_broadcast_check_share(const tdi_call *call, tdi_error *error)
{
    bool groups = ((const tdi_conv2d_attrs *)call->attrs)->groups > 1;
    return call->split == TDI_COLUMNS && groups ? tdi_fail(error, TD_UNSUPPORTED, "groups by filters") : TD_OK;
}

#endif
