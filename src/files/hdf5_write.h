/* hdf5_write.h - HDF5 files made in memory by libhdf5: groups, float arrays and numbers by path. They are read by
 * hdf5_read.h, not by libhdf5.
 *
 * libhdf5 is not thread-safe: all calls here take one lock. Its printing of errors is off while they run. */
#ifndef TDI_FILES_HDF5_WRITE_H
#define TDI_FILES_HDF5_WRITE_H

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
td_status tdi_hdf5_write(tdi_hdf5_writer *file, const char *path, const td_shape *shape, const float *values,
                         tdi_error *error);
/* An int32 scalar where it fits, else int64. */
td_status tdi_hdf5_write_int(tdi_hdf5_writer *file, const char *path, int64_t number, tdi_error *error);
/* The file's bytes, which the caller frees with free(). */
td_status tdi_hdf5_image(tdi_hdf5_writer *file, void **bytes, size_t *size, tdi_error *error);

#endif
