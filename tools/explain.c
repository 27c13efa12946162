/* explain.c - `tandem explain`: what one training step of a model is on this machine, or one prediction. */
#include <stdio.h>

#include "options.h"
#include "session.h"

/* A file without an optimizer, when none is given either, is one to predict with. */
static enum purpose purpose_of(const struct options *options, const struct session *session)
{
    bool trains =
        options->optimizer != TD_OPTIMIZER_NONE || td_model_optimizer(session->model).kind != TD_OPTIMIZER_NONE;
    return trains ? TO_TRAIN : TO_PREDICT;
}

static int run(const struct options *options)
{
    struct session session = {0};
    int status = session_load(options, &session);
    if (status == TOOL_DONE)
        status = session_compile(options, &session, purpose_of(options, &session));
    if (status == TOOL_DONE &&
        (options->json ? td_explain_json : td_explain)(session.model, options->batch_size, stdout) != TD_OK)
        status = session_failed(&session);
    session_close(&session);
    return status;
}

static const struct argp_option options[] = {OPTION_GROUP("Work:", 1),
                                             OPTION_BATCH_SIZE,
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
                                             {"json", KEY_JSON, NULL, 0, "For a program: numbers as JSON", 0},
                                             OPTIONS_END};

const struct command explain_command = {
    "explain",
    "MODEL.keras",
    "what a training step runs: kernels, bytes, FLOPs", /* */
    "Prints the plan of one training step as this machine would run it: for each "
    "operation the kernel chosen, which ones "
    "declined and why, bytes and FLOPs, and what was fused; of a prediction, when the "
    "file was saved without an optimizer. Nothing is trained.\v"
    "Examples:\n"
    "\n"
    "  Why a model is as fast as it is:\n"
    "    tandem explain cnn.keras --batch-size 64\n"
    "\n"
    "  How the batch is shared between two devices:\n"
    "    tandem explain mlp.keras --devices cpu:0,cpu:1\n",
    options,
    run};
