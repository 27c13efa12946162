/* evaluate.c - td_evaluate and td_predict. */
#include <stdlib.h>
#include <string.h>

#include "train/loop.h"

static td_status check_batch(td_guard guard, const char *function, int64_t batch_size, tdi_error *error)
{
    if (guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: an argument too many; give options by name", function);
    if (batch_size < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "batch_size: %lld; at least 1 was expected", (long long)batch_size);
    return TD_OK;
}

static td_status evaluate(const td_evaluate_args *args, tdi_error *error)
{
    tdi_source *source;
    td_logs logs = {0};
    int64_t batch = tdi_model_batch_size(args->model, args->batch_size);
    TDI_TRY(check_batch(args->guard, "td_evaluate", args->batch_size, error));
    TDI_TRY(tdi_check_compiled(args->model, false, error));
    TDI_TRY(tdi_data_source(args->data, "data", &source, error));
    TDI_TRY(tdi_check_data(args->model, source, true, error));
    TDI_TRY(tdi_model_check_samples(args->model, source->samples, batch, source->name, error));
    atomic_store(&args->model->context->stop, 0);
    TDI_TRY(tdi_evaluate_source(args->model, source, batch, "", args->progress, &logs, error));
    if (args->logs)
        *args->logs = logs;
    return TD_OK;
}

td_status td_evaluate_(const td_evaluate_args *args)
{
    tdi_error error = {0};
    td_status status = args->model ? evaluate(args, &error) : TD_INVALID_ARGUMENT;
    td_data_release(args->data);
    return args->model ? tdi_report(args->model, &args->at, status, &error) : status;
}

/* ---- predict ---- */

void tdi_collector_init(tdi_collector *collector, const td_model *model, int64_t batch, float *const *outputs)
{
    *collector = (tdi_collector){.batch = batch};
    for (int o = 0; o < model->n_outputs; o++) {
        collector->outputs[o] = outputs ? outputs[o] : NULL;
        collector->per_row[o] = tdi_shape_elements(&model->outputs[o]->shape);
    }
}

void tdi_collect(void *context, int64_t step, int64_t first, int64_t count, int output, const float *values)
{
    const tdi_collector *c = context;
    int64_t per_row = c->per_row[output];
    if (c->outputs[output])
        memcpy(c->outputs[output] + (step * c->batch + first) * per_row, values,
               (size_t)(count * per_row) * sizeof *values);
}

static td_status predict_in_order(const td_predict_args *args, tdi_source *source, const int64_t *order, int64_t batch,
                                  tdi_error *error)
{
    tdi_progress progress;
    float *first[TDI_MAX_IO] = {args->output};
    tdi_collector c;
    tdi_collector_init(&c, args->model, batch, args->outputs ? args->outputs : first);
    tdi_pass pass = {.model = args->model,
                     .source = source,
                     .order = order,
                     .in_order = true,
                     .samples = source->samples,
                     .batch = batch,
                     .steps = (source->samples + batch - 1) / batch,
                     .progress = &progress,
                     .job = {.mode = TDI_PREDICT, .take = tdi_collect, .take_context = &c}};
    tdi_progress_begin(&progress, args->progress, "", pass.steps);
    TDI_TRY(tdi_pass_run(&pass, error));
    tdi_progress_end(&progress, &(td_logs){0});
    return TD_OK;
}

static td_status check_room(const td_predict_args *args, const tdi_source *source, tdi_error *error)
{
    const td_model *model = args->model;
    if (args->outputs && (args->output || args->capacity))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "give one output or a list of all outputs, not both");
    for (int o = 0; args->outputs && o < model->n_outputs; o++)
        if (!args->outputs[o])
            return tdi_fail(error, TD_INVALID_ARGUMENT, "outputs: there is none for output %d of %d", o,
                            model->n_outputs);
    int64_t needed = source->samples * tdi_shape_elements(&model->outputs[0]->shape);
    if (args->outputs || (args->output && args->capacity >= (size_t)needed))
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "the predictions are %lld floats; the output has room for %zu",
                    (long long)needed, args->output ? args->capacity : 0);
}

static td_status predict(const td_predict_args *args, tdi_error *error)
{
    tdi_source *source;
    TDI_TRY(check_batch(args->guard, "td_predict", args->batch_size, error));
    TDI_TRY(tdi_data_source(args->data, "data", &source, error));
    TDI_TRY(tdi_check_data(args->model, source, false, error));
    TDI_TRY(check_room(args, source, error));
    int64_t batch = tdi_model_batch_size(args->model, args->batch_size);
    TDI_TRY(tdi_model_check_samples(args->model, source->samples, batch, source->name, error));
    int64_t *order = malloc((size_t)source->samples * sizeof *order);
    if (!order)
        return tdi_no_memory(error);
    tdi_epoch_order(order, source->samples, false, 0, 0);
    atomic_store(&args->model->context->stop, 0);
    td_status status = predict_in_order(args, source, order, batch, error);
    free(order);
    return status;
}

td_status td_predict_(const td_predict_args *args)
{
    tdi_error error = {0};
    td_status status = args->model ? predict(args, &error) : TD_INVALID_ARGUMENT;
    td_data_release(args->data);
    return args->model ? tdi_report(args->model, &args->at, status, &error) : status;
}
