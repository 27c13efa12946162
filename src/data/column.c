/* column.c - columns: sizes, scales, and gathering rows of one that lies in memory. */
#include "data/convert.h"
#include "data/source.h"

#define PREFETCH 8 /* rows; no hardware predicts where the next shuffled row lies */

int64_t tdi_sample_elements(const td_shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        elements *= shape->dim[i];
    return elements;
}

size_t tdi_column_bytes(const tdi_column *column)
{
    return (size_t)tdi_sample_elements(&column->shape) * td_dtype_size(column->dtype);
}

float tdi_stored_scale(const tdi_column *column)
{
    return column->dtype == TD_FLOAT32 ? 1 : column->scale;
}

static void prefetch_row(const char *row, int64_t size)
{
    for (int64_t at = 0; at < size && at < 4096; at += 64)
        __builtin_prefetch(row + at);
}

void tdi_gather_floats(const tdi_column *column, const int64_t *rows, int64_t count, float *to,
                       void (*convert_bytes)(const uint8_t *from, float *to, int64_t count, double scale))
{
    const char *values = column->values;
    double scale = tdi_exact_scale(column->scale);
    int64_t elements = tdi_sample_elements(&column->shape), stride = (int64_t)tdi_column_bytes(column);
    for (int64_t i = 0; i < count && i < PREFETCH; i++)
        prefetch_row(values + rows[i] * stride, stride);
    for (int64_t i = 0; i < count; i++) {
        const char *from = values + rows[i] * stride;
        if (i + PREFETCH < count)
            prefetch_row(values + rows[i + PREFETCH] * stride, stride);
        if (column->dtype == TD_UINT8)
            convert_bytes((const uint8_t *)from, to + i * elements, elements, scale);
        else
            tdi_convert_floats(column->dtype, from, to + i * elements, elements, scale);
    }
}
