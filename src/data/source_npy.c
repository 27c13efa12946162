/* source_npy.c - "x.npy,y.npy", or "x.npy" alone to predict. The files are read whole: a mapped file that someone
 * truncates would end the process with a signal, which no sentence can explain. */
#include "data/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/array_npy.h"

static bool ends_in_npy(const char *path, size_t length)
{
    return length >= 4 && strncmp(path + length - 4, ".npy", 4) == 0;
}

static bool npy_claims(const char *path)
{
    return ends_in_npy(path, strlen(path));
}

static td_status read_fd(int fd, const char *path, void **bytes, size_t *size, tdi_error *error)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
        return tdi_fail(error, TD_BAD_FILE, "%s: not a file", path);
    *size = (size_t)facts.st_size;
    *bytes = malloc(*size + 1);
    if (!*bytes)
        return tdi_no_memory(error);
    ssize_t got = 1;
    for (size_t done = 0; done < *size && got > 0; done += (size_t)(got > 0 ? got : 0))
        got = read(fd, (char *)*bytes + done, *size - done);
    if (got > 0)
        return TD_OK;
    free(*bytes);
    return tdi_fail(error, TD_IO, "%s: cannot be read: %s", path,
                    got < 0 ? strerror(errno) : "it has shrunk meanwhile");
}

static td_status read_file(const char *path, void **bytes, size_t *size, tdi_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */
    if (fd < 0)
        return tdi_fail(error, errno == ENOENT ? TD_NOT_FOUND : TD_IO, "%s: cannot be opened: %s", path,
                        strerror(errno));
    td_status status = read_fd(fd, path, bytes, size, error);
    close(fd);
    return status;
}

static td_status npy_add(tdi_table *table, const char *path, float scale, bool target, tdi_error *error)
{
    void *bytes = NULL;
    size_t size = 0;
    tdi_npy npy;
    tdi_array array;
    TDI_TRY(read_file(path, &bytes, &size, error));
    td_status status = tdi_npy_parse(bytes, size, path, &npy, error);
    if (status != TD_OK) {
        free(bytes);
        return status;
    }
    TDI_TRY(tdi_array_from_npy(&npy, bytes, path, &array, error));
    return tdi_table_add(table, target, target ? "y" : "x", scale, &array, error);
}

/* Cuts "x.npy,y.npy" in two at the comma; a comma elsewhere is part of a name. `y` is NULL when there is one path. */
static td_status npy_cut(char *paths, char **y, tdi_error *error)
{
    char *cut = strstr(paths, ".npy,");
    *y = cut ? cut + 5 : NULL;
    if (cut && strstr(*y, ".npy,"))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: more than two files; give x.npy,y.npy, or put several arrays into one .npz", paths);
    if (cut)
        cut[4] = '\0';
    return TD_OK;
}

static td_status npy_fill(tdi_table *table, const char *path, float scale, tdi_error *error)
{
    char *x = strdup(path), *y;
    if (!x)
        return tdi_no_memory(error);
    td_status status = npy_cut(x, &y, error);
    if (status == TD_OK)
        status = npy_add(table, x, scale == 0 ? 1 : scale, false, error);
    if (status == TD_OK && y)
        status = npy_add(table, y, 1, true, error);
    free(x);
    return status;
}

static td_status npy_open(const td_open_args *args, tdi_source **source, tdi_error *error)
{
    tdi_table *table;
    TDI_TRY(tdi_table_create(args->path, &table, error));
    td_status status = npy_fill(table, args->path, args->scale, error);
    if (status == TD_OK)
        *source = &table->source;
    else
        table->source.release(&table->source);
    return status;
}

const tdi_source_format tdi_source_npy = {"a pair x.npy,y.npy", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE, npy_claims,
                                          npy_open};
