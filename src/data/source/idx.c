/* idx.c - a folder of IDX files, the form of MNIST and Fashion-MNIST: train-images-idx3-ubyte and
 * train-labels-idx1-ubyte for training, t10k-... for testing, gzipped or not. train-images.idx3-ubyte is accepted as
 * well. */
#include "data/source.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/array_names.h"
#include "data/file_list.h"
#include "data/source/idx_file.h"

static const char *const idx_parts[] = {[TD_TRAIN] = "train", [TD_TEST] = "t10k"};

/* True for "train-images-idx..." and "train-images.idx...", with `split` "train" and `kind` "images". */
static bool idx_is(const char *file, const char *split, const char *kind)
{
    size_t split_length = strlen(split), kind_length = strlen(kind);
    if (strncmp(file, split, split_length) != 0 || file[split_length] != '-' ||
        strncmp(file + split_length + 1, kind, kind_length) != 0)
        return false;
    const char *rest = file + split_length + 1 + kind_length;
    return (*rest == '-' || *rest == '.') && strncmp(rest + 1, "idx", 3) == 0;
}

/* The first such file by name, so that a plain file comes before its gzipped twin. The caller frees it; NULL: none. */
static char *idx_find(const char *directory, const char *split, const char *kind)
{
    char *found = NULL;
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (idx_is(entry->d_name, split, kind) && (!found || strcmp(entry->d_name, found) < 0)) {
            free(found);
            found = strdup(entry->d_name);
        }
    if (entries)
        closedir(entries);
    return found;
}

static bool idx_claims(const char *path)
{
    bool claimed = false;
    for (int role = TD_TRAIN; role <= TD_TEST && !claimed; role++) {
        char *images = idx_find(path, idx_parts[role], "images");
        claimed = images != NULL;
        free(images);
    }
    return claimed;
}

/* Adds the folder's images or labels to the table. Labels may be missing: such data is for prediction. */
static td_status idx_add(tdi_table *table, const char *directory, td_role role, float scale, bool labels,
                         tdi_error *error)
{
    const char *kind = labels ? "labels" : "images";
    char *file = idx_find(directory, idx_parts[role], kind), path[4096];
    if (!file)
        return labels ? TD_OK
                      : tdi_fail(error, TD_NOT_FOUND,
                                 "%s: it holds no %s-%s-idx3-ubyte (or .gz): put the file there, or use the other part",
                                 directory, idx_parts[role], kind);
    int length = snprintf(path, sizeof path, "%s/%s", directory, file);
    free(file);
    if (length >= (int)sizeof path)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: the path is too long", directory);
    tdi_array array;
    TDI_TRY(tdi_idx_read(path, &array, error));
    if (labels || (scale == 0 && array.dtype != TD_UINT8))
        scale = 1;
    else if (scale == 0)
        scale = 1.0f / 255;
    return tdi_table_add(table, labels, labels ? "y" : "x", scale, &array, error);
}

/* ---- files that are not read ---- */

/* Is it the file `found`, or its gzipped twin? */
static bool idx_is_twin(const char *file, const char *found)
{
    size_t length = found ? strlen(found) : 0;
    return length && strncmp(file, found, length) == 0 && (!file[length] || strcmp(file + length, ".gz") == 0);
}

/* The files that both parts are read from; NULL: none. */
typedef struct idx_files {
    char *found[4];
} idx_files;

static idx_files idx_find_all(const char *directory)
{
    idx_files files;
    for (int i = 0; i < 4; i++)
        files.found[i] = idx_find(directory, idx_parts[i < 2 ? TD_TRAIN : TD_TEST], i % 2 ? "labels" : "images");
    return files;
}

static bool idx_reads(const idx_files *files, const char *file)
{
    for (int i = 0; i < 4; i++)
        if (idx_is_twin(file, files->found[i]))
            return true;
    return false;
}

static int idx_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static td_status idx_list_others(const char *directory, tdi_paths *others, tdi_error *error)
{
    td_status status = TD_OK;
    idx_files files = idx_find_all(directory);
    DIR *entries = opendir(directory);
    for (struct dirent *entry; status == TD_OK && entries && (entry = readdir(entries));) {
        if (entry->d_name[0] == '.' || idx_reads(&files, entry->d_name))
            continue;
        char *name = strdup(entry->d_name);
        if (!name || !tdi_push(others, name)) {
            free(name);
            status = tdi_no_memory(error);
        }
    }
    if (entries)
        closedir(entries);
    for (int i = 0; i < 4; i++)
        free(files.found[i]);
    return status;
}

static td_status idx_note_others(tdi_source *source, const char *directory, tdi_error *error)
{
    tdi_unused unused = {0};
    tdi_paths others = {0};
    td_status status = idx_list_others(directory, &others, error);
    if (others.count)
        qsort(others.at, (size_t)others.count, sizeof *others.at, idx_by_name);
    for (int i = 0; i < others.count; i++)
        tdi_unused_add(&unused, others.at[i]);
    tdi_note_unused(source, &unused, "files",
                    "of a folder of IDX files only train-images, train-labels, t10k-images and t10k-labels are read");
    tdi_paths_free(&others);
    return status;
}

static td_status idx_source_open(const td_open_args *args, tdi_source **source, tdi_error *error)
{
    tdi_table *table;
    TDI_TRY(tdi_table_create(args->path, &table, error));
    td_status status = idx_add(table, args->path, args->role, args->scale, false, error);
    if (status == TD_OK)
        status = idx_add(table, args->path, args->role, args->scale, true, error);
    if (status == TD_OK)
        status = idx_note_others(&table->reader.source, args->path, error);
    return tdi_source_finish(&table->reader.source, status, source);
}

const tdi_source_format tdi_source_idx = {"a directory of IDX files", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE, idx_claims,
                                          idx_source_open, ""};
