/* image_codec.h - decodes JPEG and PNG images in memory to bytes [height, width, channels], and encodes PNG. */
#ifndef TDI_FILES_IMAGE_CODEC_H
#define TDI_FILES_IMAGE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The meaning of pixels: shades and colours, or class numbers (grey values or palette indices as stored). */
typedef enum tdi_image_kind { TDI_IMAGE_COLOURS, TDI_IMAGE_LABELS } tdi_image_kind;

/* `channels` is 1 for grey and labels, 3 for red, green, blue. Transparency is dropped. */
typedef struct tdi_image {
    int64_t height, width, channels;
} tdi_image;

/* Reads an image's size and channels from its first bytes. TD_BAD_FILE when they are neither JPEG nor PNG. Sentences of
 * this and the next function name no file, which the caller knows. */
td_status tdi_image_look(const void *bytes, size_t size, tdi_image_kind kind, tdi_image *image, tdi_error *error);

/* Decodes to bytes [height, width, channels], top row first, of the size that tdi_image_look gave. `channels` may be 1
 * or 3 whatever the image's own number is. TD_BAD_FILE for an image that is damaged or truncated. */
td_status tdi_image_decode(const void *bytes, size_t size, tdi_image_kind kind, const tdi_image *image, uint8_t *to,
                           tdi_error *error);

/* Encodes bytes [height, width, channels] as a PNG file in memory, which the caller frees with free(). */
td_status tdi_png_encode(const tdi_image *image, const uint8_t *pixels, void **bytes, size_t *size, tdi_error *error);

#endif
