/* predict.c - `tandem predict`: a model's outputs for data, as a NumPy file. */
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "output.h"
#include "session.h"

/* The shape of all predictions together, [samples, ...]; false when they are more floats than memory can address. */
static bool result_shape(const td_shape *one, int64_t samples, td_shape *shape, size_t *count)
{
    *shape = (td_shape){.rank = one->rank + 1, .dim = {samples}};
    *count = (size_t)samples;
    bool fits = shape->rank <= TD_MAX_RANK;
    for (int i = 0; fits && i < one->rank; i++) {
        shape->dim[i + 1] = one->dim[i];
        fits = !__builtin_mul_overflow(*count, (size_t)one->dim[i], count);
    }
    size_t bytes;
    return fits && !__builtin_mul_overflow(*count, sizeof(float), &bytes);
}

static int write_predictions(const struct options *options, struct session *session, td_data *data, const char *path)
{
    td_shape one, shape;
    size_t count = 0;
    int64_t samples = td_data_samples(data);
    float *values = NULL;
    int status = TOOL_DONE;
    if (td_output_shape(session->model, 0, &one) != TD_OK)
        status = session_failed(session);
    else if (!result_shape(&one, samples, &shape, &count) || !(values = malloc((count ? count : 1) * sizeof *values)))
        status = tool_fail("the predictions for %lld samples do not fit in memory; predict the data in parts",
                           (long long)samples);
    if (status != TOOL_DONE) {
        td_data_release(data);
        return status;
    }
    if (td_predict_(&(td_predict_args){.model = session->model,
                                       .data = data,
                                       .output = values,
                                       .capacity = count,
                                       .batch_size = options->batch_size,
                                       .progress = options->quiet ? NULL : stdout}) != TD_OK ||
        td_save_npy(session->context, path, values, &shape) != TD_OK)
        status = session_failed(session);
    else if (!options->quiet)
        printf("Saved %s: the predictions for %lld samples.\n", path, (long long)samples);
    free(values);
    return status;
}

static int predict(const struct options *options, struct session *session, const char *path)
{
    td_data *data;
    int status = session_load(options, session);
    if (status == TOOL_DONE)
        status = session_compile(options, session, TO_PREDICT);
    if (status == TOOL_DONE)
        status = session_data(options, "data", options->data, TD_TEST, &data);
    return status == TOOL_DONE ? write_predictions(options, session, data, path) : status;
}

static int run(const struct options *options)
{
    struct session session = {0};
    char path[OUTPUT_SIZE];
    if (!options->data)
        return tool_refuse("--data: expected the data to predict from, got none; try --data mnist/");
    int status = output_path(options->output, options->argument, "-predictions.npy", ".npy", path);
    if (status == TOOL_DONE)
        status = predict(options, &session, path);
    session_close(&session);
    return status;
}

static const struct argp_option options[] = {
    OPTION_GROUP("Data:", 1),
    OPTION_DATA,
    OPTIONS_READING,
    OPTION_GROUP("Work:", 2),
    OPTION_BATCH_SIZE,
    OPTION_DEVICES,
    OPTION_SHARDS,
    OPTION_PRECISION,
    OPTION_GROUP("Results:", 3),
    {"output", KEY_OUTPUT, "P.npy", 0, "Where the predictions go (default: MODEL-predictions.npy, here)", 0},
    OPTION_QUIET,
    OPTIONS_END};

const struct command predict_command = {
    "predict",
    "MODEL.keras",
    "the outputs of a model for data, as a NumPy file", /* */
    "Computes the outputs of MODEL.keras for every sample, in the order of the data, and writes them as a NumPy file "
    "of "
    "float32, [samples, ...]. Of a model with several outputs it is the first.\n\n" HELP_DATA
    " The array y is not needed.\v"
    "Examples:\n"
    "\n"
    "  Class scores for MNIST's test images, then in Python np.load(\"scores.npy\"):\n"
    "    tandem predict mlp-trained.keras --data mnist/ --output scores.npy\n"
    "\n"
    "  For an array of one's own:\n"
    "    tandem predict mlp-trained.keras --data new.npy --scale 0.00392157\n",
    options,
    run};
