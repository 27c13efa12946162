/* pace.c - all threads, or one. */
#include "dist/pace.h"

enum { MOST_PATIENCE = 31 };
static const double window = 5e-3;     /* seconds */
static const double suspicious = 1.25; /* times the best */
static const double long_step = 0.1;   /* seconds: not tried for nothing */
static const double worth_it = 0.9;    /* of the rival's time */

bool tdi_pace_in_turn(const tdi_pace *pace)
{
    return pace->state == TDI_PACE_TRYING || pace->state == TDI_PACE_IN_TURN;
}

int64_t tdi_pace_steps(const tdi_pace *pace)
{
    double left = pace->last > 0 ? (window - pace->seconds) / pace->last : 0;
    return left > 1 ? (int64_t)left : 1;
}

/* What was tried becomes what is done, or is not tried again so soon. */
static void decide(tdi_pace *pace, bool wins, tdi_pace_state winner, tdi_pace_state loser)
{
    pace->state = wins ? winner : loser;
    pace->patience = wins ? 1 : pace->patience < MOST_PATIENCE ? 2 * pace->patience + 1 : MOST_PATIENCE;
    pace->wait = pace->patience;
}

static void go_on_together(tdi_pace *pace, double now)
{
    /* The first window is no better known than that: another process may have been there before. */
    bool slow = pace->best > 0 ? now > suspicious * pace->best : now < long_step;
    if (pace->best <= 0 || now < pace->best)
        pace->best = now;
    if (pace->wait > 0)
        pace->wait--;
    else if (slow)
        pace->state = TDI_PACE_TRYING;
    pace->rival = now;
}

static void end_window(tdi_pace *pace, double now)
{
    bool wins = now < worth_it * pace->rival;
    switch (pace->state) {
    case TDI_PACE_TOGETHER:
        go_on_together(pace, now);
        break;
    case TDI_PACE_TRYING:
        if (!wins) /* so long do steps take now */
            pace->best = pace->rival;
        decide(pace, wins, TDI_PACE_IN_TURN, TDI_PACE_TOGETHER);
        break;
    case TDI_PACE_IN_TURN:
        if (--pace->wait <= 0)
            pace->state = TDI_PACE_LOOKING;
        pace->rival = now;
        break;
    case TDI_PACE_LOOKING:
        decide(pace, wins, TDI_PACE_TOGETHER, TDI_PACE_IN_TURN);
        break;
    }
}

void tdi_pace_note(tdi_pace *pace, int64_t steps, double seconds)
{
    pace->steps += steps;
    pace->seconds += seconds;
    if (pace->seconds < window || pace->steps == 0)
        return;
    pace->last = pace->seconds / (double)pace->steps;
    end_window(pace, pace->last);
    pace->seconds = 0;
    pace->steps = 0;
}
