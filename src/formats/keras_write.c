/* keras_write.c - writing a model as a .keras file, atomically, its weights without a copy. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files/zip.h"
#include "formats/keras.h"
#include "formats/keras_json.h"

#define KERAS_VERSION "3.15.1" /* whose format this is */

static char *dump(json_t *json)
{
    char *text = json ? json_dumps(json, JSON_REAL_PRECISION(9)) : NULL;
    json_decref(json);
    return text;
}

static char *make_config(const td_model *model)
{
    json_t *root = tdi_keras_write_model(model);
    if (tdi_keras_is_compiled(model))
        tdi_keras_put(&root, "compile_config", tdi_keras_write_compile(model));
    return dump(root);
}

char *tdi_keras_compile_text(const td_model *model)
{
    json_t *json = tdi_keras_write_compile(model);
    json_t *config = json_object_get(json_object_get(json, "optimizer"), "config");
    if (json_is_number(json_object_get(config, "learning_rate")))
        json_object_del(config, "learning_rate");
    json_object_del(json, "steps_per_execution");
    return dump(json);
}

static char *make_metadata(void)
{
    char date[32];
    struct tm parts;
    time_t now = time(NULL);
    if (!gmtime_r(&now, &parts))
        return NULL;
    strftime(date, sizeof date, "%Y-%m-%d@%H:%M:%S", &parts);
    return dump(json_pack("{s:s, s:s}", "keras_version", KERAS_VERSION, "date_saved", date));
}

static void weights_piece(const void *file, uint64_t at, void *to, size_t size)
{
    tdi_hdf5_piece(file, at, to, size);
}

static td_status write_archive(const char *path, const char *metadata, const char *config, const char *recipe,
                               const tdi_hdf5_writer *weights, uint64_t size, tdi_error *error)
{
    const tdi_zip_entry entries[] = {
        {.name = TDI_KERAS_METADATA, .bytes = metadata, .size = strlen(metadata)},
        {.name = TDI_KERAS_CONFIG, .bytes = config, .size = strlen(config)},
        {.name = TDI_KERAS_WEIGHTS, .bytes = weights, .size = (size_t)size, .piece = weights_piece},
        {.name = TDI_KERAS_RECIPE, .bytes = recipe, .size = recipe ? strlen(recipe) : 0},
    };
    return tdi_zip_write(path, recipe ? 4 : 3, entries, error);
}

td_status tdi_keras_write(const td_model *model, const char *path, tdi_error *error)
{
    tdi_hdf5_writer *weights = NULL;
    uint64_t size = 0;
    char *metadata = make_metadata(), *config = make_config(model);
    td_status status =
        metadata && config ? tdi_keras_make_weights(model, &weights, &size, error) : tdi_no_memory(error);
    if (status == TD_OK)
        status = write_archive(path, metadata, config, model->recipe, weights, size, error);
    tdi_hdf5_close(weights);
    free(config);
    free(metadata);
    if (status != TD_OK && status != TD_NO_MEMORY)
        tdi_error_prefix(error, "cannot save the model \"%.64s\"", model->architecture->name);
    return status;
}

char *tdi_keras_json(const td_model *model)
{
    return dump(tdi_keras_write_model(model));
}
