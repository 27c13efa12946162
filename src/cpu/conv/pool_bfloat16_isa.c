/* pool_bfloat16_isa.c - pooling of bfloat16 values by the float32 kernels of pool_isa.c: a sample at a time is widened
 * into the scratch, pooled there while it is in the caches, and rounded. */
#include "cpu/bfloat16_isa.h"
#include "cpu/kernels.h"
#include "ops/widen.h"

enum { MOST_IN = 3 };

static tdi_value sample_of(const tdi_value *value, int64_t n)
{
    tdi_value one = *value;
    one.shape.dim[0] = 1;
    one.data = tdi_element(value, n * tdi_shape_elements(&one.shape));
    return one;
}

/* The same call on sample n alone. */
static tdi_call one_sample(const tdi_call *call, int64_t n, tdi_value *in)
{
    tdi_call one = *call;
    one.in = in;
    for (int i = 0; i < call->n_in; i++)
        in[i] = sample_of(&call->in[i], n);
    one.out = sample_of(&call->out, n);
    one.split = TDI_WHOLE;
    one.begin = 0;
    one.end = 1;
    return one;
}

static td_status prepare_samples(const tdi_kernel *kernel, const tdi_call *call, void **state, size_t *scratch,
                                 tdi_error *error)
{
    tdi_value in[MOST_IN], wide_in[MOST_IN];
    tdi_call one = one_sample(call, 0, in), wide = tdi_widened_call(&one, wide_in, NULL);
    *scratch = 0;
    if (kernel->prepare)
        TDI_TRY(kernel->prepare(&wide, state, scratch, error));
    *scratch += tdi_widened_values(&one);
    return TD_OK;
}

static void run_samples(const tdi_kernel *kernel, const tdi_call *call)
{
    int64_t begin = call->split == TDI_ROWS ? call->begin : 0;
    int64_t end = call->split == TDI_ROWS ? call->end : call->out.shape.dim[0];
    for (int64_t n = begin; n < end; n++) {
        tdi_value in[MOST_IN], wide_in[MOST_IN];
        tdi_call one = one_sample(call, n, in), wide = tdi_widened_call(&one, wide_in, call->scratch);
        for (int i = 0; i < call->n_in; i++)
            tdi_widen_array(tdi_shape_elements(&in[i].shape), in[i].data, wide_in[i].data);
        kernel->run(&wide);
        tdi_narrow_array(tdi_shape_elements(&one.out.shape), wide.out.data, one.out.data);
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
