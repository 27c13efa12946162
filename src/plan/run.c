/* run.c - the walk down the list. */
#include "base/text.h"
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

/* The same, each item noted: an end is the next one's begin. */
static void run_noted_items(const tdi_lane_items *list, int begin, int end, bool first, tdi_barrier *barrier,
                            const tdi_notes *notes)
{
    double began = tdi_seconds();
    for (int i = begin; i < end; i++) {
        run_items(list, i, i + 1, first, barrier);
        double ended = tdi_seconds();
        bool waits = list->items.at[i].kind == TDI_ITEM_BARRIER;
        if (first || list->items.at[i].kind != TDI_ITEM_ONCE)
            tdi_track_note(notes->track, waits ? notes->lanes : list->labels[i], began, ended, notes->step);
        began = ended;
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

static td_status meet_noted(const tdi_segment *segment, int lane, uint32_t step, tdi_barrier *barrier,
                            tdi_communicator *communicator, const tdi_notes *notes)
{
    if (!notes || segment->kind == TDI_STEP_KERNEL)
        return meet(segment, lane, step, barrier, communicator);
    double began = tdi_seconds();
    td_status status = meet(segment, lane, step, barrier, communicator);
    tdi_track_note(notes->track, segment->kind == TDI_STEP_FINISH ? notes->finish : notes->begin, began, tdi_seconds(),
                   notes->step);
    return status;
}

td_status tdi_plans_run(tdi_plan *const *plans, int count, int lane, uint32_t step, tdi_barrier *barrier,
                        tdi_communicator *communicator, const tdi_notes *notes)
{
    int segments = plans[0]->lanes[lane].segments.count;
    for (int k = 0; k + 1 < segments; k++) {
        TDI_TRY(meet_noted(&plans[0]->lanes[lane].segments.at[k], lane, step, barrier, communicator, notes));
        for (int p = 0; p < count; p++) {
            const tdi_lane_items *list = &plans[p]->lanes[lane];
            int begin = list->segments.at[k].begin, end = list->segments.at[k + 1].begin;
            if (notes)
                run_noted_items(list, begin, end, p == 0, barrier, notes);
            else
                run_items(list, begin, end, p == 0, barrier);
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
