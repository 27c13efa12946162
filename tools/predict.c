/* predict.c - `tandem predict`: writes a model's outputs for data to a NumPy file. */
#include <stdio.h>

#include "options.h"
#include "output_conflicts.h"
#include "output_path.h"
#include "session.h"
#include "stop_signals.h"

/* Prints the class of each column, for a model that classifies. */
static void say_classes(const td_model *model)
{
    enum { MOST = 20 };
    char name[128];
    td_shape shape;
    int count = td_recipe_class(td_model_recipe(model), 0, NULL, 0);
    if (!count || td_output_shape(model, 0, &shape) != TD_OK || shape.rank != 1 || shape.dim[0] != count)
        return;
    printf("Classes:");
    for (int i = 0; i < count && i < MOST; i++) {
        td_recipe_class(td_model_recipe(model), i, name, sizeof name);
        printf("%s %d %s", i ? "," : "", i, td_printable(name));
    }
    if (count > MOST)
        printf(", ... of %d", count);
    puts(".");
}

static int write_predictions(const struct options *options, struct session *session, const char *path)
{
    td_data *data;
    int status = session_data(options,
                              &(struct request){.option = "data",
                                                .path = options->data,
                                                .role = TD_TEST,
                                                .model = session->model,
                                                .recipe = td_model_recipe(session->model),
                                                .inputs_only = true},
                              &data);
    if (status != TOOL_DONE)
        return status;
    int64_t samples = 0;
    stop_on_signals(session->context);
    td_status done = td_predict_(&(td_predict_args){.model = session->model,
                                                    .data = data,
                                                    .path = path,
                                                    .batch_size = options->batch_size,
                                                    .steps = options->batches,
                                                    .samples = &samples,
                                                    .progress = options->quiet ? NULL : stdout});
    if (done == TD_STOPPED)
        return 128 + stop_signal(); /* no file is left behind */
    if (done != TD_OK)
        return session_failed(session);
    if (!options->quiet) {
        printf("Saved %s: the predictions for %lld samples.\n", path, (long long)samples);
        say_classes(session->model);
    }
    return TOOL_DONE;
}

/* Chooses the result's path. One that is given is checked before the model is read; the default depends on the model's
 * outputs. */
static int choose_path(const struct options *options, const td_model *model, char path[OUTPUT_SIZE])
{
    td_shape second;
    bool several = td_output_shape(model, 1, &second) == TD_OK;
    if (!options->output) {
        int status = output_path(NULL, options->argument, several ? "-predictions.npz" : "-predictions.npy",
                                 several ? ".npz" : ".npy", path);
        return status == TOOL_DONE ? output_conflicts_check(options, path) : status;
    }
    if (several && !output_ends_in(path, ".npz"))
        return tool_refuse("--output: the model has several outputs: expected a name that ends in .npz, got '%s'",
                           path);
    return TOOL_DONE;
}

static int predict(const struct options *options, struct session *session, char path[OUTPUT_SIZE])
{
    int status = session_load(options, session);
    if (status == TOOL_DONE)
        status = choose_path(options, session->model, path);
    if (status == TOOL_DONE)
        status = session_compile(options, session, TO_PREDICT);
    return status == TOOL_DONE ? write_predictions(options, session, path) : status;
}

static int run(const struct options *options)
{
    struct session session = {0};
    char path[OUTPUT_SIZE];
    const char *given = options->output;
    int status = TOOL_DONE;
    if (!options->data)
        return tool_refuse("--data: expected the data to predict from, got none; try --data mnist/");
    if (given)
        status = output_path(given, options->argument, "", output_ends_in(given, ".npz") ? ".npz" : ".npy", path);
    if (status == TOOL_DONE)
        status = output_conflicts_check(options, given);
    if (status == TOOL_DONE)
        status = predict(options, &session, path);
    status = session_end_trace(options, &session, status);
    session_close(&session);
    return status;
}

static const struct argp_option options[] = {
    OPTION_GROUP("Data:", 1),
    OPTION_DATA,
    OPTION_SHARD,
    OPTIONS_READING,
    OPTION_GROUP("Work:", 2),
    OPTION_WEIGHTS,
    OPTION_BATCH_SIZE,
    OPTION_BATCHES,
    OPTION_DEVICES,
    OPTION_SHARDS,
    OPTION_PRECISION,
    OPTION_GROUP("Results:", 3),
    {"output", KEY_OUTPUT, "P.npy", 0,
     "Where the predictions go (default: MODEL-predictions.npy, here; .npz with several outputs)", 0},
    OPTION_TRACE,
    OPTION_QUIET,
    OPTIONS_END};

const struct command predict_command = {
    "predict",
    "MODEL.keras",
    "the outputs of a model for data, as a NumPy file", /* */
    "Computes the outputs of MODEL.keras for every sample, in the order of the data, and writes them as a NumPy file "
    "of "
    "float32, [samples, ...]; of a model with several outputs as an .npz file of one array each: y0, y1, "
    "... They are written as they are made and need not fit in memory.\n\n" HELP_DATA " The array y is not needed.\v"
    "Examples:\n"
    "\n"
    "  Class scores for MNIST's test images, then in Python np.load(\"scores.npy\"):\n"
    "    tandem predict mlp-trained.keras --data mnist/ --output scores.npy\n"
    "\n"
    "  For an array of one's own:\n"
    "    tandem predict mlp-trained.keras --data new.npy --scale 0.00392157\n",
    options,
    run};
