/* trainer.c - driving memberships, and training that is a hash. */
#include "sim/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIAL_SECONDS 0.2
enum { BACKUP_STEPS = 7 };

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2));
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t shard_sum(uint64_t hash, uint32_t step, int first, int end)
{
    uint64_t sum = 0;
    for (int s = first; s < end; s++)
        sum += mix(hash, (uint64_t)step * TDI_SIM_SHARDS + (uint64_t)s);
    return sum;
}

uint64_t tdi_sim_undisturbed(uint32_t steps)
{
    uint64_t hash = 0;
    for (uint32_t step = 1; step <= steps; step++)
        hash = mix(hash, shard_sum(hash, step, 0, TDI_SIM_SHARDS));
    return hash;
}

static double clock_of(const tdi_sim *sim, int self)
{
    return tdi_sim_host_clock(&sim->hosts[self], &sim->world);
}

static void act(tdi_sim *sim, int self);

/* `name` is the life in which the timer was set. */
static void set_timer(tdi_sim *sim, int self, double seconds, void (*fire)(void *, tdi_happening *))
{
    tdi_world_add(
        &sim->world,
        (tdi_happening){
            .at = sim->world.now + seconds, .fire = fire, .user = sim, .to = self, .name = sim->processes[self].life});
}

static bool is_due(tdi_sim *sim, tdi_happening *event)
{
    return !tdi_sim_host_puts_off(&sim->hosts[event->to], &sim->world, event) && sim->hosts[event->to].alive &&
           event->name == sim->processes[event->to].life;
}

/* ---- steps ---- */

static uint64_t own_gift(const tdi_sim *sim, int self)
{
    const tdi_sim_process *p = &sim->processes[self];
    int count = tdi_task_count(p->members), rank = tdi_task_count(p->members & (tdi_task_bit(self) - 1));
    return shard_sum(p->hash, p->step + 1, TDI_SIM_SHARDS * rank / count, TDI_SIM_SHARDS * (rank + 1) / count);
}

static void begin_step(tdi_sim *sim, int self);

static void end_training(tdi_sim *sim, int self)
{
    tdi_sim_process *p = &sim->processes[self];
    p->runs = p->pausing = p->takes = false;
    p->life++;
    tdi_membership_stopped(p->membership, p->step, clock_of(sim, self), sim->actions);
    act(sim, self);
}

static bool is_arrived(const tdi_sim_process *p, uint64_t *sum, bool *pause)
{
    uint32_t step = p->step + 1;
    for (int t = tdi_lowest_task(p->members); t >= 0; t = tdi_next_task(p->members, t)) {
        const tdi_sim_gift *gift = &p->gifts[t][step % 2];
        if (gift->since != p->since || gift->step != step)
            return false;
        *sum += gift->sum;
        *pause = *pause || gift->pause;
    }
    return true;
}

static void keep_backup(tdi_sim_process *p)
{
    if (p->step % BACKUP_STEPS == 0)
        p->backup = (tdi_sim_backup){tdi_membership_state(p->membership), p->hash, p->step};
}

static void report(tdi_sim_process *p, tdi_phase phase)
{
    tdi_progress at = {.step = p->step, .phase = phase};
    tdi_membership_progress(p->membership, &at);
}

static void apply_if_arrived(tdi_sim *sim, int self)
{
    tdi_sim_process *p = &sim->processes[self];
    uint64_t sum = 0;
    bool pause = false;
    if (!p->runs || !p->has_given || !is_arrived(p, &sum, &pause))
        return;
    if (sum != shard_sum(p->hash, p->step + 1, 0, TDI_SIM_SHARDS))
        sim->wrong = "a step was applied that is not the sum of all shards, each once";
    p->hash = mix(p->hash, sim->shards ? sum : mix(sum, p->members));
    p->step++;
    p->has_given = false;
    report(p, TDI_PHASE_IDLE);
    keep_backup(p);
    sim->watcher.applied(sim->watcher.user, self);
    if (pause || (p->pausing && p->step >= sim->steps))
        end_training(sim, self);
    else
        begin_step(sim, self);
}

static void send_gift(tdi_sim *sim, int self, int peer, uint32_t step)
{
    const tdi_sim_process *p = &sim->processes[self];
    const tdi_sim_gift *gift = &p->gifts[self][step % 2];
    tdi_frame frame = {
        .kind = TDI_SIM_GIFT, .flags = gift->pause, .generation = gift->since, .step = gift->step, .offset = gift->sum};
    if (gift->since == p->since && gift->step == step)
        tdi_network_send(&sim->network, self, peer, &frame, NULL);
}

static void give(void *user, tdi_happening *event)
{
    tdi_sim *sim = user;
    int self = event->to;
    tdi_sim_process *p = &sim->processes[self];
    if (!is_due(sim, event) || !p->runs)
        return;
    uint32_t step = p->step + 1;
    p->gifts[self][step % 2] = (tdi_sim_gift){p->since, step, own_gift(sim, self), p->pausing};
    p->has_given = true;
    report(p, TDI_PHASE_EXCHANGE);
    for (int t = tdi_lowest_task(p->members); t >= 0; t = tdi_next_task(p->members, t))
        if (t != self)
            send_gift(sim, self, t, step);
    apply_if_arrived(sim, self);
}

static void begin_step(tdi_sim *sim, int self)
{
    tdi_sim_process *p = &sim->processes[self];
    p->has_given = false;
    if (p->step >= sim->steps)
        return;
    report(p, TDI_PHASE_COMPUTE);
    set_timer(sim, self, sim->step_seconds * tdi_world_between(&sim->world, 0.8, 1.4), give);
}

static void take_gift(tdi_sim *sim, int self, int from, const tdi_frame *frame)
{
    sim->processes[self].gifts[from][frame->step % 2] =
        (tdi_sim_gift){frame->generation, frame->step, frame->offset, frame->flags};
    apply_if_arrived(sim, self);
}

/* ---- the state of a view ---- */

static void begin_training(tdi_sim *sim, int self)
{
    tdi_sim_process *p = &sim->processes[self];
    p->runs = true;
    tdi_membership_ready(p->membership, clock_of(sim, self), sim->actions);
    sim->watcher.began(sim->watcher.user, self);
    act(sim, self);
    if (p->membership && p->runs)
        begin_step(sim, self);
}

static void give_state(void *user, tdi_happening *event)
{
    tdi_sim *sim = user;
    int self = event->to;
    tdi_sim_process *p = &sim->processes[self];
    if (tdi_sim_host_puts_off(&sim->hosts[self], &sim->world, event) || !sim->hosts[self].alive)
        return;
    if (event->name != p->since || p->step != p->begins)
        return;
    tdi_frame frame = {.kind = TDI_SIM_STATE, .generation = p->since, .step = p->step, .offset = p->hash};
    tdi_network_send(&sim->network, self, event->from, &frame, NULL);
}

/* Answers who has asked for the state of the view in which this process is; who asks for a later one waits. */
static void answer_asked(tdi_sim *sim, int self)
{
    tdi_sim_process *p = &sim->processes[self];
    for (int t = tdi_lowest_task(p->asked); t >= 0; t = tdi_next_task(p->asked, t)) {
        if (p->asked_since[t] > p->since)
            continue;
        p->asked &= ~tdi_task_bit(t);
        tdi_world_add(&sim->world, (tdi_happening){.at = sim->world.now + sim->state_seconds,
                                                   .fire = give_state,
                                                   .user = sim,
                                                   .from = t,
                                                   .to = self,
                                                   .name = p->since});
    }
}

static void take_ask(tdi_sim *sim, int self, int from, const tdi_frame *frame)
{
    tdi_sim_process *p = &sim->processes[self];
    p->asked |= tdi_task_bit(from);
    p->asked_since[from] = frame->generation;
    answer_asked(sim, self);
}

static void take_state(tdi_sim *sim, int self, const tdi_frame *frame)
{
    tdi_sim_process *p = &sim->processes[self];
    if (frame->generation != p->since || !p->takes)
        return;
    if (frame->step != p->begins)
        sim->wrong = "a donor gave the state of another step than the view's";
    p->takes = false;
    p->step = frame->step;
    p->hash = frame->offset;
    begin_training(sim, self);
}

static void ask_for_state(tdi_sim *sim, int self)
{
    const tdi_sim_process *p = &sim->processes[self];
    tdi_frame frame = {.kind = TDI_SIM_ASK, .generation = p->since};
    tdi_network_send(&sim->network, self, p->donor, &frame, NULL);
}

static void form_view(tdi_sim *sim, int self, const tdi_action *action)
{
    tdi_sim_process *p = &sim->processes[self];
    const tdi_view *view = tdi_membership_view(p->membership);
    p->life++;
    p->runs = p->pausing = p->has_given = p->takes = false;
    p->since = view->since;
    p->view = tdi_view_id(view);
    p->members = view->members;
    p->begins = view->step;
    if (tdi_has_task(sim->trains, self) && action->from != TDI_NO_TASK) {
        report(p, TDI_PHASE_STATE);
        p->takes = true;
        p->donor = action->from;
        ask_for_state(sim, self);
        return;
    }
    if (!tdi_has_task(view->members, self))
        return;
    answer_asked(sim, self);
    begin_training(sim, self);
}

/* ---- what the membership says ---- */

static void send_all(tdi_sim *sim, int self, const tdi_action *action)
{
    for (int t = tdi_lowest_task(action->to); t >= 0; t = tdi_next_task(action->to, t)) {
        if (sim->sends_left[self] == 0)
            return;
        if (sim->sends_left[self] > 0)
            sim->sends_left[self]--;
        tdi_network_send(&sim->network, self, t, &action->frame, action->payload);
    }
}

static bool is_stopped(const tdi_sim *sim, int task)
{
    const tdi_sim_host *host = &sim->hosts[task];
    return tdi_sim_host_is_frozen(host, &sim->world) && sim->world.now - host->froze >= TDI_STOPPED_SECONDS;
}

static void probe_all(tdi_sim *sim, int self, const tdi_action *action)
{
    const tdi_view *view = tdi_membership_view(sim->processes[self].membership);
    for (int t = tdi_lowest_task(action->to); t >= 0; t = tdi_next_task(action->to, t))
        if (sim->one_host && is_stopped(sim, t))
            tdi_membership_gone(sim->processes[self].membership, t, view->incarnation[t], clock_of(sim, self),
                                sim->actions);
        else
            tdi_network_probe(&sim->network, self, t, view->incarnation[t]);
}

/* Training that has nothing more to do ends at once; a member that is still taking the state ends taking it. */
static void pause_training(tdi_sim *sim, int self)
{
    sim->processes[self].pausing = true;
    if (sim->processes[self].step >= sim->steps)
        end_training(sim, self);
}

static void obey(tdi_sim *sim, int self, const tdi_action *action)
{
    sim->watcher.acted(sim->watcher.user, self, action);
    switch (action->kind) {
    case TDI_DO_SEND:
        send_all(sim, self, action);
        break;
    case TDI_DO_PROVE:
        probe_all(sim, self, action);
        act(sim, self);
        break;
    case TDI_DO_PAUSE:
        pause_training(sim, self);
        break;
    case TDI_DO_STOP:
        end_training(sim, self);
        break;
    case TDI_DO_VIEW:
        form_view(sim, self, action);
        break;
    case TDI_DO_OUT:
        end_training(sim, self);
        break;
    case TDI_DO_LEFT:
        tdi_sim_kill(sim, self, false);
        break;
    default:
        break;
    }
}

/* What obeying an action causes is collected in the next list. */
static void act(tdi_sim *sim, int self)
{
    tdi_actions *out = sim->actions;
    if (out->count == 0)
        return;
    if (sim->depth + 1 == TDI_SIM_DEPTH) {
        sim->wrong = "actions cause actions without end";
        return;
    }
    sim->actions = &sim->lists[++sim->depth];
    for (int i = 0; i < out->count && sim->processes[self].membership; i++)
        obey(sim, self, &out->at[i]);
    sim->actions = &sim->lists[--sim->depth];
    out->count = 0;
}

/* ---- what a process hears ---- */

/* What was to be sent before there was a connection. */
static void make_wire(tdi_sim *sim, int self, int peer)
{
    const tdi_sim_process *p = &sim->processes[self];
    if (p->takes && p->donor == peer)
        ask_for_state(sim, self);
    if (!p->runs || !tdi_has_task(p->members, peer))
        return;
    send_gift(sim, self, peer, p->step);
    send_gift(sim, self, peer, p->step + 1);
}

static void on_up(void *user, int self, int peer)
{
    tdi_sim *sim = user;
    const tdi_sim_process *p = &sim->processes[self];
    uint64_t incarnation = tdi_membership_incarnation(sim->processes[peer].membership);
    tdi_membership_link_up(p->membership, peer, incarnation, clock_of(sim, self), sim->actions);
    act(sim, self);
    if (p->membership)
        make_wire(sim, self, peer);
}

static void on_down(void *user, int self, int peer)
{
    tdi_sim *sim = user;
    const tdi_sim_process *p = &sim->processes[self];
    tdi_membership_link_down(p->membership, peer, clock_of(sim, self), sim->actions);
    act(sim, self);
    if (p->membership && tdi_has_task(p->members, peer) && (p->runs || p->takes)) /* the wire has failed too */
        end_training(sim, self);
}

static void on_gone(void *user, int self, int peer, uint64_t incarnation)
{
    tdi_sim *sim = user;
    tdi_membership_gone(sim->processes[self].membership, peer, incarnation, clock_of(sim, self), sim->actions);
    act(sim, self);
}

static void on_frame(void *user, int self, int peer, const tdi_frame *frame, const unsigned char *payload)
{
    tdi_sim *sim = user;
    sim->watcher.arrives(sim->watcher.user, peer, self, frame);
    if (!sim->hosts[self].alive || tdi_sim_host_is_frozen(&sim->hosts[self], &sim->world))
        return;
    if (frame->kind == TDI_SIM_GIFT)
        take_gift(sim, self, peer, frame);
    else if (frame->kind == TDI_SIM_ASK)
        take_ask(sim, self, peer, frame);
    else if (frame->kind == TDI_SIM_STATE)
        take_state(sim, self, frame);
    else if (tdi_membership_receive(sim->processes[self].membership, peer, frame, payload, clock_of(sim, self),
                                    sim->actions, NULL) != TD_OK)
        sim->wrong = "a process sent what is no message";
    act(sim, self);
}

/* ---- lives ---- */

static void tick(void *user, tdi_happening *event)
{
    tdi_sim *sim = user;
    int self = event->to;
    const tdi_sim_host *host = &sim->hosts[self];
    if (tdi_sim_host_puts_off(host, &sim->world, event) || !host->alive || event->name != host->incarnation)
        return;
    tdi_membership_tick(sim->processes[self].membership, clock_of(sim, self), sim->actions);
    act(sim, self);
    if (!host->alive)
        return;
    double due = (tdi_membership_due(sim->processes[self].membership) - host->offset) / host->rate;
    tdi_world_add(&sim->world,
                  (tdi_happening){.at = due, .fire = tick, .user = sim, .to = self, .name = host->incarnation});
}

/* The later task makes the connection. */
static void dial(void *user, tdi_happening *event)
{
    tdi_sim *sim = user;
    int self = event->to;
    const tdi_sim_host *host = &sim->hosts[self];
    if (tdi_sim_host_puts_off(host, &sim->world, event) || !host->alive || event->name != host->incarnation)
        return;
    for (int peer = 0; peer < self; peer++)
        if (!sim->network.end[self][peer].up)
            tdi_network_connect(&sim->network, self, peer);
    tdi_world_add(
        &sim->world,
        (tdi_happening){
            .at = sim->world.now + DIAL_SECONDS, .fire = dial, .user = sim, .to = self, .name = host->incarnation});
}

void tdi_sim_start(tdi_sim *sim, int task)
{
    tdi_sim_process *p = &sim->processes[task];
    tdi_sim_host *host = &sim->hosts[task];
    if (host->alive)
        return;
    tdi_sim_host_start(host);
    sim->sends_left[task] = -1;
    *p = (tdi_sim_process){.backup = p->backup, .step = p->backup.step, .hash = p->backup.hash, .life = p->life + 1};
    tdi_membership_settings settings = {.self = task,
                                        .tasks = sim->tasks,
                                        .trains = sim->trains,
                                        .neighbours = sim->one_host ? ~(tdi_task_set)0 : 0,
                                        .incarnation = host->incarnation * TDI_SIM_VIEWS,
                                        .state = p->backup.state,
                                        .step = p->step,
                                        .split_continues = sim->split_continues,
                                        .names = sim->name};
    if (tdi_membership_create(&settings, clock_of(sim, task), &p->membership, NULL) != TD_OK) {
        host->alive = false;
        sim->world.no_memory = true;
        return;
    }
    tdi_happening soon = {.at = sim->world.now, .user = sim, .to = task, .name = host->incarnation};
    soon.fire = dial;
    tdi_world_add(&sim->world, soon);
    soon.fire = tick;
    tdi_world_add(&sim->world, soon);
}

void tdi_sim_kill(tdi_sim *sim, int task, bool power)
{
    tdi_sim_process *p = &sim->processes[task];
    if (!sim->hosts[task].alive)
        return;
    tdi_sim_host_kill(&sim->hosts[task]);
    if (power)
        sim->hosts[task].powered = false;
    tdi_network_end(&sim->network, task);
    tdi_membership_free(p->membership);
    p->membership = NULL;
    p->runs = false;
    p->life++;
}

void tdi_sim_leave(tdi_sim *sim, int task)
{
    if (!sim->hosts[task].alive || tdi_sim_host_is_frozen(&sim->hosts[task], &sim->world))
        return;
    tdi_membership_leave(sim->processes[task].membership, clock_of(sim, task), sim->actions);
    act(sim, task);
}

void tdi_sim_begin_with_fewer(tdi_sim *sim, int task)
{
    if (!sim->hosts[task].alive || tdi_sim_host_is_frozen(&sim->hosts[task], &sim->world))
        return;
    tdi_membership_begin_with_fewer(sim->processes[task].membership, clock_of(sim, task), sim->actions);
    act(sim, task);
}

td_status tdi_sim_init(tdi_sim *sim, uint64_t seed, int tasks, tdi_task_set trains, tdi_error *error)
{
    memset(sim, 0, sizeof *sim);
    sim->lists = sim->actions = calloc(TDI_SIM_DEPTH, sizeof *sim->lists);
    if (!sim->lists)
        return tdi_no_memory(error);
    tdi_world_init(&sim->world, seed);
    sim->tasks = tasks;
    sim->trains = trains;
    tdi_network_init(&sim->network, &sim->world, sim->hosts, tasks,
                     (tdi_sim_ears){sim, on_up, on_down, on_frame, on_gone});
    sim->network.latency = tdi_world_between(&sim->world, 5e-5, 5e-3);
    sim->network.jitter = sim->network.latency * tdi_world_between(&sim->world, 0, 2);
    sim->step_seconds = tdi_world_between(&sim->world, 0.01, 0.06);
    sim->state_seconds = tdi_world_between(&sim->world, 0, 0.2);
    for (int t = 0; t < tasks; t++) {
        snprintf(sim->text[t], sizeof sim->text[t], "task %d", t);
        sim->name[t] = sim->text[t];
        tdi_sim_host_init(&sim->hosts[t], &sim->world);
    }
    return TD_OK;
}

void tdi_sim_release(tdi_sim *sim)
{
    for (int t = 0; t < sim->tasks; t++)
        tdi_membership_free(sim->processes[t].membership);
    tdi_network_release(&sim->network);
    tdi_world_release(&sim->world);
    free(sim->lists);
}
