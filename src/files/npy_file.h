/* npy_file.h - NumPy's array files: .npy (versions 1 to 3) and .npz (a zip archive of them).
 *
 * Element types: integers of 8 to 64 bits, floats of 16 to 64 bits, in either order of bytes, and b1 (a bool is a
 * uint8 0 or 1). Anything else is refused, naming the type. */
#ifndef TDI_FILES_NPY_FILE_H
#define TDI_FILES_NPY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <tandem/tensor.h>

#include "base/error.h"
#include "files/stored_numbers.h"
#include "files/zip.h"

enum { TDI_NPY_HEADER = 256 };

typedef struct tdi_npy {
    tdi_numbers numbers;
    td_shape shape;   /* the whole array: [samples, ...]; rank 0 is one number */
    bool fortran;     /* column-major: the first index runs fastest */
    int64_t elements; /* product of the extents; their bytes are known to fit the file */
    size_t offset;    /* of the first element, from the file's begin; not necessarily aligned */
} tdi_npy;

/* Parses the header of a .npy file that lies in memory whole (`size` bytes), and checks that all elements are there.
 * `what` names the file, or the array, in messages. TD_BAD_FILE, or TD_UNSUPPORTED for an element type or rank. */
td_status tdi_npy_parse(const void *bytes, size_t size, const char *what, tdi_npy *npy, tdi_error *error);
/* The same of one in a store; only the header is read. */
td_status tdi_npy_look(const tdi_store *store, tdi_npy *npy, tdi_error *error);

/* True when an .npz archive holds `array`, as "array.npy" or "array". */
bool tdi_npz_has(const tdi_zip *zip, const char *array);
/* An array of an .npz archive: `store`, which the caller frees, is the whole .npy file. */
td_status tdi_npz_open(tdi_zip *zip, const char *array, tdi_npy *npy, tdi_store **store, tdi_error *error);

/* The header of a version 1 .npy file of a C-order array, which follows it; returns its bytes, `least` or more. */
size_t tdi_npy_header(td_dtype dtype, const td_shape *shape, size_t least, char header[TDI_NPY_HEADER]);
/* A C-order array as the bytes of a version 1 .npy file, which the caller frees with free(). */
td_status tdi_npy_image(td_dtype dtype, const td_shape *shape, const void *elements, void **bytes, size_t *size,
                        tdi_error *error);
/* Writes a C-order array as a version 1 .npy file, atomically (atomic.h). */
td_status tdi_npy_write(const char *path, td_dtype dtype, const td_shape *shape, const void *elements,
                        tdi_error *error);

#endif
