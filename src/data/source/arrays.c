/* arrays.c - arrays in the user's memory, read in place. */
#include "data/source.h"

#include <inttypes.h>
#include <math.h>

#include "data/array_table.h"

static td_status check_array(const char *name, const td_shape *shape, td_dtype dtype, tdi_error *error)
{
    if (shape->rank < 0 || shape->rank > TD_MAX_RANK)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_arrays: %s_shape has rank %d; 0 to %d are possible", name,
                        shape->rank, TD_MAX_RANK);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] < 1)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "td_arrays: extent %d of %s_shape is %" PRId64 ", not positive",
                            i, name, shape->dim[i]);
    if ((unsigned)dtype > TD_UINT8)
        return tdi_fail(
            error, TD_INVALID_ARGUMENT,
            "td_arrays: %s_dtype is %s (%d); TD_FLOAT32, TD_FLOAT64, TD_INT32, TD_INT64 or TD_UINT8 was expected", name,
            td_dtype_name(dtype), (int)dtype);
    return TD_OK;
}

static td_status check_args(const td_arrays_args *args, tdi_error *error)
{
    if (args->guard)
        return tdi_fail(
            error, TD_INVALID_ARGUMENT,
            "td_arrays takes three arguments by position (samples, x, x_shape): name the rest, as .y = labels");
    if (args->samples < 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_arrays: samples is %" PRId64 ", not a positive number",
                        args->samples);
    if (!args->x)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_arrays: x is NULL");
    if (!isfinite(args->scale))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_arrays: scale is not a finite number");
    TDI_TRY(check_array("x", &args->x_shape, args->x_dtype, error));
    if (args->y)
        TDI_TRY(check_array("y", &args->y_shape, args->y_dtype, error));
    if (args->sample_weight && !args->y)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_arrays: sample_weight weighs losses, and there is no y");
    return args->sample_weight ? check_array("sample_weight", &args->sample_weight_shape, TD_FLOAT32, error) : TD_OK;
}

static td_status add_arrays(tdi_table *table, const td_arrays_args *args, tdi_error *error)
{
    tdi_array x = {args->x_dtype, args->samples, args->x_shape, args->x, NULL, {0}};
    tdi_array y = {args->y_dtype, args->samples, args->y_shape, args->y, NULL, {0}};
    tdi_array weights = {TD_FLOAT32, args->samples, args->sample_weight_shape, args->sample_weight, NULL, {0}};
    TDI_TRY(tdi_table_add(table, TDI_X, "x", args->scale == 0 ? 1 : args->scale, &x, error));
    if (args->y)
        TDI_TRY(tdi_table_add(table, TDI_Y, "y", 1, &y, error));
    return args->sample_weight ? tdi_table_add(table, TDI_WEIGHT, "sample_weight", 1, &weights, error) : TD_OK;
}

td_status tdi_source_arrays(const td_arrays_args *args, tdi_source **source, tdi_error *error)
{
    tdi_table *table;
    TDI_TRY(check_args(args, error));
    TDI_TRY(tdi_table_create("td_arrays", &table, error));
    td_status status = add_arrays(table, args, error);
    return tdi_source_finish(&table->reader.source, status, source);
}
