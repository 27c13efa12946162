/* contest.c - candidates against the clock.
 *
 * Why: which kernel is the fastest, in which precision, by how many threads, depends on the machine and on the shapes.
 * Rules guess wrong by factors; a few runs of each candidate tell. Kernels (plan/kernel_trial.c) and whole steps
 * (runtime/step_trial.c) are candidates of the same contest: they only hand in how one of them is run.
 *
 * Design: candidates take turns, round after round, and the best time of each counts, so that what disturbs the machine
 * disturbs none of them more. A round during which other processes took the cores (tdi_watch, base/machine.h) does not
 * count. There are rounds until enough of them were undisturbed, or MOST_ROUNDS times as many were run: the answer is
 * then unsure. The answer goes to the tuning cache, which says what becomes of unsure ones.
 *
 * Limits: what slows a virtual machine's cores down, or puts them on one host thread, for some seconds is not seen from
 * inside. A question with a preferred candidate is unsure where another one wins, so that it is asked again. */
#include "tune/contest.h"

#include <math.h>

#include "base/machine.h"
#include "base/text.h"

enum { MOST_ROUNDS = 2 /* for each round that is wanted */ };
static const double never = 1e12; /* microseconds */

static double best_of(const tdi_tuned *tuned)
{
    double best = tuned->candidates[0].us;
    for (int i = 1; i < tuned->count; i++)
        best = fmin(best, tuned->candidates[i].us);
    return best;
}

/* `all_of_them`: no round was undisturbed yet, so none can be called hopeless. */
static td_status run_round(tdi_contest *contest, bool all_of_them, tdi_tuned *tuned, tdi_error *error)
{
    for (int i = 0; i < tuned->count; i++) {
        double seconds, *us = &tuned->candidates[i].us;
        if (contest->hopeless > 0 && !all_of_them && *us > contest->hopeless * best_of(tuned))
            continue;
        TDI_TRY(contest->run(contest, i, &seconds, error));
        *us = fmin(seconds * 1e6, *us);
    }
    return TD_OK;
}

static td_status run_rounds(tdi_contest *contest, tdi_tuned *tuned, tdi_error *error)
{
    int good = 0;
    TDI_TRY(contest->begin(contest, error));
    for (int i = 0; i < tuned->count; i++)
        tuned->candidates[i].us = never;
    for (int round = 0; good < contest->rounds && round < MOST_ROUNDS * contest->rounds; round++) {
        tdi_watch watch = tdi_watch_begin();
        TDI_TRY(run_round(contest, good == 0, tuned, error));
        good += !tdi_watch_was_disturbed(&watch);
    }
    tuned->unsure = good < contest->rounds;
    tuned->chosen = tdi_tuned_fastest(tuned);
    return TD_OK;
}

/* When timing has become long to wait for, the log says once what it is. */
static void add_seconds(tdi_tuning_cache *cache, td_context *context, double seconds)
{
    const double patience = 1;
    double before = cache->seconds;
    cache->seconds += seconds;
    if (before < patience && cache->seconds >= patience)
        tdi_log(context, TD_LOG_INFO,
                "finding out which kernels are fastest here takes seconds, of large steps minutes; once, for they are "
                "remembered");
}

td_status tdi_contest_answer(tdi_tuning_cache *cache, td_context *context, const tdi_tuned *question,
                             tdi_contest *contest, const tdi_tuned **answer, tdi_error *error)
{
    tdi_tuned tuned = *question, *found = tdi_tuning_cache_find(cache, question);
    td_status status = TD_OK;
    if (!tdi_tuning_cache_holds(cache, question, found)) {
        double begun = tdi_seconds() - cache->seconds; /* whole steps hold contests of kernels */
        status = run_rounds(contest, &tuned, error);
        contest->end(contest);
        add_seconds(cache, context, tdi_seconds() - cache->seconds - begun);
        tdi_tuned *recorded = status == TD_OK ? tdi_tuning_cache_record(cache, &tuned) : NULL;
        found = recorded ? recorded : found;
        if (status == TD_OK && !recorded)
            status = tdi_no_memory(error);
    }
    if (found)
        found->used = true;
    *answer = found;
    return status;
}
