/* items.c - the finished plan as a list of items for each thread. */
#include "plan/plan_struct.h"

bool tdi_is_lockstep(const tdi_plan *plan, const tdi_planned *step)
{
    return step->kernel && step->kernel->run_serially && tdi_placed_of(plan, step->node)->by.split == TDI_COLUMNS;
}

/* What of the update phase cannot be shared is the first replica's. */
static bool has_work(const tdi_plan *plan, const tdi_planned *step, int thread)
{
    const tdi_call *call = &step->calls[thread];
    if (!call->run || step->constant)
        return false;
    bool shared_memory_once = step->node->update_phase && plan->spec.graph->shards > 1 && call->split == TDI_WHOLE;
    return !shared_memory_once || plan->spec.replica == 0;
}

static bool list_inputs(const tdi_node *node, const tdi_call *call, tdi_thread_items *list)
{
    tdi_value *in = (tdi_value *)(uintptr_t)call->in;
    for (int i = 0; i < node->n_in; i++) {
        const tdi_node *root = node->in[i] ? tdi_root(node->in[i]) : NULL;
        if (root && root->op == &tdi_op_input && !tdi_push(&list->inputs, ((tdi_input_use){&in[i], root->slot})))
            return false;
    }
    return true;
}

static bool list_call(const tdi_plan *plan, const tdi_planned *step, tdi_thread_items *list, int thread)
{
    const tdi_call *call = &step->calls[thread];
    tdi_item item = {.kind = TDI_ITEM_CALL, .update_phase = step->node->update_phase, .call = call};
    bool lockstep = tdi_is_lockstep(plan, step);
    if (!has_work(plan, step, thread))
        return !lockstep || tdi_push(&list->items, ((tdi_item){.kind = TDI_ITEM_IDLE}));
    if (lockstep) {
        item.kind = TDI_ITEM_LOCKSTEP;
        item.run_serially = step->kernel->run_serially;
    }
    return list_inputs(step->node, call, list) && tdi_push(&list->items, item);
}

static bool list_barrier(tdi_thread_items *list)
{
    return tdi_push(&list->items, ((tdi_item){.kind = TDI_ITEM_BARRIER}));
}

static bool list_finish(const tdi_planned *step, tdi_thread_items *list, int thread)
{
    const tdi_call *call = &step->finish[thread];
    tdi_item item = {.kind = TDI_ITEM_CALL, .update_phase = step->node->update_phase, .call = call};
    return list_inputs(step->node, call, list) && list_barrier(list) && (!call->run || tdi_push(&list->items, item));
}

static bool list_step(tdi_plan *plan, int s, tdi_thread_items *list, int thread)
{
    const tdi_scheduled *scheduled = &plan->spec.schedule->at[s];
    const tdi_planned *step = &plan->planned[s];
    if (scheduled->kind != TDI_STEP_KERNEL)
        return tdi_push(&list->segments, ((tdi_segment){list->items.count, scheduled->kind, scheduled->collective}));
    if (!step->node)
        return true;
    if (step->barrier && !list_barrier(list))
        return false;
    return list_call(plan, step, list, thread) && (!step->finish || list_finish(step, list, thread));
}

td_status tdi_list_items(tdi_plan *plan, tdi_error *error)
{
    for (int thread = 0; thread < plan->spec.threads; thread++) {
        tdi_thread_items *list = &plan->threads[thread];
        bool ok = tdi_push(&list->segments, ((tdi_segment){0, TDI_STEP_KERNEL, 0}));
        for (int s = 0; ok && s < plan->n_steps; s++)
            ok = list_step(plan, s, list, thread);
        ok = ok && tdi_push(&list->segments, ((tdi_segment){list->items.count, TDI_STEP_KERNEL, 0}));
        if (!ok)
            return tdi_no_memory(error);
    }
    return TD_OK;
}
