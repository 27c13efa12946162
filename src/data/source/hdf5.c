/* hdf5.c - arrays in an HDF5 file, "file.h5:/x,/y": read where they lie, a batch's rows at a time, so that they
 * may be larger than memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/decoded_items.h"
#include "data/formats.h"
#include "files/hdf5/hdf5_rows.h"

typedef struct hdf5_source {
    tdi_items items;
    tdi_hdf5_file *file;
    tdi_hdf5_rows *arrays[TDI_MAX_COLUMNS];
} hdf5_source;

/* Where ".h5" or ".hdf5" ends, at the end or before ":"; NULL: it is no such path. */
static const char *end_of_file_name(const char *path)
{
    static const char *const endings[] = {".h5", ".hdf5"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const char *found = strstr(path, endings[i]);
        const char *end = found ? found + strlen(endings[i]) : NULL;
        if (end && (*end == '\0' || *end == ':'))
            return end;
    }
    return NULL;
}

static bool hdf5_claims(const char *path)
{
    return end_of_file_name(path) != NULL;
}

/* ---- columns ---- */

/* Takes the first axis off, which is the samples. */
static td_status split_shape(const tdi_source *whole, const char *name, const td_shape *shape, td_shape *sample,
                             tdi_error *error)
{
    if (shape->rank == 0)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: \"%s\" is no array of 1 to %d axes, the samples being the first",
                        whole->name, name, TD_MAX_RANK);
    *sample = (td_shape){.rank = shape->rank - 1};
    memcpy(sample->dim, shape->dim + 1, (size_t)sample->rank * sizeof *sample->dim);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] == 0)
            return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds no samples%s", whole->name, name,
                            i ? " that have elements" : "");
    return TD_OK;
}

static td_status add_array(hdf5_source *source, bool target, const char *name, float scale, tdi_error *error)
{
    tdi_source *whole = &source->items.source;
    int at = whole->n_x + whole->n_y;
    tdi_hdf5_facts facts;
    td_shape sample;
    if (at == TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: more than %d arrays", whole->name, TDI_MAX_COLUMNS);
    TDI_TRY(tdi_hdf5_rows_open(source->file, name, &source->arrays[at], &facts, error));
    TDI_TRY(split_shape(whole, name, &facts.shape, &sample, error));
    if (at && facts.shape.dim[0] != whole->samples)
        return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds %lld samples but \"%s\" %lld: both need one per sample",
                        whole->name, whole->columns[0].name, (long long)whole->samples, name,
                        (long long)facts.shape.dim[0]);
    tdi_column *column = &whole->columns[at];
    snprintf(column->name, sizeof column->name, "%s", name);
    column->shape = sample;
    column->dtype = facts.dtype;
    column->scale = target || scale == 0 ? 1 : scale;
    whole->samples = facts.shape.dim[0];
    *(target ? &whole->n_y : &whole->n_x) += 1;
    return TD_OK;
}

/* "/x,/y", or "/x" to predict. */
static td_status add_named(hdf5_source *source, char *names, float scale, tdi_error *error)
{
    int count = 0;
    for (char *name; (name = strsep(&names, ",")); count++) {
        if (count == 2)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "%s: more than two arrays; say which is what by features, as x0=/a,x1=/b,y=/c",
                            source->items.source.name);
        TDI_TRY(add_array(source, count == 1, name, scale, error));
    }
    return TD_OK;
}

static td_status add_features(hdf5_source *source, char *features, float scale, tdi_error *error)
{
    for (char *word; (word = strsep(&features, ","));) {
        char *name = strchr(word, '=');
        bool target = *word == 'y';
        if (!name || (!target && (*word != 'x' || source->items.source.n_y)))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "features: expected x=ARRAY (or x0, x1, ...) and then y=ARRAY, got \"%s\"", word);
        TDI_TRY(add_array(source, target, name + 1, scale, error));
    }
    return source->items.source.n_x ? TD_OK : tdi_fail(error, TD_INVALID_ARGUMENT, "features: none is x");
}

/* The names that an .npz has: x and y, or x_train, ... by role. */
static td_status add_usual(hdf5_source *source, td_role role, float scale, tdi_error *error)
{
    const char *const plain[] = {"x", "y"}, *const train[] = {"x_train", "y_train"},
                      *const test[] = {"x_test", "y_test"};
    const char *const *by_role = role == TD_TRAIN ? train : test;
    const char *const *names = tdi_hdf5_file_has(source->file, by_role[0]) ? by_role : plain;
    if (!tdi_hdf5_file_has(source->file, names[0]))
        return tdi_fail(error, TD_NOT_FOUND, "%s: has neither an array \"x\" nor \"%s\"; name its arrays, as %s:/x,/y",
                        source->items.source.name, by_role[0], source->items.source.name);
    TDI_TRY(add_array(source, false, names[0], scale, error));
    return tdi_hdf5_file_has(source->file, names[1]) ? add_array(source, true, names[1], scale, error) : TD_OK;
}

/* ---- rows ---- */

static td_status hdf5_read(tdi_items *items, int column, int64_t first, int64_t count, void *to, tdi_error *error)
{
    return tdi_hdf5_rows_read(((const hdf5_source *)items)->arrays[column], first, count, to, error);
}

/* ---- opening ---- */

static void hdf5_release(tdi_source *whole)
{
    hdf5_source *source = (hdf5_source *)whole;
    for (int i = 0; i < TDI_MAX_COLUMNS; i++)
        tdi_hdf5_rows_close(source->arrays[i]);
    tdi_hdf5_file_close(source->file);
    free(source->items.kept);
    free(source);
}

static td_status add_arrays(hdf5_source *source, const td_open_args *args, const char *after, tdi_error *error)
{
    if (!*after && !args->features)
        return add_usual(source, args->role, args->scale, error);
    char *words = strdup(args->features ? args->features : after + 1);
    if (!words)
        return tdi_no_memory(error);
    td_status status =
        args->features ? add_features(source, words, args->scale, error) : add_named(source, words, args->scale, error);
    free(words);
    return status;
}

static td_status fill(hdf5_source *source, const td_open_args *args, tdi_error *error)
{
    const char *end = end_of_file_name(args->path);
    char *path = strndup(args->path, (size_t)(end - args->path));
    if (!path)
        return tdi_no_memory(error);
    td_status status = tdi_hdf5_file_open(path, &source->file, error);
    if (status == TD_OK)
        status = add_arrays(source, args, end, error);
    tdi_source_stamp(&source->items.source, path);
    tdi_source_content_file(&source->items.source, path);
    for (int i = 0; i < source->items.source.n_x + source->items.source.n_y; i++)
        tdi_source_stamp_words(&source->items.source, source->items.source.columns[i].name);
    free(path);
    return status == TD_OK && args->skip_errors == TD_YES ? tdi_items_sift(&source->items, error) : status;
}

static td_status hdf5_open(const td_open_args *args, tdi_source **opened, tdi_error *error)
{
    hdf5_source *source = calloc(1, sizeof *source);
    if (!source)
        return tdi_no_memory(error);
    snprintf(source->items.source.name, sizeof source->items.source.name, "%s", args->path);
    source->items.source.gather = tdi_items_gather;
    source->items.source.release = hdf5_release;
    source->items.read_run = hdf5_read;
    td_status status = fill(source, args, error);
    if (status == TD_OK)
        *opened = &source->items.source;
    else
        hdf5_release(&source->items.source);
    return status;
}

const tdi_source_format tdi_source_hdf5 = {"file.h5:/x,/y", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE | TDI_OPEN_FEATURES,
                                           hdf5_claims, hdf5_open,
                                           ", or write its arrays in smaller chunks (h5py: chunks=(64, ...))"};
