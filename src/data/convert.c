/* convert.c - converts stored elements to floats or class numbers, in plain loops that the compiler vectorises.
 *
 * The loop over bytes, the elements of images, is the hot one. It splits the scale into `high`, of 16 bits, and `low`:
 * byte * high is exact in a float, so the sum rounds once, as byte / 255 does. */
#include "data/convert.h"

#include <math.h>
#include <string.h>

#include "base/bfloat16.h"

double tdi_exact_scale(float scale)
{
    double whole = round(1.0 / (double)scale);
    return (float)(1.0 / whole) == scale ? 1.0 / whole : (double)scale;
}

static float high_16_bits(double value)
{
    int exponent;
    double mantissa = frexp(value, &exponent);
    return (float)ldexp(trunc(ldexp(mantissa, 16)), exponent - 16);
}

void tdi_convert_bytes(const uint8_t *from, float *restrict to, int64_t count, double scale)
{
    float high = high_16_bits(scale), low = (float)(scale - (double)high);
    for (int64_t i = 0; i < count; i++) {
        float value = (float)from[i];
        to[i] = value * high + value * low;
    }
}

#define FLOATS_FROM(name, type)                                                                                        \
    static void floats_from_##name(const type *from, float *restrict to, int64_t count, double scale)                  \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = (float)((double)from[i] * scale);                                                                  \
    }
FLOATS_FROM(float32, float)
FLOATS_FROM(float64, double)
FLOATS_FROM(int32, int32_t)
FLOATS_FROM(int64, int64_t)

static void floats_from_bfloat16(const tdi_bfloat16 *from, float *restrict to, int64_t count, double scale)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)((double)tdi_widen(from[i]) * scale);
}

void tdi_convert_floats(td_dtype dtype, const void *from, float *to, int64_t count, double scale)
{
    switch (dtype) {
    case TD_UINT8:
        tdi_convert_bytes(from, to, count, scale);
        break;
    case TD_FLOAT32:
        if (scale == 1)
            memcpy(to, from, (size_t)count * sizeof *to);
        else
            floats_from_float32(from, to, count, scale);
        break;
    case TD_FLOAT64:
        floats_from_float64(from, to, count, scale);
        break;
    case TD_INT32:
        floats_from_int32(from, to, count, scale);
        break;
    case TD_INT64:
        floats_from_int64(from, to, count, scale);
        break;
    case TD_BFLOAT16:
        floats_from_bfloat16(from, to, count, scale);
        break;
    }
}

/* `limit` is 2^31 in the type. A NaN fails the comparisons. */
#define CLASSES_FROM(name, type, limit)                                                                                \
    static int64_t classes_from_##name(const type *from, int32_t *restrict to, int64_t count)                          \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            if (!(from[i] >= -(limit) && from[i] < (limit)) || from[i] != (type)(int32_t)from[i])                      \
                return i;                                                                                              \
            to[i] = (int32_t)from[i];                                                                                  \
        }                                                                                                              \
        return -1;                                                                                                     \
    }
CLASSES_FROM(float32, float, 0x1p31f)
CLASSES_FROM(float64, double, 0x1p31)
CLASSES_FROM(int64, int64_t, INT64_C(1) << 31)

static int64_t classes_from_uint8(const uint8_t *from, int32_t *restrict to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i];
    return -1;
}

static int64_t classes_from_bfloat16(const tdi_bfloat16 *from, int32_t *restrict to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float wide = tdi_widen(from[i]);
        if (classes_from_float32(&wide, to + i, 1) >= 0)
            return i;
    }
    return -1;
}

int64_t tdi_convert_classes(td_dtype dtype, const void *from, int32_t *to, int64_t count)
{
    switch (dtype) {
    case TD_UINT8:
        return classes_from_uint8(from, to, count);
    case TD_FLOAT32:
        return classes_from_float32(from, to, count);
    case TD_FLOAT64:
        return classes_from_float64(from, to, count);
    case TD_INT64:
        return classes_from_int64(from, to, count);
    case TD_BFLOAT16:
        return classes_from_bfloat16(from, to, count);
    case TD_INT32:
        break;
    }
    memcpy(to, from, (size_t)count * sizeof *to);
    return -1;
}
