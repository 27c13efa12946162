/* npz.c - NumPy's .npz: the arrays that `features` names; else x_train and y_train, or x_test and y_test (x_val,
 * y_val), by role; else x and y; several inputs or targets as x0, x1, ... and y0, y1, ... Weights of the losses have
 * the names sample_weight_train, sample_weight, ... Arrays that are none of these are named in the source's note. */
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
    const char *split; /* "train", "test" or "val" */
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

static td_status npz_lacks(const npz *of, tdi_error *error)
{
    tdi_text names = {0};
    npz_names(of->zip, &names);
    tdi_fail(
        error, TD_BAD_FILE,
        "%s: no array named x, x_%s or x0; it holds: %s. Say which is what (features, --features x=NAME,y=NAME), or "
        "name them so: np.savez(file, x=..., y=...)",
        of->args->path, of->split, names.chars && names.length ? names.chars : "nothing");
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

/* Adds a role's arrays by their usual names: x_train, else x, else x0, x1, ... */
static td_status npz_add_usual(npz *of, tdi_column_role role, tdi_error *error)
{
    static const char *const stems[] = {"x", "y", "sample_weight"};
    char name[32];
    snprintf(name, sizeof name, "%s_%s", stems[role], of->split);
    if (tdi_npz_has(of->zip, name))
        return npz_add(of, role, name, error);
    if (tdi_npz_has(of->zip, stems[role]))
        return npz_add(of, role, stems[role], error);
    for (int i = 0; snprintf(name, sizeof name, "%s%d", stems[role], i), tdi_npz_has(of->zip, name); i++)
        TDI_TRY(npz_add(of, role, name, error));
    return TD_OK;
}

/* Beside x_test, a sample_weight without "_test" is that of x_train. */
static td_status npz_find_weights(npz *of, tdi_error *error)
{
    tdi_source *source = &of->table->reader.source;
    bool of_train = strchr(source->columns[0].name, '_') && strcmp(of->split, "train") != 0;
    char name[32];
    snprintf(name, sizeof name, "sample_weight_%s", of->split);
    if (!source->n_y || (of_train && !tdi_npz_has(of->zip, name)))
        return TD_OK;
    TDI_TRY(npz_add_usual(of, TDI_WEIGHT, error));
    for (int i = 0; i < source->n_w; i++)
        tdi_note_weights(source, source->columns[source->n_x + source->n_y + i].name);
    return TD_OK;
}

static bool npz_uses(const npz *of, const char *name)
{
    const tdi_source *source = &of->table->reader.source;
    for (int i = 0; i < tdi_source_columns(source); i++)
        if (strcmp(source->columns[i].name, name) == 0)
            return true;
    return false;
}

/* Is it what a file of several parts holds for another part, or what is not wanted to predict? */
static bool npz_is_of_another(const npz *of, const char *name)
{
    bool parted = strchr(of->table->reader.source.columns[0].name, '_') != NULL;
    bool other = tdi_ends_in(name, "_train") || tdi_ends_in(name, "_test") || tdi_ends_in(name, "_val");
    bool answer = *name == 'y' || strncmp(name, "sample_weight", 13) == 0;
    return (parted && (other || strcmp(name, "sample_weight") == 0)) || (answer && of->args->targets == TD_NO);
}

static void npz_note_unused(const npz *of)
{
    tdi_unused_arrays unused = {0};
    char name[64];
    for (int64_t i = 0; i < tdi_zip_count(of->zip); i++) {
        npz_array_name(of->zip, i, name, sizeof name);
        if (!npz_uses(of, name) && !npz_is_of_another(of, name))
            tdi_unused_array(&unused, name);
    }
    tdi_note_unused(&of->table->reader.source, &unused);
}

static td_status npz_fill(npz *of, tdi_error *error)
{
    const td_open_args *args = of->args;
    bool targets = args->targets != TD_NO;
    if (args->features)
        TDI_TRY(tdi_add_features(args->features, targets, npz_add, of, error));
    else
        TDI_TRY(npz_add_usual(of, TDI_X, error));
    if (!of->table->reader.source.n_x)
        return npz_lacks(of, error);
    if (!args->features && targets)
        TDI_TRY(npz_add_usual(of, TDI_Y, error));
    if (tdi_named_weights(args))
        TDI_TRY(tdi_add_weights(tdi_named_weights(args), npz_add, of, error));
    else if (tdi_finds_weights(args))
        TDI_TRY(npz_find_weights(of, error));
    npz_note_unused(of);
    return TD_OK;
}

static const char *npz_split(const tdi_zip *zip, td_role role)
{
    bool val = !tdi_npz_has(zip, "x_test") && tdi_npz_has(zip, "x_val");
    return role != TD_TEST ? "train" : val ? "val" : "test";
}

static td_status npz_open(const td_open_args *args, tdi_source **source, tdi_error *error)
{
    npz of = {.args = args};
    TDI_TRY(tdi_zip_open(args->path, &of.zip, error));
    of.split = npz_split(of.zip, args->role);
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
