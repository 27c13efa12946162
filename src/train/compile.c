/* compile.c - td_compile: how a model is to be trained. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/program.h"
#include "strategy/multi_worker.h"
#include "train/group.h"

static td_status check_guard(const td_compile_args *args, tdi_error *error)
{
    if (args->guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_compile takes one argument; give the rest by name");
    if (args->steps_per_execution < TD_AUTOMATIC_STEPS)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "steps_per_execution: %lld; at least 1, TD_AUTOMATIC_STEPS or 0 for as before was expected",
                        (long long)args->steps_per_execution);
    if (args->strategy.shards < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "shards: %d; a number of at least 1 was expected",
                        args->strategy.shards);
    if ((unsigned)args->precision > TD_PRECISION_BFLOAT16)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "precision: %d is not one of the td_precision values",
                        (int)args->precision);
    if ((unsigned)args->rematerialize > TD_NO)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "rematerialize: %d is not one of the td_choice values",
                        (int)args->rematerialize);
    return TD_OK;
}

static const char *devices_of(const td_strategy *strategy)
{
    return strategy->devices ? strategy->devices : strategy->shards || strategy->cluster ? "cpu" : NULL;
}

/* The strategy of a cluster, or mirrored. */
static td_status take_strategy(td_model *model, const td_strategy *strategy, tdi_error *error)
{
    model->compiled.strategy = NULL;
    model->compiled.shards = strategy->shards;
    if (!strategy->cluster)
        return TD_OK;
    return tdi_multi_worker(strategy->cluster, model, devices_of(strategy), &model->compiled.strategy, error);
}

static td_status take_division(td_model *model, const td_strategy *strategy, tdi_error *error)
{
    tdi_device *devices[TDI_MAX_SHARDS];
    tdi_division division;
    int count;
    if (!devices_of(strategy))
        return TD_OK;
    TDI_TRY(take_strategy(model, strategy, error));
    TDI_TRY(tdi_open_devices(devices_of(strategy), devices, &count, error));
    td_status status = tdi_divide(model, devices, count, &division, error);
    tdi_close_devices(devices, count);
    return status;
}

/* An output without a loss has none of them. */
static td_status add_metrics(const td_model *model, int output, const td_metric *metrics, tdi_output_training *training,
                             tdi_error *error)
{
    for (; training->loss.kind != TDI_LOSS_NONE && metrics->kind != TD_METRIC_END; metrics++) {
        if ((unsigned)metrics->kind >= TD_METRIC_COUNT)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "metrics: %d is not one of the td_metric_kind values",
                            (int)metrics->kind);
        TDI_TRY(tdi_model_add_metric(model, output, training, metrics, error));
    }
    return TD_OK;
}

/* Adds those of the model's metrics that stay: the weighted ones, or the others. */
static td_status keep_metrics(const tdi_output_training *now, bool weighted, tdi_output_training *training,
                              tdi_error *error)
{
    for (int m = 0; m < now->n_metrics; m++) {
        if (tdi_is_weighted(now, m) != weighted)
            continue;
        if (training->n_metrics == TDI_MAX_METRICS)
            return tdi_fail(error, TD_UNSUPPORTED, "more than %d metrics of one output", TDI_MAX_METRICS);
        training->metrics[training->n_metrics++] = now->metrics[m];
    }
    return TD_OK;
}

static td_status take_output_metrics(td_model *model, int output, const td_compile_args *args, tdi_error *error)
{
    const tdi_output_training *now = &model->compiled.outputs[output];
    tdi_output_training taken = *now;
    taken.n_metrics = taken.n_weighted = 0;
    TDI_TRY(args->metrics ? add_metrics(model, output, args->metrics, &taken, error)
                          : keep_metrics(now, false, &taken, error));
    int unweighted = taken.n_metrics;
    TDI_TRY(args->weighted_metrics ? add_metrics(model, output, args->weighted_metrics, &taken, error)
                                   : keep_metrics(now, true, &taken, error));
    taken.n_weighted = taken.n_metrics - unweighted;
    model->compiled.outputs[output] = taken;
    tdi_model_choose_targets(model, output);
    return TD_OK;
}

static td_status take_metrics(td_model *model, const td_compile_args *args, tdi_error *error)
{
    for (int o = 0; (args->metrics || args->weighted_metrics) && o < model->architecture->n_outputs; o++)
        TDI_TRY(take_output_metrics(model, o, args, error));
    return TD_OK;
}

/* A loss of the same kind keeps the settings that td_loss does not express. */
static void take_loss(tdi_output_training *training, td_loss loss)
{
    tdi_loss *now = &training->loss, taken = tdi_loss_from_public(loss);
    if (now->kind == taken.kind)
        now->from_logits = taken.from_logits;
    else
        *now = taken;
    training->unknown_loss = NULL;
}

static td_status take_losses(td_model *model, const td_compile_args *args, tdi_error *error)
{
    int count = 0, outputs = model->architecture->n_outputs, trained = 0;
    while (args->losses && args->losses[count] != TD_LOSS_COUNT && count <= outputs)
        trained += args->losses[count++] != TD_LOSS_NONE;
    if (args->losses && (count != outputs || args->loss != TD_LOSS_NONE))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "losses: expected one for each of the %d outputs of \"%s\"%s",
                        outputs, model->architecture->name, count == outputs ? ", and no loss beside them" : "");
    if (args->losses && !trained)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "losses: expected a loss for at least one output, got none");
    for (int o = 0; o < outputs; o++) {
        td_loss loss = args->losses ? args->losses[o] : args->loss;
        if (args->losses && loss == TD_LOSS_UNKNOWN)
            continue;
        if ((unsigned)loss >= TD_LOSS_COUNT)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "loss: %d is not one of the td_loss values", (int)loss);
        if (args->losses || loss != TD_LOSS_NONE)
            take_loss(&model->compiled.outputs[o], loss);
        tdi_model_choose_targets(model, o);
    }
    return TD_OK;
}

static td_status take_loss_weights(td_model *model, const float *weights, tdi_error *error)
{
    int count = 0, outputs = model->architecture->n_outputs;
    while (weights && weights[count] != TD_LOSS_WEIGHTS_END && count <= outputs)
        count++;
    if (weights && count != outputs)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "loss_weights: expected one for each of the %d outputs of \"%s\"",
                        outputs, model->architecture->name);
    for (int o = 0; weights && o < outputs; o++) {
        if (!isfinite(weights[o]))
            return tdi_fail(error, TD_INVALID_ARGUMENT, "loss_weights: %g is not a finite number", (double)weights[o]);
        model->compiled.outputs[o].loss_weight = weights[o];
    }
    return TD_OK;
}

static td_status take_loss_numbers(td_model *model, const td_compile_args *args, tdi_error *error)
{
    for (int o = 0; o < model->architecture->n_outputs; o++) {
        tdi_loss *loss = &model->compiled.outputs[o].loss;
        if (loss->kind == TDI_LOSS_NONE && tdi_model_losses(model))
            continue;
        if (args->ignore_class.is_set)
            TDI_TRY(tdi_loss_ignore(loss, args->ignore_class.value, error));
        if (args->delta != 0)
            TDI_TRY(tdi_loss_set_delta(loss, args->delta, error));
    }
    return TD_OK;
}

static td_status take_optimizer(td_model *model, const td_optimizer *optimizer, tdi_error *error)
{
    if (optimizer->kind == TD_OPTIMIZER_NONE)
        return TD_OK;
    model->state->optimizer = *optimizer;
    model->compiled.unknown_optimizer = NULL;
    TDI_TRY(tdi_optimizer_resolve(&model->state->optimizer, error));
    return tdi_optimizer_check(&model->state->optimizer, error);
}

/* Building the graph once finds what does not fit (a loss on the wrong shape, an op without gradient) before any data
 * is read. */
static td_status try_out(td_model *model, tdi_error *error)
{
    model->compiled.is_set = tdi_model_losses_known(model);
    if (!model->compiled.is_set)
        return TD_OK;
    tdi_program program;
    tdi_mode mode = model->state->optimizer.kind == TD_OPTIMIZER_NONE ? TDI_EVALUATE : TDI_TRAIN;
    TDI_TRY(tdi_program_create(model, mode, &(tdi_target){.shards = 1, .groups = 1}, &program, error));
    tdi_program_release(&program);
    return TD_OK;
}

/* Changes `wished`, a copy of the model with a state of its own, to what the arguments ask for. */
static td_status wish(td_model *wished, const td_compile_args *args, tdi_error *error)
{
    TDI_TRY(check_guard(args, error));
    if (args->steps_per_execution)
        wished->compiled.steps_per_execution = args->steps_per_execution > 0 ? args->steps_per_execution : 0;
    wished->compiled.rematerialize = args->rematerialize == TD_YES;
    wished->compiled.precision = args->precision;
    wished->compiled.float32_said = false;
    TDI_TRY(take_division(wished, &args->strategy, error));
    TDI_TRY(take_losses(wished, args, error));
    TDI_TRY(take_loss_weights(wished, args->loss_weights, error));
    TDI_TRY(take_loss_numbers(wished, args, error));
    TDI_TRY(take_metrics(wished, args, error));
    TDI_TRY(take_optimizer(wished, &args->optimizer, error));
    return try_out(wished, error);
}

/* Tries a copy out first, so that after a failure the model is what it was. */
static td_status compile(const td_compile_args *args, tdi_error *error)
{
    td_model *model = args->model, wished = *model;
    tdi_model_state state = *model->state;
    wished.state = &state;
    memset(wished.weighting, 0, sizeof wished.weighting);
    TDI_TRY(tdi_model_check_idle(model, "td_compile", error));
    TDI_TRY(wish(&wished, args, error));
    const char *list = devices_of(&args->strategy);
    char *devices = list ? strdup(list) : NULL;
    if (list && !devices)
        return tdi_no_memory(error);
    td_status status = TD_OK;
    if (args->optimizer.kind != TD_OPTIMIZER_NONE)
        status = tdi_model_set_optimizer(model, &state.optimizer, error);
    if (status != TD_OK) {
        free(devices);
        return status;
    }
    tdi_model_drop_runtimes(model);
    tdi_model_clear_weighting(model);
    model->compiled = wished.compiled;
    if (devices) {
        free(model->compiled.devices);
        model->compiled.devices = devices;
    }
    TDI_TRY(tdi_model_keep_anew(model, error));
    return tdi_group_share_weights(model, error);
}

td_status td_compile_(const td_compile_args *args)
{
    if (!args->model)
        return TD_INVALID_ARGUMENT;
    tdi_error error = {0};
    td_status status = compile(args, &error);
    if (status != TD_OK && args->at.file)
        tdi_error_prefix(&error, "%s:%d", args->at.file, args->at.line);
    return status == TD_OK ? TD_OK : tdi_fail(&args->model->context->error, status, "%s", error.message);
}

td_optimizer td_model_optimizer(const td_model *model)
{
    return model ? model->state->optimizer : (td_optimizer){0};
}

td_loss td_model_loss(const td_model *model)
{
    for (int o = 0; model && o < model->architecture->n_outputs; o++)
        if (model->compiled.outputs[o].loss.kind != TDI_LOSS_NONE)
            return td_model_output_loss(model, o);
    return TD_LOSS_NONE;
}

float td_model_loss_weight(const td_model *model, int output)
{
    bool there = model && output >= 0 && output < model->architecture->n_outputs;
    return there ? model->compiled.outputs[output].loss_weight : 1.0f;
}

td_loss td_model_output_loss(const td_model *model, int output)
{
    bool there = model && output >= 0 && output < model->architecture->n_outputs;
    tdi_loss loss = there ? model->compiled.outputs[output].loss : (tdi_loss){0};
    if (there && model->compiled.outputs[output].unknown_loss)
        return TD_LOSS_UNKNOWN;
    switch (loss.kind) {
    case TDI_LOSS_SPARSE_CATEGORICAL:
        return loss.from_logits ? TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS : TD_SPARSE_CATEGORICAL_CROSSENTROPY;
    case TDI_LOSS_CATEGORICAL:
        return loss.from_logits ? TD_CATEGORICAL_CROSSENTROPY_FROM_LOGITS : TD_CATEGORICAL_CROSSENTROPY;
    case TDI_LOSS_BINARY:
        return loss.from_logits ? TD_BINARY_CROSSENTROPY_FROM_LOGITS : TD_BINARY_CROSSENTROPY;
    case TDI_LOSS_MSE:
        return TD_MEAN_SQUARED_ERROR;
    case TDI_LOSS_MAE:
        return TD_MEAN_ABSOLUTE_ERROR;
    case TDI_LOSS_HUBER:
        return TD_HUBER;
    case TDI_LOSS_NONE:
    case TDI_LOSS_KINDS:
        break;
    }
    return TD_LOSS_NONE;
}
