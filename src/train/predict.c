/* predict.c - td_predict: into memory, or into a file as the predictions are made. */
#include "train/predict.h"

#include <stdio.h>
#include <string.h>

#include "train/epoch_run.h"

void tdi_collector_init(tdi_collector *collector, const td_model *model, int64_t batch, float *const *outputs)
{
    *collector = (tdi_collector){.batch = batch};
    for (int o = 0; o < model->architecture->n_outputs; o++) {
        collector->outputs[o] = outputs ? outputs[o] : NULL;
        collector->per_row[o] = tdi_shape_elements(&model->architecture->outputs[o]->shape);
    }
}

td_status tdi_collect(void *context, int64_t step, int64_t first, int64_t count, int output, const float *values,
                      tdi_error *error)
{
    const tdi_collector *c = context;
    int64_t per_row = c->per_row[output], at = (step * c->batch + first) * per_row;
    if (output == 0 && c->capacity && at + count * per_row > c->capacity)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "the predictions are more than the %lld floats that the output has room for; give it more, "
                        "fewer steps, or a path",
                        (long long)c->capacity);
    if (c->file)
        return tdi_array_file_put(c->file, output, at, values, count * per_row, error);
    if (c->outputs[output])
        memcpy(c->outputs[output] + at, values, (size_t)(count * per_row) * sizeof *values);
    return TD_OK;
}

static td_status predict_all(const td_predict_args *args, tdi_source *source, int64_t *samples,
                             tdi_collector *collector, tdi_error *error)
{
    tdi_progress progress;
    tdi_epoch_run run = {.model = args->model,
                         .source = source,
                         .samples = *samples,
                         .batch = collector->batch,
                         .progress = &progress,
                         .job = {.mode = TDI_PREDICT, .take = tdi_collect, .take_context = collector}};
    TDI_TRY(tdi_run_epoch_in_order(&run, args->progress, error));
    *samples = run.samples;
    tdi_progress_end(&progress, run.done, &(td_logs){0});
    return TD_OK;
}

/* [samples, output shape...] */
static td_status all_predictions(const td_shape *one, int64_t samples, td_shape *shape, tdi_error *error)
{
    if (one->rank == TD_MAX_RANK)
        return tdi_fail(error, TD_UNSUPPORTED, "predictions of %d axes cannot be written with the samples' in front",
                        one->rank);
    *shape = (td_shape){.rank = one->rank + 1, .dim = {samples}};
    memcpy(shape->dim + 1, one->dim, (size_t)one->rank * sizeof *one->dim);
    return TD_OK;
}

static td_status begin_file(const td_predict_args *args, int64_t samples, tdi_array_file **file, tdi_error *error)
{
    const td_model *model = args->model;
    tdi_array_plan arrays[TDI_MAX_IO];
    *file = NULL;
    if (!args->path)
        return TD_OK;
    for (int o = 0; o < model->architecture->n_outputs; o++) {
        snprintf(arrays[o].name, sizeof arrays[o].name, "y%d", o);
        TDI_TRY(all_predictions(&model->architecture->outputs[o]->shape, samples, &arrays[o].shape, error));
    }
    return tdi_array_file_create(args->path, model->architecture->n_outputs, arrays, file, error);
}

static td_status run(const td_predict_args *args, tdi_source *source, int64_t *samples, int64_t batch, tdi_error *error)
{
    float *first[TDI_MAX_IO] = {args->output};
    tdi_collector collector;
    tdi_collector_init(&collector, args->model, batch, args->outputs ? args->outputs : first);
    collector.capacity = args->output && *samples == TDI_SAMPLES_UNKNOWN ? (int64_t)args->capacity : 0;
    TDI_TRY(begin_file(args, *samples, &collector.file, error));
    td_status status = predict_all(args, source, samples, &collector, error);
    if (collector.file && status == TD_OK)
        return tdi_array_file_commit(collector.file, *samples, error);
    tdi_array_file_abort(collector.file);
    return status;
}

static td_status check_outputs(const td_predict_args *args, tdi_error *error)
{
    const td_model *model = args->model;
    if (!!args->outputs + !!(args->output || args->capacity) + !!args->path > 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "give one of output, outputs and path");
    for (int o = 0; args->outputs && o < model->architecture->n_outputs; o++)
        if (!args->outputs[o])
            return tdi_fail(error, TD_INVALID_ARGUMENT, "outputs: there is none for output %d of %d", o,
                            model->architecture->n_outputs);
    return TD_OK;
}

/* A capacity is checked on the way where the number of samples is known only at the end. */
static td_status check_room(const td_predict_args *args, const tdi_source *source, int64_t samples, tdi_error *error)
{
    int64_t needed, per_row = tdi_shape_elements(&args->model->architecture->outputs[0]->shape);
    bool known = samples != TDI_SAMPLES_UNKNOWN;
    if (args->outputs && !known)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: how many samples the stream has is not known, nor whether the outputs have room for them: "
                        "give steps, a path, or an output with its capacity",
                        source->name);
    if (__builtin_mul_overflow(known ? samples : 1, per_row, &needed))
        needed = INT64_MAX;
    if (args->path || args->outputs || (args->output && args->capacity >= (size_t)needed))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "the predictions are %s%lld floats; the output has room for %zu",
                    known ? "" : "at least ", (long long)needed, args->output ? args->capacity : 0);
}

static td_status predict(const td_predict_args *args, tdi_error *error)
{
    tdi_source *source;
    int64_t samples, batch = tdi_model_batch_size(args->model, args->batch_size);
    tdi_context_heed_stops(args->model->context);
    TDI_TRY(tdi_check_batch_size(args->guard, "td_predict", args->batch_size, error));
    TDI_TRY(tdi_data_source(args->data, "data", &source, error));
    TDI_TRY(tdi_check_data(args->model, source, false, error));
    TDI_TRY(tdi_samples_of_steps(source, "steps", args->steps, batch, &samples, error));
    TDI_TRY(check_outputs(args, error));
    TDI_TRY(check_room(args, source, samples, error));
    tdi_samples_words words = {source->name, "samples", "steps (--steps)"};
    TDI_TRY(tdi_model_check_samples(args->model, samples, batch, &words, error));
    TDI_TRY(run(args, source, &samples, batch, error));
    if (args->samples)
        *args->samples = samples;
    return TD_OK;
}

td_status td_predict_(const td_predict_args *args)
{
    tdi_error error = {0};
    td_status status = args->model ? predict(args, &error) : TD_INVALID_ARGUMENT;
    td_data_release(args->data);
    return args->model ? tdi_report(args->model, &args->at, status, &error) : status;
}
