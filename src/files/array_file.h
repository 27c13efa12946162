/* array_file.h - float32 arrays written a piece at a time, so that they need not fit in memory: one as a .npy file, or
 * several as an .npz file.
 *
 * As atomic.h: the path holds the old content or all of the new. The arrays of an .npz grow in files of their own
 * beside it until commit puts them together, so it takes twice its size on the disk. */
#ifndef TDI_FILES_ARRAY_FILE_H
#define TDI_FILES_ARRAY_FILE_H

#include <tandem/tensor.h>

#include "base/error.h"

enum { TDI_ARRAY_FILE_MOST = 16 };

typedef struct tdi_array_file tdi_array_file;

typedef struct tdi_array_plan {
    char name[64];  /* in an .npz: "y0" */
    td_shape shape; /* its first extent below 0: commit says it */
} tdi_array_plan;

/* By the path's ending: .npz, or else .npy, which holds one array. TD_INVALID_ARGUMENT when an array has more bytes
 * than a file can. */
td_status tdi_array_file_create(const char *path, int count, const tdi_array_plan *arrays, tdi_array_file **file,
                                tdi_error *error);
/* Writes elements [first, first + count) of an array, row-major. Several threads may. */
td_status tdi_array_file_put(tdi_array_file *file, int array, int64_t first, const float *values, int64_t count,
                             tdi_error *error);
/* Both free `file`. `rows` is the first extent of each array. */
td_status tdi_array_file_commit(tdi_array_file *file, int64_t rows, tdi_error *error);
void tdi_array_file_abort(tdi_array_file *file); /* NULL is accepted */

#endif
