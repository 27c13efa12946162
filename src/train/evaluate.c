/* evaluate.c - td_evaluate. */
#include "train/class_checks.h"
#include "train/confusion_matrix.h"
#include "train/epoch_run.h"
#include "train/group.h"
#include "train/weighting.h"

static td_status evaluate(const td_evaluate_args *args, tdi_error *error)
{
    tdi_source *source;
    int64_t samples;
    tdi_runtime *runtime;
    td_logs logs = {0};
    td_model *model = args->model;
    int64_t batch = tdi_model_batch_size(model, args->batch_size);
    tdi_context_heed_stops(model->context);
    TDI_TRY(tdi_check_batch_size(args->guard, "td_evaluate", args->batch_size, error));
    TDI_TRY(tdi_check_compiled(model, false, error));
    if (args->confusion)
        TDI_TRY(tdi_confusion_check(model, args->confusion_output, args->ignore_class, error));
    TDI_TRY(tdi_data_source(args->data, "data", &source, error));
    TDI_TRY(tdi_check_data(model, source, true, error));
    TDI_TRY(tdi_check_classes(model, source, error));
    TDI_TRY(tdi_weigh(model, false, source, &(tdi_weights_wanted){.class_weight = args->class_weight}, error));
    TDI_TRY(tdi_samples_of_steps(source, "steps", args->steps, batch, &samples, error));
    tdi_samples_words words = {source->name, "samples", "steps (--steps)"};
    TDI_TRY(tdi_model_check_samples(model, samples, batch, &words, error));
    TDI_TRY(tdi_group_begin_evaluation(model, &(tdi_run){.train = source, .batch = batch, .steps = samples}, error));
    TDI_TRY(tdi_evaluate_source(model, source, args->confusion ? TDI_CONFUSION : TDI_EVALUATE, 0, &samples, batch, "",
                                tdi_is_chief(model) ? args->progress : NULL, &logs, error));
    if (args->confusion)
        TDI_TRY(tdi_runtime_for(model, TDI_CONFUSION, batch, &runtime, error));
    if (args->confusion)
        TDI_TRY(tdi_confusion_create(runtime, model, args, samples, args->confusion, error));
    if (args->logs)
        *args->logs = logs;
    return TD_OK;
}

td_status td_evaluate_(const td_evaluate_args *args)
{
    tdi_error error = {0};
    if (args->confusion)
        *args->confusion = NULL;
    td_status status = args->model ? evaluate(args, &error) : TD_INVALID_ARGUMENT;
    td_data_release(args->data);
    return args->model ? tdi_report(args->model, &args->at, status, &error) : status;
}
