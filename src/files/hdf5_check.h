/* hdf5_check.h - a look at an HDF5 file's structure before libhdf5 is given it. */
#ifndef TDI_FILES_HDF5_CHECK_H
#define TDI_FILES_HDF5_CHECK_H

#include <stddef.h>

#include "base/error.h"

/* TD_BAD_FILE unless every structure that libhdf5 would follow lies inside the file, in a place of its own, and is of a
 * kind that Keras writes: the original format (superblock 0), groups and whole arrays of plain numbers. */
td_status tdi_hdf5_check(const void *bytes, size_t size, const char *what, tdi_error *error);

#endif
