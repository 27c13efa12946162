/* image_geometry.c - flips, shifts and turns images. Each pixel of the result is looked up at its place in the image.
 */
#include "data/stage/image_geometry.h"

#include <math.h>
#include <string.h>

/* Pixel (x, y) of the result comes from (x0 + xx * x + xy * y, y0 + yx * x + yy * y). */
typedef struct lookup {
    double x0, xx, xy, y0, yx, yy;
} lookup;

static lookup lookup_of(const tdi_move *move, int64_t height, int64_t width)
{
    double middle_x = (double)(width - 1) / 2, middle_y = (double)(height - 1) / 2;
    double c = move->turn == 0 ? 1 : cos(move->turn), s = move->turn == 0 ? 0 : sin(move->turn);
    lookup at = {middle_x - c * middle_x + s * middle_y - move->right, c, -s,
                 middle_y - s * middle_x - c * middle_y - move->down,  s, c};
    if (move->flip_x)
        at = (lookup){(double)(width - 1) - at.x0, -at.xx, -at.xy, at.y0, at.yx, at.yy};
    if (move->flip_y)
        at = (lookup){at.x0, at.xx, at.xy, (double)(height - 1) - at.y0, -at.yx, -at.yy};
    return at;
}

bool tdi_move_is_whole(const tdi_move *move)
{
    return move->turn == 0 && move->right == floor(move->right) && move->down == floor(move->down);
}

static int64_t modulo(int64_t i, int64_t size)
{
    int64_t rest = i % size;
    return rest < 0 ? rest + size : rest;
}

/* The index in [0, size) that `fill` takes index i to; -1: a zero. */
static int64_t place_of(int64_t i, int64_t size, td_fill fill)
{
    if (i >= 0 && i < size)
        return i;
    switch (fill) {
    case TD_FILL_REFLECT: {
        int64_t in_period = modulo(i, 2 * size);
        return in_period < size ? in_period : 2 * size - 1 - in_period;
    }
    case TD_FILL_NEAREST:
        return i < 0 ? 0 : size - 1;
    case TD_FILL_WRAP:
        return modulo(i, size);
    default:
        return -1;
    }
}

/* ---- the nearest pixel ---- */

/* With a constant size a copy is one or two instructions. */
static inline void copy_pixel(char *to, const char *from, size_t bytes)
{
    switch (bytes) {
    case 1:
        *to = *from;
        break;
    case 3:
        memcpy(to, from, 3);
        break;
    default:
        memcpy(to, from, bytes);
    }
}

typedef struct pixels {
    const char *from;
    int64_t height, width;
    size_t bytes; /* per pixel */
    td_fill fill;
} pixels;

static void put_pixel(const pixels *of, int64_t there_x, int64_t there_y, char *to)
{
    int64_t column = place_of(there_x, of->width, of->fill), row = place_of(there_y, of->height, of->fill);
    if (column < 0 || row < 0)
        memset(to, 0, of->bytes);
    else
        copy_pixel(to, of->from + (size_t)(row * of->width + column) * of->bytes, of->bytes);
}

/* Without a turn, neighbours stay neighbours, so that rows are copied pixel after pixel. */
static void move_straight(const pixels *of, const lookup *at, char *to)
{
    int64_t first_x = (int64_t)floor(at->x0 + 0.5), first_y = (int64_t)floor(at->y0 + 0.5);
    for (int64_t y = 0; y < of->height; y++)
        for (int64_t x = 0; x < of->width; x++, to += of->bytes)
            put_pixel(of, at->xx < 0 ? first_x - x : first_x + x, at->yy < 0 ? first_y - y : first_y + y, to);
}

static void move_turned(const pixels *of, const lookup *at, char *to)
{
    for (int64_t y = 0; y < of->height; y++)
        for (int64_t x = 0; x < of->width; x++, to += of->bytes)
            put_pixel(of, (int64_t)floor(at->x0 + at->xx * (double)x + at->xy * (double)y + 0.5),
                      (int64_t)floor(at->y0 + at->yx * (double)x + at->yy * (double)y + 0.5), to);
}

void tdi_move_nearest(const void *from, void *to, int64_t height, int64_t width, size_t pixel_bytes,
                      const tdi_move *move, td_fill fill)
{
    lookup at = lookup_of(move, height, width);
    pixels of = {from, height, width, pixel_bytes, fill};
    (move->turn == 0 ? move_straight : move_turned)(&of, &at, to);
}

/* ---- between pixels ---- */

typedef struct taps {
    int64_t low, high; /* the two nearest indices; -1: a zero */
    float weight;      /* of `high` */
} taps;

static taps taps_at(double there, int64_t size, td_fill fill)
{
    double low = floor(there);
    return (taps){place_of((int64_t)low, size, fill), place_of((int64_t)low + 1, size, fill), (float)(there - low)};
}

static float value_at(const float *from, int64_t row, int64_t column, int64_t width, int64_t channels, int64_t channel)
{
    return row < 0 || column < 0 ? 0 : from[(row * width + column) * channels + channel];
}

static float between(const float *from, taps row, taps column, int64_t width, int64_t channels, int64_t channel)
{
    float above = value_at(from, row.low, column.low, width, channels, channel) * (1 - column.weight) +
                  value_at(from, row.low, column.high, width, channels, channel) * column.weight;
    float below = value_at(from, row.high, column.low, width, channels, channel) * (1 - column.weight) +
                  value_at(from, row.high, column.high, width, channels, channel) * column.weight;
    return above * (1 - row.weight) + below * row.weight;
}

void tdi_move_bilinear(const float *from, float *to, int64_t height, int64_t width, int64_t channels,
                       const tdi_move *move, td_fill fill)
{
    lookup at = lookup_of(move, height, width);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            taps column = taps_at(at.x0 + at.xx * (double)x + at.xy * (double)y, width, fill);
            taps row = taps_at(at.y0 + at.yx * (double)x + at.yy * (double)y, height, fill);
            for (int64_t channel = 0; channel < channels; channel++)
                *to++ = between(from, row, column, width, channels, channel);
        }
}
