/* ballot.c - the agreement on the view that follows: single-decree Paxos (Lamport, "The part-time parliament", 1998),
 * one decree for each view, its acceptors those who have a vote in that view, its quorums those of view.h.
 *
 *     leader of the ballot                     everyone of the view
 *     PREPARE(order, who is gone) ---------->  promised no higher one: training stops, then
 *                                 <----------  PROMISE(state, step, whom I hear, what I have accepted)
 *     all whom it hears have answered, and they are a quorum: the view that was accepted in the highest order, else one
 *     of those who have answered and hear each other
 *     PROPOSE(order, view) ----------------->  promised no higher one: accepted
 *                                 <----------  ACCEPT(order)
 *     a quorum has: it is made
 *     COMMIT(view) to all
 *
 * No answer has a time limit: a thread that computes long stops late, and meanwhile its process says beats. Who is lost
 * is no longer waited for. Orders are (round, task): two processes never lead the same one. */
#include <stdio.h>

#include "cluster/membership_state.h"

#define ASK_AGAIN_SECONDS 0.3
#define SAY_WHY_SECONDS   0.5

void tdi_ballot_reset(tdi_membership *m)
{
    m->promised = m->accepted = m->highest = 0;
    m->owed = TDI_NO_TASK;
    m->ballot.phase = TDI_BALLOT_NONE;
}

static tdi_task_set own(const tdi_membership *m)
{
    return tdi_task_bit(m->settings.self);
}

/* Who is asked for a promise. */
static tdi_task_set electorate(const tdi_membership *m)
{
    return m->view.generation ? tdi_view_everyone(&m->view) : m->tasks;
}

static bool has_quorum(const tdi_membership *m, tdi_task_set answered, double now)
{
    if (m->view.generation)
        return tdi_view_has_quorum(&m->view, answered, tdi_membership_gone_of(m, &m->view));
    return tdi_view_may_begin(m->tasks, answered, tdi_membership_absent(m, now), m->fewer);
}

/* ---- who votes ---- */

static void send_to(tdi_membership *m, int to, tdi_say kind, uint32_t order, uint32_t other, tdi_actions *out)
{
    tdi_message say = {.kind = kind, .order = order, .other = other};
    tdi_membership_send(m, tdi_task_bit(to), &say, out);
}

/* A first view is made only when everyone who lives is in none, so what was accepted before is void; but not where
 * fewer than all decide, and all that it names are here. */
static bool is_still_open(const tdi_membership *m, const tdi_view *view)
{
    if (!m->fewer || view->generation <= m->known)
        return false;
    tdi_task_set others = tdi_view_everyone(view) & ~own(m);
    for (int t = tdi_lowest_task(others); t >= 0; t = tdi_next_task(others, t))
        if (m->linked[t] != view->incarnation[t])
            return false;
    return true;
}

static void count_promise(tdi_membership *m, int from, uint32_t accepted, const tdi_view *next)
{
    tdi_ballot *b = &m->ballot;
    b->answered |= tdi_task_bit(from);
    if (accepted > b->found && (m->view.generation || is_still_open(m, next))) {
        b->found = accepted;
        b->next = *next;
    }
}

static void send_promise(tdi_membership *m, double now, tdi_actions *out)
{
    tdi_message say = {.kind = TDI_SAY_PROMISE,
                       .flags = m->leaving ? TDI_SAY_LEAVES : 0,
                       .order = m->promised,
                       .state = m->state,
                       .at = m->at,
                       .hears = tdi_membership_hears(m, now),
                       .known = m->seen,
                       .facts = m->settings.facts,
                       .other = m->accepted};
    if (m->accepted)
        say.next = m->accepted_view;
    tdi_membership_send(m, tdi_task_bit(m->owed), &say, out);
}

void tdi_ballot_answer(tdi_membership *m, double now, tdi_actions *out)
{
    bool stays = m->owed_flags & TDI_SAY_VOTES;
    bool still = m->training == TDI_TRAINING_NONE || m->training == TDI_TRAINING_STOPPED;
    if (m->owed == TDI_NO_TASK || !(stays || still))
        return;
    if (m->owed == m->settings.self)
        count_promise(m, m->owed, m->accepted, &m->accepted_view);
    else
        send_promise(m, now, out);
    m->owed = TDI_NO_TASK;
}

/* A planned end of training comes by itself; otherwise the step under way is broken. */
static void promise(tdi_membership *m, int to, uint32_t order, uint32_t flags, double now, tdi_actions *out)
{
    if (m->owed == TDI_NO_TASK || order != m->promised)
        m->owed_since = now;
    m->promised = order;
    m->owed = to;
    m->owed_flags = flags;
    if (!(flags & (TDI_SAY_PLANNED | TDI_SAY_VOTES)))
        tdi_membership_break(m, out);
    tdi_ballot_answer(m, now, out);
}

static void hear_order(tdi_membership *m, uint32_t order)
{
    if (order > m->highest)
        m->highest = order;
}

static void on_prepare(tdi_membership *m, int from, const tdi_message *say, double now, tdi_actions *out)
{
    if (say->order < m->promised) {
        send_to(m, from, TDI_SAY_REFUSE, say->order, m->promised, out);
        return;
    }
    if (say->order > m->promised)
        m->ballot.phase = TDI_BALLOT_NONE;
    if (m->view.generation)
        tdi_membership_bury(m, &m->view, say->gone);
    m->active = now;
    promise(m, from, say->order, say->flags, now, out);
}

static void on_propose(tdi_membership *m, int from, const tdi_message *say, double now, tdi_actions *out)
{
    if (say->order < m->promised) {
        send_to(m, from, TDI_SAY_REFUSE, say->order, m->promised, out);
        return;
    }
    if (say->order > m->promised)
        m->ballot.phase = TDI_BALLOT_NONE;
    m->promised = m->accepted = say->order;
    m->accepted_view = say->next;
    m->active = now;
    send_to(m, from, TDI_SAY_ACCEPT, say->order, 0, out);
}

/* ---- who leads ---- */

static void ask(tdi_membership *m, double now, tdi_actions *out)
{
    tdi_ballot *b = &m->ballot;
    tdi_message say = {.kind = b->phase == TDI_BALLOT_PREPARING ? TDI_SAY_PREPARE : TDI_SAY_PROPOSE,
                       .flags = b->flags,
                       .order = b->order,
                       .gone = m->view.generation ? tdi_membership_gone_of(m, &m->view) : 0};
    if (b->phase == TDI_BALLOT_PROPOSING)
        say.next = b->next;
    b->asked = now;
    tdi_task_set done = b->phase == TDI_BALLOT_PREPARING ? b->answered : b->accepted;
    tdi_membership_send(m, electorate(m) & ~done, &say, out);
}

void tdi_ballot_begin(tdi_membership *m, uint32_t flags, double now, tdi_actions *out)
{
    tdi_ballot *b = &m->ballot;
    uint32_t last = m->highest > m->promised ? m->highest : m->promised;
    b->phase = TDI_BALLOT_PREPARING;
    b->order = (last / TDI_VIEW_TASKS + 1) * TDI_VIEW_TASKS + (uint32_t)m->settings.self;
    b->flags = flags;
    b->begun = now;
    b->answered = b->accepted = 0;
    b->found = 0;
    b->said_why = b->forced = false;
    m->highest = b->order;
    promise(m, m->settings.self, b->order, flags, now, out);
    ask(m, now, out);
    tdi_ballot_step(m, now, out);
}

static void note_promise(tdi_membership *m, int from, const tdi_message *say)
{
    tdi_told *told = &m->told[from];
    told->state = say->state;
    told->step = say->at.step;
    told->hears = say->hears;
    told->facts = say->facts;
    told->flags = (told->flags & ~(uint32_t)TDI_SAY_LEAVES) | (say->flags & TDI_SAY_LEAVES);
    if (say->known > m->seen)
        m->seen = say->known;
}

static void on_promise(tdi_membership *m, int from, const tdi_message *say)
{
    if (m->ballot.phase != TDI_BALLOT_PREPARING || say->order != m->ballot.order)
        return;
    note_promise(m, from, say);
    count_promise(m, from, say->other, &say->next);
}

static void on_refuse(tdi_membership *m, const tdi_message *say, double now)
{
    hear_order(m, say->other);
    if (m->ballot.phase == TDI_BALLOT_NONE || say->order != m->ballot.order)
        return;
    m->ballot.phase = TDI_BALLOT_NONE;
    m->active = now;
}

/* ---- the next view ---- */

static void self_told(tdi_membership *m, double now)
{
    m->told[m->settings.self] = (tdi_told){.view = tdi_view_id(&m->view),
                                           .state = m->state,
                                           .step = m->at.step,
                                           .facts = m->settings.facts,
                                           .flags = m->leaving ? TDI_SAY_LEAVES : 0,
                                           .hears = tdi_membership_hears(m, now)};
}

static void all_hears(const tdi_membership *m, tdi_task_set hears[TDI_VIEW_TASKS])
{
    for (int t = 0; t < TDI_VIEW_TASKS; t++)
        hears[t] = m->told[t].hears;
}

static bool hear_each_other(tdi_task_set members, int task, const tdi_task_set *hears)
{
    for (int t = tdi_lowest_task(members); t >= 0; t = tdi_next_task(members, t))
        if (!tdi_has_task(hears[t], task) || !tdi_has_task(hears[task], t))
            return false;
    return true;
}

/* Who joins takes nobody's place: one that does not reach all members is not let in. */
static tdi_task_set add_joiners(const tdi_membership *m, tdi_task_set members, tdi_task_set joiners)
{
    tdi_task_set hears[TDI_VIEW_TASKS];
    all_hears(m, hears);
    for (int t = tdi_lowest_task(joiners); t >= 0; t = tdi_next_task(joiners, t))
        if (hear_each_other(members, t, hears))
            members |= tdi_task_bit(t);
    return members;
}

/* Of several alike the last, as the first has more to do; but to begin with it is the first, which has the model. */
static int most_advanced(const tdi_membership *m, tdi_task_set members)
{
    int best = TDI_NO_TASK;
    bool first = m->view.generation == 0;
    for (int t = tdi_lowest_task(members); t >= 0; t = tdi_next_task(members, t)) {
        const tdi_told *a = &m->told[t], *b = &m->told[best < 0 ? t : best];
        bool alike = a->state == b->state && a->step == b->step;
        if (best < 0 || a->state > b->state || (a->state == b->state && a->step > b->step) || (alike && !first))
            best = t;
    }
    return best;
}

/* Who comes back may be a step further than all others, from the view in which they still are by their states. */
static int further(const tdi_membership *m, int donor, tdi_task_set joiners)
{
    for (int t = tdi_lowest_task(joiners); t >= 0; t = tdi_next_task(joiners, t))
        if (m->told[t].state == m->told[donor].state && m->told[t].step > m->told[donor].step)
            donor = t;
    return donor;
}

static void keep_members(const tdi_membership *m, tdi_view *next)
{
    next->members = m->view.members;
    next->since = m->view.since;
    next->step = m->view.step;
    next->state = m->view.state;
    next->donor = m->view.donor;
}

/* Members are those that have answered and reach each other; others come to them. */
static void choose_members(tdi_membership *m, tdi_view *next, double now)
{
    tdi_task_set trains = m->settings.trains, here = m->ballot.answered & tdi_membership_hears(m, now), old;
    tdi_task_set answered = here & ~tdi_membership_leavers(m);
    if (m->view.generation && (answered & m->view.members & m->view.voters) == 0)
        answered = here; /* the last one that has a vote stays until somebody else has one */
    tdi_task_set joiners = m->view.generation ? tdi_membership_joiners(m, now) & ~m->ballot.answered : 0;
    tdi_task_set hears[TDI_VIEW_TASKS];
    all_hears(m, hears);
    next->witnesses = (answered | joiners) & ~trains;
    if (m->ballot.flags & TDI_SAY_VOTES) {
        keep_members(m, next);
        return;
    }
    old = tdi_view_connected(answered & trains, hears);
    if (old == 0)
        return;
    next->members = add_joiners(m, old, joiners & trains);
    next->donor = most_advanced(m, old);
    next->donor = further(m, next->donor, next->members & joiners);
    next->step = m->told[next->donor].step;
    next->state = m->told[next->donor].state;
}

static void name_processes(const tdi_membership *m, tdi_view *next)
{
    tdi_task_set everyone = tdi_view_everyone(next);
    for (int t = 0; t < TDI_VIEW_TASKS; t++) {
        uint64_t now = t == m->settings.self ? m->settings.incarnation : m->linked[t];
        bool old = tdi_has_task(tdi_view_everyone(&m->view), t); /* joiners are none of them */
        next->incarnation[t] = !tdi_has_task(everyone, t) ? 0 : old ? m->view.incarnation[t] : now;
        next->facts[t] = tdi_has_task(next->members, t) ? m->told[t].facts : 0;
    }
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Above all numbers that those of the next view have heard of. */
static uint32_t next_generation(const tdi_membership *m, const tdi_view *next)
{
    uint32_t highest = most(m->seen, m->view.generation);
    tdi_task_set everyone = tdi_view_everyone(next);
    for (int t = tdi_lowest_task(everyone); t >= 0; t = tdi_next_task(everyone, t))
        highest = most(highest, most(m->told[t].known, (uint32_t)(m->told[t].state >> 32)));
    return highest + 1;
}

static bool make_next(tdi_membership *m, double now)
{
    tdi_view *next = &m->ballot.next;
    *next = (tdi_view){.donor = TDI_NO_TASK, .order = m->ballot.order};
    self_told(m, now);
    choose_members(m, next, now);
    name_processes(m, next);
    if (next->members == 0)
        return false;
    if (m->ballot.forced) /* a group of its own, by the user's word */
        next->voters = tdi_view_everyone(next);
    else if (!tdi_view_follow(&m->view, m->ballot.answered, tdi_membership_gone_of(m, &m->view), next))
        return false;
    for (int t = tdi_lowest_task(next->strangers); t >= 0; t = tdi_next_task(next->strangers, t))
        next->incarnation[t] = m->view.incarnation[t];
    next->generation = next_generation(m, next);
    if (next->since == 0)
        next->since = next->generation;
    return tdi_view_is_sound(next);
}

static void commit(tdi_membership *m, double now, tdi_actions *out)
{
    tdi_view made = m->ballot.next;
    made.makers |= m->ballot.accepted;
    tdi_message say = {.kind = TDI_SAY_COMMIT, .gone = tdi_membership_gone_of(m, &made), .next = made};
    tdi_membership_send(m, m->tasks & ~own(m), &say, out);
    tdi_membership_adopt(m, &made, now, out);
}

static void accept_own(tdi_membership *m)
{
    m->accepted = m->ballot.order;
    m->accepted_view = m->ballot.next;
    m->ballot.accepted = own(m);
}

/* A change of votes alone must not complete a change of members that a lost process had begun: those still train. */
static void propose(tdi_membership *m, double now, tdi_actions *out)
{
    tdi_ballot *b = &m->ballot;
    if (b->found && b->flags) {
        tdi_ballot_begin(m, 0, now, out);
        return;
    }
    if (!b->found && !make_next(m, now))
        return;
    b->phase = TDI_BALLOT_PROPOSING;
    accept_own(m);
    ask(m, now, out);
    tdi_ballot_step(m, now, out);
}

/* ---- waiting ---- */

static void list_names(const tdi_membership *m, tdi_task_set tasks, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int t = tdi_lowest_task(tasks); t >= 0 && used + 1 < size; t = tdi_next_task(tasks, t)) {
        int more = snprintf(text + used, size - used, "%s%s", used ? ", " : "", m->settings.names[t]);
        used += more > 0 ? (size_t)more : 0;
    }
}

static void say_why(tdi_membership *m, tdi_task_set silent, tdi_actions *out)
{
    char names[200];
    tdi_task_set voters = m->view.generation ? m->view.voters : m->tasks;
    list_names(m, silent, names, sizeof names);
    snprintf(tdi_add_action(out, TDI_DO_WAIT)->sentence, 400,
             "%s waits: %d of %d votes are here, and %s may still train; it goes on when one of them answers or is "
             "proved gone, or with --on-split continue; an evaluator would have a vote",
             m->settings.names[m->settings.self], tdi_task_count(voters & m->ballot.answered), tdi_task_count(voters),
             names);
    m->ballot.said_why = true;
}

static void wait_for_quorum(tdi_membership *m, tdi_task_set silent, double now, tdi_actions *out)
{
    if (!m->ballot.said_why && now - m->ballot.begun >= SAY_WHY_SECONDS && silent)
        say_why(m, silent, out);
    m->ballot.forced =
        m->settings.split_continues && m->view.generation && now - m->ballot.begun >= 2 * m->detect.silence;
    if (m->ballot.forced)
        propose(m, now, out);
}

static void ask_again(tdi_membership *m, tdi_task_set silent, double now, tdi_actions *out)
{
    if (now - m->ballot.asked < ASK_AGAIN_SECONDS)
        return;
    ask(m, now, out);
    tdi_membership_prove(m, silent, now, out);
}

void tdi_ballot_step(tdi_membership *m, double now, tdi_actions *out)
{
    tdi_ballot *b = &m->ballot;
    if (b->phase == TDI_BALLOT_NONE)
        return;
    if (b->phase == TDI_BALLOT_PROPOSING && (b->forced || has_quorum(m, b->accepted, now))) {
        commit(m, now, out);
        return;
    }
    tdi_task_set missing = electorate(m) & ~(b->phase == TDI_BALLOT_PREPARING ? b->answered : b->accepted);
    tdi_task_set hears = tdi_membership_hears(m, now);
    tdi_task_set gone = m->view.generation ? tdi_membership_gone_of(m, &m->view) : tdi_membership_absent(m, now);
    tdi_task_set silent = (electorate(m) | m->view.strangers) & ~hears & ~gone;
    if (b->phase == TDI_BALLOT_PREPARING && (missing & hears) == 0 && has_quorum(m, b->answered, now)) {
        propose(m, now, out);
        if (b->phase != TDI_BALLOT_PREPARING)
            return;
    }
    if (b->phase == TDI_BALLOT_PREPARING && (missing & hears) == 0)
        wait_for_quorum(m, silent, now, out);
    if (b->phase != TDI_BALLOT_NONE)
        ask_again(m, silent, now, out);
}

void tdi_ballot_receive(tdi_membership *m, int from, const tdi_message *message, double now, tdi_actions *out)
{
    hear_order(m, message->order);
    switch (message->kind) {
    case TDI_SAY_PREPARE:
        on_prepare(m, from, message, now, out);
        break;
    case TDI_SAY_PROPOSE:
        on_propose(m, from, message, now, out);
        break;
    case TDI_SAY_PROMISE:
        on_promise(m, from, message);
        break;
    case TDI_SAY_REFUSE:
        on_refuse(m, message, now);
        break;
    case TDI_SAY_ACCEPT:
        if (m->ballot.phase == TDI_BALLOT_PROPOSING && message->order == m->ballot.order)
            m->ballot.accepted |= tdi_task_bit(from);
        break;
    default:
        break;
    }
}
