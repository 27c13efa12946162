/* optimizer.h - what the optimizers share. */
#ifndef TDI_OPS_UPDATE_OPTIMIZER_H
#define TDI_OPS_UPDATE_OPTIMIZER_H

#include "ops/common.h"

/* Emits the update op(weight, gradient, slots...), which lives where the weight does, in the update phase. */
tdi_node *tdi_optimizer_node(tdi_graph *graph, const tdi_op *op, tdi_node *weight, tdi_node *gradient, int n_slots,
                             tdi_node *const *slots, const tdi_optimizer_attrs *attrs);
td_status tdi_optimizer_infer(tdi_node *node, tdi_error *error);

/* Keras clips the gradient first, then decays the weight, then updates it. */
static inline float tdi_clipped(const tdi_optimizer_attrs *attrs, float gradient)
{
    float limit = attrs->clipvalue;
    if (!(limit > 0.0f))
        return gradient;
    return gradient > limit ? limit : gradient < -limit ? -limit : gradient;
}

/* What the velocity is multiplied by. It contains the learning rate: when that changes, the velocity is corrected once
 * (Goyal et al., 1706.02677). */
static inline float tdi_momentum_at(const tdi_optimizer_attrs *attrs, const tdi_control *control)
{
    float before = control->rate_before;
    return before > 0.0f ? attrs->momentum * (control->learning_rate / before) : attrs->momentum;
}

/* Updates n elements from `begin` on by the optimizer's own reference, for an op that has computed their `gradient`.
 * The weight is input 0; slots begin at input `first_slot`. */
void tdi_reference_update(const tdi_call *call, const tdi_matmul_update_attrs *attrs, int first_slot, int64_t begin,
                          int64_t n, float *gradient);

static inline float tdi_decayed(const tdi_optimizer_attrs *attrs, float learning_rate, float weight)
{
    return weight - weight * attrs->weight_decay * learning_rate;
}

#endif
