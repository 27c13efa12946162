/* image_codec.h - decodes JPEG, PNG, BMP, GIF and WebP images in memory to bytes [height, width, channels], and encodes
 * PNG. Which format an image has is told by its bytes, not by its file's name. */
#ifndef TDI_FILES_IMAGE_CODEC_H
#define TDI_FILES_IMAGE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The meaning of pixels: shades and colours, or class numbers (a PNG's grey values or palette indices as stored). */
typedef enum tdi_image_kind { TDI_IMAGE_COLOURS, TDI_IMAGE_LABELS } tdi_image_kind;

/* `channels` is 1 for grey and labels, 3 for red, green, blue, 4 for these and opacity. */
typedef struct tdi_image {
    int64_t height, width, channels;
} tdi_image;

/* The name of the format that the bytes begin as, such as "PNG"; NULL: none that can be decoded. */
const char *tdi_image_format_name(const void *bytes, size_t size);

/* Reads an image's size from its first bytes, and whether it has colours: `channels` is 1 or 3. TD_BAD_FILE when they
 * are of no known format. Sentences of this and the next function name no file, which the caller knows. */
td_status tdi_image_look(const void *bytes, size_t size, tdi_image_kind kind, tdi_image *image, tdi_error *error);

/* Decodes to bytes [height, width, channels], top row first, of the size that tdi_image_look gave. `channels` may be 1,
 * 3 or 4 whatever the image's own number is: grey is the luma of ITU-R 601, what has no opacity is opaque, and opacity
 * that is not asked for is dropped, as TensorFlow's and Keras's decoders do. Of an animated GIF it is the first frame.
 * TD_BAD_FILE for an image that is damaged or truncated. */
td_status tdi_image_decode(const void *bytes, size_t size, tdi_image_kind kind, const tdi_image *image, uint8_t *to,
                           tdi_error *error);

/* Encodes bytes [height, width, channels] as a PNG file in memory, which the caller frees with free(). */
td_status tdi_png_encode(const tdi_image *image, const uint8_t *pixels, void **bytes, size_t *size, tdi_error *error);

#endif
