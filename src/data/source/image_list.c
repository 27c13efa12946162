/* image_list.c - lists the images of folders. */
#define _DEFAULT_SOURCE /* d_type */
#include "data/source/image_list.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "files/folders.h"

/* ---- what is left out ---- */

void tdi_leave_out(tdi_left_out *left, tdi_leave why, const char *path)
{
    if (!left)
        return;
    char *first = left->first[why];
    if (left->count[why]++ == 0 || strncmp(path, first, sizeof left->first[why] - 1) < 0)
        snprintf(first, sizeof left->first[why], "%s", path);
}

void tdi_left_out_sentence(const tdi_left_out *left, const char *folder, char *sentence, size_t size)
{
    static const char *const whys[TDI_LEAVE_COUNT] = {
        ("whose names do not end in " TDI_IMAGE_ENDINGS), "hidden", "beside the folders that are used",
        "links to folders, which are not followed", "folders, as only the images directly in the folder are used"};
    size_t used = 0;
    *sentence = '\0';
    for (int why = 0; why < TDI_LEAVE_COUNT && used < size; why++)
        if (left->count[why])
            used +=
                (size_t)snprintf(sentence + used, size - used, "%s%s%" PRId64 " %s (the first: %s)", used ? "" : folder,
                                 used ? "; " : ": left out: ", left->count[why], whys[why], left->first[why]);
}

/* ---- one entry ---- */

typedef enum entry_kind { ENTRY_FILE, ENTRY_FOLDER, ENTRY_LINK_TO_FOLDER } entry_kind;

static entry_kind kind_of(const struct dirent *entry, const char *path)
{
    struct stat facts;
    unsigned char type = entry->d_type;
    if (type == DT_UNKNOWN && lstat(path, &facts) == 0)
        type = S_ISLNK(facts.st_mode) ? DT_LNK : S_ISDIR(facts.st_mode) ? DT_DIR : DT_REG;
    if (type == DT_LNK)
        return tdi_is_folder(path) ? ENTRY_LINK_TO_FOLDER : ENTRY_FILE;
    return type == DT_DIR ? ENTRY_FOLDER : ENTRY_FILE;
}

bool tdi_is_image_name(const char *name)
{
    static const char *const endings[] = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp", NULL};
    const char *end = strrchr(name, '.');
    for (const char *const *ending = endings; *ending; ending++)
        if (end && strcasecmp(end, *ending) == 0)
            return true;
    return false;
}

/* The work of listing: images and the folders that are still to be read, or folders alone. */
typedef struct listing {
    bool deep, classes; /* classes: folders are wanted, and no images */
    tdi_paths *images, *folders;
    tdi_left_out *left;
} listing;

/* The list to which an entry goes; NULL with *why when it is left out. */
static tdi_paths *place_of(const listing *list, const char *name, entry_kind kind, tdi_leave *why)
{
    *why = TDI_LEAVE_HIDDEN;
    if (name[0] == '.')
        return NULL;
    *why = kind == ENTRY_LINK_TO_FOLDER && list->deep ? TDI_LEAVE_LINK : TDI_LEAVE_FOLDER;
    if (kind != ENTRY_FILE)
        return list->classes || (list->deep && kind == ENTRY_FOLDER) ? list->folders : NULL;
    *why = list->classes ? TDI_LEAVE_BESIDE : TDI_LEAVE_OTHER_FILE;
    return !list->classes && tdi_is_image_name(name) ? list->images : NULL;
}

/* Adopts `path`. */
static td_status add_entry(const listing *list, const struct dirent *entry, char *path, tdi_error *error)
{
    tdi_leave why;
    tdi_paths *place = place_of(list, entry->d_name, kind_of(entry, path), &why);
    if (place && tdi_push(place, path))
        return TD_OK;
    if (!place)
        tdi_leave_out(list->left, why, path);
    free(path);
    return place ? tdi_no_memory(error) : TD_OK;
}

static char *path_of(const char *folder, const char *name)
{
    size_t length = strlen(folder), room = length + strlen(name) + 2;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
    return path;
}

static td_status read_folder(const listing *list, const char *folder, tdi_error *error)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return tdi_fail(error, errno == ENOENT || errno == ENOTDIR ? TD_NOT_FOUND : TD_IO,
                        "%s: the folder cannot be read: %s", folder, strerror(errno));
    td_status status = TD_OK;
    for (struct dirent *entry; status == TD_OK && (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *path = path_of(folder, entry->d_name);
        status = path ? add_entry(list, entry, path, error) : tdi_no_memory(error);
    }
    closedir(entries);
    return status;
}

/* ---- in order ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* By the folder's path, then by name. */
static int by_folder(const void *a, const void *b)
{
    const char *one = *(char *const *)a, *other = *(char *const *)b;
    size_t length_one = (size_t)(strrchr(one, '/') - one), length_other = (size_t)(strrchr(other, '/') - other);
    int order = memcmp(one, other, length_one < length_other ? length_one : length_other);
    if (order == 0 && length_one != length_other)
        order = length_one < length_other ? -1 : 1;
    return order ? order : strcmp(one, other);
}

static void sort(tdi_paths *paths, int first, int (*order)(const void *, const void *))
{
    if (paths->count > first)
        qsort(paths->at + first, (size_t)(paths->count - first), sizeof *paths->at, order);
}

td_status tdi_list_images(const char *folder, bool deep, tdi_paths *paths, tdi_left_out *left, tdi_error *error)
{
    tdi_paths folders = {0};
    const listing list = {.deep = deep, .images = paths, .folders = &folders, .left = left};
    int first = paths->count;
    td_status status = read_folder(&list, folder, error);
    for (int i = 0; i < folders.count && status == TD_OK; i++)
        status = read_folder(&list, folders.at[i], error);
    tdi_paths_free(&folders);
    sort(paths, first, by_folder);
    return status;
}

td_status tdi_list_folders(const char *folder, tdi_paths *paths, tdi_left_out *left, tdi_error *error)
{
    const listing list = {.classes = true, .folders = paths, .left = left};
    int first = paths->count;
    td_status status = read_folder(&list, folder, error);
    sort(paths, first, by_name);
    return status;
}
