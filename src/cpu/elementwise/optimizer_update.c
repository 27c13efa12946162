/* optimizer_update.c - the numbers of an optimizer's step, and updates row by row; all_reduce, which computes nothing.
 */
#include "cpu/elementwise/optimizer_update.h"

#include "device/kernel.h"
#include "ops/op_helpers.h"

tdi_update tdi_update_of(const tdi_op *op, const tdi_optimizer_attrs *attrs, const tdi_control *control)
{
    const tdi_optimizer_numbers *n = &control->optimizer;
    return (tdi_update){.op = op,
                        .rate = n->rate,
                        .rate_1 = n->rate_1,
                        .rate_2 = n->rate_2,
                        .epsilon = n->epsilon,
                        .momentum = n->momentum,
                        .kept = n->kept,
                        .clip = n->clip,
                        .decay = n->decay,
                        .nesterov = attrs->nesterov,
                        .amsgrad = attrs->amsgrad};
}

int64_t tdi_gradient_rows(const tdi_call *call, int64_t floats, int64_t tile)
{
    int64_t rows = floats / tdi_last_extent(&call->out.shape) / tile * tile;
    return rows < tile ? tile : rows;
}

tdi_row_update tdi_row_update_of(const tdi_call *call, const tdi_matmul_update_attrs *attrs, int first_slot,
                                 tdi_update_loop *loop)
{
    bool by_columns = call->split == TDI_COLUMNS;
    int64_t columns = tdi_last_extent(&call->out.shape);
    tdi_runs runs = tdi_call_runs(call);
    tdi_row_update of = {.numbers = tdi_update_of(attrs->update, &attrs->optimizer, call->control),
                         .begin = by_columns ? 0 : runs.first / columns,
                         .end = by_columns ? runs.count : (runs.first + runs.length) / columns,
                         .columns = by_columns ? runs.length : columns,
                         .stride = columns,
                         .loop = loop};
    tdi_stretch all = {call->in[0].data, NULL, {NULL}, call->out.data};
    for (int i = first_slot; i < call->n_in; i++)
        all.slot[i - first_slot] = call->in[i].data;
    of.all = tdi_stretch_at(all, by_columns ? runs.first : 0);
    return of;
}

void tdi_update_rows(const tdi_row_update *of, int64_t first, int64_t rows, const float *gradient)
{
    bool whole = of->columns == of->stride;
    int64_t count = whole ? 1 : rows, n = whole ? rows * of->columns : of->columns;
    for (int64_t r = 0; r < count; r++, gradient += n) {
        tdi_stretch now = tdi_stretch_at(of->all, (first + r) * of->stride);
        now.gradient = gradient;
        of->loop(&of->numbers, n, now);
    }
}

static void compute_nothing(const tdi_call *call)
{
    (void)call;
}

/* Threads divide it as they divide the update that reads it, so that they need not meet in between. */
const tdi_kernel tdi_cpu_all_reduce = {.name = "cpu all_reduce",
                                       .op = &tdi_op_all_reduce,
                                       .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT,
                                       .run = compute_nothing};
