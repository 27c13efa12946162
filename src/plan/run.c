/* run.c - the walk down the list. */
#include <string.h>

#include "base/text.h"
#include "ops/common.h"
#include "plan/plan_struct.h"

/* Where link `i` of a chain finds its elements from `at` on when they are passed: an address such that they are there.
 */
static void *passed(const char *room, int i, int64_t at, td_dtype dtype)
{
    uintptr_t stretch = (uintptr_t)room + (uintptr_t)(i % 2) * TDI_PASSED_BYTES / 2;
    return (void *)(stretch - (uintptr_t)at * td_dtype_size(dtype));
}

static void run_link(const tdi_item *items, int i, int64_t at, int64_t end, const char *room)
{
    tdi_call part = *items[i].call;
    tdi_value in[TDI_MOST_LINK_INPUTS];
    part.split = TDI_FLAT;
    part.begin = at;
    part.end = end - at < TDI_STRETCH ? end : at + TDI_STRETCH;
    if (items[i].taken) {
        memcpy(in, part.in, (size_t)part.n_in * sizeof *in);
        for (int j = 0; j < part.n_in; j++)
            if (items[i].taken >> j & 1u)
                in[j].data = passed(room, i - 1, at, in[j].dtype);
        part.in = in;
    }
    if (items[i].passes)
        part.out.data = passed(room, i, at, part.out.dtype);
    part.run(&part);
}

/* `seconds`: what each of the calls took is added up there; NULL: nowhere. */
static void run_chain(const tdi_lane_items *list, int first, double *seconds)
{
    const tdi_item *items = &list->items.at[first];
    tdi_runs share = tdi_call_runs(items->call);
    int64_t end = share.first + share.length;
    double began = seconds ? tdi_seconds() : 0;
    for (int64_t at = share.first; at < end; at += TDI_STRETCH)
        for (int i = 0; i < items->length; i++) {
            run_link(items, i, at, end, list->passed);
            if (seconds) {
                double ended = tdi_seconds();
                seconds[i] += ended - began;
                began = ended;
            }
        }
}

static void run_items(const tdi_lane_items *list, int begin, int end, bool first, tdi_barrier *barrier)
{
    for (int i = begin; i < end; i++) {
        const tdi_item *item = &list->items.at[i];
        bool runs = first || !item->once;
        switch (item->kind) {
        case TDI_ITEM_CALL:
            if (runs)
                item->call->run(item->call);
            break;
        case TDI_ITEM_BARRIER:
            tdi_barrier_wait(barrier);
            break;
        case TDI_ITEM_CHAIN:
            if (runs)
                run_chain(list, i, NULL);
            i += item->length - 1;
            break;
        case TDI_ITEM_IDLE:
            break;
        }
    }
}

/* As if its calls had run one after the other; returns when the last ended. */
static double run_noted_chain(const tdi_lane_items *list, int first, double began, const tdi_notes *notes)
{
    double seconds[TDI_MOST_CHAINED] = {0};
    run_chain(list, first, seconds);
    for (int i = 0; i < list->items.at[first].length; i++) {
        tdi_track_note(notes->track, list->labels[first + i], began, began + seconds[i], notes->step);
        began += seconds[i];
    }
    return began;
}

/* The same, each item noted: an end is the next one's begin. */
static void run_noted_items(const tdi_lane_items *list, int begin, int end, bool first, tdi_barrier *barrier,
                            const tdi_notes *notes)
{
    double began = tdi_seconds();
    for (int i = begin; i < end; i++) {
        const tdi_item *item = &list->items.at[i];
        bool runs = first || !item->once;
        if (item->kind == TDI_ITEM_CHAIN) {
            began = runs ? run_noted_chain(list, i, began, notes) : began;
            i += item->length - 1;
            continue;
        }
        run_items(list, i, i + 1, first, barrier);
        double ended = tdi_seconds();
        bool waits = item->kind == TDI_ITEM_BARRIER;
        if (runs && item->kind != TDI_ITEM_IDLE)
            tdi_track_note(notes->track, waits ? notes->lanes : list->labels[i], began, ended, notes->step);
        began = ended;
    }
}

static td_status finish(tdi_communicator *communicator, int collective, uint32_t step)
{
    bool broken = communicator->finish(communicator, collective, step) == TDI_BROKEN;
    return broken ? communicator->failure(communicator)->status : TD_OK;
}

static td_status meet(const tdi_segment *segment, int lane, uint32_t step, tdi_barrier *barrier,
                      tdi_communicator *communicator)
{
    if (segment->kind == TDI_STEP_FINISH)
        return finish(communicator, segment->collective, step);
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

/* ---- all lanes by one thread ---- */

/* Up to the lane's next meeting; false: there is none before `end`. Where lanes would wait for each other inside a
 * kernel, the last to come makes all their shares. */
static bool run_stretch(tdi_lane_items *list, int end, bool first)
{
    while (list->reached < end) {
        const tdi_item *item = &list->items.at[list->reached++];
        if (item->kind == TDI_ITEM_BARRIER || item->kind == TDI_ITEM_IDLE)
            return true;
        if (item->together) {
            if (item->call->lane + 1 == item->call->lanes)
                item->together(item->call - item->call->lane, item->call->lanes);
            return true;
        }
        bool runs = first || !item->once;
        if (runs && item->kind == TDI_ITEM_CHAIN)
            run_chain(list, list->reached - 1, NULL);
        else if (runs)
            item->call->run(item->call);
        list->reached += item->length - 1;
    }
    return false;
}

static void run_segment_in_turn(tdi_plan *plan, int segment, bool first)
{
    int lanes = plan->spec.lanes;
    for (int lane = 0; lane < lanes; lane++)
        plan->lanes[lane].reached = plan->lanes[lane].segments.at[segment].begin;
    for (bool more = true; more;) {
        more = false;
        for (int lane = 0; lane < lanes; lane++)
            more |= run_stretch(&plan->lanes[lane], plan->lanes[lane].segments.at[segment + 1].begin, first);
    }
}

td_status tdi_plans_run_in_turn(tdi_plan *const *plans, int parts, int workers, uint32_t step,
                                tdi_communicator *const *communicators)
{
    int segments = plans[0]->lanes[0].segments.count;
    for (int k = 0; k + 1 < segments; k++) {
        const tdi_segment *segment = &plans[0]->lanes[0].segments.at[k];
        for (int w = 0; w < workers; w++) {
            if (segment->kind == TDI_STEP_BEGIN)
                communicators[w]->begin(communicators[w], segment->collective);
        }
        for (int w = 0; w < workers; w++) {
            if (segment->kind == TDI_STEP_FINISH)
                TDI_TRY(finish(communicators[w], segment->collective, step));
            int first = parts * w / workers;
            for (int p = first; p < parts * (w + 1) / workers; p++)
                run_segment_in_turn(plans[p], k, p == first);
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
