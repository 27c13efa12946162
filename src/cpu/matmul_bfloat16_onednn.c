/* matmul_bfloat16_onednn.c - matrix products of bfloat16 operands by oneDNN's matmul primitive: sums are float32.
 *
 * A weight is float32 and is rounded as it is packed, on each run; what is bfloat16 already is taken as it is. Lanes
 * share the rows: oneDNN 3.7 writes beyond the columns of a narrow share. */
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels.h"
#include "cpu/primitive_onednn.h"
#include "ops/common.h"

enum { ALIGNMENT = 64 };

typedef struct matmul_state {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    tdi_md a, b, packed, bias, c;
    bool has_bias;
    dnnl_primitive_t product, reorder; /* reorder NULL: b is taken as it is */
    dnnl_memory_t of_a, of_b, of_packed, of_bias, of_c, scratchpad;
    size_t packed_bytes, scratchpad_bytes;
} matmul_state;

/* A lane's share of the product: [rows, depth] . [depth, columns], where its operands begin, in elements. oneDNN 3.7
 * takes the only row of a transposed factor for one that lies in one piece: such a row is gathered into one. */
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

static dnnl_data_type_t type_of(const tdi_value *value)
{
    return value->dtype == TD_BFLOAT16 ? dnnl_bf16 : dnnl_f32;
}

static dnnl_status_t describe(matmul_state *s, const tdi_call *call)
{
    share w = share_of(call);
    bool weight = call->in[1].dtype == TD_FLOAT32;
    s->has_bias = call->n_in > 2 && call->in[2].shape.rank;
    dnnl_status_t status = tdi_md_create(&s->a, 2, (dnnl_dims_t){w.rows, w.depth}, dnnl_bf16, w.a_strides);
    if (status == dnnl_success)
        status = tdi_md_create(&s->b, 2, (dnnl_dims_t){w.depth, w.columns}, type_of(&call->in[1]), w.b_strides);
    if (status == dnnl_success)
        status =
            tdi_md_create(&s->packed, 2, (dnnl_dims_t){w.depth, w.columns}, dnnl_bf16, weight ? NULL : w.b_strides);
    if (status == dnnl_success)
        status = tdi_md_create(&s->c, 2, (dnnl_dims_t){w.rows, w.columns}, type_of(&call->out), w.c_strides);
    if (status == dnnl_success && s->has_bias)
        status = tdi_md_create(&s->bias, 2, (dnnl_dims_t){1, w.columns}, dnnl_f32, (dnnl_dims_t){w.columns, 1});
    return status;
}

static dnnl_status_t create_description(const matmul_state *s, dnnl_primitive_desc_t *pd)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = tdi_onednn_matmul(pd, s->engine, TDI_MD_VIEW(s->a), TDI_MD_VIEW(s->packed),
                                   s->has_bias ? TDI_MD_VIEW(s->bias) : NULL, TDI_MD_VIEW(s->c), attr);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return status;
}

static dnnl_status_t create_memory(const matmul_state *s, tdi_md_view md, dnnl_memory_t *memory)
{
    return dnnl_memory_create(memory, md, s->engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t create_memories(matmul_state *s, const_dnnl_primitive_desc_t pd)
{
    tdi_md_view packed = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    tdi_md_view scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    s->packed_bytes = dnnl_memory_desc_get_size(packed);
    s->scratchpad_bytes = dnnl_memory_desc_get_size(scratchpad);
    dnnl_status_t status = tdi_onednn_reorder(s->engine, TDI_MD_VIEW(s->b), packed, &s->reorder);
    if (status == dnnl_success)
        status = create_memory(s, TDI_MD_VIEW(s->a), &s->of_a);
    if (status == dnnl_success)
        status = create_memory(s, TDI_MD_VIEW(s->b), &s->of_b);
    if (status == dnnl_success)
        status = create_memory(s, packed, &s->of_packed);
    if (status == dnnl_success)
        status = create_memory(s, TDI_MD_VIEW(s->c), &s->of_c);
    if (status == dnnl_success && s->has_bias)
        status = create_memory(s, TDI_MD_VIEW(s->bias), &s->of_bias);
    return status == dnnl_success ? create_memory(s, scratchpad, &s->scratchpad) : status;
}

static td_status create(matmul_state *s, const tdi_call *call, tdi_error *error)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_engine_create(&s->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = describe(s, call);
    if (status == dnnl_success)
        status = create_description(s, &pd);
    if (status != dnnl_success)
        return tdi_onednn_refused(status, error);
    td_status usable = tdi_onednn_check(pd, error);
    if (usable == TD_OK) {
        status = dnnl_primitive_create(&s->product, pd);
        if (status == dnnl_success)
            status = create_memories(s, pd);
    }
    dnnl_primitive_desc_destroy(pd);
    if (usable != TD_OK)
        return usable;
    return status == dnnl_success ? TD_OK : tdi_onednn_refused(status, error);
}

static void matmul_release(void *pointer)
{
    matmul_state *s = pointer;
    dnnl_memory_t memories[] = {s->of_a, s->of_b, s->of_packed, s->of_bias, s->of_c, s->scratchpad};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    if (s->product)
        dnnl_primitive_destroy(s->product);
    if (s->reorder)
        dnnl_primitive_destroy(s->reorder);
    if (s->stream)
        dnnl_stream_destroy(s->stream);
    if (s->engine)
        dnnl_engine_destroy(s->engine);
    tdi_md_destroy(&s->a);
    tdi_md_destroy(&s->b);
    tdi_md_destroy(&s->packed);
    tdi_md_destroy(&s->bias);
    tdi_md_destroy(&s->c);
    free(s);
}

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static td_status prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    matmul_state *s = calloc(1, sizeof *s);
    if (!s)
        return tdi_no_memory(error);
    int threads = tdi_cpu_enter_thread();
    td_status status = create(s, call, error);
    tdi_cpu_leave_thread(threads);
    if (status != TD_OK) {
        matmul_release(s);
        return status;
    }
    share w = share_of(call);
    size_t gathered = w.gathered ? (size_t)w.depth * sizeof(uint16_t) : 0;
    *scratch = rounded(s->packed_bytes) + rounded(s->scratchpad_bytes) + gathered;
    *state = s;
    return TD_OK;
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
        tdi_cpu_loops()->epilogue(w->rows, w->columns, ldc, NULL, activation, element(&call->out, w->c));
    else
        for (int64_t i = 0; activation != TD_LINEAR && i < w->rows; i++)
            tdi_cpu_loops()->activate_bfloat16(w->columns, activation, element(&call->out, w->c + i * ldc));
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
    matmul_state *s = call->state;
    share w = share_of(call);
    char *scratch = call->scratch;
    void *b = call->in[1].data;
    char *scratchpad = scratch + rounded(s->packed_bytes);
    tdi_onednn_bind(s->of_a, left_factor(call, &w, (uint16_t *)(void *)(scratchpad + rounded(s->scratchpad_bytes))));
    tdi_onednn_bind(s->of_b, b);
    tdi_onednn_bind(s->of_packed, s->reorder ? scratch : b);
    tdi_onednn_bind(s->of_c, element(&call->out, w.c));
    tdi_onednn_bind(s->scratchpad, scratchpad);
    if (s->has_bias)
        tdi_onednn_bind(s->of_bias, call->in[2].data);
    const dnnl_exec_arg_t pack[] = {{DNNL_ARG_FROM, s->of_b}, {DNNL_ARG_TO, s->of_packed}};
    if (s->reorder)
        dnnl_primitive_execute(s->reorder, s->stream, 2, pack);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, s->of_a},
                                         {DNNL_ARG_WEIGHTS, s->of_packed},
                                         {DNNL_ARG_DST, s->of_c},
                                         {DNNL_ARG_SCRATCHPAD, s->scratchpad},
                                         {DNNL_ARG_BIAS, s->of_bias}};
    dnnl_primitive_execute(s->product, s->stream, s->has_bias ? 5 : 4, arguments);
    activate(call, &w);
}

static const char *declines(const tdi_call *call)
{
    return call->in[0].dtype == TD_BFLOAT16 ? NULL : "a float32 left factor";
}

const tdi_kernel tdi_cpu_matmul_bfloat16_onednn = {.name = "onednn bfloat16 matmul",
                                                   .op = &tdi_op_matmul,
                                                   .takes = TDI_TAKES_BFLOAT16,
                                                   .splits = TDI_CAN_ROWS,
                                                   .declines = declines,
                                                   .prepare = prepare,
                                                   .release = matmul_release,
                                                   .run = matmul_run};
