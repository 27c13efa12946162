/* save_load.c - td_load, td_save, td_load_weights, td_save_weights, td_save_npy, td_save_npz. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "files/npy_file.h"
#include "formats/keras.h"
#include "formats/weights_file.h"

td_model *td_load(td_context *context, const char *path)
{
    td_model *model = NULL;
    if (!context || context->error.status != TD_OK)
        return NULL;
    tdi_parts *made = tdi_context_begin_model(context);
    td_status status = made ? tdi_keras_read(context, path, &model, &context->error) : tdi_no_memory(&context->error);
    tdi_context_end_model(context);
    if (status != TD_OK) {
        tdi_parts_free(made);
        return NULL;
    }
    model->made = made;
    return model;
}

td_status td_save(td_model *model, const char *path)
{
    if (!model)
        return TD_INVALID_ARGUMENT;
    if (path && !tdi_ends_in(path, ".keras")) /* Keras would not read it */
        return tdi_fail(
            &model->context->error, TD_INVALID_ARGUMENT,
            "cannot save the model \"%.64s\" as \"%s\": expected a name that ends in .keras; try \"%s.keras\"",
            model->architecture->name, path, path);
    if (model->stored_slots)
        TDI_TRY(tdi_model_need_slots(model, &model->context->error));
    return tdi_keras_write(model, path, &model->context->error);
}

td_status td_save_weights(td_model *model, const char *path)
{
    if (!model)
        return TD_INVALID_ARGUMENT;
    if (model->stored_slots)
        TDI_TRY(tdi_model_need_slots(model, &model->context->error));
    return tdi_weights_write(model, path, &model->context->error);
}

td_status td_load_weights(td_model *model, const char *path)
{
    return !model ? TD_INVALID_ARGUMENT : tdi_weights_read(model, path, &model->context->error);
}

td_status td_save_npy(td_context *context, const char *path, const float *values, const td_shape *shape)
{
    return !context ? TD_INVALID_ARGUMENT : tdi_npy_write(path, TD_FLOAT32, shape, values, &context->error);
}

static td_status check_names(int count, const td_named_array *arrays, tdi_error *error)
{
    if (count < 0 || (count && !arrays))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_save_npz: %d arrays were given%s", count,
                        arrays ? "" : ", and no list of them");
    for (int i = 0; i < count; i++) {
        if (!arrays[i].name || !arrays[i].name[0])
            return tdi_fail(error, TD_INVALID_ARGUMENT, "td_save_npz: array %d has no name", i);
        for (int before = 0; before < i; before++)
            if (strcmp(arrays[i].name, arrays[before].name) == 0)
                return tdi_fail(error, TD_INVALID_ARGUMENT, "td_save_npz: arrays %d and %d are both named \"%.40s\"",
                                before, i, arrays[i].name);
    }
    return TD_OK;
}

static td_status add_entry(const td_named_array *array, char name[128], tdi_zip_entry *entry, tdi_error *error)
{
    void *bytes;
    if (snprintf(name, 128, "%s.npy", array->name) >= 128)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "the name \"%.40s...\" is too long for an array", array->name);
    TDI_TRY(tdi_npy_image(TD_FLOAT32, &array->shape, array->values, &bytes, &entry->size, error));
    entry->name = name;
    entry->bytes = bytes;
    return TD_OK;
}

td_status td_save_npz(td_context *context, const char *path, int count, const td_named_array *arrays)
{
    if (!context)
        return TD_INVALID_ARGUMENT;
    TDI_TRY(check_names(count, arrays, &context->error));
    tdi_zip_entry *entries = calloc((size_t)count, sizeof *entries);
    char(*names)[128] = calloc((size_t)count, sizeof *names);
    td_status status = entries && names ? TD_OK : tdi_no_memory(&context->error);
    for (int i = 0; i < count && status == TD_OK; i++)
        status = add_entry(&arrays[i], names[i], &entries[i], &context->error);
    if (status == TD_OK)
        status = tdi_zip_write(path, count, entries, &context->error);
    for (int i = 0; i < count && entries; i++)
        free((void *)(uintptr_t)entries[i].bytes);
    free(entries);
    free(names);
    return status;
}
