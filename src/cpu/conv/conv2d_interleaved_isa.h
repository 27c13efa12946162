/* conv2d_interleaved_isa.h - what convolutions of few channels share: the batch-interleaved layout, in which each SIMD
 * lane works on a sample of its own (batch_interleaved_isa.h), so that all lanes are in use however few channels there
 * are. */
#ifndef TDI_CPU_CONV_CONV2D_INTERLEAVED_ISA_H
#define TDI_CPU_CONV_CONV2D_INTERLEAVED_ISA_H

#include "cpu/batch_interleaved_isa.h"
#include "cpu/prefetch_lines.h"
#include "cpu/vector_loops.h"

#if defined(__AVX512F__)
enum {
    TDI_CONV_ROWS = 8,
    TDI_CONV_COLUMNS = 4,
    TDI_CONV_SUMS = 24
}; /* rows, columns and sums of a register tile, at most */
#else
enum { TDI_CONV_ROWS = 4, TDI_CONV_COLUMNS = 3, TDI_CONV_SUMS = 12 };
#endif
enum { TDI_CONV_FEW = 16 /* channels, at most */ };

/* Columns [begin, end) of a row of x. */
typedef struct tdi_span {
    int32_t begin, end;
} tdi_span;

#define TDI_CONV_BLANK ((tdi_span){INT32_MAX, INT32_MIN}) /* no column */

/* One convolution: x [h, row, c, lane], filter [kh, kw, c, f] -> y [oh, ow, f, lane]. */
typedef struct tdi_conv {
    int64_t samples; /* this call makes `samples` samples from `first` on */
    int64_t first;
    int64_t h, w, c, kh, kw, f, oh, ow, stride_h, stride_w;
    int64_t before_h, before_w;
    int64_t row; /* columns of a row of x that is read: with the padding, or w when x is read in place */
    bool in_place;
    const tdi_span *nonblank; /* [h]: each row of x is zero outside of these columns; NULL: not known */
} tdi_conv;

/* Rows [begin, end). */
typedef struct tdi_rows {
    int64_t begin, end;
} tdi_rows;

/* Makes row oy of y; bias may be NULL. Returns the columns that it has made. The others see blank columns alone: there
 * y is the bias. */
tdi_rows TDI_ISA_NAME(tdi_conv_row)(const tdi_conv *p, const float *x, const float *filter, const float *bias,
                                    int64_t oy, float *to);

/* Adds to `sums` [kh, kw, c, f, lane] the share of rows `y` in the filter's gradient; dy begins with the first of these
 * rows. `fresh`: `sums` is uninitialised, and each row of the filter meets at least one of these rows outside of the
 * padding. */
void TDI_ISA_NAME(tdi_conv_correlate)(const tdi_conv *p, const float *x, const float *dy, tdi_rows y, bool fresh,
                                      float *sums);

/* Adds up the lanes of each of `count` vectors. */
void TDI_ISA_NAME(tdi_conv_add_lanes)(const float *sums, int64_t count, float *to);

/* Returns block `block` of x with its padding left and right: in place, or made in `padded`, which has
 * tdi_conv_padded_floats. */
const float *TDI_ISA_NAME(tdi_conv_padded)(const tdi_conv *p, const tdi_value *x, int64_t block, float *padded);

/* Finds the nonblank columns of each row in a padded block; returns whether any column is blank. */
bool TDI_ISA_NAME(tdi_conv_find_nonblank)(const tdi_conv *p, const float *padded, tdi_span *nonblank);

static inline void tdi_clear(float *to, int64_t count)
{
    memset(to, 0, (size_t)count * sizeof *to);
}

/* Rounds a distance between matrices or images up to an odd number of cache lines, so that the same place in all of
 * them does not fall into one cache set. */
static inline int64_t tdi_odd_lines(int64_t floats)
{
    enum { LINE_FLOATS = 16 };
    return ((floats + LINE_FLOATS - 1) / LINE_FLOATS | 1) * LINE_FLOATS;
}

static inline int64_t tdi_conv_row_of_x(const tdi_conv *p)
{
    return p->row * p->c * TDI_WIDTH;
}

static inline int64_t tdi_conv_row_of_y(const tdi_conv *p)
{
    return p->ow * p->f * TDI_WIDTH;
}

static inline int64_t tdi_conv_padded_floats(const tdi_conv *p)
{
    return p->in_place ? 0 : p->h * tdi_conv_row_of_x(p);
}

/* Floats of scratch for the spans of nonblank columns. */
static inline int64_t tdi_conv_span_floats(const tdi_conv *p)
{
    return p->h * (int64_t)(sizeof(tdi_span) / sizeof(float));
}

static inline int64_t tdi_conv_filter_floats(const tdi_conv *p)
{
    return p->kh * p->kw * p->c * p->f;
}

/* The number of samples in block `block`. */
static inline int64_t tdi_conv_block_samples(const tdi_conv *p, int64_t block)
{
    return tdi_least(p->samples - block * TDI_WIDTH, TDI_WIDTH);
}

/* Applies the activation to some columns of a row of y. */
static inline void tdi_conv_activate(const tdi_conv *p, tdi_rows columns, int activation, float *row)
{
    int64_t column = p->f * TDI_WIDTH, count = columns.end - columns.begin;
    if (count > 0)
        TDI_ISA_NAME(tdi_vector_loops).epilogue(1, count * column, 0, NULL, activation, row + columns.begin * column);
}

static inline tdi_conv tdi_conv_of(const tdi_call *call, const td_shape *x, const td_shape *filter, const td_shape *y)
{
    const tdi_conv2d_attrs *a = call->attrs;
    bool rows = call->split == TDI_ROWS;
    tdi_conv p = {.h = x->dim[1], .w = x->dim[2], .c = x->dim[3], .kh = filter->dim[0], .kw = filter->dim[1]};
    p.first = rows ? call->begin : 0;
    p.samples = rows ? call->end - call->begin : x->dim[0];
    p.f = y->dim[3];
    p.oh = y->dim[1];
    p.ow = y->dim[2];
    p.stride_h = a->stride_h;
    p.stride_w = a->stride_w;
    p.before_h = tdi_conv2d_window_h(a, x, filter).before;
    p.before_w = tdi_conv2d_window_w(a, x, filter).before;
    return p;
}

/* Decides how rows of x are read: in place, when x is interleaved and needs no padding left or right. */
static inline void tdi_conv_set_row(tdi_conv *p, bool interleaved)
{
    int64_t padded = (p->ow - 1) * p->stride_w + p->kw;
    p->in_place = interleaved && p->before_w == 0 && padded <= p->w;
    p->row = p->in_place ? p->w : padded;
}

/* The convolution of dy that gives the input's gradient: the filter is turned about. Strides are 1. */
static inline tdi_conv tdi_conv_turned_about(const tdi_conv *p)
{
    tdi_conv t = *p;
    t.h = p->oh;
    t.w = p->ow;
    t.c = p->f;
    t.f = p->c;
    t.oh = p->h;
    t.ow = p->w;
    t.before_h = p->kh - 1 - p->before_h;
    t.before_w = p->kw - 1 - p->before_w;
    return t;
}

/* ---- what is taken ---- */

static inline const char *tdi_conv_declines(const tdi_call *call, const td_shape *x, const td_shape *y)
{
    const tdi_conv2d_attrs *a = call->attrs;
    if (a->groups > 1 || a->dilation_h > 1 || a->dilation_w > 1)
        return "groups or dilation";
    return x->dim[3] > TDI_CONV_FEW || y->dim[3] > TDI_CONV_FEW ? "many channels" : NULL;
}

/* Whether at least two thirds of the lanes hold a sample; work in the others is wasted. */
static inline bool tdi_fills_lanes(int64_t samples)
{
    return 3 * samples >= 2 * ((samples + TDI_WIDTH - 1) / TDI_WIDTH * TDI_WIDTH);
}

/* Declines padding that is wider than the rows that are read, or, for the input's gradient, than the filter. */
static inline const char *tdi_conv_declines_padding(const tdi_conv *p)
{
    return p->before_w < 0 || p->before_w > p->row ? "padding that reaches further than the filter" : NULL;
}

static inline td_status tdi_conv_check_samples(const tdi_conv *p, tdi_error *error)
{
    if (tdi_fills_lanes(p->samples))
        return TD_OK;
    return tdi_fail(error, TD_UNSUPPORTED, "%lld samples would leave many of %d lanes empty", (long long)p->samples,
                    (int)TDI_WIDTH);
}

static inline tdi_batch_interleaving tdi_conv_prefers_interleaving(const tdi_call *call)
{
    return tdi_fills_lanes(call->in[0].shape.dim[0]) ? TDI_PREFERS_INTERLEAVING : TDI_NO_INTERLEAVING;
}

#endif
