/* pace.h - whether a step's threads still help: another process that takes one of their cores makes all wait for the
 * thread that was there.
 *
 * Steps are timed in windows of some milliseconds. When one has taken much longer than they do at their best, the next
 * is made by one thread in the place of all (tdi_plans_run_in_turn: the same bits); the faster of the two goes on, and
 * from time to time the other is tried again, the more rarely the longer it has not been worth it. */
#ifndef TDI_DIST_PACE_H
#define TDI_DIST_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tdi_pace_state {
    TDI_PACE_TOGETHER, /* all threads */
    TDI_PACE_TRYING,   /* one thread, for a window */
    TDI_PACE_IN_TURN,  /* one thread, which was faster */
    TDI_PACE_LOOKING   /* all threads, for a window */
} tdi_pace_state;

/* Zero-initialise. Times are seconds a step. */
typedef struct tdi_pace {
    tdi_pace_state state;
    int64_t steps; /* of the window under way */
    double seconds;
    double last;  /* the latest window's */
    double best;  /* all threads' at their best; 0: not known */
    double rival; /* of the way that the window under way is to beat */
    int wait;     /* windows until the other way is tried again */
    int patience; /* what `wait` is next */
} tdi_pace;

/* Is the next step to be made by one thread? */
bool tdi_pace_in_turn(const tdi_pace *pace);
/* About how many steps are left of the window under way; at least 1. */
int64_t tdi_pace_steps(const tdi_pace *pace);
/* So many steps took so long. */
void tdi_pace_note(tdi_pace *pace, int64_t steps, double seconds);

#endif
