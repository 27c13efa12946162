/* update.c - the numbers of an optimizer's step. */
#include "cpu/update.h"

#include <math.h>

#include "ops/optimizer.h"

tdi_update tdi_update_of(const tdi_op *op, const tdi_optimizer_attrs *attrs, const tdi_control *control)
{
    tdi_update update = {.op = op,
                         .rate = control->learning_rate,
                         .epsilon = attrs->epsilon,
                         .momentum = attrs->momentum,
                         .kept = tdi_momentum_at(attrs, control),
                         .clip = attrs->clipvalue > 0.0f ? attrs->clipvalue : INFINITY,
                         .decay = attrs->weight_decay * control->learning_rate,
                         .nesterov = attrs->nesterov,
                         .amsgrad = attrs->amsgrad};
    if (op != &tdi_op_adam)
        return update;
    tdi_adam_rates rates = tdi_adam_rates_at(attrs, control);
    update.rate = rates.alpha;
    update.rate_1 = rates.rate_1;
    update.rate_2 = rates.rate_2;
    return update;
}

int64_t tdi_gradient_rows(const tdi_call *call, int64_t floats, int64_t tile)
{
    int64_t rows = floats / tdi_last_extent(&call->out.shape) / tile * tile;
    return rows < tile ? tile : rows;
}

void tdi_update_by_product(const tdi_call *call, int64_t step,
                           void (*multiply)(const tdi_call *call, int64_t first, int64_t rows, float *gradient),
                           void (*update)(const tdi_update *update, int64_t n, tdi_stretch stretch))
{
    const tdi_matmul_update_attrs *attrs = call->attrs;
    tdi_update numbers = tdi_update_of(attrs->update, &attrs->optimizer, call->control);
    tdi_runs runs = tdi_call_runs(call);
    bool by_columns = call->split == TDI_COLUMNS;
    int64_t columns = tdi_last_extent(&call->out.shape), begin = by_columns ? 0 : runs.first / columns;
    int64_t end = by_columns ? runs.count : begin + runs.length / columns;
    tdi_stretch s = {call->in[0].data, NULL, {NULL}, call->out.data};
    for (int i = 3; i < call->n_in; i++)
        s.slot[i - 3] = call->in[i].data;
    for (int64_t i = begin; i < end; i += step) {
        int64_t rows = end - i < step ? end - i : step, count = by_columns ? rows : 1;
        int64_t n = by_columns ? runs.length : rows * columns;
        multiply(call, i, rows, call->scratch);
        for (int64_t r = 0; r < count; r++) {
            tdi_stretch now = tdi_stretch_at(s, (i + r) * columns + (by_columns ? runs.first : 0));
            now.gradient = (const float *)call->scratch + r * n;
            update(&numbers, n, now);
        }
    }
}
