/* image_geometry.h - images flipped, shifted and turned. */
#ifndef TDI_DATA_STAGE_IMAGE_GEOMETRY_H
#define TDI_DATA_STAGE_IMAGE_GEOMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/stages.h>

/* In this order: flips, then shifts by pixels (right and down), then a turn about the middle, in radians, clockwise as
 * Keras's: pixel (x, y) of the result lies at cos * x - sin * y, sin * x + cos * y before, seen from the middle. */
typedef struct tdi_move {
    bool flip_x, flip_y;
    double right, down, turn;
} tdi_move;

/* By whole pixels, so that every pixel of the result is one of the image. */
bool tdi_move_is_whole(const tdi_move *move);

/* Pixels of any kind: the nearest. `fill` is not TD_FILL_DEFAULT. */
void tdi_move_nearest(const void *from, void *to, int64_t height, int64_t width, size_t pixel_bytes,
                      const tdi_move *move, td_fill fill);

/* [height, width, channels] floats, interpolated between the four nearest, as Keras's affine_transform. */
void tdi_move_bilinear(const float *from, float *to, int64_t height, int64_t width, int64_t channels,
                       const tdi_move *move, td_fill fill);

#endif
