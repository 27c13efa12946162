/* membership.c - events in, actions out: beats, who is lost, who is let in, when a ballot is begun and by whom.
 *
 * After every event the membership looks at its view anew (`consider`): does it need another, since somebody in it is
 * lost; would another be better, since somebody joins or leaves; and is it this process's turn to lead the ballot? The
 * lowest member that is heard leads at once, the next a little later, should nothing have come of it. */
#include "cluster/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/membership_state.h"

#define TICK_SECONDS         0.05
#define TURN_SECONDS         0.25 /* between the turns of one who could lead a ballot and the next */
#define PATIENCE_SECONDS     2.0  /* with a ballot of one that comes before, and is heard */
#define STOPPED_SECONDS      0.5  /* training that has stopped for no reason known here has one elsewhere */
#define PLANNED_STOP_SECONDS 1.   /* after which the step under way is broken all the same */
#define OUTDATED_SECONDS     1.0  /* in which who is in a later view says so */
#define ABSENT_SECONDS       0.5  /* for which it holds that nobody was found at an address */
#define LONG_ABSENT_SECONDS  2.0  /* after which that counts where there is no view */

td_status tdi_membership_create(const tdi_membership_settings *settings, double now, tdi_membership **membership,
                                tdi_error *error)
{
    if (settings->tasks < 1 || settings->tasks > TDI_VIEW_TASKS)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "cluster: it has %d tasks; expected 1 to %d", settings->tasks,
                        TDI_VIEW_TASKS);
    tdi_membership *m = *membership = calloc(1, sizeof *m);
    if (!m)
        return tdi_no_memory(error);
    m->settings = *settings;
    m->tasks = ~(tdi_task_set)0 >> (TDI_VIEW_TASKS - settings->tasks);
    m->settings.trains &= m->tasks;
    m->settings.neighbours &= m->tasks & ~tdi_task_bit(settings->self);
    m->view.donor = TDI_NO_TASK;
    m->state = settings->state;
    m->seen = (uint32_t)(settings->state >> 32);
    m->at.step = settings->step;
    m->trouble_since = m->outdated_since = -1;
    m->beat_due = m->tick_due = now;
    for (int t = 0; t < TDI_VIEW_TASKS; t++)
        m->absent[t] = -1;
    tdi_detect_init(&m->detect, settings->self, settings->silence, settings->stall);
    tdi_ballot_reset(m);
    return TD_OK;
}

void tdi_membership_free(tdi_membership *membership)
{
    free(membership);
}

tdi_action *tdi_add_action(tdi_actions *out, tdi_do kind)
{
    tdi_action *action = &out->at[out->count < TDI_MAX_ACTIONS ? out->count++ : TDI_MAX_ACTIONS - 1];
    action->kind = kind;
    action->to = 0;
    action->task = action->from = TDI_NO_TASK;
    return action;
}

void tdi_membership_send(const tdi_membership *m, tdi_task_set to, tdi_message *message, tdi_actions *out)
{
    to &= m->detect.links;
    if (!to)
        return;
    tdi_action *action = tdi_add_action(out, TDI_DO_SEND);
    message->view = tdi_view_id(&m->view);
    action->to = to;
    tdi_message_encode(message, &action->frame, action->payload);
}

/* ---- who is who ---- */

static bool is_member(const tdi_membership *m)
{
    return tdi_has_task(m->view.members, m->settings.self);
}

/* Is the process at the other end of the link the one that is in the view? */
static bool is_same(const tdi_membership *m, int task)
{
    return m->linked[task] == m->view.incarnation[task];
}

tdi_task_set tdi_membership_gone_of(const tdi_membership *m, const tdi_view *view)
{
    tdi_task_set gone = 0;
    for (int t = 0; t < m->settings.tasks; t++)
        if (view->incarnation[t] && view->incarnation[t] <= m->dead[t])
            gone |= tdi_task_bit(t);
    return gone;
}

static void bury_up_to(tdi_membership *m, int task, uint64_t incarnation)
{
    if (task != m->settings.self && incarnation > m->dead[task])
        m->dead[task] = incarnation;
}

void tdi_membership_bury(tdi_membership *m, const tdi_view *view, tdi_task_set set)
{
    set &= m->tasks;
    for (int t = tdi_lowest_task(set); t >= 0; t = tdi_next_task(set, t))
        bury_up_to(m, t, view->incarnation[t]);
}

/* Who is in a view has followed on all earlier processes of its task. */
static void bury_before(tdi_membership *m, const tdi_view *view)
{
    for (int t = 0; t < m->settings.tasks; t++)
        if (view->incarnation[t] > 1)
            bury_up_to(m, t, view->incarnation[t] - 1);
}

tdi_task_set tdi_membership_absent(const tdi_membership *m, double now)
{
    tdi_task_set absent = 0;
    for (int t = 0; (m->known || m->fewer) && t < m->settings.tasks; t++)
        if (m->absent[t] >= 0 && now - m->absent[t] <= ABSENT_SECONDS &&
            m->absent[t] - m->absent_since[t] >= LONG_ABSENT_SECONDS)
            absent |= tdi_task_bit(t);
    return absent & ~m->detect.links;
}

tdi_task_set tdi_membership_hears(const tdi_membership *m, double now)
{
    tdi_task_set heard = tdi_detect_hears(&m->detect, now) & m->tasks, everyone = tdi_view_everyone(&m->view);
    everyone &= heard;
    for (int t = tdi_lowest_task(everyone); t >= 0; t = tdi_next_task(everyone, t))
        if (t != m->settings.self && m->linked[t] && !is_same(m, t))
            heard &= ~tdi_task_bit(t);
    return heard & ~(tdi_membership_gone_of(m, &m->view) & tdi_view_everyone(&m->view));
}

tdi_task_set tdi_membership_joiners(const tdi_membership *m, double now)
{
    tdi_task_set found = 0, hears = tdi_membership_hears(m, now) & ~tdi_view_everyone(&m->view) & m->detect.links;
    for (int t = tdi_lowest_task(hears); t >= 0; t = tdi_next_task(hears, t))
        if (m->told[t].view == 0 && m->told[t].flags & TDI_SAY_JOINS && m->linked[t] > m->dead[t] &&
            m->told[t].known >= m->view.generation)
            found |= tdi_task_bit(t);
    return found;
}

tdi_task_set tdi_membership_leavers(const tdi_membership *m)
{
    tdi_task_set leavers = m->leaving ? tdi_task_bit(m->settings.self) : 0;
    tdi_task_set everyone = tdi_view_everyone(&m->view) & m->detect.links;
    for (int t = tdi_lowest_task(everyone); t >= 0; t = tdi_next_task(everyone, t))
        if (is_same(m, t) && m->told[t].flags & TDI_SAY_LEAVES)
            leavers |= tdi_task_bit(t);
    return leavers;
}

static tdi_task_set lost_of_view(const tdi_membership *m)
{
    tdi_task_set everyone = tdi_view_everyone(&m->view) & ~tdi_task_bit(m->settings.self);
    tdi_task_set lost = m->detect.lost | m->detect.stuck | tdi_membership_gone_of(m, &m->view);
    return everyone & lost;
}

/* Members of the view whom another member, that is heard, does not hear. */
static tdi_task_set missed_by_others(const tdi_membership *m, double now)
{
    tdi_task_set missed = 0, heard = tdi_membership_hears(m, now) & m->view.members;
    for (int t = tdi_lowest_task(heard); t >= 0; t = tdi_next_task(heard, t))
        if (t != m->settings.self && m->told[t].view == tdi_view_id(&m->view))
            missed |= m->view.members & ~m->told[t].hears;
    return missed;
}

/* ---- beats ---- */

static int leader(const tdi_membership *m)
{
    return tdi_lowest_task(m->view.members);
}

static void beat(tdi_membership *m, tdi_task_set to, double now, tdi_actions *out)
{
    bool in_view = m->view.generation != 0, joins = !in_view && !m->leaving && m->training == TDI_TRAINING_NONE;
    bool is_ready = m->training == TDI_TRAINING_RUNS || (in_view && m->training == TDI_TRAINING_NONE);
    tdi_message say = {.kind = TDI_SAY_BEAT,
                       .incarnation = m->settings.incarnation,
                       .flags = (joins ? TDI_SAY_JOINS : 0u) | (m->leaving ? TDI_SAY_LEAVES : 0u) |
                                (is_ready ? TDI_SAY_READY : 0u),
                       .state = m->state,
                       .at = m->at,
                       .hears = tdi_membership_hears(m, now),
                       .known = m->known,
                       .facts = m->settings.facts};
    tdi_membership_send(m, to, &say, out);
}

/* To all: even 63 others are 630 small frames a second, and whoever is lost is noticed by everyone in time, however
 * many are lost at once. */
static void beat_all(tdi_membership *m, double now, tdi_actions *out)
{
    beat(m, m->tasks, now, out);
    m->beat_due = now + TDI_BEAT_SECONDS;
}

/* ---- another view ---- */

void tdi_membership_break(tdi_membership *m, tdi_actions *out)
{
    if (m->training == TDI_TRAINING_BEGINS || m->training == TDI_TRAINING_RUNS) {
        tdi_add_action(out, TDI_DO_STOP);
        m->training = TDI_TRAINING_STOPPING;
    }
}

static void enter(tdi_membership *m, const tdi_view *view, tdi_actions *out)
{
    bool same = m->view.generation && m->view.since == view->since;
    bool trains = tdi_has_task(view->members, m->settings.self);
    bool was_member = is_member(m) && m->training != TDI_TRAINING_RUNS; /* it has said at which step it is */
    bool has_state = was_member && m->state == view->state && m->at.step == view->step;
    m->view = *view;
    if (same)
        return;
    tdi_action *action = tdi_add_action(out, TDI_DO_VIEW);
    action->from = trains && !has_state && view->donor != m->settings.self ? view->donor : TDI_NO_TASK;
    action->enough = tdi_task_count(view->members) >= m->settings.min_workers;
    m->training = trains ? TDI_TRAINING_BEGINS : TDI_TRAINING_NONE;
}

/* Nobody counts on this process any more. */
static void leave_at_last(tdi_membership *m, tdi_actions *out)
{
    if (!m->has_left)
        tdi_add_action(out, TDI_DO_LEFT);
    m->has_left = true;
}

/* Whatever it has promised or accepted is void: it is another process from now on. */
static void be_left_out(tdi_membership *m, tdi_actions *out)
{
    m->settings.incarnation++;
    bool ends = m->training == TDI_TRAINING_NONE || m->training == TDI_TRAINING_STOPPED;
    m->view = (tdi_view){.donor = TDI_NO_TASK};
    m->training = ends ? TDI_TRAINING_NONE : TDI_TRAINING_STOPPING;
    if (m->leaving)
        leave_at_last(m, out);
    else
        tdi_add_action(out, TDI_DO_OUT);
}

/* Who is left out although it has not been said to be lost. */
static void say_left_out(tdi_membership *m, const tdi_view *view, double now, tdi_actions *out)
{
    tdi_task_set out_of_it = tdi_view_everyone(&m->view) & ~tdi_view_everyone(view) & ~m->named &
                             ~tdi_membership_leavers(m) & ~tdi_task_bit(m->settings.self);
    for (int t = tdi_lowest_task(out_of_it); t >= 0; t = tdi_next_task(out_of_it, t)) {
        tdi_action *action = tdi_add_action(out, TDI_DO_LOST);
        action->task = t;
        if (lost_of_view(m) & tdi_task_bit(t))
            tdi_detect_say_lost(&m->detect, t, m->settings.names[t], now, action->sentence, sizeof action->sentence);
        else
            snprintf(action->sentence, sizeof action->sentence,
                     "%s is left out at step %u: it and another member do not reach each other", m->settings.names[t],
                     view->step);
    }
}

void tdi_membership_adopt(tdi_membership *m, const tdi_view *view, double now, tdi_actions *out)
{
    bool is_in = tdi_has_task(tdi_view_everyone(view), m->settings.self) &&
                 view->incarnation[m->settings.self] == m->settings.incarnation;
    bury_before(m, view);
    if (view->generation > m->known)
        m->known = view->generation;
    if (m->known > m->seen)
        m->seen = m->known;
    if (m->view.generation && is_in)
        say_left_out(m, view, now, out);
    if (is_in)
        enter(m, view, out);
    else if (m->view.generation)
        be_left_out(m, out);
    else
        m->settings.incarnation++; /* another view may have let it in meanwhile, too old for it now */
    m->pausing = false;
    m->named = 0;
    m->trouble_since = -1;
    m->active = now;
    tdi_ballot_reset(m);
    beat_all(m, now, out);
}

static void tell_view(tdi_membership *m, int task, tdi_actions *out)
{
    if (m->view.generation == 0)
        return;
    tdi_message say = {
        .kind = TDI_SAY_COMMIT, .gone = tdi_membership_gone_of(m, &m->view), .at = m->at, .next = m->view};
    tdi_membership_send(m, tdi_task_bit(task), &say, out);
}

static void give_up_view(tdi_membership *m, double now, tdi_actions *out)
{
    be_left_out(m, out);
    tdi_ballot_reset(m);
    beat_all(m, now, out);
}

static bool is_void(const tdi_membership *m, const tdi_view *view)
{
    return (view->makers & ~tdi_membership_gone_of(m, view)) == 0;
}

/* A view all of whose makers are gone may be one that others have gone on without: it is believed from those alone who
 * had to be asked about that. */
static bool is_to_be_adopted(const tdi_membership *m, int from, const tdi_view *view)
{
    bool insider = tdi_has_task(tdi_view_everyone(&m->view), from) && is_same(m, from);
    if (m->view.generation == 0)
        return view->generation > m->known;
    return tdi_view_id(view) > tdi_view_id(&m->view) && (insider || !is_void(m, view));
}

/* A guest of such a view has no vote in what follows it: it gives it up when it is told of others who go on. */
static bool has_to_yield(const tdi_membership *m, const tdi_message *say)
{
    int self = m->settings.self;
    return m->view.generation && !tdi_has_task(m->view.voters, self) && is_void(m, &m->view) &&
           !is_void(m, &say->next) && say->view == tdi_view_id(&say->next) &&
           say->next.incarnation[self] != m->settings.incarnation;
}

/* A first view, by a ballot after which this process has promised another. */
static bool is_overtaken(const tdi_membership *m, const tdi_message *say)
{
    return m->view.generation == 0 && say->view == 0 && say->next.order < m->promised;
}

static void on_commit(tdi_membership *m, int from, const tdi_message *say, double now, tdi_actions *out)
{
    const tdi_view *view = &say->next;
    if (view->generation > m->seen)
        m->seen = view->generation;
    tdi_membership_bury(m, view, say->gone);
    if (tdi_view_id(view) == tdi_view_id(&m->view))
        m->view.makers |= view->makers;
    else if (is_to_be_adopted(m, from, view) && !is_overtaken(m, say))
        tdi_membership_adopt(m, view, now, out);
    else if (has_to_yield(m, say))
        give_up_view(m, now, out);
    else if (tdi_view_id(view) > tdi_view_id(&m->view) && say->view == tdi_view_id(view))
        tell_view(m, from, out); /* who has no vote in that one yields */
}

/* ---- what the view needs ---- */

void tdi_membership_prove(tdi_membership *m, tdi_task_set tasks, double now, tdi_actions *out)
{
    if (!tasks || now < m->prove_due)
        return;
    m->prove_due = now + ABSENT_SECONDS / 2;
    tdi_add_action(out, TDI_DO_PROVE)->to = tasks;
}

static void say_lost(tdi_membership *m, double now, tdi_actions *out)
{
    tdi_task_set lost = lost_of_view(m), fresh = lost & ~m->named;
    m->named = lost;
    for (int t = tdi_lowest_task(fresh); t >= 0; t = tdi_next_task(fresh, t)) {
        tdi_action *action = tdi_add_action(out, TDI_DO_LOST);
        action->task = t;
        if (m->linked[t] && !is_same(m, t))
            snprintf(action->sentence, sizeof action->sentence, "%s has come back as another: lost at step %u",
                     m->settings.names[t], m->detect.peer[t].at.step);
        else
            tdi_detect_say_lost(&m->detect, t, m->settings.names[t], now, action->sentence, sizeof action->sentence);
    }
    if (fresh)
        beat_all(m, now, out);
}

static void say_slow(tdi_membership *m, double now, tdi_actions *out)
{
    tdi_task_set slow = tdi_detect_stalls(&m->detect, now);
    for (int t = tdi_lowest_task(slow); t >= 0; t = tdi_next_task(slow, t)) {
        tdi_action *action = tdi_add_action(out, TDI_DO_SLOW);
        action->task = t;
        tdi_detect_say_stall(&m->detect, t, m->settings.names[t], now, action->sentence, sizeof action->sentence);
    }
}

/* How many of those that could lead a ballot come before this process. */
static int turn_of(const tdi_membership *m, tdi_task_set candidates)
{
    return tdi_task_count(candidates & (tdi_task_bit(m->settings.self) - 1));
}

static bool is_turn(const tdi_membership *m, tdi_task_set candidates, double grace, double now)
{
    double since = m->active > m->trouble_since ? m->active : m->trouble_since;
    int turn = turn_of(m, candidates), leads = m->promised ? (int)(m->promised % TDI_VIEW_TASKS) : TDI_NO_TASK;
    if (tdi_has_task(candidates, leads) && leads < m->settings.self)
        grace += PATIENCE_SECONDS;
    if (turn == 0 && m->active <= m->trouble_since && grace == 0)
        return true;
    return now - since >= grace + TURN_SECONDS * turn + 0.02 * (m->settings.self + 1);
}

static bool all_are_ready(const tdi_membership *m)
{
    tdi_task_set others = tdi_view_everyone(&m->view) & ~tdi_task_bit(m->settings.self);
    for (int t = tdi_lowest_task(others); t >= 0; t = tdi_next_task(others, t))
        if (!is_same(m, t) || m->told[t].view != tdi_view_id(&m->view) || !(m->told[t].flags & TDI_SAY_READY))
            return false;
    return true;
}

/* Could it become a member now, since it and all members hear each other? */
static bool is_reachable(const tdi_membership *m, int task, double now)
{
    tdi_task_set self = tdi_task_bit(m->settings.self), others = m->view.members & ~self;
    if (m->view.members & ~m->told[task].hears || !tdi_has_task(tdi_membership_hears(m, now), task))
        return false;
    for (int t = tdi_lowest_task(others); t >= 0; t = tdi_next_task(others, t))
        if (!tdi_has_task(m->told[t].hears, task))
            return false;
    return true;
}

static tdi_task_set reachable_joiners(const tdi_membership *m, double now)
{
    tdi_task_set joiners = tdi_membership_joiners(m, now), found = 0;
    for (int t = tdi_lowest_task(joiners); t >= 0; t = tdi_next_task(joiners, t))
        if (is_reachable(m, t, now))
            found |= tdi_task_bit(t);
    return found;
}

static bool votes_can_be_given(const tdi_membership *m)
{
    tdi_task_set guests = tdi_view_everyone(&m->view) & ~m->view.voters;
    tdi_task_set strangers = m->view.strangers & ~tdi_membership_gone_of(m, &m->view);
    return guests != 0 && strangers == 0;
}

/* The leader alone plans: a change of members waits for the end of a step, one of votes does not. */
static void plan(tdi_membership *m, double now, tdi_actions *out)
{
    tdi_task_set trains = m->settings.trains, joiners = reachable_joiners(m, now), leavers = tdi_membership_leavers(m);
    bool leaves = leavers & trains && m->view.members & m->view.voters & ~leavers;
    bool moves = leaves || joiners & trains;
    if (m->leaving && m->view.members == tdi_task_bit(m->settings.self) && tdi_membership_joiners(m, now) == 0)
        leave_at_last(m, out);
    tdi_membership_prove(m, m->view.strangers & ~tdi_membership_gone_of(m, &m->view), now, out);
    if (m->training != TDI_TRAINING_RUNS || m->pausing || m->ballot.phase != TDI_BALLOT_NONE || !all_are_ready(m))
        return;
    if (joiners & ~trains || leavers & ~trains || votes_can_be_given(m)) {
        if (now - m->active >= TDI_BEAT_SECONDS)
            tdi_ballot_begin(m, TDI_SAY_VOTES, now, out);
    } else if (moves) {
        m->pausing = true;
        tdi_add_action(out, TDI_DO_PAUSE);
    }
}

/* Somebody in the view is lost, or training has stopped: it needs another. */
static void repair(tdi_membership *m, tdi_task_set trouble, bool stopped, double now, tdi_actions *out)
{
    bool of_members = stopped || (trouble & m->view.members);
    uint32_t flags = of_members ? 0 : TDI_SAY_VOTES;
    bool was_planned = m->ballot.phase == TDI_BALLOT_PREPARING && m->ballot.flags != 0;
    tdi_task_set candidates = m->view.members & tdi_membership_hears(m, now);
    if (m->trouble_since < 0)
        m->trouble_since = now;
    tdi_membership_prove(m, (lost_of_view(m) | m->view.strangers) & ~tdi_membership_gone_of(m, &m->view), now, out);
    if (was_planned && (trouble & m->view.members))
        tdi_ballot_begin(m, 0, now, out);
    else if (m->ballot.phase == TDI_BALLOT_NONE && is_turn(m, candidates, trouble ? 0 : STOPPED_SECONDS, now))
        tdi_ballot_begin(m, flags, now, out);
}

static void lead_on(tdi_membership *m, double now, tdi_actions *out)
{
    tdi_task_set trouble = (lost_of_view(m) | missed_by_others(m, now)) & tdi_view_everyone(&m->view);
    bool stopped = m->training == TDI_TRAINING_STOPPED;
    if (m->pausing && stopped && m->ballot.phase == TDI_BALLOT_NONE && !trouble) {
        m->pausing = false;
        tdi_ballot_begin(m, TDI_SAY_PLANNED, now, out);
    } else if (trouble || stopped) {
        repair(m, trouble, stopped, now, out);
    } else {
        m->trouble_since = -1;
        if (leader(m) == m->settings.self)
            plan(m, now, out);
    }
}

/* ---- without a view ---- */

/* Nothing can follow its view: no member is left to lead a ballot, or all voters are gone and some that were left out
 * may have gone on, of which a guest alone cannot know. */
static bool is_stranded(const tdi_membership *m)
{
    tdi_task_set gone = tdi_membership_gone_of(m, &m->view);
    return (m->view.members & ~gone) == 0 || ((m->view.voters & ~gone) == 0 && (m->view.strangers & ~gone) != 0);
}

/* The generation of a view that has followed on this one, of which somebody knows who was left out of it; 0: nobody. */
static uint32_t generation_behind(const tdi_membership *m)
{
    uint32_t latest = 0;
    tdi_task_set others = tdi_view_everyone(&m->view) & m->detect.links;
    for (int t = tdi_lowest_task(others); t >= 0; t = tdi_next_task(others, t))
        if (m->told[t].view == 0 && m->told[t].flags & TDI_SAY_JOINS && m->told[t].known > latest)
            latest = m->told[t].known;
    return latest > m->view.generation ? latest : 0;
}

/* Whoever is in that view would have said so by now: either nobody is any more, or they cannot be reached. */
static bool is_outdated(tdi_membership *m, double now)
{
    uint32_t latest = generation_behind(m);
    if (latest == 0)
        m->outdated_since = -1;
    else if (m->outdated_since < 0)
        m->outdated_since = now;
    if (latest == 0 || now - m->outdated_since < OUTDATED_SECONDS)
        return false;
    m->known = latest - 1;
    return true;
}

static tdi_task_set viewless(const tdi_membership *m, double now, bool *group_is_there)
{
    tdi_task_set found = tdi_task_bit(m->settings.self), heard = m->detect.links & tdi_membership_hears(m, now);
    for (int t = tdi_lowest_task(heard); t >= 0; t = tdi_next_task(heard, t)) {
        if (m->told[t].view)
            *group_is_there = true;
        else if (m->told[t].flags & TDI_SAY_JOINS)
            found |= tdi_task_bit(t);
    }
    return found;
}

/* When nobody is in a view, those who are there make the first: all tasks, but for those that are proved gone where
 * the group has lived already, or the time to start is over. */
static void found_group(tdi_membership *m, double now, tdi_actions *out)
{
    bool group_is_there = false;
    tdi_task_set there = viewless(m, now, &group_is_there), missing = m->tasks & ~there & ~m->detect.links;
    bool may = !m->leaving && m->training == TDI_TRAINING_NONE && !group_is_there &&
               tdi_has_task(m->settings.trains, m->settings.self);
    if (may && missing && (m->known || m->fewer))
        tdi_membership_prove(m, missing, now, out);
    if (!may || !tdi_view_may_begin(m->tasks, there, tdi_membership_absent(m, now), m->fewer)) {
        m->trouble_since = -1;
        return;
    }
    if (m->trouble_since < 0)
        m->trouble_since = now;
    if (m->ballot.phase == TDI_BALLOT_NONE && is_turn(m, there & m->settings.trains, 0, now))
        tdi_ballot_begin(m, 0, now, out);
}

/* ---- after every event ---- */

static void consider(tdi_membership *m, double now, tdi_actions *out)
{
    if (m->view.generation && (is_stranded(m) || is_outdated(m, now)))
        give_up_view(m, now, out);
    tdi_detect_watch(&m->detect, tdi_view_everyone(&m->view), now);
    if (m->view.generation == 0) {
        found_group(m, now, out);
    } else {
        say_lost(m, now, out);
        if (is_member(m))
            lead_on(m, now, out);
        else
            tdi_membership_prove(m, lost_of_view(m) & ~tdi_membership_gone_of(m, &m->view), now, out);
    }
    tdi_ballot_step(m, now, out);
}

/* One that has been stopped may have been counted as gone, by another of its host. */
static void begin_event(tdi_membership *m, double now, tdi_actions *out)
{
    if (!tdi_detect_wake(&m->detect, now))
        return;
    m->active = now;
    if (m->settings.neighbours && m->view.generation)
        give_up_view(m, now, out);
    else if (m->settings.neighbours)
        m->settings.incarnation++;
}

static void finish_event(tdi_membership *m, double now, tdi_actions *out)
{
    consider(m, now, out);
}

/* ---- events ---- */

/* The process at the other end of a link: those before it are gone. */
static void meet(tdi_membership *m, int task, uint64_t incarnation)
{
    if (m->linked[task] != incarnation)
        m->told[task] = (tdi_told){0};
    m->linked[task] = incarnation;
    if (incarnation > 1)
        bury_up_to(m, task, incarnation - 1);
}

void tdi_membership_link_up(tdi_membership *m, int task, uint64_t incarnation, double now, tdi_actions *out)
{
    begin_event(m, now, out);
    m->linked[task] = 0;
    meet(m, task, incarnation);
    m->absent[task] = -1;
    tdi_detect_open(&m->detect, task, now);
    beat(m, tdi_task_bit(task), now, out);
    finish_event(m, now, out);
}

void tdi_membership_link_down(tdi_membership *m, int task, double now, tdi_actions *out)
{
    begin_event(m, now, out);
    tdi_detect_close(&m->detect, task);
    finish_event(m, now, out);
}

/* The id of a view that is older, or other, than the own one. */
static bool is_behind(const tdi_membership *m, const tdi_message *say)
{
    if (say->view == 0)
        return say->known < m->view.generation;
    return say->view < tdi_view_id(&m->view);
}

static void hear_generation(tdi_membership *m, uint32_t generation)
{
    if (generation > m->seen)
        m->seen = generation;
}

static void on_beat(tdi_membership *m, int from, const tdi_message *say, double now, tdi_actions *out)
{
    meet(m, from, say->incarnation);
    m->told[from] = (tdi_told){.view = say->view,
                               .state = say->state,
                               .flags = say->flags,
                               .step = say->at.step,
                               .known = say->known,
                               .facts = say->facts,
                               .hears = say->hears};
    hear_generation(m, say->known);
    hear_generation(m, (uint32_t)(say->state >> 32));
    tdi_detect_beat(&m->detect, from, &say->at, now);
    if (say->view != tdi_view_id(&m->view) && is_behind(m, say))
        tell_view(m, from, out);
}

static bool is_of_ballot(const tdi_membership *m, int from, const tdi_message *say)
{
    bool is_elector = m->view.generation == 0 || (tdi_has_task(tdi_view_everyone(&m->view), from) && is_same(m, from) &&
                                                  m->dead[from] != m->linked[from]);
    return say->view == tdi_view_id(&m->view) && is_elector;
}

/* Who is in another view, and not in a newer one, is told this; to who is in a newer one this process says where it is.
 */
static void on_other_view(tdi_membership *m, int from, const tdi_message *say, double now, tdi_actions *out)
{
    if (say->view == tdi_view_id(&m->view))
        return;
    if (say->view < tdi_view_id(&m->view))
        tell_view(m, from, out);
    else
        beat(m, tdi_task_bit(from), now, out);
}

/* Views name tasks of this cluster only. */
static td_status check_tasks(const tdi_membership *m, const tdi_message *say, tdi_error *error)
{
    tdi_task_set named = tdi_message_has_view(say) ? tdi_view_everyone(&say->next) | say->next.strangers : 0;
    if ((named & ~m->tasks) == 0)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: its view has task %d, and the cluster has %d tasks",
                    tdi_say_name(say->kind), tdi_lowest_task(named & ~m->tasks), m->settings.tasks);
}

td_status tdi_membership_receive(tdi_membership *m, int task, const tdi_frame *frame, const unsigned char *payload,
                                 double now, tdi_actions *out, tdi_error *error)
{
    tdi_message say;
    TDI_TRY(tdi_message_decode(frame, payload, &say, error));
    TDI_TRY(check_tasks(m, &say, error));
    if (!tdi_has_task(m->detect.links, task))
        return TD_OK;
    begin_event(m, now, out);
    tdi_detect_hear(&m->detect, task, now);
    if (say.kind == TDI_SAY_BEAT)
        on_beat(m, task, &say, now, out);
    else if (say.kind == TDI_SAY_COMMIT)
        on_commit(m, task, &say, now, out);
    else if (is_of_ballot(m, task, &say))
        tdi_ballot_receive(m, task, &say, now, out);
    else
        on_other_view(m, task, &say, now, out);
    finish_event(m, now, out);
    return TD_OK;
}

void tdi_membership_tick(tdi_membership *m, double now, tdi_actions *out)
{
    begin_event(m, now, out);
    if (now >= m->beat_due)
        beat_all(m, now, out);
    tdi_detect_tick(&m->detect, now);
    say_slow(m, now, out);
    if (m->owed != TDI_NO_TASK && now - m->owed_since >= PLANNED_STOP_SECONDS)
        tdi_membership_break(m, out);
    m->tick_due = now + TICK_SECONDS;
    finish_event(m, now, out);
}

double tdi_membership_due(const tdi_membership *m)
{
    return m->tick_due;
}

void tdi_membership_progress(tdi_membership *m, const tdi_progress *at)
{
    m->at = *at;
}

void tdi_membership_stopped(tdi_membership *m, uint32_t step, double now, tdi_actions *out)
{
    begin_event(m, now, out);
    m->at = (tdi_progress){.step = step};
    m->training = is_member(m) ? TDI_TRAINING_STOPPED : TDI_TRAINING_NONE;
    tdi_ballot_answer(m, now, out);
    finish_event(m, now, out);
}

void tdi_membership_ready(tdi_membership *m, double now, tdi_actions *out)
{
    begin_event(m, now, out);
    if (m->training == TDI_TRAINING_BEGINS) {
        m->training = TDI_TRAINING_RUNS;
        m->state = tdi_view_id(&m->view);
        m->at = (tdi_progress){.step = m->view.step};
    }
    finish_event(m, now, out);
}

void tdi_membership_gone(tdi_membership *m, int task, uint64_t incarnation, double now, tdi_actions *out)
{
    begin_event(m, now, out);
    if (m->absent[task] < 0 || now - m->absent[task] > ABSENT_SECONDS)
        m->absent_since[task] = now;
    m->absent[task] = now;
    bury_up_to(m, task, incarnation);
    finish_event(m, now, out);
}

void tdi_membership_wire(tdi_membership *m, int task, bool stuck, double now, tdi_actions *out)
{
    begin_event(m, now, out);
    tdi_detect_stuck(&m->detect, task, stuck);
    finish_event(m, now, out);
}

void tdi_membership_leave(tdi_membership *m, double now, tdi_actions *out)
{
    begin_event(m, now, out);
    m->leaving = true;
    if (m->view.generation == 0)
        leave_at_last(m, out);
    beat_all(m, now, out);
    finish_event(m, now, out);
}

void tdi_membership_begin_with_fewer(tdi_membership *m, double now, tdi_actions *out)
{
    begin_event(m, now, out);
    m->fewer = true;
    finish_event(m, now, out);
}

const tdi_view *tdi_membership_view(const tdi_membership *m)
{
    return &m->view;
}

uint64_t tdi_membership_state(const tdi_membership *m)
{
    return m->state;
}

tdi_task_set tdi_membership_lost(const tdi_membership *m)
{
    return lost_of_view(m);
}

bool tdi_membership_leads(const tdi_membership *m)
{
    return m->view.generation && leader(m) == m->settings.self;
}

uint64_t tdi_membership_incarnation(const tdi_membership *m)
{
    return m->settings.incarnation;
}
