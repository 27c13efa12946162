/* hdf5.c - arrays in an HDF5 file, "file.h5:/x,/y". They are read in place, a batch's rows at a time, so that they may
 * be larger than memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sample_reader.h"
#include "data/source.h"
#include "files/hdf5/hdf5_rows.h"

typedef struct hdf5_source {
    tdi_sample_reader reader;
    tdi_hdf5_file *file;
    tdi_hdf5_rows *arrays[TDI_MAX_COLUMNS];
} hdf5_source;

/* Points behind the ".h5" or ".hdf5" that ends the path or stands before ":"; NULL: there is none. */
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

/* Checks an array's shape and removes its first axis, the samples. */
static td_status split_shape(const tdi_source *base, const char *name, const td_shape *shape, td_shape *sample,
                             tdi_error *error)
{
    if (shape->rank == 0)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: \"%s\" is no array of 1 to %d axes, the samples being the first",
                        base->name, name, TD_MAX_RANK);
    *sample = (td_shape){.rank = shape->rank - 1};
    memcpy(sample->dim, shape->dim + 1, (size_t)sample->rank * sizeof *sample->dim);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] == 0)
            return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds no samples%s", base->name, name,
                            i ? " that have elements" : "");
    return TD_OK;
}

static td_status add_array(hdf5_source *source, bool target, const char *name, float scale, tdi_error *error)
{
    tdi_source *base = &source->reader.source;
    int at = base->n_x + base->n_y;
    tdi_hdf5_facts facts;
    td_shape sample;
    if (at == TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: more than %d arrays", base->name, TDI_MAX_COLUMNS);
    TDI_TRY(tdi_hdf5_rows_open(source->file, name, &source->arrays[at], &facts, error));
    TDI_TRY(split_shape(base, name, &facts.shape, &sample, error));
    if (at && facts.shape.dim[0] != base->samples)
        return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds %lld samples but \"%s\" %lld: both need one per sample",
                        base->name, base->columns[0].name, (long long)base->samples, name,
                        (long long)facts.shape.dim[0]);
    tdi_column *column = &base->columns[at];
    snprintf(column->name, sizeof column->name, "%s", name);
    column->shape = sample;
    column->dtype = facts.dtype;
    column->scale = target || scale == 0 ? 1 : scale;
    base->samples = facts.shape.dim[0];
    *(target ? &base->n_y : &base->n_x) += 1;
    return TD_OK;
}

/* Adds the arrays that the path names: "/x,/y", or "/x" for prediction. */
static td_status add_named(hdf5_source *source, char *names, float scale, tdi_error *error)
{
    int count = 0;
    for (char *name; (name = strsep(&names, ",")); count++) {
        if (count == 2)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "%s: more than two arrays; say which is what by features, as x0=/a,x1=/b,y=/c",
                            source->reader.source.name);
        TDI_TRY(add_array(source, count == 1, name, scale, error));
    }
    return TD_OK;
}

static td_status add_features(hdf5_source *source, char *features, float scale, tdi_error *error)
{
    for (char *word; (word = strsep(&features, ","));) {
        char *name = strchr(word, '=');
        bool target = *word == 'y';
        if (!name || (!target && (*word != 'x' || source->reader.source.n_y)))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "features: expected x=ARRAY (or x0, x1, ...) and then y=ARRAY, got \"%s\"", word);
        TDI_TRY(add_array(source, target, name + 1, scale, error));
    }
    return source->reader.source.n_x ? TD_OK : tdi_fail(error, TD_INVALID_ARGUMENT, "features: none is x");
}

/* Adds the arrays with the names that an .npz has: x and y, or x_train, ... by role. */
static td_status add_usual(hdf5_source *source, td_role role, float scale, tdi_error *error)
{
    const char *const plain[] = {"x", "y"}, *const train[] = {"x_train", "y_train"},
                      *const test[] = {"x_test", "y_test"};
    const char *const *by_role = role == TD_TRAIN ? train : test;
    const char *const *names = tdi_hdf5_file_has(source->file, by_role[0]) ? by_role : plain;
    if (!tdi_hdf5_file_has(source->file, names[0]))
        return tdi_fail(error, TD_NOT_FOUND, "%s: has neither an array \"x\" nor \"%s\"; name its arrays, as %s:/x,/y",
                        source->reader.source.name, by_role[0], source->reader.source.name);
    TDI_TRY(add_array(source, false, names[0], scale, error));
    return tdi_hdf5_file_has(source->file, names[1]) ? add_array(source, true, names[1], scale, error) : TD_OK;
}

/* ---- rows ---- */

static td_status hdf5_read(tdi_sample_reader *reader, int column, int64_t first, int64_t count, void *to,
                           tdi_error *error)
{
    return tdi_hdf5_rows_read(((const hdf5_source *)reader)->arrays[column], first, count, to, error);
}

/* ---- opening ---- */

static void hdf5_release(tdi_source *base)
{
    hdf5_source *source = (hdf5_source *)base;
    for (int i = 0; i < TDI_MAX_COLUMNS; i++)
        tdi_hdf5_rows_close(source->arrays[i]);
    tdi_hdf5_file_close(source->file);
    free(source->reader.kept);
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
    tdi_source_stamp(&source->reader.source, path);
    tdi_source_content_file(&source->reader.source, path);
    for (int i = 0; i < source->reader.source.n_x + source->reader.source.n_y; i++)
        tdi_source_stamp_words(&source->reader.source, source->reader.source.columns[i].name);
    free(path);
    return status == TD_OK && args->skip_errors == TD_YES ? tdi_sample_reader_drop_bad(&source->reader, error) : status;
}

static td_status hdf5_open(const td_open_args *args, tdi_source **opened, tdi_error *error)
{
    hdf5_source *source = tdi_sample_reader_create(sizeof *source, args->path, hdf5_release, error);
    if (!source)
        return TD_NO_MEMORY;
    source->reader.read_run = hdf5_read;
    td_status status = fill(source, args, error);
    return tdi_source_finish(&source->reader.source, status, opened);
}

const tdi_source_format tdi_source_hdf5 = {"file.h5:/x,/y", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE | TDI_OPEN_FEATURES,
                                           hdf5_claims, hdf5_open,
                                           ", or write its arrays in smaller chunks (h5py: chunks=(64, ...))"};
