/* run.c - a job on all threads: step, feed the next, meet, again. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "runtime/runtime_struct.h"

typedef struct run {
    tdi_runtime *runtime;
    const tdi_job *job;
    tdi_plan **full, **last; /* [parts]: of whole steps, of the last one */
    int64_t last_rows;
    int64_t done;        /* steps completed */
    double waited;       /* the first thread, for rows */
    _Atomic int64_t end; /* steps to run; lowered before all meet, seen by all alike after */
    atomic_bool failed, not_finite;
    tdi_error *error;     /* the feed's, or that of who takes the outputs */
    bool alone;           /* one lane makes all: the others are not woken */
    bool noted;           /* in a trace */
    bool in_turn;         /* one thread makes what all would */
    int64_t begin, until; /* the steps of the stretch under way */
} run;

static tdi_job_step step_of(const run *r, int64_t i)
{
    return (tdi_job_step){i, i + 1 == r->job->steps ? r->last_rows : r->job->batch};
}

/* ---- one thread's run ---- */

float tdi_ramp_factor(const tdi_ramp *ramp, int64_t step)
{
    int64_t done = ramp->done + step;
    if (ramp->last == 0)
        return 1;
    if (done >= ramp->steps)
        return ramp->last;
    return ramp->first + (ramp->last - ramp->first) * ((float)done / (float)ramp->steps);
}

/* Of step `index` of the job; -1: of the step before it, 0 when there was none. */
static float rate_of(const run *r, int64_t index)
{
    const tdi_model_state *state = r->runtime->state;
    if (state->iteration + index < 0)
        return 0;
    if (index < 0 && state->last_rate > 0)
        return state->last_rate;
    return tdi_optimizer_rate(&state->optimizer, state->iteration + index) *
           tdi_ramp_factor(&r->job->ramp, r->job->first_step + index);
}

static atomic_bool *lacked(const run *r, int64_t step)
{
    return &r->runtime->lacked[step % 2];
}

/* Reckons a step's control block: what the mode's says of the graph, the step's own numbers, and the state's. */
static void set_control(run *r, tdi_control *control, tdi_job_step step)
{
    const tdi_model_state *state = r->runtime->state;
    int64_t now = state->iteration + step.index, each = state->optimizer.gradient_accumulation_steps;
    *control = r->runtime->modes[r->job->mode].control;
    control->rows = step.rows;
    control->inverse_rows = tdi_inverse_rows(step.rows);
    control->step = now;
    control->seed = r->job->seed;
    control->weights = state->version;
    control->skip = each && (now + 1) % each != 0;
    control->turn = (unsigned)(step.index % 2);
    if (!tdi_trains(r->job->mode))
        return;
    for (int i = 0; i < TDI_DROPOUT_NUMBERS; i++)
        if (state->dropout[i] >= 0)
            control->dropout[i] = tdi_dropout_numbers_of(state->dropout[i]);
    if (!tdi_updates(r->job->mode))
        return;
    control->learning_rate = rate_of(r, step.index);
    control->rate_before = r->job->ramp.corrected ? rate_of(r, step.index - 1) : 0;
    control->iteration = each ? now / each : now;
    tdi_optimizer_reckon(&state->optimizer, control);
}

static bool losses_finite(const run *r, int first, int count)
{
    const tdi_metric_slots *slots = &r->runtime->modes[r->job->mode].program.slots;
    for (int p = first; p < first + count; p++)
        for (int o = 0; o < r->runtime->model->architecture->n_outputs; o++)
            if (!isfinite(r->runtime->parts[p].metrics[r->job->mode][2 * slots->loss[o]]))
                return false;
    return true;
}

static void end_before(run *r, int64_t step)
{
    int64_t end = atomic_load(&r->end);
    while (step < end && !atomic_compare_exchange_weak(&r->end, &end, step))
        ;
}

/* The first failure is the one reported. */
static void fail_before(run *r, int64_t step, const tdi_error *error)
{
    end_before(r, step);
    if (!atomic_exchange(&r->failed, true))
        *r->error = *error;
}

static td_status take_outputs(run *r, int worker, tdi_job_step step, tdi_plan *const *plans, tdi_error *error)
{
    const tdi_runtime *runtime = r->runtime;
    for (int p = tdi_worker_first_part(runtime, worker); p < tdi_worker_first_part(runtime, worker + 1); p++) {
        int64_t first = tdi_part_first_row(step.rows, p, runtime->division.parts);
        int64_t count = tdi_part_rows(runtime, p, step.rows);
        for (int o = 0; count && o < runtime->model->architecture->n_outputs; o++)
            TDI_TRY(r->job->take(r->job->take_context, r->job->first_step + step.index, first, count, o,
                                 tdi_plan_output(plans[p], o), error));
    }
    return TD_OK;
}

/* NULL without a trace. */
static tdi_track *track_of(const run *r, int worker, int lane)
{
    return r->noted ? r->runtime->traced.tracks[worker * r->runtime->division.lanes + lane] : NULL;
}

static void meet(const run *r, int worker, int lane, int64_t i)
{
    double began = r->noted ? tdi_seconds() : 0;
    tdi_communicator *communicator = r->runtime->modes[r->job->mode].communicators[worker];
    if (!r->alone)
        communicator->end_step(communicator);
    if (r->noted)
        tdi_track_note(track_of(r, worker, lane), r->runtime->traced.meet, began, tdi_seconds(), i);
}

/* Lanes that go on would overwrite the outputs: they wait until lane 0 has taken them. */
static void take(run *r, int worker, int lane, tdi_job_step step, tdi_plan *const *plans)
{
    tdi_barrier *lanes = &r->runtime->workers[worker].lanes;
    tdi_error error;
    tdi_error_init(&error);
    double began = r->noted ? tdi_seconds() : 0;
    if (!r->alone)
        tdi_barrier_wait(lanes);
    bool made = !atomic_load(lacked(r, step.index));
    if (lane == 0 && made && take_outputs(r, worker, step, plans, &error) != TD_OK)
        fail_before(r, step.index + 1, &error);
    if (!r->alone)
        tdi_barrier_wait(lanes);
    if (r->noted)
        tdi_track_note(track_of(r, worker, lane), r->runtime->traced.take, began, tdi_seconds(), step.index);
}

static void bring(run *r, int worker, int lane, int64_t i)
{
    tdi_error error;
    tdi_error_init(&error);
    int lanes = r->alone ? 1 : r->runtime->division.lanes;
    if (tdi_inputs_feed(r->runtime, r->job, step_of(r, i), worker, lane, lanes, &error) == TD_OK)
        return;
    fail_before(r, i, &error);
}

static void feed(run *r, int worker, int lane, int64_t i)
{
    if (i >= r->until)
        return;
    bool timed = r->job->timed && worker == 0 && lane == 0;
    double began = timed || r->noted ? tdi_seconds() : 0;
    bring(r, worker, lane, i);
    if (timed)
        r->waited += tdi_seconds() - began;
    if (r->noted)
        tdi_track_note(track_of(r, worker, lane), r->runtime->traced.feed, began, tdi_seconds(), i);
}

/* Accumulators are lane 0's own. */
static void account(run *r, int first, int count, int64_t i)
{
    bool trains = r->job->mode == TDI_TRAIN || r->job->mode == TDI_GRADIENTS;
    if (first == 0)
        r->done++;
    if (trains && !losses_finite(r, first, count)) {
        atomic_store(&r->not_finite, true);
        end_before(r, i + 1);
    }
    if (r->job->stop && atomic_load(r->job->stop))
        end_before(r, i + 1);
}

/* When all have met after step i, none of its kernels can fail any more: all threads end alike. */
static void end_if_lacked(run *r, int64_t i)
{
    if (atomic_load(lacked(r, i)))
        end_before(r, i + 1);
}

static void run_plans(run *r, tdi_plan *const *plans, int count, int worker, int lane, int64_t i)
{
    const tdi_mode_state *mode = &r->runtime->modes[r->job->mode];
    const tdi_traced *traced = &r->runtime->traced;
    tdi_notes notes = {track_of(r, worker, lane), traced->lanes, traced->begin, traced->finish, r->job->first_step + i};
    double began = r->noted ? tdi_seconds() : 0;
    tdi_plans_run(plans, count, lane, mode->steps + (uint32_t)i + 1, &r->runtime->workers[worker].lanes,
                  mode->communicators[worker], r->noted ? &notes : NULL);
    if (r->noted)
        tdi_track_note(notes.track, traced->step, began, tdi_seconds(), notes.step);
}

/* A step is fed while the one before it ends; then all meet, and see alike whether it is to begin. */
static void run_steps(run *r, int index)
{
    tdi_runtime *runtime = r->runtime;
    int worker = index / runtime->division.lanes, lane = index % runtime->division.lanes;
    int first = tdi_worker_first_part(runtime, worker), count = tdi_worker_first_part(runtime, worker + 1) - first;
    feed(r, worker, lane, r->begin);
    meet(r, worker, lane, r->begin);
    for (int64_t i = r->begin; i < r->until && i < atomic_load(&r->end); i++) {
        tdi_plan *const *plans = i + 1 == r->job->steps ? r->last : r->full;
        set_control(r, &runtime->workers[worker].control[lane], step_of(r, i));
        tdi_inputs_set(runtime, r->job, step_of(r, i), worker, lane, plans);
        run_plans(r, plans + first, count, worker, lane, i);
        if (r->job->take)
            take(r, worker, lane, step_of(r, i), plans);
        if (lane == 0)
            account(r, first, count, i);
        feed(r, worker, lane, i + 1);
        meet(r, worker, lane, i);
        end_if_lacked(r, i);
    }
}

static void feed_all(run *r, int64_t i)
{
    const tdi_division *d = &r->runtime->division;
    for (int thread = 0; thread < d->workers * d->lanes; thread++)
        feed(r, thread / d->lanes, thread % d->lanes, i);
}

static void begin_all(run *r, int64_t i, tdi_plan *const *plans)
{
    tdi_runtime *runtime = r->runtime;
    for (int worker = 0; worker < runtime->division.workers; worker++)
        for (int lane = 0; lane < runtime->division.lanes; lane++) {
            set_control(r, &runtime->workers[worker].control[lane], step_of(r, i));
            tdi_inputs_set(runtime, r->job, step_of(r, i), worker, lane, plans);
        }
}

static void end_all(run *r, int64_t i, tdi_plan *const *plans)
{
    tdi_error error;
    tdi_error_init(&error);
    for (int worker = 0; worker < r->runtime->division.workers; worker++) {
        int first = tdi_worker_first_part(r->runtime, worker);
        bool made = !atomic_load(lacked(r, i));
        if (r->job->take && made && take_outputs(r, worker, step_of(r, i), plans, &error) != TD_OK)
            fail_before(r, i + 1, &error);
        account(r, first, tdi_worker_first_part(r->runtime, worker + 1) - first, i);
    }
}

/* What run_steps does on all threads. */
static void run_steps_in_turn(run *r)
{
    const tdi_division *d = &r->runtime->division;
    tdi_mode_state *mode = &r->runtime->modes[r->job->mode];
    feed_all(r, r->begin);
    for (int64_t i = r->begin; i < r->until && i < atomic_load(&r->end); i++) {
        tdi_plan *const *plans = i + 1 == r->job->steps ? r->last : r->full;
        begin_all(r, i, plans);
        tdi_plans_run_in_turn(plans, d->parts, d->workers, mode->steps + (uint32_t)i + 1, mode->communicators);
        end_all(r, i, plans);
        end_if_lacked(r, i);
        feed_all(r, i + 1);
    }
}

static void run_thread(void *argument, int index)
{
    run *r = argument;
    tdi_device *device = r->runtime->devices[0];
    int state = device->enter_thread ? device->enter_thread(device) : 0;
    if (r->in_turn)
        run_steps_in_turn(r);
    else
        run_steps(r, index);
    if (device->leave_thread)
        device->leave_thread(device, state);
}

/* ---- the job ---- */

static td_status prepare(run *r, tdi_error *error)
{
    const tdi_job *job = r->job;
    r->last_rows = job->samples - (job->steps - 1) * job->batch;
    bool resumed_at_last = job->first_step && r->last_rows < job->batch; /* a way is chosen by full steps */
    if (job->steps > 1 || resumed_at_last)
        TDI_TRY(tdi_runtime_prepare(r->runtime, job->mode, job->batch, r->full, error));
    TDI_TRY(tdi_runtime_prepare(r->runtime, job->mode, r->last_rows, r->last, error));
    if (job->steps > 1)
        tdi_runtime_bind(r->runtime, job->mode, r->full);
    tdi_runtime_bind(r->runtime, job->mode, r->last);
    if (job->steps > 1)
        TDI_TRY(tdi_runtime_trace(r->runtime, r->full, error));
    TDI_TRY(tdi_runtime_trace(r->runtime, r->last, error));
    r->noted = r->runtime->model->context->trace != NULL;
    return tdi_inputs_prepare(r->runtime, job, step_of(r, 0), error);
}

static bool runs_alone(const run *r)
{
    bool one = tdi_plan_sharing(r->last[0]) == 1 && (r->job->steps == 1 || tdi_plan_sharing(r->full[0]) == 1);
    return r->runtime->division.parts == 1 && r->runtime->modes[r->job->mode].program.collectives == 0 && one;
}

static td_status outcome(const run *r, tdi_error *error)
{
    if (r->done && atomic_load(lacked(r, r->done - 1)))
        return tdi_fail(
            error, TD_NO_MEMORY,
            "out of memory inside step %lld: what it computed, and the weights if it trained, are not to be "
            "used; go back to a saved model, with a smaller batch",
            (long long)(r->job->first_step + r->done - 1));
    if (atomic_load(&r->not_finite))
        return tdi_fail(
            error, TD_NOT_FINITE,
            "the loss is not a finite number at step %lld; look for NaN in the data, or lower the learning rate",
            (long long)(r->job->first_step + r->done - 1));
    if (atomic_load(&r->failed))
        return tdi_fail(error, r->error->status, "%s", r->error->message);
    return r->done < r->job->steps ? TD_STOPPED : TD_OK;
}

/* Waiting threads must have cores of their own for a pace to mean anything. A trace shows them all at work. */
static bool has_pace(const run *r)
{
    const tdi_runtime *runtime = r->runtime;
    return !r->alone && !r->noted && runtime->division.workers * runtime->division.lanes > 1 &&
           tdi_team_spins(runtime->team);
}

/* The last one of a job may have fewer rows. */
static double steps_since(const run *r, int64_t before)
{
    double lacks = r->done == r->job->steps ? 1 - (double)r->last_rows / (double)r->job->batch : 0;
    return (double)(r->done - before) - lacks;
}

static void run_stretch(run *r)
{
    if (r->alone || r->in_turn)
        tdi_run_alone(run_thread, r);
    else
        tdi_team_run(r->runtime->team, run_thread, r);
}

/* Is this the call of one step that one thread had better make, because others would have to be woken? */
static bool is_made_alone(const run *r, bool asleep)
{
    tdi_calls *calls = &r->runtime->modes[r->job->mode].calls;
    return asleep && r->job->steps == 1 && !r->runtime->rehearses && tdi_calls_alone(calls, r->last_rows);
}

/* The job in stretches, each by all threads or by one. */
static void run_paced(run *r)
{
    tdi_idle *idle = &r->runtime->idle;
    tdi_mode_state *mode = &r->runtime->modes[r->job->mode];
    for (r->begin = 0; r->begin < atomic_load(&r->end); r->begin = r->until) {
        int64_t left = r->job->steps - r->begin, steps = tdi_pace_steps(&mode->pace), before = r->done;
        double begun = tdi_seconds();
        bool asleep = tdi_idle_begin(idle, begun), paused = idle->busy <= 0, paced = tdi_pace_in_turn(&mode->pace);
        bool alone = !paced && is_made_alone(r, asleep);
        r->until = r->begin + (steps < left ? steps : left);
        r->in_turn = paced || alone;
        run_stretch(r);
        double ended = tdi_seconds();
        tdi_idle_end(idle, begun, ended);
        if (paused && !paced && r->job->steps == 1)
            tdi_calls_note(&mode->calls, alone, ended - begun);
        if (!alone)
            tdi_pace_note(&mode->pace, steps_since(r, before), ended - begun);
    }
}

static void run_all(run *r)
{
    r->until = r->job->steps;
    if (has_pace(r))
        run_paced(r);
    else
        run_stretch(r);
}

td_status tdi_runtime_run(tdi_runtime *runtime, tdi_job *job, tdi_error *error)
{
    tdi_plan *full[TDI_MAX_PARTS], *last[TDI_MAX_PARTS];
    tdi_error failure;
    run r = {.runtime = runtime, .job = job, .full = full, .last = last, .end = job->steps, .error = &failure};
    tdi_error_init(&failure);
    atomic_store_explicit(&runtime->lacked[0], false, memory_order_relaxed); /* no thread is at work yet */
    atomic_store_explicit(&runtime->lacked[1], false, memory_order_relaxed);
    job->done = 0;
    job->waited = 0;
    TDI_TRY(prepare(&r, error));
    r.alone = runs_alone(&r);
    bool consumes = tdi_trains(job->mode);
    runtime->fresh_gradients = runtime->fresh_gradients && !consumes;
    run_all(&r);
    if (consumes)
        tdi_model_state_write_values(runtime->state);
    job->done = r.done;
    job->waited = r.waited;
    runtime->modes[job->mode].steps += (uint32_t)r.done;
    if (job->mode == TDI_TRAIN && r.done)
        runtime->state->last_rate = rate_of(&r, r.done - 1);
    if (job->mode == TDI_TRAIN || job->mode == TDI_APPLY)
        runtime->state->iteration += r.done;
    TDI_TRY(outcome(&r, error));
    runtime->fresh_gradients = runtime->fresh_gradients || job->mode == TDI_GRADIENTS;
    return TD_OK;
}

/* ---- results ---- */

/* The parts' accumulators are added up in the order of parts. */
void tdi_runtime_logs(const tdi_runtime *runtime, tdi_mode mode, const char *prefix, td_logs *logs)
{
    const tdi_metric_slots *slots = &runtime->modes[mode].program.slots;
    double *sums = runtime->modes[mode].sums;
    if (!sums)
        return;
    memset(sums, 0, tdi_metric_bytes(slots));
    for (int p = 0; p < runtime->division.parts; p++)
        for (int i = 0; i < 2 * slots->count; i++)
            sums[i] += runtime->parts[p].metrics[mode][i];
    tdi_program_logs(runtime->model, slots, sums, prefix, logs);
}

void tdi_runtime_reset_sums(tdi_runtime *runtime, tdi_mode mode)
{
    for (int p = 0; p < runtime->division.parts; p++)
        if (runtime->parts[p].metrics[mode])
            memset(runtime->parts[p].metrics[mode], 0, tdi_metric_bytes(&runtime->modes[mode].program.slots));
}

void tdi_runtime_confusion(const tdi_runtime *runtime, int output, double *counts)
{
    const tdi_metric_slots *slots = &runtime->modes[TDI_CONFUSION].program.slots;
    int cells = slots->classes[output] * slots->classes[output];
    memset(counts, 0, (size_t)cells * sizeof *counts);
    for (int p = 0; p < runtime->division.parts; p++)
        for (int i = 0; i < cells; i++)
            counts[i] += runtime->parts[p].metrics[TDI_CONFUSION][2 * slots->confusion[output] + i];
}

int tdi_runtime_parts(const tdi_runtime *runtime)
{
    return runtime->division.parts;
}

int tdi_runtime_sums(const tdi_runtime *runtime, tdi_mode mode)
{
    return runtime->parts[0].metrics[mode] ? runtime->modes[mode].program.slots.count : 0;
}

void tdi_runtime_get_sums(const tdi_runtime *runtime, tdi_mode mode, double *sums)
{
    int64_t each = 2 * (int64_t)tdi_runtime_sums(runtime, mode);
    for (int p = 0; p < runtime->division.parts && each; p++)
        memcpy(sums + p * each, runtime->parts[p].metrics[mode], (size_t)each * sizeof *sums);
}

td_status tdi_runtime_put_sums(tdi_runtime *runtime, tdi_mode mode, int parts, int count, const double *sums,
                               tdi_error *error)
{
    TDI_TRY(tdi_need_sums(runtime, mode, error));
    tdi_runtime_reset_sums(runtime, mode);
    if (count && count != tdi_runtime_sums(runtime, mode))
        return tdi_fail(error, TD_BAD_FILE, "the backup has %d sums of losses and metrics; %d were expected", count,
                        tdi_runtime_sums(runtime, mode));
    for (int p = 0; p < parts; p++) {
        double *to = runtime->parts[parts == runtime->division.parts ? p : 0].metrics[mode];
        for (int i = 0; i < 2 * count; i++)
            to[i] += sums[(int64_t)p * 2 * count + i];
    }
    return TD_OK;
}

bool tdi_runtime_is_settled(const tdi_runtime *runtime, int *parts, bool *float32)
{
    *parts = runtime->division.parts;
    *float32 = runtime->float32;
    return runtime->settled;
}

bool tdi_runtime_has_gradients(const tdi_runtime *runtime)
{
    return runtime->fresh_gradients;
}

float *tdi_runtime_gradient(const tdi_runtime *runtime, const tdi_variable *variable)
{
    return runtime->gradients[0] ? runtime->gradients[0] + variable->offset : NULL;
}
