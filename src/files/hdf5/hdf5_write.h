/* hdf5_write.h - makes HDF5 files by libhdf5: groups, float arrays and numbers by path. hdf5_read.h reads them again.
 *
 * Arrays stay in the caller's memory, so that a file takes memory for its structures only; the caller then takes its
 * bytes piece by piece. libhdf5 is not thread-safe: all calls here take one lock. Its printing of errors is off
 * meanwhile. */
#ifndef TDI_FILES_HDF5_HDF5_WRITE_H
#define TDI_FILES_HDF5_HDF5_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <tandem/tensor.h>

#include "base/error.h"

typedef struct tdi_hdf5_writer tdi_hdf5_writer;

/* Begins a file, which `what` names in messages. */
td_status tdi_hdf5_create(const char *what, tdi_hdf5_writer **file, tdi_error *error);
void tdi_hdf5_close(tdi_hdf5_writer *file); /* accepts NULL */

/* Makes a group. Paths start at the root, as "layers/dense/vars/0"; missing groups on the way are made. */
td_status tdi_hdf5_write_group(tdi_hdf5_writer *file, const char *path, tdi_error *error);
/* Adds a UTF-8 text attribute to a group. */
td_status tdi_hdf5_write_attribute(tdi_hdf5_writer *file, const char *path, const char *name, const char *text,
                                   tdi_error *error);
/* Adds an array; `values` are borrowed until the file is closed. NULL: zeros. */
td_status tdi_hdf5_write(tdi_hdf5_writer *file, const char *path, const td_shape *shape, const float *values,
                         tdi_error *error);
/* Adds a scalar: int32 where the number fits, else int64. */
td_status tdi_hdf5_write_int(tdi_hdf5_writer *file, const char *path, int64_t number, tdi_error *error);
/* Completes the file, until more is added, and sets its size in bytes. */
td_status tdi_hdf5_end(tdi_hdf5_writer *file, uint64_t *size, tdi_error *error);
/* Copies bytes [at, at + size) of a complete file. */
void tdi_hdf5_piece(const tdi_hdf5_writer *file, uint64_t at, void *to, size_t size);

#endif
