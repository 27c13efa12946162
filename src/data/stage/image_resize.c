/* image_resize.c - resizes images by pixel centres: pixel i of the result comes from place (i + 1/2) * from / to - 1/2
 * of the image. */
#include "data/stage/image_resize.h"

#include <math.h>
#include <string.h>

#include "data/source.h"

td_status tdi_resize_check(const td_image_size *size, const char *name, tdi_error *error)
{
    if (size->height >= 1 && size->width >= 1 && size->height <= TDI_MAX_IMAGE && size->width <= TDI_MAX_IMAGE)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s: an image size of %lld x %lld; 1 to %d pixels were expected of height and of width", name,
                    (long long)size->height, (long long)size->width, TDI_MAX_IMAGE);
}

void tdi_resize_nearest(const void *from, void *to, const tdi_resize *resize, size_t bytes)
{
    size_t pixel = (size_t)resize->channels * bytes;
    char *at = to;
    for (int64_t y = 0; y < resize->to.height; y++)
        for (int64_t x = 0; x < resize->to.width; x++, at += pixel) {
            int64_t row = (2 * y + 1) * resize->from.height / (2 * resize->to.height);
            int64_t column = (2 * x + 1) * resize->from.width / (2 * resize->to.width);
            memcpy(at, (const char *)from + (size_t)(row * resize->from.width + column) * pixel, pixel);
        }
}

typedef struct tap {
    int64_t low, high;
    float weight; /* of `high` */
} tap;

static tap tap_of(int64_t i, int64_t from, int64_t to)
{
    double position = ((double)i + 0.5) * (double)from / (double)to - 0.5, floor_of = floor(position);
    int64_t low = (int64_t)floor_of;
    return (tap){low < 0 ? 0 : low, low + 1 < from ? low + 1 : from - 1, (float)(position - floor_of)};
}

/* Defines the function for a type of elements; `stored` converts a float to one. */
#define RESIZE_BILINEAR(name, type, stored)                                                                            \
    void name(const type *from, type *to, const tdi_resize *resize)                                                    \
    {                                                                                                                  \
        int64_t channels = resize->channels, stride = resize->from.width * channels;                                   \
        for (int64_t y = 0; y < resize->to.height; y++) {                                                              \
            tap row = tap_of(y, resize->from.height, resize->to.height);                                               \
            for (int64_t x = 0; x < resize->to.width; x++) {                                                           \
                tap column = tap_of(x, resize->from.width, resize->to.width);                                          \
                for (int64_t c = 0; c < channels; c++) {                                                               \
                    const type *above = from + row.low * stride + c, *below = from + row.high * stride + c;            \
                    float left = (float)above[column.low * channels], right = (float)above[column.high * channels];    \
                    float over = left + (right - left) * column.weight;                                                \
                    left = (float)below[column.low * channels], right = (float)below[column.high * channels];          \
                    float under = left + (right - left) * column.weight;                                               \
                    *to++ = stored(over + (under - over) * row.weight);                                                \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

static uint8_t rounded(float value)
{
    return (uint8_t)(value + 0.5f);
}

static float unchanged(float value)
{
    return value;
}

RESIZE_BILINEAR(tdi_resize_bytes, uint8_t, rounded)
RESIZE_BILINEAR(tdi_resize_floats, float, unchanged)
