/* hdf5.h - HDF5 files that live in memory: groups, float arrays and numbers by path.
 *
 * A file is opened from bytes and written to bytes, so that whoever calls can verify a checksum before libhdf5, which
 * has a history of crashing on malformed files, sees anything. Only what Keras writes is read: hard links, arrays of
 * floats or integers stored in one piece. Links that lead elsewhere, virtual, external, chunked and compressed arrays
 * are refused.
 *
 * libhdf5 is not thread-safe: all calls here take one lock. Its printing of errors is off while they run. */
#ifndef TDI_FILES_HDF5_H
#define TDI_FILES_HDF5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/tensor.h>

#include "base/error.h"

typedef struct tdi_hdf5 tdi_hdf5;

void tdi_hdf5_close(tdi_hdf5 *file); /* NULL is accepted */

/* ---- reading ---- */

/* Opens a file that lies in memory; `bytes` is copied. `what` names it in messages. TD_BAD_FILE when it is no HDF5
 * file. */
td_status tdi_hdf5_open(const void *bytes, size_t size, const char *what, tdi_hdf5 **file, tdi_error *error);

/* Paths are "layers/dense/vars/0", from the root. False too when a link on the way leads elsewhere. */
bool tdi_hdf5_has(tdi_hdf5 *file, const char *path);
/* How many members a group has; -1 when there is no such group. */
int64_t tdi_hdf5_count(tdi_hdf5 *file, const char *path);
/* An array's shape. TD_NOT_FOUND, or TD_BAD_FILE for what is refused above. */
td_status tdi_hdf5_shape(tdi_hdf5 *file, const char *path, td_shape *shape, tdi_error *error);
/* Reads an array whose shape must be `shape`, converted to float. */
td_status tdi_hdf5_read(tdi_hdf5 *file, const char *path, const td_shape *shape, float *values, tdi_error *error);
/* Reads a scalar. */
td_status tdi_hdf5_read_number(tdi_hdf5 *file, const char *path, double *number, tdi_error *error);

/* ---- writing ---- */

td_status tdi_hdf5_create(const char *what, tdi_hdf5 **file, tdi_error *error);
/* Missing groups on the way are made. */
td_status tdi_hdf5_write_group(tdi_hdf5 *file, const char *path, tdi_error *error);
/* A text (UTF-8) attribute of a group. */
td_status tdi_hdf5_write_attribute(tdi_hdf5 *file, const char *path, const char *name, const char *text,
                                   tdi_error *error);
td_status tdi_hdf5_write(tdi_hdf5 *file, const char *path, const td_shape *shape, const float *values,
                         tdi_error *error);
/* An int32 scalar where it fits, else int64. */
td_status tdi_hdf5_write_int(tdi_hdf5 *file, const char *path, int64_t number, tdi_error *error);
/* The file's bytes, which the caller frees with free(). */
td_status tdi_hdf5_image(tdi_hdf5 *file, void **bytes, size_t *size, tdi_error *error);

#endif
