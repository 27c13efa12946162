/* shape.c - arithmetic on extents. */
#include "graph/shape.h"

#include <stdio.h>

const char *td_dtype_name(td_dtype dtype)
{
    static const char *const names[] = {"float32", "float64", "int32", "int64", "uint8", "bfloat16"};
    return (unsigned)dtype < sizeof names / sizeof *names ? names[dtype] : "unknown";
}

size_t td_dtype_size(td_dtype dtype)
{
    static const size_t sizes[] = {4, 8, 4, 8, 1, 2};
    return (unsigned)dtype < sizeof sizes / sizeof *sizes ? sizes[dtype] : 0;
}

bool tdi_shape_equal(const td_shape *a, const td_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

bool tdi_shape_has_batch(const td_shape *shape)
{
    return shape->rank > 0 && shape->dim[0] == TDI_BATCH;
}

td_shape tdi_shape_at(const td_shape *shape, int64_t rows)
{
    td_shape at = *shape;
    if (tdi_shape_has_batch(shape))
        at.dim[0] = rows;
    return at;
}

int64_t tdi_shape_elements(const td_shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        elements *= shape->dim[i];
    return elements;
}

int64_t tdi_shape_per_row(const td_shape *shape)
{
    td_shape one = tdi_shape_at(shape, 1);
    return tdi_shape_elements(&one);
}

bool tdi_shape_broadcast(const td_shape *a, const td_shape *b, td_shape *out)
{
    *out = (td_shape){.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 1; i <= out->rank; i++) {
        int64_t of_a = i <= a->rank ? a->dim[a->rank - i] : 1, of_b = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (of_a != of_b && of_a != 1 && of_b != 1)
            return false;
        out->dim[out->rank - i] = of_a == 1 ? of_b : of_a;
    }
    return true;
}

const char *tdi_shape_text(const td_shape *shape, char text[TDI_SHAPE_TEXT])
{
    int used = snprintf(text, TDI_SHAPE_TEXT, "[");
    for (int i = 0; i < shape->rank && used < TDI_SHAPE_TEXT; i++) {
        const char *comma = i ? ", " : "";
        size_t room = (size_t)(TDI_SHAPE_TEXT - used);
        used += shape->dim[i] == TDI_BATCH ? snprintf(text + used, room, "%sbatch", comma)
                                           : snprintf(text + used, room, "%s%lld", comma, (long long)shape->dim[i]);
    }
    if (used < TDI_SHAPE_TEXT)
        snprintf(text + used, (size_t)(TDI_SHAPE_TEXT - used), "]");
    return text;
}
