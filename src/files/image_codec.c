/* image_codec.c - finds the format of an image. */
#include "files/image_codec.h"

#include "files/image_format.h"

static const tdi_image_format *const formats[] = {&tdi_image_png,  &tdi_image_jpeg, &tdi_image_gif,
                                                  &tdi_image_webp, &tdi_image_bmp,  NULL};

static const tdi_image_format *format_of(const void *bytes, size_t size)
{
    const tdi_image_format *const *format = formats;
    while (*format && !(*format)->claims(bytes, size))
        format++;
    return *format;
}

const char *tdi_image_format_name(const void *bytes, size_t size)
{
    const tdi_image_format *format = format_of(bytes, size);
    return format ? format->name : NULL;
}

td_status tdi_image_damaged(const char *format, const char *reason, tdi_error *error)
{
    return tdi_fail(error, TD_BAD_FILE, "the %s image is damaged or cut short (%s)", format, reason);
}

/* Formats that change values or their number would change classes. */
static td_status find(const void *bytes, size_t size, tdi_image_kind kind, const tdi_image_format **format,
                      tdi_error *error)
{
    *format = format_of(bytes, size);
    if (!*format)
        return tdi_fail(error, TD_BAD_FILE, "%s",
                        size ? "it is no image of a known format: JPEG, PNG, BMP, GIF or WebP" : "the file is empty");
    if (kind == TDI_IMAGE_LABELS && *format != &tdi_image_png)
        return tdi_fail(error, TD_BAD_FILE,
                        "it is a %s image, and a label map has to be a PNG image, whose pixels are class numbers",
                        (*format)->name);
    return TD_OK;
}

td_status tdi_image_check_extents(const char *format, int64_t height, int64_t width, tdi_error *error)
{
    if (height >= 1 && width >= 1 && height <= TDI_IMAGE_MAX_EXTENT && width <= TDI_IMAGE_MAX_EXTENT)
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE,
                    "the %s image would be %lld x %lld pixels; 1 to %d of height and of width were expected", format,
                    (long long)height, (long long)width, TDI_IMAGE_MAX_EXTENT);
}

td_status tdi_image_look(const void *bytes, size_t size, tdi_image_kind kind, tdi_image *image, tdi_error *error)
{
    const tdi_image_format *format;
    TDI_TRY(find(bytes, size, kind, &format, error));
    TDI_TRY(format->look(bytes, size, image, error));
    if (kind == TDI_IMAGE_LABELS)
        image->channels = 1;
    return tdi_image_check_extents(format->name, image->height, image->width, error);
}

td_status tdi_image_decode(const void *bytes, size_t size, tdi_image_kind kind, const tdi_image *image, uint8_t *to,
                           tdi_error *error)
{
    const tdi_image_format *format;
    TDI_TRY(find(bytes, size, kind, &format, error));
    return format->decode(bytes, size, kind, image, to, error);
}
