/* images.c - folders of images.
 *
 * For classification there is one folder per class (image_classes.c). For segmentation the path is "images,labels"
 * (image_pairs.c). To predict, all images of a folder and of those below are used, without classes, or one image file.
 *
 * A folder may hold the splits of a data set: train/ and test/ (or val/, validation/), of which the role chooses one,
 * and for segmentation trainannot/, testannot/, ... beside them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/source/images.h"
#include "files/folders.h"

/* ---- which folders ---- */

static const char *const role_names[2][4] = {{"train", NULL}, {"test", "val", "validation", NULL}};

/* Sets `split` to the folder's split for the role; `suffix` is "" or "annot". False when there is none. */
static bool find_split(const char *path, td_role role, const char *suffix, char split[TDI_MAX_PATH])
{
    for (const char *const *name = role_names[role]; *name; name++) {
        int length = snprintf(split, TDI_MAX_PATH, "%s/%s%s", path, *name, suffix);
        if (length < TDI_MAX_PATH && tdi_is_folder(split))
            return true;
    }
    return false;
}

static bool holds_folders(const char *path)
{
    tdi_paths folders = {0};
    bool holds = tdi_is_folder(path) && tdi_list_folders(path, &folders, NULL, NULL) == TD_OK && folders.count > 0;
    tdi_paths_free(&folders);
    return holds;
}

/* The same, unless it is a class that happens to be called so: what holds images alone, and has no other split or label
 * maps beside it. */
static bool find_role(const char *path, td_role role, char split[TDI_MAX_PATH])
{
    char other[TDI_MAX_PATH];
    return find_split(path, role, "", split) &&
           (holds_folders(split) || find_split(path, role == TD_TRAIN ? TD_TEST : TD_TRAIN, "", other) ||
            find_split(path, role, "annot", other));
}

static bool holds_images(const char *path)
{
    tdi_paths images = {0};
    bool holds = tdi_is_folder(path) && tdi_list_images(path, false, &images, NULL, NULL) == TD_OK && images.count > 0;
    tdi_paths_free(&images);
    return holds;
}

/* True when the folder, or a folder down to `depth` levels below, has images. */
static bool leads_to_images(const char *path, int depth)
{
    tdi_paths folders = {0};
    bool leads = holds_images(path);
    if (!leads && depth > 0)
        tdi_list_folders(path, &folders, NULL, NULL);
    for (int i = 0; i < folders.count && !leads; i++)
        leads = leads_to_images(folders.at[i], depth - 1);
    tdi_paths_free(&folders);
    return leads;
}

/* The comma of "images,labels"; NULL: the path is one folder, whose name may have a comma too. */
static const char *pair_comma(const char *path)
{
    return tdi_is_folder(path) ? NULL : strchr(path, ',');
}

/* One image, from which to predict. */
static bool is_image_file(const char *path)
{
    return tdi_is_image_name(path) && access(path, F_OK) == 0 && !tdi_is_folder(path);
}

static bool images_claims(const char *path)
{
    char first[TDI_MAX_PATH];
    if (is_image_file(path))
        return true;
    const char *comma = pair_comma(path);
    if (!comma)
        return tdi_is_folder(path) && leads_to_images(path, 4);
    size_t length = (size_t)(comma - path);
    snprintf(first, sizeof first, "%.*s", (int)(length < TDI_MAX_PATH ? length : 0), path);
    return tdi_is_folder(first);
}

/* ---- columns ---- */

static tdi_column *set_column(tdi_source *source, int at, const char *name, td_dtype dtype, const td_shape *shape)
{
    tdi_column *column = &source->columns[at];
    snprintf(column->name, sizeof column->name, "%s", name);
    column->dtype = dtype;
    column->scale = 1;
    column->shape = *shape;
    return column;
}

void tdi_images_add_y(tdi_images *source, td_dtype dtype, const td_shape *shape)
{
    source->reader.source.n_y = 1;
    set_column(&source->reader.source, 1, "y", dtype, shape);
}

static td_status no_images(const tdi_images *source, const char *path, tdi_error *error)
{
    char others[768];
    tdi_left_out_sentence(&source->left, path, others, sizeof others);
    return tdi_fail(error, TD_BAD_FILE, "%s holds no images, whose names would end in " TDI_IMAGE_ENDINGS "%s%s", path,
                    *others ? "; " : "", others);
}

td_status tdi_images_add_x(tdi_images *source, const td_open_args *args, const char *path, tdi_error *error)
{
    tdi_source *base = &source->reader.source;
    if (!source->images.count)
        return no_images(source, path, error);
    source->form = tdi_image_form_wanted(args);
    TDI_TRY(tdi_image_form_resolve(&source->images, args->skip_errors == TD_YES, &source->form, error));
    const tdi_image *image = &source->form.image;
    base->samples = source->images.count;
    base->n_x = 1;
    set_column(base, 0, "x", TD_UINT8, &TD_SHAPE(image->height, image->width, image->channels))->scale =
        args->scale != 0 ? args->scale : 1.0f / 255;
    return TD_OK;
}

/* ---- the recipe ---- */

json_t *tdi_images_known_classes(const td_open_args *args)
{
    json_t *recipe = tdi_recipe_of(args->recipe, "images"), *classes = json_object_get(recipe, "classes");
    bool good = json_is_array(classes);
    for (size_t i = 0; i < json_array_size(classes); i++)
        good &= json_is_string(json_array_get(classes, i));
    classes = good ? json_incref(classes) : NULL;
    json_decref(recipe);
    return classes;
}

char *tdi_images_recipe(json_t *classes)
{
    json_t *recipe = json_pack("{s:s, s:O}", "format", "images", "classes", classes);
    char *text = json_dumps(recipe, JSON_COMPACT);
    json_decref(recipe);
    return text;
}

/* ---- opening ---- */

static td_status images_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    const tdi_images *source = (const tdi_images *)reader;
    if (column == 0)
        return tdi_image_read(source->images.at[row], &source->form, to, error);
    if (source->classes)
        *(int64_t *)to = source->classes[row];
    return source->classes ? TD_OK : tdi_image_read(source->labels.at[row], &source->label_form, to, error);
}

static void images_release(tdi_source *base)
{
    tdi_images *source = (tdi_images *)base;
    tdi_paths_free(&source->images);
    tdi_paths_free(&source->labels);
    free(source->classes);
    free(source->reader.source.recipe);
    free(source->reader.kept);
    free(source);
}

static td_status fill_pair(tdi_images *source, const td_open_args *args, const char *comma, tdi_error *error)
{
    char images[TDI_MAX_PATH];
    if (comma - args->path >= TDI_MAX_PATH)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: the path is too long", args->path);
    snprintf(images, sizeof images, "%.*s", (int)(comma - args->path), args->path);
    return tdi_images_add_pairs(source, args, images, comma + 1, error);
}

/* Fails when the folder has another role's split alone, whose name would be taken for a class. */
static td_status check_role(const td_open_args *args, tdi_error *error)
{
    char split[TDI_MAX_PATH];
    bool train = args->role == TD_TRAIN;
    if (!find_role(args->path, train ? TD_TEST : TD_TRAIN, split))
        return TD_OK;
    return tdi_fail(error, TD_NOT_FOUND,
                    "%s holds %s, but no part to %s: name the folder that is meant, or two of them, as "
                    "%s/IMAGES,%s/LABELS",
                    args->path, strrchr(split, '/') + 1,
                    train ? "train on (train)" : "test on (test, val or validation)", args->path, args->path);
}

static bool is_split_name(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    for (int role = TD_TRAIN; role <= TD_TEST; role++)
        for (const char *const *split = role_names[role]; *split; split++)
            if (strcmp(name, *split) == 0)
                return true;
    return false;
}

/* Notes what lies beside the splits. */
static td_status leave_out_others(tdi_images *source, const char *path, tdi_error *error)
{
    tdi_paths folders = {0};
    td_status status = tdi_list_folders(path, &folders, &source->left, error);
    for (int i = 0; i < folders.count; i++)
        if (!is_split_name(folders.at[i]))
            tdi_leave_out(&source->left, TDI_LEAVE_BESIDE, folders.at[i]);
    tdi_paths_free(&folders);
    return status;
}

/* Where targets were asked for, and not only left open. */
static td_status check_classless(const td_open_args *args, const char *path, tdi_error *error)
{
    if (args->targets != TD_YES)
        return TD_OK;
    return tdi_fail(error, TD_BAD_FILE,
                    "%s has no class folders, which say what the images are: put those of each class into a folder of "
                    "its own, and name the folder that these are in",
                    path);
}

/* Without targets, of which Keras's labels=None is the counterpart, every image is used. */
static td_status fill_folder(tdi_images *source, const td_open_args *args, const char *path, tdi_error *error)
{
    if (args->targets != TD_NO && holds_folders(path))
        return tdi_images_add_classes(source, args, path, error);
    TDI_TRY(check_classless(args, path, error));
    TDI_TRY(tdi_list_images(path, true, &source->images, &source->left, error));
    return tdi_images_add_x(source, args, path, error);
}

static td_status fill_file(tdi_images *source, const td_open_args *args, tdi_error *error)
{
    TDI_TRY(check_classless(args, args->path, error));
    char *path = strdup(args->path);
    if (!path || !tdi_push(&source->images, path)) {
        free(path);
        return tdi_no_memory(error);
    }
    return tdi_images_add_x(source, args, args->path, error);
}

static td_status fill(tdi_images *source, const td_open_args *args, tdi_error *error)
{
    char split[TDI_MAX_PATH], labels[TDI_MAX_PATH];
    if (is_image_file(args->path))
        return fill_file(source, args, error);
    const char *comma = pair_comma(args->path);
    if (comma)
        return fill_pair(source, args, comma, error);
    bool has_splits = find_role(args->path, args->role, split);
    if (has_splits && find_split(args->path, args->role, "annot", labels))
        return tdi_images_add_pairs(source, args, split, labels, error);
    TDI_TRY(has_splits ? leave_out_others(source, args->path, error) : check_role(args, error));
    return fill_folder(source, args, has_splits ? split : args->path, error);
}

static void stamp_files(tdi_source *source, const tdi_paths *paths)
{
    for (int i = 0; i < paths->count; i++) {
        const char *slash = strrchr(paths->at[i], '/'), *name = slash ? slash + 1 : paths->at[i];
        tdi_source_stamp(source, paths->at[i]);
        tdi_source_content_file(source, paths->at[i]);
        tdi_source_content(source, name, strlen(name));
    }
}

static void stamp(tdi_images *source)
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
    tdi_images *source = tdi_sample_reader_create(sizeof *source, args->path, images_release, error);
    if (!source)
        return TD_NO_MEMORY;
    tdi_source *base = &source->reader.source;
    source->reader.read = images_read;
    base->on_demand = true;
    td_status status = fill(source, args, error);
    if (status == TD_OK)
        stamp(source);
    if (status == TD_OK)
        tdi_left_out_sentence(&source->left, args->path, base->note, sizeof base->note);
    if (status == TD_OK && args->skip_errors == TD_YES)
        status = tdi_sample_reader_drop_bad(&source->reader, error);
    return tdi_source_finish(base, status, opened);
}

const tdi_source_format tdi_source_images = {"a folder of images (one folder a class)",
                                             TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE, images_claims, images_open, ""};
