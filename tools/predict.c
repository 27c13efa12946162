/* predict.c - `tandem predict`: a model's outputs for data, as a NumPy file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "output.h"
#include "session.h"

enum { MOST_OUTPUTS = 8 };

/* What the model gives for all samples: an array per output. */
struct predictions {
    int count;
    char names[MOST_OUTPUTS][4];
    td_named_array arrays[MOST_OUTPUTS];
    float *values[MOST_OUTPUTS];
};

/* The shape of all predictions of an output together, [samples, ...]; false when they are more floats than memory can
 * address. */
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

static int make_room(const td_model *model, int64_t samples, struct predictions *p)
{
    td_shape one;
    for (; p->count < MOST_OUTPUTS && td_output_shape(model, p->count, &one) == TD_OK; p->count++) {
        int o = p->count;
        size_t count;
        td_named_array *array = &p->arrays[o];
        if (!result_shape(&one, samples, &array->shape, &count) ||
            !(p->values[o] = malloc((count ? count : 1) * sizeof(float))))
            return tool_fail("the predictions for %lld samples do not fit in memory; predict the data in parts",
                             (long long)samples);
        snprintf(p->names[o], sizeof p->names[o], "y%d", o);
        array->name = p->names[o];
        array->values = p->values[o];
    }
    return TOOL_DONE;
}

static bool is_npz(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".npz") == 0;
}

static td_status save(const struct session *session, const char *path, const struct predictions *p)
{
    if (is_npz(path))
        return td_save_npz(session->context, path, p->count, p->arrays);
    return td_save_npy(session->context, path, p->values[0], &p->arrays[0].shape);
}

static int write_predictions(const struct options *options, struct session *session, td_data *data, const char *path,
                             struct predictions *p)
{
    int64_t samples = td_data_samples(data);
    int status = make_room(session->model, samples, p);
    if (status != TOOL_DONE) {
        td_data_release(data);
        return status;
    }
    if (td_predict_(&(td_predict_args){.model = session->model,
                                       .data = data,
                                       .outputs = p->values,
                                       .batch_size = options->batch_size,
                                       .progress = options->quiet ? NULL : stdout}) != TD_OK ||
        save(session, path, p) != TD_OK)
        return session_failed(session);
    if (!options->quiet)
        printf("Saved %s: the predictions for %lld samples.\n", path, (long long)samples);
    return TOOL_DONE;
}

/* A name that was given is checked before the model is read; the default depends on the model's outputs. */
static int settle_path(const struct options *options, const td_model *model, char path[OUTPUT_SIZE])
{
    td_shape second;
    bool several = td_output_shape(model, 1, &second) == TD_OK;
    if (!options->output)
        return output_path(NULL, options->argument, several ? "-predictions.npz" : "-predictions.npy",
                           several ? ".npz" : ".npy", path);
    if (several && !is_npz(path))
        return tool_refuse("--output: the model has several outputs: expected a name that ends in .npz, got '%s'",
                           path);
    return TOOL_DONE;
}

static int predict(const struct options *options, struct session *session, char path[OUTPUT_SIZE])
{
    td_data *data;
    struct predictions predictions = {0};
    int status = session_load(options, session);
    if (status == TOOL_DONE)
        status = settle_path(options, session->model, path);
    if (status == TOOL_DONE)
        status = session_compile(options, session, TO_PREDICT);
    if (status == TOOL_DONE)
        status = session_data(options, "data", options->data, TD_TEST, &data);
    if (status == TOOL_DONE)
        status = write_predictions(options, session, data, path, &predictions);
    for (int o = 0; o < MOST_OUTPUTS; o++)
        free(predictions.values[o]);
    return status;
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
        status = output_path(given, options->argument, "", is_npz(given) ? ".npz" : ".npy", path);
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
    {"output", KEY_OUTPUT, "P.npy", 0,
     "Where the predictions go (default: MODEL-predictions.npy, here; .npz with several outputs)", 0},
    OPTION_QUIET,
    OPTIONS_END};

const struct command predict_command = {
    "predict",
    "MODEL.keras",
    "the outputs of a model for data, as a NumPy file", /* */
    "Computes the outputs of MODEL.keras for every sample, in the order of the data, and writes them as a NumPy file "
    "of "
    "float32, [samples, ...]; of a model with several outputs as an .npz file of one array each: y0, y1, "
    "...\n\n" HELP_DATA " The array y is not needed.\v"
    "Examples:\n"
    "\n"
    "  Class scores for MNIST's test images, then in Python np.load(\"scores.npy\"):\n"
    "    tandem predict mlp-trained.keras --data mnist/ --output scores.npy\n"
    "\n"
    "  For an array of one's own:\n"
    "    tandem predict mlp-trained.keras --data new.npy --scale 0.00392157\n",
    options,
    run};
