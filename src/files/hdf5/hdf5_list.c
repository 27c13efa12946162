/* hdf5_list.c - lists the arrays of an HDF5 file, group by group. The number of links, their depth and the bytes of
 * structures that are read are bounded, whatever a damaged file says. */
#include "files/hdf5/hdf5_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/hdf5/hdf5_trees.h"

enum {
    MOST_LINKS = 4096,
    MOST_DEPTH = 16,
    MOST_NAME = 255,
    LINK_BUDGET = 4096 /* bytes of structures that a link may take to be found: its heap's tables are read each time */
};

typedef struct lister {
    tdi_hdf5_file *file;
    tdi_hdf5_list *list;
    const char *group; /* path of the group whose links are visited; "": the root */
    int depth;
} lister;

static char *path_in(const char *group, const char *name, size_t length)
{
    size_t room = strlen(group) + length + 2;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%s%s%.*s", group, *group ? "/" : "", (int)length, name);
    return path;
}

static td_status add_link(void *argument, const tdi_hdf5_link *link, tdi_error *error)
{
    const lister *l = argument;
    if (link->leads_elsewhere)
        return TD_OK;
    if (l->list->links.count == MOST_LINKS)
        return tdi_fail(error, TD_STOPPED, "%s: more links than are listed", l->file->name);
    if (link->length > MOST_NAME) {
        l->list->more = true;
        return TD_OK;
    }
    l->file->budget += LINK_BUDGET;
    tdi_hdf5_listed listed = {path_in(l->group, link->name, link->length), link->address, l->depth, TDI_HDF5_NEITHER};
    if (listed.path && tdi_push(&l->list->links, listed))
        return TD_OK;
    free(listed.path);
    return tdi_no_memory(error);
}

/* An array has a shape; a type of its own neither that nor links. */
static tdi_hdf5_kind kind_of(tdi_hdf5_file *file, uint64_t address)
{
    tdi_hdf5_header header;
    tdi_error unreadable = {0};
    tdi_hdf5_kind kind = TDI_HDF5_NEITHER;
    if (tdi_hdf5_header_read(file, address, &header, &unreadable) != TD_OK ||
        tdi_hdf5_header_find(&header, TDI_HDF5_SHAPE))
        kind = TDI_HDF5_ARRAY;
    else if (tdi_hdf5_is_group(&header))
        kind = TDI_HDF5_GROUP;
    tdi_hdf5_header_release(&header);
    return kind;
}

/* A group may be reached by several paths, even from within itself. */
static bool is_known(const tdi_hdf5_file *file, const tdi_hdf5_list *list, int until)
{
    uint64_t address = list->links.at[until].address;
    for (int i = 0; i < until; i++)
        if (list->links.at[i].kind == TDI_HDF5_GROUP && list->links.at[i].address == address)
            return true;
    return address == file->root;
}

static td_status visit_links(const lister *l, uint64_t address, tdi_error *error)
{
    tdi_error damaged = {0};
    td_status status = tdi_hdf5_links_visit(l->file, address, add_link, (void *)(uintptr_t)l, &damaged);
    if (status == TD_NO_MEMORY)
        return tdi_no_memory(error);
    if (status != TD_OK)
        l->list->more = true;
    return TD_OK;
}

static td_status look_at(tdi_hdf5_file *file, tdi_hdf5_list *list, int index, tdi_error *error)
{
    tdi_hdf5_listed *at = &list->links.at[index];
    at->kind = kind_of(file, at->address);
    if (at->kind != TDI_HDF5_GROUP || is_known(file, list, index))
        return TD_OK;
    if (at->depth == MOST_DEPTH) {
        list->more = true;
        return TD_OK;
    }
    return visit_links(&(lister){file, list, at->path, at->depth + 1}, at->address, error);
}

/* ---- the arrays among the links ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const tdi_hdf5_listed *)a)->path, ((const tdi_hdf5_listed *)b)->path);
}

static void keep_arrays(tdi_hdf5_list *list)
{
    int kept = 0;
    for (int i = 0; i < list->links.count; i++)
        if (list->links.at[i].kind == TDI_HDF5_ARRAY)
            list->links.at[kept++] = list->links.at[i];
        else
            free(list->links.at[i].path);
    list->links.count = kept;
    if (kept)
        qsort(list->links.at, (size_t)kept, sizeof *list->links.at, by_path);
}

td_status tdi_hdf5_list_arrays(tdi_hdf5_file *file, tdi_hdf5_list *list, tdi_error *error)
{
    *list = (tdi_hdf5_list){0};
    tdi_hdf5_begin(file);
    td_status status = visit_links(&(lister){file, list, "", 0}, file->root, error);
    for (int i = 0; i < list->links.count && status == TD_OK; i++)
        status = look_at(file, list, i, error);
    keep_arrays(list);
    return status;
}

void tdi_hdf5_list_release(tdi_hdf5_list *list)
{
    for (int i = 0; i < list->links.count; i++)
        free(list->links.at[i].path);
    tdi_vec_free(&list->links);
}
