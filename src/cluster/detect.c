/* detect.c - silence, closed links, sleep. */
#include "cluster/detect.h"

#include <stdio.h>

void tdi_detect_init(tdi_detect *detect, int self, double silence, double stall)
{
    *detect = (tdi_detect){.self = self,
                           .silence = silence > 0 ? silence : TDI_SILENCE_SECONDS,
                           .stall = stall > 0 ? stall : TDI_STALL_SECONDS,
                           .last = -1};
}

bool tdi_detect_wake(tdi_detect *detect, double now)
{
    bool slept = detect->last >= 0 && now - detect->last > TDI_SLEPT_SECONDS;
    detect->last = now;
    for (int t = 0; slept && t < TDI_VIEW_TASKS; t++)
        detect->peer[t].heard = now;
    return slept;
}

void tdi_detect_watch(tdi_detect *detect, tdi_task_set tasks, double now)
{
    tasks &= ~tdi_task_bit(detect->self);
    for (int t = tdi_lowest_task(tasks); t >= 0; t = tdi_next_task(tasks, t))
        if (!tdi_has_task(detect->watched | detect->links, t))
            detect->peer[t].heard = now;
    detect->watched = tasks;
    detect->lost &= tasks;
    detect->stalled &= tasks;
}

static void find(tdi_detect *detect, int task, double now)
{
    detect->peer[task].heard = now;
    detect->lost &= ~tdi_task_bit(task);
}

void tdi_detect_open(tdi_detect *detect, int task, double now)
{
    detect->links |= tdi_task_bit(task);
    detect->stuck &= ~tdi_task_bit(task);
    find(detect, task, now);
}

void tdi_detect_close(tdi_detect *detect, int task)
{
    detect->links &= ~tdi_task_bit(task);
    detect->lost |= detect->watched & tdi_task_bit(task);
}

void tdi_detect_hear(tdi_detect *detect, int task, double now)
{
    if (tdi_has_task(detect->links, task))
        find(detect, task, now);
}

void tdi_detect_beat(tdi_detect *detect, int task, const tdi_progress *at, double now)
{
    tdi_detect_peer *peer = &detect->peer[task];
    if (peer->at.step != at->step || peer->at.phase != at->phase || peer->at.done != at->done) {
        peer->since = now;
        detect->stalled &= ~tdi_task_bit(task);
    }
    peer->at = *at;
    tdi_detect_hear(detect, task, now);
}

void tdi_detect_stuck(tdi_detect *detect, int task, bool stuck)
{
    detect->stuck &= ~tdi_task_bit(task);
    if (stuck)
        detect->stuck |= tdi_task_bit(task);
}

static bool is_silent(const tdi_detect *detect, int task, double now)
{
    return now - detect->peer[task].heard >= detect->silence;
}

void tdi_detect_tick(tdi_detect *detect, double now)
{
    for (int t = tdi_lowest_task(detect->watched); t >= 0; t = tdi_next_task(detect->watched, t))
        if (is_silent(detect, t, now))
            detect->lost |= tdi_task_bit(t);
}

tdi_task_set tdi_detect_stalls(tdi_detect *detect, double now)
{
    tdi_task_set found = 0, watched = detect->watched & ~detect->lost & ~detect->stalled;
    for (int t = tdi_lowest_task(watched); t >= 0; t = tdi_next_task(watched, t)) {
        const tdi_detect_peer *peer = &detect->peer[t];
        if (peer->at.phase == TDI_PHASE_INPUT && now - peer->since >= detect->stall)
            found |= tdi_task_bit(t);
    }
    detect->stalled |= found;
    return found;
}

tdi_task_set tdi_detect_hears(const tdi_detect *detect, double now)
{
    tdi_task_set others = detect->links & ~detect->watched, heard = tdi_task_bit(detect->self);
    for (int t = tdi_lowest_task(others); t >= 0; t = tdi_next_task(others, t))
        if (!is_silent(detect, t, now))
            heard |= tdi_task_bit(t);
    return (heard | (detect->watched & ~detect->lost)) & ~detect->stuck;
}

/* ---- sentences ---- */

static const char *phase_words(const tdi_progress *at, char words[64])
{
    static const char *const names[TDI_PHASES] = {"", ", waiting for input", ", computing", "", ", taking the state"};
    if (at->phase != TDI_PHASE_EXCHANGE)
        return names[at->phase];
    snprintf(words, 64, ", gradients %u of %u under way", at->done, at->of);
    return words;
}

void tdi_detect_say_lost(const tdi_detect *detect, int task, const char *name, double now, char *text, size_t size)
{
    const tdi_detect_peer *peer = &detect->peer[task];
    char words[64], how[64];
    if (!tdi_has_task(detect->links, task))
        snprintf(how, sizeof how, "has closed its connection");
    else if (tdi_has_task(detect->lost, task))
        snprintf(how, sizeof how, "has not answered for %.1f s", now - peer->heard);
    else
        snprintf(how, sizeof how, "answers, but its data do not arrive");
    snprintf(text, size, "%s %s: lost at step %u%s", name, how, peer->at.step, phase_words(&peer->at, words));
}

void tdi_detect_say_stall(const tdi_detect *detect, int task, const char *name, double now, char *text, size_t size)
{
    const tdi_detect_peer *peer = &detect->peer[task];
    snprintf(text, size, "%s is slow: it has waited for input for %.0f s at step %u", name, now - peer->since,
             peer->at.step);
}
