/* hdf5_rows.h - an array in an HDF5 file on disk, read a few rows at a time: data, which may be larger than memory. */
#ifndef TDI_FILES_HDF5_ROWS_H
#define TDI_FILES_HDF5_ROWS_H

#include <stdbool.h>
#include <tandem/tensor.h>

#include "base/error.h"

typedef struct tdi_hdf5_file tdi_hdf5_file;
typedef struct tdi_hdf5_rows tdi_hdf5_rows;

/* Opens a file to read. TD_NOT_FOUND, TD_IO, or TD_BAD_FILE when it is no HDF5 file. */
td_status tdi_hdf5_file_open(const char *path, tdi_hdf5_file **file, tdi_error *error);
/* Whether there is an array of this name. */
bool tdi_hdf5_file_has(const tdi_hdf5_file *file, const char *name);
void tdi_hdf5_file_close(tdi_hdf5_file *file); /* NULL is accepted; its arrays are closed before */

/* What an array holds: the first extent is the rows. Numbers are read as `dtype`, the smallest of Tandem's that holds
 * the stored ones; unsigned ones of 64 bits beyond int64 become its largest. */
typedef struct tdi_hdf5_facts {
    int64_t rows;
    td_shape shape; /* of one row */
    td_dtype dtype;
} tdi_hdf5_facts;

/* An array of numbers, whole or in chunks, compressed by the filters that libhdf5 has itself. TD_UNSUPPORTED for
 * others, and for arrays that lie in other files. */
td_status tdi_hdf5_rows_open(const tdi_hdf5_file *file, const char *name, tdi_hdf5_rows **rows, tdi_hdf5_facts *facts,
                             tdi_error *error);
/* Rows [first, first + count), packed. May be called by several threads at once, which wait for each other. */
td_status tdi_hdf5_rows_read(const tdi_hdf5_rows *rows, int64_t first, int64_t count, void *to, tdi_error *error);
void tdi_hdf5_rows_close(tdi_hdf5_rows *rows); /* NULL is accepted */

#endif
