/* fuzz_hdf5.c - any bytes as an HDF5 file behind src/files/hdf5.h. */
#include "files/hdf5.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_array(tdi_hdf5 *file, const char *path)
{
    static float values[4096];
    td_shape shape;
    double number;
    tdi_error error = {0};
    int64_t elements = 1;
    if (tdi_hdf5_shape(file, path, &shape, &error) != TD_OK)
        return;
    for (int i = 0; i < shape.rank; i++)
        elements = shape.dim[i] <= 4096 && elements <= 4096 ? elements * shape.dim[i] : 4097;
    if (elements <= 4096)
        tdi_hdf5_read(file, path, &shape, values, &error);
    tdi_hdf5_read_number(file, path, &number, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const paths[] = {"layers/dense/vars/0", "layers/dense/vars/1", "layers/conv2d/vars/0",
                                        "optimizer/vars/0",    "optimizer/vars/1",    "optimizer/vars/2"};
    tdi_hdf5 *file;
    tdi_error error = {0};
    if (tdi_hdf5_open(bytes, size, "input", &file, &error) != TD_OK)
        return 0;
    tdi_hdf5_count(file, "layers/dense/vars");
    tdi_hdf5_count(file, "optimizer/vars");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        read_array(file, paths[i]);
    tdi_hdf5_close(file);
    return 0;
}
