/* explain.c - `tandem explain`: prints what a step of a model runs on this machine, and where its time goes. */
#include <stdio.h>

#include "options.h"
#include "session.h"

/* A model is for prediction when neither its file nor the options have an optimizer, or a loss. */
static enum purpose purpose_of(const struct options *options, const struct session *session)
{
    bool optimizer =
        options->optimizer != TD_OPTIMIZER_NONE || td_model_optimizer(session->model).kind != TD_OPTIMIZER_NONE;
    bool trains = optimizer && (options->n_losses || td_model_loss(session->model) != TD_LOSS_NONE);
    switch (options->mode) {
    case TD_MODE_TRAIN:
        return TO_TRAIN;
    case TD_MODE_EVALUATE:
        return TO_EVALUATE;
    case TD_MODE_PREDICT:
        return TO_PREDICT;
    default:
        return trains ? TO_TRAIN : TO_PREDICT;
    }
}

static int explain(const struct options *options, const struct session *session)
{
    td_explain_args args = {.model = session->model,
                            .out = stdout,
                            .batch_size = options->batch_size,
                            .mode = options->mode,
                            .time = options->time ? TD_YES : TD_NO,
                            .json = options->json ? TD_YES : TD_NO};
    return td_explain_(&args) == TD_OK ? TOOL_DONE : session_failed(session);
}

static int run(const struct options *options)
{
    struct session session = {0};
    int status = session_load(options, &session);
    if (status == TOOL_DONE)
        status = session_compile(options, &session, purpose_of(options, &session));
    if (status == TOOL_DONE)
        status = explain(options, &session);
    session_close(&session);
    return status;
}

static const struct argp_option options[] = {
    OPTION_GROUP("Work:", 1),
    {"mode", KEY_MODE, "NAME", 0,
     "Of a step: train, evaluate or predict (default: train, where the file has an optimizer)", 0},
    OPTION_BATCH_SIZE,
    {"steps-per-execution", KEY_STEPS_PER_EXECUTION, "auto|N", 0,
     "Steps from one look at the progress line to the next, as for fit", 0},
    OPTION_DEVICES,
    OPTION_SHARDS,
    OPTION_REMATERIALIZE,
    OPTION_PRECISION,
    OPTION_GROUP("Over the file's compile configuration:", 2),
    OPTION_LEARNING_RATE,
    OPTIONS_OPTIMIZER,
    OPTIONS_LOSS,
    OPTION_IGNORE_CLASS,
    OPTION_GROUP("Report:", 3),
    {"time", KEY_TIME, NULL, 0, "Where the time goes: the ten most expensive ops, measured and the least they need", 0},
    {"json", KEY_JSON, NULL, 0, "For a program: numbers as JSON", 0},
    OPTIONS_END};

const struct command explain_command = {
    "explain",
    "MODEL.keras",
    "what a step runs, and where its time goes", /* */
    "Prints the plan of one step as this machine would run it (of training, unless the file was saved without an "
    "optimizer, or as --mode says): for each operation the kernel chosen, which ones declined and why, bytes and "
    "FLOPs, "
    "and what was fused. With --time: where the time of a step goes. Weights and files stay as they are.\v"
    "Examples:\n"
    "\n"
    "  Why a model is as fast as it is:\n"
    "    tandem explain cnn.keras --batch-size 64\n"
    "\n"
    "  What to make faster, and how much there is to win:\n"
    "    tandem explain cnn.keras --batch-size 64 --time\n"
    "\n"
    "  How the batch is shared between two devices:\n"
    "    tandem explain mlp.keras --devices cpu:0,cpu:1\n",
    options,
    run};
