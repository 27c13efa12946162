/* thread_governor.c - all threads, or one. */
#include "runtime/thread_governor.h"

static const double window = 5e-3;     /* seconds */
static const double memory = 2;        /* seconds */
static const double suspicious = 1.25; /* times the best */
static const double out_of_date = 60;  /* seconds, in which the best grows by e: a clock may have become slower */
static const double long_step = 0.1;   /* seconds: not tried for nothing */
static const double worth_it = 0.9;    /* of the other way's time */
static const double patience = 40;     /* times the window in which a trial was not worth it, until the next */
static const double asleep = 100e-6;   /* seconds after which waiting threads do not spin any more */
static const double burst = 2e-3;      /* seconds of calls without a pause */
static const double short_call = 5e-3; /* seconds */
static const double for_waking = 1.2;  /* times the least of a call for which threads are woken */
static const double hopeless = 1.6;    /* the same, of the first ones alone */

enum { TRIED = 16, TRIED_AT_LEAST = 3, OUT_OF_DATE = 4096 }; /* calls */

bool tdi_pace_in_turn(const tdi_pace *pace)
{
    return pace->in_turn != pace->trying;
}

int64_t tdi_pace_steps(const tdi_pace *pace)
{
    double left = pace->last > 0 ? (window - pace->seconds) / pace->last : 0;
    return left > 1 ? (int64_t)left : 1;
}

/* Seconds a step; 0: not known. */
static double mean(const tdi_pace_way *way)
{
    return way->steps > 0 ? way->seconds / way->steps : 0;
}

/* What is long past fades, of the way not gone too: what is seen of it next is to count. */
static void remember(tdi_pace *pace)
{
    double fade = memory / (memory + pace->seconds);
    tdi_pace_way *way = &pace->ways[tdi_pace_in_turn(pace)];
    for (int i = 0; i < 2; i++) {
        pace->ways[i].steps *= fade;
        pace->ways[i].seconds *= fade;
    }
    way->steps += pace->steps;
    way->seconds += pace->seconds;
}

static bool other_wins(const tdi_pace *pace)
{
    double other = mean(&pace->ways[!pace->in_turn]);
    return other > 0 && other < worth_it * mean(&pace->ways[pace->in_turn]);
}

/* The first window of all threads is no better known than that: another process may have been there before. */
static bool is_suspicious(const tdi_pace *pace)
{
    if (pace->in_turn || mean(&pace->ways[true]) <= 0)
        return pace->in_turn || pace->last < long_step;
    return mean(&pace->ways[false]) > suspicious * pace->best;
}

static void end_window(tdi_pace *pace)
{
    bool tried = pace->trying;
    remember(pace);
    pace->best *= 1 + pace->seconds / out_of_date;
    if (!tdi_pace_in_turn(pace) && (pace->best <= 0 || pace->last < pace->best))
        pace->best = pace->last;
    pace->trying = false;
    if (other_wins(pace)) {
        pace->in_turn = !pace->in_turn;
        pace->wait = 0;
    } else if (tried && pace->last < worth_it * mean(&pace->ways[pace->in_turn])) {
        pace->trying = true;
    } else if (tried) {
        pace->wait = patience * pace->seconds;
    } else {
        pace->wait -= pace->seconds;
        pace->trying = pace->wait <= 0 && is_suspicious(pace);
    }
}

void tdi_pace_note(tdi_pace *pace, double steps, double seconds)
{
    pace->steps += steps;
    pace->seconds += seconds;
    if (pace->seconds < window || pace->steps <= 0)
        return;
    pace->last = pace->seconds / pace->steps;
    end_window(pace);
    pace->seconds = 0;
    pace->steps = 0;
}

bool tdi_idle_begin(tdi_idle *idle, double now)
{
    if (now - idle->ended > asleep)
        idle->busy = 0;
    return idle->busy < burst;
}

void tdi_idle_end(tdi_idle *idle, double begun, double ended)
{
    idle->busy += ended - begun;
    idle->ended = ended;
}

bool tdi_calls_alone(tdi_calls *calls, int64_t rows)
{
    if (calls->rows != rows)
        *calls = (tdi_calls){.rows = rows};
    if (calls->seen[false] < TRIED_AT_LEAST || calls->least[false] > short_call)
        return false;
    if (calls->seen[true] < TRIED_AT_LEAST)
        return true;
    if (calls->seen[false] < TRIED && calls->least[false] < calls->least[true])
        return false;
    double limit = calls->seen[true] < TRIED ? hopeless : for_waking;
    return calls->least[true] < limit * calls->least[false];
}

void tdi_calls_note(tdi_calls *calls, bool alone, double seconds)
{
    if (calls->seen[alone] == 0 || seconds < calls->least[alone])
        calls->least[alone] = seconds;
    if (++calls->seen[alone] == OUT_OF_DATE)
        *calls = (tdi_calls){.rows = calls->rows};
}
