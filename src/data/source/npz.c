/* npz.c - NumPy's .npz: its arrays by name, see array_names.h. Arrays that are not used are named in the source's note.
 */
#include "data/source.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "data/array_names.h"
#include "data/stored_array.h"

typedef struct npz {
    tdi_table *table;
    tdi_zip *zip;
    const td_open_args *args;
} npz;

static bool npz_claims(const char *path)
{
    return tdi_ends_in(path, ".npz");
}

/* Sets `name` to an entry's name without ".npy". */
static void npz_array_name(const tdi_zip *zip, int64_t index, char *name, size_t size)
{
    const char *entry = tdi_zip_name(zip, index);
    size_t length = entry ? strlen(entry) : 0;
    if (tdi_ends_in(entry, ".npy"))
        length -= 4;
    snprintf(name, size, "%.*s", (int)(length < size ? length : size - 1), entry ? entry : "");
}

/* The archive's names, as many as a sentence allows. */
static void npz_names(const tdi_zip *zip, tdi_text *names)
{
    char name[64];
    for (int64_t i = 0; i < tdi_zip_count(zip) && names->length < 400; i++) {
        npz_array_name(zip, i, name, sizeof name);
        tdi_text_format(names, "%s%s", i ? ", " : "", name);
    }
}

static td_status npz_lacks(const npz *of, const char *part, tdi_error *error)
{
    tdi_text names = {0};
    npz_names(of->zip, &names);
    tdi_fail(
        error, TD_BAD_FILE,
        "%s: no array named x, x_%s or x0; it holds: %s. Say which is what (features, --features x=NAME,y=NAME), or "
        "name them so: np.savez(file, x=..., y=...)",
        of->args->path, part, names.chars && names.length ? names.chars : "nothing");
    tdi_text_free(&names);
    return TD_BAD_FILE;
}

static td_status npz_has_no(const npz *of, const char *name, tdi_error *error)
{
    tdi_text names = {0};
    npz_names(of->zip, &names);
    tdi_fail(error, TD_NOT_FOUND, "%s: has no array \"%s\"; it holds: %s", of->args->path, name,
             names.chars && names.length ? names.chars : "nothing");
    tdi_text_free(&names);
    return TD_NOT_FOUND;
}

static td_status npz_add(void *to, tdi_column_role role, const char *name, tdi_error *error)
{
    const npz *of = to;
    float scale = role != TDI_X || of->args->scale == 0 ? 1 : of->args->scale;
    char what[sizeof of->table->reader.source.name + 32];
    tdi_npy npy;
    tdi_store *store;
    tdi_array array;
    if (!tdi_npz_has(of->zip, name))
        return npz_has_no(of, name, error);
    snprintf(what, sizeof what, "%s: %s", of->table->reader.source.name, name);
    TDI_TRY(tdi_npz_open(of->zip, name, &npy, &store, error));
    TDI_TRY(tdi_array_from_npy(&npy, store, what, &array, error));
    return tdi_table_add(of->table, role, name, scale, &array, error);
}

static bool npz_has(void *of, const char *name)
{
    return tdi_npz_has(((const npz *)of)->zip, name);
}

static bool npz_uses(const npz *of, const char *name)
{
    const tdi_source *source = &of->table->reader.source;
    for (int i = 0; i < tdi_source_columns(source); i++)
        if (strcmp(source->columns[i].name, name) == 0)
            return true;
    return false;
}

static void npz_note_unused(const npz *of, const tdi_named_arrays *arrays)
{
    tdi_unused unused = {0};
    char name[64];
    for (int64_t i = 0; i < tdi_zip_count(of->zip); i++) {
        npz_array_name(of->zip, i, name, sizeof name);
        if (!npz_uses(of, name))
            tdi_unused_array(arrays, name, &unused);
    }
    tdi_note_unused_arrays(arrays->source, &unused);
}

static td_status npz_fill(npz *of, tdi_error *error)
{
    const tdi_named_arrays arrays = {of->args, &of->table->reader.source, npz_has, npz_add, of};
    TDI_TRY(tdi_add_arrays(&arrays, error));
    if (!arrays.source->n_x)
        return npz_lacks(of, tdi_arrays_part(&arrays), error);
    npz_note_unused(of, &arrays);
    return TD_OK;
}

static td_status npz_open(const td_open_args *args, tdi_source **source, tdi_error *error)
{
    npz of = {.args = args};
    TDI_TRY(tdi_zip_open(args->path, &of.zip, error));
    td_status status = tdi_table_create(args->path, &of.table, error);
    if (status == TD_OK) {
        status = npz_fill(&of, error);
        status = tdi_source_finish(&of.table->reader.source, status, source);
    }
    tdi_zip_close(of.zip);
    return status;
}

const tdi_source_format tdi_source_npz = {
    "a file.npz", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE | TDI_OPEN_FEATURES | TDI_OPEN_SAMPLE_WEIGHT, npz_claims,
    npz_open, ""};
