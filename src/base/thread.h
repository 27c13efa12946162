/* thread.h - teams of threads that run one function together, and how they wait for each other.
 *
 * Threads meet many times a step, some microseconds apart, so a thread that waits spins first, then yields, then
 * sleeps. Two threads on one core would wait for each other's time slices: when they meet there, one of them moves to
 * another core (cores.h).
 *
 * A thread that spins on the core of the one it waits for keeps that one from running. So nobody spins where threads
 * outnumber the cores, nor while another process makes threads of one team share a core. */
#ifndef TDI_BASE_THREAD_H
#define TDI_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/machine.h"

/* A counter that threads wait on. Zero-initialise; there is nothing to release. */
typedef struct tdi_event {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} tdi_event;

/* Raises the counter and wakes who sleeps on it. What was written before is seen by those who waited for it. */
void tdi_event_add(tdi_event *event, uint32_t amount);
/* Returns once the counter, which wraps, has reached `target`. */
void tdi_event_wait(tdi_event *event, uint32_t target, bool spin);

/* Where `count` threads meet, again and again. Zero-initialise all but `count` and `spin`. */
typedef struct tdi_barrier {
    tdi_event arrived, released;
    _Atomic uint64_t cores; /* on which threads came to this meeting, a bit each */
    atomic_bool crowded;    /* some came to the last meeting on the same core */
    uint32_t count;
    bool spin;
} tdi_barrier;

void tdi_barrier_wait(tdi_barrier *barrier);
/* Whether threads that meet here should spin now where they wait for each other. */
bool tdi_barrier_spins(const tdi_barrier *barrier);

/* One thread's count of steps. Two cache lines large, as processors fetch lines in pairs. */
typedef struct tdi_lockstep_count {
    _Alignas(128) tdi_event steps;
    _Atomic uint64_t core; /* on which the latest step was made */
} tdi_lockstep_count;

/* Threads that go step by step inside a kernel. Each counts its own steps, and waits until the others have counted as
 * many when it needs their results. Unlike at a barrier it can go on with work of its own between the two. */
typedef struct tdi_lockstep {
    int threads;
    bool spin;
    tdi_lockstep_count *counts; /* [threads] */
} tdi_lockstep;

td_status tdi_lockstep_create(tdi_lockstep *lockstep, int threads, bool spin, tdi_error *error);
void tdi_lockstep_release(tdi_lockstep *lockstep); /* a zeroed one too */
void tdi_lockstep_advance(tdi_lockstep *lockstep, int thread);
void tdi_lockstep_wait(tdi_lockstep *lockstep, int thread);

/* Whether tdi_lockstep_wait would return at once. Inlined, so that a caller keeps its vector registers. */
static inline bool tdi_lockstep_reached(tdi_lockstep *lockstep, int thread)
{
    uint32_t own = atomic_load_explicit(&lockstep->counts[thread].steps.value, memory_order_relaxed);
    for (int i = 0; i < lockstep->threads; i++)
        if ((int32_t)(atomic_load_explicit(&lockstep->counts[i].steps.value, memory_order_acquire) - own) < 0)
            return false;
    return true;
}

/* Starts a thread beside the teams, like theirs without signals and with denormals flushed to zero. The caller joins
 * it.
 */
td_status tdi_thread_start(pthread_t *thread, void *(*function)(void *argument), void *argument, tdi_error *error);

/* Threads that run one function together, the caller's being number 0; between runs the others wait, soon asleep. A
 * context has one, which all its models' runtimes share (context.h). One run at a time; all calls come from one thread.
 */
typedef struct tdi_team tdi_team;

td_status tdi_team_create(int threads, tdi_team **team, tdi_error *error);
/* Makes it at least so many threads. Those that have been started stay when another cannot be. */
td_status tdi_team_grow(tdi_team *team, int threads, tdi_error *error);
void tdi_team_free(tdi_team *team);
/* Whether so many threads should spin where they wait: they do not outnumber the cores. */
bool tdi_team_spins(const tdi_team *team, int threads);
/* Runs function(argument, index) on the first `threads` threads, of which the team has as many; returns when all have
 * returned. Denormals are flushed to zero in every thread while it runs; the caller's floating-point mode is restored
 * on return. */
void tdi_team_run(tdi_team *team, int threads, void (*function)(void *argument, int index), void *argument);
/* Runs function(argument, 0) on the calling thread as a team of one would; nobody is woken. */
void tdi_run_alone(void (*function)(void *argument, int index), void *argument);

#endif
