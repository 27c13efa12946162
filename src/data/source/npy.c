/* npy.c - "x.npy,y.npy", or "x.npy" alone for prediction; weights of the losses are a third file. The files are read
 * whole, or by rows when memory does not hold them. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/array_names.h"
#include "data/source.h"
#include "data/stored_array.h"

static bool npy_claims(const char *path)
{
    return tdi_ends_in(path, ".npy");
}

static td_status npy_add(tdi_table *table, const char *path, float scale, tdi_column_role role, tdi_error *error)
{
    static const char *const names[] = {"x", "y", "sample_weight"};
    tdi_store *store;
    tdi_npy npy;
    tdi_array array;
    TDI_TRY(tdi_store_open(path, &store, error));
    td_status status = tdi_npy_look(store, &npy, error);
    if (status != TD_OK) {
        tdi_store_free(store);
        return status;
    }
    tdi_source_stamp(&table->reader.source, path);
    TDI_TRY(tdi_array_from_npy(&npy, store, path, &array, error));
    return tdi_table_add(table, role, names[role], scale, &array, error);
}

/* Splits "x.npy,y.npy" at the comma behind ".npy"; other commas belong to names. *y is NULL when there is one path. */
static td_status npy_cut(char *paths, char **y, tdi_error *error)
{
    char *cut = strstr(paths, ".npy,");
    *y = cut ? cut + 5 : NULL;
    if (cut && strstr(*y, ".npy,"))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: more than two files; give x.npy,y.npy (weights of the losses by sample_weight, "
                        "--sample-weight w.npy), or put several arrays into one .npz",
                        paths);
    if (cut)
        cut[4] = '\0';
    return TD_OK;
}

static td_status npy_fill(tdi_table *table, const td_open_args *args, tdi_error *error)
{
    const char *weights = tdi_named_weights(args);
    char *x = strdup(args->path), *y;
    if (!x)
        return tdi_no_memory(error);
    td_status status = npy_cut(x, &y, error);
    if (status == TD_OK)
        status = npy_add(table, x, args->scale == 0 ? 1 : args->scale, TDI_X, error);
    if (status == TD_OK && y)
        status = npy_add(table, y, 1, TDI_Y, error);
    if (status == TD_OK && weights)
        status = npy_add(table, weights, 1, TDI_WEIGHT, error);
    free(x);
    return status;
}

static td_status npy_open(const td_open_args *args, tdi_source **source, tdi_error *error)
{
    tdi_table *table;
    TDI_TRY(tdi_table_create(args->path, &table, error));
    td_status status = npy_fill(table, args, error);
    return tdi_source_finish(&table->reader.source, status, source);
}

const tdi_source_format tdi_source_npy = {
    "a pair x.npy,y.npy", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE | TDI_OPEN_SAMPLE_WEIGHT, npy_claims, npy_open, ""};
