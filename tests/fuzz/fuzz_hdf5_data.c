/* fuzz_hdf5_data.c - any bytes as an HDF5 file of data: read or refused, and rows of its arrays gathered. */
#define _GNU_SOURCE

#include "files/hdf5/hdf5_rows.h"
#include "support/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_rows(tdi_hdf5_rows *rows, const tdi_hdf5_facts *facts)
{
    static char values[1 << 16];
    tdi_error error = {0};
    int64_t row = (int64_t)td_dtype_size(facts->dtype), count = facts->shape.rank ? facts->shape.dim[0] : 1;
    for (int i = 1; i < facts->shape.rank; i++)
        if (__builtin_mul_overflow(row, facts->shape.dim[i], &row) || row > (int64_t)sizeof values)
            return;
    int64_t most = row ? (int64_t)sizeof values / row : count;
    tdi_hdf5_rows_read(rows, 0, count < most ? count : most, values, &error);
    if (count)
        tdi_hdf5_rows_read(rows, count - 1, 1, values, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"x", "/y", "group/inner", "n0", "n17"};
    char path[MEMORY_PATH];
    tdi_hdf5_file *file;
    tdi_error error = {0};
    int fd = memory_file(bytes, size, path);
    if (tdi_hdf5_file_open(path, &file, &error) == TD_OK) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            tdi_hdf5_rows *rows;
            tdi_hdf5_facts facts;
            if (tdi_hdf5_rows_open(file, names[i], &rows, &facts, &error) != TD_OK)
                continue;
            read_rows(rows, &facts);
            tdi_hdf5_rows_close(rows);
        }
        tdi_hdf5_file_close(file);
    }
    close(fd);
    return 0;
}
