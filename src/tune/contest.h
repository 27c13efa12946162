/* contest.h - which of several candidates is the fastest here: answered from the tuning cache, else by the clock.
 *
 *     tdi_tuned question = {.machine = device->identity, .key = "matmul ...", .count = 2,
 *                           .candidates = {{.name = "quick matmul"}, {.name = "onednn matmul"}}};
 *     tdi_contest contest = {.rounds = 3, .context = mine, .begin = warm_up, .run = run_one, .end = release};
 *     const tdi_tuned *answer;
 *     TDI_TRY(tdi_contest_answer(cache, td_context, &question, &contest, &answer, error));
 *     int fastest = answer ? answer->chosen : by_rule;
 */
#ifndef TDI_TUNE_CONTEST_H
#define TDI_TUNE_CONTEST_H

#include "tune/tuning_cache.h"

/* How the candidates of a question are run. All functions are called from the thread that asks. */
typedef struct tdi_contest {
    int rounds;      /* undisturbed ones that make an answer sure; `begin` may set it */
    double hopeless; /* a candidate that took so many times the best's time sits out the next rounds; 0: none does */
    void *context;   /* handed to each function */
    /* Prepares all candidates and warms them up. Called once, and not at all where the cache has the answer. May block.
     * Any error ends the contest without an answer. */
    td_status (*begin)(struct tdi_contest *contest, tdi_error *error);
    /* Runs one candidate and sets the seconds of one of its runs. Called once a round. Errors as `begin`. */
    td_status (*run)(struct tdi_contest *contest, int candidate, double *seconds, tdi_error *error);
    /* Releases what `begin` made. Called once after `begin`, whatever that and `run` returned. */
    void (*end)(struct tdi_contest *contest);
} tdi_contest;

/* Answers the question, whose names and key are read during the call alone. *answer belongs to the cache; NULL: nothing
 * is known, since nothing may be timed or timing failed, and a rule decides. After a failure *answer may still be what
 * an earlier process found. */
td_status tdi_contest_answer(tdi_tuning_cache *cache, td_context *context, const tdi_tuned *question,
                             tdi_contest *contest, const tdi_tuned **answer, tdi_error *error);

#endif
