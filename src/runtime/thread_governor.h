/* thread_governor.h - whether a step's threads still help: another process, or another machine on the same host, that
 * takes one of their cores makes all wait for the thread that was there.
 *
 * Steps are timed in windows of some milliseconds, and what they took is averaged over about two seconds for each of
 * two ways: all threads, or one in the place of all (tdi_plans_run_in_turn: the same bits). The faster goes on. When
 * steps by all take much longer than at their best the other way is tried for a window, and while one thread makes them
 * all are; it goes on while it is faster, and is tried again after forty times as long as it was not. */
#ifndef TDI_RUNTIME_THREAD_GOVERNOR_H
#define TDI_RUNTIME_THREAD_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/* Of late, the more recent the more they count. */
typedef struct tdi_pace_way {
    double steps, seconds;
} tdi_pace_way;

/* Zero-initialise. */
typedef struct tdi_pace {
    bool in_turn;         /* one thread goes on, not all */
    bool trying;          /* the window under way is made the other way */
    double steps;         /* of the window under way */
    double seconds;       /* of the window under way */
    double last;          /* seconds a step of the latest window */
    double best;          /* seconds a step of all threads' best window; 0: not known */
    tdi_pace_way ways[2]; /* [all threads, one] */
    double wait;          /* seconds until the other way is tried again */
} tdi_pace;

/* Whether threads that wait for the next call have fallen asleep. Zero-initialise. */
typedef struct tdi_idle {
    double ended; /* the last call: seconds, as tdi_seconds counts them */
    double busy;  /* seconds that calls have taken since they had time for that */
} tdi_idle;

/* Calls of one step of `rows`, that come when threads are asleep: what they take when these are woken, and when the
 * calling thread makes them alone. Zero-initialise. */
typedef struct tdi_calls {
    int64_t rows;
    int seen[2];     /* [threads woken, alone] */
    double least[2]; /* seconds */
} tdi_calls;

/* Is the next step to be made by one thread? */
bool tdi_pace_in_turn(const tdi_pace *pace);
/* About how many steps are left of the window under way; at least 1. */
int64_t tdi_pace_steps(const tdi_pace *pace);
/* So many steps took so long; one with half of the rows is half a step. */
void tdi_pace_note(tdi_pace *pace, double steps, double seconds);

/* Are threads asleep as a call begins `now`? Those of calls that have followed each other for long are to be woken. */
bool tdi_idle_begin(tdi_idle *idle, double now);
void tdi_idle_end(tdi_idle *idle, double begun, double ended);

/* Is the next one to be made alone, so that it need not wait for a thread to wake? That usually takes tens of
 * microseconds, and now and then milliseconds: it may take 1.2 times the least. Both are tried, and long calls are not.
 */
bool tdi_calls_alone(tdi_calls *calls, int64_t rows);
void tdi_calls_note(tdi_calls *calls, bool alone, double seconds);

#endif
