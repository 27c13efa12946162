/* zip.h - zip archives: whole entries, through memory or by stores.
 *
 * Nothing is ever extracted under a name, so names with ".." or a leading "/" do no harm: they are only compared. An
 * entry's checksum has been verified before the caller sees a byte of it. */
#ifndef TDI_FILES_ZIP_H
#define TDI_FILES_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "files/store.h"

typedef struct tdi_zip tdi_zip;

/* Opens an archive to read. TD_NOT_FOUND, TD_IO, or TD_BAD_FILE when it is no zip archive. The caller closes it. */
td_status tdi_zip_open(const char *path, tdi_zip **zip, tdi_error *error);
void tdi_zip_close(tdi_zip *zip); /* NULL is accepted */

int64_t tdi_zip_count(const tdi_zip *zip);
const char *tdi_zip_name(const tdi_zip *zip, int64_t index); /* borrowed until closed; NULL when there is none */
bool tdi_zip_has(const tdi_zip *zip, const char *name);

/* Reads a whole entry into a buffer that the caller frees with free(); aligned for any number. TD_NOT_FOUND when there
 * is no such entry; TD_BAD_FILE when it is truncated, fails its checksum, is larger than `limit` bytes, or expands as
 * only a decompression bomb does (beyond 256 MiB and a hundred times its compressed size). */
td_status tdi_zip_read(tdi_zip *zip, const char *name, size_t limit, void **bytes, size_t *size, tdi_error *error);

/* The same as a store, which the caller frees and which outlives the archive's closing: what memory does not hold is
 * read where it lies in the archive, if it lies there uncompressed, else unpacked into a temporary file. */
td_status tdi_zip_store(tdi_zip *zip, const char *name, tdi_store **store, tdi_error *error);
/* The same for what is read only once: if it lies there uncompressed it stays there, though memory might hold it. */
td_status tdi_zip_store_in_place(tdi_zip *zip, const char *name, tdi_store **store, tdi_error *error);

typedef struct tdi_zip_entry {
    const char *name;
    const void *bytes;
    size_t size;
    /* NULL: `bytes` is the content; else what is made of it, piece by piece: bytes [at, at + size). */
    void (*piece)(const void *bytes, uint64_t at, void *to, size_t size);
} tdi_zip_entry;

/* Writes an archive of uncompressed entries, atomically (atomic.h): on failure nothing at `path` has changed. */
td_status tdi_zip_write(const char *path, int count, const tdi_zip_entry *entries, tdi_error *error);

typedef struct tdi_zip_file {
    const char *name, *path;
} tdi_zip_file;

/* The same with entries that hold what is in files. */
td_status tdi_zip_write_files(const char *path, int count, const tdi_zip_file *files, tdi_error *error);

#endif
