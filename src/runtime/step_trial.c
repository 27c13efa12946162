/* step_trial.c - whole steps against the clock: the model's own, run in several ways by runtimes made for a shadow of
 * it. The ways take turns, and of each the best round counts; there are rounds until enough of them were not disturbed
 * by other processes, or too many were. Ways of a large step hold memory only while it is their turn. A way of several
 * lanes, where fewer are held against it, is made by one thread in their place too, and counts by the better of both:
 * while threads do not help that is what steps come to (thread_governor.h), and fewer lanes would stay when they help
 * again. */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "runtime/runtime_struct.h"
#include "runtime/synthetic_steps.h"

enum {
    ROUNDS = 5,
    FEW_ROUNDS = 2,
    MOST_TRIES = 2 /* for each round */,
    MOST_STEPS = 200,
    LARGE = 64 << 20 /* bytes */
};
static const double round_seconds = 4e-3, long_step = 0.02;

typedef struct rehearsal {
    tdi_shadow shadow;
    tdi_choice *choice;
    tdi_runtime *trials[TDI_MAX_CANDIDATES];
    bool large;
    double bytes; /* the most that trials have held at once */
} rehearsal;

static void note_bytes(rehearsal *r)
{
    double bytes = 0;
    for (int i = 0; i < r->choice->count; i++)
        bytes += tdi_runtime_bytes(r->trials[i]);
    r->bytes = fmax(bytes, r->bytes);
}

/* Memory is there, and touched, before the clock runs. `in_turn`: one thread makes what all would. */
static td_status run_steps(rehearsal *r, int trial, bool in_turn, int64_t steps, double *seconds, tdi_error *error)
{
    tdi_plan *plans[TDI_MAX_PARTS];
    tdi_rehearse(r->trials[trial], r->shadow.mode, in_turn);
    TDI_TRY(tdi_runtime_prepare(r->trials[trial], r->shadow.mode, r->shadow.rows, plans, error));
    TDI_TRY(tdi_shadow_run(&r->shadow, r->trials[trial], steps, seconds, error));
    note_bytes(r);
    if (r->large)
        tdi_runtime_give_back(r->trials[trial]);
    return TD_OK;
}

/* The first step makes the plans, the second warms up; what a large one finds warm it loses with its memory. */
static td_status warm_up(rehearsal *r, double *longest, tdi_error *error)
{
    double seconds;
    *longest = 1e-9;
    for (int i = 0; i < r->choice->count; i++) {
        TDI_TRY(run_steps(r, i, false, 1, &seconds, error));
        if (!r->large)
            TDI_TRY(run_steps(r, i, false, 1, &seconds, error));
        *longest = fmax(seconds, *longest);
    }
    return TD_OK;
}

static td_status take_turn(rehearsal *r, int trial, bool in_turn, int64_t steps, tdi_error *error)
{
    double seconds, *us = &r->choice->candidates[trial].us;
    if (steps > 1) /* the one before has left nothing in the caches */
        TDI_TRY(run_steps(r, trial, in_turn, 1, &seconds, error));
    TDI_TRY(run_steps(r, trial, in_turn, steps, &seconds, error));
    *us = fmin(seconds * 1e6, *us);
    return TD_OK;
}

static td_status take_turns(rehearsal *r, int64_t steps, tdi_error *error)
{
    for (int i = 0; i < r->choice->count; i++) {
        TDI_TRY(take_turn(r, i, false, steps, error));
        if (r->trials[i]->sharing > 1)
            TDI_TRY(take_turn(r, i, true, steps, error));
    }
    return TD_OK;
}

static td_status compete(rehearsal *r, tdi_error *error)
{
    double longest;
    TDI_TRY(warm_up(r, &longest, error));
    double wanted = round_seconds / longest + 2;
    int64_t steps = r->large ? 1 : wanted < MOST_STEPS ? (int64_t)wanted : MOST_STEPS;
    int good = 0, rounds = longest > long_step ? FEW_ROUNDS : ROUNDS;
    for (int i = 0; i < r->choice->count; i++)
        r->choice->candidates[i].us = 1e12;
    for (int round = 0; good < rounds && round < MOST_TRIES * rounds; round++) {
        tdi_watch watch = tdi_watch_begin();
        TDI_TRY(take_turns(r, steps, error));
        good += !tdi_watch_was_disturbed(&watch);
    }
    r->choice->unsure = good < rounds;
    return TD_OK;
}

/* Times whole steps of `rows` rows, such as `plan` is one of, in several ways, on memory of their own: candidate i of
 * the choice is ways[i]. Whatever it returns but TD_OK, nothing was found out. */
static td_status rehearse(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan, const tdi_way *ways,
                          tdi_choice *choice, tdi_error *error)
{
    rehearsal r = {.choice = choice};
    tdi_choices *choices = runtime->chooser.choices;
    double begun = tdi_seconds() - choices->seconds; /* trials measure kernels too */
    r.large = tdi_plan_activation_bytes(plan) * (size_t)runtime->division.parts > LARGE;
    td_status status = tdi_shadow_create(runtime->model, mode, rows, &r.shadow, error);
    for (int i = 0; i < choice->count && status == TD_OK; i++)
        status = tdi_runtime_create(&r.shadow.model, &ways[i], &r.trials[i], error);
    if (status == TD_OK)
        status = compete(&r, error);
    for (int i = 0; i < choice->count; i++)
        tdi_runtime_free(r.trials[i]);
    if (status == TD_OK)
        runtime->rehearsed_bytes = fmax(runtime->rehearsed_bytes, tdi_shadow_bytes(&r.shadow) + r.bytes);
    tdi_shadow_release(&r.shadow);
    tdi_choices_spend(choices, runtime->model->context, tdi_seconds() - choices->seconds - begun);
    return status;
}

/* ---- the choice ---- */

td_status tdi_choose_way(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan, const tdi_way *ways,
                         tdi_choice *asked, tdi_choice **chosen, tdi_error *error)
{
    tdi_choices *choices = runtime->chooser.choices;
    const tdi_division *d = &runtime->division;
    const char *names[TDI_MAX_CANDIDATES];
    tdi_error unseen = {0};
    char key[128];
    for (int i = 0; i < asked->count; i++)
        names[i] = asked->candidates[i].name;
    snprintf(key, sizeof key, "%s of step %016llx, %d cores", asked->key, (unsigned long long)tdi_plan_hash(plan),
             d->workers * d->lanes);
    asked->machine = runtime->devices[0]->identity;
    asked->key = key;
    asked->measured = true;
    *chosen = tdi_choices_find(choices, asked->machine, key, asked->count, names);
    if (!tdi_choice_stands(choices, asked, *chosen) &&
        rehearse(runtime, mode, rows, plan, ways, asked, &unseen) == TD_OK) {
        asked->chosen = tdi_fastest(asked);
        *chosen = tdi_choices_settle(choices, asked);
        if (!*chosen)
            return tdi_no_memory(error);
    }
    if (*chosen)
        (*chosen)->used = true;
    return TD_OK;
}
