/* legacy_hdf5.c - models and weights as Keras wrote them before .keras, which Keras 3 still does as .h5:
 *
 *   /                          attributes "model_config" and "training_config" (JSON), "keras_version"
 *   /model_weights             attribute "layer_names": the layers in order; of a weights file it is the root itself
 *   /model_weights/<layer>     attribute "weight_names": paths of the layer's weights below it, in Keras's order
 *   /optimizer_weights         the optimizer's state
 *
 * A list of names that is too long for one attribute stands in several: "layer_names0", "layer_names1", ... */
#include "formats/legacy_hdf5.h"

#include <stdio.h>
#include <string.h>

#include "files/hdf5/hdf5_attribute.h"
#include "formats/keras_json.h"

#define PATH_SIZE 512

static const char *weights_group(tdi_hdf5_file *file)
{
    return tdi_hdf5_file_has(file, "model_weights") ? "model_weights" : "";
}

static bool has_names(tdi_hdf5_file *file, const char *group)
{
    return tdi_hdf5_has_attribute(file, group, "layer_names") || tdi_hdf5_has_attribute(file, group, "layer_names0");
}

bool tdi_legacy_is_weights(tdi_hdf5_file *file)
{
    return has_names(file, weights_group(file));
}

bool tdi_legacy_is_model(tdi_hdf5_file *file)
{
    return tdi_hdf5_has_attribute(file, "", "model_config");
}

/* ---- weights ---- */

static td_status append(tdi_hdf5_strings *to, tdi_hdf5_strings *more, tdi_error *error)
{
    for (int i = 0; i < more->list.count; i++) {
        if (!tdi_push(&to->list, more->list.at[i]))
            return tdi_no_memory(error);
        more->list.at[i] = NULL;
    }
    return TD_OK;
}

static td_status read_names(tdi_hdf5_file *file, const char *path, const char *attribute, tdi_hdf5_strings *names,
                            tdi_error *error)
{
    char numbered[64];
    if (tdi_hdf5_has_attribute(file, path, attribute))
        return tdi_hdf5_strings_read(file, path, attribute, names, error);
    *names = (tdi_hdf5_strings){0};
    for (int i = 0; i < 1 << 16; i++) {
        tdi_hdf5_strings more;
        snprintf(numbered, sizeof numbered, "%s%d", attribute, i);
        if (!tdi_hdf5_has_attribute(file, path, numbered))
            break;
        td_status status = tdi_hdf5_strings_read(file, path, numbered, &more, error);
        if (status == TD_OK)
            status = append(names, &more, error);
        tdi_hdf5_strings_release(&more);
        TDI_TRY(status);
    }
    return TD_OK;
}

static td_status join(const char *group, const char *name, char path[PATH_SIZE], tdi_error *error)
{
    int length = snprintf(path, PATH_SIZE, "%s%s%s", group, *group ? "/" : "", name);
    return length < PATH_SIZE ? TD_OK : tdi_fail(error, TD_UNSUPPORTED, "the name \"%.64s...\" is too long", name);
}

static td_status read_values(td_model *model, const tdi_layer *layer, tdi_hdf5_file *file, const char *group,
                             const tdi_hdf5_strings *names, tdi_error *error)
{
    char path[PATH_SIZE];
    if (names->list.count != layer->weights.count)
        return tdi_fail(error, TD_BAD_FILE, "there are %d weights in \"%s\" where it has %d", names->list.count, group,
                        layer->weights.count);
    for (int i = 0; i < names->list.count; i++) {
        const tdi_variable *variable = &layer->weights.at[i]->variable;
        TDI_TRY(join(group, names->list.at[i], path, error));
        TDI_TRY(tdi_hdf5_read(file, path, &variable->shape, tdi_model_write_value(model, variable), error));
    }
    return TD_OK;
}

/* The next layer from *position on that has weights; NULL: there is none. */
static const tdi_layer *next_layer(const td_model *model, int *position)
{
    while (*position < model->architecture->layers.count) {
        const tdi_layer *layer = model->architecture->layers.at[(*position)++];
        if (layer->weights.count)
            return layer;
    }
    return NULL;
}

/* Reads the group of one layer; one without weights has none. */
static td_status read_group(td_model *model, tdi_hdf5_file *file, const char *group, int *position, tdi_error *error)
{
    tdi_hdf5_strings names;
    td_status status = read_names(file, group, "weight_names", &names, error);
    const tdi_layer *layer = status == TD_OK && names.list.count ? next_layer(model, position) : NULL;
    if (status == TD_OK && names.list.count && !layer)
        status =
            tdi_fail(error, TD_BAD_FILE, "it holds weights for more layers than the model \"%.64s\" has: \"%.64s\"",
                     model->architecture->name, group);
    if (layer && read_values(model, layer, file, group, &names, error) != TD_OK) {
        tdi_error_prefix(error, "layer \"%.64s\"", layer->name);
        status = error ? error->status : TD_BAD_FILE;
    }
    tdi_hdf5_strings_release(&names);
    return status;
}

static td_status read_groups(td_model *model, tdi_hdf5_file *file, const tdi_hdf5_strings *layers, tdi_error *error)
{
    char path[PATH_SIZE];
    int position = 0;
    for (int i = 0; i < layers->list.count; i++) {
        TDI_TRY(join(weights_group(file), layers->list.at[i], path, error));
        TDI_TRY(read_group(model, file, path, &position, error));
    }
    const tdi_layer *missing = next_layer(model, &position);
    return missing ? tdi_fail(error, TD_BAD_FILE, "layer \"%.64s\": the file holds no weights for it", missing->name)
                   : TD_OK;
}

/* Theano turned the kernels of convolutions by 180 degrees. */
static td_status check_backend(tdi_hdf5_file *file, tdi_error *error)
{
    tdi_hdf5_strings backend;
    bool theano = tdi_hdf5_strings_read(file, weights_group(file), "backend", &backend, NULL) == TD_OK &&
                  backend.list.count && strcmp(backend.list.at[0], "theano") == 0;
    tdi_hdf5_strings_release(&backend);
    return theano ? tdi_fail(error, TD_UNSUPPORTED, "its weights are as Theano's convolutions take them") : TD_OK;
}

td_status tdi_legacy_read_weights(td_model *model, tdi_hdf5_file *file, tdi_error *error)
{
    tdi_hdf5_strings layers;
    TDI_TRY(check_backend(file, error));
    td_status status = read_names(file, weights_group(file), "layer_names", &layers, error);
    if (status == TD_OK)
        status = read_groups(model, file, &layers, error);
    if (status != TD_OK && status != TD_NO_MEMORY)
        tdi_error_prefix(error, "its weights are in the legacy layout, layer by layer");
    tdi_hdf5_strings_release(&layers);
    return status;
}

/* ---- models ---- */

/* Sets *json to the attribute's content; NULL where there is none. */
static td_status read_json(tdi_hdf5_file *file, const char *attribute, json_t **json, tdi_error *error)
{
    tdi_hdf5_strings texts;
    json_error_t reason;
    *json = NULL;
    if (!tdi_hdf5_has_attribute(file, "", attribute))
        return TD_OK;
    td_status status = tdi_hdf5_strings_read(file, "", attribute, &texts, error);
    if (status == TD_OK && texts.list.count == 1)
        *json = json_loads(texts.list.at[0], 0, &reason);
    if (status == TD_OK && !*json)
        status = tdi_fail(error, TD_BAD_FILE, "\"%s\" is not JSON", attribute);
    tdi_hdf5_strings_release(&texts);
    return status;
}

/* "optimizer_config" and "sample_weight_mode", which Keras has left behind, become what tdi_keras_read_compile reads.
 */
static td_status compile(td_model *model, tdi_hdf5_file *file, const char *path, tdi_error *error)
{
    json_t *config;
    TDI_TRY(read_json(file, "training_config", &config, error));
    if (!config)
        return TD_OK;
    json_t *optimizer = json_incref(json_object_get(config, "optimizer_config"));
    json_object_del(config, "optimizer_config");
    json_object_del(config, "sample_weight_mode");
    if (optimizer)
        json_object_set_new(config, "optimizer", optimizer);
    td_status status = tdi_keras_read_compile(model, config, path, error);
    json_decref(config);
    if (status == TD_OK && tdi_hdf5_file_has(file, "optimizer_weights") && model->state->optimizer.kind)
        tdi_log(model->context, TD_LOG_WARNING,
                "\"%s\" is a legacy HDF5 file: the optimizer's state in it (\"optimizer_weights\") is left out, and "
                "training begins with a fresh one",
                path);
    return status;
}

/* The config of a Sequential was its list of layers once. */
static void wrap_layers(json_t *root)
{
    json_t *config = json_object_get(root, "config");
    if (json_is_array(config))
        json_object_set_new(root, "config", json_pack("{s:O}", "layers", config));
}

td_status tdi_legacy_read_model(td_context *context, const char *path, tdi_hdf5_file *file, td_model **model,
                                tdi_error *error)
{
    json_t *root;
    tdi_hdf5_strings version;
    TDI_TRY(read_json(file, "model_config", &root, error));
    wrap_layers(root);
    bool has_version = tdi_hdf5_strings_read(file, "", "keras_version", &version, NULL) == TD_OK && version.list.count;
    td_status status = tdi_keras_check_version(root, has_version ? version.list.at[0] : "1", error);
    if (status == TD_OK)
        status = tdi_keras_read_model(context, root, (size_t)file->size, model, error);
    if (status == TD_OK)
        status = compile(*model, file, path, error);
    if (status == TD_OK)
        status = tdi_legacy_read_weights(*model, file, error);
    tdi_hdf5_strings_release(&version);
    json_decref(root);
    return status;
}
