/* view.h - views: who trains together from which step on, and by what right one view follows another.
 *
 * A task is a bit of a set, by its place in the cluster's configuration. A view has members, which train, and witnesses
 * (evaluator, servers), which only vote. A process is a task and an incarnation, a number that
 * grows from start to start of the task. Who comes back after a death is another process; so is who learns that it has
 * been left out, or gives its view up: it takes the next incarnation, and its votes are gone by its own word.
 *
 * The next view is agreed on by those who have a vote in this one (ballot.c). Any two quorums share a process that
 * lives, so that two groups never go on side by side:
 *
 *   1. more than half of the votes; or
 *   2. exactly half, with the lowest task that has a vote; or
 *   3. everyone who is not proved gone, where a proof is final: the process's port refuses, a later incarnation of its
 *      task has come, or a neighbour on its host sees it stopped: then it takes the next incarnation when it wakes.
 *
 * Rule 3 lets one of four go on when three are killed at once. Two things keep it safe where views also grow:
 *
 *   - Who joins is a guest at first: rule 3 wants its consent, but it has no vote. Guests get votes by the first ballot
 *     in which everyone has answered, that is, when everyone knows that they are there.
 *   - Who is left out without a proof is a stranger: it may live, and know nothing. While there are strangers nobody
 *     gets a vote, and at least one member has one. A stranger that goes on by rule 3 has then proved that this member
 *     is gone, and without it this view makes no further step.
 *
 * Everything here is a function of its arguments. */
#ifndef TDI_CLUSTER_VIEW_H
#define TDI_CLUSTER_VIEW_H

#include <stdbool.h>
#include <stdint.h>

enum { TDI_VIEW_TASKS = 64, TDI_NO_TASK = -1 };

typedef uint64_t tdi_task_set; /* bit t: task t */

typedef struct tdi_view {
    uint32_t generation; /* grows from view to view; 0: there is no view yet, and everyone has a vote on the first */
    uint32_t order;      /* of the ballot that proposed it: generation and order name a view uniquely */
    uint32_t since; /* the generation since which the members have trained without a break: steps' frames bear it */
    uint32_t step;  /* steps done when the members began */
    uint64_t state; /* the view (tdi_view_id) in which the donor's state was reached */
    int donor;      /* the member whose state, of `step`, is everyone's; TDI_NO_TASK before the first view */
    tdi_task_set members, witnesses;
    tdi_task_set voters;                  /* of members and witnesses; the others of them are guests */
    tdi_task_set strangers;               /* of earlier views, left out without a proof that they are gone */
    tdi_task_set makers;                  /* whose acceptance is known to have made it; not part of what is agreed on */
    uint64_t incarnation[TDI_VIEW_TASKS]; /* of members, witnesses and strangers; else 0 */
    uint32_t facts[TDI_VIEW_TASKS];       /* of members: what each says of its devices and shards, for the deal */
} tdi_view;

static inline tdi_task_set tdi_task_bit(int task)
{
    return (tdi_task_set)1 << task;
}

static inline bool tdi_has_task(tdi_task_set set, int task)
{
    return task >= 0 && (set >> task & 1);
}

static inline int tdi_task_count(tdi_task_set set)
{
    return __builtin_popcountll(set);
}

/* The lowest task of a set; TDI_NO_TASK: it is empty. The leader of a view is the lowest of its members. */
static inline int tdi_lowest_task(tdi_task_set set)
{
    return set ? __builtin_ctzll(set) : TDI_NO_TASK;
}

/* for (int t = tdi_lowest_task(set); t >= 0; t = tdi_next_task(set, t)) */
static inline int tdi_next_task(tdi_task_set set, int task)
{
    return task >= TDI_VIEW_TASKS - 1 ? TDI_NO_TASK : tdi_lowest_task(set & ~(tdi_task_set)0 << (task + 1));
}

static inline uint64_t tdi_view_id(const tdi_view *view)
{
    return (uint64_t)view->generation << 32 | view->order;
}

static inline tdi_task_set tdi_view_everyone(const tdi_view *view)
{
    return view->members | view->witnesses;
}

/* May those who have answered decide what follows `view`? `gone`: those of it, strangers too, that are proved gone. */
bool tdi_view_has_quorum(const tdi_view *view, tdi_task_set answered, tdi_task_set gone);
/* The first view's: all tasks of the cluster that are not proved gone; with `fewer`, rules 1 and 2 as well. */
bool tdi_view_may_begin(tdi_task_set tasks, tdi_task_set answered, tdi_task_set gone, bool fewer);

/* Drops members that do not hear each other until all do, each time the one that most others miss, the later of two.
 * `hears[t]`: whom member t hears. */
tdi_task_set tdi_view_connected(tdi_task_set members, const tdi_task_set hears[TDI_VIEW_TASKS]);

/* Sets voters and strangers of `next`, whose members, witnesses and incarnations are set, as the view after `view`.
 * `answered`: who has answered in this ballot; `gone`: as above. False: `next` must not be: it would have no member
 * with a vote while there are strangers. */
bool tdi_view_follow(const tdi_view *view, tdi_task_set answered, tdi_task_set gone, tdi_view *next);

/* Is this what a view can look like? For views that come from others. */
bool tdi_view_is_sound(const tdi_view *view);

#endif
