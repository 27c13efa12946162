/* zip.h - reads and writes zip archives, whole entries at a time.
 *
 * No entry is ever extracted under its name, so a name with ".." or a leading "/" does no harm. An entry's checksum is
 * verified before the caller sees a byte of it. */
#ifndef TDI_FILES_ZIP_H
#define TDI_FILES_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "files/store.h"

typedef struct tdi_zip tdi_zip;

/* Opens an archive for reading; the caller closes it. TD_NOT_FOUND, TD_IO, or TD_BAD_FILE when it is no zip archive. */
td_status tdi_zip_open(const char *path, tdi_zip **zip, tdi_error *error);
void tdi_zip_close(tdi_zip *zip); /* accepts NULL */

int64_t tdi_zip_count(const tdi_zip *zip);
const char *tdi_zip_name(const tdi_zip *zip, int64_t index); /* borrowed; NULL when there is no such entry */
bool tdi_zip_has(const tdi_zip *zip, const char *name);

/* Reads a whole entry into memory that is aligned for any number; the caller frees it with free(). TD_NOT_FOUND when
 * there is no such entry. TD_BAD_FILE when it is truncated, fails its checksum, exceeds `limit` bytes, or is a
 * decompression bomb (more than 256 MiB and more than a hundred times its compressed size). */
td_status tdi_zip_read(tdi_zip *zip, const char *name, size_t limit, void **bytes, size_t *size, tdi_error *error);

/* The same as a store, which may outlive the archive's closing; the caller frees it. An entry that memory does not hold
 * is read in place when it is uncompressed, else unpacked into a temporary file. */
td_status tdi_zip_store(tdi_zip *zip, const char *name, tdi_store **store, tdi_error *error);
/* The same for an entry that is read only once: an uncompressed one is always read in place. */
td_status tdi_zip_store_in_place(tdi_zip *zip, const char *name, tdi_store **store, tdi_error *error);

typedef struct tdi_zip_entry {
    const char *name;
    const void *bytes;
    size_t size;
    /* Writes bytes [at, at + size) of the content, which it makes from `bytes`, to `to`. Called by the writing thread,
     * in order. NULL: `bytes` is the content. */
    void (*piece)(const void *bytes, uint64_t at, void *to, size_t size);
} tdi_zip_entry;

/* Writes an archive of uncompressed entries, atomically (atomic_file.h): on failure nothing at `path` has changed. */
td_status tdi_zip_write(const char *path, int count, const tdi_zip_entry *entries, tdi_error *error);

typedef struct tdi_zip_file {
    const char *name, *path;
} tdi_zip_file;

/* The same for entries whose content is in files. */
td_status tdi_zip_write_files(const char *path, int count, const tdi_zip_file *files, tdi_error *error);

#endif
