/* temporary_file.h - a file without a name, which is gone when it is closed, in $TMPDIR (or /var/tmp). */
#ifndef TDI_FILES_TEMPORARY_FILE_H
#define TDI_FILES_TEMPORARY_FILE_H

#include <stddef.h>

#include "base/error.h"

/* A descriptor to read and write, which the caller closes. `what` names in messages what is to be put there. */
td_status tdi_temporary_open(const char *what, int *fd, tdi_error *error);
/* Appends; where there is no room the sentence says what to try. */
td_status tdi_temporary_write(int fd, const void *bytes, size_t size, const char *what, tdi_error *error);

#endif
