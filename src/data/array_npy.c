/* array_npy.c - a parsed .npy file as an array of samples: in place when its elements lie as they must, else
 * rearranged. */
#include "data/array_npy.h"

#include <stdlib.h>
#include <string.h>

/* Copies a column-major array in row-major order, by counting through the extents with the last running fastest. */
static void copy_row_major(const tdi_npy *npy, const char *from, char *to)
{
    size_t size = td_dtype_size(npy->dtype);
    int64_t index[TD_MAX_RANK] = {0}, stride[TD_MAX_RANK], at = 0;
    for (int axis = 0; axis < npy->shape.rank; axis++)
        stride[axis] = axis ? stride[axis - 1] * npy->shape.dim[axis - 1] : 1;
    for (int64_t i = 0; i < npy->elements; i++) {
        memcpy(to + (size_t)i * size, from + (size_t)at * size, size);
        int axis = npy->shape.rank - 1;
        while (axis >= 0 && index[axis] + 1 == npy->shape.dim[axis]) {
            at -= index[axis] * stride[axis];
            index[axis--] = 0;
        }
        if (axis >= 0) {
            index[axis]++;
            at += stride[axis];
        }
    }
}

static td_status make_row_major(const tdi_npy *npy, tdi_array *array, tdi_error *error)
{
    void *copy = malloc((size_t)npy->elements * td_dtype_size(npy->dtype) + 1);
    if (!copy) {
        free(array->owned);
        return tdi_no_memory(error);
    }
    copy_row_major(npy, array->values, copy);
    free(array->owned);
    array->values = array->owned = copy;
    return TD_OK;
}

td_status tdi_array_from_npy(const tdi_npy *npy, void *bytes, const char *what, tdi_array *array, tdi_error *error)
{
    if (npy->shape.rank == 0) {
        free(bytes);
        return tdi_fail(error, TD_BAD_FILE, "%s: a single number, where an array with one row per sample is needed",
                        what);
    }
    *array = (tdi_array){npy->dtype, npy->shape.dim[0], {npy->shape.rank - 1, {0}}, (char *)bytes + npy->offset, bytes};
    memcpy(array->shape.dim, npy->shape.dim + 1, (size_t)array->shape.rank * sizeof *array->shape.dim);
    if (npy->fortran && npy->shape.rank > 1)
        return make_row_major(npy, array, error);
    if (npy->offset % td_dtype_size(npy->dtype) != 0)
        array->values = memmove(bytes, array->values, (size_t)npy->elements * td_dtype_size(npy->dtype));
    return TD_OK;
}
