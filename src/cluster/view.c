/* view.c - quorums, and what may follow a view. */
#include "cluster/view.h"

#include <stddef.h>

static bool has_most_votes(tdi_task_set voters, tdi_task_set answered)
{
    int votes = tdi_task_count(voters), cast = tdi_task_count(voters & answered);
    return votes > 0 && (2 * cast > votes || (2 * cast == votes && tdi_has_task(answered, tdi_lowest_task(voters))));
}

bool tdi_view_has_quorum(const tdi_view *view, tdi_task_set answered, tdi_task_set gone)
{
    tdi_task_set living = tdi_view_everyone(view) & ~gone;
    if (has_most_votes(view->voters, answered))
        return true;
    if (living == 0 || living & ~answered)
        return false;
    return (living & view->voters) != 0 || (view->strangers & ~gone) == 0;
}

bool tdi_view_may_begin(tdi_task_set tasks, tdi_task_set answered, tdi_task_set gone, bool fewer)
{
    if (fewer && has_most_votes(tasks, answered))
        return true;
    return (answered & tasks) != 0 && (tasks & ~gone & ~answered) == 0;
}

/* With how many of the others a member has no connection both ways. */
static int count_missing(int task, tdi_task_set members, const tdi_task_set *hears)
{
    int missing = 0;
    for (int t = tdi_lowest_task(members); t >= 0; t = tdi_next_task(members, t))
        missing += t != task && !(tdi_has_task(hears[task], t) && tdi_has_task(hears[t], task));
    return missing;
}

tdi_task_set tdi_view_connected(tdi_task_set members, const tdi_task_set hears[TDI_VIEW_TASKS])
{
    for (;;) {
        int worst = TDI_NO_TASK, most = 0;
        for (int t = tdi_lowest_task(members); t >= 0; t = tdi_next_task(members, t)) {
            int missing = count_missing(t, members, hears);
            if (missing > 0 && missing >= most) {
                most = missing;
                worst = t;
            }
        }
        if (worst == TDI_NO_TASK)
            return members;
        members &= ~tdi_task_bit(worst);
    }
}

bool tdi_view_follow(const tdi_view *view, tdi_task_set answered, tdi_task_set gone, tdi_view *next)
{
    tdi_task_set before = tdi_view_everyone(view), now = tdi_view_everyone(next), kept = before & now;
    for (int t = tdi_lowest_task(kept); t >= 0; t = tdi_next_task(kept, t))
        if (view->incarnation[t] != next->incarnation[t])
            kept &= ~tdi_task_bit(t);
    next->strangers = (before | view->strangers) & ~now & ~gone;
    next->voters = kept & view->voters;
    if (next->strangers == 0 && (before & ~gone & ~answered) == 0)
        next->voters = kept;
    if (view->generation == 0)
        next->voters = now;
    return next->members != 0 && next->voters != 0 && ((next->voters & next->members) || next->strangers == 0);
}

bool tdi_view_is_sound(const tdi_view *view)
{
    tdi_task_set everyone = tdi_view_everyone(view), named = everyone | view->strangers;
    for (int t = 0; t < TDI_VIEW_TASKS; t++)
        if ((view->incarnation[t] != 0) != tdi_has_task(named, t))
            return false;
    return view->generation > 0 && view->since > 0 && view->since <= view->generation && view->members != 0 &&
           (view->members & view->witnesses) == 0 && (view->voters & ~everyone) == 0 && view->voters != 0 &&
           (view->strangers & everyone) == 0 && tdi_has_task(view->members, view->donor);
}
