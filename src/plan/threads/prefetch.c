/* prefetch.c - weights that other cores have updated come line by line, each as slow as a handful of products. What the
 * step is going to multiply with is therefore asked for while a kernel before it computes, and can do so on the way
 * (`asks`). */
#include "plan/plan_struct.h"

/* What is asked for must still be in the second cache when it is read: half of one of 512 KB. */
enum { MOST_FLOATS = 64 * 1024 };

static int asking_step(const tdi_plan *plan)
{
    for (int s = 0; s < plan->n_steps; s++) {
        const tdi_planned *step = &plan->planned[s];
        if (step->kernel && step->kernel->asks && step->kernel->asks(&step->calls[0]))
            return s;
    }
    return -1;
}

/* By a product behind step `asking`? */
static bool is_multiplied_with(const tdi_plan *plan, const tdi_variable *weight, int asking)
{
    for (int s = asking + 1; s < plan->n_steps; s++) {
        const tdi_node *node = plan->planned[s].node;
        if (node && node->op == &tdi_op_matmul && tdi_root(node->in[1])->op == &tdi_op_parameter &&
            tdi_root(node->in[1])->variable == weight)
            return true;
    }
    return false;
}

/* Rows [begin, end) of the weight that `call` updates. */
static tdi_soon rows_of(const tdi_node *update, const tdi_call *call, int64_t begin, int64_t end)
{
    int64_t row = tdi_shape_elements(&call->out.shape) / call->out.shape.dim[0];
    return (tdi_soon){.offset = update->variable->offset + begin * row, .count = (end - begin) * row};
}

/* All but its own rows, as far as there is room. */
static void add_others(const tdi_node *update, const tdi_call *call, tdi_call *asks)
{
    tdi_soon others[] = {rows_of(update, call, 0, call->begin),
                         rows_of(update, call, call->end, call->out.shape.dim[0])};
    int64_t room = MOST_FLOATS;
    for (int i = 0; i < asks->n_soon; i++)
        room -= asks->soon[i].count;
    for (int i = 0; i < 2; i++)
        if (others[i].count > 0 && others[i].count <= room && asks->n_soon < TDI_MOST_SOON) {
            asks->soon[asks->n_soon++] = others[i];
            room -= others[i].count;
        }
}

/* From the last update to the first, which is the order in which weights are multiplied with. */
static void collect(const tdi_plan *plan, int asking, int lane, tdi_call *asks)
{
    for (int s = plan->n_steps - 1; s > asking; s--) {
        const tdi_planned *update = &plan->planned[s];
        if (update->node && update->node->op == &tdi_op_joint_update &&
            is_multiplied_with(plan, update->node->variable, asking))
            add_others(update->node, &update->calls[lane], asks);
    }
}

td_status tdi_find_ahead(tdi_plan *plan, tdi_error *error)
{
    int asking = asking_step(plan);
    for (int lane = 0; lane < plan->spec.lanes && asking >= 0; lane++) {
        tdi_call *asks = &plan->planned[asking].calls[lane];
        asks->soon = TDI_NEW_ARRAY(plan->arena, tdi_soon, TDI_MOST_SOON);
        if (!asks->soon)
            return tdi_no_memory(error);
        collect(plan, asking, lane, asks);
    }
    return TD_OK;
}
