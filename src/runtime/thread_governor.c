/* thread_governor.c - times of steps by all threads and by one, compared. */
#include "runtime/thread_governor.h"

static const double window = 5e-3;     /* seconds */
static const double memory = 2;        /* seconds over which times are averaged */
static const double suspicious = 1.25; /* times the best: from there on the other way is tried */
static const double out_of_date = 60;  /* seconds in which the best grows by e: a clock may have become slower */
static const double long_step = 0.1;   /* seconds a step from which the other way is not tried without suspicion */
static const double worth_it = 0.9;    /* of the other way's time: a change has to be faster than that */
static const double patience = 40;     /* times the window of a trial that was not worth it, until the next trial */
static const double asleep = 100e-6;   /* seconds after which waiting threads have ceased to spin */
static const double burst = 2e-3;      /* seconds of calls without a pause, from which on threads are woken */
static const double short_call = 5e-3; /* seconds: longer calls are not made alone */
static const double for_waking = 1.2;  /* times the least of a call that wakes threads: so long a lone one may take */
static const double hopeless = 1.6;    /* the same while there have been few lone calls */

enum { TRIED = 16, TRIED_AT_LEAST = 3, OUT_OF_DATE = 4096 }; /* calls */

bool tdi_governor_in_turn(const tdi_thread_governor *governor)
{
    return governor->in_turn != governor->trying;
}

int64_t tdi_governor_steps(const tdi_thread_governor *governor)
{
    double left = governor->last > 0 ? (window - governor->seconds) / governor->last : 0;
    return left > 1 ? (int64_t)left : 1;
}

/* Seconds a step; 0: not known. */
static double mean(const tdi_governor_average *way)
{
    return way->steps > 0 ? way->seconds / way->steps : 0;
}

/* Fades what is long past. The way not taken fades as well, so that the next window by it counts. */
static void remember(tdi_thread_governor *governor)
{
    double fade = memory / (memory + governor->seconds);
    tdi_governor_average *way = &governor->ways[tdi_governor_in_turn(governor)];
    for (int i = 0; i < 2; i++) {
        governor->ways[i].steps *= fade;
        governor->ways[i].seconds *= fade;
    }
    way->steps += governor->steps;
    way->seconds += governor->seconds;
}

static bool other_wins(const tdi_thread_governor *governor)
{
    double other = mean(&governor->ways[!governor->in_turn]);
    return other > 0 && other < worth_it * mean(&governor->ways[governor->in_turn]);
}

/* Whether to try the other way. While nothing is known of one thread it is tried for all but long steps: another
 * process may have been there from the start, so that even the best window of all threads was slow. */
static bool is_suspicious(const tdi_thread_governor *governor)
{
    if (governor->in_turn || mean(&governor->ways[true]) <= 0)
        return governor->in_turn || governor->last < long_step;
    return mean(&governor->ways[false]) > suspicious * governor->best;
}

static void end_window(tdi_thread_governor *governor)
{
    bool tried = governor->trying;
    remember(governor);
    governor->best *= 1 + governor->seconds / out_of_date;
    if (!tdi_governor_in_turn(governor) && (governor->best <= 0 || governor->last < governor->best))
        governor->best = governor->last;
    governor->trying = false;
    if (other_wins(governor)) {
        governor->in_turn = !governor->in_turn;
        governor->wait = 0;
    } else if (tried && governor->last < worth_it * mean(&governor->ways[governor->in_turn])) {
        governor->trying = true;
    } else if (tried) {
        governor->wait = patience * governor->seconds;
    } else {
        governor->wait -= governor->seconds;
        governor->trying = governor->wait <= 0 && is_suspicious(governor);
    }
}

void tdi_governor_note(tdi_thread_governor *governor, double steps, double seconds)
{
    governor->steps += steps;
    governor->seconds += seconds;
    if (governor->seconds < window || governor->steps <= 0)
        return;
    governor->last = governor->seconds / governor->steps;
    end_window(governor);
    governor->seconds = 0;
    governor->steps = 0;
}

bool tdi_idle_threads_begin(tdi_idle_threads *idle, double now)
{
    if (now - idle->ended > asleep)
        idle->busy = 0;
    return idle->busy < burst;
}

void tdi_idle_threads_end(tdi_idle_threads *idle, double begun, double ended)
{
    idle->busy += ended - begun;
    idle->ended = ended;
}

bool tdi_short_calls_alone(tdi_short_calls *calls, int64_t rows)
{
    if (calls->rows != rows)
        *calls = (tdi_short_calls){.rows = rows};
    if (calls->seen[false] < TRIED_AT_LEAST || calls->least[false] > short_call)
        return false;
    if (calls->seen[true] < TRIED_AT_LEAST)
        return true;
    if (calls->seen[false] < TRIED && calls->least[false] < calls->least[true])
        return false;
    double limit = calls->seen[true] < TRIED ? hopeless : for_waking;
    return calls->least[true] < limit * calls->least[false];
}

void tdi_short_calls_note(tdi_short_calls *calls, bool alone, double seconds)
{
    if (calls->seen[alone] == 0 || seconds < calls->least[alone])
        calls->least[alone] = seconds;
    if (++calls->seen[alone] == OUT_OF_DATE)
        *calls = (tdi_short_calls){.rows = calls->rows};
}
