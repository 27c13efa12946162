/* open_regular.h - opening a file to read it, whatever stands under its name. */
#ifndef TDI_FILES_OPEN_REGULAR_H
#define TDI_FILES_OPEN_REGULAR_H

#include <stdint.h>

#include "base/error.h"

/* Opens a regular file, whose descriptor the caller closes, and tells its size; a pipe, at which opening would wait, a
 * folder and a device are TD_BAD_FILE. TD_NOT_FOUND, or TD_IO. `size` may be NULL. */
td_status tdi_regular_open(const char *path, int *fd, int64_t *size, tdi_error *error);

#endif
