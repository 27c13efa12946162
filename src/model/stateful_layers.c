/* stateful_layers.c - what stateful layers keep from batch to batch: resetting it, and the batch size that it is for.
 */
#include <string.h>

#include "model/model.h"

static const tdi_layer *stateful_layer(const td_model *model)
{
    for (int i = 0; i < model->architecture->layers.count; i++)
        if (model->architecture->layers.at[i]->states.count)
            return model->architecture->layers.at[i];
    return NULL;
}

static void reset(td_model *model, const tdi_layer *layer)
{
    for (int s = 0; s < layer->states.count; s++)
        memset(tdi_model_write_value(model, layer->states.at[s]), 0,
               (size_t)layer->states.at[s]->elements * sizeof(float));
}

td_status td_reset_states(td_model *model)
{
    if (!model)
        return TD_INVALID_ARGUMENT;
    for (int i = 0; i < model->architecture->layers.count; i++)
        reset(model, model->architecture->layers.at[i]);
    return TD_OK;
}

td_status td_reset_layer_states(td_model *model, const char *layer)
{
    if (!model)
        return TD_INVALID_ARGUMENT;
    if (!layer)
        return tdi_fail(&model->context->error, TD_INVALID_ARGUMENT, "td_reset_layer_states: layer is NULL");
    for (int i = 0; i < model->architecture->layers.count; i++) {
        const tdi_layer *at = model->architecture->layers.at[i];
        if (strcmp(at->name, layer) != 0)
            continue;
        if (!at->states.count)
            return tdi_fail(&model->context->error, TD_INVALID_ARGUMENT, "layer \"%s\" (%s) is not stateful", at->name,
                            at->type->class_name);
        reset(model, at);
        return TD_OK;
    }
    return tdi_fail(&model->context->error, TD_NOT_FOUND, "model \"%s\" has no layer \"%s\"", model->architecture->name,
                    layer);
}

int64_t tdi_model_batch_size(const td_model *model, int64_t asked)
{
    const tdi_layer *layer = stateful_layer(model);
    if (asked)
        return asked;
    return layer ? layer->batch : 32;
}

td_status tdi_model_check_rows(const td_model *model, int64_t rows, tdi_error *error)
{
    const tdi_layer *layer = stateful_layer(model);
    if (!layer || layer->batch == rows)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "layer \"%s\" is stateful: it keeps a state for each of %lld rows of a batch, and this one has "
                    "%lld",
                    layer->name, (long long)layer->batch, (long long)rows);
}

td_status tdi_model_check_samples(const td_model *model, int64_t samples, int64_t batch, const tdi_samples_words *words,
                                  tdi_error *error)
{
    const tdi_layer *layer = stateful_layer(model);
    if (!layer)
        return TD_OK;
    if (batch != layer->batch)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "layer \"%s\" is stateful, with batches of %lld samples: a batch size of %lld cannot be",
                        layer->name, (long long)layer->batch, (long long)batch);
    if (samples > 0 && samples < batch)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "layer \"%s\" is stateful, with batches of %lld samples, and %s has %lld %s, too few for one",
                        layer->name, (long long)batch, words->source, (long long)samples, words->what);
    if (samples > 0 && samples % batch)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "layer \"%s\" is stateful, with batches of %lld samples: the %lld %s of %s end with a batch of "
                        "%lld; leave it out by %s",
                        layer->name, (long long)batch, (long long)samples, words->what, words->source,
                        (long long)(samples % batch), words->option);
    return TD_OK;
}
