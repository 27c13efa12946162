/* fuzz_tfrecord.c - any bytes as a TFRecord file, and as the one record of a good one: read or refused. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/source.h"
#include "files/tfrecord_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void gather_first(tdi_source *source)
{
    static float values[1 << 16];
    tdi_error error = {0};
    int64_t first = 0;
    for (int i = 0; i < tdi_source_columns(source); i++) {
        int64_t elements = 1;
        for (int axis = 0; axis < source->columns[i].shape.rank; axis++)
            elements = elements < 1 << 16 ? elements * source->columns[i].shape.dim[axis] : elements;
        if (elements < 1 << 16)
            source->gather(source, i, &first, 1, values, TD_FLOAT32, &error);
    }
}

static void try_file(int fd)
{
    char path[64];
    tdi_source *source;
    tdi_error error = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (tdi_source_tfrecord.open(&(td_open_args){.path = path}, &source, &error) == TD_OK) {
        gather_first(source);
        source->release(source);
    }
    close(fd);
}

static void put(int fd, const void *bytes, size_t size)
{
    if (write(fd, bytes, size) != (ssize_t)size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint64_t length = size;
    uint32_t crc = tdi_masked_crc(&length, sizeof length);
    int fd = memfd_create("plain", MFD_CLOEXEC);
    put(fd, bytes, size);
    try_file(fd);
    fd = memfd_create("framed", MFD_CLOEXEC);
    put(fd, &length, sizeof length);
    put(fd, &crc, sizeof crc);
    put(fd, bytes, size);
    crc = tdi_masked_crc(bytes, size);
    put(fd, &crc, sizeof crc);
    try_file(fd);
    return 0;
}
