/* primitive_onednn.h - a oneDNN primitive as a kernel's state: src, weights (and bias) -> dst, or one of its gradients.
 *
 * Weights are in the layout that the library likes ("any"), packed before each run, or once where they are constant, or
 * unpacked after it when they are what is made; all else is where the call has it. The scratchpad is the lane's, so
 * that lanes and replicas never share one. */
#ifndef TDI_CPU_ONEDNN_PRIMITIVE_ONEDNN_H
#define TDI_CPU_ONEDNN_PRIMITIVE_ONEDNN_H

#include "cpu/onednn/pack_onednn.h"
#include "device/kernel.h"

typedef struct tdi_onednn_primitive {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    /* With neither packing nor reorder the library likes the weights as they lie. */
    dnnl_primitive_t primitive, reorder;
    tdi_packing *packing;
    dnnl_memory_t src, weights, packed, bias, dst, scratchpad;
    size_t packed_bytes, scratchpad_bytes;
    bool caches_weights;
} tdi_onednn_primitive;

/* Operands as they lie in memory. */
typedef struct tdi_onednn_operands {
    tdi_md src, weights, bias, dst;
    bool has_bias;
    bool makes_weights; /* their gradient is the result */
} tdi_onednn_operands;

/* Where they lie; `bias` is not looked at when there is none. */
typedef struct tdi_onednn_addresses {
    void *src, *weights, *bias, *dst;
} tdi_onednn_addresses;

/* A kernel's own part of preparing: fills `operands` and makes *pd with `attr`. What it has made of `operands` when it
 * fails is released for it. */
typedef dnnl_status_t tdi_onednn_describe(const tdi_call *call, dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                                          tdi_onednn_operands *operands, dnnl_primitive_desc_t *pd);

/* A kernel's `prepare`: *state is a tdi_onednn_primitive, *scratch the room it runs in. TD_UNSUPPORTED when the library
 * refuses, or would use its own plain loops: slower than anything. */
td_status tdi_onednn_prepare(const tdi_call *call, tdi_onednn_describe *describe, void **state, size_t *scratch,
                             tdi_error *error);
/* A kernel's packed_cache_bytes, of weights that are the call's second input. */
size_t tdi_onednn_packed_cache_bytes(const tdi_call *call);
/* A kernel's `release`. */
void tdi_onednn_release(void *state);
/* Runs the call's with what is at `at`, in `scratch`. The arguments say what each operand is: DNNL_ARG_SRC or
 * DNNL_ARG_DIFF_SRC, and so on. A failure of the library is the step's (tdi_call_fail). */
void tdi_onednn_run(const tdi_call *call, tdi_onednn_addresses at, void *scratch, int src, int weights, int dst);

static inline dnnl_data_type_t tdi_onednn_type(td_dtype dtype)
{
    return dtype == TD_BFLOAT16 ? dnnl_bf16 : dnnl_f32;
}

#endif
