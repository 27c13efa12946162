/* optimizer.h - what the optimizers share. */
#ifndef TDI_OPS_UPDATE_OPTIMIZER_H
#define TDI_OPS_UPDATE_OPTIMIZER_H

#include "ops/op_helpers.h"

/* Emits the update op(weight, gradient, slots...), which lives where the weight does, in the update phase. */
tdi_node *tdi_optimizer_node(tdi_graph *graph, const tdi_op *op, tdi_node *weight, tdi_node *gradient, int n_slots,
                             tdi_node *const *slots, const tdi_optimizer_attrs *attrs);
td_status tdi_optimizer_infer(tdi_node *node, tdi_error *error);

/* The numbers of the control block that all optimizers have: SGD's, and clipping and decay. */
void tdi_update_numbers(const tdi_optimizer_attrs *attrs, tdi_control *control);

/* Keras clips the gradient first, then decays the weight, then updates it. */
static inline float tdi_clipped(const tdi_optimizer_numbers *numbers, float gradient)
{
    float limit = numbers->clip;
    return gradient > limit ? limit : gradient < -limit ? -limit : gradient;
}

/* Updates n elements from `begin` on by the optimizer's own reference, for an op that has computed their `gradient`.
 * The weight is input 0; slots begin at input `first_slot`. */
void tdi_reference_update(const tdi_call *call, const tdi_matmul_update_attrs *attrs, int first_slot, int64_t begin,
                          int64_t n, float *gradient);

static inline float tdi_decayed(const tdi_optimizer_numbers *numbers, float weight)
{
    return weight - weight * numbers->decay;
}

#endif
