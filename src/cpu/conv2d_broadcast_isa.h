/* conv2d_broadcast_isa.h - what convolutions share that have filters in the lanes of their vectors and meet them with
 * one number of x at a time: of any channels and any number of samples. */
#ifndef TDI_CPU_CONV2D_BROADCAST_ISA_H
#define TDI_CPU_CONV2D_BROADCAST_ISA_H

#include "cpu/conv2d_isa.h"

/* An image [h, w, c] as it is seen: with zeros around it, and between its cells where they are set apart. */
typedef struct tdi_seen {
    int64_t h, w, c;
    int64_t top, left;        /* where its first cell is seen */
    int64_t apart_h, apart_w; /* from a cell to the next */
    int64_t rows, columns;
} tdi_seen;

/* x, forwards. */
static inline tdi_seen tdi_seen_forward(const tdi_conv2d_attrs *a, const td_shape *x, const td_shape *filter,
                                        const td_shape *y)
{
    return (tdi_seen){.h = x->dim[1],
                      .w = x->dim[2],
                      .c = x->dim[3],
                      .top = tdi_conv2d_window_h(a, x, filter).before,
                      .left = tdi_conv2d_window_w(a, x, filter).before,
                      .apart_h = 1,
                      .apart_w = 1,
                      .rows = (y->dim[1] - 1) * a->stride_h + (filter->dim[0] - 1) * a->dilation_h + 1,
                      .columns = (y->dim[2] - 1) * a->stride_w + (filter->dim[1] - 1) * a->dilation_w + 1};
}

/* Under a row of the filter x is seen in so many straight stretches of neighbouring numbers. */
static inline int64_t tdi_seen_stretches(const tdi_conv2d_attrs *a, const td_shape *filter)
{
    return a->dilation_w == 1 && a->groups == 1 ? 1 : filter->dim[1];
}

static inline bool tdi_seen_in_place(const tdi_seen *s)
{
    return s->top == 0 && s->left == 0 && s->apart_h == 1 && s->apart_w == 1 && s->rows <= s->h && s->columns <= s->w;
}

static inline int64_t tdi_seen_row(const tdi_seen *s)
{
    return (tdi_seen_in_place(s) ? s->w : s->columns) * s->c;
}

static inline int64_t tdi_seen_floats(const tdi_seen *s)
{
    return tdi_seen_in_place(s) ? 0 : s->rows * s->columns * s->c;
}

/* How many cells, `apart` from each other, begin before `end`; the first begins at `first`. */
static inline int64_t tdi_cells_before(int64_t end, int64_t first, int64_t apart)
{
    return end <= first ? 0 : (end - first + apart - 1) / apart;
}

static inline void tdi_see_row(const tdi_seen *s, const float *from, float *to)
{
    int64_t begin = tdi_cells_before(0, s->left, s->apart_w);
    int64_t end = tdi_least(tdi_cells_before(s->columns, s->left, s->apart_w), s->w);
    int64_t together = s->apart_w == 1 ? end - begin : 1;
    for (int64_t x = begin; x < end; x += together)
        memcpy(to + (s->left + x * s->apart_w) * s->c, from + x * s->c, (size_t)(together * s->c) * sizeof *to);
}

/* Where it lies, or in `room`, tdi_seen_floats of it. */
static inline const float *tdi_see(const tdi_seen *s, const float *image, float *room)
{
    if (tdi_seen_in_place(s))
        return image;
    int64_t begin = tdi_cells_before(0, s->top, s->apart_h);
    int64_t end = tdi_least(tdi_cells_before(s->rows, s->top, s->apart_h), s->h);
    memset(room, 0, (size_t)tdi_seen_floats(s) * sizeof *room);
    for (int64_t y = begin; y < end; y++)
        tdi_see_row(s, image + y * s->w * s->c, room + (s->top + y * s->apart_h) * tdi_seen_row(s));
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

static inline tdi_doubt tdi_broadcast_doubts(tdi_work w)
{
    return tdi_is_for_broadcast(w) ? TDI_SURE : w.done > 2 * w.asked ? TDI_UNLIKELY : TDI_LIKELY;
}

/* Of many channels others make more, and room for large images others do not need. */
static inline const char *tdi_broadcast_declines(const tdi_seen *x, const td_shape *filter, tdi_work w)
{
#if defined(TANDEM_ONEDNN)
    enum { MANY = 32, LARGE = 1 << 22 /* floats */ };
    if (filter->dim[2] >= MANY && filter->dim[3] >= MANY && !tdi_is_little(w))
        return "many channels";
    return tdi_seen_floats(x) > LARGE && !tdi_is_for_broadcast(w) ? "a large image with zeros around" : NULL;
#else
    (void)x, (void)filter, (void)w;
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
