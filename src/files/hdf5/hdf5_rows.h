/* hdf5_rows.h - an array in an HDF5 file, read a few rows at a time: data, which may be larger than memory. */
#ifndef TDI_FILES_HDF5_HDF5_ROWS_H
#define TDI_FILES_HDF5_HDF5_ROWS_H

#include <stdbool.h>
#include <tandem/tensor.h>

#include "files/hdf5/hdf5_file.h"

typedef struct tdi_hdf5_rows tdi_hdf5_rows;

/* What an array holds: the first extent is the rows; a single number, without axes, is one row. Extents may be 0.
 * Numbers are read as `dtype`, the smallest of Tandem's that holds the stored ones; unsigned ones of 64 bits beyond
 * int64 become its largest. */
typedef struct tdi_hdf5_facts {
    td_shape shape;
    td_dtype dtype;
} tdi_hdf5_facts;

/* Opens an array of integers or floats: whole, or in chunks, as they are or by gzip, shuffle and fletcher32. What was
 * never written is read as the array's fill value. TD_NOT_FOUND, TD_BAD_FILE, or TD_UNSUPPORTED for others, and for
 * arrays that lie in other files. `file` is borrowed until the array is closed. */
td_status tdi_hdf5_rows_open(tdi_hdf5_file *file, const char *name, tdi_hdf5_rows **rows, tdi_hdf5_facts *facts,
                             tdi_error *error);
/* Rows [first, first + count), packed. May be called by several threads at once. */
td_status tdi_hdf5_rows_read(tdi_hdf5_rows *rows, int64_t first, int64_t count, void *to, tdi_error *error);
void tdi_hdf5_rows_close(tdi_hdf5_rows *rows); /* NULL is accepted */

#endif
