/* image_pairs.c - images and their label maps, for segmentation.
 *
 * Files of two folders belong together when their names agree without the endings. Labels are PNG files of class
 * numbers. A file classes.txt beside the labels' folder may give the classes names, one per line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/source/images.h"

static size_t stem_length(const char *path, const char **stem)
{
    const char *slash = strrchr(path, '/');
    *stem = slash ? slash + 1 : path;
    return (size_t)(strrchr(*stem, '.') - *stem);
}

static int by_stem(const void *a, const void *b)
{
    const char *stem_a, *stem_b;
    size_t length_a = stem_length(*(char *const *)a, &stem_a), length_b = stem_length(*(char *const *)b, &stem_b);
    int order = memcmp(stem_a, stem_b, length_a < length_b ? length_a : length_b);
    return order ? order : (length_a > length_b) - (length_a < length_b);
}

/* For each image the number of its label map, and the other way round; -1: there is none. */
typedef struct pairs {
    int *label_of, *image_of;
} pairs;

static void find_pairs(const tdi_images *source, const pairs *found)
{
    const tdi_paths *images = &source->images, *labels = &source->labels;
    for (int i = 0; i < labels->count; i++)
        found->image_of[i] = -1;
    for (int i = 0; i < images->count; i++) {
        char **label = bsearch(&images->at[i], labels->at, (size_t)labels->count, sizeof *labels->at, by_stem);
        int at = label && found->image_of[label - labels->at] < 0 ? (int)(label - labels->at) : -1;
        found->label_of[i] = at;
        if (at >= 0)
            found->image_of[at] = i;
    }
}

/* Fails for the first image without a label map, or label map without an image. */
static td_status check_pairs(const tdi_images *source, const pairs *found, const char *images, const char *labels,
                             tdi_error *error)
{
    for (int i = 0; i < source->images.count; i++)
        if (found->label_of[i] < 0)
            return tdi_fail(
                error, TD_BAD_FILE,
                "%s has no labels of its name in %s, or another image of that name has them: every image needs its own",
                source->images.at[i], labels);
    for (int i = 0; i < source->labels.count; i++)
        if (found->image_of[i] < 0)
            return tdi_fail(error, TD_BAD_FILE, "%s has no image of its name in %s", source->labels.at[i], images);
    return TD_OK;
}

/* Keeps only the pairs in both lists, in the images' order. `labels` has room for them. */
static void keep_pairs(tdi_images *source, const pairs *found, char **labels)
{
    int kept = 0;
    for (int i = 0; i < source->labels.count; i++)
        if (found->image_of[i] < 0)
            free(source->labels.at[i]);
    for (int i = 0; i < source->images.count; i++) {
        if (found->label_of[i] < 0) {
            free(source->images.at[i]);
            continue;
        }
        labels[kept] = source->labels.at[found->label_of[i]];
        source->images.at[kept++] = source->images.at[i];
    }
    source->reader.source.skipped = source->images.count - kept + source->labels.count - kept;
    free(source->labels.at);
    source->labels.at = labels;
    source->labels.count = source->images.count = kept;
}

static td_status make_pairs(tdi_images *source, const pairs *found, const char *images, const char *labels, bool skip,
                            tdi_error *error)
{
    tdi_error alone = {0};
    find_pairs(source, found);
    if (check_pairs(source, found, images, labels, &alone) != TD_OK && !skip)
        return tdi_fail(error, alone.status, "%s", alone.message);
    snprintf(source->reader.source.skip_reason, sizeof source->reader.source.skip_reason, "%s", alone.message);
    char **paired = malloc(((size_t)source->images.count + 1) * sizeof *paired);
    if (!paired)
        return tdi_no_memory(error);
    keep_pairs(source, found, paired);
    return source->images.count
               ? TD_OK
               : tdi_fail(error, TD_BAD_FILE, "no image in %s has labels of its name in %s", images, labels);
}

static td_status pair_up(tdi_images *source, const char *images, const char *labels, bool skip, tdi_error *error)
{
    TDI_TRY(tdi_list_images(images, false, &source->images, &source->left, error));
    TDI_TRY(tdi_list_images(labels, false, &source->labels, &source->left, error));
    if (source->labels.count)
        qsort(source->labels.at, (size_t)source->labels.count, sizeof *source->labels.at, by_stem);
    pairs found = {malloc(((size_t)source->images.count + 1) * sizeof(int)),
                   malloc(((size_t)source->labels.count + 1) * sizeof(int))};
    td_status status = found.label_of && found.image_of ? make_pairs(source, &found, images, labels, skip, error)
                                                        : tdi_no_memory(error);
    free(found.label_of);
    free(found.image_of);
    return status;
}

/* Reads a file of class names, one per line; empty lines may follow the last. */
static td_status read_names(FILE *file, const char *path, json_t *names, tdi_error *error)
{
    char line[256];
    bool ended = false;
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        bool whole = strchr(line, '\n') || strlen(line) + 1 < sizeof line;
        line[strcspn(line, "\r\n")] = '\0';
        if (!whole || (line[0] && (ended || json_array_append_new(names, json_string(line)) != 0)))
            return tdi_fail(error, TD_BAD_FILE,
                            "%s: line %d is no name of a class: expected UTF-8, less than 255 bytes, and no empty "
                            "line before",
                            path, number);
        ended = !line[0];
    }
    return ferror(file) ? tdi_fail(error, TD_IO, "%s: cannot be read: %s", path, strerror(errno)) : TD_OK;
}

/* Sets *names from classes.txt beside the folder, or from the recipe; NULL when there is neither. */
static td_status names_of_labels(const td_open_args *args, const char *labels, json_t **names, tdi_error *error)
{
    char path[TDI_MAX_PATH + 16];
    size_t end = strlen(labels);
    while (end > 1 && labels[end - 1] == '/')
        end--;
    while (end > 0 && labels[end - 1] != '/')
        end--;
    snprintf(path, sizeof path, "%.*sclasses.txt", (int)end, labels);
    FILE *file = fopen(path, "re");
    if (!file && errno != ENOENT)
        return tdi_fail(error, TD_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (file) {
        *names = json_array();
        td_status status = read_names(file, path, *names, error);
        fclose(file);
        return status;
    }
    *names = tdi_images_known_classes(args);
    return TD_OK;
}

td_status tdi_images_add_pairs(tdi_images *source, const td_open_args *args, const char *images, const char *labels,
                               tdi_error *error)
{
    TDI_TRY(pair_up(source, images, labels, args->skip_errors == TD_YES, error));
    TDI_TRY(tdi_images_add_x(source, args, images, error));
    source->label_form = source->form;
    source->label_form.kind = TDI_IMAGE_LABELS;
    source->label_form.image.channels = 1;
    source->label_form.nearest = true;
    source->label_form.size_of = "the images are";
    tdi_images_add_y(source, TD_UINT8, &TD_SHAPE(source->form.image.height, source->form.image.width));
    json_t *names = NULL;
    td_status status = names_of_labels(args, labels, &names, error);
    source->reader.source.recipe = status == TD_OK && names ? tdi_images_recipe(names) : NULL;
    json_decref(names);
    return status;
}
