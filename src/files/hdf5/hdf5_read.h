/* hdf5_read.h - reads whole arrays of an HDF5 file as floats; models' weights are read so. */
#ifndef TDI_FILES_HDF5_HDF5_READ_H
#define TDI_FILES_HDF5_HDF5_READ_H

#include <tandem/tensor.h>

#include "files/hdf5/hdf5_file.h"

/* Reads an array of integers or floats, whose shape must be `shape`. TD_NOT_FOUND, TD_BAD_FILE or TD_UNSUPPORTED. */
td_status tdi_hdf5_read(tdi_hdf5_file *file, const char *path, const td_shape *shape, float *values, tdi_error *error);
/* Reads a single number, an array without axes. */
td_status tdi_hdf5_read_number(tdi_hdf5_file *file, const char *path, double *number, tdi_error *error);

#endif
