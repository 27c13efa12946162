/* image_colours.h - changes an image's contrast and brightness. Values are clipped to [0, most]. */
#ifndef TDI_DATA_STAGE_IMAGE_COLOURS_H
#define TDI_DATA_STAGE_IMAGE_COLOURS_H

#include <stdint.h>

/* Multiplies the distances from each channel's mean by `factor`, in values [pixels, channels]. */
void tdi_change_contrast(float *values, int64_t pixels, int64_t channels, float factor, float most);
void tdi_change_brightness(float *values, int64_t count, float delta, float most);

#endif
