/* convert.h - converts stored elements to floats or to class numbers. */
#ifndef TDI_DATA_CONVERT_H
#define TDI_DATA_CONVERT_H

#include <stdint.h>
#include <tandem/tensor.h>

/* Converts `count` elements of `dtype` to floats, times `scale`. */
void tdi_convert_floats(td_dtype dtype, const void *from, float *to, int64_t count, double scale);

/* The same for bytes, the elements of images. */
void tdi_convert_bytes(const uint8_t *from, float *to, int64_t count, double scale);

/* Converts `count` elements of `dtype` to class numbers. Returns the position of the first that is none (fractional,
 * not finite, or beyond int32), or -1. */
int64_t tdi_convert_classes(td_dtype dtype, const void *from, int32_t *to, int64_t count);

/* The double that a column's scale means: 1/n when `scale` is the float nearest to that, so that value * scale rounds
 * as value / n does; else `scale`. */
double tdi_exact_scale(float scale);

#endif
