/* barriers.c - where the threads of a worker must meet.
 *
 * Threads walk their lists at their own pace. A step may begin before the others have finished the steps before it, as
 * long as each thread reads what it wrote itself and writes what it alone has read.
 *
 * So the accesses since the last meeting are remembered, and the threads meet before a step that conflicts with one of
 * them made by other threads. A product by depth has a meeting between its halves. Threads also meet where a collective
 * begins, but not where it is finished. */
#include "plan/threads/accesses.h"
#include "plan/threads/threads.h"

typedef struct tracker {
    const tdi_plan *plan;
    tdi_vec(tdi_access) since; /* the last meeting */
    bool failed;
} tracker;

/* As many elements of another size lie elsewhere, so that bytes are compared too. */
static bool is_by_same_threads(const tdi_access *a, const tdi_access *b)
{
    return (a->by.threads == 1 && b->by.threads == 1) || (tdi_same_bytes(a, b) && tdi_same_dividing(&a->by, &b->by));
}

static bool needs_meeting(const tracker *t, const tdi_access *now)
{
    for (int i = 0; i < t->since.count; i++)
        if (tdi_accesses_conflict(&t->since.at[i], now) && !is_by_same_threads(&t->since.at[i], now))
            return true;
    return false;
}

static void remember(tracker *t, const tdi_access *accesses, int n)
{
    for (int i = 0; i < n; i++)
        if (!tdi_push(&t->since, accesses[i]))
            t->failed = true;
}

static void visit(tracker *t, tdi_planned *step, tdi_access *accesses)
{
    int n = tdi_accesses_of(t->plan, step, false, accesses);
    for (int i = 0; i < n && !step->barrier; i++)
        step->barrier = needs_meeting(t, &accesses[i]);
    if (step->barrier)
        t->since.count = 0;
    remember(t, accesses, n);
    if (!step->finish)
        return;
    t->since.count = 0;
    n = tdi_accesses_of(t->plan, step, true, accesses);
    accesses[n++] = tdi_access_to_sums(t->plan, step, false);
    remember(t, accesses, n);
}

td_status tdi_insert_barriers(tdi_plan *plan, tdi_error *error)
{
    if (plan->spec.threads == 1)
        return TD_OK;
    tracker t = {.plan = plan};
    tdi_access *accesses = tdi_accesses_create(plan);
    if (!accesses)
        return tdi_no_memory(error);
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        tdi_step_kind kind = plan->spec.schedule->at[s].kind;
        if (kind == TDI_STEP_BEGIN)
            t.since.count = 0;
        else if (kind == TDI_STEP_KERNEL && step->node && !step->constant)
            visit(&t, step, accesses);
    }
    tdi_vec_free(&t.since);
    return t.failed ? tdi_no_memory(error) : TD_OK;
}
