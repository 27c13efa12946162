/* store.h - bytes that may exceed memory, which several threads read at any place.
 *
 * A store is a file, a range of one, or bytes that were appended piece by piece: in memory as long as that may hold
 * them (tdi_memory_holds), then in a temporary file (temporary_file.h). */
#ifndef TDI_FILES_STORE_H
#define TDI_FILES_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_store tdi_store;

/* Makes a store of a regular file. TD_NOT_FOUND, TD_IO, or TD_BAD_FILE. The caller frees every store. */
td_status tdi_store_open(const char *path, tdi_store **store, tdi_error *error);
/* Makes a store of bytes [begin, begin + size) of an open file; the descriptor stays the caller's. `name` is for
 * messages. */
td_status tdi_store_part(int fd, int64_t begin, int64_t size, const char *name, tdi_store **store, tdi_error *error);
/* Makes an empty store for `expected` bytes; 0: their number is not known. */
td_status tdi_store_create(const char *name, int64_t expected, tdi_store **store, tdi_error *error);
void tdi_store_free(tdi_store *store); /* accepts NULL */

/* Appends to a created store. tdi_store_end must follow the last piece before anything is read. */
td_status tdi_store_put(tdi_store *store, const void *bytes, size_t size, tdi_error *error);
td_status tdi_store_end(tdi_store *store, tdi_error *error);

const char *tdi_store_name(const tdi_store *store);
int64_t tdi_store_size(const tdi_store *store);
void *tdi_store_bytes(const tdi_store *store); /* all bytes, aligned for any number; NULL: they are in a file */
/* Reads bytes [at, at + size), which the store has. Several threads may call it. TD_IO when the file was changed or
 * truncated since it was opened. */
td_status tdi_store_read(const tdi_store *store, int64_t at, void *to, int64_t size, tdi_error *error);

#endif
