/* thread.h - teams of threads that run one function together, and the barriers between their steps.
 *
 * Waiting spins briefly, yields for a while, then sleeps. Threads that meet on one core part. There is no spinning when
 * threads outnumber the allowed cores, nor while another process makes threads of one team share a core: who spins then
 * keeps the one it waits for from running. */
#ifndef TDI_BASE_THREAD_H
#define TDI_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/machine.h"

/* A counter that threads wait on. Zero-initialise; no release needed. */
typedef struct tdi_event {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} tdi_event;

void tdi_event_add(tdi_event *event, uint32_t amount); /* release order */
/* Returns once `value` has reached `target` (as a wrapping counter); acquire order. */
void tdi_event_wait(tdi_event *event, uint32_t target, bool spin);

/* All of `count` threads meet. Zero-initialise all but `count` and `spin`. */
typedef struct tdi_barrier {
    tdi_event arrived, released;
    _Atomic uint64_t cores; /* that threads have come from to this meeting, a bit each */
    atomic_bool crowded;    /* to the last meeting some came from the same core */
    uint32_t count;
    bool spin;
} tdi_barrier;

void tdi_barrier_wait(tdi_barrier *barrier);
/* Whether waiting for threads that meet here should spin now. */
bool tdi_barrier_spins(const tdi_barrier *barrier);

/* A lane's steps. Two cache lines: processors fetch them in pairs. */
typedef struct tdi_lockstep_count {
    _Alignas(128) tdi_event steps;
    _Atomic uint64_t core; /* on which the latest was made */
} tdi_lockstep_count;

/* Lanes that go step by step: each counts its own steps, and waits for the others to have counted as many when it needs
 * what they made. In between it can go on with what is its own, which a barrier would not let it. */
typedef struct tdi_lockstep {
    int lanes;
    bool spin;
    tdi_lockstep_count *counts; /* [lanes] */
} tdi_lockstep;

td_status tdi_lockstep_create(tdi_lockstep *lockstep, int lanes, bool spin, tdi_error *error);
void tdi_lockstep_release(tdi_lockstep *lockstep); /* a zeroed one too */
void tdi_lockstep_advance(tdi_lockstep *lockstep, int lane);
void tdi_lockstep_wait(tdi_lockstep *lockstep, int lane);

/* Would not wait. Inlined, so that whoever looks, if only a few times, keeps what it has in vector registers. */
static inline bool tdi_lockstep_reached(tdi_lockstep *lockstep, int lane)
{
    uint32_t own = atomic_load_explicit(&lockstep->counts[lane].steps.value, memory_order_relaxed);
    for (int i = 0; i < lockstep->lanes; i++)
        if ((int32_t)(atomic_load_explicit(&lockstep->counts[i].steps.value, memory_order_acquire) - own) < 0)
            return false;
    return true;
}

/* A thread beside the teams, as theirs without signals and with denormals flushed to zero. The caller joins it. */
td_status tdi_thread_start(pthread_t *thread, void *(*function)(void *argument), void *argument, tdi_error *error);

/* `size` threads, the caller's being number 0; the others wait, sleeping, between runs. */
typedef struct tdi_team tdi_team;

td_status tdi_team_create(int size, tdi_team **team, tdi_error *error);
void tdi_team_free(tdi_team *team);
bool tdi_team_spins(const tdi_team *team); /* threads do not outnumber cores */
/* Runs function(argument, index) on every thread; returns when all have returned. Denormals are flushed to zero in
 * every thread while it runs; the caller's floating-point mode is restored on return. */
void tdi_team_run(tdi_team *team, void (*function)(void *argument, int index), void *argument);
/* The same of member 0 alone, on the calling thread: no team is woken. */
void tdi_run_alone(void (*function)(void *argument, int index), void *argument);

#endif
