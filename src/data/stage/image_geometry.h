/* image_geometry.h - flips, shifts and turns images. */
#ifndef TDI_DATA_STAGE_IMAGE_GEOMETRY_H
#define TDI_DATA_STAGE_IMAGE_GEOMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tandem/stages.h>

/* A flip, then a shift by pixels (right and down), then a turn about the middle in radians, clockwise as Keras's: pixel
 * (x, y) of the result comes from (cos * x - sin * y, sin * x + cos * y), measured from the middle. */
typedef struct tdi_move {
    bool flip_x, flip_y;
    double right, down, turn;
} tdi_move;

/* True when every pixel of the result is a pixel of the image: no turn, and shifts by whole pixels. */
bool tdi_move_is_whole(const tdi_move *move);

/* Moves pixels of any type to the nearest place. `fill` is not TD_FILL_DEFAULT. */
void tdi_move_nearest(const void *from, void *to, int64_t height, int64_t width, size_t pixel_bytes,
                      const tdi_move *move, td_fill fill);

/* Moves floats [height, width, channels], interpolated between the four nearest, as Keras's affine_transform. */
void tdi_move_bilinear(const float *from, float *to, int64_t height, int64_t width, int64_t channels,
                       const tdi_move *move, td_fill fill);

#endif
