/* train_on_batch.c - single steps, for a training loop of the caller's own. */
#include "train/batch_feed.h"
#include "train/call_checks.h"
#include "train/group.h"
#include "train/predict.h"
#include "train/weighting.h"

/* The caller's arrays: x of every input, y of every output; y is NULL to predict. */
typedef struct batch {
    int64_t rows;
    const float *const *x, *const *y;
    const float *const *weights; /* of every output; NULL: none */
    bool positions;              /* a weight for each position of the losses; else one a row */
} batch;

static td_status check_one(const td_model *model, tdi_error *error)
{
    if (!model)
        return TD_INVALID_ARGUMENT;
    if (model->architecture->n_inputs == 1 && model->architecture->n_outputs == 1)
        return TD_OK;
    return tdi_fail(error, TD_UNSUPPORTED,
                    "model \"%s\" has %d inputs and %d outputs: give them as lists, to the function of the same name "
                    "that ends in _lists",
                    model->architecture->name, model->architecture->n_inputs, model->architecture->n_outputs);
}

static bool all_there(const float *const *list, int count)
{
    for (int i = 0; i < count; i++)
        if (!list || !list[i])
            return false;
    return true;
}

/* An output that has neither loss nor metrics may be given NULL, targets and weights. */
static bool targets_there(const td_model *model, const float *const *y)
{
    for (int o = 0; o < model->architecture->n_outputs; o++)
        if (!y || (tdi_model_has_target(model, o) && !y[o]))
            return false;
    return true;
}

static bool weights_there(const td_model *model, const float *const *weights)
{
    for (int o = 0; o < model->architecture->n_outputs; o++)
        if (tdi_model_is_weighted(model, o) && !weights[o])
            return false;
    return true;
}

static td_status check(const td_model *model, const batch *b, tdi_mode mode, tdi_error *error)
{
    bool targets = mode != TDI_PREDICT;
    if (tdi_trains(mode))
        TDI_TRY(tdi_model_check_idle(model, "a training step", error));
    TDI_TRY(tdi_check_rows("rows", b->rows, error));
    if (b->rows < 1 || !all_there(b->x, model->architecture->n_inputs) || (targets && !targets_there(model, b->y)))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "a batch needs at least one row of x%s",
                        targets ? " and of y" : "");
    if (b->weights && !weights_there(model, b->weights))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "sample_weight: each output needs weights of its own");
    return targets ? tdi_check_compiled(model, mode != TDI_EVALUATE, error) : TD_OK;
}

static int64_t target_elements(const td_model *model, int output)
{
    td_shape target =
        tdi_loss_target_shape(&model->compiled.outputs[output].loss, &model->architecture->outputs[output]->shape);
    return tdi_shape_elements(&target);
}

static tdi_array_feed feed_of(const td_model *model, const batch *b, tdi_mode mode)
{
    tdi_array_feed feed = {0};
    for (int i = 0; i < model->architecture->n_inputs; i++) {
        feed.slots[i] = b->x[i];
        feed.per_row[i] = tdi_shape_elements(&model->architecture->inputs[i]->shape);
    }
    for (int o = 0; mode != TDI_PREDICT && o < model->architecture->n_outputs; o++) {
        feed.slots[model->architecture->n_inputs + o] = b->y[o];
        feed.per_row[model->architecture->n_inputs + o] = target_elements(model, o);
    }
    for (int slot = model->architecture->n_inputs + model->architecture->n_outputs, i = 0;
         slot < tdi_input_slots(model, mode); slot++, i++) {
        feed.slots[slot] = b->weights ? b->weights[i] : NULL;
        feed.per_row[slot] = tdi_input_bytes_per_row(model, mode, slot) / (int64_t)sizeof(float);
    }
    return feed;
}

/* Runs the step, and names a step that fails by the model's count: in a job of one batch it is always the first. */
static td_status run_step(tdi_runtime *runtime, const td_model *model, tdi_job *job, tdi_error *error)
{
    tdi_error own;
    long long step = (long long)model->state->iteration;
    tdi_error_init(&own);
    td_status status = tdi_runtime_run(runtime, job, &own);
    if (status == TD_NOT_FINITE)
        return tdi_fail(error, status,
                        "the loss is not a finite number at step %lld; look for NaN in the data, or lower the learning "
                        "rate",
                        step);
    return status == TD_OK ? TD_OK : tdi_fail(error, status, "%s", own.message);
}

static td_status run_batch(td_model *model, tdi_job *job, const batch *b, td_logs *logs, tdi_error *error)
{
    tdi_runtime *runtime;
    int64_t rows = b->rows, first = 0;
    TDI_TRY(check(model, b, job->mode, error));
    if (job->mode != TDI_PREDICT)
        TDI_TRY(tdi_group_add_rows(model, b->rows, &rows, &first, error));
    TDI_TRY(tdi_model_check_rows(model, rows, error));
    if (job->mode != TDI_PREDICT)
        tdi_weigh_batch(model, tdi_trains(job->mode), b->weights != NULL, b->positions);
    TDI_TRY(tdi_runtime_for(model, job->mode, rows, &runtime, error));
    tdi_array_feed feed = feed_of(model, b, job->mode);
    feed.first = first;
    job->feed = tdi_feed_arrays(&feed);
    job->steps = 1;
    job->batch = job->samples = rows;
    job->seed = model->state->seed;
    tdi_runtime_reset_sums(runtime, job->mode);
    td_status status = run_step(runtime, model, job, error);
    if (!logs || (status != TD_OK && status != TD_NOT_FINITE))
        return status;
    logs->count = 0;
    tdi_runtime_logs(runtime, job->mode, "", logs);
    return status;
}

static td_status on(td_model *model, tdi_mode mode, const batch *b, td_logs *logs)
{
    tdi_error error;
    tdi_job job = {.mode = mode};
    if (!model)
        return TD_INVALID_ARGUMENT;
    tdi_error_init(&error);
    return tdi_report(model, NULL, run_batch(model, &job, b, logs, &error), &error);
}

static td_status on_lists(td_model *model, tdi_mode mode, int64_t rows, const float *const *x, const float *const *y,
                          td_logs *logs)
{
    return on(model, mode, &(batch){.rows = rows, .x = x, .y = y}, logs);
}

static td_status on_batch(td_model *model, tdi_mode mode, int64_t rows, const float *x, const float *y, td_logs *logs)
{
    tdi_error error;
    tdi_error_init(&error);
    td_status status = check_one(model, &error);
    if (status != TD_OK)
        return tdi_report(model, NULL, status, &error);
    return on_lists(model, mode, rows, &x, &y, logs);
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

td_status td_train_on_batch_lists(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                  td_logs *logs)
{
    return on_lists(model, TDI_TRAIN, rows, x, y, logs);
}

td_status td_test_on_batch_lists(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                 td_logs *logs)
{
    return on_lists(model, TDI_EVALUATE, rows, x, y, logs);
}

td_status td_compute_gradients_lists(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                     td_logs *logs)
{
    return on_lists(model, TDI_GRADIENTS, rows, x, y, logs);
}

td_status td_train_on_batch_weighted(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                     const float *const *sample_weight, td_choice positions, td_logs *logs)
{
    return on(model, TDI_TRAIN, &(batch){rows, x, y, sample_weight, positions == TD_YES}, logs);
}

td_status td_test_on_batch_weighted(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                    const float *const *sample_weight, td_choice positions, td_logs *logs)
{
    return on(model, TDI_EVALUATE, &(batch){rows, x, y, sample_weight, positions == TD_YES}, logs);
}

td_status td_compute_gradients_weighted(td_model *model, int64_t rows, const float *const *x, const float *const *y,
                                        const float *const *sample_weight, td_choice positions, td_logs *logs)
{
    return on(model, TDI_GRADIENTS, &(batch){rows, x, y, sample_weight, positions == TD_YES}, logs);
}

/* ---- predict ---- */

td_status td_predict_on_batch_lists(td_model *model, int64_t rows, const float *const *x, float *const *outputs)
{
    tdi_error error;
    tdi_collector collector;
    if (!model)
        return TD_INVALID_ARGUMENT;
    tdi_error_init(&error);
    if (!all_there((const float *const *)outputs, model->architecture->n_outputs)) {
        tdi_fail(&error, TD_INVALID_ARGUMENT, "a prediction needs a place for every output");
        return tdi_report(model, NULL, error.status, &error);
    }
    tdi_collector_init(&collector, model, rows, outputs);
    tdi_job job = {.mode = TDI_PREDICT, .take = tdi_collect, .take_context = &collector};
    return tdi_report(model, NULL, run_batch(model, &job, &(batch){.rows = rows, .x = x}, NULL, &error), &error);
}

td_status td_predict_on_batch(td_model *model, int64_t rows, const float *x, float *output)
{
    tdi_error error;
    tdi_error_init(&error);
    td_status status = check_one(model, &error);
    if (status != TD_OK)
        return tdi_report(model, NULL, status, &error);
    return td_predict_on_batch_lists(model, rows, &x, output ? &output : NULL);
}

/* ---- gradients ---- */

float *td_gradient(td_model *model, int index)
{
    if (!model || index < 0 || index >= model->architecture->weights.count)
        return NULL;
    const tdi_runtime *runtime = tdi_runtime_own(model);
    const tdi_variable *variable = &model->architecture->weights.at[index]->variable;
    return runtime && variable->trainable ? tdi_runtime_gradient(runtime, variable) : NULL;
}

static td_status apply(td_model *model, tdi_error *error)
{
    TDI_TRY(tdi_model_check_idle(model, "td_apply_gradients", error));
    TDI_TRY(tdi_check_compiled(model, true, error));
    tdi_runtime *runtime = tdi_runtime_own(model);
    if (!runtime || !tdi_runtime_has_gradients(runtime))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "model \"%s\" has no gradients to apply: call td_compute_gradients before each "
                        "td_apply_gradients",
                        model->architecture->name);
    tdi_job job = {.mode = TDI_APPLY, .samples = 1, .batch = 1, .steps = 1, .seed = model->state->seed};
    return tdi_runtime_run(runtime, &job, error);
}

td_status td_apply_gradients(td_model *model)
{
    tdi_error error = {0};
    return !model ? TD_INVALID_ARGUMENT : tdi_report(model, NULL, apply(model, &error), &error);
}
