/* explain.c - td_explain: checks what the caller gave; profile/explain.h makes the report. */
#include "profile/explain.h"
#include "train/epoch_run.h"

static td_status mode_of(const td_explain_args *args, tdi_mode *mode, tdi_error *error)
{
    const td_model *model = args->model;
    bool trains = model->compiled.is_set && model->state->optimizer.kind != TD_OPTIMIZER_NONE;
    switch (args->mode) {
    case TD_MODE_DEFAULT:
        *mode = trains ? TDI_TRAIN : TDI_PREDICT;
        return TD_OK;
    case TD_MODE_TRAIN:
        *mode = TDI_TRAIN;
        return tdi_check_compiled(model, true, error);
    case TD_MODE_EVALUATE:
        *mode = TDI_EVALUATE;
        return tdi_check_compiled(model, false, error);
    case TD_MODE_PREDICT:
        *mode = TDI_PREDICT;
        return TD_OK;
    }
    return tdi_fail(error, TD_INVALID_ARGUMENT, "td_explain: %d is not a mode", (int)args->mode);
}

static td_status explain(const td_explain_args *args, tdi_error *error)
{
    tdi_explain_spec spec = {.mode = TDI_PREDICT,
                             .batch = tdi_model_batch_size(args->model, args->batch_size),
                             .json = args->json == TD_YES,
                             .time = args->time == TD_YES};
    TDI_TRY(tdi_check_batch_size(args->guard, "td_explain", args->batch_size, error));
    TDI_TRY(mode_of(args, &spec.mode, error));
    if (!args->out)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_explain: a FILE to write to was expected");
    TDI_TRY(tdi_explain(args->model, &spec, args->out, error));
    bool written = fflush(args->out) == 0 && !ferror(args->out);
    return written ? TD_OK : tdi_fail(error, TD_IO, "the report could not be written");
}

td_status td_explain_(const td_explain_args *args)
{
    tdi_error error = {0};
    return args->model ? tdi_report(args->model, &args->at, explain(args, &error), &error) : TD_INVALID_ARGUMENT;
}
