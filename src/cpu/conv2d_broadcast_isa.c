/* conv2d_broadcast_isa.c - convolutions with filters in the lanes (conv2d_broadcast_isa.h), and the gradients of their
 * inputs.
 *
 * Where a row of the filter sees neighbours, [kw, c] of x is a straight run of numbers. Each of them is broadcast to
 * the lanes, for some neighbouring pixels at a time, whose sums stay in registers over the whole depth. Filters are
 * packed into whole vectors, the bias before them.
 *
 * The gradient of an input is the convolution of dy, its cells set apart by the strides, with the filter turned round,
 * its sides swapped. */
#include "cpu/conv2d_broadcast_isa.h"
#include "cpu/kernels.h"
#include "cpu/made_isa.h"

#if defined(__AVX512F__)
enum { PIXELS = 14 };
#else
enum { PIXELS = 6 };
#endif
enum { VECTORS = 2 };

/* x -> y [samples, y_h, y_w, filters]; or from dy to dx, which then have these names. */
typedef struct conv {
    tdi_seen x;
    int64_t first, samples;
    int64_t y_h, y_w, filters, filter; /* `filter`: the first that is made */
    int64_t groups, c, f;              /* c: channels that a group sees; f: filters of it that are made */
    int64_t kh, kw, stride_h, stride_w, dilation_h, dilation_w;
    int64_t runs, run; /* straight stretches of x under a row of the filter; numbers in each */
    int activation;
    const float *bias; /* or NULL */
    bool back;         /* the filter is turned, and makes its third axis */
} conv;

/* ---- shapes ---- */

static conv forward_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *filter = &call->in[1].shape, *y = &call->out.shape;
    bool rows = call->split == TDI_ROWS, columns = call->split == TDI_COLUMNS;
    conv v = {.first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : x->dim[0],
              .y_h = y->dim[1],
              .y_w = y->dim[2],
              .filters = y->dim[3],
              .filter = columns ? call->begin : 0,
              .groups = a->groups,
              .c = filter->dim[2],
              .f = columns ? call->end - call->begin : y->dim[3] / a->groups,
              .kh = filter->dim[0],
              .kw = filter->dim[1],
              .stride_h = a->stride_h,
              .stride_w = a->stride_w,
              .dilation_h = a->dilation_h,
              .dilation_w = a->dilation_w,
              .activation = a->activation,
              .bias = call->n_in > 2 ? call->in[2].data : NULL};
    v.x = tdi_seen_forward(a, x, filter, y);
    v.runs = tdi_seen_stretches(a, filter);
    v.run = v.kw * v.c / v.runs;
    return v;
}

static conv back_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *dy = &call->in[0].shape, *filter = &call->in[1].shape, *dx = &call->out.shape;
    bool rows = call->split == TDI_ROWS, columns = call->split == TDI_COLUMNS;
    conv v = {.first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : dx->dim[0],
              .y_h = dx->dim[1],
              .y_w = dx->dim[2],
              .filters = dx->dim[3],
              .filter = columns ? call->begin : 0,
              .groups = a->groups,
              .c = dy->dim[3] / a->groups,
              .f = columns ? call->end - call->begin : filter->dim[2],
              .kh = filter->dim[0],
              .kw = filter->dim[1],
              .stride_h = 1,
              .stride_w = 1,
              .dilation_h = a->dilation_h,
              .dilation_w = a->dilation_w,
              .activation = TD_LINEAR,
              .back = true};
    v.x = (tdi_seen){.h = dy->dim[1],
                     .w = dy->dim[2],
                     .c = dy->dim[3],
                     .top = (v.kh - 1) * v.dilation_h - tdi_conv2d_window_h(a, dx, filter).before,
                     .left = (v.kw - 1) * v.dilation_w - tdi_conv2d_window_w(a, dx, filter).before,
                     .apart_h = a->stride_h,
                     .apart_w = a->stride_w,
                     .rows = v.y_h + (v.kh - 1) * v.dilation_h,
                     .columns = v.y_w + (v.kw - 1) * v.dilation_w};
    v.runs = tdi_seen_stretches(a, filter);
    v.run = v.kw * v.c / v.runs;
    return v;
}

/* ---- the filter: [groups][vectors of filters][bias, kh, kw, c][lane] ---- */

static int64_t depth_of(const conv *v)
{
    return v->kh * v->kw * v->c;
}

static int64_t vector_floats(const conv *v)
{
    return (1 + depth_of(v)) * TDI_WIDTH;
}

static int64_t group_floats(const conv *v)
{
    return (v->f + TDI_WIDTH - 1) / TDI_WIDTH * vector_floats(v);
}

/* Of filter [kh * kw * c][filters]. */
static void pack_rows(const conv *v, const float *filter, int64_t count, float *to)
{
    for (int64_t k = 0; k < depth_of(v); k++, to += TDI_WIDTH)
        tdi_store(to, tdi_load_part(filter + k * v->filters, count));
}

/* Of filter [kh * kw][filters of a group][channels of dy], places from the last on: `count` rows become lanes. */
static void pack_turned(const conv *v, const float *filter, int64_t count, float *to)
{
    int64_t k = 0;
    for (; count >= TDI_WIDTH && k + TDI_WIDTH <= v->c; k += TDI_WIDTH)
        tdi_transpose_square(filter + k, v->x.c, to + k * TDI_WIDTH, TDI_WIDTH);
    tdi_clear(to + k * TDI_WIDTH, (v->c - k) * TDI_WIDTH);
    for (int64_t i = 0; i < tdi_least(count, TDI_WIDTH); i++)
        for (int64_t j = k; j < v->c; j++)
            to[j * TDI_WIDTH + i] = filter[i * v->x.c + j];
}

static void pack_vector(const conv *v, const float *filter, int64_t group, int64_t f, float *to)
{
    int64_t first = v->filter + group * v->f + f, count = v->f - f, places = v->kh * v->kw;
    int64_t place = v->filters / v->groups * v->x.c; /* turned */
    tdi_store(to, v->bias ? tdi_load_part(v->bias + first, count) : (tdi_vector){0});
    to += TDI_WIDTH;
    if (!v->back)
        pack_rows(v, filter + first, count, to);
    for (int64_t i = places - 1; i >= 0 && v->back; i--, to += v->c * TDI_WIDTH)
        pack_turned(v, filter + i * place + (v->filter + f) * v->x.c + group * v->c, count, to);
}

static void pack(const conv *v, const float *filter, float *to)
{
    for (int64_t group = 0; group < v->groups; group++)
        for (int64_t f = 0; f < v->f; f += TDI_WIDTH, to += vector_floats(v))
            pack_vector(v, filter, group, f, to);
}

/* ---- y ---- */

/* Rows of the filter that see cells of x, every `step`th from `begin` on. */
typedef struct rows {
    int64_t begin, end, step;
} rows;

static bool sees_cells(const conv *v, int64_t oy, int64_t ky)
{
    int64_t y = oy * v->stride_h + ky * v->dilation_h - v->x.top;
    return y >= 0 && y % v->x.apart_h == 0 && y / v->x.apart_h < v->x.h;
}

static rows rows_of(const conv *v, int64_t oy)
{
    rows r = {0, v->kh, v->dilation_h == 1 ? v->x.apart_h : 1};
    while (r.begin < r.end && !sees_cells(v, oy, r.begin))
        r.begin++;
    while (r.begin < r.end && !sees_cells(v, oy, r.end - 1))
        r.end--;
    return r;
}

/* Neighbouring pixels of y, and up to VECTORS vectors of filters. */
typedef struct place {
    const float *x, *filter; /* that the first pixel sees; packed */
    rows rows;
    int64_t count; /* of filters */
    float *to;
} place;

TDI_INLINE void make_tile(int pixels, int vectors, const conv *v, const place *p)
{
    tdi_vector sum[PIXELS][VECTORS];
    int64_t vector = vector_floats(v), step = v->stride_w * v->x.c;
    TDI_UNROLL
    for (int i = 0; i < pixels; i++) {
        TDI_UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = tdi_load(p->filter + j * vector);
    }
    for (int64_t ky = p->rows.begin; ky < p->rows.end; ky += p->rows.step) {
        const float *x = p->x + ky * v->dilation_h * tdi_seen_row(&v->x);
        const float *filter = p->filter + ky * v->runs * v->run * TDI_WIDTH;
        for (int64_t r = 0; r < v->runs; r++, x += v->dilation_w * v->x.c)
            for (int64_t k = 0; k < v->run; k++) {
                tdi_vector by[VECTORS];
                filter += TDI_WIDTH;
                TDI_UNROLL
                for (int j = 0; j < vectors; j++)
                    by[j] = tdi_load_once(filter + j * vector);
                TDI_UNROLL
                for (int i = 0; i < pixels; i++) {
                    TDI_UNROLL
                    for (int j = 0; j < vectors; j++)
                        sum[i][j] += x[k + i * step] * by[j];
                }
            }
    }
    TDI_UNROLL
    for (int i = 0; i < pixels; i++) {
        TDI_UNROLL
        for (int j = 0; j < vectors; j++)
            tdi_store_part(p->to + i * v->filters + j * TDI_WIDTH, sum[i][j], p->count - j * TDI_WIDTH);
    }
}

#define TILE(pixels)                                                                                                   \
    case pixels:                                                                                                       \
        if (at->count > TDI_WIDTH)                                                                                     \
            make_tile(pixels, 2, v, at);                                                                               \
        else                                                                                                           \
            make_tile(pixels, 1, v, at);                                                                               \
        break

static void make_any_tile(int64_t pixels, const conv *v, const place *at)
{
    switch (pixels) {
#if defined(__AVX512F__)
        TILE(14);
        TILE(13);
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

/* A row of y, of which these filters may be all. */
static void activate(const conv *v, int64_t count, float *y)
{
    bool all = count == v->filters;
    if (v->activation != TD_LINEAR)
        TDI_ISA_NAME(tdi_loops).epilogue(all ? 1 : v->y_w, all ? v->y_w * count : count, v->filters, NULL,
                                         v->activation, y);
}

/* Of a group the filters that are in VECTORS vectors, of one image. */
static void make_filters(const conv *v, const float *x, const float *filter, int64_t count, float *y)
{
    int64_t row = tdi_seen_row(&v->x), step = v->stride_w * v->x.c;
    for (int64_t oy = 0; oy < v->y_h; oy++, y += v->y_w * v->filters) {
        rows seen = rows_of(v, oy);
        for (int64_t ox = 0, now; ox < v->y_w; ox += now) {
            now = tdi_share_of(v->y_w - ox, PIXELS);
            place at = {x + oy * v->stride_h * row + ox * step, filter, seen, count, y + ox * v->filters};
            make_any_tile(now, v, &at);
        }
        activate(v, count, y);
    }
}

static void make_image(const conv *v, const float *x, const float *filter, float *y)
{
    for (int64_t group = 0; group < v->groups; group++, filter += group_floats(v))
        for (int64_t f = 0; f < v->f; f += VECTORS * TDI_WIDTH)
            make_filters(v, x + group * v->c, filter + f / TDI_WIDTH * vector_floats(v),
                         tdi_least(v->f - f, VECTORS * TDI_WIDTH), y + v->filter + group * v->f + f);
}

/* ---- the kernels ---- */

static bool keeps(const tdi_call *call)
{
    return tdi_is_steady(call, 1) && (call->n_in < 3 || !call->in[2].shape.rank || tdi_is_steady(call, 2));
}

static size_t packed_bytes(const conv *v)
{
    return (size_t)(v->groups * group_floats(v)) * sizeof(float);
}

static size_t bytes_to_keep(const tdi_call *call, const conv *v)
{
    return keeps(call) ? packed_bytes(v) : 0;
}

/* scratch: x as it is seen, the filter where it is not kept, and for what follows */
static size_t seen_bytes(const conv *v)
{
    return (size_t)tdi_rounded_up(tdi_seen_floats(&v->x), 16) * sizeof(float);
}

static size_t made_at(const tdi_call *call, const conv *v)
{
    return seen_bytes(v) + (keeps(call) ? 0 : packed_bytes(v));
}

static size_t room_of(const tdi_call *call, const conv *v)
{
    return made_at(call, v) + TDI_ISA_NAME(tdi_made_bytes)(v->groups * v->f);
}

static void run(const conv *v, const tdi_call *call)
{
    char *room = call->scratch;
    float *filter = call->kept ? tdi_kept(call) : (void *)(room + seen_bytes(v));
    int64_t of_x = v->x.h * v->x.w * v->x.c, of_y = v->y_h * v->y_w * v->filters, pixels = v->y_h * v->y_w;
    tdi_made made =
        TDI_ISA_NAME(tdi_made_none)(call, v->first * pixels, v->filter, v->groups * v->f, room + made_at(call, v));
    if (tdi_must_make(call))
        pack(v, call->in[1].data, filter);
    for (int64_t i = v->first; i < v->first + v->samples; i++) {
        const float *x = tdi_see(&v->x, (const float *)call->in[0].data + i * of_x, call->scratch);
        make_image(v, x, filter, (float *)call->out.data + i * of_y);
        TDI_ISA_NAME(tdi_made_until)(&made, (i + 1) * pixels);
    }
    TDI_ISA_NAME(tdi_made_all)(&made);
}

/* Rows without cells are left out where the filter is not dilated, columns are not. */
static tdi_work work_of(const conv *v, double asked)
{
    double pixels = (double)(v->samples * v->y_h * v->y_w), lanes = (double)tdi_rounded_up(v->f, TDI_WIDTH);
    double rows = v->dilation_h == 1 ? 1.0 / (double)v->x.apart_h : 1;
    return (tdi_work){asked, 2 * pixels * rows * (double)(v->groups * depth_of(v)) * lanes};
}

static const char *conv2d_declines(const tdi_call *call)
{
    conv v = forward_of(call);
    return tdi_broadcast_declines(&v.x, &call->in[1].shape, work_of(&v, tdi_op_conv2d.flops(call)));
}

static tdi_doubt conv2d_doubts(const tdi_call *call)
{
    conv v = forward_of(call);
    return tdi_broadcast_doubts(work_of(&v, tdi_op_conv2d.flops(call)));
}

static td_status prepare(const tdi_call *call, const conv *v, size_t *scratch, tdi_error *error)
{
    *scratch = room_of(call, v);
    return tdi_broadcast_check_share(call, error);
}

static td_status conv2d_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv v = forward_of(call);
    return prepare(call, &v, scratch, error);
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

static const char *back_declines(const tdi_call *call)
{
    conv v = back_of(call);
    return tdi_broadcast_declines(&v.x, &call->in[1].shape, work_of(&v, tdi_op_conv2d_grad_input.flops(call)));
}

static tdi_doubt back_doubts(const tdi_call *call)
{
    conv v = back_of(call);
    return tdi_broadcast_doubts(work_of(&v, tdi_op_conv2d_grad_input.flops(call)));
}

static td_status back_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv v = back_of(call);
    return prepare(call, &v, scratch, error);
}

static size_t back_keeps(const tdi_call *call)
{
    conv v = back_of(call);
    return bytes_to_keep(call, &v);
}

static void back_run(const tdi_call *call)
{
    conv v = back_of(call);
    run(&v, call);
}

const tdi_kernel TDI_ISA_NAME(tdi_cpu_broadcast_conv2d) = {.name = TDI_ISA_TEXT " broadcast conv2d",
                                                           .op = &tdi_op_conv2d,
                                                           .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                                           .shows = true,
                                                           .declines = conv2d_declines,
                                                           .doubts = conv2d_doubts,
                                                           .prepare = conv2d_prepare,
                                                           .keeps = conv2d_keeps,
                                                           .run = conv2d_run};

const tdi_kernel TDI_ISA_NAME(tdi_cpu_broadcast_conv2d_grad_input) = {.name = TDI_ISA_TEXT
                                                                      " broadcast conv2d_grad_input",
                                                                      .op = &tdi_op_conv2d_grad_input,
                                                                      .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                                                      .declines = back_declines,
                                                                      .doubts = back_doubts,
                                                                      .prepare = back_prepare,
                                                                      .keeps = back_keeps,
                                                                      .run = back_run};
