/* fuzz_weights.c - any bytes as a .weights.h5 file for a small model: its weights are replaced, or refused. */
#include <stdlib.h>

#include "formats/keras_json.h"
#include "formats/legacy_hdf5.h"
#include "support/memory_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static td_model *small_model(td_context *context)
{
    td_tensor *x = td_input(context, TD_SHAPE(3, 2));
    td_tensor *y = td_dense(td_lstm(x, 2), 3);
    td_model *model = td_model_create(x, y, .seed = 1);
    td_compile(model, .optimizer = td_sgd(.momentum = 0.5f), .loss = TD_MEAN_SQUARED_ERROR);
    return model;
}

static void read_legacy_model(tdi_hdf5_file *file)
{
    td_model *model = NULL;
    td_context *context = td_context_create(NULL);
    if (context)
        tdi_legacy_read_model(context, "input.h5", file, &model, &context->error);
    td_context_free(context);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static td_context *context;
    static td_model *model;
    tdi_hdf5_file *file;
    tdi_error error = {0};
    char layer[64];
    if (!context) {
        context = td_context_create(NULL);
        model = small_model(context);
    }
    tdi_store *store = memory_store(bytes, size, "input.weights.h5");
    if (tdi_hdf5_file_in_store(store, "input.weights.h5", &file, &error) == TD_OK) {
        tdi_hdf5_file *left = file;
        bool legacy = tdi_legacy_is_weights(file);
        td_status status = legacy ? tdi_legacy_read_weights(model, file, &error)
                                  : tdi_keras_read_weights(model, &left, &store, &error);
        if (status != TD_OK && !error.message[0])
            abort();
        if (tdi_legacy_is_model(file))
            read_legacy_model(file);
        tdi_keras_find_unused(model, file, layer, sizeof layer);
        tdi_hdf5_file_close(left);
    }
    tdi_store_free(store);
    return 0;
}
