/* atomic_file.h - writing a file so that its path holds either the old content or all of the new.
 *
 * The content goes to a new file with an unpredictable name in the same folder; commit fsyncs it, gives it the old
 * file's mode, renames it to the path, and fsyncs the folder. A path that is a symbolic link is followed. What exists
 * and is not a regular file (/dev/null) is refused. */
#ifndef TDI_FILES_ATOMIC_FILE_H
#define TDI_FILES_ATOMIC_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_atomic tdi_atomic;

/* TD_NOT_FOUND when the folder does not exist; TD_IO when it cannot be written. */
td_status tdi_atomic_create(const char *path, tdi_atomic **file, tdi_error *error);
/* Writes at the current position; TD_IO (a full disk) leaves only commit's and abort's clean-up to do. */
td_status tdi_atomic_write(tdi_atomic *file, const void *bytes, size_t size, tdi_error *error);
/* Writes at `position` and leaves the current one; several threads may. Whoever sees it fail aborts. */
td_status tdi_atomic_write_at(tdi_atomic *file, int64_t position, const void *bytes, size_t size, tdi_error *error);
td_status tdi_atomic_seek(tdi_atomic *file, int64_t position, tdi_error *error);
/* The path of the new file until it is committed; borrowed. */
const char *tdi_atomic_temporary(const tdi_atomic *file);
int64_t tdi_atomic_position(const tdi_atomic *file);
/* Makes the new content the path's and frees `file`. After a failure, or one of an earlier write, the path is untouched
 * and the temporary file is gone. */
td_status tdi_atomic_commit(tdi_atomic *file, tdi_error *error);
/* Gives up: removes the temporary file and frees `file`. NULL is accepted. */
void tdi_atomic_abort(tdi_atomic *file);
/* Commits when `status`, that of the writes, is TD_OK, else gives up. Returns what went wrong first. */
td_status tdi_atomic_end(tdi_atomic *file, td_status status, tdi_error *error);
/* All of it at once. */
td_status tdi_atomic_save(const char *path, const void *bytes, size_t size, tdi_error *error);

#endif
