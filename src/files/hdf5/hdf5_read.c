/* hdf5_read.c - reads whole arrays by hdf5_rows.h and converts them to floats. */
#include "files/hdf5/hdf5_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/hdf5/hdf5_rows.h"

static bool same_shape(const td_shape *a, const td_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static const char *shape_text(const td_shape *shape, char text[160])
{
    int used = snprintf(text, 160, "[");
    for (int i = 0; i < shape->rank; i++)
        used += snprintf(text + used, 160 - (size_t)used, "%s%lld", i ? ", " : "", (long long)shape->dim[i]);
    snprintf(text + used, 160 - (size_t)used, "]");
    return text;
}

static td_status check_shape(const tdi_hdf5_file *file, const char *path, const td_shape *seen, const td_shape *wanted,
                             tdi_error *error)
{
    char seen_text[160], wanted_text[160];
    if (same_shape(seen, wanted))
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" has the shape %s where %s is needed", file->name, path,
                    shape_text(seen, seen_text), shape_text(wanted, wanted_text));
}

/* Opens an array whose shape must be `shape`. */
static td_status open_array(tdi_hdf5_file *file, const char *path, const td_shape *shape, tdi_hdf5_rows **rows,
                            tdi_hdf5_facts *facts, tdi_error *error)
{
    TDI_TRY(tdi_hdf5_rows_open(file, path, rows, facts, error));
    td_status status = check_shape(file, path, &facts->shape, shape, error);
    if (status != TD_OK)
        tdi_hdf5_rows_close(*rows);
    return status;
}

/* A number of any dtype. */
typedef union any_number {
    uint8_t uint8;
    int32_t int32;
    int64_t int64;
    float float32;
    double float64;
} any_number;

static double value_of(td_dtype dtype, const any_number *from)
{
    switch (dtype) {
    case TD_UINT8:
        return from->uint8;
    case TD_INT32:
        return from->int32;
    case TD_INT64:
        return (double)from->int64;
    case TD_FLOAT64:
        return from->float64;
    default:
        return (double)from->float32;
    }
}

static void convert(td_dtype dtype, const char *from, int64_t count, float *to)
{
    size_t size = td_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        any_number stored = {0};
        memcpy(&stored, from + (size_t)i * size, size);
        to[i] = (float)value_of(dtype, &stored);
    }
}

static int64_t rows_of(const td_shape *shape)
{
    return shape->rank ? shape->dim[0] : 1;
}

static td_status read_converted(tdi_hdf5_rows *rows, const tdi_hdf5_facts *facts, float *values, tdi_error *error)
{
    int64_t elements = 1;
    for (int i = 0; i < facts->shape.rank; i++)
        elements *= facts->shape.dim[i];
    char *stored = malloc((size_t)elements * td_dtype_size(facts->dtype) + 1);
    if (!stored)
        return tdi_no_memory(error);
    td_status status = tdi_hdf5_rows_read(rows, 0, rows_of(&facts->shape), stored, error);
    if (status == TD_OK)
        convert(facts->dtype, stored, elements, values);
    free(stored);
    return status;
}

td_status tdi_hdf5_read(tdi_hdf5_file *file, const char *path, const td_shape *shape, float *values, tdi_error *error)
{
    tdi_hdf5_rows *rows;
    tdi_hdf5_facts facts;
    TDI_TRY(open_array(file, path, shape, &rows, &facts, error));
    td_status status = facts.dtype == TD_FLOAT32 ? tdi_hdf5_rows_read(rows, 0, rows_of(shape), values, error)
                                                 : read_converted(rows, &facts, values, error);
    tdi_hdf5_rows_close(rows);
    return status;
}

td_status tdi_hdf5_read_number(tdi_hdf5_file *file, const char *path, double *number, tdi_error *error)
{
    tdi_hdf5_rows *rows;
    tdi_hdf5_facts facts;
    any_number stored = {0};
    TDI_TRY(open_array(file, path, &(td_shape){0}, &rows, &facts, error));
    td_status status = tdi_hdf5_rows_read(rows, 0, 1, &stored, error);
    if (status == TD_OK)
        *number = value_of(facts.dtype, &stored);
    tdi_hdf5_rows_close(rows);
    return status;
}
