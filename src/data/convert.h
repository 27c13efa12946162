/* convert.h - stored elements as floats, or as class numbers. */
#ifndef TDI_DATA_CONVERT_H
#define TDI_DATA_CONVERT_H

#include <stdint.h>
#include <tandem/tensor.h>

/* `count` elements of `dtype`, times `scale`, as floats. */
void tdi_convert_floats(td_dtype dtype, const void *from, float *to, int64_t count, double scale);

/* The same for bytes, which images are made of. */
void tdi_convert_bytes(const uint8_t *from, float *to, int64_t count, double scale);

/* `count` elements of `dtype` as class numbers. Returns the position of the first that is not one (fractional, not
 * finite, or beyond int32), or -1 when all are. */
int64_t tdi_convert_classes(td_dtype dtype, const void *from, int32_t *to, int64_t count);

/* What a column's scale stands for: 1/n exactly when `scale` is the float nearest to it, so that value * scale rounds
 * as value / n does. */
double tdi_exact_scale(float scale);

#endif
