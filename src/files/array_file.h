/* array_file.h - writes float32 arrays piece by piece, so that they need not fit in memory: one as a .npy file, or
 * several as an .npz file. Predictions go straight into such a file.
 *
 * As with atomic_file.h, the path holds either the old content or all of the new. The arrays of an .npz are written to
 * temporary files and put together by commit, so an .npz takes twice its size on the disk. */
#ifndef TDI_FILES_ARRAY_FILE_H
#define TDI_FILES_ARRAY_FILE_H

#include <tandem/tensor.h>

#include "base/error.h"

enum { TDI_ARRAY_FILE_MOST = 16 };

typedef struct tdi_array_file tdi_array_file;

typedef struct tdi_array_plan {
    char name[64];  /* in an .npz: "y0" */
    td_shape shape; /* a first extent below 0 is given to commit instead */
} tdi_array_plan;

/* Begins an .npz file when the path ends so, else a .npy file, which holds one array. TD_INVALID_ARGUMENT when an array
 * has more bytes than a file can. */
td_status tdi_array_file_create(const char *path, int count, const tdi_array_plan *arrays, tdi_array_file **file,
                                tdi_error *error);
/* Writes elements [first, first + count) of an array, in row-major order. Several threads may call it. */
td_status tdi_array_file_put(tdi_array_file *file, int array, int64_t first, const float *values, int64_t count,
                             tdi_error *error);
/* Ends the file and frees `file`, even on failure. `rows` is the first extent of each array. */
td_status tdi_array_file_commit(tdi_array_file *file, int64_t rows, tdi_error *error);
/* Removes what was written and frees `file`. NULL is accepted. */
void tdi_array_file_abort(tdi_array_file *file);

#endif
