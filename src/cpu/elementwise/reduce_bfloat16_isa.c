/* reduce_bfloat16_isa.c - sums and means of bfloat16 values over adjacent axes: x as [outer, reduced, inner] -> float32
 * [outer, inner]. Values are widened a stretch at a time, which stays in the first-level cache. */
#include "cpu/bfloat16_isa.h"
#include "cpu/kernels.h"

enum { STRETCH = 4096 /* floats that are widened at a time */, SIDE = 256, FLUSH = 64 };

static const char *reduce_declines(const tdi_call *call)
{
    tdi_reduce_extents e;
    if (((const tdi_reduce_attrs *)call->attrs)->kind == TDI_MAX)
        return "a maximum";
    return tdi_find_reduce_extents(call, &e) ? NULL : "reduced axes that are not adjacent";
}

/* Adds rows of n <= SIDE numbers, `stride` apart, to the totals. */
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

/* Returns the sum of n adjacent numbers. */
static double add_all(const tdi_bfloat16 *x, int64_t n)
{
    float wide[STRETCH];
    double total = 0;
    for (int64_t i = 0; i < n; i += STRETCH) {
        int64_t now = n - i < STRETCH ? n - i : STRETCH;
        tdi_widen_array(now, x + i, wide);
        total += tdi_sum(wide, now);
    }
    return total;
}

/* Makes elements [at, at + n) of the result, which have one outer index; n <= SIDE. */
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
