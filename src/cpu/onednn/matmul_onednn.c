/* matmul_onednn.c - large float32 products by dnnl_sgemm, which needs no primitive. A vector loop then applies bias
 * and activation, or updates a weight by the product. */
#include "cpu/kernels.h"
#include "cpu/onednn/sgemm_onednn.h"
#include "ops/op_helpers.h"

static void matmul_run(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    const float *a = call->in[0].data, *b = call->in[1].data, *third = call->n_in > 2 ? call->in[2].data : NULL;
    int64_t lda = tdi_last_extent(&call->in[0].shape), ldb = tdi_last_extent(&call->in[1].shape);
    int64_t columns = tdi_last_extent(&call->out.shape);
    int64_t inner = attrs->transpose_b ? ldb : tdi_outer_extent(&call->in[1].shape);
    tdi_runs runs = tdi_call_runs(call);
    int64_t m = call->split == TDI_COLUMNS ? runs.count : runs.length / columns;
    int64_t n = call->split == TDI_COLUMNS ? runs.length : columns;
    int64_t row = call->split == TDI_COLUMNS ? 0 : runs.first / columns;
    int64_t column = call->split == TDI_COLUMNS ? runs.first : 0;
    float *out = (float *)call->out.data + runs.first;
    tdi_factor left = {a + row * (attrs->transpose_a ? 1 : lda), lda, attrs->transpose_a ? 'T' : 'N'};
    tdi_factor right = {b + column * (attrs->transpose_b ? ldb : 1), ldb, attrs->transpose_b ? 'T' : 'N'};
    tdi_sgemm(m, n, inner, left, right, 0, out, columns);
    for (int64_t i = 0; attrs->slope && i < m; i++, out += columns)
        tdi_cpu_vector_loops()->slope(attrs->slope, n, third + (row + i) * columns + column, out, out);
    if (!attrs->slope)
        tdi_cpu_vector_loops()->epilogue(m, n, columns, third ? third + column : NULL, attrs->activation, out);
}

const tdi_kernel tdi_cpu_matmul_onednn = {
    .name = "onednn matmul", .op = &tdi_op_matmul, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = matmul_run};

/* ---- a gradient left behind for the joint update: a' . b ---- */

static const char *leave_declines(const tdi_call *call)
{
    return tdi_leaves_factors(call) ? "factors" : NULL;
}

const tdi_kernel tdi_cpu_leave_product_onednn = {.name = "onednn leave_gradient",
                                                 .op = &tdi_op_leave_gradient,
                                                 .splits = TDI_CAN_ROWS,
                                                 .declines = leave_declines,
                                                 .run = matmul_run};

/* ---- an update by a' . b ---- */

enum { GRADIENT_FLOATS = 64 * 1024 };

/* Rows of the gradient that fit into the second-level cache. */
static int64_t gradient_rows(const tdi_call *call)
{
    return tdi_gradient_rows(call, GRADIENT_FLOATS, 16);
}

static td_status update_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    *scratch = (size_t)(gradient_rows(call) * tdi_last_extent(&call->out.shape)) * sizeof(float);
    return TD_OK;
}

static void update_run(const tdi_call *call)
{
    int64_t columns = tdi_last_extent(&call->out.shape), lda = tdi_last_extent(&call->in[1].shape);
    int64_t step = gradient_rows(call);
    tdi_row_update of = tdi_row_update_of(call, call->attrs, 3, tdi_cpu_vector_loops()->update);
    tdi_factor dy = {call->in[2].data, columns, 'N'};
    for (int64_t i = of.begin, rows; i < of.end; i += rows) {
        tdi_factor x = {(const float *)call->in[1].data + i, lda, 'T'};
        rows = of.end - i < step ? of.end - i : step;
        tdi_sgemm(rows, columns, tdi_outer_extent(&call->in[1].shape), x, dy, 0, call->scratch, columns);
        tdi_update_rows(&of, i, rows, call->scratch);
    }
}

const tdi_kernel tdi_cpu_matmul_update_onednn = {.name = "onednn matmul_update",
                                                 .op = &tdi_op_matmul_update,
                                                 .splits = TDI_CAN_ROWS,
                                                 .prepare = update_prepare,
                                                 .run = update_run};
