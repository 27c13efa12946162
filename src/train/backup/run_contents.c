/* run_contents.c - visiting all that a run consists of.
 *
 * A resumed run has the bits of one that never ended only if everything is visited here that a step reads and that
 * outlives the step. Values are checked before any is changed: what a damaged backup holds leaves the run as it was. */
#include "train/backup/run_contents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"
#include "tune/tuning_cache_file.h"

/* ---- both ways ---- */

typedef struct moment {
    int64_t sequence, seed;
    int epoch;
    int64_t steps, batches;
    double seconds, seconds_waiting;
    bool begun, stop, rate_changes, has_last;
} moment;

static void visit_moment(td_state *state, moment *m)
{
    if (!tdi_state_enter(state, "run", NULL) && state->restoring)
        tdi_fail(&state->error, TD_BAD_FILE, "it has no part \"run\"");
    td_state_count(state, "sequence", &m->sequence);
    td_state_count(state, "seed", &m->seed);
    tdi_state_int(state, "epoch", &m->epoch);
    td_state_count(state, "steps", &m->steps);
    td_state_count(state, "batches", &m->batches);
    td_state_number(state, "seconds", &m->seconds);
    td_state_number(state, "seconds waiting", &m->seconds_waiting);
    tdi_state_flag(state, "begun", &m->begun);
    tdi_state_flag(state, "stop", &m->stop);
    tdi_state_flag(state, "rate changes", &m->rate_changes);
    tdi_state_flag(state, "has last", &m->has_last);
}

static void visit_logs(td_state *state, td_logs *logs)
{
    const char *name;
    json_t *value;
    tdi_state_enter(state, "last", "logs");
    for (int i = 0; !state->restoring && i < logs->count; i++)
        td_state_number(state, logs->entry[i].name, &logs->entry[i].value);
    if (!state->restoring || state->looking)
        return;
    json_object_foreach(state->part, name, value)
    {
        double number = 0;
        td_state_number(state, name, &number);
        tdi_log_set(logs, name, number);
    }
}

static void visit_last(td_state *state, td_epoch *last)
{
    tdi_state_enter(state, "last", NULL);
    tdi_state_int(state, "epoch", &last->epoch);
    td_state_count(state, "steps", &last->steps);
    td_state_count(state, "samples", &last->samples);
    td_state_number(state, "seconds", &last->seconds);
    td_state_number(state, "seconds waiting", &last->seconds_waiting);
    td_state_number(state, "learning rate", &last->learning_rate);
    visit_logs(state, &last->logs);
}

/* Visits what stateful layers keep from batch to batch. */
static void visit_states(td_state *state, td_model *model)
{
    for (int i = 0; i < model->architecture->layers.count; i++)
        for (int s = 0; s < model->architecture->layers.at[i]->states.count; s++) {
            const tdi_variable *variable = model->architecture->layers.at[i]->states.at[s];
            tdi_state_enter(state, "states", model->architecture->layers.at[i]->name);
            tdi_state_array_of(state, variable->name, TD_FLOAT32, &variable->shape,
                               tdi_model_write_value(model, variable));
        }
}

static void visit_model(td_state *state, td_model *model)
{
    double rate = (double)model->state->optimizer.learning_rate;
    tdi_state_enter(state, "model", NULL);
    td_state_count(state, "iteration", &model->state->iteration);
    td_state_number(state, "learning rate", &rate);
    if (state->restoring && (!(rate >= 0) || !isfinite((float)rate)))
        tdi_fail(&state->error, TD_BAD_FILE, "its learning rate is %g, which cannot be", rate);
    else
        model->state->optimizer.learning_rate = (float)rate;
    tdi_state_enter(state, "weights", NULL);
    tdi_state_variables(state, "", model, false, tdi_model_write_values(model));
    for (int slot = 0; slot < TDI_MAX_SLOTS; slot++) {
        char name[16];
        snprintf(name, sizeof name, "%d", slot);
        tdi_state_enter(state, "slots", name);
        if (tdi_model_slots(model, slot))
            tdi_state_variables(state, "", model, true, tdi_model_write_slots(model, slot));
    }
    visit_states(state, model);
}

void tdi_run_visit_callbacks(td_state *state, td_training *training)
{
    for (int i = 0; training->callbacks[i]; i++) {
        const td_callback *callback = training->callbacks[i];
        if (!callback->functions.state)
            continue;
        char name[128];
        int before = 0;
        const char *own = callback->functions.name ? callback->functions.name : "callback";
        for (int j = 0; j < i; j++) {
            const char *other = training->callbacks[j]->functions.name;
            before += training->callbacks[j]->functions.state && strcmp(other ? other : "callback", own) == 0;
        }
        snprintf(name, sizeof name, before ? "%.100s_%d" : "%.100s", own, before);
        if (tdi_state_enter(state, "callbacks", name))
            callback->functions.state(callback->user, training, state);
    }
}

/* ---- saving ---- */

static void save_configuration(td_state *state, const td_model *model)
{
    int shards;
    bool float32;
    if (!tdi_runtime_is_chosen(model, &shards, &float32))
        return;
    tdi_state_enter(state, "way", NULL);
    tdi_state_int(state, "parts", &shards);
    tdi_state_flag(state, "float32", &float32);
}

static void save_sums(td_state *state, td_training *training)
{
    const tdi_runtime *runtime = tdi_runtime_own(training->model);
    int count = runtime ? tdi_runtime_sums(runtime, TDI_TRAIN) : 0, shards = count ? tdi_runtime_shards(runtime) : 0;
    double *sums = calloc((size_t)shards * (size_t)count * 2 + 1, sizeof *sums);
    if (!sums)
        tdi_no_memory(&state->error);
    else if (count)
        tdi_runtime_get_sums(runtime, TDI_TRAIN, sums);
    tdi_state_enter(state, "run", NULL);
    if (sums)
        tdi_state_array_of(state, "sums", TD_FLOAT64, &TD_SHAPE(shards, count, 2), sums);
    free(sums);
}

/* The position of a run. The end of an epoch is saved as the begin of the next one. */
static moment moment_of(const td_training *training, int64_t sequence)
{
    moment m = {.sequence = sequence,
                .seed = (int64_t)training->seed,
                .epoch = training->epoch,
                .steps = training->steps,
                .batches = training->batches,
                .seconds = training->seconds,
                .seconds_waiting = training->seconds_waiting,
                .begun = training->begun,
                .stop = training->stop,
                .rate_changes = training->rate_changes,
                .has_last = training->has_last};
    if (!m.begun && m.steps) {
        m.epoch++;
        m.steps = 0;
        m.seconds = m.seconds_waiting = 0;
    }
    return m;
}

void tdi_run_save(td_state *state, td_training *training, int64_t sequence)
{
    moment m = moment_of(training, sequence);
    visit_moment(state, &m);
    if (m.has_last)
        visit_last(state, &training->last);
    visit_model(state, training->model);
    save_configuration(state, training->model);
    if (m.steps)
        save_sums(state, training);
    if (training->callbacks)
        tdi_run_visit_callbacks(state, training);
}

/* ---- restoring ---- */

int64_t tdi_run_sequence(td_state *state)
{
    moment m = {0};
    visit_moment(state, &m);
    return state->error.status == TD_OK ? m.sequence : -1;
}

static td_status restore_sums(td_state *state, td_training *training, int64_t batch, tdi_error *error)
{
    tdi_runtime *runtime;
    tdi_state_enter(state, "run", NULL);
    td_shape shape = tdi_state_shape(state, "sums");
    bool there = shape.rank == 3 && shape.dim[0] <= INT32_MAX && shape.dim[1] <= INT32_MAX;
    int64_t shards = there ? shape.dim[0] : 0, count = there ? shape.dim[1] : 0;
    double *sums = calloc((size_t)shards * (size_t)count * 2 + 1, sizeof *sums);
    if (!sums)
        return tdi_no_memory(error);
    tdi_state_array_of(state, "sums", TD_FLOAT64, &TD_SHAPE(shards, count, 2), sums);
    td_status status = tdi_state_outcome(state, error);
    if (status == TD_OK)
        status = tdi_runtime_for(training->model, TDI_TRAIN, batch, &runtime, error);
    if (status == TD_OK)
        status = tdi_runtime_put_sums(runtime, TDI_TRAIN, (int)shards, (int)count, sums, error);
    free(sums);
    return status;
}

/* Drops the plans: new ones take the kernels that the backup's took, with a tuning cache or without. */
static td_status restore_tuning_cache(const td_state *state, td_model *model, tdi_error *error)
{
    tdi_model_drop_runtimes(model);
    model->compiled.by_rules = !state->tuned;
    return state->tuned ? tdi_tuning_cache_restore(model->context, state->tuned, error) : TD_OK;
}

/* Restores in how many shards, and whether in float32, steps were run: steps before this run's may have decided it. */
static td_status restore_configuration(td_state *state, td_model *model, int64_t batch, tdi_error *error)
{
    int shards = 0;
    bool float32 = false;
    if (!tdi_state_enter(state, "way", NULL))
        return TD_OK;
    tdi_state_int(state, "parts", &shards);
    tdi_state_flag(state, "float32", &float32);
    TDI_TRY(tdi_state_outcome(state, error));
    return tdi_runtime_resume(model, shards, float32, batch, error);
}

static td_status check_moment(const moment *m, const tdi_run *run, tdi_error *error)
{
    if (m->sequence < 0 || m->epoch < 0 || m->steps < 0 || m->steps > run->steps || m->batches < m->steps)
        return tdi_fail(error, TD_BAD_FILE, "it is at epoch %d, step %lld of %lld, which cannot be", m->epoch,
                        (long long)m->steps, (long long)run->steps);
    return TD_OK;
}

static void take_moment(td_training *training, const moment *m, const td_epoch *last)
{
    training->seed = (uint64_t)m->seed;
    training->epoch = m->epoch;
    training->steps = m->steps;
    training->batches = m->batches;
    training->seconds = m->seconds;
    training->seconds_waiting = m->seconds_waiting;
    training->begun = m->begun;
    training->stop = m->stop;
    training->rate_changes |= m->rate_changes;
    training->last = *last;
    training->has_last = m->has_last;
}

td_status tdi_run_restore(td_state *state, td_training *training, const tdi_run *run, tdi_error *error)
{
    moment m = {0};
    td_epoch last = {0};
    visit_moment(state, &m);
    if (m.has_last)
        visit_last(state, &last);
    state->looking = true;
    visit_model(state, training->model);
    state->looking = false;
    TDI_TRY(tdi_state_outcome(state, error));
    TDI_TRY(check_moment(&m, run, error));
    TDI_TRY(restore_tuning_cache(state, training->model, error));
    visit_model(state, training->model);
    TDI_TRY(restore_configuration(state, training->model, run->batch, error));
    if (m.steps)
        TDI_TRY(restore_sums(state, training, run->batch, error));
    take_moment(training, &m, &last);
    training->resumed = true;
    return tdi_state_outcome(state, error);
}

/* The tuning cache and the configuration are the process's own. */
td_status tdi_run_take(td_state *state, td_training *training, const tdi_run *run, bool resumed, tdi_error *error)
{
    moment m = {0};
    td_epoch last = {0};
    visit_moment(state, &m);
    if (m.has_last)
        visit_last(state, &last);
    visit_model(state, training->model);
    TDI_TRY(tdi_state_outcome(state, error));
    if (m.steps)
        TDI_TRY(restore_sums(state, training, run->batch, error));
    take_moment(training, &m, &last);
    training->resumed = resumed;
    return tdi_state_outcome(state, error);
}
