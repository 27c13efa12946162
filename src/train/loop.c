/* loop.c - passes over a source: an epoch is one run of all its steps, but for a terminal's progress line. */
#include "train/loop.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/trace.h"
#include "train/prefetch.h"

/* Between two looks at the progress line of a terminal: short for the eye, long against the cost of a run. */
static const double CHUNK_SECONDS = 0.05;

static void show(const tdi_pass *pass, tdi_runtime *runtime)
{
    td_logs logs = {0};
    if (!pass->progress)
        return;
    if (pass->job.mode != TDI_PREDICT)
        tdi_runtime_logs(runtime, pass->job.mode, "", &logs);
    tdi_progress_update(pass->progress, pass->done, &logs);
}

static bool is_open(const tdi_pass *pass)
{
    return pass->samples == TDI_SAMPLES_UNKNOWN;
}

td_status tdi_pass_runtime(const tdi_pass *pass, tdi_runtime **runtime, tdi_error *error)
{
    int64_t rows = is_open(pass) || pass->batch < pass->samples ? pass->batch : pass->samples;
    return tdi_runtime_for(pass->model, pass->job.mode, rows, runtime, error);
}

static int64_t chunk_steps(const tdi_pass *pass)
{
    int64_t left = pass->steps - pass->done, wanted = 1;
    if (pass->model->compiled.steps_per_execution)
        wanted = pass->model->compiled.steps_per_execution;
    else if (!pass->progress || !pass->progress->terminal)
        wanted = left;
    else if (pass->done && pass->seconds > 0)
        wanted = (int64_t)(CHUNK_SECONDS * (double)pass->done / pass->seconds) + 1;
    wanted = wanted < left ? wanted : left;
    return pass->training ? tdi_callbacks_stride(pass->training, wanted) : wanted;
}

static td_status call_back(tdi_pass *pass, tdi_runtime *runtime, tdi_error *error)
{
    td_logs logs = {0};
    if (!pass->training || !tdi_callbacks_due(pass->training))
        return TD_OK;
    tdi_runtime_logs(runtime, pass->job.mode, "", &logs);
    return tdi_callbacks_batch_end(pass->training, &logs, error);
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

/* The last step's batch says whether it is the data or the learning rate. What a stream gave is gone. */
static void blame(const tdi_pass *pass, tdi_error *error)
{
    int64_t step = pass->done - 1, left = pass->samples - step * pass->batch;
    int64_t count = left < pass->batch ? left : pass->batch;
    tdi_source *source = pass->source;
    if (source->sequential || step < 0)
        return;
    *error = (tdi_error){0};
    for (int column = 0; column < source->n_x + source->n_y; column++) {
        int64_t row = find_not_finite(source, column, pass->order + step * pass->batch, count, pass->job.stop);
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

static td_status run_job(tdi_pass *pass, tdi_runtime *runtime, int64_t steps, int64_t samples, tdi_error *error)
{
    tdi_job job = pass->job;
    job.first_step = pass->done;
    job.batch = pass->batch;
    job.steps = steps;
    job.samples = samples;
    job.timed = true;
    double began = tdi_seconds();
    td_status status = tdi_runtime_run(runtime, &job, error);
    pass->seconds += tdi_seconds() - began;
    pass->seconds_waiting += job.waited;
    pass->done += job.done;
    if (pass->training) {
        pass->training->steps = pass->done;
        pass->training->batches += job.done;
        pass->training->seconds = pass->seconds;
        pass->training->seconds_waiting = pass->seconds_waiting;
    }
    if (status != TD_NOT_FINITE || !pass->training)
        return status;
    blame(pass, error);
    return tdi_callbacks_not_finite(pass->training, error);
}

static td_status run_chunks(tdi_pass *pass, tdi_runtime *runtime, tdi_error *error)
{
    while (pass->done < pass->steps && !(pass->training && pass->training->stop)) {
        if (atomic_load(pass->job.stop))
            return TD_STOPPED;
        int64_t steps = chunk_steps(pass), left = pass->samples - pass->done * pass->batch;
        TDI_TRY(run_job(pass, runtime, steps, steps * pass->batch < left ? steps * pass->batch : left, error));
        show(pass, runtime);
        TDI_TRY(call_back(pass, runtime, error));
    }
    return TD_OK;
}

/* What is made is run, until no more comes. */
static td_status run_to_end(tdi_pass *pass, tdi_runtime *runtime, tdi_prefetch *prefetch, tdi_error *error)
{
    int64_t steps, samples;
    for (pass->samples = 0;; pass->samples += samples) {
        TDI_TRY(tdi_check_stop(pass->job.stop, error));
        TDI_TRY(tdi_prefetch_look(prefetch, pass->done, &steps, &samples, error));
        if (!steps)
            break;
        tdi_samples_words words = {pass->source->name, "samples", "steps (validation_steps in td_fit)"};
        TDI_TRY(tdi_model_check_samples(pass->model, pass->samples + samples, pass->batch, &words, error));
        TDI_TRY(run_job(pass, runtime, steps, samples, error));
        show(pass, runtime);
    }
    if (pass->samples)
        return TD_OK;
    return tdi_fail(
        error, TD_INVALID_ARGUMENT,
        "%s: the stream ended before its first sample; one that is passed over more than once needs .restart",
        pass->source->name);
}

/* Rows in memory are brought together fastest by the lanes that read them; others have to be made. */
static bool makes_rows(const tdi_pass *pass)
{
    int columns = tdi_input_slots(pass->model, pass->job.mode);
    for (int i = 0; i < columns; i++)
        if (!pass->source->columns[i].values)
            return true;
    return false;
}

static td_status run_ahead(tdi_pass *pass, tdi_runtime *runtime, tdi_error *error)
{
    tdi_prefetch *prefetch;
    TDI_TRY(tdi_prefetch_start(&(tdi_prefetch_spec){.from = pass->job.feed,
                                                    .model = pass->model,
                                                    .mode = pass->job.mode,
                                                    .first_step = pass->done,
                                                    .steps = pass->steps,
                                                    .batch = pass->batch,
                                                    .samples = pass->samples,
                                                    .threads = pass->input_threads,
                                                    .one_by_one = pass->source->on_demand,
                                                    .stop = pass->job.stop},
                               &prefetch, error));
    pass->job.feed = tdi_prefetch_feed(prefetch);
    td_status status = is_open(pass) ? run_to_end(pass, runtime, prefetch, error) : run_chunks(pass, runtime, error);
    tdi_prefetch_stop(prefetch);
    return status;
}

/* A single step has nothing to be ahead of: its rows are brought together by the lanes, unless each may take long. */
static td_status run_pass(tdi_pass *pass, tdi_runtime *runtime, tdi_error *error)
{
    tdi_source_feed feed = {.source = pass->source,
                            .order = pass->order,
                            .batch = pass->batch,
                            .n_inputs = pass->model->architecture->n_inputs,
                            .in_order = pass->in_order,
                            .convert_bytes = tdi_runtime_device(runtime)->convert_bytes};
    pass->job.feed = tdi_feed_source(&feed);
    bool several = pass->steps - pass->done > (pass->source->on_demand ? 0 : 1), ahead = several && makes_rows(pass);
    return ahead || is_open(pass) ? run_ahead(pass, runtime, error) : run_chunks(pass, runtime, error);
}

td_status tdi_pass_run(tdi_pass *pass, tdi_error *error)
{
    tdi_runtime *runtime;
    pass->job.stop = &pass->model->context->stop;
    tdi_source_run facts = {.order = pass->order,
                            .first = pass->done * pass->batch,
                            .samples = pass->samples,
                            .batch = pass->batch,
                            .seed = pass->job.seed,
                            .epoch = pass->epoch,
                            .training = pass->job.mode == TDI_TRAIN,
                            .columns = tdi_input_slots(pass->model, pass->job.mode),
                            .stop = pass->job.stop};
    TDI_TRY(tdi_pass_runtime(pass, &runtime, error));
    TDI_TRY(tdi_source_begin(pass->source, &facts, error));
    td_status status = run_pass(pass, runtime, error);
    tdi_source_end(pass->source);
    return status;
}

td_status tdi_pass_run_in_order(tdi_pass *pass, FILE *out, tdi_error *error)
{
    size_t samples = is_open(pass) ? 0 : (size_t)pass->samples;
    int64_t *order = malloc(samples * sizeof *order + 1);
    if (!order)
        return tdi_no_memory(error);
    tdi_epoch_order(order, (int64_t)samples, false, 0, 0);
    pass->order = is_open(pass) ? NULL : order;
    pass->in_order = true;
    pass->steps = is_open(pass) ? TDI_SAMPLES_UNKNOWN : (pass->samples + pass->batch - 1) / pass->batch;
    tdi_progress_begin(pass->progress, out, "", pass->steps);
    td_status status = tdi_pass_run(pass, error);
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

td_status tdi_data_source(td_data *data, const char *what, tdi_source **source, tdi_error *error)
{
    if (!data)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: no data was given", what);
    if (!data->source)
        return tdi_fail(error, data->error.status, "%s: %s", what, data->error.message);
    *source = data->source;
    return TD_OK;
}

td_status tdi_report(td_model *model, const td_location *at, td_status status, const tdi_error *error)
{
    if (!model || status == TD_OK || status == TD_STOPPED)
        return status;
    if (at && at->file)
        return tdi_fail(&model->context->error, status, "%s:%d: %s", at->file, at->line, error->message);
    return tdi_fail(&model->context->error, status, "%s", error->message);
}

td_status tdi_check_compiled(const td_model *model, bool to_train, tdi_error *error)
{
    if (!model->compiled.is_set)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "model \"%s\" has no loss; compile it first",
                        model->architecture->name);
    if (to_train && model->state->optimizer.kind == TD_OPTIMIZER_NONE)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "model \"%s\" has no optimizer; compile it with one",
                        model->architecture->name);
    return TD_OK;
}

#define MOST_ROWS INT64_C(0x7fffffff) /* of a batch: offsets of its elements can be reckoned */

td_status tdi_check_batch_size(td_guard guard, const char *function, int64_t batch_size, tdi_error *error)
{
    if (guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: an argument too many; give options by name", function);
    if (batch_size < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "batch_size: %lld; at least 1 was expected", (long long)batch_size);
    return tdi_check_rows("batch_size", batch_size, error);
}

td_status tdi_check_rows(const char *what, int64_t rows, tdi_error *error)
{
    if (rows <= MOST_ROWS)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: %lld; at most %lld was expected", what, (long long)rows,
                    (long long)MOST_ROWS);
}

td_status tdi_evaluate_source(td_model *model, tdi_source *source, tdi_mode mode, int64_t epoch, int64_t *samples,
                              int64_t batch, const char *prefix, FILE *out, td_logs *logs, tdi_error *error)
{
    tdi_runtime *runtime;
    tdi_progress progress;
    tdi_pass pass = {.model = model,
                     .source = source,
                     .samples = *samples,
                     .batch = batch,
                     .epoch = epoch,
                     .progress = &progress,
                     .job = {.mode = mode}};
    TDI_TRY(tdi_pass_runtime(&pass, &runtime, error));
    tdi_runtime_reset_sums(runtime, mode);
    TDI_TRY(tdi_pass_run_in_order(&pass, out, error));
    *samples = pass.samples;
    tdi_runtime_logs(runtime, mode, prefix, logs);
    tdi_progress_end(&progress, pass.done, logs);
    return TD_OK;
}
