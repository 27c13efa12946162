/* atomic_file.c - writes beside the path, fsyncs, renames. */
#define _GNU_SOURCE
#include "files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size_limit.h"

struct tdi_atomic {
    char path[PATH_MAX], folder[PATH_MAX], temporary[PATH_MAX + 64];
    int fd;
    bool replaces; /* a file exists at the path; `mode` is its mode */
    mode_t mode;
    bool failed;
    int64_t position;
};

static td_status os_failure(tdi_error *error, const char *what, const char *path)
{
    int code = errno;
    return tdi_fail(error, code == ENOENT ? TD_NOT_FOUND : TD_IO, "cannot %s \"%s\": %s", what, path, strerror(code));
}

/* Resolves links, and inspects a file that exists at the path. */
static td_status resolve(tdi_atomic *file, const char *path, tdi_error *error)
{
    struct stat old;
    if (!path)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "cannot write: the path is NULL");
    if (!path[0] || strlen(path) >= sizeof file->path)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "cannot write \"%.64s\": the path is empty or too long", path);
    strcpy(file->path, path);
    if (stat(path, &old) != 0)
        return errno == ENOENT ? TD_OK : os_failure(error, "write", path);
    if (!S_ISREG(old.st_mode))
        return tdi_fail(error, TD_IO, "cannot write \"%s\": it is %s; give the name of a file", path,
                        S_ISDIR(old.st_mode) ? "a folder" : "no regular file");
    if (!realpath(path, file->path) || access(file->path, W_OK) != 0)
        return os_failure(error, "write", path);
    file->replaces = true;
    file->mode = old.st_mode & 07777;
    return TD_OK;
}

static void split_folder(tdi_atomic *file)
{
    const char *slash = strrchr(file->path, '/');
    size_t length = slash == file->path ? 1 : slash ? (size_t)(slash - file->path) : 0;
    memcpy(file->folder, file->path, length);
    file->folder[length] = '\0';
    if (!slash)
        strcpy(file->folder, ".");
}

static td_status open_temporary(tdi_atomic *file, tdi_error *error)
{
    for (int attempt = 0; attempt < 16; attempt++) {
        unsigned long long name;
        if (getrandom(&name, sizeof name, 0) != (ssize_t)sizeof name)
            return os_failure(error, "draw a name beside", file->path);
        snprintf(file->temporary, sizeof file->temporary, "%s/.tandem-%016llx.tmp", file->folder, name);
        file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file->fd >= 0)
            return TD_OK;
        if (errno != EEXIST)
            break;
    }
    return os_failure(error, "write in the folder", file->folder);
}

td_status tdi_atomic_create(const char *path, tdi_atomic **file, tdi_error *error)
{
    *file = NULL;
    tdi_atomic *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    td_status status = resolve(made, path, error);
    if (status == TD_OK) {
        split_folder(made);
        status = open_temporary(made, error);
    }
    if (status != TD_OK) {
        free(made);
        return status;
    }
    *file = made;
    return TD_OK;
}

td_status tdi_atomic_write(tdi_atomic *file, const void *bytes, size_t size, tdi_error *error)
{
    size_t written = tdi_write_whole(file->fd, bytes, size, NULL);
    file->position += (int64_t)written;
    if (written == size)
        return TD_OK;
    file->failed = true;
    return tdi_fail(error, TD_IO, "cannot write \"%s\": %s (%lld bytes were written)", file->path, strerror(errno),
                    (long long)file->position);
}

td_status tdi_atomic_write_at(tdi_atomic *file, int64_t position, const void *bytes, size_t size, tdi_error *error)
{
    if (tdi_write_whole(file->fd, bytes, size, &position) == size)
        return TD_OK;
    return os_failure(error, "write", file->path);
}

const char *tdi_atomic_temporary(const tdi_atomic *file)
{
    return file->temporary;
}

td_status tdi_atomic_seek(tdi_atomic *file, int64_t position, tdi_error *error)
{
    if (lseek(file->fd, position, SEEK_SET) < 0) {
        file->failed = true;
        return os_failure(error, "move within", file->path);
    }
    file->position = position;
    return TD_OK;
}

int64_t tdi_atomic_position(const tdi_atomic *file)
{
    return file->position;
}

/* A rename is durable once the folder is on disk. A file system that cannot fsync a folder leaves nothing to do. */
static void sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static td_status finish(tdi_atomic *file, tdi_error *error)
{
    if (file->failed)
        return tdi_fail(error, TD_IO, "cannot write \"%s\": an earlier write failed", file->path);
    if (file->replaces && fchmod(file->fd, file->mode) != 0)
        return os_failure(error, "set the mode of", file->path);
    if (fsync(file->fd) != 0)
        return os_failure(error, "write", file->path);
    int closed = close(file->fd);
    file->fd = -1;
    if (closed != 0)
        return os_failure(error, "write", file->path);
    if (rename(file->temporary, file->path) != 0)
        return os_failure(error, "rename the new file to", file->path);
    file->temporary[0] = '\0';
    sync_folder(file->folder);
    return TD_OK;
}

td_status tdi_atomic_commit(tdi_atomic *file, tdi_error *error)
{
    td_status status = finish(file, error);
    tdi_atomic_abort(file);
    return status;
}

void tdi_atomic_abort(tdi_atomic *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary[0])
        unlink(file->temporary);
    free(file);
}

td_status tdi_atomic_end(tdi_atomic *file, td_status status, tdi_error *error)
{
    if (status == TD_OK)
        return tdi_atomic_commit(file, error);
    tdi_atomic_abort(file);
    return status;
}

td_status tdi_atomic_save(const char *path, const void *bytes, size_t size, tdi_error *error)
{
    tdi_atomic *file;
    TDI_TRY(tdi_atomic_create(path, &file, error));
    td_status status = tdi_atomic_write(file, bytes, size, error);
    return tdi_atomic_end(file, status, error);
}
