/* conv2d_grad_filter_broadcast_isa.c - the gradient of a convolution's filter, one filter per SIMD lane
 * (conv2d_broadcast_isa.h). A vector of dy is multiplied by several neighbouring numbers of x, each broadcast. The
 * sums stay in registers over some rows of dy, which stay in the caches for the whole filter. */
#include "cpu/conv/conv2d_broadcast_isa.h"
#include "cpu/kernels.h"

#if defined(__AVX512F__)
enum { TAPS = 12 };
#else
enum { TAPS = 6 };
#endif
enum { VECTORS = 2, ROOM = 1 << 14 /* floats of dy */ };

/* x, dy [samples, y_h, y_w, filters] -> the filter's gradient [kh, kw, c, filters]. */
typedef struct conv {
    tdi_padded x;
    tdi_axis rows, columns;
    int64_t samples, y_h, y_w, filters;
    int64_t filter;       /* this call makes filters from `filter` on */
    int64_t groups, c, f; /* of a group */
    int64_t runs, run;    /* contiguous stretches of x under a row of the filter; numbers in each */
    int64_t together;     /* rows of dy that are worked on at a time */
} conv;

static conv conv_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *dy = &call->in[1].shape, *filter = &call->out.shape;
    bool columns = call->split == TDI_COLUMNS;
    conv v = {.rows = tdi_rows_forward(a, x, filter),
              .columns = tdi_columns_forward(a, x, filter),
              .samples = x->dim[0],
              .y_h = dy->dim[1],
              .y_w = dy->dim[2],
              .filters = dy->dim[3],
              .filter = columns ? call->begin : 0,
              .groups = a->groups,
              .c = filter->dim[2],
              .f = columns ? call->end - call->begin : dy->dim[3] / a->groups,
              .runs = a->dilation_w == 1 && a->groups == 1 ? 1 : filter->dim[1]};
    v.run = v.columns.size * v.c / v.runs;
    v.together = tdi_share_of(v.y_h, tdi_most(ROOM / (v.y_w * v.filters), 1));
    v.x = tdi_padded_for(x, &v.columns, v.y_w);
    return v;
}

/* Where some neighbouring numbers of x, some filters of dy and their sums are. */
typedef struct place {
    const float *x, *dy;
    int64_t rows, count; /* rows of dy; filters */
    float *sums;
    bool begins;
} place;

TDI_INLINE tdi_vector dy_vector(bool partial, const float *dy, int64_t count)
{
    return partial ? tdi_load_first(dy, count) : tdi_load(dy);
}

/* Makes or adds a tile of sums. `partial`: the last vector is not full. */
TDI_INLINE void add_tile(int taps, int vectors, bool partial, const conv *v, place at)
{
    tdi_vector sum[TAPS][VECTORS] = {{{0}}};
    int64_t step = v->columns.stride * v->x.c, row = v->rows.stride * tdi_padded_row(&v->x);
    for (int64_t oy = 0; oy < at.rows; oy++, at.x += row) {
        const float *x = at.x;
        for (int64_t ox = 0; ox < v->y_w; ox++, x += step, at.dy += v->filters) {
            tdi_vector d[VECTORS];
            TDI_UNROLL
            for (int j = 0; j < vectors; j++)
                d[j] = dy_vector(partial && j == vectors - 1, at.dy + j * TDI_WIDTH, at.count - j * TDI_WIDTH);
            TDI_UNROLL
            for (int i = 0; i < taps; i++) {
                TDI_UNROLL
                for (int j = 0; j < vectors; j++)
                    sum[i][j] += x[i] * d[j];
            }
        }
    }
    TDI_UNROLL
    for (int i = 0; i < taps; i++) {
        TDI_UNROLL
        for (int j = 0; j < vectors; j++) {
            float *to = at.sums + i * v->filters + j * TDI_WIDTH;
            int64_t count = at.count - j * TDI_WIDTH;
            tdi_store_first(to, at.begins ? sum[i][j] : tdi_load_first(to, count) + sum[i][j], count);
        }
    }
}

#define TILE(taps)                                                                                                     \
    case taps:                                                                                                         \
        if (at.count == VECTORS * TDI_WIDTH)                                                                           \
            add_tile(taps, 2, false, v, at);                                                                           \
        else if (at.count > TDI_WIDTH)                                                                                 \
            add_tile(taps, 2, true, v, at);                                                                            \
        else if (at.count == TDI_WIDTH)                                                                                \
            add_tile(taps, 1, false, v, at);                                                                           \
        else                                                                                                           \
            add_tile(taps, 1, true, v, at);                                                                            \
        break

static void add_any_tile(int64_t taps, const conv *v, place at)
{
    switch (taps) {
#if defined(__AVX512F__)
        TILE(12);
        TILE(11);
        TILE(10);
        TILE(9);
        TILE(8);
        TILE(7);
#endif
        TILE(6);
        TILE(5);
        TILE(4);
        TILE(3);
        TILE(2);
        TILE(1);
    }
}

/* Adds a contiguous stretch of x, with all filters of its group. */
static void add_run(const conv *v, place at)
{
    for (int64_t k = 0, now; k < v->run; k += now) {
        now = tdi_share_of(v->run - k, TAPS);
        for (int64_t f = 0; f < v->f; f += VECTORS * TDI_WIDTH) {
            place tile = at;
            tile.x += k;
            tile.dy += f;
            tile.count = tdi_least(v->f - f, VECTORS * TDI_WIDTH);
            tile.sums += k * v->filters + f;
            add_any_tile(now, v, tile);
        }
    }
}

/* Adds what row ky of the filter meets for rows [begin, end) of dy. */
static void add_filter_row(const conv *v, const float *x, const float *dy, int64_t ky, int64_t begin, int64_t end,
                           bool begins, float *sums)
{
    const tdi_axis *h = &v->rows;
    int64_t above = ky * h->dilation - h->before;
    begin = tdi_most(begin, tdi_places_before(0, above, h->stride));
    end = tdi_least(end, tdi_places_before(h->cells, above, h->stride));
    place at = {.rows = tdi_most(end - begin, 0), .begins = begins};
    for (int64_t r = 0; r < v->runs; r++)
        for (int64_t group = 0; group < v->groups; group++) {
            int64_t cell = r * v->columns.dilation; /* x is padded */
            at.x = x + (begin * h->stride + above) * tdi_padded_row(&v->x) + cell * v->x.c + group * v->c;
            at.dy = dy + begin * v->y_w * v->filters + v->filter + group * v->f;
            at.sums = sums + (ky * v->runs + r) * v->run * v->filters + v->filter + group * v->f;
            add_run(v, at);
        }
}

static tdi_work work_of(const tdi_call *call, const conv *v)
{
    double pixels = (double)(v->samples * v->y_h * v->y_w), lanes = (double)tdi_rounded_up(v->f, TDI_WIDTH);
    double taps = (double)(v->rows.size * v->runs * v->run * v->groups);
    return (tdi_work){tdi_op_conv2d_grad_filter.flops(call), 2 * pixels * taps * lanes};
}

static const char *declines(const tdi_call *call)
{
    conv v = conv_of(call);
    return tdi_broadcast_declines(&v.x, &v.rows, &v.columns, &call->out.shape, work_of(call, &v));
}

static tdi_confidence confidence(const tdi_call *call)
{
    conv v = conv_of(call);
    return tdi_broadcast_confidence(work_of(call, &v));
}

static td_status prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv v = conv_of(call);
    *scratch = (size_t)tdi_padded_floats(&v.x) * sizeof(float);
    return tdi_broadcast_check_share(call, error);
}

static void run(const tdi_call *call)
{
    conv v = conv_of(call);
    int64_t of_x = v.x.h * v.x.w * v.x.c, of_dy = v.y_h * v.y_w * v.filters;
    tdi_padded_clear(&v.x, call->scratch);
    for (int64_t i = 0; i < v.samples; i++) {
        const float *x = tdi_pad_image(&v.x, (const float *)call->in[0].data + i * of_x, call->scratch);
        const float *dy = (const float *)call->in[1].data + i * of_dy;
        for (int64_t oy = 0; oy < v.y_h; oy += v.together)
            for (int64_t ky = 0; ky < v.rows.size; ky++)
                add_filter_row(&v, x, dy, ky, oy, tdi_least(oy + v.together, v.y_h), i == 0 && oy == 0, call->out.data);
    }
}

const tdi_kernel TDI_ISA_NAME(tdi_cpu_broadcast_conv2d_grad_filter) = {.name = TDI_ISA_TEXT
                                                                       " broadcast conv2d_grad_filter",
                                                                       .op = &tdi_op_conv2d_grad_filter,
                                                                       .splits = TDI_CAN_COLUMNS,
                                                                       .declines = declines,
                                                                       .confidence = confidence,
                                                                       .prepare = prepare,
                                                                       .run = run};
