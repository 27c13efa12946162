/* barriers.c - where lanes must meet: before a step that touches bytes which another lane has touched since they last
 * met, one of the two writing. */

#include "plan/threads/accesses.h"

typedef struct tracker {
    const tdi_plan *plan;
    tdi_vec(tdi_touch) since; /* the last meeting */
    bool failed;
} tracker;

static bool same_share(const tdi_touch *a, const tdi_touch *b)
{
    if (a->lanes == 1 && b->lanes == 1)
        return true;
    if (a->split != b->split || a->lanes != b->lanes || a->split == TDI_WHOLE)
        return false;
    if (a->begin != b->begin || a->end != b->end) /* as many elements, of another size, lie elsewhere */
        return false;
    return tdi_split_extent(a->split, &a->shape) == tdi_split_extent(b->split, &b->shape) &&
           tdi_shape_elements(&a->shape) == tdi_shape_elements(&b->shape);
}

static bool conflicts(const tracker *t, const tdi_touch *now)
{
    for (int i = 0; i < t->since.count; i++)
        if (tdi_touches_meet(&t->since.at[i], now) && !same_share(&t->since.at[i], now))
            return true;
    return false;
}

static void remember(tracker *t, const tdi_touch *touches, int n)
{
    for (int i = 0; i < n; i++)
        if (!tdi_push(&t->since, touches[i]))
            t->failed = true;
}

static void visit(tracker *t, tdi_planned *step, tdi_touch *touches)
{
    int n = tdi_touches_of(t->plan, step, false, touches);
    for (int i = 0; i < n && !step->barrier; i++)
        step->barrier = conflicts(t, &touches[i]);
    if (step->barrier)
        t->since.count = 0;
    remember(t, touches, n);
    if (!step->finish)
        return;
    t->since.count = 0; /* they meet before the second half */
    n = tdi_touches_of(t->plan, step, true, touches);
    touches[n++] = tdi_touch_of_sums(t->plan, step, false);
    remember(t, touches, n);
}

td_status tdi_insert_barriers(tdi_plan *plan, tdi_error *error)
{
    if (plan->spec.lanes == 1)
        return TD_OK;
    tracker t = {.plan = plan};
    tdi_touch *touches = tdi_touches_room(plan);
    if (!touches)
        return tdi_no_memory(error);
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        tdi_step_kind kind = plan->spec.schedule->at[s].kind;
        if (kind == TDI_STEP_BEGIN)
            t.since.count = 0; /* lanes meet there, though not where a collective ends */
        else if (kind == TDI_STEP_KERNEL && step->node && !step->constant)
            visit(&t, step, touches);
    }
    tdi_vec_free(&t.since);
    return t.failed ? tdi_no_memory(error) : TD_OK;
}
