/* epoch_run.c - running the steps of an epoch.
 *
 * All steps are one job, so that the devices need not wait for the host. The job is cut into chunks only where the host
 * has something to do in between: a progress line that a terminal shows, callbacks that want a step's end, a user's
 * steps_per_execution. Rows that lie in memory are brought together by the devices' own threads; rows that have to be
 * read, decoded or computed are prefetched by others (batch_prefetch.c). */
#include "train/epoch_run.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/trace.h"
#include "strategy/strategy.h"
#include "train/batch_prefetch.h"
#include "train/group.h"

/* Time between two looks at the progress line of a terminal: short for the eye, long against the cost of a job. */
static const double CHUNK_SECONDS = 0.05;

static void show(const tdi_epoch_run *run, tdi_runtime *runtime)
{
    td_logs logs = {0};
    if (!run->progress)
        return;
    if (run->job.mode != TDI_PREDICT)
        tdi_runtime_logs(runtime, run->job.mode, "", &logs);
    tdi_progress_update(run->progress, run->done, &logs);
}

static bool is_open(const tdi_epoch_run *run)
{
    return run->samples == TDI_SAMPLES_UNKNOWN;
}

td_status tdi_epoch_runtime(const tdi_epoch_run *run, tdi_runtime **runtime, tdi_error *error)
{
    int64_t rows = is_open(run) || run->batch < run->samples ? run->batch : run->samples;
    return tdi_runtime_for(run->model, run->job.mode, rows, runtime, error);
}

static int64_t chunk_steps(const tdi_epoch_run *run)
{
    int64_t left = run->steps - run->done, wanted = 1;
    if (run->model->compiled.steps_per_execution)
        wanted = run->model->compiled.steps_per_execution;
    else if (!run->progress || !run->progress->terminal)
        wanted = left;
    else if (run->done && run->seconds > 0)
        wanted = (int64_t)(CHUNK_SECONDS * (double)run->done / run->seconds) + 1;
    wanted = wanted < left ? wanted : left;
    return run->training ? tdi_callbacks_stride(run->training, wanted) : wanted;
}

static td_status call_back(tdi_epoch_run *run, tdi_runtime *runtime, tdi_error *error)
{
    td_logs logs = {0};
    if (!run->training || !tdi_callbacks_due(run->training))
        return TD_OK;
    tdi_runtime_logs(runtime, run->job.mode, "", &logs);
    return tdi_callbacks_batch_end(run->training, &logs, error);
}

static int64_t first_not_finite(const float *values, int64_t count)
{
    int64_t at = 0;
    while (at < count && isfinite(values[at]))
        at++;
    return at;
}

/* The first of the rows that holds NaN or infinity in the column; -1: none does, or they cannot be read again. */
static int64_t find_not_finite(tdi_source *source, int column, const int64_t *rows, int64_t count,
                               const atomic_int *stop)
{
    int64_t elements = tdi_sample_elements(&source->columns[column].shape), found = -1;
    float *sample = malloc((size_t)elements * sizeof *sample + 1);
    tdi_error unreadable = {0};
    for (int64_t i = 0; sample && i < count && found < 0 && tdi_check_stop(stop, &unreadable) == TD_OK; i++)
        if (source->gather(source, column, rows + i, 1, sample, TD_FLOAT32, &unreadable) == TD_OK &&
            first_not_finite(sample, elements) < elements)
            found = rows[i];
    free(sample);
    return found;
}

/* Says of a loss that is not finite whether the last step's data are at fault, or the learning rate. A stream's data
 * cannot be read again, and nothing is said. */
static void blame(const tdi_epoch_run *run, tdi_error *error)
{
    int64_t step = run->done - 1, left = run->samples - step * run->batch;
    int64_t count = left < run->batch ? left : run->batch;
    tdi_source *source = run->source;
    if (source->sequential || run->own.shards || step < 0)
        return;
    *error = (tdi_error){0};
    for (int column = 0; column < tdi_source_columns(source); column++) {
        int64_t row = find_not_finite(source, column, run->order + step * run->batch, count, run->job.stop);
        if (row < 0)
            continue;
        const tdi_source *origin = tdi_source_origin(source, &row);
        tdi_fail(error, TD_NOT_FINITE,
                 "the loss is not a finite number at step %lld: sample %lld of %s, counted from 0, holds NaN, "
                 "infinity or a number beyond float32 in %s",
                 (long long)step, (long long)row, origin->name, source->columns[column].name);
        return;
    }
    tdi_fail(error, TD_NOT_FINITE,
             "the loss is not a finite number at step %lld, though the data of its batch are; lower the learning rate, "
             "or clip the gradients",
             (long long)step);
}

static td_status run_job(tdi_epoch_run *run, tdi_runtime *runtime, int64_t steps, int64_t samples, tdi_error *error)
{
    tdi_job job = run->job;
    job.first_step = run->done;
    job.batch = run->batch;
    job.steps = steps;
    job.samples = samples;
    job.timed = true;
    double began = tdi_seconds();
    td_status status = tdi_runtime_run(runtime, &job, error);
    run->seconds += tdi_seconds() - began;
    run->seconds_waiting += job.waited;
    run->done += job.done;
    if (run->training) {
        run->training->steps = run->done;
        run->training->batches += job.done;
        run->training->seconds = run->seconds;
        run->training->seconds_waiting = run->seconds_waiting;
    }
    if (status != TD_NOT_FINITE || !run->training)
        return status;
    blame(run, error);
    return tdi_callbacks_not_finite(run->training, error);
}

static td_status run_chunks(tdi_epoch_run *run, tdi_runtime *runtime, tdi_error *error)
{
    while (run->done < run->steps && !(run->training && run->training->stop)) {
        if (!tdi_in_group(run->model) && atomic_load(run->job.stop))
            return TD_STOPPED;
        int64_t steps = chunk_steps(run), left = run->samples - run->done * run->batch;
        TDI_TRY(tdi_group_agree_on_steps(run->model, run->training, &steps, error));
        if (run->training && run->training->stop)
            break;
        TDI_TRY(run_job(run, runtime, steps, steps * run->batch < left ? steps * run->batch : left, error));
        show(run, runtime);
        TDI_TRY(call_back(run, runtime, error));
    }
    return TD_OK;
}

/* Runs the steps of a stream as its rows become ready, until there are none. */
static td_status run_to_end(tdi_epoch_run *run, tdi_runtime *runtime, tdi_prefetch *prefetch, tdi_error *error)
{
    int64_t steps, samples;
    for (run->samples = 0;; run->samples += samples) {
        if (!tdi_in_group(run->model)) /* in a group all stop behind the same job */
            TDI_TRY(tdi_check_stop(run->job.stop, error));
        TDI_TRY(tdi_prefetch_look(prefetch, run->done, &steps, &samples, error));
        TDI_TRY(tdi_group_agree_on_steps(run->model, NULL, &steps, error));
        TDI_TRY(tdi_group_agree_on_steps(run->model, NULL, &samples, error));
        if (!steps)
            break;
        tdi_samples_words words = {run->source->name, "samples", "steps (validation_steps in td_fit)"};
        TDI_TRY(tdi_model_check_samples(run->model, run->samples + samples, run->batch, &words, error));
        TDI_TRY(run_job(run, runtime, steps, samples, error));
        show(run, runtime);
    }
    if (run->samples)
        return TD_OK;
    return tdi_fail(
        error, TD_INVALID_ARGUMENT,
        "%s: the stream ended before its first sample; one that is passed over more than once needs .restart",
        run->source->name);
}

/* Whether rows have to be read, decoded or computed. Those in memory are brought together fastest by the threads that
 * read them. */
static bool makes_rows(const tdi_epoch_run *run)
{
    int columns = tdi_columns_read(run->model, run->source, run->job.mode);
    for (int i = 0; i < columns; i++)
        if (!run->source->columns[i].values)
            return true;
    return false;
}

static td_status run_prefetched(tdi_epoch_run *run, tdi_runtime *runtime, tdi_error *error)
{
    tdi_prefetch *prefetch;
    tdi_prefetch_spec spec = {.from = run->job.feed,
                              .model = run->model,
                              .mode = run->job.mode,
                              .first_step = run->done,
                              .steps = run->steps,
                              .batch = run->batch,
                              .samples = run->samples,
                              .threads = run->input_threads,
                              .one_by_one = run->source->on_demand,
                              .stop = run->job.stop};
    if (!run->source->sequential ||
        run->own.shards) { /* a stream's rows come one behind the other, whoever they are for */
        spec.shards = tdi_runtime_shards(runtime);
        tdi_runtime_own_shards(runtime, &spec.first_shard, &spec.end_shard);
    }
    TDI_TRY(tdi_prefetch_start(&spec, &prefetch, error));
    run->job.feed = tdi_prefetch_feed(prefetch);
    td_status status = is_open(run) ? run_to_end(run, runtime, prefetch, error) : run_chunks(run, runtime, error);
    tdi_prefetch_stop(prefetch);
    return status;
}

/* A single step gives nothing to prefetch behind: its rows are brought together by the devices' threads, unless each
 * row may take long. */
static td_status run_feed(tdi_epoch_run *run, tdi_runtime *runtime, tdi_error *error)
{
    tdi_source_feed feed = {.source = run->source,
                            .order = run->order,
                            .batch = run->batch,
                            .model = run->model,
                            .own = run->own,
                            .in_order = run->in_order,
                            .convert_bytes = tdi_runtime_device(runtime)->convert_bytes};
    run->job.feed = tdi_feed_source(&feed);
    bool each_in_turn =
        run->source->on_demand || (run->source->sequential && tdi_in_group(run->model) && !run->own.shards);
    bool several = run->steps - run->done > (each_in_turn ? 0 : 1), ahead = several && makes_rows(run);
    return ahead || is_open(run) ? run_prefetched(run, runtime, error) : run_chunks(run, runtime, error);
}

td_status tdi_run_epoch(tdi_epoch_run *run, tdi_error *error)
{
    tdi_runtime *runtime;
    int64_t each;
    (void)tdi_own_rows_of(&run->own, run->batch, &each);
    run->job.stop = &run->model->context->stop;
    tdi_source_run facts = {.order = run->order,
                            .first = run->done * each,
                            .samples = run->own.shards ? run->steps * each : run->samples,
                            .batch = each,
                            .seed = run->job.seed,
                            .epoch = run->epoch,
                            .training = run->job.mode == TDI_TRAIN,
                            .columns = tdi_columns_read(run->model, run->source, run->job.mode),
                            .stop = run->job.stop};
    TDI_TRY(tdi_epoch_runtime(run, &runtime, error));
    TDI_TRY(tdi_source_begin(run->source, &facts, error));
    td_status status = run_feed(run, runtime, error);
    tdi_source_end(run->source);
    return status;
}

td_status tdi_run_epoch_in_order(tdi_epoch_run *run, FILE *out, tdi_error *error)
{
    size_t samples = is_open(run) ? 0 : (size_t)run->samples;
    int64_t *order = malloc(samples * sizeof *order + 1);
    if (!order)
        return tdi_no_memory(error);
    tdi_epoch_order(order, (int64_t)samples, false, 0, 0);
    run->order = is_open(run) ? NULL : order;
    run->in_order = true;
    run->steps = is_open(run) ? TDI_SAMPLES_UNKNOWN : (run->samples + run->batch - 1) / run->batch;
    tdi_progress_begin(run->progress, out, "", run->steps);
    td_status status = tdi_run_epoch(run, error);
    free(order);
    return status;
}

td_status tdi_samples_of_steps(const tdi_source *source, const char *what, int64_t steps, int64_t batch,
                               int64_t *samples, tdi_error *error)
{
    int64_t all = source->samples, wanted;
    *samples = all;
    if (!steps)
        return TD_OK;
    if (steps < 0 || __builtin_mul_overflow(steps, batch, &wanted))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: %lld; a number of batches was expected", what,
                        (long long)steps);
    if (all != TDI_SAMPLES_UNKNOWN && wanted - batch >= all)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: %lld, but the %lld samples of %s make %lld batches of %lld",
                        what, (long long)steps, (long long)all, source->name, (long long)((all + batch - 1) / batch),
                        (long long)batch);
    *samples = all == TDI_SAMPLES_UNKNOWN || wanted < all ? wanted : all;
    return TD_OK;
}

void tdi_note_host(const td_model *model, const char *what, double began, int64_t number)
{
    tdi_trace *trace = model->context->trace;
    if (trace)
        tdi_track_note(tdi_trace_track(trace, "td_fit"), tdi_trace_label(trace, what, "host", ""), began, tdi_seconds(),
                       number);
}

td_status tdi_evaluate_source(td_model *model, tdi_source *source, tdi_mode mode, int64_t epoch, int64_t *samples,
                              int64_t batch, const char *prefix, FILE *out, td_logs *logs, tdi_error *error)
{
    tdi_runtime *runtime;
    tdi_progress progress;
    tdi_epoch_run run = {.model = model,
                         .source = source,
                         .samples = *samples,
                         .batch = batch,
                         .epoch = epoch,
                         .progress = &progress,
                         .job = {.mode = mode}};
    TDI_TRY(tdi_epoch_runtime(&run, &runtime, error));
    tdi_runtime_reset_sums(runtime, mode);
    TDI_TRY(tdi_run_epoch_in_order(&run, out, error));
    *samples = run.samples;
    tdi_runtime_logs(runtime, mode, prefix, logs);
    tdi_progress_end(&progress, run.done, logs);
    return TD_OK;
}
