/* run.c - the walk over a plan's items.
 *
 * The plan has turned a step into a list of items for each thread: calls and meetings, in segments between which
 * stand the collectives. Running a step is walking the lists: nothing is allocated, locked or decided.
 *
 * One function walks a list, in three cases. A thread that walks its own list waits at its meetings. With a trace it
 * also notes when each item began and ended. One thread in the place of all walks each list up to its next meeting, the
 * lists in turn, which makes the same values bit for bit.
 *
 * Who walks a list is not part of the plan. Threads that wait for each other inside a kernel cannot take turns: the
 * last of them to come runs the kernel's serial version for all. */
#include <string.h>

#include "base/text.h"
#include "ops/op_helpers.h"
#include "plan/plan_struct.h"

/* ---- the walk ---- */

/* The last of the threads to come makes the shares of all. */
static void run_lockstep_serially(const tdi_item *item)
{
    const tdi_call *call = item->call;
    if (call->thread + 1 == call->threads)
        item->run_serially(call - call->thread, call->threads);
}

/* Notes an item. Returns when it ended: the next one begins there. */
static double note(const tdi_step_trace *trace, const tdi_thread_items *list, int i, double began)
{
    const tdi_item *item = &list->items.at[i];
    double ended = tdi_seconds();
    if (item->kind != TDI_ITEM_IDLE)
        tdi_track_note(trace->track, item->kind == TDI_ITEM_BARRIER ? trace->threads : list->labels[i], began, ended,
                       trace->step);
    return ended;
}

/* Walks items [begin, end) of a list. `first`: the plan is its worker's first, which alone runs the update phase's
 * items. `barrier` NULL: the calling thread runs in the place of all, and stops behind the first meeting. `trace` NULL:
 * nothing is noted. Returns the item to go on with. */
static int walk(const tdi_thread_items *list, int begin, int end, bool first, tdi_barrier *barrier,
                const tdi_step_trace *trace)
{
    double began = trace ? tdi_seconds() : 0;
    bool stops = false;
    int i = begin;
    for (; i < end && !stops; i++) {
        const tdi_item *item = &list->items.at[i];
        if (item->update_phase && !first)
            continue;
        switch (item->kind) {
        case TDI_ITEM_CALL:
            item->call->run(item->call);
            break;
        case TDI_ITEM_LOCKSTEP:
            stops = !barrier;
            if (barrier)
                item->call->run(item->call);
            else
                run_lockstep_serially(item);
            break;
        case TDI_ITEM_BARRIER:
            stops = !barrier;
            if (barrier)
                tdi_barrier_wait(barrier);
            break;
        case TDI_ITEM_IDLE:
            stops = !barrier;
            break;
        }
        if (trace)
            began = note(trace, list, i, began);
    }
    return i;
}

/* ---- by all threads ---- */

static td_status finish(tdi_communicator *communicator, int collective, uint32_t step)
{
    bool broken = communicator->finish(communicator, collective, step) == TDI_BROKEN;
    return broken ? communicator->failure(communicator)->status : TD_OK;
}

static td_status meet(const tdi_segment *segment, int thread, uint32_t step, tdi_barrier *barrier,
                      tdi_communicator *communicator)
{
    if (segment->kind == TDI_STEP_FINISH)
        return finish(communicator, segment->collective, step);
    if (segment->kind == TDI_STEP_BEGIN) {
        tdi_barrier_wait(barrier);
        if (thread == 0)
            communicator->begin(communicator, segment->collective);
    }
    return TD_OK;
}

static td_status meet_traced(const tdi_segment *segment, int thread, uint32_t step, tdi_barrier *barrier,
                             tdi_communicator *communicator, const tdi_step_trace *trace)
{
    if (!trace || segment->kind == TDI_STEP_KERNEL)
        return meet(segment, thread, step, barrier, communicator);
    double began = tdi_seconds();
    td_status status = meet(segment, thread, step, barrier, communicator);
    tdi_track_note(trace->track, segment->kind == TDI_STEP_FINISH ? trace->finish : trace->begin, began, tdi_seconds(),
                   trace->step);
    return status;
}

td_status tdi_plans_run(tdi_plan *const *plans, int count, int thread, uint32_t step, tdi_barrier *barrier,
                        tdi_communicator *communicator, const tdi_step_trace *trace)
{
    int segments = plans[0]->threads[thread].segments.count;
    for (int k = 0; k + 1 < segments; k++) {
        TDI_TRY(meet_traced(&plans[0]->threads[thread].segments.at[k], thread, step, barrier, communicator, trace));
        for (int p = 0; p < count; p++) {
            const tdi_thread_items *list = &plans[p]->threads[thread];
            walk(list, list->segments.at[k].begin, list->segments.at[k + 1].begin, p == 0, barrier, trace);
        }
    }
    return TD_OK;
}

/* ---- by one thread in the place of all ---- */

static void run_segment_in_turn(tdi_plan *plan, int segment, bool first)
{
    int threads = plan->spec.threads;
    for (int thread = 0; thread < threads; thread++)
        plan->threads[thread].reached = plan->threads[thread].segments.at[segment].begin;
    for (bool more = true; more;) {
        more = false;
        for (int thread = 0; thread < threads; thread++) {
            tdi_thread_items *list = &plan->threads[thread];
            int end = list->segments.at[segment + 1].begin;
            list->reached = walk(list, list->reached, end, first, NULL, NULL);
            more |= list->reached < end;
        }
    }
}

td_status tdi_plans_run_in_turn(tdi_plan *const *plans, int shards, int workers, uint32_t step,
                                tdi_communicator *const *communicators)
{
    int segments = plans[0]->threads[0].segments.count;
    for (int k = 0; k + 1 < segments; k++) {
        const tdi_segment *segment = &plans[0]->threads[0].segments.at[k];
        for (int w = 0; w < workers; w++) {
            if (segment->kind == TDI_STEP_BEGIN)
                communicators[w]->begin(communicators[w], segment->collective);
        }
        for (int w = 0; w < workers; w++) {
            if (segment->kind == TDI_STEP_FINISH)
                TDI_TRY(finish(communicators[w], segment->collective, step));
            int first = shards * w / workers;
            for (int p = first; p < shards * (w + 1) / workers; p++)
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
