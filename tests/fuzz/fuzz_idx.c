/* fuzz_idx.c - any bytes as an IDX file, gzipped or not: read or refused, never a crash. */
#define _GNU_SOURCE

#include "data/source/idx_file.h"
#include "support/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[MEMORY_PATH];
    tdi_array array;
    tdi_error error = {0};
    tdi_table *table;
    int fd = memory_file(bytes, size, path);
    if (tdi_table_create(path, &table, &error) != TD_OK)
        abort();
    if (tdi_idx_read(path, &array, &error) == TD_OK && tdi_table_add(table, false, "x", 1, &array, &error) == TD_OK &&
        tdi_sample_elements(&table->reader.source.columns[0].shape) < 1 << 16) {
        float *x = malloc((size_t)tdi_sample_elements(&table->reader.source.columns[0].shape) * sizeof *x);
        int64_t last = array.samples - 1;
        if (x) {
            table->reader.source.gather(&table->reader.source, 0, &last, 1, x, TD_FLOAT32, &error);
            table->reader.source.gather(&table->reader.source, 0, &last, 1, x, TD_INT32, &error);
        }
        free(x);
    }
    table->reader.source.release(&table->reader.source);
    close(fd);
    return 0;
}
