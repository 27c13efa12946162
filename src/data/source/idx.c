/* idx.c - a folder of IDX files, the form of MNIST and Fashion-MNIST: train-images-idx3-ubyte and
 * train-labels-idx1-ubyte for training, t10k-... for testing, gzipped or not. train-images.idx3-ubyte is accepted as
 * well. */
#include "data/source.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static td_status idx_source_open(const td_open_args *args, tdi_source **source, tdi_error *error)
{
    tdi_table *table;
    TDI_TRY(tdi_table_create(args->path, &table, error));
    td_status status = idx_add(table, args->path, args->role, args->scale, false, error);
    if (status == TD_OK)
        status = idx_add(table, args->path, args->role, args->scale, true, error);
    return tdi_source_finish(&table->reader.source, status, source);
}

const tdi_source_format tdi_source_idx = {"a directory of IDX files", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE, idx_claims,
                                          idx_source_open, ""};
