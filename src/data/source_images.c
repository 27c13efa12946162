/* source_images.c - folders of images.
 *
 * To classify: one folder a class, its number by the order of their names, as Keras's image_dataset_from_directory.
 * The names are the recipe: by them folders are numbered in another part, whichever of them it has.
 * To segment: "images,labels", two folders in which files of the same name (but for the ending) belong together; labels
 * are PNG files of class numbers. A folder that holds the parts itself is taken by its role: train/ and test/ (or val/,
 * validation/); with trainannot/ and testannot/ (or ...) beside them they are for segmentation. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats.h"
#include "data/image_files.h"
#include "data/items.h"
#include "data/recipe.h"
#include "files/folders.h"

#define MAX_PATH 4096

typedef struct images_source {
    tdi_items items;
    tdi_paths images, labels; /* labels: to segment */
    tdi_image_form form, label_form;
    int64_t *classes; /* [samples], to classify */
} images_source;

/* ---- which folders ---- */

static const char *const role_names[2][4] = {{"train", NULL}, {"test", "val", "validation", NULL}};

/* The part of a folder that holds parts: `suffix` "" or "annot"; false when there is none. */
static bool find_part(const char *path, td_role role, const char *suffix, char part[MAX_PATH])
{
    for (const char *const *name = role_names[role]; *name; name++) {
        int length = snprintf(part, MAX_PATH, "%s/%s%s", path, *name, suffix);
        if (length < MAX_PATH && tdi_is_folder(part))
            return true;
    }
    return false;
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

/* Images in it, or in the folders down to `depth` below. */
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

static td_status add_x(images_source *source, const td_open_args *args, tdi_error *error)
{
    tdi_source *whole = &source->items.source;
    const tdi_image *image = &source->form.image;
    if (!source->images.count)
        return tdi_fail(error, TD_BAD_FILE, "%s holds no JPEG or PNG images", args->path);
    TDI_TRY(tdi_image_form_of(source->images.at[0], TDI_IMAGE_COLOURS, &args->image_size, &source->form, error));
    whole->samples = source->images.count;
    whole->n_x = 1;
    set_column(whole, 0, "x", TD_UINT8, args->scale != 0 ? args->scale : 1.0f / 255,
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

/* Its number among the classes; -1: it is none of them. */
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

/* The recipe's, when it has any of the folders; others are another data set's, and numbered by themselves. */
static json_t *settle_classes(const td_open_args *args, const tdi_paths *folders)
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

/* Names that are no UTF-8 are not kept. */
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
    json_t *classes = settle_classes(args, &folders);
    if (status == TD_OK)
        status = add_folders(source, args, &folders, classes, error);
    source->items.source.recipe = status == TD_OK ? recipe_of(classes) : NULL;
    json_decref(classes);
    tdi_paths_free(&folders);
    TDI_TRY(status);
    TDI_TRY(add_x(source, args, error));
    source->items.source.n_y = 1;
    set_column(&source->items.source, 1, "y", TD_INT64, 1, &(td_shape){0});
    return TD_OK;
}

/* ---- to segment ---- */

static size_t stem_length(const char *path, const char **stem)
{
    const char *slash = strrchr(path, '/');
    *stem = slash ? slash + 1 : path;
    return (size_t)(strrchr(*stem, '.') - *stem);
}

static bool same_stem(const char *a, const char *b)
{
    const char *stem_a, *stem_b;
    size_t length_a = stem_length(a, &stem_a), length_b = stem_length(b, &stem_b);
    return length_a == length_b && memcmp(stem_a, stem_b, length_a) == 0;
}

static td_status check_pairs(const images_source *source, const char *labels, tdi_error *error)
{
    for (int i = 0; i < source->images.count; i++)
        if (i >= source->labels.count || !same_stem(source->images.at[i], source->labels.at[i]))
            return tdi_fail(error, TD_BAD_FILE, "%s has no labels of its name in %s: every image needs one",
                            source->images.at[i], labels);
    if (source->labels.count > source->images.count)
        return tdi_fail(error, TD_BAD_FILE, "%s holds %d label maps for %d images", labels, source->labels.count,
                        source->images.count);
    return TD_OK;
}

static td_status add_pairs(images_source *source, const td_open_args *args, const char *images, const char *labels,
                           tdi_error *error)
{
    TDI_TRY(tdi_list_images(images, &source->images, error));
    TDI_TRY(tdi_list_images(labels, &source->labels, error));
    TDI_TRY(check_pairs(source, labels, error));
    TDI_TRY(add_x(source, args, error));
    const tdi_image *image = &source->form.image;
    const td_image_size size = {image->height, image->width};
    TDI_TRY(tdi_image_form_of(source->labels.at[0], TDI_IMAGE_LABELS, &size, &source->label_form, error));
    source->label_form.resize = source->form.resize;
    source->items.source.n_y = 1;
    set_column(&source->items.source, 1, "y", TD_UINT8, 1, &TD_SHAPE(image->height, image->width));
    return TD_OK;
}

/* ---- opening ---- */

static td_status images_read(tdi_items *items, int column, int64_t row, void *to, tdi_error *error)
{
    const images_source *source = (const images_source *)items;
    if (column == 0)
        return tdi_image_read(source->images.at[row], &source->form, to, error);
    if (source->classes)
        *(int64_t *)to = source->classes[row];
    return source->classes ? TD_OK : tdi_image_read(source->labels.at[row], &source->label_form, to, error);
}

static void images_release(tdi_source *whole)
{
    images_source *source = (images_source *)whole;
    tdi_paths_free(&source->images);
    tdi_paths_free(&source->labels);
    free(source->classes);
    free(source->items.source.recipe);
    free(source->items.kept);
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
    char part[MAX_PATH], labels[MAX_PATH];
    if (strchr(args->path, ','))
        return fill_pair(source, args, error);
    bool parts = find_part(args->path, args->role, "", part);
    if (parts && find_part(args->path, args->role, "annot", labels))
        return add_pairs(source, args, part, labels, error);
    const char *path = parts ? part : args->path;
    if (holds_folders(path))
        return add_classes(source, args, path, error);
    TDI_TRY(tdi_list_images(path, &source->images, error)); /* without classes: to predict */
    return add_x(source, args, error);
}

static void stamp_files(tdi_source *source, const tdi_paths *paths)
{
    for (int i = 0; i < paths->count; i++) {
        const char *name = strrchr(paths->at[i], '/') + 1; /* behind its folder's */
        tdi_source_stamp(source, paths->at[i]);
        tdi_source_content_file(source, paths->at[i]);
        tdi_source_content(source, name, strlen(name));
    }
}

static void stamp(images_source *source)
{
    tdi_source *whole = &source->items.source;
    stamp_files(whole, &source->images);
    stamp_files(whole, &source->labels);
    if (whole->recipe) /* it numbers the folders */
        tdi_source_stamp_words(whole, whole->recipe);
    if (source->classes)
        tdi_source_content(whole, source->classes, (size_t)source->images.count * sizeof *source->classes);
}

static td_status images_open(const td_open_args *args, tdi_source **opened, tdi_error *error)
{
    images_source *source = calloc(1, sizeof *source);
    if (!source)
        return tdi_no_memory(error);
    snprintf(source->items.source.name, sizeof source->items.source.name, "%s", args->path);
    source->items.source.gather = tdi_items_gather;
    source->items.source.release = images_release;
    source->items.read = images_read;
    source->items.source.made = true;
    td_status status = fill(source, args, error);
    if (status == TD_OK)
        stamp(source);
    if (status == TD_OK && args->skip_errors == TD_YES)
        status = tdi_items_sift(&source->items, error);
    if (status == TD_OK)
        *opened = &source->items.source;
    else
        images_release(&source->items.source);
    return status;
}

const tdi_source_format tdi_source_images = {"a folder of JPEG or PNG images (one folder a class)",
                                             TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE, images_claims, images_open, ""};
