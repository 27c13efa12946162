/* widened_kernels.c - products and convolutions of bfloat16 values by the float32 kernels of the same list.
 *
 * The list of an op ends with such a kernel: it takes the calls that no bfloat16 kernel takes, and is timed against
 * those that do, since float32 is faster on some shapes and CPUs. It prepares the first float32 kernel that takes the
 * call in float32. To run, it widens the operands into its scratch, runs that kernel and rounds the result.
 *
 * It widens all of its operands on every thread, so that its threads share rows (of a product, columns too) but never
 * the depth. */
#include <stdlib.h>

#include "cpu/kernels.h"
#include "ops/op_helpers.h"
#include "ops/widen.h"

enum { MOST_IN = 3 };

typedef struct widened {
    const tdi_kernel *kernel; /* the float32 kernel */
    void *state;              /* its own */
    size_t scratch;           /* its own, which lies behind the float32 values */
} widened;

static bool takes(const tdi_kernel *kernel, const tdi_op *op, const tdi_call *wide)
{
    return kernel->op == op && kernel->takes != TDI_TAKES_BFLOAT16 && !kernel->run_serially &&
           (wide->split == TDI_WHOLE || kernel->splits >> wide->split & 1u) &&
           !(kernel->declines && kernel->declines(wide)) &&
           !(kernel->confidence && kernel->confidence(wide) == TDI_UNLIKELY);
}

static td_status prepare(const tdi_op *op, const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    tdi_value in[MOST_IN];
    tdi_call wide = tdi_widened_call(call, in, NULL);
    widened *w = calloc(1, sizeof *w);
    if (!w)
        return tdi_no_memory(error);
    td_status status = TD_UNSUPPORTED;
    for (const tdi_kernel *const *k = tdi_cpu_kernels(tdi_cpu_best_isa()); *k && status == TD_UNSUPPORTED; k++) {
        if (!takes(*k, op, &wide))
            continue;
        tdi_error declined = {0};
        w->kernel = *k;
        status = (*k)->prepare ? (*k)->prepare(&wide, &w->state, &w->scratch, &declined) : TD_OK;
        if (status != TD_OK && status != TD_UNSUPPORTED)
            tdi_fail(error, status, "%s", declined.message);
    }
    if (status == TD_UNSUPPORTED)
        tdi_fail(error, status, "no float32 kernel takes it");
    *scratch = tdi_widened_values(call) + w->scratch;
    *state = w;
    if (status == TD_OK)
        return TD_OK;
    free(w);
    *state = NULL;
    return status;
}

static void release(void *state)
{
    widened *w = state;
    if (w->kernel->release && w->state)
        w->kernel->release(w->state);
    free(w);
}

static void run(const tdi_call *call)
{
    const widened *w = call->state;
    const tdi_vector_loops *loops = tdi_cpu_vector_loops();
    tdi_value in[MOST_IN];
    tdi_call wide = tdi_widened_call(call, in, call->scratch);
    wide.state = w->state;
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i].dtype == TD_BFLOAT16)
            loops->widen(tdi_shape_elements(&in[i].shape), call->in[i].data, in[i].data);
    w->kernel->run(&wide);
    if (call->out.dtype != TD_BFLOAT16)
        return;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++) {
        int64_t at = runs.first + r * runs.stride;
        loops->narrow(runs.length, (const float *)wide.out.data + at, (tdi_bfloat16 *)call->out.data + at);
    }
}

#define WIDENED(stem, shares)                                                                                          \
    static td_status prepare_##stem(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)             \
    {                                                                                                                  \
        return prepare(&tdi_op_##stem, call, state, scratch, error);                                                   \
    }                                                                                                                  \
    const tdi_kernel tdi_cpu_widened_##stem = {.name = "widened " #stem,                                               \
                                               .op = &tdi_op_##stem,                                                   \
                                               .takes = TDI_TAKES_BFLOAT16,                                            \
                                               .widens = true,                                                         \
                                               .splits = shares,                                                       \
                                               .prepare = prepare_##stem,                                              \
                                               .release = release,                                                     \
                                               .run = run};
WIDENED(matmul, TDI_CAN_ROWS | TDI_CAN_COLUMNS)
WIDENED(conv2d, TDI_CAN_ROWS)
WIDENED(conv2d_grad_input, TDI_CAN_ROWS)
WIDENED(conv2d_grad_filter, 0)
