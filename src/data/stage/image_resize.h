/* image_resize.h - resizes images. */
#ifndef TDI_DATA_STAGE_IMAGE_RESIZE_H
#define TDI_DATA_STAGE_IMAGE_RESIZE_H

#include <stddef.h>
#include <stdint.h>
#include <tandem/data.h>

#include "base/error.h"

typedef struct tdi_resize {
    td_image_size from, to;
    int64_t channels;
} tdi_resize;

/* TD_INVALID_ARGUMENT, naming `name`, unless an image can have that size. */
td_status tdi_resize_check(const td_image_size *size, const char *name, tdi_error *error);

/* Resizes [height, width, channels] elements of `bytes` each by the nearest pixel, as Keras's
 * image.resize(interpolation="nearest"). */
void tdi_resize_nearest(const void *from, void *to, const tdi_resize *resize, size_t bytes);

/* Resize by interpolation between the four nearest pixels, as Keras's image.resize(interpolation="bilinear") without
 * antialiasing; bytes are rounded. */
void tdi_resize_bytes(const uint8_t *from, uint8_t *to, const tdi_resize *resize);
void tdi_resize_floats(const float *from, float *to, const tdi_resize *resize);

#endif
