/* fit.c - td_fit: epochs over a source, with validation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "strategy/strategy.h"
#include "train/adapt_normalization.h"
#include "train/backup/backup.h"
#include "train/class_checks.h"
#include "train/epoch_run.h"
#include "train/group.h"
#include "train/weighting.h"

typedef struct fit {
    const td_fit_args *args;
    td_model *model;
    tdi_source *train, *validation;
    tdi_source *ranges[2]; /* made for validation_split */
    int64_t *drawn;        /* which samples these have, of data that stands class by class */
    int64_t *order;
    int64_t rows;                  /* of the data that an epoch is drawn from */
    int64_t batch, steps, samples; /* of an epoch */
    int64_t validation_samples;
    tdi_own_rows own; /* with auto_shard's FILE and OFF: of each batch, those that the data are for */
    int epochs;
    tdi_ramp ramp;           /* of the learning rate */
    td_callback **callbacks; /* those of args that this process calls; malloc'd */
    td_training training;
} fit;

static td_status check_arguments(const td_fit_args *args, tdi_error *error)
{
    if (args->guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_fit takes two arguments; give the rest by name");
    TDI_TRY(tdi_check_batch_size(0, "td_fit", args->batch_size, error));
    if (args->input_threads < 0 || args->input_threads > 1024)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "input_threads: %d; 1 to 1024, or 0 for as many as it takes, was expected",
                        args->input_threads);
    if (args->base_batch_size < 0 || args->warmup_epochs < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "base_batch_size and warmup_epochs cannot be negative");
    if (args->epochs < 0 || args->initial_epoch < 0 || args->steps_per_epoch < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "epochs, initial_epoch and steps_per_epoch cannot be negative");
    if (!(args->validation_split >= 0))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "validation_split: %g; a fraction between 0 and 1, or a count of samples, was expected",
                        args->validation_split);
    if (args->shuffle_buffer < 0 || (args->shuffle_buffer && args->shuffle == TD_NO))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "shuffle_buffer: %lld; a number of samples was expected, and shuffle not to be TD_NO",
                        (long long)args->shuffle_buffer);
    if (args->validation_steps && !args->validation && !(args->validation_split > 0))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "validation_steps: there is no validation data to take them from");
    if ((unsigned)args->auto_shard > TD_SHARD_OFF)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "auto_shard: %d is not one of the td_auto_shard values",
                        (int)args->auto_shard);
    if (args->auto_shard != TD_SHARD_DATA && args->model->compiled.shards && tdi_in_group(args->model))
        return tdi_fail(
            error, TD_INVALID_ARGUMENT,
            "auto_shard: which rows meet in a batch depends on the processes when each has data of its own, "
            "and shards promise bits that do not; leave one out");
    if (args->validation && args->validation_split > 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "give validation data or a validation_split, not both");
    return TD_OK;
}

/* The last samples of data that stands class by class would be of the last class alone, so a permutation is split, the
 * same in every run. Keras's image_dataset_from_directory shuffles its list of files before it splits them, too. */
static td_status split_at(fit *f, int64_t kept, tdi_error *error)
{
    int64_t all = f->train->samples;
    if (!f->train->by_class) {
        TDI_TRY(tdi_source_range(f->train, 0, kept, &f->ranges[0], error));
        return tdi_source_range(f->train, kept, all - kept, &f->ranges[1], error);
    }
    f->drawn = malloc((size_t)all * sizeof *f->drawn);
    if (!f->drawn)
        return tdi_no_memory(error);
    tdi_epoch_order(f->drawn, all, true, 0, 0);
    TDI_TRY(tdi_source_rows(f->train, f->drawn, kept, &f->ranges[0], error));
    return tdi_source_rows(f->train, f->drawn + kept, all - kept, &f->ranges[1], error);
}

/* Splits off the last samples, as Keras does; for a fraction f those from floor(n * (1 - f)) on. */
static td_status split(fit *f, tdi_error *error)
{
    double wanted = f->args->validation_split;
    int64_t all = f->train->samples;
    if (wanted == 0)
        return TD_OK;
    if (wanted >= 1 && wanted != floor(wanted))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "validation_split: %g; a count of samples must be whole", wanted);
    int64_t kept = wanted < 1             ? (int64_t)floor((double)all * (1 - wanted))
                   : wanted < (double)all ? all - (int64_t)wanted
                                          : 0;
    if (kept < 1 || kept >= all)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "validation_split: %g of %lld samples would leave nothing to %s",
                        wanted, (long long)all, kept < 1 ? "train on" : "validate with");
    TDI_TRY(split_at(f, kept, error));
    f->train = f->ranges[0];
    f->validation = f->ranges[1];
    return TD_OK;
}

/* An epoch of a stream without a known end is as long as steps_per_epoch says. */
static td_status plan_rows(fit *f, tdi_error *error)
{
    f->rows = f->train->samples;
    if (f->rows == TDI_SAMPLES_UNKNOWN && __builtin_mul_overflow(f->args->steps_per_epoch, f->batch, &f->rows))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "steps_per_epoch: %lld is too many",
                        (long long)f->args->steps_per_epoch);
    if (f->args->auto_shard != TD_SHARD_DATA && tdi_in_group(f->model)) {
        TDI_TRY(tdi_group_share_out(f->model, f->rows, f->batch, &f->own, &f->steps, error));
        f->samples = f->steps * f->batch;
        return TD_OK;
    }
    f->samples = f->rows;
    f->steps = (f->rows + f->batch - 1) / f->batch;
    if (f->args->drop_remainder != TD_YES)
        return TD_OK;
    f->steps = f->rows / f->batch;
    f->samples = f->steps * f->batch;
    if (f->steps)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "the %lld samples do not fill one batch of %lld, and only full ones are trained on "
                    "(drop_remainder); take a smaller batch size",
                    (long long)f->rows, (long long)f->batch);
}

static td_status plan_epochs(fit *f, tdi_error *error)
{
    const td_fit_args *args = f->args;
    f->batch = tdi_model_batch_size(f->model, args->batch_size);
    f->epochs = args->epochs ? args->epochs : 1;
    TDI_TRY(plan_rows(f, error));
    if (args->steps_per_epoch > f->steps)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "steps_per_epoch: %lld, but %lld samples make %lld batches of %lld",
                        (long long)args->steps_per_epoch, (long long)f->samples, (long long)f->steps,
                        (long long)f->batch);
    if (args->steps_per_epoch) {
        f->steps = args->steps_per_epoch;
        f->samples = f->steps * f->batch < f->samples ? f->steps * f->batch : f->samples;
    }
    if (f->validation)
        TDI_TRY(tdi_samples_of_steps(f->validation, "validation_steps", args->validation_steps, f->batch,
                                     &f->validation_samples, error));
    f->order = malloc((size_t)f->rows * sizeof *f->order);
    return f->order ? TD_OK : tdi_no_memory(error);
}

/* As in Keras, class weights do not weigh the validation. */
static td_status weigh_validation(fit *f, tdi_error *error)
{
    if (f->validation && tdi_weigh(f->model, false, f->validation, &(tdi_weights_wanted){0}, error) != TD_OK) {
        tdi_error_prefix(error, "validation data");
        return error->status;
    }
    return TD_OK;
}

static td_status weigh(fit *f, tdi_error *error)
{
    const tdi_weights_wanted wanted = {f->args->class_weight, f->args->balance_classes == TD_YES};
    TDI_TRY(tdi_weigh(f->model, true, f->train, &wanted, error));
    return weigh_validation(f, error);
}

static td_status open_data(fit *f, tdi_error *error)
{
    TDI_TRY(tdi_data_source(f->args->data, "training data", &f->train, error));
    bool split_off = f->args->validation_split > 0;
    if (!f->args->steps_per_epoch || split_off)
        TDI_TRY(tdi_source_count(f->train, split_off ? "" : " or steps_per_epoch", &f->model->context->stop, error));
    TDI_TRY(tdi_check_data(f->model, f->train, true, error));
    TDI_TRY(tdi_check_classes(f->model, f->train, error));
    tdi_warn_of_few_classes(f->model, f->train);
    TDI_TRY(split(f, error));
    if (f->args->validation) {
        TDI_TRY(tdi_data_source(f->args->validation, "validation data", &f->validation, error));
        TDI_TRY(tdi_check_data(f->model, f->validation, true, error));
        TDI_TRY(tdi_check_same_classes(f->train, f->validation, error));
    }
    TDI_TRY(weigh(f, error));
    return f->validation ? tdi_check_logs(f->model, true, error) : TD_OK;
}

/* Checks before the first step what Keras finds out at the last. */
static td_status check_states(const fit *f, tdi_error *error)
{
    tdi_samples_words train = {f->train->name, "samples", "drop_remainder (--drop-remainder)"};
    TDI_TRY(tdi_model_check_samples(f->model, f->samples, f->batch, &train, error));
    if (f->validation) {
        tdi_samples_words words = {f->validation->name, "validation samples", "validation_steps (--validation-steps)"};
        TDI_TRY(tdi_model_check_samples(f->model, f->validation_samples, f->batch, &words, error));
    }
    if (tdi_model_is_stateful(f->model) && f->args->shuffle != TD_NO)
        tdi_log(f->model->context, TD_LOG_WARNING,
                "model \"%s\" is stateful and its samples are shuffled: rows go on from states of other sequences; "
                "train it with shuffle = TD_NO (--no-shuffle)",
                f->model->architecture->name);
    return TD_OK;
}

/* A stream is not shuffled whole, since it would have to be held in memory. */
static bool shuffles_whole(const fit *f)
{
    return f->args->shuffle != TD_NO && !f->train->sequential;
}

/* Processes with data of their own shuffle them each in its own way. */
static td_status order_epoch(fit *f, int epoch, tdi_error *error)
{
    uint64_t seed = f->training.seed + (uint64_t)f->own.first;
    if (f->args->shuffle_buffer)
        return tdi_buffered_order(f->order, f->rows, f->args->shuffle_buffer, seed, epoch, error);
    tdi_epoch_order(f->order, f->rows, shuffles_whole(f), seed, epoch);
    return TD_OK;
}

static td_status train_epoch(fit *f, int epoch, tdi_progress *progress, td_epoch *result, tdi_error *error)
{
    tdi_runtime *runtime;
    TDI_TRY(order_epoch(f, epoch, error));
    tdi_epoch_run run = {.model = f->model,
                         .source = f->train,
                         .order = f->order,
                         .in_order = !f->args->shuffle_buffer && !shuffles_whole(f),
                         .samples = f->samples,
                         .own = f->own,
                         .batch = f->batch,
                         .steps = f->steps,
                         .epoch = epoch,
                         .done = f->training.steps,
                         .seconds = f->training.seconds,
                         .seconds_waiting = f->training.seconds_waiting,
                         .progress = progress,
                         .training = &f->training,
                         .input_threads = f->args->input_threads,
                         .job = {.mode = TDI_TRAIN, .seed = f->training.seed, .ramp = f->ramp}};
    run.job.ramp.done = (int64_t)epoch * f->steps;
    TDI_TRY(tdi_epoch_runtime(&run, &runtime, error));
    if (!f->training.steps)
        tdi_runtime_reset_sums(runtime, TDI_TRAIN);
    td_status status = tdi_run_epoch(&run, error);
    f->training.rate_factor = (double)tdi_ramp_factor(&run.job.ramp, run.done);
    TDI_TRY(status);
    int64_t done = run.done * f->batch;
    *result = (td_epoch){.epoch = epoch,
                         .steps = run.done,
                         .samples = done < f->samples ? done : f->samples,
                         .seconds = run.seconds,
                         .seconds_waiting = run.seconds_waiting,
                         .learning_rate = tdi_training_rate(&f->training)};
    tdi_runtime_logs(runtime, TDI_TRAIN, "", &result->logs);
    return TD_OK;
}

/* A resumed epoch keeps its steps, and its epoch_begin has been called. */
static td_status begin_epoch(fit *f, int epoch, tdi_error *error)
{
    td_training *training = &f->training;
    training->epoch = epoch;
    if (training->begun)
        return TD_OK;
    training->steps = 0;
    training->seconds = training->seconds_waiting = 0;
    if (!tdi_in_group(f->model) && atomic_load(&f->model->context->stop))
        return TD_STOPPED;
    training->rate_factor = (double)tdi_ramp_factor(&f->ramp, (int64_t)epoch * f->steps);
    TDI_TRY(tdi_callbacks_epoch_begin(training, error));
    training->begun = true;
    return TD_OK;
}

static td_status run_epoch(fit *f, int epoch, tdi_error *error)
{
    tdi_progress progress;
    char title[64];
    td_epoch result;
    TDI_TRY(begin_epoch(f, epoch, error));
    snprintf(title, sizeof title, "Epoch %d/%d", epoch + 1, f->epochs);
    tdi_progress_begin(&progress, f->training.progress, title, f->steps);
    double began = tdi_seconds();
    progress.began -= f->training.seconds;
    TDI_TRY(train_epoch(f, epoch, &progress, &result, error));
    tdi_note_host(f->model, "epoch", began, epoch);
    began = tdi_seconds();
    int64_t samples = f->validation_samples;
    TDI_TRY(weigh_validation(f, error)); /* a callback may have evaluated other data */
    if (f->validation)
        TDI_TRY(tdi_evaluate_source(f->model, f->validation, TDI_EVALUATE, epoch, &samples, f->batch, "val_", NULL,
                                    &result.logs, error));
    tdi_note_host(f->model, "validation", began, epoch);
    began = tdi_seconds();
    if (f->training.rate_changes)
        tdi_log_set(&result.logs, "learning_rate", result.learning_rate);
    tdi_progress_waited(&progress, result.seconds_waiting, result.seconds);
    tdi_progress_end(&progress, result.steps, &result.logs);
    f->training.last = result;
    f->training.has_last = true;
    f->training.begun = false;
    TDI_TRY(tdi_callbacks_epoch_end(&f->training, &f->training.last, error));
    tdi_note_host(f->model, "callbacks", began, epoch);
    return TD_OK;
}

static td_status begin(fit *f, tdi_error *error)
{
    td_training *training = &f->training;
    const tdi_run what = {.train = f->own.shards ? NULL : f->train,
                          .validation = f->validation,
                          .batch = f->batch,
                          .steps = f->steps,
                          .validation_steps = f->args->validation_steps,
                          .shuffle = f->args->shuffle != TD_NO,
                          .shuffle_buffer = f->args->shuffle_buffer,
                          .base_batch_size = f->args->base_batch_size,
                          .warmup_epochs = f->args->warmup_epochs,
                          .momentum_correction = f->args->momentum_correction == TD_YES};
    training->epochs = f->epochs;
    training->batch = f->batch;
    training->source = f->train;
    training->order = f->order;
    training->epoch = f->args->initial_epoch;
    training->seed = f->args->seed;
    TDI_TRY(tdi_model_need_slots(f->model, error));
    TDI_TRY(tdi_group_agree_on_run(training, &what, error));
    TDI_TRY(tdi_backup_begin(training, &what, error));
    if (!training->seed)
        training->seed = f->model->state->seed;
    TDI_TRY(tdi_group_share_run(training, &what, error));
    tdi_group_say_begin(training);
    TDI_TRY(tdi_callbacks_train_begin(training, error));
    return tdi_group_share_callbacks(training, error);
}

/* The learning rate's ramp by Goyal et al. (1706.02677): linear scaling, gradual warm-up, momentum correction. */
static void scale_rate(fit *f)
{
    const td_fit_args *args = f->args;
    char line[160], reached[48] = "";
    float scale = args->base_batch_size ? (float)f->batch / (float)args->base_batch_size : 1;
    f->ramp = (tdi_ramp){.first = args->base_batch_size ? 1 : 0,
                         .last = scale,
                         .steps = args->warmup_epochs * f->steps,
                         .corrected = args->momentum_correction == TD_YES};
    f->training.rate_factor = 1;
    if (!args->base_batch_size && !args->warmup_epochs) {
        f->ramp.last = 0;
        return;
    }
    double rate = (double)td_learning_rate(f->model);
    if (args->warmup_epochs)
        snprintf(reached, sizeof reached, ", reached after %d epoch%s of warm-up", args->warmup_epochs,
                 args->warmup_epochs == 1 ? "" : "s");
    snprintf(line, sizeof line, "Learning rate: %g times %g for batches of %lld is %g%s.", rate, (double)scale,
             (long long)f->batch, rate * (double)scale, reached);
    td_training_say(&f->training, line);
}

static bool rate_changes(const fit *f)
{
    return f->model->state->optimizer.schedule.kind != TD_SCHEDULE_NONE || f->args->base_batch_size ||
           f->args->warmup_epochs || tdi_callbacks_set_rate(f->args->callbacks);
}

static td_status run_epochs(fit *f, tdi_error *error)
{
    for (int epoch = f->training.epoch; epoch < f->epochs; epoch++) {
        int64_t none = 0;
        TDI_TRY(tdi_group_agree_on_steps(f->model, &f->training, &none, error));
        if (f->training.stop && !f->training.begun)
            break;
        td_status status = run_epoch(f, epoch, error);
        if (status != TD_OK) {
            tdi_error_prefix(error, "epoch %d", epoch + 1);
            return status;
        }
    }
    return TD_OK;
}

static td_status run(fit *f, tdi_error *error)
{
    TDI_TRY(check_arguments(f->args, error));
    TDI_TRY(tdi_check_compiled(f->model, true, error));
    TDI_TRY(open_data(f, error));
    TDI_TRY(plan_epochs(f, error));
    TDI_TRY(check_states(f, error));
    f->training.validates = f->validation != NULL;
    f->training.rate_changes = rate_changes(f);
    TDI_TRY(tdi_callbacks_check(&f->training, error));
    if (f->args->adapt == TD_YES)
        TDI_TRY(tdi_adapt(f->model, f->train, error));
    TDI_TRY(tdi_model_set_recipe(f->model, td_data_recipe(f->args->data), error));
    TDI_TRY(begin(f, error));
    scale_rate(f);
    td_status status = run_epochs(f, error);
    if (status == TD_STOPPED)
        tdi_backup_stopped(&f->training);
    tdi_group_say_end(&f->training);
    td_finalize_variable_values(f->model);
    if (f->args->last)
        *f->args->last = f->training.last;
    return status == TD_OK ? tdi_callbacks_train_end(&f->training, error) : status;
}

/* A model has one td_fit at a time. */
static td_status run_alone(fit *f, tdi_error *error)
{
    TDI_TRY(tdi_model_check_idle(f->model, "td_fit", error));
    f->training.progress = tdi_is_chief(f->model) ? f->args->progress : NULL;
    f->training.callbacks = f->callbacks = tdi_group_callbacks(f->model, f->args->callbacks, error);
    if (f->args->callbacks && !f->callbacks)
        return TD_NO_MEMORY;
    tdi_context_heed_stops(f->model->context);
    f->model->fitting = true;
    f->model->context->fitting++;
    td_status status = run(f, error);
    f->model->context->fitting--;
    f->model->fitting = false;
    return status;
}

td_status td_fit_(const td_fit_args *args)
{
    fit f = {.args = args, .model = args->model, .training = {.model = args->model}};
    tdi_error error = {0};
    td_status status = f.model ? run_alone(&f, &error) : TD_INVALID_ARGUMENT;
    free(f.order);
    free(f.callbacks);
    for (int i = 0; i < 2; i++)
        if (f.ranges[i])
            f.ranges[i]->release(f.ranges[i]);
    free(f.drawn);
    td_data_release(args->data);
    td_data_release(args->validation);
    tdi_callbacks_free(args->callbacks);
    return f.model ? tdi_report(f.model, &args->at, status, &error) : status;
}
