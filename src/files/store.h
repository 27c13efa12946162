/* store.h - bytes that may be more than memory holds, read anywhere by several threads: a file, a part of one, or what
 * is put together piece by piece, in memory as long as it may be held there (tdi_memory_holds), then in a temporary
 * file (temporary.h). */
#ifndef TDI_FILES_STORE_H
#define TDI_FILES_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_store tdi_store;

/* A regular file. TD_NOT_FOUND, TD_IO, or TD_BAD_FILE. All stores are freed by the caller. */
td_status tdi_store_open(const char *path, tdi_store **store, tdi_error *error);
/* Bytes [begin, begin + size) of an open file, whose descriptor stays the caller's. `name` is for messages. */
td_status tdi_store_part(int fd, int64_t begin, int64_t size, const char *name, tdi_store **store, tdi_error *error);
/* An empty one, for `expected` bytes; 0: how many is not known. */
td_status tdi_store_create(const char *name, int64_t expected, tdi_store **store, tdi_error *error);
void tdi_store_free(tdi_store *store); /* NULL is accepted */

/* Appends to one that was created; tdi_store_end follows the last piece, before anything is read. */
td_status tdi_store_put(tdi_store *store, const void *bytes, size_t size, tdi_error *error);
td_status tdi_store_end(tdi_store *store, tdi_error *error);

const char *tdi_store_name(const tdi_store *store);
int64_t tdi_store_size(const tdi_store *store);
void *tdi_store_bytes(const tdi_store *store); /* all of them, aligned for any number; NULL: they lie in a file */
/* Reads [at, at + size), which lie within it. A file that has become shorter, or has been written to, is TD_IO. */
td_status tdi_store_read(const tdi_store *store, int64_t at, void *to, int64_t size, tdi_error *error);

#endif
