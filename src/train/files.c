/* files.c - td_load, td_save, td_save_npy, td_save_npz, and the ready-made models of td_new. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/npy.h"
#include "formats/keras.h"

td_model *td_load(td_context *context, const char *path)
{
    td_model *model = NULL;
    if (context->error.status != TD_OK)
        return NULL;
    return tdi_keras_read(context, path, &model, &context->error) == TD_OK ? model : NULL;
}

td_status td_save(td_model *model, const char *path)
{
    return tdi_keras_write(model, path, &model->context->error);
}

td_status td_save_npy(td_context *context, const char *path, const float *values, const td_shape *shape)
{
    return tdi_npy_write(path, TD_FLOAT32, shape, values, &context->error);
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

static td_tensor *mlp(td_context *context, td_tensor **x)
{
    *x = td_input(context, TD_SHAPE(784));
    td_tensor *y = td_dense(*x, 256, .activation = TD_RELU);
    y = td_dense(y, 256, .activation = TD_RELU);
    return td_dense(y, 10);
}

static td_tensor *lenet5(td_context *context, td_tensor **x)
{
    *x = td_input(context, TD_SHAPE(28, 28, 1));
    td_tensor *y = td_conv2d(*x, 6, 5, .activation = TD_TANH, .padding = TD_SAME);
    y = td_average_pooling2d(y, 2);
    y = td_conv2d(y, 16, 5, .activation = TD_TANH);
    y = td_average_pooling2d(y, 2);
    y = td_flatten(y);
    y = td_dense(y, 120, .activation = TD_TANH);
    y = td_dense(y, 84, .activation = TD_TANH);
    return td_dense(y, 10);
}

static td_tensor *cifar(td_context *context, td_tensor **x)
{
    *x = td_input(context, TD_SHAPE(32, 32, 3));
    td_tensor *y = td_conv2d(*x, 32, 3, .activation = TD_RELU);
    y = td_max_pooling2d(y, 2);
    y = td_conv2d(y, 64, 3, .activation = TD_RELU);
    y = td_max_pooling2d(y, 2);
    y = td_conv2d(y, 64, 3, .activation = TD_RELU);
    y = td_flatten(y);
    y = td_dense(y, 64, .activation = TD_RELU);
    return td_dense(y, 10);
}

typedef struct architecture {
    const char *name;
    td_tensor *(*build)(td_context *context, td_tensor **x);
} architecture;

td_model *td_new_lstm(td_context *context, int64_t steps, int64_t features, int64_t outputs, uint64_t seed)
{
    td_tensor *x = td_input(context, TD_SHAPE(steps ? steps : 50, features ? features : 8));
    td_model *model =
        td_model_create(x, td_dense(td_lstm(x, 128), outputs ? outputs : 1), .name = "lstm", .seed = seed);
    if (model)
        td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR);
    return td_failed(context) ? NULL : model;
}

td_model *td_new(td_context *context, const char *name, uint64_t seed)
{
    static const architecture known[] = {{"mlp", mlp}, {"lenet5", lenet5}, {"cifar", cifar}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        td_tensor *x, *y = known[i].build(context, &x);
        td_model *model = td_model_create(x, y, .name = name, .seed = seed);
        if (model)
            td_compile(model, .optimizer = td_adam(), .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                       .metrics = TD_METRICS(TD_ACCURACY));
        return td_failed(context) ? NULL : model;
    }
    if (strcmp(name, "lstm") == 0)
        return td_new_lstm(context, 0, 0, 0, seed);
    tdi_fail(&context->error, TD_INVALID_ARGUMENT,
             "there is no architecture \"%s\"; known are mlp, lenet5, cifar and lstm", name);
    return NULL;
}
