/* image_classes.c - folders of images, one a class.
 *
 * Classes are numbered in the order of the folders' names, as in Keras's image_dataset_from_directory; a folder without
 * images is a class too. The names are the recipe: data opened by it are numbered by the names, whichever of the
 * folders they have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/source/images.h"

/* ---- names ---- */

/* The name of a class as a JSON string, which is UTF-8: bytes of a folder's name that are not are written as \xE9. */
static json_t *class_name(const char *folder)
{
    const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
    json_t *plain = json_string(name);
    if (plain)
        return plain;
    char escaped[1024];
    size_t used = 0;
    for (; *name && used + 5 < sizeof escaped; name++)
        used += (size_t)snprintf(escaped + used, sizeof escaped - used, (unsigned char)*name < 0x80 ? "%c" : "\\x%02X",
                                 (unsigned char)*name);
    return json_string(escaped);
}

static json_t *names_of(const tdi_paths *folders)
{
    json_t *names = json_array();
    for (int i = 0; i < folders->count; i++)
        json_array_append_new(names, class_name(folders->at[i]));
    return names;
}

/* The number of a class; -1: it is not in the list. */
static int64_t number_of(const json_t *classes, const json_t *name)
{
    for (size_t i = 0; i < json_array_size(classes); i++)
        if (json_equal(json_array_get(classes, i), name))
            return (int64_t)i;
    return -1;
}

/* Writes the names as "cat, dog, ...". */
static const char *listed(const json_t *names, char text[400])
{
    size_t used = 0, room = 400;
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(names) && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "",
                                 json_string_value(json_array_get(names, i)));
    if (used >= room)
        snprintf(text + room - 4, 4, "...");
    return text;
}

/* ---- the classes of the model ---- */

static td_status all_unknown(const char *path, const json_t *own, const json_t *known, tdi_error *error)
{
    char folders[400], classes[400];
    return tdi_fail(error, TD_BAD_FILE,
                    "%s has the class folders %s, but the model was trained on the classes %s: give the folders these "
                    "names",
                    path, listed(own, folders), listed(known, classes));
}

/* Sets *classes to the recipe's classes when one of the folders is among them. Else the data are others, on which to
 * train anew, and their folders are numbered by themselves; nothing can be tested on them. */
static td_status choose_classes(const td_open_args *args, const char *path, json_t *own, json_t **classes,
                                tdi_error *error)
{
    json_t *known = tdi_images_known_classes(args);
    bool any = false;
    for (size_t i = 0; i < json_array_size(own) && !any; i++)
        any = number_of(known, json_array_get(own, i)) >= 0;
    bool refused = json_array_size(known) && !any && args->role == TD_TEST;
    td_status status = refused ? all_unknown(path, own, known, error) : TD_OK;
    *classes = json_incref(any ? known : own);
    json_decref(known);
    return status;
}

static td_status unknown_class(const char *folder, const json_t *classes, tdi_error *error)
{
    char names[400];
    return tdi_fail(error, TD_BAD_FILE,
                    "%s is none of the %zu classes that the model was trained on (%s); take it away, or rename it",
                    folder, json_array_size(classes), listed(classes, names));
}

/* ---- images ---- */

static td_status add_class(tdi_images *source, const char *folder, int64_t number, tdi_error *error)
{
    int before = source->images.count;
    TDI_TRY(tdi_list_images(folder, true, &source->images, &source->left, error));
    int64_t *grown = realloc(source->classes, ((size_t)source->images.count + 1) * sizeof *grown);
    if (!grown)
        return tdi_no_memory(error);
    source->classes = grown;
    for (int i = before; i < source->images.count; i++)
        grown[i] = number;
    return TD_OK;
}

static td_status add_folders(tdi_images *source, const tdi_paths *folders, const json_t *own, const json_t *classes,
                             tdi_error *error)
{
    for (int i = 0; i < folders->count; i++) {
        int64_t number = number_of(classes, json_array_get(own, (size_t)i));
        if (number < 0)
            return unknown_class(folders->at[i], classes, error);
        TDI_TRY(add_class(source, folders->at[i], number, error));
    }
    return TD_OK;
}

static td_status add_listed(tdi_images *source, const td_open_args *args, const char *path, const tdi_paths *folders,
                            tdi_error *error)
{
    json_t *own = names_of(folders), *classes = NULL;
    td_status status = choose_classes(args, path, own, &classes, error);
    if (status == TD_OK)
        status = add_folders(source, folders, own, classes, error);
    source->reader.source.recipe = status == TD_OK ? tdi_images_recipe(classes) : NULL;
    json_decref(own);
    json_decref(classes);
    return status;
}

td_status tdi_images_add_classes(tdi_images *source, const td_open_args *args, const char *path, tdi_error *error)
{
    tdi_paths folders = {0};
    td_status status = tdi_list_folders(path, &folders, &source->left, error);
    if (status == TD_OK)
        status = add_listed(source, args, path, &folders, error);
    tdi_paths_free(&folders);
    TDI_TRY(status);
    TDI_TRY(tdi_images_add_x(source, args, path, error));
    tdi_images_add_y(source, TD_INT64, &(td_shape){0});
    source->reader.source.by_class = true;
    return TD_OK;
}
