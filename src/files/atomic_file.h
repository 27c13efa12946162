/* atomic_file.h - writes a file so that its path holds either the old content or all of the new.
 *
 * The content goes to a new file with an unpredictable name in the same folder. Commit fsyncs it, gives it the old
 * file's mode, renames it to the path and fsyncs the folder. A symbolic link is followed. A path that exists and is no
 * regular file (/dev/null) is refused. */
#ifndef TDI_FILES_ATOMIC_FILE_H
#define TDI_FILES_ATOMIC_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_atomic tdi_atomic;

/* Begins a file. TD_NOT_FOUND: the folder does not exist; TD_IO: it cannot be written to. */
td_status tdi_atomic_create(const char *path, tdi_atomic **file, tdi_error *error);
/* Appends. After TD_IO (a full disk) commit fails too, and only cleans up. */
td_status tdi_atomic_write(tdi_atomic *file, const void *bytes, size_t size, tdi_error *error);
/* Writes at `position` without moving the place of tdi_atomic_write. Several threads may call it. A caller for which it
 * fails must abort the file. */
td_status tdi_atomic_write_at(tdi_atomic *file, int64_t position, const void *bytes, size_t size, tdi_error *error);
td_status tdi_atomic_seek(tdi_atomic *file, int64_t position, tdi_error *error);
/* The path of the new file before commit; borrowed. */
const char *tdi_atomic_temporary(const tdi_atomic *file);
int64_t tdi_atomic_position(const tdi_atomic *file);
/* Moves the new content to the path and frees `file`. When this or an earlier write fails, the path is untouched and
 * the temporary file is removed. */
td_status tdi_atomic_commit(tdi_atomic *file, tdi_error *error);
/* Removes the temporary file and frees `file`. NULL is accepted. */
void tdi_atomic_abort(tdi_atomic *file);
/* Commits when `status`, that of the writes, is TD_OK, else aborts. Returns the first failure. */
td_status tdi_atomic_end(tdi_atomic *file, td_status status, tdi_error *error);
/* Writes a whole file. */
td_status tdi_atomic_save(const char *path, const void *bytes, size_t size, tdi_error *error);

#endif
