/* run_steps.c - a job, a number of steps of one kind, on all threads without coming back to the host.
 *
 * Every thread loops alone: it runs its part of the step, brings its share of the next step's rows together, and meets
 * the others, once a step. Nobody directs them. So that all leave the loop behind the same step, whatever ends a job
 * (a failure, a loss that is not finite, a stop) lowers `end` before the threads meet, and all read it after.
 *
 * The one exception is a broken collective: every thread finds it broken on its own, leaves at once, and meets nobody.
 * Then the communicators are given up (tdi_runtime_disconnect), as some workers have begun what others never will.
 *
 * A job goes by stretches of some milliseconds, for which the thread governor says whether all threads run, or the
 * caller's walks the lists of all (run_steps_in_turn), with the same bits. A call of one step that comes after a pause
 * may be made so too, where waking the others would take longer. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "comm/exchange.h"
#include "runtime/inputs.h"
#include "runtime/runtime_struct.h"
#include "runtime/share_results.h"

typedef struct run {
    tdi_runtime *runtime;
    const tdi_job *job;
    tdi_plan **full, **last; /* [shards]: of full steps, and of the last one, which may have fewer rows */
    int64_t last_rows;
    int64_t done;        /* steps completed */
    double waited;       /* seconds of the first thread for rows */
    _Atomic int64_t end; /* steps to run; lowered only before all threads meet, read after */
    atomic_bool failed, not_finite;
    atomic_bool broken;     /* a collective of the step is broken; all threads have left the step there */
    tdi_error *error;       /* of the feed, of who takes the outputs, or of the communicator */
    bool alone;             /* the plans use one thread only: the others are not woken */
    bool noted;             /* a trace is made */
    bool in_turn;           /* the caller's thread does what all would */
    tdi_exchange *exchange; /* with the other processes of the group; NULL: there are none */
    bool moves;             /* steps exchange something with them, a wish to stop too */
    int64_t begin, until;   /* the steps of the stretch under way */
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

/* The learning rate of step `index` of the job; -1 is the step before the job, whose rate is 0 when there was none. */
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

static atomic_bool *out_of_memory(const run *r, int64_t step)
{
    return &r->runtime->out_of_memory[step % 2];
}

/* Reckons a step's control block: what the program's attributes say, then the step's own numbers and the state's. */
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
            if (slots->loss[o] >= 0 && !isfinite(r->runtime->shards[p].metrics[r->job->mode][2 * slots->loss[o]]))
                return false;
    return true;
}

static void end_before(run *r, int64_t step)
{
    int64_t end = atomic_load(&r->end);
    while (step < end && !atomic_compare_exchange_weak(&r->end, &end, step))
        ;
}

/* No step from `step` on is run. The first failure is the one reported. */
static void fail_before(run *r, int64_t step, const tdi_error *error)
{
    end_before(r, step);
    if (!atomic_exchange(&r->failed, true))
        *r->error = *error;
}

static td_status take_outputs(run *r, int worker, tdi_job_step step, tdi_plan *const *plans, tdi_error *error)
{
    const tdi_runtime *runtime = r->runtime;
    for (int p = tdi_worker_first_shard(runtime, worker); p < tdi_worker_first_shard(runtime, worker + 1); p++) {
        int64_t first = tdi_shard_first_row(step.rows, p, runtime->division.shards);
        int64_t count = tdi_shard_rows(runtime, p, step.rows);
        for (int o = 0; count && o < runtime->model->architecture->n_outputs; o++)
            TDI_TRY(r->job->take(r->job->take_context, r->job->first_step + step.index, first, count, o,
                                 tdi_plan_output(plans[p], o), error));
    }
    return TD_OK;
}

/* NULL: no trace is made. */
static tdi_track *track_of(const run *r, int worker, int thread)
{
    return r->noted ? r->runtime->traced.tracks[worker * r->runtime->division.threads + thread] : NULL;
}

static void meet(const run *r, int worker, int thread, int64_t i)
{
    double began = r->noted ? tdi_seconds() : 0;
    tdi_communicator *communicator = r->runtime->modes[r->job->mode].communicators[worker];
    if (!r->alone)
        communicator->end_step(communicator);
    if (r->noted)
        tdi_track_note(track_of(r, worker, thread), r->runtime->traced.meet, began, tdi_seconds(), i);
}

/* A worker's threads wait until its first one has taken the outputs, which they would overwrite. */
static void take(run *r, int worker, int thread, tdi_job_step step, tdi_plan *const *plans)
{
    tdi_barrier *threads = &r->runtime->workers[worker].threads;
    tdi_error error;
    tdi_error_init(&error);
    double began = r->noted ? tdi_seconds() : 0;
    if (!r->alone)
        tdi_barrier_wait(threads);
    bool made = !atomic_load(out_of_memory(r, step.index));
    if (thread == 0 && made && take_outputs(r, worker, step, plans, &error) != TD_OK)
        fail_before(r, step.index + 1, &error);
    if (!r->alone)
        tdi_barrier_wait(threads);
    if (r->noted)
        tdi_track_note(track_of(r, worker, thread), r->runtime->traced.take, began, tdi_seconds(), step.index);
}

static void bring(run *r, int worker, int thread, int64_t i)
{
    tdi_error error;
    tdi_error_init(&error);
    int threads = r->alone ? 1 : r->runtime->division.threads;
    if (tdi_inputs_feed(r->runtime, r->job, step_of(r, i), worker, thread, threads, &error) == TD_OK)
        return;
    fail_before(r, i, &error);
}

static void feed(run *r, int worker, int thread, int64_t i)
{
    if (i >= r->until)
        return;
    bool timed = r->job->timed && worker == 0 && thread == 0;
    double began = timed || r->noted ? tdi_seconds() : 0;
    bring(r, worker, thread, i);
    if (timed)
        r->waited += tdi_seconds() - began;
    if (r->noted)
        tdi_track_note(track_of(r, worker, thread), r->runtime->traced.feed, began, tdi_seconds(), i);
}

/* Called by the first thread of each worker, which alone writes its shards' accumulators. */
static void account(run *r, int first, int count, int64_t i)
{
    bool trains = r->job->mode == TDI_TRAIN || r->job->mode == TDI_GRADIENTS;
    if (first == r->runtime->division.own_first)
        r->done++;
    if (trains && !losses_finite(r, first, count)) {
        atomic_store(&r->not_finite, true);
        end_before(r, i + 1);
    }
    bool stop = r->job->stop && atomic_load(r->job->stop);
    if (stop && r->moves)
        tdi_exchange_ask_to_stop(r->exchange);
    uint32_t step = r->runtime->modes[r->job->mode].steps + (uint32_t)i + 1;
    if (r->moves ? tdi_exchange_stops(r->exchange, step) : stop)
        end_before(r, i + 1);
}

/* Called once all have met after step i, when none of its kernels can fail any more, so that all threads see the same.
 */
static void end_if_out_of_memory(run *r, int64_t i)
{
    if (atomic_load(out_of_memory(r, i)))
        end_before(r, i + 1);
}

/* A collective of step i is broken: the thread leaves the step, which does not count. */
static void break_off(run *r, int worker, int64_t i)
{
    const tdi_communicator *communicator = r->runtime->modes[r->job->mode].communicators[worker];
    atomic_store(&r->broken, true);
    fail_before(r, i, communicator->failure(communicator));
}

/* false: the step has been broken off. */
static bool run_plans(run *r, tdi_plan *const *plans, int count, int worker, int thread, int64_t i)
{
    const tdi_mode_state *mode = &r->runtime->modes[r->job->mode];
    const tdi_traced *traced = &r->runtime->traced;
    tdi_step_trace notes = {track_of(r, worker, thread), traced->threads, traced->begin, traced->finish,
                            r->job->first_step + i};
    double began = r->noted ? tdi_seconds() : 0;
    td_status status =
        tdi_plans_run(plans, count, thread, mode->steps + (uint32_t)i + 1, &r->runtime->workers[worker].threads,
                      mode->communicators[worker], r->noted ? &notes : NULL);
    if (r->noted)
        tdi_track_note(notes.track, traced->step, began, tdi_seconds(), notes.step);
    if (status != TD_OK)
        break_off(r, worker, i);
    return status == TD_OK;
}

/* Each thread feeds the next step as soon as it is done with this one, while others still compute. */
static void run_steps(run *r, int index)
{
    tdi_runtime *runtime = r->runtime;
    int worker = index / runtime->division.threads, thread = index % runtime->division.threads;
    int first = tdi_worker_first_shard(runtime, worker), count = tdi_worker_first_shard(runtime, worker + 1) - first;
    feed(r, worker, thread, r->begin);
    meet(r, worker, thread, r->begin);
    for (int64_t i = r->begin; i < r->until && i < atomic_load(&r->end); i++) {
        tdi_plan *const *plans = i + 1 == r->job->steps ? r->last : r->full;
        set_control(r, &runtime->workers[worker].control[thread], step_of(r, i));
        tdi_inputs_set(runtime, r->job, step_of(r, i), worker, thread, plans);
        if (!run_plans(r, plans + first, count, worker, thread, i))
            return;
        if (r->job->take)
            take(r, worker, thread, step_of(r, i), plans);
        if (thread == 0)
            account(r, first, count, i);
        feed(r, worker, thread, i + 1);
        meet(r, worker, thread, i);
        end_if_out_of_memory(r, i);
    }
}

static void feed_all(run *r, int64_t i)
{
    const tdi_division *d = &r->runtime->division;
    for (int thread = 0; thread < d->workers * d->threads; thread++)
        feed(r, thread / d->threads, thread % d->threads, i);
}

static void begin_all(run *r, int64_t i, tdi_plan *const *plans)
{
    tdi_runtime *runtime = r->runtime;
    for (int worker = 0; worker < runtime->division.workers; worker++)
        for (int thread = 0; thread < runtime->division.threads; thread++) {
            set_control(r, &runtime->workers[worker].control[thread], step_of(r, i));
            tdi_inputs_set(runtime, r->job, step_of(r, i), worker, thread, plans);
        }
}

static void end_all(run *r, int64_t i, tdi_plan *const *plans)
{
    tdi_error error;
    tdi_error_init(&error);
    for (int worker = 0; worker < r->runtime->division.workers; worker++) {
        int first = tdi_worker_first_shard(r->runtime, worker);
        bool made = !atomic_load(out_of_memory(r, i));
        if (r->job->take && made && take_outputs(r, worker, step_of(r, i), plans, &error) != TD_OK)
            fail_before(r, i + 1, &error);
        account(r, first, tdi_worker_first_shard(r->runtime, worker + 1) - first, i);
    }
}

/* The same as run_steps on all threads, by the caller's. */
static void run_steps_in_turn(run *r)
{
    const tdi_division *d = &r->runtime->division;
    tdi_mode_state *mode = &r->runtime->modes[r->job->mode];
    feed_all(r, r->begin);
    for (int64_t i = r->begin; i < r->until && i < atomic_load(&r->end); i++) {
        tdi_plan *const *plans = i + 1 == r->job->steps ? r->last : r->full;
        begin_all(r, i, plans);
        uint32_t step = mode->steps + (uint32_t)i + 1;
        if (tdi_plans_run_in_turn(plans + d->own_first, tdi_own_shards(d), d->workers, step, mode->communicators) !=
            TD_OK) {
            break_off(r, 0, i);
            return;
        }
        end_all(r, i, plans);
        end_if_out_of_memory(r, i);
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
    /* A job that resumes at the last step prepares full steps too: they decide how all steps are run. */
    bool resumed_at_last = job->first_step && r->last_rows < job->batch;
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
    int first = r->runtime->division.own_first;
    bool one = tdi_plan_sharing(r->last[first]) == 1 && (r->job->steps == 1 || tdi_plan_sharing(r->full[first]) == 1);
    return r->runtime->division.shards == 1 && r->runtime->modes[r->job->mode].program.collectives.count == 0 && one;
}

static td_status outcome(const run *r, tdi_error *error)
{
    if (r->done && atomic_load(out_of_memory(r, r->done - 1)))
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

/* The governor compares times, which mean nothing unless waiting threads have cores of their own. A trace is to show
 * all threads at work. */
static bool is_governed(const run *r)
{
    const tdi_runtime *runtime = r->runtime;
    return !r->alone && !r->noted && tdi_runtime_threads(runtime) > 1 && tdi_runtime_spins(runtime);
}

/* A last step of fewer rows counts as a part of one. */
static double steps_since(const run *r, int64_t before)
{
    double missing = r->done == r->job->steps ? 1 - (double)r->last_rows / (double)r->job->batch : 0;
    return (double)(r->done - before) - missing;
}

static void run_stretch(run *r)
{
    if (r->alone || r->in_turn)
        tdi_run_alone(run_thread, r);
    else
        tdi_team_run(r->runtime->team, tdi_runtime_threads(r->runtime), run_thread, r);
}

/* Whether one thread had better make this call of a single step, because the others would have to be woken. */
static bool is_made_alone(const run *r, bool asleep)
{
    tdi_short_calls *calls = &r->runtime->modes[r->job->mode].calls;
    return asleep && r->job->steps == 1 && !r->runtime->is_trial && tdi_short_calls_alone(calls, r->last_rows);
}

/* The job in stretches, each by all threads or by one, as the governor says. */
static void run_governed(run *r)
{
    tdi_idle_threads *idle = &r->runtime->idle;
    tdi_mode_state *mode = &r->runtime->modes[r->job->mode];
    for (r->begin = 0; r->begin < atomic_load(&r->end); r->begin = r->until) {
        int64_t left = r->job->steps - r->begin, steps = tdi_governor_steps(&mode->governor), before = r->done;
        double begun = tdi_seconds();
        bool asleep = tdi_idle_threads_begin(idle, begun), paused = idle->busy <= 0;
        bool in_turn = tdi_governor_in_turn(&mode->governor), alone = !in_turn && is_made_alone(r, asleep);
        r->until = r->begin + (steps < left ? steps : left);
        r->in_turn = in_turn || alone;
        run_stretch(r);
        double ended = tdi_seconds();
        tdi_idle_threads_end(idle, begun, ended);
        if (paused && !in_turn && r->job->steps == 1)
            tdi_short_calls_note(&mode->calls, alone, ended - begun);
        if (!alone)
            tdi_governor_note(&mode->governor, steps_since(r, before), ended - begun);
    }
}

static void run_all(run *r)
{
    r->until = r->job->steps;
    if (is_governed(r))
        run_governed(r);
    else
        run_stretch(r);
}

/* ---- the other processes ---- */

static bool moves_something(const tdi_collectives *collectives)
{
    for (int id = 0; id < collectives->count; id++)
        if (collectives->at[id].kind != TDI_MEET)
            return true;
    return false;
}

/* The job's outcome, which is the same in all processes: what fails in one breaks the others' steps. */
static td_status agree(run *r, td_status status, tdi_error *error)
{
    bool stopped = r->done < r->job->steps || (r->job->stop && atomic_load(r->job->stop));
    if (status == TD_OK || status == TD_STOPPED)
        return tdi_share_results(r->runtime, r->job, stopped, error);
    tdi_exchange_break(r->exchange, error);
    return status;
}

static td_status run_job(run *r, tdi_error *error)
{
    tdi_runtime *runtime = r->runtime;
    tdi_job *job = (tdi_job *)r->job;
    TDI_TRY(prepare(r, error));
    r->moves = r->exchange && moves_something(&runtime->modes[job->mode].program.collectives);
    r->alone = runs_alone(r);
    bool consumes = tdi_trains(job->mode);
    runtime->fresh_gradients = runtime->fresh_gradients && !consumes;
    if (r->exchange && r->noted)
        TDI_TRY(tdi_exchange_trace(r->exchange, runtime->model->context->trace, error));
    run_all(r);
    if (r->exchange && r->noted)
        TDI_TRY(tdi_exchange_trace(r->exchange, NULL, error));
    if (consumes)
        tdi_model_state_write_values(runtime->state);
    job->done = r->done;
    job->waited = r->waited;
    runtime->modes[job->mode].steps += (uint32_t)r->done;
    if (atomic_load(&r->broken))
        tdi_runtime_disconnect(runtime, job->mode);
    if (job->mode == TDI_TRAIN && r->done)
        runtime->state->last_rate = rate_of(r, r->done - 1);
    if (job->mode == TDI_TRAIN || job->mode == TDI_APPLY)
        runtime->state->iteration += r->done;
    TDI_TRY(outcome(r, error));
    runtime->fresh_gradients = runtime->fresh_gradients || job->mode == TDI_GRADIENTS;
    return TD_OK;
}

td_status tdi_runtime_run(tdi_runtime *runtime, tdi_job *job, tdi_error *error)
{
    tdi_plan *full[TDI_MAX_SHARDS], *last[TDI_MAX_SHARDS];
    tdi_error failure;
    run r = {.runtime = runtime,
             .job = job,
             .full = full,
             .last = last,
             .end = job->steps,
             .error = &failure,
             .exchange = runtime->strategy->exchange};
    tdi_error_init(&failure);
    atomic_store_explicit(&runtime->out_of_memory[0], false, memory_order_relaxed); /* no thread is at work yet */
    atomic_store_explicit(&runtime->out_of_memory[1], false, memory_order_relaxed);
    job->done = 0;
    job->waited = 0;
    td_status status = run_job(&r, error);
    return r.exchange ? agree(&r, status, error) : status;
}

/* ---- results ---- */

/* The shards' accumulators are added up in their order, never in that in which threads end. */
void tdi_runtime_logs(const tdi_runtime *runtime, tdi_mode mode, const char *prefix, td_logs *logs)
{
    const tdi_metric_slots *slots = &runtime->modes[mode].program.slots;
    double *sums = runtime->modes[mode].sums;
    if (!sums)
        return;
    memset(sums, 0, tdi_metric_bytes(slots));
    for (int p = 0; p < runtime->division.shards; p++)
        for (int i = 0; i < 2 * slots->count; i++)
            sums[i] += runtime->shards[p].metrics[mode][i];
    tdi_program_logs(runtime->model, slots, sums, prefix, logs);
}

void tdi_runtime_reset_sums(tdi_runtime *runtime, tdi_mode mode)
{
    for (int p = 0; p < runtime->division.shards; p++)
        if (runtime->shards[p].metrics[mode])
            memset(runtime->shards[p].metrics[mode], 0, tdi_metric_bytes(&runtime->modes[mode].program.slots));
}

void tdi_runtime_confusion(const tdi_runtime *runtime, int output, double *counts)
{
    const tdi_metric_slots *slots = &runtime->modes[TDI_CONFUSION].program.slots;
    int cells = slots->classes[output] * slots->classes[output];
    memset(counts, 0, (size_t)cells * sizeof *counts);
    for (int p = 0; p < runtime->division.shards; p++)
        for (int i = 0; i < cells; i++)
            counts[i] += runtime->shards[p].metrics[TDI_CONFUSION][2 * slots->confusion[output] + i];
}

int tdi_runtime_shards(const tdi_runtime *runtime)
{
    return runtime->division.shards;
}

int tdi_runtime_sums(const tdi_runtime *runtime, tdi_mode mode)
{
    return runtime->shards[0].metrics[mode] ? runtime->modes[mode].program.slots.count : 0;
}

void tdi_runtime_get_sums(const tdi_runtime *runtime, tdi_mode mode, double *sums)
{
    int64_t each = 2 * (int64_t)tdi_runtime_sums(runtime, mode);
    for (int p = 0; p < runtime->division.shards && each; p++)
        memcpy(sums + p * each, runtime->shards[p].metrics[mode], (size_t)each * sizeof *sums);
}

td_status tdi_runtime_put_sums(tdi_runtime *runtime, tdi_mode mode, int shards, int count, const double *sums,
                               tdi_error *error)
{
    TDI_TRY(tdi_need_sums(runtime, mode, error));
    tdi_runtime_reset_sums(runtime, mode);
    if (count && count != tdi_runtime_sums(runtime, mode))
        return tdi_fail(error, TD_BAD_FILE, "the backup has %d sums of losses and metrics; %d were expected", count,
                        tdi_runtime_sums(runtime, mode));
    for (int p = 0; p < shards; p++) {
        double *to = runtime->shards[shards == runtime->division.shards ? p : 0].metrics[mode];
        for (int i = 0; i < 2 * count; i++)
            to[i] += sums[(int64_t)p * 2 * count + i];
    }
    return TD_OK;
}

bool tdi_runtime_has_gradients(const tdi_runtime *runtime)
{
    return runtime->fresh_gradients;
}

float *tdi_runtime_gradient(const tdi_runtime *runtime, const tdi_variable *variable)
{
    float *gradients = tdi_reduced_gradients(runtime);
    return gradients ? gradients + variable->offset : NULL;
}
