/* moments.c - which statistics of a batch normalization are made by the convolution before it, of what it has just
 * made, while that is in the caches: where each lane makes both of the same channels, since of shares of rows the
 * statistics would have to be merged. */
#include "ops/ops.h"
#include "plan/inside.h"

/* The last step before that computes anything; NULL: none, or replicas meet in between. */
static tdi_planned *step_before(tdi_plan *plan, int s)
{
    while (--s >= 0 && plan->spec.schedule->at[s].kind == TDI_STEP_KERNEL)
        if (plan->planned[s].node)
            return &plan->planned[s];
    return NULL;
}

static bool makes_moments(const tdi_plan *plan, const tdi_planned *step)
{
    return step->kernel && step->kernel->moments && step->calls[0].run && !tdi_placed_of(plan, step->node)->abreast;
}

static bool are_shared_alike(const tdi_plan *plan, const tdi_planned *a, const tdi_planned *b)
{
    tdi_placement of_a = tdi_placed_of(plan, a->node)->by, of_b = tdi_placed_of(plan, b->node)->by;
    bool whole = of_a.split == TDI_WHOLE && of_b.split == TDI_WHOLE;
    return plan->spec.lanes == 1 || whole ||
           (of_a.split == TDI_COLUMNS && of_b.split == TDI_COLUMNS && of_a.lanes == of_b.lanes);
}

void tdi_find_moments(tdi_plan *plan)
{
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        bool wanted = step->node && step->node->op == &tdi_op_batch_norm_stats;
        tdi_planned *before = wanted ? step_before(plan, s) : NULL;
        if (before && before->node == step->node->in[0] && makes_moments(plan, before) &&
            are_shared_alike(plan, before, step)) {
            step->maker = before;
            step->taken = 1;
        }
    }
}
