/* image_format.h - the interface of image formats, for image_codec.c. A new format is a tdi_image_format of its own
 * file, listed there. */
#ifndef TDI_FILES_IMAGE_FORMAT_H
#define TDI_FILES_IMAGE_FORMAT_H

#include <stdbool.h>
#include <string.h>

#include "files/image_codec.h"

#define TDI_IMAGE_MAX_EXTENT 65500 /* pixels of a height or width: libjpeg's limit */

/* Functions that any thread may call. They fail as tdi_image_look and tdi_image_decode do. */
typedef struct tdi_image_format {
    const char *name;                                        /* "PNG" */
    bool (*claims)(const unsigned char *bytes, size_t size); /* true when the bytes begin as the format's */
    td_status (*look)(const unsigned char *bytes, size_t size, tdi_image *image, tdi_error *error);
    td_status (*decode)(const unsigned char *bytes, size_t size, tdi_image_kind kind, const tdi_image *image,
                        uint8_t *to, tdi_error *error);
} tdi_image_format;

extern const tdi_image_format tdi_image_jpeg, tdi_image_png, tdi_image_bmp, tdi_image_gif, tdi_image_webp;

/* Writes a pixel of red, green, blue and opacity as 1, 3 or 4 channels. Its grey is the luma of ITU-R 601, as in
 * Pillow's convert("L"). */
static inline void tdi_image_put(const uint8_t rgba[4], int64_t channels, uint8_t *to)
{
    if (channels == 1)
        *to = (uint8_t)((rgba[0] * 19595u + rgba[1] * 38470u + rgba[2] * 7471u + 0x8000u) >> 16);
    else
        memcpy(to, rgba, (size_t)channels);
}

/* TD_BAD_FILE unless an image can have that size. Formats call it where they rely on the size before they return it. */
td_status tdi_image_check_extents(const char *format, int64_t height, int64_t width, tdi_error *error);

/* The sentence of an image that was damaged or whose end is missing. */
td_status tdi_image_damaged(const char *format, const char *reason, tdi_error *error);

#endif
