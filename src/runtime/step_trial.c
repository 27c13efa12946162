/* step_trial.c - whole steps as candidates of a contest (tune/contest.h): the model's own steps, in several
 * configurations.
 *
 * Why: in which precision, by how many workers and threads a step is the fastest shows in whole steps alone.
 *
 * Design: each candidate is a runtime of its configuration, made for one clone of the model, whose weights it reads and
 * whose learning rate is zero. It runs a few steps on made-up rows. A candidate of several threads, where fewer are
 * held against it, is run by one thread in their place too and counts by the better of both: while threads do not help,
 * steps come to that (thread_governor.h), and fewer threads would stay when they help again. Candidates of a large step
 * hold memory only during their turn, so that a trial needs one step's memory, and a copy of the weights and, of steps
 * that train, slots.
 *
 * Limits: what a large step finds in the caches it loses with its memory, so each of its turns begins cold. */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "runtime/runtime_struct.h"
#include "runtime/synthetic_steps.h"
#include "tune/contest.h"

enum { ROUNDS = 5, FEW_ROUNDS = 2, MOST_STEPS = 200, LARGE = 64 << 20 /* bytes */ };
static const double round_seconds = 4e-3, long_step = 0.02;

typedef struct trial {
    const td_model *model;
    const tdi_configuration *configurations; /* [count] */
    int count;
    tdi_synthetic_steps synthetic;
    tdi_runtime *runtimes[TDI_MAX_CANDIDATES];
    bool large;
    int64_t steps; /* of a turn */
    double bytes;  /* the most that the runtimes have held at once */
} trial;

static void note_bytes(trial *t)
{
    double bytes = 0;
    for (int i = 0; i < t->count; i++)
        bytes += tdi_runtime_bytes(t->runtimes[i]);
    t->bytes = fmax(bytes, t->bytes);
}

/* Memory is there, and touched, before the clock runs. `in_turn`: one thread computes what all would. */
static td_status run_steps(trial *t, int i, bool in_turn, int64_t steps, double *seconds, tdi_error *error)
{
    tdi_plan *plans[TDI_MAX_SHARDS];
    tdi_fix_threads(t->runtimes[i], t->synthetic.mode, in_turn);
    TDI_TRY(tdi_runtime_prepare(t->runtimes[i], t->synthetic.mode, t->synthetic.rows, plans, error));
    TDI_TRY(tdi_synthetic_steps_run(&t->synthetic, t->runtimes[i], steps, seconds, error));
    note_bytes(t);
    if (t->large)
        tdi_runtime_give_back(t->runtimes[i]);
    return TD_OK;
}

/* The first step makes the plans, the second one warms up; a large one has nothing to warm. */
static td_status warm_up(trial *t, double *longest, tdi_error *error)
{
    double seconds;
    *longest = 1e-9;
    for (int i = 0; i < t->count; i++) {
        TDI_TRY(run_steps(t, i, false, 1, &seconds, error));
        if (!t->large)
            TDI_TRY(run_steps(t, i, false, 1, &seconds, error));
        *longest = fmax(seconds, *longest);
    }
    return TD_OK;
}

static td_status begin(tdi_contest *contest, tdi_error *error)
{
    double longest;
    trial *t = contest->context;
    TDI_TRY(tdi_synthetic_steps_init(t->model, t->synthetic.mode, t->synthetic.rows, &t->synthetic, error));
    for (int i = 0; i < t->count; i++)
        TDI_TRY(tdi_runtime_create(&t->synthetic.clone, &t->configurations[i], &t->runtimes[i], error));
    TDI_TRY(warm_up(t, &longest, error));
    double wanted = round_seconds / longest + 2;
    t->steps = t->large ? 1 : wanted < MOST_STEPS ? (int64_t)wanted : MOST_STEPS;
    contest->rounds = longest > long_step ? FEW_ROUNDS : ROUNDS;
    return TD_OK;
}

static td_status take_turn(trial *t, int i, bool in_turn, double *seconds, tdi_error *error)
{
    if (t->steps > 1) /* the candidate before has left its own data in the caches */
        TDI_TRY(run_steps(t, i, in_turn, 1, seconds, error));
    return run_steps(t, i, in_turn, t->steps, seconds, error);
}

static td_status run(tdi_contest *contest, int i, double *seconds, tdi_error *error)
{
    double in_turn;
    trial *t = contest->context;
    TDI_TRY(take_turn(t, i, false, seconds, error));
    if (t->configurations[i].sharing <= 1)
        return TD_OK;
    TDI_TRY(take_turn(t, i, true, &in_turn, error));
    *seconds = fmin(in_turn, *seconds);
    return TD_OK;
}

static void end(tdi_contest *contest)
{
    trial *t = contest->context;
    for (int i = 0; i < t->count; i++)
        tdi_runtime_free(t->runtimes[i]);
    t->bytes += tdi_synthetic_steps_bytes(&t->synthetic);
    tdi_synthetic_steps_release(&t->synthetic);
}

void tdi_step_trial(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan,
                    const tdi_configuration *configurations, tdi_tuned *question, const tdi_tuned **answer)
{
    const tdi_division *d = &runtime->division;
    tdi_error failed = {0}; /* rules decide then */
    char key[128];
    trial t = {.model = runtime->model,
               .configurations = configurations,
               .count = question->count,
               .synthetic = {.mode = mode, .rows = rows},
               .large = tdi_plan_activation_bytes(plan) * (size_t)d->shards > LARGE};
    tdi_contest contest = {.context = &t, .begin = begin, .run = run, .end = end};
    snprintf(key, sizeof key, "%s of step %016llx, %d cores", question->key, (unsigned long long)tdi_plan_hash(plan),
             d->workers * d->threads);
    question->machine = runtime->devices[0]->identity;
    question->key = key;
    if (tdi_contest_answer(runtime->chooser.cache, runtime->model->context, question, &contest, answer, &failed) ==
        TD_OK)
        runtime->trial_bytes = fmax(runtime->trial_bytes, t.bytes);
}
