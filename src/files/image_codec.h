/* image_codec.h - JPEG and PNG images in memory, to and from bytes [height, width, channels]. */
#ifndef TDI_FILES_IMAGE_CODEC_H
#define TDI_FILES_IMAGE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What the pixels are: shades and colours, or class numbers (the shades or palette indices themselves). */
typedef enum tdi_image_kind { TDI_IMAGE_COLOURS, TDI_IMAGE_LABELS } tdi_image_kind;

/* `channels`: 1 grey, 3 red, green, blue; labels 1. Transparency is left out. */
typedef struct tdi_image {
    int64_t height, width, channels;
} tdi_image;

/* The size that decoding will give, from the image's first bytes. TD_BAD_FILE when they are neither JPEG nor PNG. The
 * sentences of both functions have no name in front: the caller knows where the bytes are from. */
td_status tdi_image_look(const void *bytes, size_t size, tdi_image_kind kind, tdi_image *image, tdi_error *error);

/* Writes [height, width, channels] bytes, top row first, as tdi_image_look gave it; `channels` may be 1 or 3 instead of
 * the image's own. TD_BAD_FILE for an image that is damaged or cut short. */
td_status tdi_image_decode(const void *bytes, size_t size, tdi_image_kind kind, const tdi_image *image, uint8_t *to,
                           tdi_error *error);

/* [height, width, channels] bytes as a PNG file in memory, which the caller frees with free(). */
td_status tdi_png_encode(const tdi_image *image, const uint8_t *pixels, void **bytes, size_t *size, tdi_error *error);

#endif
