/* npy_file.h - NumPy's array files: .npy (versions 1 to 3) and .npz (a zip archive of them).
 *
 * Element types are integers of 8 to 64 bits and floats of 16 to 64 bits, in either byte order, and b1 (a bool becomes
 * a uint8 of 0 or 1). Other types are refused by name. */
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
    td_shape shape;   /* [samples, ...]; rank 0 is a single number */
    bool fortran;     /* column-major: the first index runs fastest */
    int64_t elements; /* product of the extents; the file has been found to hold them */
    size_t offset;    /* byte offset of the first element in the file; need not be aligned */
} tdi_npy;

/* Parses the header of a whole .npy file in memory and checks that all elements are there. `what` names the file or the
 * array in messages. TD_BAD_FILE, or TD_UNSUPPORTED for an element type or a rank. */
td_status tdi_npy_parse(const void *bytes, size_t size, const char *what, tdi_npy *npy, tdi_error *error);
/* The same for a file in a store, of which only the header is read. */
td_status tdi_npy_look(const tdi_store *store, tdi_npy *npy, tdi_error *error);

/* True when an .npz archive has `array`, as "array.npy" or "array". */
bool tdi_npz_has(const tdi_zip *zip, const char *array);
/* Opens an array of an .npz archive. *store is its whole .npy file, which the caller frees. */
td_status tdi_npz_open(tdi_zip *zip, const char *array, tdi_npy *npy, tdi_store **store, tdi_error *error);

/* Writes the header of a version 1 .npy file of a C-order array and returns its size in bytes, `least` or more. */
size_t tdi_npy_header(td_dtype dtype, const td_shape *shape, size_t least, char header[TDI_NPY_HEADER]);
/* Makes the bytes of a version 1 .npy file of a C-order array; the caller frees them with free(). */
td_status tdi_npy_image(td_dtype dtype, const td_shape *shape, const void *elements, void **bytes, size_t *size,
                        tdi_error *error);
/* Writes a C-order array as a version 1 .npy file, atomically (atomic_file.h). */
td_status tdi_npy_write(const char *path, td_dtype dtype, const td_shape *shape, const void *elements,
                        tdi_error *error);

#endif
