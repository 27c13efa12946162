/* store.c - bytes in memory, in a file, or in a temporary file, to which they are written in large pieces. */
#define _GNU_SOURCE
#include "files/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/machine.h"
#include "files/open_regular.h"
#include "files/temporary_file.h"

enum { PIECE = 1 << 18 };

struct tdi_store {
    char *name;
    int fd; /* -1: the bytes are in memory */
    int64_t begin, size;
    bool temporary;          /* the file is the store's own; else the next members tell whether it has changed */
    struct timespec changed; /* time of its last change, and its length, when it was opened */
    int64_t length;
    char *bytes; /* in memory: all bytes; with a temporary file: the last ones, not written yet */
    int64_t capacity, pending;
};

static td_status make(const char *name, tdi_store **store, tdi_error *error)
{
    tdi_store *made = calloc(1, sizeof *made);
    *store = NULL;
    if (!made || !(made->name = strdup(name))) {
        free(made);
        return tdi_no_memory(error);
    }
    made->fd = -1;
    *store = made;
    return TD_OK;
}

static td_status keep(tdi_store *made, td_status status, tdi_store **store)
{
    *store = status == TD_OK ? made : NULL;
    if (status != TD_OK)
        tdi_store_free(made);
    return status;
}

void tdi_store_free(tdi_store *store)
{
    if (!store)
        return;
    if (store->fd >= 0)
        close(store->fd);
    free(store->bytes);
    free(store->name);
    free(store);
}

const char *tdi_store_name(const tdi_store *store)
{
    return store->name;
}

int64_t tdi_store_size(const tdi_store *store)
{
    return store->size;
}

void *tdi_store_bytes(const tdi_store *store)
{
    return store->fd < 0 ? store->bytes : NULL;
}

/* ---- files ---- */

static td_status look(tdi_store *store, tdi_error *error)
{
    struct stat facts;
    if (fstat(store->fd, &facts) != 0)
        return tdi_fail(error, TD_IO, "%s: cannot be read: %s", store->name, strerror(errno));
    store->changed = facts.st_mtim;
    store->length = facts.st_size;
    return TD_OK;
}

td_status tdi_store_open(const char *path, tdi_store **store, tdi_error *error)
{
    tdi_store *made;
    TDI_TRY(make(path, &made, error));
    td_status status = tdi_regular_open(path, &made->fd, NULL, error);
    if (status == TD_OK)
        status = look(made, error);
    made->size = made->length;
    return keep(made, status, store);
}

td_status tdi_store_part(int fd, int64_t begin, int64_t size, const char *name, tdi_store **store, tdi_error *error)
{
    tdi_store *made;
    TDI_TRY(make(name, &made, error));
    made->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    made->begin = begin;
    made->size = size;
    td_status status =
        made->fd < 0 ? tdi_fail(error, TD_IO, "%s: cannot be opened: %s", name, strerror(errno)) : look(made, error);
    return keep(made, status, store);
}

/* ---- putting together ---- */

/* Moves the store to a temporary file. */
static td_status begin_file(tdi_store *store, tdi_error *error)
{
    TDI_TRY(tdi_temporary_open(store->name, &store->fd, error));
    TDI_TRY(tdi_temporary_write(store->fd, store->bytes, (size_t)store->size, store->name, error));
    free(store->bytes);
    store->capacity = PIECE;
    store->bytes = malloc(PIECE);
    return store->bytes ? TD_OK : tdi_no_memory(error);
}

td_status tdi_store_create(const char *name, int64_t expected, tdi_store **store, tdi_error *error)
{
    tdi_store *made;
    TDI_TRY(make(name, &made, error));
    made->temporary = true;
    made->capacity = expected > 0 ? expected : PIECE;
    made->bytes = tdi_memory_holds(made->capacity) ? malloc((size_t)made->capacity) : NULL;
    return keep(made, made->bytes ? TD_OK : begin_file(made, error), store);
}

static bool make_room(tdi_store *store, int64_t size)
{
    int64_t capacity = store->capacity;
    while (capacity - store->size < size)
        capacity *= 2;
    if (capacity == store->capacity)
        return true;
    char *grown = tdi_memory_holds(capacity - store->capacity) ? realloc(store->bytes, (size_t)capacity) : NULL;
    if (grown) {
        store->bytes = grown;
        store->capacity = capacity;
    }
    return grown != NULL;
}

static td_status write_pending(tdi_store *store, tdi_error *error)
{
    size_t pending = (size_t)store->pending;
    store->pending = 0;
    return tdi_temporary_write(store->fd, store->bytes, pending, store->name, error);
}

static td_status put_into_file(tdi_store *store, const void *bytes, size_t size, tdi_error *error)
{
    store->size += (int64_t)size;
    if (size > (size_t)(store->capacity - store->pending))
        TDI_TRY(write_pending(store, error));
    if (size > (size_t)store->capacity)
        return tdi_temporary_write(store->fd, bytes, size, store->name, error);
    memcpy(store->bytes + store->pending, bytes, size);
    store->pending += (int64_t)size;
    return TD_OK;
}

td_status tdi_store_put(tdi_store *store, const void *bytes, size_t size, tdi_error *error)
{
    if (store->fd < 0 && !make_room(store, (int64_t)size))
        TDI_TRY(begin_file(store, error));
    if (store->fd >= 0)
        return put_into_file(store, bytes, size, error);
    memcpy(store->bytes + store->size, bytes, size);
    store->size += (int64_t)size;
    return TD_OK;
}

/* Memory that grew by doubling is trimmed to its size. */
td_status tdi_store_end(tdi_store *store, tdi_error *error)
{
    if (store->fd >= 0) {
        TDI_TRY(write_pending(store, error));
        free(store->bytes);
        store->bytes = NULL;
        return TD_OK;
    }
    char *bytes = realloc(store->bytes, (size_t)store->size + 1);
    store->bytes = bytes ? bytes : store->bytes;
    return TD_OK;
}

/* ---- reading ---- */

/* Fails when the file has changed: rows of two versions of it would be data that never existed. */
static td_status check_unchanged(const tdi_store *store, tdi_error *error)
{
    struct stat facts;
    if (store->temporary)
        return TD_OK;
    if (fstat(store->fd, &facts) != 0)
        return tdi_fail(error, TD_IO, "%s: cannot be read: %s", store->name, strerror(errno));
    bool same = facts.st_size == store->length && facts.st_mtim.tv_sec == store->changed.tv_sec &&
                facts.st_mtim.tv_nsec == store->changed.tv_nsec;
    return same ? TD_OK
                : tdi_fail(error, TD_IO, "%s: it was %s while it was being read; leave it alone, and begin again",
                           store->name, facts.st_size < store->length ? "cut short" : "changed");
}

static td_status read_file(const tdi_store *store, int64_t at, char *to, int64_t size, tdi_error *error)
{
    for (int64_t done = 0; done < size;) {
        ssize_t got = pread(store->fd, to + done, (size_t)(size - done), (off_t)(store->begin + at + done));
        if (got == 0)
            return tdi_fail(error, TD_IO, "%s: it ends before what should be at offset %lld", store->name,
                            (long long)(store->begin + at + done));
        if (got < 0 && errno != EINTR)
            return tdi_fail(error, TD_IO, "%s: cannot be read: %s", store->name, strerror(errno));
        done += got > 0 ? got : 0;
    }
    return TD_OK;
}

td_status tdi_store_read(const tdi_store *store, int64_t at, void *to, int64_t size, tdi_error *error)
{
    if (store->fd >= 0) {
        TDI_TRY(check_unchanged(store, error));
        return read_file(store, at, to, size, error);
    }
    if (size)
        memcpy(to, store->bytes + at, (size_t)size);
    return TD_OK;
}
