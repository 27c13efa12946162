/* image_colours.c - changes contrast and brightness as Keras's RandomContrast and RandomBrightness do. */
#include "data/stage/image_colours.h"

static float clipped(float value, float most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

static float mean_of(const float *values, int64_t pixels, int64_t channels)
{
    double sum = 0;
    for (int64_t i = 0; i < pixels; i++)
        sum += (double)values[i * channels];
    return (float)(sum / (double)pixels);
}

void tdi_change_contrast(float *values, int64_t pixels, int64_t channels, float factor, float most)
{
    for (int64_t channel = 0; channel < channels; channel++) {
        float mean = mean_of(values + channel, pixels, channels);
        for (int64_t i = channel; i < pixels * channels; i += channels)
            values[i] = clipped((values[i] - mean) * factor + mean, most);
    }
}

void tdi_change_brightness(float *values, int64_t count, float delta, float most)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = clipped(values[i] + delta, most);
}
