/* session_data.c - opens the data of a subcommand and applies the stages that its options ask for. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "session.h"

static int data_failed(const char *option, td_data **data)
{
    const char *error = td_data_error(*data);
    if (!error)
        return TOOL_DONE;
    int status = tool_fail("--%s: %s", option, error);
    td_data_release(*data);
    *data = NULL;
    return status;
}

enum { MOST_INPUTS = 8 };

/* The shapes of the model's inputs; returns how many there are. */
static int input_shapes(const td_model *model, td_shape shapes[MOST_INPUTS])
{
    int inputs = 0;
    while (model && inputs < MOST_INPUTS && td_input_shape(model, inputs, &shapes[inputs]) == TD_OK)
        inputs++;
    return inputs;
}

static void say_what_is_left_out(const char *option, const td_data *data)
{
    const char *reason, *note = td_data_note(data);
    int64_t skipped = td_data_skipped(data, &reason);
    if (*note)
        tool_say("--%s: %s", option, note);
    if (skipped)
        tool_say("--%s: %lld samples are left out; the first: %s", option, (long long)skipped, reason);
}

static td_data *open_with(const struct options *options, const struct request *request, const char *sample_weight)
{
    td_shape shapes[MOST_INPUTS];
    int inputs = input_shapes(request->model, shapes);
    return td_open_(&(td_open_args){.path = request->path,
                                    .role = request->role,
                                    .scale = options->scale.value,
                                    .features = options->features,
                                    .sample_weight = sample_weight,
                                    .image_size = options->image_size,
                                    .skip_errors = options->skip_errors ? TD_YES : TD_NO,
                                    .missing = options->missing,
                                    .header = options->header,
                                    .window = options->window,
                                    .horizon = options->horizon,
                                    .targets = request->inputs_only ? TD_NO : TD_YES,
                                    .input_shapes = shapes,
                                    .inputs = inputs,
                                    .recipe = request->recipe});
}

/* Validation data need not have the weights of the training data, but it is said when they do not. */
static void open_unweighted(const struct options *options, const struct request *request, td_data **data)
{
    td_data *other = open_with(options, request, "none");
    if (td_data_error(other)) {
        td_data_release(other);
        return;
    }
    tool_say("--%s: %s; its samples count alike", request->option, td_data_error(*data));
    td_data_release(*data);
    *data = other;
}

static int open_data(const struct options *options, const struct request *request, td_data **data)
{
    *data = open_with(options, request, options->sample_weight);
    if (request->role == TD_TEST && options->n_train && options->sample_weight && td_data_error(*data))
        open_unweighted(options, request, data);
    say_what_is_left_out(request->option, *data);
    return data_failed(request->option, data);
}

/* ---- stages ---- */

static int cache(const struct options *options, const char *suffix, td_data **data)
{
    char path[4096];
    if (!options->cache)
        return TOOL_DONE;
    bool in_memory = strcmp(options->cache, "memory") == 0;
    char process[16] = ""; /* processes of one host do not write one file */
    if (options->process)
        snprintf(process, sizeof process, ".%d", options->process);
    if ((size_t)snprintf(path, sizeof path, "%s%s%s", options->cache, suffix, process) >= sizeof path) {
        td_data_release(*data);
        *data = NULL;
        return tool_refuse("--cache: expected a path of less than %zu bytes", sizeof path);
    }
    *data = td_cache_(&(td_cache_args){.data = *data, .file = in_memory ? NULL : path});
    return data_failed("cache", data);
}

static int shard(const struct options *options, td_data **data)
{
    if (!options->shard_count)
        return TOOL_DONE;
    *data = td_shard_(
        &(td_shard_args){.data = *data, .index = (int)options->shard_index, .count = (int)options->shard_count});
    return data_failed("shard", data);
}

static int repeat(const struct options *options, td_data **data)
{
    if (!options->repeat)
        return TOOL_DONE;
    *data = td_repeat_(&(td_repeat_args){.data = *data, .times = options->repeat});
    return data_failed("repeat", data);
}

static int augment(const struct options *options, td_data **data)
{
    if (!options->augmented)
        return TOOL_DONE;
    td_augment_args args = options->augment;
    args.data = *data;
    *data = td_augment_(&args);
    return data_failed("augment", data);
}

/* ---- what the subcommands take ---- */

int session_data(const struct options *options, const struct request *request, td_data **data)
{
    int status = open_data(options, request, data);
    return status == TOOL_DONE ? shard(options, data) : status;
}

int session_validation_data(const struct options *options, const td_model *model, const td_data *train, td_data **data)
{
    struct request request = {.option = "validation",
                              .path = options->validation,
                              .role = TD_TEST,
                              .model = model,
                              .recipe = td_data_recipe(train)};
    int status = open_data(options, &request, data);
    return status == TOOL_DONE ? cache(options, ".val", data) : status;
}

/* Joins data: in turn by blocks with --interleave, else one behind the other. */
static int interleave(const struct options *options, td_data *const *list, td_data **data)
{
    *data = td_interleave_(
        &(td_interleave_args){.list = list, .block = options->interleave ? options->interleave : INT64_MAX});
    return data_failed("train", data);
}

/* Opens all data that --train names; the recipe of the first is used for the others. */
static int open_all(const struct options *options, const td_model *model, td_data **data)
{
    const char *recipe = td_model_recipe(model);
    td_data *list[TOOL_MAX_ARGUMENTS + 1] = {0};
    int status = TOOL_DONE;
    for (int i = 0; i < options->n_train && status == TOOL_DONE; i++) {
        struct request request = {.option = "train", .path = options->train[i], .model = model, .recipe = recipe};
        status = open_data(options, &request, &list[i]);
        if (i == 0 && status == TOOL_DONE && td_data_recipe(list[0]))
            recipe = td_data_recipe(list[0]);
    }
    *data = list[0];
    if (status == TOOL_DONE)
        return options->n_train > 1 ? interleave(options, list, data) : TOOL_DONE;
    for (int i = 0; i < options->n_train; i++)
        td_data_release(list[i]);
    *data = NULL;
    return status;
}

int session_train_data(const struct options *options, const td_model *model, td_data **data)
{
    int status = open_all(options, model, data);
    if (status == TOOL_DONE)
        status = shard(options, data);
    if (status == TOOL_DONE)
        status = cache(options, "", data);
    if (status == TOOL_DONE)
        status = repeat(options, data);
    return status == TOOL_DONE ? augment(options, data) : status;
}
