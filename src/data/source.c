/* source.c - the list of file formats; opens a path by the first format that claims it; what identifies a source's
 * data.
 *
 * A backup knows its data by the fingerprint: a CRC-32C of the arrays' values and of what opening has read of other
 * files. A stage has none of its own; the sources beneath it are visited. The stamp, of sizes and times, is cheap and
 * tells a cache that files have changed. */
#define _POSIX_C_SOURCE 200809L
#include "data/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/machine.h"
#include "data/array_names.h"
#include "data/source/image_list.h"
#include "files/folders.h"
#include "files/tfrecord_file.h"

const tdi_source_format *const tdi_source_formats[] = {&tdi_source_idx,      &tdi_source_npz,    &tdi_source_npy,
                                                       &tdi_source_tfrecord, &tdi_source_csv,    &tdi_source_hdf5,
                                                       &tdi_source_text,     &tdi_source_images, NULL};

/* Lists the names of the formats that read all of `fields`. */
static void list_formats(unsigned fields, char *names, size_t size)
{
    size_t used = 0;
    *names = '\0';
    for (const tdi_source_format *const *format = tdi_source_formats; *format && used < size; format++)
        if (((*format)->reads & fields) == fields)
            used += (size_t)snprintf(names + used, size - used, "%s%s", used ? ", " : "", (*format)->name);
}

static td_status unclaimed(const char *path, tdi_error *error)
{
    char names[256];
    list_formats(0, names, sizeof names);
    if (tdi_is_folder(path) && access(path, R_OK | X_OK) != 0)
        return tdi_fail(error, TD_IO, "%s: the folder cannot be read: %s", path, strerror(errno));
    if (tdi_is_folder(path))
        return tdi_fail(error, TD_NOT_FOUND,
                        "%s: not data of a known format: the folder holds neither IDX files nor, down to four folders "
                        "below, images, whose names would end in " TDI_IMAGE_ENDINGS "; data can be %s",
                        path, names);
    return tdi_fail(error, TD_NOT_FOUND, "%s: %s; data can be %s", path,
                    access(path, F_OK) == 0 ? "not data of a known format" : "no such file or directory", names);
}

/* Refuses a field that is given and that the format would ignore. */
static td_status check_fields(const td_open_args *args, const tdi_source_format *format, tdi_error *error)
{
    const struct {
        tdi_open_field field;
        bool given;
        const char *name, *option;
    } fields[] = {
        {TDI_OPEN_SCALE, args->scale != 0, "scale", "--scale"},
        {TDI_OPEN_IMAGE_SIZE, args->image_size.height || args->image_size.width, "image_size", "--image-size"},
        {TDI_OPEN_FEATURES, args->features, "features", "--features"},
        {TDI_OPEN_MISSING, args->missing, "missing", "--missing"},
        {TDI_OPEN_WINDOW, args->window, "window", "--window"},
        {TDI_OPEN_HORIZON, args->horizon, "horizon", "--horizon"},
        {TDI_OPEN_HEADER, args->header, "header", "--header"},
        {TDI_OPEN_SAMPLE_WEIGHT, tdi_named_weights(args), "sample_weight", "--sample-weight"}};
    char names[256];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!fields[i].given || (format->reads & fields[i].field))
            continue;
        list_formats(fields[i].field, names, sizeof names);
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: %s (%s) belongs to %s; this is %s: leave it out", args->path,
                        fields[i].name, fields[i].option, names, format->name);
    }
    return TD_OK;
}

/* Replaces the sentence of a format that ran out of memory by one that says what did not fit, and what helps. */
static td_status too_large(const td_open_args *args, const tdi_source_format *format, tdi_error *error)
{
    struct stat facts;
    char size[64] = "";
    if (stat(args->path, &facts) == 0 && S_ISREG(facts.st_mode))
        snprintf(size, sizeof size, " of %lld bytes", (long long)facts.st_size);
    *error = (tdi_error){0};
    return tdi_fail(error, TD_NO_MEMORY,
                    "%s: out of memory: to open %s%s takes more than is left of the %lld bytes that this process may "
                    "use; allow it more%s",
                    args->path, format->name, size, (long long)tdi_memory_allowed(), format->when_large);
}

td_status tdi_source_open(const td_open_args *args, tdi_source **source, tdi_error *error)
{
    for (const tdi_source_format *const *format = tdi_source_formats; *format; format++)
        if ((*format)->claims(args->path)) {
            TDI_TRY(check_fields(args, *format, error));
            td_status status = (*format)->open(args, source, error);
            if (status != TD_OK)
                return status == TD_NO_MEMORY ? too_large(args, *format, error) : status;
            if (!(*source)->stamp)
                tdi_source_stamp(*source, args->path);
            return TD_OK;
        }
    return unclaimed(args->path, error);
}

/* FNV-1a over the bytes of `value`. */
static uint64_t mixed(uint64_t hash, uint64_t value)
{
    for (int byte = 0; byte < 8; byte++)
        hash = (hash ^ (value >> 8 * byte & 0xff)) * UINT64_C(0x100000001b3);
    return hash;
}

void tdi_source_stamp(tdi_source *source, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return;
    uint64_t hash = source->stamp ? source->stamp : UINT64_C(0xcbf29ce484222325);
    hash = mixed(hash, (uint64_t)facts.st_size);
    hash = mixed(hash, (uint64_t)facts.st_mtim.tv_sec);
    source->stamp = mixed(hash, (uint64_t)facts.st_mtim.tv_nsec);
}

void tdi_source_stamp_words(tdi_source *source, const char *words)
{
    for (; *words; words++)
        source->stamp = mixed(source->stamp, (unsigned char)*words);
}

/* ---- the fingerprint ---- */

void tdi_source_content(tdi_source *source, const void *bytes, size_t size)
{
    source->content = tdi_crc32c(source->content, bytes, size);
}

void tdi_source_content_file(tdi_source *source, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) == 0)
        tdi_source_content(source, &facts.st_size, sizeof facts.st_size);
}

static td_status add_own(const tdi_source *source, uint32_t *crc, const atomic_int *stop, tdi_error *error)
{
    for (int i = 0; i < tdi_source_columns(source); i++) {
        const tdi_column *column = &source->columns[i];
        size_t sample = tdi_column_bytes(column);
        if (column->values)
            *crc = tdi_crc32c(*crc, column->values, (size_t)source->samples * sample);
        else if (source->checksum)
            TDI_TRY(source->checksum(source, i, 0, source->samples, crc, stop, error));
    }
    *crc = tdi_crc32c(*crc, &source->content, sizeof source->content);
    return TD_OK;
}

td_status tdi_source_fingerprint(const tdi_source *source, uint32_t *crc, const atomic_int *stop, tdi_error *error)
{
    const tdi_source *below;
    if (!source->beneath)
        return add_own(source, crc, stop, error);
    for (int i = 0; (below = source->beneath(source, i)); i++)
        TDI_TRY(tdi_source_fingerprint(below, crc, stop, error));
    return TD_OK;
}

static const tdi_source *below(const tdi_source *source, int64_t *row)
{
    if (source->origin)
        return source->origin(source, row);
    return source->beneath ? source->beneath(source, 0) : NULL;
}

const tdi_source *tdi_source_origin(const tdi_source *source, int64_t *row)
{
    for (const tdi_source *next; (next = below(source, row)); source = next)
        ;
    return source;
}

td_status tdi_source_count(tdi_source *source, const char *or_else, const atomic_int *stop, tdi_error *error)
{
    if (source->samples != TDI_SAMPLES_UNKNOWN)
        return TD_OK;
    if (source->count)
        return source->count(source, or_else, stop, error);
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: how many samples it has is not known", source->name);
}

td_status tdi_source_finish(tdi_source *source, td_status status, tdi_source **opened)
{
    if (status == TD_OK)
        *opened = source;
    else
        source->release(source);
    return status;
}

td_status tdi_source_begin(tdi_source *source, const tdi_source_run *run, tdi_error *error)
{
    return source->begin ? source->begin(source, run, error) : TD_OK;
}

void tdi_source_end(tdi_source *source)
{
    if (source->end)
        source->end(source);
}

/* ---- stages over one source ---- */

tdi_source *tdi_stage_below(const tdi_source *stage)
{
    return stage->of->source;
}

static td_status stage_count(tdi_source *stage, const char *or_else, const atomic_int *stop, tdi_error *error)
{
    TDI_TRY(tdi_source_count(tdi_stage_below(stage), or_else, stop, error));
    stage->samples = tdi_stage_below(stage)->samples;
    return TD_OK;
}

static td_status stage_begin(tdi_source *stage, const tdi_source_run *run, tdi_error *error)
{
    return tdi_source_begin(tdi_stage_below(stage), run, error);
}

static void stage_end(tdi_source *stage)
{
    tdi_source_end(tdi_stage_below(stage));
}

static const tdi_source *stage_beneath(const tdi_source *stage, int index)
{
    return index == 0 ? tdi_stage_below(stage) : NULL;
}

void tdi_stage_init(tdi_source *stage, td_data *of)
{
    *stage = *of->source;
    stage->of = of;
    stage->count = stage_count;
    stage->begin = of->source->begin ? stage_begin : NULL;
    stage->end = of->source->end ? stage_end : NULL;
    stage->beneath = stage_beneath;
    stage->origin = NULL;
    stage->checksum = NULL;
}

void tdi_stage_release(tdi_source *stage)
{
    td_data_release(stage->of);
    free(stage);
}
