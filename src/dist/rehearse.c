/* rehearse.c - whole steps against the clock: the model's own, run in several ways by runtimes made for it.
 *
 * They work on a shadow of the model, with copies of its weights and a learning rate of zero, so that numbers stay what
 * they are. The ways take turns, and of each the best round counts; there are rounds until enough of them were not
 * disturbed by other processes, or too many were. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "dist/inside.h"

enum { ROUNDS = 5, FEW_ROUNDS = 2, MOST_TRIES = 2 /* for each round */, MOST_STEPS = 200 };
static const double round_seconds = 4e-3, long_step = 0.1;

typedef struct rehearsal {
    td_model model; /* the shadow */
    tdi_mode mode;
    int64_t rows;
    float *inputs[2 * TDI_MAX_IO]; /* NULL: class numbers */
    tdi_runtime *trials[TDI_MAX_CANDIDATES];
} rehearsal;

/* ---- the shadow ---- */

static td_status make_shadow(rehearsal *r, const td_model *model, tdi_error *error)
{
    TDI_TRY(tdi_model_shadow(model, &r->model, error));
    r->model.optimizer.learning_rate = 0;
    r->model.optimizer.schedule.kind = TD_SCHEDULE_NONE;
    return TD_OK;
}

static bool make_inputs(rehearsal *r)
{
    int slots = r->model.n_inputs + (r->mode == TDI_PREDICT ? 0 : r->model.n_outputs);
    for (int slot = 0; slot < slots; slot++) {
        int64_t count = r->rows * tdi_input_bytes_per_row(&r->model, slot) / (int64_t)sizeof(float);
        r->inputs[slot] = tdi_buffer_create((size_t)count * sizeof(float));
        if (!r->inputs[slot])
            return false;
        for (int64_t i = 0; i < count; i++)
            r->inputs[slot][i] = (float)(i % 17) * 0.0625f;
    }
    return true;
}

static void release(rehearsal *r, int count)
{
    for (int i = 0; i < count; i++)
        tdi_runtime_free(r->trials[i]);
    for (int slot = 0; slot < 2 * TDI_MAX_IO; slot++)
        tdi_buffer_free(r->inputs[slot]);
    tdi_model_release_shadow(&r->model);
}

/* ---- its data ---- */

static const void *in_place(void *context, int64_t step, int slot, int64_t first, td_dtype as)
{
    const rehearsal *r = context;
    (void)step;
    int64_t per_row = tdi_input_bytes_per_row(&r->model, slot) / (int64_t)sizeof(float);
    return as == TD_FLOAT32 ? r->inputs[slot] + first * per_row : NULL;
}

/* Whole numbers: 0 is a class, and an index, of every model. */
static td_status rows_of(void *context, int64_t step, int slot, int64_t first, int64_t count, void *to, td_dtype as,
                         tdi_error *error)
{
    const rehearsal *r = context;
    (void)step, (void)first, (void)as, (void)error;
    memset(to, 0, (size_t)(count * tdi_input_bytes_per_row(&r->model, slot)));
    return TD_OK;
}

/* ---- the clock ---- */

static td_status run_steps(rehearsal *r, int trial, int64_t steps, double *seconds, tdi_error *error)
{
    tdi_job job = {.mode = r->mode,
                   .feed = {.context = r, .rows = rows_of, .in_place = in_place},
                   .steps = steps,
                   .batch = r->rows,
                   .samples = steps * r->rows};
    double begun = tdi_seconds();
    TDI_TRY(tdi_runtime_run(r->trials[trial], &job, error));
    *seconds = (tdi_seconds() - begun) / (double)steps;
    return TD_OK;
}

/* The first step makes the plans, the second warms up. */
static td_status warm_up(rehearsal *r, int count, double *longest, tdi_error *error)
{
    double seconds;
    *longest = 1e-9;
    for (int i = 0; i < count; i++) {
        TDI_TRY(run_steps(r, i, 1, &seconds, error));
        TDI_TRY(run_steps(r, i, 1, &seconds, error));
        *longest = seconds > *longest ? seconds : *longest;
    }
    return TD_OK;
}

static td_status take_turns(rehearsal *r, int64_t steps, tdi_choice *choice, tdi_error *error)
{
    double seconds;
    for (int i = 0; i < choice->count; i++) {
        tdi_candidate *candidate = &choice->candidates[i];
        if (steps > 1) /* the one before has left nothing in the caches */
            TDI_TRY(run_steps(r, i, 1, &seconds, error));
        TDI_TRY(run_steps(r, i, steps, &seconds, error));
        candidate->us = seconds * 1e6 < candidate->us ? seconds * 1e6 : candidate->us;
    }
    return TD_OK;
}

static td_status compete(rehearsal *r, tdi_choice *choice, tdi_error *error)
{
    double longest;
    TDI_TRY(warm_up(r, choice->count, &longest, error));
    double wanted = round_seconds / longest + 1;
    int64_t steps = wanted < MOST_STEPS ? (int64_t)wanted : MOST_STEPS;
    int good = 0, rounds = longest > long_step ? FEW_ROUNDS : ROUNDS;
    for (int i = 0; i < choice->count; i++)
        choice->candidates[i].us = 1e12;
    for (int round = 0; good < rounds && round < MOST_TRIES * rounds; round++) {
        tdi_watch watch = tdi_watch_begin();
        TDI_TRY(take_turns(r, steps, choice, error));
        good += !tdi_watch_was_disturbed(&watch);
    }
    choice->disturbed = good < rounds;
    return TD_OK;
}

td_status tdi_rehearse(const tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_way *ways, tdi_choice *choice,
                       tdi_error *error)
{
    rehearsal r = {.mode = mode, .rows = rows};
    int count = choice->count;
    td_status status = make_shadow(&r, runtime->model, error);
    if (status == TD_OK && !make_inputs(&r))
        status = tdi_no_memory(error);
    for (int i = 0; i < count && status == TD_OK; i++)
        status = tdi_runtime_create(&r.model, &ways[i], &r.trials[i], error);
    if (status == TD_OK)
        status = compete(&r, choice, error);
    release(&r, count);
    return status;
}

/* ---- the choice ---- */

td_status tdi_choose_way(const tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan,
                         const tdi_way *ways, tdi_choice *asked, tdi_choice **chosen, tdi_error *error)
{
    tdi_choices *choices = runtime->chooser.choices;
    const tdi_division *d = &runtime->division;
    const char *names[TDI_MAX_CANDIDATES];
    tdi_error unseen = {0};
    char key[128];
    for (int i = 0; i < asked->count; i++)
        names[i] = asked->candidates[i].name;
    snprintf(key, sizeof key, "%s of step %016llx, %lld rows, %d cores", asked->key,
             (unsigned long long)tdi_plan_hash(plan), (long long)rows, d->workers * d->lanes);
    asked->machine = runtime->devices[0]->identity;
    asked->key = key;
    asked->measured = true;
    *chosen = tdi_choices_find(choices, asked->machine, key, asked->count, names);
    if (!tdi_choice_stands(*chosen) && tdi_rehearse(runtime, mode, rows, ways, asked, &unseen) == TD_OK) {
        asked->chosen = tdi_fastest(asked->candidates, asked->count);
        *chosen = tdi_choices_settle(choices, asked);
        if (!*chosen)
            return tdi_no_memory(error);
    }
    if (*chosen)
        (*chosen)->used = true;
    return TD_OK;
}
