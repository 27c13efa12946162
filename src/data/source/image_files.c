/* image_files.c - image files as a column's samples. */
#include "data/source/image_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/stage/image_resize.h"
#include "files/open_regular.h"

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

/* Reads a file, or at most its first `most` bytes. */
static td_status read_bytes(const char *path, int64_t most, file_bytes *file, tdi_error *error)
{
    int fd;
    int64_t size;
    *file = (file_bytes){0};
    TDI_TRY(tdi_regular_open(path, &fd, &size, error));
    td_status status = read_open(fd, size < most ? size : most, path, file, error);
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

/* A link to nowhere is a sample that cannot be read, as a damaged file is. */
static td_status read_image(const char *path, int64_t most, file_bytes *file, tdi_error *error)
{
    tdi_error own = {0};
    td_status status = read_bytes(path, most, file, &own);
    if (status == TD_NOT_FOUND)
        status = TD_BAD_FILE;
    return status == TD_OK ? TD_OK : tdi_fail(error, status, "%s", own.message);
}

static td_status look_at_begin(const char *path, int64_t most, tdi_image_kind kind, tdi_image *image, tdi_error *error)
{
    file_bytes file;
    TDI_TRY(read_image(path, most, &file, error));
    td_status status = named(path, tdi_image_look(file.bytes, file.size, kind, image, error), error);
    free(file.bytes);
    return status;
}

enum { HEADER = 1 << 16 }; /* bytes that hold most images' headers */

static td_status look(const char *path, tdi_image_kind kind, tdi_image *image, tdi_error *error)
{
    tdi_error of_begin = {0};
    if (look_at_begin(path, HEADER, kind, image, &of_begin) == TD_OK)
        return TD_OK;
    return look_at_begin(path, INT64_MAX, kind, image, error);
}

/* ---- the form ---- */

static bool can_have(int64_t channels)
{
    return channels == 1 || channels == 3 || channels == 4;
}

tdi_image_form tdi_image_form_wanted(const td_open_args *args)
{
    tdi_image_form form = {.size_of = "the first image is"};
    const td_shape none = {0}, *x = args->inputs && args->input_shapes ? &args->input_shapes[0] : &none;
    if (x->rank == 2)
        form.image = (tdi_image){x->dim[0], x->dim[1], 1};
    else if (x->rank == 3 && can_have(x->dim[2]))
        form.image = (tdi_image){x->dim[0], x->dim[1], x->dim[2]};
    else if (x->rank == 1)
        form.elements = x->dim[0];
    if (form.image.height)
        form.size_of = "the model takes";
    form.resize = args->image_size.height > 0 && args->image_size.width > 0;
    if (!form.resize)
        return form;
    form.image.height = args->image_size.height;
    form.image.width = args->image_size.width;
    int64_t channels = form.elements / (form.image.height * form.image.width);
    if (can_have(channels))
        form.image.channels = channels;
    return form;
}

/* Takes over from an image what is open, the size from the first. Returns whether other images could change the form.
 */
static bool take_over(tdi_image_form *form, const tdi_image *first, const tdi_image *seen)
{
    int64_t area = seen->height * seen->width;
    bool flat = form->elements && !form->image.height;
    if (flat && form->elements % area == 0 && can_have(form->elements / area)) {
        form->image = (tdi_image){seen->height, seen->width, form->elements / area};
        form->size_of = "an image that fits the model is";
        return false;
    }
    if (!flat && !form->image.height) {
        form->image.height = first->height;
        form->image.width = first->width;
    }
    return flat || (!form->image.channels && seen->channels == 1);
}

static td_status check_size(const tdi_image *seen, const tdi_image_form *form, tdi_error *error)
{
    const tdi_image *wanted = &form->image;
    if (form->resize || (seen->height == wanted->height && seen->width == wanted->width))
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE,
                    "it is %" PRId64 " x %" PRId64 " pixels (height x width), but %s %" PRId64 " x %" PRId64
                    ": bring all to one size by image_size (--image-size %" PRId64 "x%" PRId64 ")",
                    seen->height, seen->width, form->size_of ? form->size_of : "the first image is", wanted->height,
                    wanted->width, wanted->height, wanted->width);
}

td_status tdi_image_form_resolve(const tdi_paths *files, bool skip, tdi_image_form *form, tdi_error *error)
{
    tdi_image first = {0};
    tdi_error why = {0};
    bool coloured = false;
    for (int i = 0, more = 1; more && i < files->count; i++) {
        tdi_image seen;
        tdi_error unreadable = {0};
        td_status status = look(files->at[i], form->kind, &seen, &unreadable);
        if (status != TD_OK && why.status == TD_OK)
            why = unreadable;
        if (status != TD_OK && (status != TD_BAD_FILE || (!skip && !first.height)))
            return tdi_fail(error, status, "%s", unreadable.message);
        if (status != TD_OK)
            continue;
        if (!first.height)
            first = seen;
        coloured |= seen.channels == 3;
        more = take_over(form, &first, &seen);
        if (!skip && i == 0 && form->image.height)
            TDI_TRY(named(files->at[i], check_size(&seen, form, error), error));
    }
    if (!first.height)
        return tdi_fail(error, why.status, "%s", why.message);
    if (!form->image.height)
        form->image = first;
    if (!form->image.channels)
        form->image.channels = coloured ? 3 : 1;
    return TD_OK;
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
    TDI_TRY(check_size(&seen, form, error));
    seen.channels = form->image.channels;
    if (seen.height == form->image.height && seen.width == form->image.width)
        return tdi_image_decode(bytes, size, form->kind, &seen, to, error);
    return decode_resized(bytes, size, form, &seen, to, error);
}

td_status tdi_image_read(const char *path, const tdi_image_form *form, uint8_t *to, tdi_error *error)
{
    file_bytes file;
    TDI_TRY(read_image(path, INT64_MAX, &file, error));
    td_status status = named(path, tdi_image_form_decode(file.bytes, file.size, form, to, error), error);
    free(file.bytes);
    return status;
}
