/* hdf5_write.h - HDF5 files made by libhdf5: groups, float arrays and numbers by path. Arrays stay where the caller has
 * them: such a file takes memory for its structures only, and is written piece by piece. They are read by hdf5_read.h,
 * not by libhdf5.
 *
 * libhdf5 is not thread-safe: all calls here take one lock. Its printing of errors is off while they run. */
#ifndef TDI_FILES_HDF5_HDF5_WRITE_H
#define TDI_FILES_HDF5_HDF5_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <tandem/tensor.h>

#include "base/error.h"

typedef struct tdi_hdf5_writer tdi_hdf5_writer;

/* `what` names the file in messages. */
td_status tdi_hdf5_create(const char *what, tdi_hdf5_writer **file, tdi_error *error);
void tdi_hdf5_close(tdi_hdf5_writer *file); /* NULL is accepted */

/* Paths are "layers/dense/vars/0", from the root. Missing groups on the way are made. */
td_status tdi_hdf5_write_group(tdi_hdf5_writer *file, const char *path, tdi_error *error);
/* A text (UTF-8) attribute of a group. */
td_status tdi_hdf5_write_attribute(tdi_hdf5_writer *file, const char *path, const char *name, const char *text,
                                   tdi_error *error);
/* `values` are borrowed until the file is closed. */
td_status tdi_hdf5_write(tdi_hdf5_writer *file, const char *path, const td_shape *shape, const float *values,
                         tdi_error *error);
/* An int32 scalar where it fits, else int64. */
td_status tdi_hdf5_write_int(tdi_hdf5_writer *file, const char *path, int64_t number, tdi_error *error);
/* The file is whole, until more is written: it has *size bytes. */
td_status tdi_hdf5_end(tdi_hdf5_writer *file, uint64_t *size, tdi_error *error);
/* Bytes [at, at + size) of one that is whole. */
void tdi_hdf5_piece(const tdi_hdf5_writer *file, uint64_t at, void *to, size_t size);

#endif
