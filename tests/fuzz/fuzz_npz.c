/* fuzz_npz.c - any bytes as an .npz archive: read or refused, never a crash. */
#define _GNU_SOURCE

#include "data/source.h"
#include "support/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int64_t elements(const td_shape *shape)
{
    int64_t product = 1;
    for (int i = 0; i < shape->rank; i++)
        product *= shape->dim[i];
    return product;
}

/* The last sample of every column, as floats and as class numbers. */
static void gather_last(tdi_source *source)
{
    tdi_error error = {0};
    int64_t last = source->samples - 1;
    for (int i = 0; i < tdi_source_columns(source); i++) {
        int64_t count = elements(&source->columns[i].shape);
        float *values = count < 1 << 16 ? malloc((size_t)count * sizeof *values) : NULL;
        if (values) {
            source->gather(source, i, &last, 1, values, TD_FLOAT32, &error);
            source->gather(source, i, &last, 1, values, TD_INT32, &error);
        }
        free(values);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[MEMORY_PATH];
    tdi_source *source;
    tdi_error error = {0};
    int fd = memory_file(bytes, size, path);
    if (tdi_source_npz.open(&(td_open_args){.path = path}, &source, &error) == TD_OK) {
        gather_last(source);
        source->release(source);
    }
    close(fd);
    return 0;
}
