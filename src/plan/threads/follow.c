/* follow.c - which ops are made of a convolution's rows as it makes them, while these are in the caches: statistics of
 * a batch normalization, or one by moving statistics, with what is added and the rectifier. Lanes must share both
 * alike; and statistics not by rows, since those of the lanes would have to be merged. */
#include "ops/ops.h"
#include "plan/plan_struct.h"

/* The step that makes input 0 of step s; NULL: none, or a step in between may write what step s reads, as updates do.
 */
static tdi_planned *maker_of(tdi_plan *plan, int s)
{
    for (int i = s - 1; i >= 0 && plan->spec.schedule->at[i].kind == TDI_STEP_KERNEL; i--) {
        const tdi_node *node = plan->planned[i].node;
        if (node && node == plan->planned[s].node->in[0])
            return &plan->planned[i];
        if (node && node->home != TDI_HOME_ACTIVATIONS && node->op != &tdi_op_batch_norm_stats)
            return NULL;
    }
    return NULL;
}

static bool is_there_before(const tdi_plan *plan, const tdi_node *value, const tdi_planned *step)
{
    const tdi_node *root = tdi_root(value);
    if (tdi_is_leaf(root))
        return true;
    int position = tdi_placed_of(plan, root)->position;
    const tdi_planned *made = position < 0 ? NULL : &plan->planned[position];
    return made && made->node == root && (made->maker ? made->maker : made) < step;
}

static bool are_there_before(const tdi_plan *plan, const tdi_node *node, const tdi_planned *step)
{
    bool there = true;
    for (int i = 1; i < node->n_in; i++)
        there = there && (!node->in[i] || is_there_before(plan, node->in[i], step));
    return there;
}

static bool are_shared_alike(const tdi_plan *plan, const tdi_planned *maker, const tdi_planned *step)
{
    tdi_placement a = tdi_placed_of(plan, maker->node)->by, b = tdi_placed_of(plan, step->node)->by;
    bool merged = a.split == TDI_ROWS && step->node->op == &tdi_op_batch_norm_stats;
    return tdi_is_one_lanes(plan) ||
           (a.split == b.split && !a.depth && (a.split == TDI_WHOLE || (a.lanes == b.lanes && !merged)));
}

static bool can_show(const tdi_plan *plan, const tdi_planned *step)
{
    return step->kernel && step->kernel->shows && !step->follower && step->calls[0].run &&
           !tdi_placed_of(plan, step->node)->abreast;
}

static void follow(const tdi_plan *plan, tdi_planned *maker, tdi_planned *step)
{
    step->maker = maker;
    step->taken = 1;
    maker->follower = step;
    for (int lane = 0; lane < plan->spec.lanes; lane++)
        if (step->calls[lane].run)
            maker->calls[lane].follower = &step->calls[lane];
}

void tdi_find_followers(tdi_plan *plan)
{
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        bool follows = step->node && step->kernel && step->kernel->follows;
        tdi_planned *maker = follows ? maker_of(plan, s) : NULL;
        if (maker && can_show(plan, maker) && are_there_before(plan, step->node, maker) &&
            !tdi_placed_of(plan, step->node)->abreast && are_shared_alike(plan, maker, step))
            follow(plan, maker, step);
    }
}
