/* fuzz_keras.c - any bytes as a .keras file: read or refused, never a crash. */
#define _GNU_SOURCE

#include "formats/keras.h"
#include "support/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[MEMORY_PATH];
    td_model *model;
    tdi_error error = {0};
    td_context *context = td_context_create(NULL);
    int fd = memory_file(bytes, size, path);
    if (tdi_keras_read(context, path, &model, &error) != TD_OK && !error.message[0])
        abort();
    close(fd);
    td_context_free(context);
    return 0;
}
