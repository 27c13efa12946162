/* open_regular.h - opens a regular file for reading, and refuses everything else safely. */
#ifndef TDI_FILES_OPEN_REGULAR_H
#define TDI_FILES_OPEN_REGULAR_H

#include <stdint.h>

#include "base/error.h"

/* Opens a file and sets its size in bytes; the caller closes *fd, and `size` may be NULL. TD_BAD_FILE for a pipe
 * (opening which could block), a folder or a device; TD_NOT_FOUND; TD_IO. */
td_status tdi_regular_open(const char *path, int *fd, int64_t *size, tdi_error *error);

#endif
