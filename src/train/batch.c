/* batch.c - one step at a time: for loops of the caller's own. */
#include <string.h>

#include "train/loop.h"

static td_status check(const td_model *model, int64_t rows, const float *x, const float *y, tdi_mode mode,
                       tdi_error *error)
{
    if (model->n_inputs != 1 || model->n_outputs != 1)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "one batch at a time is for models with one input and one output; model \"%s\" has %d and %d",
                        model->name, model->n_inputs, model->n_outputs);
    if (rows < 1 || !x || (!y && mode != TDI_PREDICT))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "a batch needs at least one row of x%s",
                        mode == TDI_PREDICT ? "" : " and of y");
    return mode == TDI_PREDICT ? TD_OK : tdi_check_compiled(model, mode != TDI_EVALUATE, error);
}

static int64_t target_elements(const td_model *model)
{
    td_shape target = tdi_loss_target_shape(&model->training[0].loss, &model->outputs[0]->shape);
    return tdi_shape_elements(&target);
}

static td_status run_batch(td_model *model, tdi_job *job, const float *x, const float *y, td_logs *logs,
                           tdi_error *error)
{
    tdi_runtime *runtime;
    TDI_TRY(check(model, job->samples, x, y, job->mode, error));
    TDI_TRY(tdi_runtime_of(model, &runtime, error));
    tdi_array_feed feed = {x, y, tdi_shape_elements(&model->inputs[0]->shape), y ? target_elements(model) : 0, 1};
    job->feed = tdi_feed_arrays(&feed);
    job->steps = 1;
    job->batch = job->samples;
    job->seed = model->seed;
    tdi_runtime_reset_sums(runtime, job->mode);
    TDI_TRY(tdi_runtime_run(runtime, job, error));
    if (!logs)
        return TD_OK;
    double sums[TDI_MAX_METRIC_SLOTS][2];
    tdi_runtime_sums(runtime, job->mode, sums);
    *logs = (td_logs){0};
    tdi_program_logs(model, tdi_runtime_slots(runtime, job->mode), sums, "", logs);
    return TD_OK;
}

static td_status on_batch(td_model *model, tdi_mode mode, int64_t rows, const float *x, const float *y, td_logs *logs)
{
    tdi_error error = {0};
    tdi_job job = {.mode = mode, .samples = rows};
    return tdi_report(model, NULL, run_batch(model, &job, x, y, logs, &error), &error);
}

td_status td_train_on_batch(td_model *model, int64_t rows, const float *x, const float *y, td_logs *logs)
{
    return on_batch(model, TDI_TRAIN, rows, x, y, logs);
}

td_status td_test_on_batch(td_model *model, int64_t rows, const float *x, const float *y, td_logs *logs)
{
    return on_batch(model, TDI_EVALUATE, rows, x, y, logs);
}

td_status td_compute_gradients(td_model *model, int64_t rows, const float *x, const float *y, td_logs *logs)
{
    return on_batch(model, TDI_GRADIENTS, rows, x, y, logs);
}

/* ---- predict ---- */

typedef struct destination {
    float *output;
    int64_t per_row;
} destination;

static void put(void *context, int64_t step, int64_t first, int64_t count, int output, const float *values)
{
    (void)step, (void)output;
    const destination *d = context;
    memcpy(d->output + first * d->per_row, values, (size_t)(count * d->per_row) * sizeof *values);
}

td_status td_predict_on_batch(td_model *model, int64_t rows, const float *x, float *output)
{
    tdi_error error = {0};
    destination d = {output, tdi_shape_elements(&model->outputs[0]->shape)};
    tdi_job job = {.mode = TDI_PREDICT, .samples = rows, .take = put, .take_context = &d};
    return tdi_report(model, NULL, run_batch(model, &job, x, NULL, NULL, &error), &error);
}

/* ---- gradients, apart ---- */

float *td_gradient(td_model *model, int index)
{
    if (index < 0 || index >= model->weights.count || !model->runtime)
        return NULL;
    const tdi_variable *variable = &model->weights.at[index]->variable;
    return variable->trainable ? tdi_runtime_gradient(model->runtime, variable) : NULL;
}

td_status td_apply_gradients(td_model *model)
{
    tdi_error error = {0};
    if (!model->runtime || model->optimizer.kind == TD_OPTIMIZER_NONE) {
        tdi_fail(&error, TD_INVALID_ARGUMENT, "model \"%s\" has no gradients; call td_compute_gradients first",
                 model->name);
        return tdi_report(model, NULL, TD_INVALID_ARGUMENT, &error);
    }
    tdi_job job = {.mode = TDI_APPLY, .samples = 1, .batch = 1, .steps = 1, .seed = model->seed};
    return tdi_report(model, NULL, tdi_runtime_run(model->runtime, &job, &error), &error);
}
