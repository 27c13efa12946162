/* conv2d_broadcast_isa.c - convolutions of any channels, groups, strides and dilation, and the gradients of their
 * inputs: one filter per SIMD lane, by which one broadcast number of x is multiplied at a time
 * (conv2d_broadcast_isa.h).
 *
 * Where a row of the filter meets neighbouring pixels, [kw, c] of x is a straight run of numbers. Each of them is
 * broadcast to all lanes, for several neighbouring pixels at a time, whose sums stay in registers over the whole depth.
 * Filters are packed into whole vectors, the bias before them.
 *
 * The gradient of an input is the convolution of dy, its cells spread apart by the strides, with the filter turned
 * about and its sides swapped. "Neighbours" are then the pixels that meet cells at the same places of the filter, which
 * lie some pixels apart: so no zeros between cells are multiplied.
 *
 * It is chosen without timing where there are few operations, since oneDNN would allocate; else it is timed, and is
 * unlikely where most lanes stay empty. Large convolutions of many channels without strides are left to other
 * kernels. */
#include "cpu/conv/conv2d_broadcast_isa.h"
#include "cpu/kernels.h"

#if defined(__AVX512F__)
enum { PIXELS = 14 };
#else
enum { PIXELS = 6 };
#endif
enum { VECTORS = 2 };

/* x -> y [samples, y_h, y_w, filters]. Going back, `x` is dy and `y` is dx. */
typedef struct conv {
    tdi_padded x;
    tdi_axis rows, columns;
    int64_t first, samples;
    int64_t y_h, y_w, filters, filter; /* this call makes filters from `filter` on */
    int64_t groups, c, f;              /* c: channels that a group reads; f: filters of a group that this call makes */
    int activation;
    const float *bias; /* or NULL */
    bool back;         /* the filter is turned about, and its third axis is made */
} conv;

/* ---- shapes ---- */

static conv forward_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *x = &call->in[0].shape, *filter = &call->in[1].shape, *y = &call->out.shape;
    bool rows = call->split == TDI_ROWS, columns = call->split == TDI_COLUMNS;
    conv v = {.rows = tdi_rows_forward(a, x, filter),
              .columns = tdi_columns_forward(a, x, filter),
              .first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : x->dim[0],
              .y_h = y->dim[1],
              .y_w = y->dim[2],
              .filters = y->dim[3],
              .filter = columns ? call->begin : 0,
              .groups = a->groups,
              .c = filter->dim[2],
              .f = columns ? call->end - call->begin : y->dim[3] / a->groups,
              .activation = a->activation,
              .bias = call->n_in > 2 ? call->in[2].data : NULL};
    v.x = tdi_padded_for(x, &v.columns, v.y_w);
    return v;
}

/* The axis going back: `cells` of dy. */
static tdi_axis turned(tdi_axis forward, int64_t cells)
{
    return (tdi_axis){.cells = cells,
                      .size = forward.size,
                      .stride = 1,
                      .dilation = forward.dilation,
                      .apart = forward.stride,
                      .before = (forward.size - 1) * forward.dilation - forward.before};
}

static conv back_of(const tdi_call *call)
{
    const tdi_conv2d_attrs *a = call->attrs;
    const td_shape *dy = &call->in[0].shape, *filter = &call->in[1].shape, *dx = &call->out.shape;
    bool rows = call->split == TDI_ROWS, columns = call->split == TDI_COLUMNS;
    conv v = {.rows = turned(tdi_rows_forward(a, dx, filter), dy->dim[1]),
              .columns = turned(tdi_columns_forward(a, dx, filter), dy->dim[2]),
              .first = rows ? call->begin : 0,
              .samples = rows ? call->end - call->begin : dx->dim[0],
              .y_h = dx->dim[1],
              .y_w = dx->dim[2],
              .filters = dx->dim[3],
              .filter = columns ? call->begin : 0,
              .groups = a->groups,
              .c = dy->dim[3] / a->groups,
              .f = columns ? call->end - call->begin : filter->dim[2],
              .activation = TD_LINEAR,
              .back = true};
    v.x = tdi_padded_for(dy, &v.columns, v.y_w);
    return v;
}

/* ---- the filter: [groups][vectors of filters][bias, kh, kw, c][lane] ---- */

static int64_t depth_of(const conv *v)
{
    return v->rows.size * v->columns.size * v->c;
}

static int64_t vector_floats(const conv *v)
{
    return (1 + depth_of(v)) * TDI_WIDTH;
}

static int64_t group_floats(const conv *v)
{
    return (v->f + TDI_WIDTH - 1) / TDI_WIDTH * vector_floats(v);
}

/* Packs `count` filters of filter [kh kw c][filters]. */
static void pack_rows(const conv *v, const float *filter, int64_t count, float *to)
{
    for (int64_t k = 0; k < depth_of(v); k++, to += TDI_WIDTH)
        tdi_store(to, tdi_load_first(filter + k * v->filters, count));
}

/* Packs filter [kh kw][filters of a group][channels of dy] going back, the last place first: `count` rows become lanes.
 */
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
    int64_t first = v->filter + group * v->f + f, count = v->f - f, places = v->rows.size * v->columns.size;
    int64_t place = v->filters / v->groups * v->x.c; /* floats of a place, going back */
    tdi_store(to, v->bias ? tdi_load_first(v->bias + first, count) : (tdi_vector){0});
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

/* ---- making y ---- */

/* Pixels of y that meet x at the same places of the filter, and up to VECTORS vectors of filters. */
typedef struct place {
    const float *x, *filter; /* x at the first place for the first pixel; the packed filter's first vector */
    const float *bias;
    tdi_places rows, columns;
    int64_t run;   /* contiguous numbers of x from a column's place on */
    int64_t pixel; /* floats of x from pixel to pixel */
    int64_t count; /* filters */
    float *to;
    int64_t to_pixel;
} place;

TDI_INLINE void make_tile(int pixels, int vectors, const conv *v, const place *p)
{
    tdi_vector sum[PIXELS][VECTORS];
    int64_t vector = vector_floats(v), step = p->pixel, c = v->c * TDI_WIDTH;
    const float *x_row = p->x, *filter_row = p->filter;
    bool relu = v->activation == TD_RELU;
    TDI_UNROLL
    for (int i = 0; i < pixels; i++) {
        TDI_UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = tdi_load(p->bias + j * vector);
    }
    for (int64_t ky = 0; ky < p->rows.count; ky++) {
        const float *x = x_row, *filter = filter_row;
        for (int64_t kx = 0; kx < p->columns.count; kx++) {
            for (int64_t k = 0; k < p->run; k++) {
                tdi_vector by[VECTORS];
                TDI_UNROLL
                for (int j = 0; j < vectors; j++)
                    by[j] = tdi_load_to_register(filter + k * TDI_WIDTH + j * vector);
                TDI_UNROLL
                for (int i = 0; i < pixels; i++) {
                    TDI_UNROLL
                    for (int j = 0; j < vectors; j++)
                        sum[i][j] += x[k + i * step] * by[j];
                }
            }
            x += p->columns.cells * v->x.c;
            filter += p->columns.step * c;
        }
        x_row += p->rows.cells * tdi_padded_row(&v->x);
        filter_row += p->rows.step * v->columns.size * c;
    }
    TDI_UNROLL
    for (int i = 0; i < pixels; i++) {
        TDI_UNROLL
        for (int j = 0; j < vectors; j++)
            tdi_store_first(p->to + i * p->to_pixel + j * TDI_WIDTH,
                            relu ? tdi_select(sum[i][j] < 0.0f, (tdi_vector){0}, sum[i][j]) : sum[i][j],
                            p->count - j * TDI_WIDTH);
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

/* Applies the activation to `count` filters of a row of y, which may be all; relu has been applied already. */
static void activate(const conv *v, int64_t count, float *y)
{
    bool all = count == v->filters;
    if (v->activation != TD_LINEAR && v->activation != TD_RELU)
        TDI_ISA_NAME(tdi_vector_loops)
            .epilogue(all ? 1 : v->y_w, all ? v->y_w * count : count, v->filters, NULL, v->activation, y);
}

/* Makes pixels ox, ox + apart, ... of a row of y. `at` has the rows, which lie within x. Columns may lie left and right
 * of the image, where x is padded with zeros. Neighbours in x that are met by neighbours of the filter make one run. */
static void make_pixels(const conv *v, const float *x, int64_t ox, const place *at, float *y)
{
    const tdi_axis *w = &v->columns;
    place p = *at;
    p.columns = tdi_places_of_pixel(w, ox);
    bool straight = v->groups == 1 && p.columns.step == 1 && p.columns.cells == 1;
    p.run = straight ? p.columns.count * v->c : v->c;
    p.pixel = w->stride * v->x.c; /* going back, it is the distance of cells */
    p.to_pixel = w->apart * v->filters;
    p.filter += ((p.rows.first * w->size + p.columns.first) * v->c) * TDI_WIDTH;
    p.x = x + p.rows.cell * tdi_padded_row(&v->x) + (v->x.left + p.columns.cell) * v->x.c;
    p.to = y + ox * v->filters;
    if (straight)
        p.columns.count = 1;
    for (int64_t left = tdi_places_before(v->y_w, ox, w->apart), now; left > 0; left -= now) {
        now = tdi_share_of(left, PIXELS);
        make_any_tile(now, v, &p);
        p.x += now * p.pixel;
        p.to += now * p.to_pixel;
    }
}

/* Makes one image for the filters of a group that fill VECTORS vectors. */
static void make_filters(const conv *v, const float *x, const float *filter, int64_t count, float *y)
{
    for (int64_t oy = 0; oy < v->y_h; oy++, y += v->y_w * v->filters) {
        place at = {.bias = filter, .filter = filter + TDI_WIDTH, .count = count};
        at.rows = tdi_places_inside(&v->rows, tdi_places_of_pixel(&v->rows, oy));
        for (int64_t ox = 0; ox < tdi_least(v->columns.apart, v->y_w); ox++)
            make_pixels(v, x, ox, &at, y);
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

static bool is_cached(const tdi_call *call)
{
    return tdi_is_constant_input(call, 1) &&
           (call->n_in < 3 || !call->in[2].shape.rank || tdi_is_constant_input(call, 2));
}

static size_t packed_bytes(const conv *v)
{
    return (size_t)(v->groups * group_floats(v)) * sizeof(float);
}

static size_t cache_bytes(const tdi_call *call, const conv *v)
{
    return is_cached(call) ? packed_bytes(v) : 0;
}

/* The scratch has a padded image, then the packed filter where that is not kept. */
static size_t seen_bytes(const conv *v)
{
    return (size_t)tdi_rounded_up(tdi_padded_floats(&v->x), 16) * sizeof(float);
}

static size_t room_of(const tdi_call *call, const conv *v)
{
    return seen_bytes(v) + (is_cached(call) ? 0 : packed_bytes(v));
}

static void run(const conv *v, const tdi_call *call)
{
    char *room = call->scratch;
    float *filter = call->packed_cache ? tdi_packed_cache(call) : (void *)(room + seen_bytes(v));
    int64_t of_x = v->x.h * v->x.w * v->x.c, of_y = v->y_h * v->y_w * v->filters;
    if (tdi_must_pack(call))
        pack(v, call->in[1].data, filter);
    tdi_padded_clear(&v->x, call->scratch);
    for (int64_t i = v->first; i < v->first + v->samples; i++) {
        const float *x = tdi_pad_image(&v->x, (const float *)call->in[0].data + i * of_x, call->scratch);
        make_image(v, x, filter, (float *)call->out.data + i * of_y);
    }
}

/* Counts the loops' operations: zeros left and right are multiplied, places between cells are not. */
static tdi_work work_of(const conv *v, double asked)
{
    double pixels = (double)(v->samples * v->y_h * v->y_w), lanes = (double)tdi_rounded_up(v->f, TDI_WIDTH);
    double met = (double)(v->groups * depth_of(v)) / (double)(v->rows.apart * v->columns.apart);
    return (tdi_work){asked, 2 * pixels * met * lanes};
}

static const char *conv2d_declines(const tdi_call *call)
{
    conv v = forward_of(call);
    return tdi_broadcast_declines(&v.x, &v.rows, &v.columns, &call->in[1].shape,
                                  work_of(&v, tdi_op_conv2d.flops(call)));
}

static tdi_confidence conv2d_confidence(const tdi_call *call)
{
    conv v = forward_of(call);
    return tdi_broadcast_confidence(work_of(&v, tdi_op_conv2d.flops(call)));
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

static size_t conv2d_packed_cache_bytes(const tdi_call *call)
{
    conv v = forward_of(call);
    return cache_bytes(call, &v);
}

static void conv2d_run(const tdi_call *call)
{
    conv v = forward_of(call);
    run(&v, call);
}

static const char *back_declines(const tdi_call *call)
{
    conv v = back_of(call);
    return tdi_broadcast_declines(&v.x, &v.rows, &v.columns, &call->in[1].shape,
                                  work_of(&v, tdi_op_conv2d_grad_input.flops(call)));
}

static tdi_confidence back_confidence(const tdi_call *call)
{
    conv v = back_of(call);
    return tdi_broadcast_confidence(work_of(&v, tdi_op_conv2d_grad_input.flops(call)));
}

static td_status back_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    conv v = back_of(call);
    return prepare(call, &v, scratch, error);
}

static size_t back_packed_cache_bytes(const tdi_call *call)
{
    conv v = back_of(call);
    return cache_bytes(call, &v);
}

static void back_run(const tdi_call *call)
{
    conv v = back_of(call);
    run(&v, call);
}

const tdi_kernel TDI_ISA_NAME(tdi_cpu_broadcast_conv2d) = {.name = TDI_ISA_TEXT " broadcast conv2d",
                                                           .op = &tdi_op_conv2d,
                                                           .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                                           .declines = conv2d_declines,
                                                           .confidence = conv2d_confidence,
                                                           .prepare = conv2d_prepare,
                                                           .packed_cache_bytes = conv2d_packed_cache_bytes,
                                                           .run = conv2d_run};

const tdi_kernel TDI_ISA_NAME(tdi_cpu_broadcast_conv2d_grad_input) = {.name = TDI_ISA_TEXT
                                                                      " broadcast conv2d_grad_input",
                                                                      .op = &tdi_op_conv2d_grad_input,
                                                                      .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS,
                                                                      .declines = back_declines,
                                                                      .confidence = back_confidence,
                                                                      .prepare = back_prepare,
                                                                      .packed_cache_bytes = back_packed_cache_bytes,
                                                                      .run = back_run};
