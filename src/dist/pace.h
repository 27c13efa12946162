/* pace.h - whether a step's threads still help: another process, or another machine on the same host, that takes one of
 * their cores makes all wait for the thread that was there.
 *
 * Steps are timed in windows of some milliseconds, and what they took is averaged over about two seconds for each of
 * two ways: all threads, or one in the place of all (tdi_plans_run_in_turn: the same bits). The faster goes on. When
 * steps by all take much longer than at their best the other way is tried for a window, and while one thread makes them
 * all are; it goes on while it is faster, and is tried again after forty times as long as it was not. */
#ifndef TDI_DIST_PACE_H
#define TDI_DIST_PACE_H

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
    int64_t rows;         /* of the latest step timed */
    double best;          /* seconds a step of all threads' best window; 0: not known */
    tdi_pace_way ways[2]; /* [all threads, one] */
    double wait;          /* seconds until the other way is tried again */
} tdi_pace;

/* Single calls. Zero-initialise. */
typedef struct tdi_calls {
    double ended; /* the last one: seconds, as tdi_seconds counts them */
    double busy;  /* seconds that they have taken since there was time to fall asleep between them */
    bool by_all;  /* threads are woken for each */
} tdi_calls;

/* Is the next step to be made by one thread? */
bool tdi_pace_in_turn(const tdi_pace *pace);
/* About how many steps are left of the window under way; at least 1. */
int64_t tdi_pace_steps(const tdi_pace *pace);
/* So many steps of `rows` took so long; one with half of the rows is half a step. */
void tdi_pace_note(tdi_pace *pace, int64_t rows, double steps, double seconds);

/* Is a call of one step of `rows`, that begins `now`, over before threads that have fallen asleep would be of use? When
 * calls follow each other closely, they are woken all the same. */
bool tdi_calls_wake_nobody(tdi_calls *calls, const tdi_pace *pace, int64_t rows, double now);
void tdi_calls_note(tdi_calls *calls, double begun, double ended);

#endif
