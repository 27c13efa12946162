/* primitive_onednn.h - a oneDNN primitive as a kernel's state: src, weights (and bias) -> dst, or one of its gradients.
 *
 * Weights have the layout that oneDNN prefers ("any"): they are packed before each run, or once if they are a constant
 * input, or unpacked after the run if their gradient is the result. All other operands stay where the call has them.
 * The scratchpad lies in the thread's scratch, so that threads never share one. */
#ifndef TDI_CPU_ONEDNN_PRIMITIVE_ONEDNN_H
#define TDI_CPU_ONEDNN_PRIMITIVE_ONEDNN_H

#include "cpu/onednn/pack_onednn.h"
#include "device/kernel.h"

typedef struct tdi_onednn_primitive {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    /* `packing` NULL and `reorder` NULL: oneDNN prefers the weights as they lie. */
    dnnl_primitive_t primitive, reorder;
    tdi_packing *packing;
    dnnl_memory_t src, weights, packed, bias, dst, scratchpad;
    size_t packed_bytes, scratchpad_bytes;
    bool caches_weights;
} tdi_onednn_primitive;

/* The operands' layouts in memory. */
typedef struct tdi_onednn_operands {
    tdi_md src, weights, bias, dst;
    bool has_bias;
    bool makes_weights; /* the weights' gradient is the result */
} tdi_onednn_operands;

/* The operands' addresses; `bias` is ignored when there is none. */
typedef struct tdi_onednn_addresses {
    void *src, *weights, *bias, *dst;
} tdi_onednn_addresses;

/* A kernel's own part of `prepare`: fills `operands` and creates *pd with `attr`. When it fails, the caller releases
 * what it has made of `operands`. */
typedef dnnl_status_t tdi_onednn_describe(const tdi_call *call, dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                                          tdi_onednn_operands *operands, dnnl_primitive_desc_t *pd);

/* A kernel's `prepare`: sets *state to a tdi_onednn_primitive and *scratch to the bytes that it runs in. Fails with
 * TD_UNSUPPORTED when oneDNN refuses, or would use its reference loops, which are slower than anything here. */
td_status tdi_onednn_prepare(const tdi_call *call, tdi_onednn_describe *describe, void **state, size_t *scratch,
                             tdi_error *error);
/* A kernel's packed_cache_bytes, of weights that are the call's second input. */
size_t tdi_onednn_packed_cache_bytes(const tdi_call *call);
/* A kernel's `release`. */
void tdi_onednn_release(void *state);
/* Runs the call's primitive on the operands at `at`, in `scratch`. `src`, `weights` and `dst` are oneDNN's names of the
 * operands: DNNL_ARG_SRC or DNNL_ARG_DIFF_SRC, and so on. A failure of oneDNN fails the step (tdi_call_fail). */
void tdi_onednn_run(const tdi_call *call, tdi_onednn_addresses at, void *scratch, int src, int weights, int dst);

static inline dnnl_data_type_t tdi_onednn_type(td_dtype dtype)
{
    return dtype == TD_BFLOAT16 ? dnnl_bf16 : dnnl_f32;
}

#endif
