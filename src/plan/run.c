/* run.c - the walk down the list. */
#include "plan/inside.h"

static void run_items(const tdi_lane_items *list, int begin, int end, bool first, tdi_barrier *barrier)
{
    for (const tdi_item *item = list->items.at + begin; item < list->items.at + end; item++)
        switch (item->kind) {
        case TDI_ITEM_CALL:
            item->call->run(item->call);
            break;
        case TDI_ITEM_BARRIER:
            tdi_barrier_wait(barrier);
            break;
        case TDI_ITEM_ONCE:
            if (first)
                item->call->run(item->call);
            break;
        }
}

static td_status meet(const tdi_segment *segment, int lane, uint32_t step, tdi_barrier *barrier,
                      tdi_communicator *communicator)
{
    if (segment->kind == TDI_STEP_FINISH)
        return communicator->finish(communicator, segment->collective, step);
    if (segment->kind == TDI_STEP_BEGIN) {
        tdi_barrier_wait(barrier);
        if (lane == 0)
            communicator->begin(communicator, segment->collective);
    }
    return TD_OK;
}

td_status tdi_plans_run(tdi_plan *const *plans, int count, int lane, uint32_t step, tdi_barrier *barrier,
                        tdi_communicator *communicator)
{
    int segments = plans[0]->lanes[lane].segments.count;
    for (int k = 0; k + 1 < segments; k++) {
        TDI_TRY(meet(&plans[0]->lanes[lane].segments.at[k], lane, step, barrier, communicator));
        for (int p = 0; p < count; p++) {
            const tdi_lane_items *list = &plans[p]->lanes[lane];
            run_items(list, list->segments.at[k].begin, list->segments.at[k + 1].begin, p == 0, barrier);
        }
    }
    return TD_OK;
}

const float *tdi_plan_output(const tdi_plan *plan, int slot)
{
    for (int i = 0; i < plan->spec.graph->outputs.count; i++) {
        const tdi_node *node = plan->spec.graph->outputs.at[i];
        if (node->home == TDI_HOME_OUTPUT && node->slot == slot)
            return plan->planned[tdi_placed_of(plan, node)->position].calls[0].out.data;
    }
    return NULL;
}
