/* images.c - folders of images.
 *
 * For classification there is one folder per class, and classes are numbered in the order of the folders' names, as in
 * Keras's image_dataset_from_directory. The names are the recipe: other data is numbered by them, whichever folders it
 * has.
 *
 * For segmentation the path is "images,labels": two folders whose files belong together when their names agree without
 * the endings. Labels are PNG files of class numbers. A file classes.txt beside the labels' folder may give the classes
 * names, one per line, which are the recipe.
 *
 * A folder may hold the splits of a data set: train/ and test/ (or val/, validation/), of which the role chooses one,
 * and for segmentation trainannot/, testannot/, ... beside them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/recipe.h"
#include "data/sample_reader.h"
#include "data/source.h"
#include "data/source/image_files.h"
#include "files/folders.h"

#define MAX_PATH 4096

typedef struct images_source {
    tdi_sample_reader reader;
    tdi_paths images, labels; /* labels: for segmentation */
    tdi_image_form form, label_form;
    int64_t *classes; /* [samples], for classification */
} images_source;

/* ---- which folders ---- */

static const char *const role_names[2][4] = {{"train", NULL}, {"test", "val", "validation", NULL}};

/* Sets `split` to the folder's split for the role; `suffix` is "" or "annot". False when there is none. */
static bool find_split(const char *path, td_role role, const char *suffix, char split[MAX_PATH])
{
    for (const char *const *name = role_names[role]; *name; name++) {
        int length = snprintf(split, MAX_PATH, "%s/%s%s", path, *name, suffix);
        if (length < MAX_PATH && tdi_is_folder(split))
            return true;
    }
    return false;
}

/* True when the folder has images and labels for another role, whose folders would be taken for classes. */
static bool holds_other_pairs(const char *path, td_role role)
{
    char split[MAX_PATH];
    td_role other = role == TD_TRAIN ? TD_TEST : TD_TRAIN;
    return find_split(path, other, "", split) && find_split(path, other, "annot", split);
}

static bool holds_folders(const char *path)
{
    tdi_paths folders = {0};
    bool holds = tdi_is_folder(path) && tdi_list_folders(path, &folders, NULL) == TD_OK && folders.count > 0;
    tdi_paths_free(&folders);
    return holds;
}

static bool holds_images(const char *path)
{
    tdi_paths images = {0};
    bool holds = tdi_is_folder(path) && tdi_list_images(path, &images, NULL) == TD_OK && images.count > 0;
    tdi_paths_free(&images);
    return holds;
}

/* True when the folder, or a folder down to `depth` levels below, has images. */
static bool leads_to_images(const char *path, int depth)
{
    tdi_paths folders = {0};
    bool leads = holds_images(path);
    if (!leads && depth > 0)
        tdi_list_folders(path, &folders, NULL);
    for (int i = 0; i < folders.count && !leads; i++)
        leads = leads_to_images(folders.at[i], depth - 1);
    tdi_paths_free(&folders);
    return leads;
}

static bool images_claims(const char *path)
{
    char first[MAX_PATH];
    size_t length = strcspn(path, ",");
    snprintf(first, sizeof first, "%.*s", (int)(length < MAX_PATH ? length : 0), path);
    return tdi_is_folder(first) && (path[length] == ',' || leads_to_images(first, 2));
}

/* ---- columns ---- */

static void set_column(tdi_source *source, int at, const char *name, td_dtype dtype, float scale, const td_shape *shape)
{
    tdi_column *column = &source->columns[at];
    snprintf(column->name, sizeof column->name, "%s", name);
    column->dtype = dtype;
    column->scale = scale;
    column->shape = *shape;
}

/* Sets the form from the first file, or with `skip` from the first that can be read. */
static td_status find_form(const tdi_paths *files, tdi_image_kind kind, const td_image_size *size, bool skip,
                           tdi_image_form *form, tdi_error *error)
{
    for (int i = 0;; i++) {
        tdi_error local = {0};
        td_status status = tdi_image_form_of(files->at[i], kind, size, form, &local);
        if (status == TD_OK)
            return TD_OK;
        if (!skip || status != TD_BAD_FILE || i + 1 == files->count)
            return tdi_fail(error, status, "%s", local.message);
    }
}

static td_status add_x(images_source *source, const td_open_args *args, tdi_error *error)
{
    tdi_source *base = &source->reader.source;
    const tdi_image *image = &source->form.image;
    if (!source->images.count)
        return tdi_fail(error, TD_BAD_FILE, "%s holds no JPEG or PNG images", args->path);
    TDI_TRY(find_form(&source->images, TDI_IMAGE_COLOURS, &args->image_size, args->skip_errors == TD_YES, &source->form,
                      error));
    base->samples = source->images.count;
    base->n_x = 1;
    set_column(base, 0, "x", TD_UINT8, args->scale != 0 ? args->scale : 1.0f / 255,
               &TD_SHAPE(image->height, image->width, image->channels));
    return TD_OK;
}

/* ---- to classify ---- */

static td_status add_class(images_source *source, const char *folder, int64_t number, tdi_error *error)
{
    int before = source->images.count;
    TDI_TRY(tdi_list_images(folder, &source->images, error));
    int64_t *grown = realloc(source->classes, ((size_t)source->images.count + 1) * sizeof *grown);
    if (!grown)
        return tdi_no_memory(error);
    source->classes = grown;
    for (int i = before; i < source->images.count; i++)
        grown[i] = number;
    return TD_OK;
}

/* The class number of a folder; -1: it is not in the list. */
static int64_t class_of(const json_t *classes, const char *folder)
{
    const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
    for (size_t i = 0; i < json_array_size(classes); i++)
        if (strcmp(json_string_value(json_array_get(classes, i)), name) == 0)
            return (int64_t)i;
    return -1;
}

static json_t *names_of(const tdi_paths *folders)
{
    json_t *names = json_array();
    for (int i = 0; i < folders->count; i++) {
        const char *slash = strrchr(folders->at[i], '/');
        json_array_append_new(names, json_string_nocheck(slash ? slash + 1 : folders->at[i]));
    }
    return names;
}

static bool are_strings(const json_t *classes)
{
    for (size_t i = 0; i < json_array_size(classes); i++)
        if (!json_is_string(json_array_get(classes, i)))
            return false;
    return true;
}

/* The recipe's classes, when one of the folders is among them; else the data set is another one, whose folders are
 * numbered by themselves. */
static json_t *choose_classes(const td_open_args *args, const tdi_paths *folders)
{
    json_t *recipe = tdi_recipe_of(args->recipe, "images"), *classes = json_object_get(recipe, "classes");
    bool known = false;
    for (int i = 0; i < folders->count && are_strings(classes) && !known; i++)
        known = class_of(classes, folders->at[i]) >= 0;
    classes = known ? json_incref(classes) : names_of(folders);
    json_decref(recipe);
    return classes;
}

static td_status add_folders(images_source *source, const td_open_args *args, const tdi_paths *folders,
                             const json_t *classes, tdi_error *error)
{
    for (int i = 0; i < folders->count; i++) {
        int64_t number = class_of(classes, folders->at[i]);
        if (number < 0 && args->targets != TD_NO)
            return tdi_fail(error, TD_BAD_FILE,
                            "%s is none of the %zu classes that the model was trained on; take it away, or rename it",
                            folders->at[i], json_array_size(classes));
        TDI_TRY(add_class(source, folders->at[i], number, error));
    }
    return TD_OK;
}

/* The recipe as text; NULL when a name is not UTF-8. */
static char *recipe_of(json_t *classes)
{
    json_t *recipe = json_pack("{s:s, s:O}", "format", "images", "classes", classes);
    char *text = json_dumps(recipe, JSON_COMPACT);
    json_decref(recipe);
    return text;
}

static td_status add_classes(images_source *source, const td_open_args *args, const char *path, tdi_error *error)
{
    tdi_paths folders = {0};
    td_status status = tdi_list_folders(path, &folders, error);
    json_t *classes = choose_classes(args, &folders);
    if (status == TD_OK)
        status = add_folders(source, args, &folders, classes, error);
    source->reader.source.recipe = status == TD_OK ? recipe_of(classes) : NULL;
    json_decref(classes);
    tdi_paths_free(&folders);
    TDI_TRY(status);
    TDI_TRY(add_x(source, args, error));
    source->reader.source.n_y = 1;
    set_column(&source->reader.source, 1, "y", TD_INT64, 1, &(td_shape){0});
    return TD_OK;
}

/* ---- to segment ---- */

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

static void find_pairs(const images_source *source, const pairs *found)
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
static td_status check_pairs(const images_source *source, const pairs *found, const char *images, const char *labels,
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
static void keep_pairs(images_source *source, const pairs *found, char **labels)
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

static td_status make_pairs(images_source *source, const pairs *found, const char *images, const char *labels,
                            bool skip, tdi_error *error)
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

static td_status pair_up(images_source *source, const char *images, const char *labels, bool skip, tdi_error *error)
{
    TDI_TRY(tdi_list_images(images, &source->images, error));
    TDI_TRY(tdi_list_images(labels, &source->labels, error));
    if (!source->images.count)
        return tdi_fail(error, TD_BAD_FILE, "%s holds no JPEG or PNG images", images);
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
    char path[MAX_PATH + 16];
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
    json_t *recipe = tdi_recipe_of(args->recipe, "images"), *classes = json_object_get(recipe, "classes");
    *names = are_strings(classes) ? json_incref(classes) : NULL;
    json_decref(recipe);
    return TD_OK;
}

static td_status add_pairs(images_source *source, const td_open_args *args, const char *images, const char *labels,
                           tdi_error *error)
{
    bool skip = args->skip_errors == TD_YES;
    TDI_TRY(pair_up(source, images, labels, skip, error));
    TDI_TRY(add_x(source, args, error));
    const tdi_image *image = &source->form.image;
    const td_image_size size = {image->height, image->width};
    TDI_TRY(find_form(&source->labels, TDI_IMAGE_LABELS, &size, skip, &source->label_form, error));
    source->label_form.resize = source->form.resize;
    source->reader.source.n_y = 1;
    set_column(&source->reader.source, 1, "y", TD_UINT8, 1, &TD_SHAPE(image->height, image->width));
    json_t *names = NULL;
    td_status status = names_of_labels(args, labels, &names, error);
    source->reader.source.recipe = status == TD_OK && names ? recipe_of(names) : NULL;
    json_decref(names);
    return status;
}

/* ---- opening ---- */

static td_status images_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    const images_source *source = (const images_source *)reader;
    if (column == 0)
        return tdi_image_read(source->images.at[row], &source->form, to, error);
    if (source->classes)
        *(int64_t *)to = source->classes[row];
    return source->classes ? TD_OK : tdi_image_read(source->labels.at[row], &source->label_form, to, error);
}

static void images_release(tdi_source *base)
{
    images_source *source = (images_source *)base;
    tdi_paths_free(&source->images);
    tdi_paths_free(&source->labels);
    free(source->classes);
    free(source->reader.source.recipe);
    free(source->reader.kept);
    free(source);
}

static td_status fill_pair(images_source *source, const td_open_args *args, tdi_error *error)
{
    char images[MAX_PATH];
    const char *comma = strchr(args->path, ',');
    if (comma - args->path >= MAX_PATH)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: the path is too long", args->path);
    snprintf(images, sizeof images, "%.*s", (int)(comma - args->path), args->path);
    return add_pairs(source, args, images, comma + 1, error);
}

static td_status fill(images_source *source, const td_open_args *args, tdi_error *error)
{
    char split[MAX_PATH], labels[MAX_PATH];
    if (strchr(args->path, ','))
        return fill_pair(source, args, error);
    bool has_splits = find_split(args->path, args->role, "", split);
    if (has_splits && find_split(args->path, args->role, "annot", labels))
        return add_pairs(source, args, split, labels, error);
    if (!has_splits && holds_other_pairs(args->path, args->role))
        return tdi_fail(error, TD_NOT_FOUND,
                        "%s holds images and labels, but no part to %s: name two folders, as %s/IMAGES,%s/LABELS",
                        args->path, args->role == TD_TRAIN ? "train on (train)" : "test on (test, val or validation)",
                        args->path, args->path);
    const char *path = has_splits ? split : args->path;
    if (holds_folders(path))
        return add_classes(source, args, path, error);
    TDI_TRY(tdi_list_images(path, &source->images, error)); /* no classes: for prediction */
    return add_x(source, args, error);
}

static void stamp_files(tdi_source *source, const tdi_paths *paths)
{
    for (int i = 0; i < paths->count; i++) {
        const char *name = strrchr(paths->at[i], '/') + 1; /* the file's name */
        tdi_source_stamp(source, paths->at[i]);
        tdi_source_content_file(source, paths->at[i]);
        tdi_source_content(source, name, strlen(name));
    }
}

static void stamp(images_source *source)
{
    tdi_source *base = &source->reader.source;
    stamp_files(base, &source->images);
    stamp_files(base, &source->labels);
    if (base->recipe) /* the recipe decides how folders are numbered */
        tdi_source_stamp_words(base, base->recipe);
    if (source->classes)
        tdi_source_content(base, source->classes, (size_t)source->images.count * sizeof *source->classes);
}

static td_status images_open(const td_open_args *args, tdi_source **opened, tdi_error *error)
{
    images_source *source = tdi_sample_reader_create(sizeof *source, args->path, images_release, error);
    if (!source)
        return TD_NO_MEMORY;
    source->reader.read = images_read;
    source->reader.source.on_demand = true;
    td_status status = fill(source, args, error);
    if (status == TD_OK)
        stamp(source);
    if (status == TD_OK && args->skip_errors == TD_YES)
        status = tdi_sample_reader_drop_bad(&source->reader, error);
    return tdi_source_finish(&source->reader.source, status, opened);
}

const tdi_source_format tdi_source_images = {"a folder of JPEG or PNG images (one folder a class)",
                                             TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE, images_claims, images_open, ""};
