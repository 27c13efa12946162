/* fuzz_keras.c - any bytes as a .keras file: read or refused, never a crash. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/keras.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    td_model *model;
    tdi_error error = {0};
    td_context *context = td_context_create(NULL);
    int fd = memfd_create("keras", MFD_CLOEXEC);
    if (!context || fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (tdi_keras_read(context, path, &model, &error) != TD_OK && !error.message[0])
        abort();
    close(fd);
    td_context_free(context);
    return 0;
}
