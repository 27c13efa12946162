/* stored_array.c - makes arrays of stored numbers: in place when they lie in memory in a dtype of Tandem's, else read
 * into memory, or left in the store when memory does not hold them. */
#include "data/stored_array.h"

#include <stdlib.h>
#include <string.h>

#include "base/machine.h"

static int64_t elements_of(const tdi_array *array)
{
    return array->samples * tdi_sample_elements(&array->shape);
}

/* The values in the store's memory; NULL when they are not there, or not aligned, or in a type to be widened. */
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

/* ---- arrays in column-major order ---- */

/* The row-major number of a sample's element that is number `column` in the file, whose first index runs fastest. */
static int64_t element_of(const td_shape *sample, int64_t column)
{
    int64_t element = 0;
    int64_t stride = tdi_sample_elements(sample);
    for (int axis = 0; axis < sample->rank; axis++) {
        stride /= sample->dim[axis];
        element += column % sample->dim[axis] * stride;
        column /= sample->dim[axis];
    }
    return element;
}

/* Writes rows [first, first + count) of all columns to `rows`, still in the stored type; `column` is scratch for one
 * column. */
static td_status transpose_rows(const tdi_stored *stored, const tdi_array *array, int64_t first, int64_t count,
                                char *column, char *rows, tdi_error *error)
{
    int64_t size = stored->numbers.size, elements = tdi_sample_elements(&array->shape);
    for (int64_t c = 0; c < elements; c++) {
        char *to = rows + element_of(&array->shape, c) * size;
        TDI_TRY(tdi_store_read(stored->store, stored->begin + (c * array->samples + first) * size, column, count * size,
                               error));
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * elements * size, column + i * size, (size_t)size);
    }
    return TD_OK;
}

static td_status transpose_blocks(const tdi_stored *stored, const tdi_array *array, tdi_store *to, tdi_error *error)
{
    enum { BLOCK = 1 << 23 };
    int64_t size = stored->numbers.size, row = tdi_sample_elements(&array->shape) * size, most = 1 + BLOCK / row;
    most = most < array->samples ? most : array->samples;
    char *column = malloc((size_t)(most * size)), *rows = malloc((size_t)(most * row));
    td_status status = column && rows ? TD_OK : tdi_no_memory(error);
    for (int64_t first = 0, count; first < array->samples && status == TD_OK; first += count) {
        count = array->samples - first < most ? array->samples - first : most;
        status = transpose_rows(stored, array, first, count, column, rows, error);
        if (status == TD_OK)
            status = tdi_store_put(to, rows, (size_t)(count * row), error);
    }
    free(column);
    free(rows);
    return status == TD_OK ? tdi_store_end(to, error) : status;
}

/* Replaces the store by another one in row-major order. */
static td_status make_row_major(tdi_stored *stored, const tdi_array *array, tdi_error *error)
{
    tdi_store *turned = NULL;
    int64_t size = array->samples * tdi_sample_elements(&array->shape) * stored->numbers.size;
    td_status status = tdi_store_create(tdi_store_name(stored->store), size, &turned, error);
    if (status == TD_OK)
        status = transpose_blocks(stored, array, turned, error);
    tdi_store_free(stored->store);
    if (status != TD_OK)
        tdi_store_free(turned);
    stored->store = turned;
    stored->begin = 0;
    return status;
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
    tdi_stored stored = {store, (int64_t)npy->offset, npy->numbers};
    take_shape(npy, array);
    if (npy->fortran && npy->shape.rank > 1 && npy->elements)
        TDI_TRY(make_row_major(&stored, array, error));
    return tdi_array_from_store(&stored, array, error);
}
