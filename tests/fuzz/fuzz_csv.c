/* fuzz_csv.c - any bytes as a CSV file: read or refused, and its samples gathered. */
#define _GNU_SOURCE

#include "data/source.h"
#include "support/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void gather_last(tdi_source *source)
{
    static float values[1 << 16];
    tdi_error error = {0};
    int64_t last = source->samples - 1;
    for (int i = 0; i < tdi_source_columns(source); i++)
        if (tdi_sample_elements(&source->columns[i].shape) < 1 << 16)
            source->gather(source, i, &last, 1, values, i ? TD_INT32 : TD_FLOAT32, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const td_open_args ways[] = {{.missing = TD_MISSING_PREVIOUS, .skip_errors = TD_YES},
                                        {.missing = TD_MISSING_MEAN, .window = 2},
                                        {.features = "x=a:one-hot,y=a:codes", .missing = TD_MISSING_DROP}};
    char path[MEMORY_PATH];
    int fd = memory_file(bytes, size, path);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        tdi_source *source;
        tdi_error error = {0};
        td_open_args args = ways[i];
        args.path = path;
        if (tdi_source_csv.open(&args, &source, &error) != TD_OK)
            continue;
        gather_last(source);
        source->release(source);
    }
    close(fd);
    return 0;
}
