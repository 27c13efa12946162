/* npy.h - NumPy's array files: .npy (versions 1 to 3) and .npz (a zip archive of them).
 *
 * Element types: little-endian f4, f8, i4, i8, and u1 and b1 (a bool is a uint8 0 or 1). Anything else is refused,
 * naming the type. */
#ifndef TDI_FILES_NPY_H
#define TDI_FILES_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <tandem/tensor.h>

#include "base/error.h"
#include "files/zip.h"

enum { TDI_NPY_HEADER = 256 };

typedef struct tdi_npy {
    td_dtype dtype;
    td_shape shape;   /* the whole array: [samples, ...]; rank 0 is one number */
    bool fortran;     /* column-major: the first index runs fastest */
    int64_t elements; /* product of the extents; their bytes are known to fit the file */
    size_t offset;    /* of the first element, from the file's begin; not necessarily aligned */
} tdi_npy;

/* Parses the header of a .npy file that lies in memory whole (`size` bytes, mapped or read), and checks that all
 * elements are there. `what` names the file, or the array, in messages. TD_BAD_FILE, or TD_UNSUPPORTED for an element
 * type or rank. */
td_status tdi_npy_parse(const void *bytes, size_t size, const char *what, tdi_npy *npy, tdi_error *error);

/* True when an .npz archive holds `array`, as "array.npy" or "array". */
bool tdi_npz_has(const tdi_zip *zip, const char *array);
/* Reads and parses an array of an .npz archive. `bytes` is the whole .npy file: elements begin at bytes + npy->offset;
 * the caller frees it with free(). */
td_status tdi_npz_read(tdi_zip *zip, const char *array, tdi_npy *npy, void **bytes, tdi_error *error);

/* The header of a version 1 .npy file of a C-order array, which follows it; returns its bytes, `least` or more. */
size_t tdi_npy_header(td_dtype dtype, const td_shape *shape, size_t least, char header[TDI_NPY_HEADER]);
/* A C-order array as the bytes of a version 1 .npy file, which the caller frees with free(). */
td_status tdi_npy_image(td_dtype dtype, const td_shape *shape, const void *elements, void **bytes, size_t *size,
                        tdi_error *error);
/* Writes a C-order array as a version 1 .npy file, atomically (atomic.h). */
td_status tdi_npy_write(const char *path, td_dtype dtype, const td_shape *shape, const void *elements,
                        tdi_error *error);

#endif
