/* thread_governor.h - all threads, or one in place of all: whichever makes steps faster of late.
 *
 * Threads meet several times a step, so all of them wait for the slowest. Where another process, or another machine on
 * the same host, takes one of their cores, a step takes as long as that thread is kept waiting. One thread that walks
 * the lists of all (tdi_plans_run_in_turn) makes the same bits and waits for nobody.
 *
 * Steps are timed in windows of some milliseconds, and their times averaged over about two seconds, separately for
 * either way. The faster way goes on. While steps by all threads take much longer than at their best, the other way is
 * tried for a window now and then; while one thread makes the steps, all are. A trial is paid for by forty times its
 * length without one.
 *
 * Functions of what they are told: they read no clock, so that tests make times up. They know nothing of why threads
 * are slow, and react within a window, not within a step. */
#ifndef TDI_RUNTIME_THREAD_GOVERNOR_H
#define TDI_RUNTIME_THREAD_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/* Sums that fade: the more recent a step, the more it counts. */
typedef struct tdi_governor_average {
    double steps, seconds;
} tdi_governor_average;

/* Zero-initialise. */
typedef struct tdi_thread_governor {
    bool in_turn;                 /* one thread makes steps, not all */
    bool trying;                  /* the window under way is made the other way */
    double steps, seconds;        /* of the window under way, so far */
    double last;                  /* seconds a step in the latest window; 0: there was none */
    double best;                  /* seconds a step in the best window of all threads; 0: not known */
    tdi_governor_average ways[2]; /* [by all threads, by one] */
    double wait;                  /* seconds until the other way is tried again */
} tdi_thread_governor;

/* Whether one thread is to make the next step. */
bool tdi_governor_in_turn(const tdi_thread_governor *governor);
/* About how many steps are left of the window under way; at least 1. */
int64_t tdi_governor_steps(const tdi_thread_governor *governor);
/* So many steps took so long; one with half of the rows is half a step. */
void tdi_governor_note(tdi_thread_governor *governor, double steps, double seconds);

/* Whether the threads of a team have fallen asleep since the last call. Zero-initialise. */
typedef struct tdi_idle_threads {
    double ended; /* the last call: seconds, as tdi_seconds counts them */
    double busy;  /* seconds that calls have taken since there was a pause long enough to fall asleep in */
} tdi_idle_threads;

/* Whether a call that begins `now` finds threads asleep that are not worth waking yet. Calls that have followed each
 * other for long wake them. */
bool tdi_idle_threads_begin(tdi_idle_threads *idle, double now);
void tdi_idle_threads_end(tdi_idle_threads *idle, double begun, double ended);

/* Calls of one step of `rows` that find threads asleep: how long they take when threads are woken, and when the calling
 * thread makes the step alone. Zero-initialise. */
typedef struct tdi_short_calls {
    int64_t rows;
    int seen[2];     /* [threads woken, alone] */
    double least[2]; /* seconds */
} tdi_short_calls;

/* Whether to make the next call alone rather than wait for a thread to wake, which usually takes tens of microseconds
 * and now and then milliseconds: alone it may take 1.2 times the least. Both are tried; long calls are not made alone.
 */
bool tdi_short_calls_alone(tdi_short_calls *calls, int64_t rows);
void tdi_short_calls_note(tdi_short_calls *calls, bool alone, double seconds);

#endif
