/* fuzz_hdf5.c - any bytes as an HDF5 file of weights behind src/files/hdf5/hdf5_read.h. */
#include "files/hdf5/hdf5_list.h"
#include "files/hdf5/hdf5_read.h"
#include "files/hdf5/hdf5_rows.h"
#include "support/memory_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_array(tdi_hdf5_file *file, const char *path)
{
    static float values[4096];
    tdi_hdf5_rows *rows;
    tdi_hdf5_facts facts;
    double number;
    tdi_error error = {0};
    int64_t elements = 1;
    if (tdi_hdf5_rows_open(file, path, &rows, &facts, &error) != TD_OK)
        return;
    tdi_hdf5_rows_close(rows);
    for (int i = 0; i < facts.shape.rank; i++)
        elements = facts.shape.dim[i] <= 4096 && elements <= 4096 ? elements * facts.shape.dim[i] : 4097;
    if (elements <= 4096)
        tdi_hdf5_read(file, path, &facts.shape, values, &error);
    tdi_hdf5_read_number(file, path, &number, &error);
}

static void read_arrays(tdi_hdf5_file *file)
{
    static const char *const paths[] = {"layers/dense/vars/0", "layers/dense/vars/1", "layers/conv2d/vars/0",
                                        "optimizer/vars/0",    "optimizer/vars/1",    "optimizer/vars/2"};
    int64_t count;
    tdi_hdf5_list list;
    tdi_error error = {0};
    tdi_hdf5_list_arrays(file, &list, &error);
    tdi_hdf5_list_release(&list);
    tdi_hdf5_file_count(file, "layers/dense/vars", &count, &error);
    tdi_hdf5_file_count(file, "optimizer/vars", &count, &error);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        read_array(file, paths[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tdi_hdf5_file *file;
    tdi_error error = {0};
    tdi_store *store = memory_store(bytes, size, "input");
    if (tdi_hdf5_file_in_store(store, "input", &file, &error) == TD_OK) {
        read_arrays(file);
        tdi_hdf5_file_close(file);
    }
    tdi_store_free(store);
    return 0;
}
