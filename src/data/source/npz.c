/* npz.c - NumPy's .npz: the arrays x_train and y_train, or x_test and y_test, by role; else x and y; several inputs or
 * targets as x0, x1, ... and y0, y1, ... */
#include "data/source.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "data/stored_array.h"

static bool npz_claims(const char *path)
{
    return tdi_ends_in(path, ".npz");
}

/* Fails for want of inputs, with a list of the archive's names that is as long as a sentence allows. */
static td_status npz_lacks(const tdi_zip *zip, const char *path, td_role role, tdi_error *error)
{
    tdi_text names = {0};
    for (int64_t i = 0; i < tdi_zip_count(zip) && names.length < 400; i++) {
        const char *name = tdi_zip_name(zip, i);
        size_t length = name ? strlen(name) : 0;
        if (tdi_ends_in(name, ".npy"))
            length -= 4;
        tdi_text_format(&names, "%s%.*s", i ? ", " : "", length < 64 ? (int)length : 64, name ? name : "");
    }
    const char *split = role == TD_TEST ? "test" : "train";
    tdi_fail(error, TD_BAD_FILE,
             "%s: no array named x, x_%s or x0; it holds: %s. Name them so: np.savez(file, x=..., y=...)", path, split,
             names.chars && names.length ? names.chars : "nothing");
    tdi_text_free(&names);
    return TD_BAD_FILE;
}

static td_status npz_add(tdi_table *table, tdi_zip *zip, const char *name, float scale, bool target, tdi_error *error)
{
    char what[sizeof table->reader.source.name + 32];
    tdi_npy npy;
    tdi_store *store;
    tdi_array array;
    snprintf(what, sizeof what, "%s: %s", table->reader.source.name, name);
    TDI_TRY(tdi_npz_open(zip, name, &npy, &store, error));
    TDI_TRY(tdi_array_from_npy(&npy, store, what, &array, error));
    return tdi_table_add(table, target, name, scale, &array, error);
}

/* Adds the inputs, or the targets: x_train, else x, else x0, x1, ... */
static td_status npz_add_all(tdi_table *table, tdi_zip *zip, td_role role, float scale, bool target, tdi_error *error)
{
    char letter = target ? 'y' : 'x', name[16];
    snprintf(name, sizeof name, "%c_%s", letter, role == TD_TEST ? "test" : "train");
    if (!tdi_npz_has(zip, name))
        name[1] = '\0';
    if (tdi_npz_has(zip, name))
        return npz_add(table, zip, name, scale, target, error);
    for (int i = 0; snprintf(name, sizeof name, "%c%d", letter, i), tdi_npz_has(zip, name); i++)
        TDI_TRY(npz_add(table, zip, name, scale, target, error));
    return TD_OK;
}

static td_status npz_fill(tdi_table *table, tdi_zip *zip, const char *path, td_role role, float scale, tdi_error *error)
{
    TDI_TRY(npz_add_all(table, zip, role, scale == 0 ? 1 : scale, false, error));
    if (!table->reader.source.n_x)
        return npz_lacks(zip, path, role, error);
    return npz_add_all(table, zip, role, 1, true, error);
}

static td_status npz_open(const td_open_args *args, tdi_source **source, tdi_error *error)
{
    tdi_zip *zip;
    tdi_table *table;
    TDI_TRY(tdi_zip_open(args->path, &zip, error));
    td_status status = tdi_table_create(args->path, &table, error);
    if (status == TD_OK) {
        status = npz_fill(table, zip, args->path, args->role, args->scale, error);
        status = tdi_source_finish(&table->reader.source, status, source);
    }
    tdi_zip_close(zip);
    return status;
}

const tdi_source_format tdi_source_npz = {"a file.npz", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE, npz_claims, npz_open, ""};
