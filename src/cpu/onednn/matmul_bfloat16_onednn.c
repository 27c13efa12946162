/* matmul_bfloat16_onednn.c - matrix products of bfloat16 operands by oneDNN's matmul primitive; sums are float32.
 *
 * A float32 weight is rounded as it is packed, on each run; a bfloat16 operand is read as it is. Threads share rows
 * alone: oneDNN 3.7 writes beyond the columns of a narrow share. */
#include "cpu/kernels.h"
#include "cpu/onednn/primitive_onednn.h"
#include "ops/op_helpers.h"

/* A thread's share of the product, [rows, depth] . [depth, columns], and where its operands begin, in elements.
 * oneDNN 3.7 believes that the only row of a transposed factor is contiguous, so such a row is gathered first. */
typedef struct share {
    int64_t rows, columns, depth;
    int64_t a, c;
    bool gathered;
    dnnl_dims_t a_strides, b_strides, c_strides;
} share;

static share share_of(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    int64_t lda = tdi_last_extent(&call->in[0].shape), ldb = tdi_last_extent(&call->in[1].shape);
    int64_t ldc = tdi_last_extent(&call->out.shape);
    tdi_runs runs = tdi_call_runs(call);
    share s = {.rows = runs.length / ldc,
               .columns = ldc,
               .depth = attrs->transpose_b ? ldb : tdi_outer_extent(&call->in[1].shape),
               .a = runs.first / ldc * (attrs->transpose_a ? 1 : lda),
               .c = runs.first};
    s.gathered = s.rows == 1 && attrs->transpose_a;
    s.a_strides[attrs->transpose_a && !s.gathered] = s.gathered ? s.depth : lda;
    s.a_strides[!attrs->transpose_a || s.gathered] = 1;
    s.b_strides[attrs->transpose_b] = ldb;
    s.b_strides[!attrs->transpose_b] = 1;
    s.c_strides[0] = ldc;
    s.c_strides[1] = 1;
    return s;
}

static dnnl_status_t describe_operands(tdi_onednn_operands *o, const tdi_call *call, const share *w)
{
    o->has_bias = call->n_in > 2 && call->in[2].shape.rank;
    dnnl_status_t status = tdi_md_create(&o->src, 2, (dnnl_dims_t){w->rows, w->depth}, dnnl_bf16, w->a_strides);
    if (status == dnnl_success)
        status = tdi_md_create(&o->weights, 2, (dnnl_dims_t){w->depth, w->columns}, tdi_onednn_type(call->in[1].dtype),
                               w->b_strides);
    if (status == dnnl_success)
        status = tdi_md_create(&o->dst, 2, (dnnl_dims_t){w->rows, w->columns}, tdi_onednn_type(call->out.dtype),
                               w->c_strides);
    if (status == dnnl_success && o->has_bias)
        status = tdi_md_create(&o->bias, 2, (dnnl_dims_t){1, w->columns}, dnnl_f32, (dnnl_dims_t){w->columns, 1});
    return status;
}

static dnnl_status_t describe(const tdi_call *call, dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                              tdi_onednn_operands *o, dnnl_primitive_desc_t *pd)
{
    share w = share_of(call);
    tdi_md packed = {0};
    const dnnl_dim_t *strides = call->in[1].dtype == TD_BFLOAT16 ? w.b_strides : NULL;
    dnnl_status_t status = describe_operands(o, call, &w);
    if (status == dnnl_success)
        status = tdi_md_create(&packed, 2, (dnnl_dims_t){w.depth, w.columns}, dnnl_bf16, strides);
    if (status == dnnl_success)
        status = tdi_onednn_matmul(pd, engine, TDI_MD_VIEW(o->src), TDI_MD_VIEW(packed),
                                   o->has_bias ? TDI_MD_VIEW(o->bias) : NULL, TDI_MD_VIEW(o->dst), attr);
    tdi_md_destroy(&packed);
    return status;
}

static size_t gathered_bytes(const share *w)
{
    size_t bytes = w->gathered ? (size_t)w->depth * sizeof(uint16_t) : 0;
    return (bytes + 63) / 64 * 64; /* the primitive's scratch begins on a cache line */
}

/* The scratch has the gathered row, if any, then the primitive's scratch. */
static td_status prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    share w = share_of(call);
    td_status status = tdi_onednn_prepare(call, describe, state, scratch, error);
    if (status == TD_OK)
        *scratch += gathered_bytes(&w);
    return status;
}

static void *element(const tdi_value *value, int64_t at)
{
    return (char *)value->data + (size_t)at * td_dtype_size(value->dtype);
}

static void activate(const tdi_call *call, const share *w)
{
    int activation = ((const tdi_matmul_attrs *)call->attrs)->activation;
    int64_t ldc = w->c_strides[0];
    if (call->out.dtype == TD_FLOAT32)
        tdi_cpu_vector_loops()->epilogue(w->rows, w->columns, ldc, NULL, activation, element(&call->out, w->c));
    else
        for (int64_t i = 0; activation != TD_LINEAR && i < w->rows; i++)
            tdi_cpu_vector_loops()->activate_bfloat16(w->columns, activation, element(&call->out, w->c + i * ldc));
}

/* Where a share's left factor is. */
static void *left_factor(const tdi_call *call, const share *w, uint16_t *gathered)
{
    const uint16_t *row = element(&call->in[0], w->a);
    int64_t lda = tdi_last_extent(&call->in[0].shape);
    for (int64_t k = 0; w->gathered && k < w->depth; k++)
        gathered[k] = row[k * lda];
    return w->gathered ? gathered : element(&call->in[0], w->a);
}

static void matmul_run(const tdi_call *call)
{
    share w = share_of(call);
    tdi_onednn_addresses at = {.src = left_factor(call, &w, call->scratch),
                               .weights = call->in[1].data,
                               .bias = call->n_in > 2 ? call->in[2].data : NULL,
                               .dst = element(&call->out, w.c)};
    tdi_onednn_run(call, at, (char *)call->scratch + gathered_bytes(&w), DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST);
    activate(call, &w);
}

static const char *declines(const tdi_call *call)
{
    if (((const tdi_matmul_attrs *)call->attrs)->slope)
        return "the slope of an activation";
    return call->in[0].dtype == TD_BFLOAT16 ? NULL : "a float32 left factor";
}

/* With few rows, rounding and packing a weight on each run costs more than it saves. */
static tdi_confidence confidence(const tdi_call *call)
{
    (void)call;
    return TDI_LIKELY;
}

const tdi_kernel tdi_cpu_matmul_bfloat16_onednn = {.name = "onednn bfloat16 matmul",
                                                   .op = &tdi_op_matmul,
                                                   .takes = TDI_TAKES_BFLOAT16,
                                                   .splits = TDI_CAN_ROWS,
                                                   .declines = declines,
                                                   .confidence = confidence,
                                                   .prepare = prepare,
                                                   .packed_cache_bytes = tdi_onednn_packed_cache_bytes,
                                                   .release = tdi_onednn_release,
                                                   .run = matmul_run};
