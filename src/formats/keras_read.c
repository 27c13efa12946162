/* keras_read.c - reading a .keras file as a model. */
#include <stdlib.h>
#include <string.h>

#include "files/zip.h"
#include "formats/keras.h"
#include "formats/keras_json.h"

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

/* A model that Tandem cannot train can still predict: it is loaded uncompiled, with a warning. */
static td_status compile(td_model *model, const json_t *config, const char *path, tdi_error *error)
{
    tdi_error local = {0};
    if (!config || json_is_null(config) || (json_is_object(config) && json_object_size(config) == 0))
        return TD_OK;
    td_status status = tdi_keras_read_compile(model, config, &local);
    if (status == TD_NO_MEMORY)
        return tdi_fail(error, TD_NO_MEMORY, "%s", local.message);
    if (status != TD_OK)
        tdi_log(model->context, TD_LOG_WARNING,
                "\"%s\": %s; the model is loaded uncompiled: it predicts, and trains once it is compiled anew", path,
                local.message);
    return TD_OK;
}

static td_status read_weights(td_model *model, const tdi_store *weights, tdi_error *error)
{
    tdi_hdf5_file *file;
    TDI_TRY(tdi_hdf5_file_in_store(weights, TDI_KERAS_WEIGHTS, &file, error));
    td_status status = tdi_keras_read_weights(model, file, error);
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

/* Verifies the checksum of the weights' whole entry before a byte of it is read. */
static td_status read_archive(td_context *context, tdi_zip *zip, const char *path, td_model **model, tdi_error *error)
{
    json_t *root;
    tdi_store *weights = NULL;
    TDI_TRY(read_json(zip, &root, error));
    td_status status = tdi_zip_store_in_place(zip, TDI_KERAS_WEIGHTS, &weights, error);
    if (status == TD_OK)
        status = tdi_keras_read_model(context, root, (size_t)tdi_store_size(weights), model, error);
    if (status == TD_OK)
        status = compile(*model, json_object_get(root, "compile_config"), path, error);
    if (status == TD_OK)
        status = read_weights(*model, weights, error);
    if (status == TD_OK)
        status = read_recipe(zip, *model, error);
    tdi_store_free(weights);
    json_decref(root);
    return status;
}

static td_status read_file(td_context *context, const char *path, td_model **model, tdi_error *error)
{
    tdi_zip *zip;
    TDI_TRY(tdi_zip_open(path, &zip, error));
    td_status status = read_archive(context, zip, path, model, error);
    tdi_zip_close(zip);
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
