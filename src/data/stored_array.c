/* stored_array.c - stored numbers as an array of samples: in place when they lie in memory as they must, else read and
 * rearranged, or left to be read by rows. */
#include "data/stored_array.h"

#include <stdlib.h>
#include <string.h>

#include "base/machine.h"

static int64_t elements_of(const tdi_array *array)
{
    return array->samples * tdi_sample_elements(&array->shape);
}

/* NULL: they do not lie in memory, or not as they are needed. */
static const void *values_in_place(const tdi_stored *stored)
{
    const char *bytes = tdi_store_bytes(stored->store);
    bool fit = bytes && tdi_numbers_plain(&stored->numbers) && stored->begin % stored->numbers.size == 0;
    return fit ? bytes + stored->begin : NULL;
}

td_status tdi_array_from_store(const tdi_stored *stored, tdi_array *array, tdi_error *error)
{
    size_t size;
    array->dtype = stored->numbers.dtype;
    array->stored = *stored;
    array->values = values_in_place(stored);
    if (array->values || !tdi_array_size(array, &size) || !tdi_memory_holds((int64_t)size))
        return TD_OK;
    void *values = malloc(size + 1);
    if (!values)
        return TD_OK;
    td_status status = tdi_stored_read(stored, 0, elements_of(array), values, error);
    array->values = array->owned = values;
    tdi_store_free(array->stored.store);
    array->stored.store = NULL;
    if (status != TD_OK)
        tdi_array_release(array);
    return status;
}

/* ---- arrays that lie column by column ---- */

/* Copies a column-major array in row-major order, by counting through the extents with the last running fastest. */
static void copy_row_major(const tdi_npy *npy, const char *from, char *to)
{
    size_t size = td_dtype_size(npy->numbers.dtype);
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

/* Its rows are not runs of bytes that could be read one by one. */
static td_status make_row_major(const tdi_npy *npy, const char *what, tdi_array *array, tdi_error *error)
{
    size_t size = (size_t)npy->elements * td_dtype_size(array->dtype);
    void *copy = array->values && tdi_memory_holds((int64_t)size) ? malloc(size + 1) : NULL;
    if (!copy)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "%s: it is in Fortran's order, column by column, and memory does not hold it twice; write it "
                        "row by row, as numpy.save(file, numpy.ascontiguousarray(array))",
                        what);
    copy_row_major(npy, array->values, copy);
    tdi_array_release(array);
    array->values = array->owned = copy;
    array->stored.store = NULL;
    return TD_OK;
}

static void take_shape(const tdi_npy *npy, tdi_array *array)
{
    array->samples = npy->shape.dim[0];
    array->shape.rank = npy->shape.rank - 1;
    memcpy(array->shape.dim, npy->shape.dim + 1, (size_t)array->shape.rank * sizeof *array->shape.dim);
}

td_status tdi_array_from_npy(const tdi_npy *npy, tdi_store *store, const char *what, tdi_array *array, tdi_error *error)
{
    *array = (tdi_array){0};
    if (npy->shape.rank == 0) {
        tdi_store_free(store);
        return tdi_fail(error, TD_BAD_FILE, "%s: a single number, where an array with one row per sample is needed",
                        what);
    }
    take_shape(npy, array);
    TDI_TRY(tdi_array_from_store(&(tdi_stored){store, (int64_t)npy->offset, npy->numbers}, array, error));
    if (!npy->fortran || npy->shape.rank == 1)
        return TD_OK;
    td_status status = make_row_major(npy, what, array, error);
    if (status != TD_OK)
        tdi_array_release(array);
    return status;
}
