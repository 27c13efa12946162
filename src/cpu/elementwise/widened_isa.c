/* widened_isa.c - float kernels on bfloat16 values, a piece at a time in the cache: pools sample by sample, sums by
 * stretches of rows. */
#include "cpu/bfloat16_isa.h"
#include "cpu/kernels.h"

enum { MOST_IN = 3, ALIGNMENT = 64 };

/* ---- samples ---- */

/* One sample of a value, as floats that have no place yet. */
static tdi_value sample_of(const tdi_value *value)
{
    tdi_value one = {.shape = value->shape, .dtype = TD_FLOAT32};
    one.shape.dim[0] = 1;
    return one;
}

static size_t room_of(const tdi_value *sample)
{
    size_t bytes = (size_t)tdi_shape_elements(&sample->shape) * sizeof(float);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* What lies behind it. */
static char *place(tdi_value *sample, char *room)
{
    sample->data = room;
    return room + room_of(sample);
}

/* The same call on one sample. */
static tdi_call one_sample(const tdi_call *call, tdi_value *in)
{
    tdi_call one = *call;
    one.in = in;
    for (int i = 0; i < call->n_in; i++)
        in[i] = sample_of(&call->in[i]);
    one.out = sample_of(&call->out);
    one.split = TDI_WHOLE;
    one.begin = 0;
    one.end = 1;
    one.scratch = NULL;
    return one;
}

static td_status prepare_samples(const tdi_kernel *wide, const tdi_call *call, void **state, size_t *scratch,
                                 tdi_error *error)
{
    tdi_value in[MOST_IN];
    tdi_call one = one_sample(call, in);
    *scratch = 0;
    if (wide->prepare)
        TDI_TRY(wide->prepare(&one, state, scratch, error));
    *scratch += room_of(&one.out);
    for (int i = 0; i < call->n_in; i++)
        *scratch += room_of(&in[i]);
    return TD_OK;
}

/* Values first, behind them the kernel's own scratch. */
static void run_samples(const tdi_kernel *wide, const tdi_call *call)
{
    tdi_value in[MOST_IN];
    tdi_call one = one_sample(call, in);
    char *room = place(&one.out, call->scratch);
    for (int i = 0; i < call->n_in; i++)
        room = place(&in[i], room);
    one.scratch = room;
    int64_t begin = call->split == TDI_ROWS ? call->begin : 0;
    int64_t end = call->split == TDI_ROWS ? call->end : call->out.shape.dim[0];
    int64_t made = tdi_shape_elements(&one.out.shape);
    for (int64_t n = begin; n < end; n++) {
        for (int i = 0; i < call->n_in; i++) {
            int64_t count = tdi_shape_elements(&in[i].shape);
            tdi_widen_loop(count, tdi_element(&call->in[i], n * count), in[i].data);
        }
        wide->run(&one);
        tdi_narrow_loop(made, one.out.data, tdi_element(&call->out, n * made));
    }
}

#define BY_SAMPLES(stem)                                                                                               \
    static td_status stem##_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)             \
    {                                                                                                                  \
        return prepare_samples(&TDI_ISA_NAME(tdi_cpu_##stem), call, state, scratch, error);                            \
    }                                                                                                                  \
    static void stem##_run(const tdi_call *call)                                                                       \
    {                                                                                                                  \
        run_samples(&TDI_ISA_NAME(tdi_cpu_##stem), call);                                                              \
    }                                                                                                                  \
    const tdi_kernel TDI_ISA_NAME(tdi_cpu_bfloat16_##stem) = {.name = TDI_ISA_TEXT " bfloat16 " #stem,                 \
                                                              .op = &tdi_op_##stem,                                    \
                                                              .takes = TDI_TAKES_BFLOAT16,                             \
                                                              .splits = TDI_CAN_ROWS,                                  \
                                                              .prepare = stem##_prepare,                               \
                                                              .run = stem##_run};
BY_SAMPLES(max_pool2d)
BY_SAMPLES(max_pool2d_grad)
BY_SAMPLES(average_pool2d)
BY_SAMPLES(average_pool2d_grad)

/* ---- sums: x as [outer, reduced, inner] ---- */

enum { STRETCH = 4096 /* floats that are widened together */, SIDE = 256, FLUSH = 64 };

static const char *reduce_declines(const tdi_call *call)
{
    tdi_reduce_extents e;
    if (((const tdi_reduce_attrs *)call->attrs)->kind == TDI_MAX)
        return "a maximum";
    return tdi_find_reduce_extents(call, &e) ? NULL : "reduced axes that are not adjacent";
}

/* Adds rows of n <= SIDE numbers, `stride` apart. */
static void add_rows(const tdi_bfloat16 *x, int64_t rows, int64_t stride, int64_t n, double *totals)
{
    for (int64_t first = 0; first < rows; first += FLUSH) {
        float sums[SIDE] = {0};
        int64_t end = first + FLUSH < rows ? first + FLUSH : rows;
        for (int64_t r = first; r < end; r++)
            TDI_LANES for (int64_t i = 0; i < n; i++) sums[i] += tdi_widen(x[r * stride + i]);
        for (int64_t i = 0; i < n; i++)
            totals[i] += (double)sums[i];
    }
}

/* Adds adjacent numbers. */
static double add_all(const tdi_bfloat16 *x, int64_t n)
{
    float wide[STRETCH];
    double total = 0;
    for (int64_t i = 0; i < n; i += STRETCH) {
        int64_t now = n - i < STRETCH ? n - i : STRETCH;
        tdi_widen_loop(now, x + i, wide);
        total += tdi_sum(wide, now);
    }
    return total;
}

/* Elements [at, at + n) of the result, all of one outer index, n <= SIDE. */
static void reduce_piece(const tdi_call *call, const tdi_reduce_extents *e, int64_t at, int64_t n)
{
    const tdi_bfloat16 *x = call->in[0].data;
    float *to = (float *)call->out.data + at;
    double totals[SIDE] = {0};
    x += at / e->inner * e->reduced * e->inner + at % e->inner;
    if (e->inner == 1)
        totals[0] = add_all(x, e->reduced);
    else
        add_rows(x, e->reduced, e->inner, n, totals);
    bool mean = ((const tdi_reduce_attrs *)call->attrs)->kind == TDI_MEAN;
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(mean ? totals[i] / (double)e->reduced : totals[i]);
}

static void reduce_run(const tdi_call *call)
{
    tdi_reduce_extents e;
    tdi_find_reduce_extents(call, &e);
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++) {
        int64_t at = runs.first + r * runs.stride, end = at + runs.length;
        for (int64_t n = 0; at < end; at += n) {
            n = e.inner - at % e.inner < end - at ? e.inner - at % e.inner : end - at;
            n = n < SIDE ? n : SIDE;
            reduce_piece(call, &e, at, n);
        }
    }
}

const tdi_kernel TDI_ISA_NAME(tdi_cpu_bfloat16_reduce) = {.name = TDI_ISA_TEXT " bfloat16 reduce",
                                                          .op = &tdi_op_reduce,
                                                          .takes = TDI_TAKES_BFLOAT16,
                                                          .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT,
                                                          .declines = reduce_declines,
                                                          .run = reduce_run};
