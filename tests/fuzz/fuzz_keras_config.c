/* fuzz_keras_config.c - any bytes as config.json: a model, which is written and read again, or a refusal. Weights do
 * not come in, so nothing of it is behind a checksum. */
#include <stdlib.h>

#include "formats/keras_json.h"

#define ROOM ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What was understood can be written, and what is written can be read. */
static void write_and_read(td_context *context, const td_model *model)
{
    td_model *again;
    tdi_error error = {0};
    json_t *root = tdi_keras_write_model(model),
           *compiled = tdi_keras_is_compiled(model) ? tdi_keras_write_compile(model) : NULL;
    if (!root || (tdi_keras_is_compiled(model) && !compiled))
        abort();
    if (tdi_keras_read_model(context, root, ROOM, &again, &error) != TD_OK)
        abort();
    if (compiled && tdi_keras_read_compile(again, compiled, "again.keras", &error) != TD_OK)
        abort();
    json_decref(root);
    json_decref(compiled);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    td_model *model;
    tdi_error error = {0};
    json_t *root = json_loadb((const char *)bytes, size, 0, NULL);
    td_context *context = td_context_create(NULL);
    if (!context)
        abort();
    if (root && tdi_keras_read_model(context, root, ROOM, &model, &context->error) == TD_OK) {
        tdi_keras_read_compile(model, json_object_get(root, "compile_config"), "input.keras", &error);
        write_and_read(context, model);
    }
    json_decref(root);
    td_context_free(context);
    return 0;
}
