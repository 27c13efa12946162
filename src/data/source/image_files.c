/* image_files.c - JPEG and PNG files as a column's samples. */
#include "data/source/image_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "data/stage/image_resize.h"
#include "files/folders.h"
#include "files/open_regular.h"

/* ---- listing ---- */

static bool is_image_name(const char *name)
{
    const char *end = strrchr(name, '.');
    return end && end != name && (!strcasecmp(end, ".jpg") || !strcasecmp(end, ".jpeg") || !strcasecmp(end, ".png"));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static td_status add_path(tdi_paths *paths, const char *folder, const char *name, bool folders, tdi_error *error)
{
    size_t length = strlen(folder) + strlen(name) + 2;
    char *path = malloc(length);
    if (!path)
        return tdi_no_memory(error);
    snprintf(path, length, "%s/%s", folder, name);
    if (tdi_is_folder(path) != folders) {
        free(path);
        return TD_OK;
    }
    if (tdi_push(paths, path))
        return TD_OK;
    free(path);
    return tdi_no_memory(error);
}

static td_status list(const char *folder, bool folders, tdi_paths *paths, tdi_error *error)
{
    DIR *entries = opendir(folder);
    int first = paths->count;
    if (!entries)
        return tdi_fail(error, errno == ENOENT || errno == ENOTDIR ? TD_NOT_FOUND : TD_IO,
                        "%s: the folder cannot be read: %s", folder, strerror(errno));
    td_status status = TD_OK;
    for (struct dirent *entry; status == TD_OK && (entry = readdir(entries));)
        if (entry->d_name[0] != '.' && (folders || is_image_name(entry->d_name)))
            status = add_path(paths, folder, entry->d_name, folders, error);
    closedir(entries);
    if (paths->count > first)
        qsort(paths->at + first, (size_t)(paths->count - first), sizeof *paths->at, by_name);
    return status;
}

td_status tdi_list_images(const char *folder, tdi_paths *paths, tdi_error *error)
{
    return list(folder, false, paths, error);
}

td_status tdi_list_folders(const char *folder, tdi_paths *paths, tdi_error *error)
{
    return list(folder, true, paths, error);
}

/* ---- reading ---- */

typedef struct file_bytes {
    void *bytes;
    size_t size;
} file_bytes;

static td_status read_open(int fd, int64_t size, const char *path, file_bytes *file, tdi_error *error)
{
    file->bytes = malloc((size_t)size + 1);
    if (!file->bytes)
        return tdi_no_memory(error);
    for (ssize_t got = 1; got > 0 && file->size<(size_t)size; file->size += got> 0 ? (size_t)got : 0) {
        got = read(fd, (char *)file->bytes + file->size, (size_t)size - file->size);
        if (got < 0)
            return tdi_fail(error, TD_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    return TD_OK;
}

static td_status read_whole(const char *path, file_bytes *file, tdi_error *error)
{
    int fd;
    int64_t size;
    *file = (file_bytes){0};
    TDI_TRY(tdi_regular_open(path, &fd, &size, error));
    td_status status = read_open(fd, size, path, file, error);
    close(fd);
    if (status != TD_OK)
        free(file->bytes);
    return status;
}

static td_status named(const char *path, td_status status, tdi_error *error)
{
    if (status == TD_BAD_FILE)
        tdi_error_prefix(error, "%s", path);
    return status;
}

td_status tdi_image_form_of(const char *path, tdi_image_kind kind, const td_image_size *size, tdi_image_form *form,
                            tdi_error *error)
{
    file_bytes file;
    TDI_TRY(read_whole(path, &file, error));
    *form = (tdi_image_form){.kind = kind, .resize = size->height > 0, .nearest = kind == TDI_IMAGE_LABELS};
    td_status status = named(path, tdi_image_look(file.bytes, file.size, kind, &form->image, error), error);
    free(file.bytes);
    if (form->resize) {
        form->image.height = size->height;
        form->image.width = size->width;
    }
    return status;
}

/* ---- one size ---- */

static td_status decode_resized(const void *bytes, size_t size, const tdi_image_form *form, const tdi_image *seen,
                                uint8_t *to, tdi_error *error)
{
    const tdi_resize resize = {{seen->height, seen->width}, {form->image.height, form->image.width}, seen->channels};
    uint8_t *pixels = malloc((size_t)(seen->height * seen->width * seen->channels) + 1);
    if (!pixels)
        return tdi_no_memory(error);
    td_status status = tdi_image_decode(bytes, size, form->kind, seen, pixels, error);
    if (status == TD_OK && form->nearest)
        tdi_resize_nearest(pixels, to, &resize, 1);
    else if (status == TD_OK)
        tdi_resize_bytes(pixels, to, &resize);
    free(pixels);
    return status;
}

td_status tdi_image_form_decode(const void *bytes, size_t size, const tdi_image_form *form, uint8_t *to,
                                tdi_error *error)
{
    tdi_image seen;
    TDI_TRY(tdi_image_look(bytes, size, form->kind, &seen, error));
    seen.channels = form->image.channels;
    if (seen.height == form->image.height && seen.width == form->image.width)
        return tdi_image_decode(bytes, size, form->kind, &seen, to, error);
    if (form->resize)
        return decode_resized(bytes, size, form, &seen, to, error);
    return tdi_fail(error, TD_BAD_FILE,
                    "it is %" PRId64 " x %" PRId64 " pixels (height x width), but the first image %" PRId64
                    " x %" PRId64 ": bring all to one size by image_size (--image-size)",
                    seen.height, seen.width, form->image.height, form->image.width);
}

td_status tdi_image_read(const char *path, const tdi_image_form *form, uint8_t *to, tdi_error *error)
{
    file_bytes file;
    TDI_TRY(read_whole(path, &file, error));
    td_status status = named(path, tdi_image_form_decode(file.bytes, file.size, form, to, error), error);
    free(file.bytes);
    return status;
}
