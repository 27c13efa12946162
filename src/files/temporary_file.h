/* temporary_file.h - a file without a name in $TMPDIR (or /var/tmp), which vanishes when it is closed. */
#ifndef TDI_FILES_TEMPORARY_FILE_H
#define TDI_FILES_TEMPORARY_FILE_H

#include <stddef.h>

#include "base/error.h"

/* Opens one for reading and writing; the caller closes *fd. `what` names its content in messages. */
td_status tdi_temporary_open(const char *what, int *fd, tdi_error *error);
/* Appends. When the disk is full the sentence says what to try. */
td_status tdi_temporary_write(int fd, const void *bytes, size_t size, const char *what, tdi_error *error);

#endif
