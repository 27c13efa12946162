/* hdf5.c - arrays in an HDF5 file, "file.h5:/x,/y", or by name, see array_names.h. They are read in place, a batch's
 * rows at a time, so that they may be larger than memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/array_names.h"
#include "data/sample_reader.h"
#include "data/source.h"
#include "files/hdf5/hdf5_list.h"
#include "files/hdf5/hdf5_rows.h"

typedef struct hdf5_source {
    tdi_sample_reader reader;
    float scale; /* of inputs */
    tdi_hdf5_file *file;
    tdi_hdf5_rows *arrays[TDI_MAX_COLUMNS];
    uint64_t addresses[TDI_MAX_COLUMNS]; /* of the arrays in the file */
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

/* ---- the arrays that there are ---- */

/* The names, as many as a sentence allows. */
static td_status array_names(hdf5_source *source, tdi_text *names, tdi_error *error)
{
    enum { MOST = 400 };
    tdi_hdf5_list list;
    td_status status = tdi_hdf5_list_arrays(source->file, &list, error);
    int i = 0;
    for (; i < list.links.count && names->length < MOST; i++)
        tdi_text_format(names, "%s%s", i ? ", " : "", list.links.at[i].path);
    if (i < list.links.count)
        tdi_text_format(names, ", and %d more", list.links.count - i);
    else if (list.more)
        tdi_text_add(names, i ? ", and perhaps more" : "damaged groups");
    tdi_hdf5_list_release(&list);
    return status;
}

static const char *said(const tdi_text *names)
{
    return names->chars && names->length ? names->chars : "no arrays";
}

static td_status has_no(hdf5_source *source, const char *name, tdi_error *error)
{
    tdi_text names = {0};
    td_status status = array_names(source, &names, error);
    if (status == TD_OK)
        status = tdi_fail(error, TD_NOT_FOUND, "%s: has no array \"%s\"; it holds: %s", source->reader.source.name,
                          name, said(&names));
    tdi_text_free(&names);
    return status;
}

static td_status lacks_inputs(hdf5_source *source, const char *part, tdi_error *error)
{
    const char *file = source->reader.source.name;
    tdi_text names = {0};
    td_status status = array_names(source, &names, error);
    if (status == TD_OK && names.length)
        status = tdi_fail(error, TD_NOT_FOUND,
                          "%s: no array named x, x_%s or x0; it holds: %s. Say which is what (features, --features "
                          "x=NAME,y=NAME), or name one or two behind the file, as %s:/NAME,/NAME",
                          file, part, said(&names), file);
    else if (status == TD_OK)
        status = tdi_fail(error, TD_NOT_FOUND,
                          "%s: it holds no arrays; it needs x, and y to train (h5py: file[\"x\"] = ...)", file);
    tdi_text_free(&names);
    return status;
}

static bool is_used(const hdf5_source *source, uint64_t address)
{
    for (int i = 0; i < tdi_source_columns(&source->reader.source); i++)
        if (source->addresses[i] == address)
            return true;
    return false;
}

static td_status note_unused(hdf5_source *source, const tdi_named_arrays *arrays, tdi_error *error)
{
    tdi_unused unused = {0};
    tdi_hdf5_list list;
    td_status status = tdi_hdf5_list_arrays(source->file, &list, error);
    unused.more = list.more;
    for (int i = 0; i < list.links.count; i++)
        if (!is_used(source, list.links.at[i].address))
            tdi_unused_array(arrays, list.links.at[i].path, &unused);
    tdi_hdf5_list_release(&list);
    tdi_note_unused_arrays(arrays->source, &unused);
    return status;
}

/* ---- columns ---- */

static bool has_array(void *of, const char *name)
{
    return tdi_hdf5_file_has(((const hdf5_source *)of)->file, name);
}

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

static td_status add_array(void *to, tdi_column_role role, const char *name, tdi_error *error)
{
    hdf5_source *source = to;
    tdi_source *base = &source->reader.source;
    int at = tdi_source_columns(base);
    tdi_hdf5_facts facts;
    td_shape sample;
    if (at == TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: more than %d arrays", base->name, TDI_MAX_COLUMNS);
    if (!has_array(source, name))
        return has_no(source, name, error);
    TDI_TRY(tdi_hdf5_find(source->file, name, &source->addresses[at], error));
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
    column->scale = role != TDI_X || source->scale == 0 ? 1 : source->scale;
    base->samples = facts.shape.dim[0];
    *tdi_source_count_of(base, role) += 1;
    return TD_OK;
}

/* Adds the arrays that the path names: "/x,/y", or "/x" for prediction. */
static td_status add_named(hdf5_source *source, char *names, tdi_error *error)
{
    int count = 0;
    for (char *name; (name = strsep(&names, ",")); count++) {
        if (count == 2)
            return tdi_fail(
                error, TD_INVALID_ARGUMENT,
                "%s: more than two arrays; say which is what by features, as x0=/a,x1=/b,y=/c, and which weighs "
                "the losses by sample_weight (--sample-weight)",
                source->reader.source.name);
        TDI_TRY(add_array(source, count ? TDI_Y : TDI_X, name, error));
    }
    return TD_OK;
}

/* Adds the arrays that the path names, with weights that the arguments name. */
static td_status add_by_path(hdf5_source *source, const td_open_args *args, const char *words, tdi_error *error)
{
    const char *weights = tdi_named_weights(args);
    char *names = strdup(words);
    if (!names)
        return tdi_no_memory(error);
    td_status status = add_named(source, names, error);
    free(names);
    return status == TD_OK && weights ? tdi_add_weights(weights, add_array, source, error) : status;
}

static td_status add_arrays(hdf5_source *source, const td_open_args *args, const char *after, tdi_error *error)
{
    const tdi_named_arrays arrays = {args, &source->reader.source, has_array, add_array, source};
    if (*after && args->features)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: its arrays are named both behind the file and by features (--features): leave one out",
                        args->path);
    if (*after)
        TDI_TRY(add_by_path(source, args, after + 1, error));
    else
        TDI_TRY(tdi_add_arrays(&arrays, error));
    if (!arrays.source->n_x)
        return lacks_inputs(source, tdi_arrays_part(&arrays), error);
    return note_unused(source, &arrays, error);
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
    for (int i = 0; i < tdi_source_columns(&source->reader.source); i++)
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
    source->scale = args->scale;
    td_status status = fill(source, args, error);
    return tdi_source_finish(&source->reader.source, status, opened);
}

const tdi_source_format tdi_source_hdf5 = {
    "file.h5:/x,/y", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE | TDI_OPEN_FEATURES | TDI_OPEN_SAMPLE_WEIGHT, hdf5_claims,
    hdf5_open, ", or write its arrays in smaller chunks (h5py: chunks=(64, ...))"};
