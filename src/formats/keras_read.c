/* keras_read.c - reading a .keras file as a model. */
#include <stdlib.h>
#include <string.h>

#include "files/zip.h"
#include "formats/foreign_file.h"
#include "formats/keras.h"
#include "formats/keras_json.h"
#include "formats/legacy_hdf5.h"

#define MAX_CONFIG ((size_t)16 << 20)

static td_status read_json(tdi_zip *zip, json_t **root, tdi_error *error)
{
    void *bytes;
    size_t size;
    json_error_t reason;
    TDI_TRY(tdi_zip_read(zip, TDI_KERAS_CONFIG, MAX_CONFIG, &bytes, &size, error));
    *root = json_loadb(bytes, size, 0, &reason);
    free(bytes);
    if (*root)
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE, "\"%s\" is not JSON: %s at line %d, column %d", TDI_KERAS_CONFIG, reason.text,
                    reason.line, reason.column);
}

static td_status read_weights(td_model *model, tdi_store **weights, tdi_error *error)
{
    tdi_hdf5_file *file;
    TDI_TRY(tdi_hdf5_file_in_store(*weights, TDI_KERAS_WEIGHTS, &file, error));
    td_status status = tdi_keras_read_weights(model, &file, weights, error);
    tdi_hdf5_file_close(file);
    return status;
}

static td_status read_recipe(tdi_zip *zip, td_model *model, tdi_error *error)
{
    void *bytes;
    size_t size;
    if (!tdi_zip_has(zip, TDI_KERAS_RECIPE))
        return TD_OK;
    TDI_TRY(tdi_zip_read(zip, TDI_KERAS_RECIPE, MAX_CONFIG, &bytes, &size, error));
    model->recipe = strndup(bytes, size);
    free(bytes);
    return model->recipe ? TD_OK : tdi_no_memory(error);
}

/* Refuses what means something else in the Keras that wrote the file. */
static td_status check_version(tdi_zip *zip, const json_t *root, tdi_error *error)
{
    void *bytes;
    size_t size;
    if (!tdi_zip_has(zip, TDI_KERAS_METADATA))
        return TD_OK;
    TDI_TRY(tdi_zip_read(zip, TDI_KERAS_METADATA, MAX_CONFIG, &bytes, &size, error));
    json_t *metadata = json_loadb(bytes, size, 0, NULL);
    free(bytes);
    td_status status = tdi_keras_check_version(root, tdi_keras_text(metadata, "keras_version"), error);
    json_decref(metadata);
    return status;
}

/* Verifies the checksum of the weights' whole entry before a byte of it is read. */
static td_status read_archive(td_context *context, tdi_zip *zip, const char *path, td_model **model, tdi_error *error)
{
    json_t *root;
    tdi_store *weights = NULL;
    TDI_TRY(read_json(zip, &root, error));
    td_status status = check_version(zip, root, error);
    if (status == TD_OK)
        status = tdi_zip_store_in_place(zip, TDI_KERAS_WEIGHTS, &weights, error);
    if (status == TD_OK)
        status = tdi_keras_read_model(context, root, (size_t)tdi_store_size(weights), model, error);
    if (status == TD_OK)
        status = tdi_keras_read_compile(*model, json_object_get(root, "compile_config"), path, error);
    if (status == TD_OK)
        status = read_weights(*model, &weights, error);
    if (status == TD_OK)
        status = read_recipe(zip, *model, error);
    tdi_store_free(weights);
    json_decref(root);
    return status;
}

static td_status read_zip(td_context *context, const char *path, td_model **model, tdi_error *error)
{
    tdi_zip *zip;
    TDI_TRY(tdi_zip_open(path, &zip, error));
    td_status status = tdi_zip_has(zip, TDI_KERAS_CONFIG) ? read_archive(context, zip, path, model, error)
                                                          : tdi_foreign_archive(zip, path, error);
    tdi_zip_close(zip);
    return status;
}

/* Says of an HDF5 file that holds no whole model what it holds. */
static td_status refuse_hdf5(tdi_hdf5_file *file, tdi_error *error)
{
    if (tdi_legacy_is_weights(file) || tdi_hdf5_file_has(file, "layers") ||
        tdi_hdf5_file_has(file, "_layer_checkpoint_dependencies"))
        return tdi_fail(error, TD_BAD_FILE,
                        "it holds weights alone, not the layers that they belong to: load the model's .keras file, and "
                        "these weights into it (td_load_weights; --weights)");
    return tdi_fail(error, TD_BAD_FILE, "it is an HDF5 file, but not one of Keras: it has no \"model_config\"");
}

static td_status read_hdf5(td_context *context, const char *path, td_model **model, tdi_error *error)
{
    tdi_hdf5_file *file;
    TDI_TRY(tdi_hdf5_file_open(path, &file, error));
    td_status status =
        tdi_legacy_is_model(file) ? tdi_legacy_read_model(context, path, file, model, error) : refuse_hdf5(file, error);
    tdi_hdf5_file_close(file);
    return status;
}

static td_status read_file(td_context *context, const char *path, td_model **model, tdi_error *error)
{
    TDI_TRY(tdi_foreign_check(path, error));
    td_status status = (tdi_is_hdf5(path) ? read_hdf5 : read_zip)(context, path, model, error);
    if (status != TD_OK && status != TD_NO_MEMORY)
        tdi_error_prefix(error, "cannot load \"%s\"", path);
    return status;
}

/* Layers leave their failures in the context, so that its error takes the place of `error` meanwhile. */
td_status tdi_keras_read(td_context *context, const char *path, td_model **model, tdi_error *error)
{
    tdi_error before = context->error;
    context->error = (tdi_error){0};
    *model = NULL;
    td_status status = read_file(context, path, model, &context->error);
    tdi_error mine = context->error;
    context->error = before;
    if (status == TD_OK)
        return TD_OK;
    td_model_free(*model);
    *model = NULL;
    return tdi_fail(error, status, "%s", mine.message);
}
