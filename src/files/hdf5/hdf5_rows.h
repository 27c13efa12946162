/* hdf5_rows.h - reads an array in an HDF5 file a few rows at a time, so that it may be larger than memory. */
#ifndef TDI_FILES_HDF5_HDF5_ROWS_H
#define TDI_FILES_HDF5_HDF5_ROWS_H

#include <stdbool.h>
#include <tandem/tensor.h>

#include "files/hdf5/hdf5_file.h"

typedef struct tdi_hdf5_rows tdi_hdf5_rows;

/* An array's shape and type. The first extent is the number of rows; an array without axes is one row. Extents may be
 * 0. Numbers are read as `dtype`, the smallest of Tandem's that holds them; unsigned 64-bit numbers beyond int64 become
 * its largest. */
typedef struct tdi_hdf5_facts {
    td_shape shape;
    td_dtype dtype;
} tdi_hdf5_facts;

/* Opens an array of integers or floats, contiguous or in chunks, which may be filtered by gzip, shuffle and fletcher32.
 * Elements that were never written are read as the array's fill value. TD_NOT_FOUND, TD_BAD_FILE, or TD_UNSUPPORTED for
 * other arrays and for those in other files. `file` is borrowed until the array is closed. */
td_status tdi_hdf5_rows_open(tdi_hdf5_file *file, const char *name, tdi_hdf5_rows **rows, tdi_hdf5_facts *facts,
                             tdi_error *error);
/* Reads rows [first, first + count), packed. Several threads may call it. */
td_status tdi_hdf5_rows_read(tdi_hdf5_rows *rows, int64_t first, int64_t count, void *to, tdi_error *error);
void tdi_hdf5_rows_close(tdi_hdf5_rows *rows); /* accepts NULL */

#endif
