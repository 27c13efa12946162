/* hdf5_group.c - finds the object at a path, and visits a group's links. A group keeps its links
 *
 *   originally     in a B-tree ("TREE") of symbol table nodes ("SNOD") whose names lie in a heap ("HEAP")
 *   newer, few     in messages of its header
 *   newer, many    in a heap of blocks (hdf5_heap.c), by a B-tree of version 2 (hdf5_tree.c) */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "files/hdf5/hdf5_trees.h"

#define ENTRY_SIZE 40 /* bytes of an entry of a symbol table node */
#define MOST_NAME  255

typedef struct search {
    tdi_hdf5_file *file;
    const char *name; /* `length` characters, not terminated */
    size_t length;
    uint64_t names, names_size; /* an original group: address and size of its heap's bytes */
    tdi_hdf5_heap *heap;        /* a newer group with many links */
    bool found;
    uint64_t address;
    int64_t seen; /* number of links visited */
    bool every;   /* visit all links, for counting and listing */
    td_status (*visit)(void *argument, const tdi_hdf5_link *link, tdi_error *error); /* of all links; NULL: none */
    void *argument;
} search;

static td_status leads_elsewhere(const search *s, const char *kind, tdi_error *error)
{
    return tdi_fail(error, TD_UNSUPPORTED,
                    "%s: \"%.*s\" is %s, which Tandem does not follow: the array itself is needed", s->file->name,
                    (int)s->length, s->name, kind);
}

/* ---- original groups ---- */

/* Compares a name in the heap with the one searched for, as strcmp does. */
static td_status compare_name(const search *s, uint64_t offset, int *order, tdi_error *error)
{
    char seen[MOST_NAME + 1] = "";
    if (offset >= s->names_size)
        return tdi_hdf5_damaged(s->file, "a group's names are damaged", error);
    uint64_t left = s->names_size - offset, length = s->length + 1 < left ? s->length + 1 : left;
    TDI_TRY(tdi_hdf5_bytes(s->file, s->names + offset, length, seen, error));
    *order = strncmp(seen, s->name, s->length);
    if (*order == 0)
        *order = seen[s->length] != '\0';
    return TD_OK;
}

static td_status is_named(const search *s, uint64_t offset, bool *same, tdi_error *error)
{
    int order = 1;
    *same = false;
    if (offset >= s->names_size || s->length > MOST_NAME)
        return TD_OK;
    TDI_TRY(compare_name(s, offset, &order, error));
    *same = order == 0;
    return TD_OK;
}

/* A node has the names after its key's, up to the next key's. */
static td_status may_hold(void *argument, const unsigned char *key, const unsigned char *next, bool *wanted,
                          tdi_error *error)
{
    const search *s = argument;
    int before = 0, behind = 0;
    *wanted = !s->found;
    if (s->found || s->every || s->length > MOST_NAME)
        return TD_OK;
    TDI_TRY(compare_name(s, tdi_hdf5_number(next, 8), &behind, error));
    if (behind >= 0)
        TDI_TRY(compare_name(s, tdi_hdf5_number(key, 8), &before, error));
    *wanted = behind >= 0 && before < 0;
    return TD_OK;
}

static td_status visit_entry(const search *s, const unsigned char *entry, tdi_error *error)
{
    char name[MOST_NAME + 2] = "";
    uint64_t offset = tdi_hdf5_number(entry, 8);
    if (offset >= s->names_size)
        return tdi_hdf5_damaged(s->file, "a group's names are damaged", error);
    uint64_t left = s->names_size - offset, most = left < sizeof name - 1 ? left : sizeof name - 1;
    TDI_TRY(tdi_hdf5_bytes(s->file, s->names + offset, most, name, error));
    tdi_hdf5_link link = {name, strlen(name), tdi_hdf5_number(entry + 16, 4) == 2, tdi_hdf5_number(entry + 8, 8)};
    return s->visit(s->argument, &link, error);
}

static td_status search_entry(search *s, const unsigned char *entry, tdi_error *error)
{
    s->seen++;
    if (s->visit)
        return visit_entry(s, entry, error);
    TDI_TRY(is_named(s, tdi_hdf5_number(entry, 8), &s->found, error));
    s->address = tdi_hdf5_number(entry + 8, 8);
    return s->found && tdi_hdf5_number(entry + 16, 4) == 2 ? leads_elsewhere(s, "a link to another name", error)
                                                           : TD_OK;
}

static td_status search_symbols(search *s, uint64_t address, tdi_error *error)
{
    unsigned char head[8], *entries;
    TDI_TRY(tdi_hdf5_bytes(s->file, address, sizeof head, head, error));
    if (memcmp(head, "SNOD", 4) != 0)
        return tdi_hdf5_damaged(s->file, "a group is damaged", error);
    uint64_t count = tdi_hdf5_number(head + 6, 2);
    td_status status = tdi_hdf5_block(s->file, address + 8, count * ENTRY_SIZE, &entries, error);
    for (uint64_t i = 0; i < count && status == TD_OK && !s->found; i++)
        status = search_entry(s, entries + i * ENTRY_SIZE, error);
    free(entries);
    return status;
}

static td_status search_node(void *argument, const unsigned char *key, uint64_t child, tdi_error *error)
{
    (void)key;
    return search_symbols(argument, child, error);
}

static td_status search_original(search *s, const tdi_hdf5_message *group, tdi_error *error)
{
    unsigned char heap[32];
    if (group->size < 16)
        return tdi_hdf5_damaged(s->file, "a group is damaged", error);
    TDI_TRY(tdi_hdf5_bytes(s->file, tdi_hdf5_number(group->data + 8, 8), sizeof heap, heap, error));
    if (memcmp(heap, "HEAP", 4) != 0)
        return tdi_hdf5_damaged(s->file, "a group's names are damaged", error);
    s->names_size = tdi_hdf5_number(heap + 8, 8);
    s->names = tdi_hdf5_number(heap + 24, 8);
    const tdi_hdf5_visitor visitor = {.key_size = 8, .wants = may_hold, .visit = search_node, .argument = s};
    return tdi_hdf5_original_tree(s->file, tdi_hdf5_number(group->data, 8), &visitor, error);
}

/* ---- newer groups ---- */

/* Parses a link: version, flags, kind, order and character set (each optional), name, address. */
static td_status search_link(search *s, const unsigned char *at, uint64_t size, tdi_error *error)
{
    unsigned flags = size >= 2 ? at[1] : 0, wide = 1u << (flags & 3u);
    uint64_t kind_at = 2,
             name_at = kind_at + (flags & 8u ? 1 : 0) + (flags & 4u ? 8 : 0) + (flags & 16u ? 1 : 0) + wide;
    if (size < name_at || at[0] != 1)
        return tdi_hdf5_damaged(s->file, "a group's link is damaged", error);
    uint64_t length = tdi_hdf5_number(at + name_at - wide, wide), kind = flags & 8u ? at[kind_at] : 0;
    if (length > size - name_at || (kind == 0 && size - name_at - length < 8))
        return tdi_hdf5_damaged(s->file, "a group's link is damaged", error);
    if (s->visit)
        return s->visit(s->argument,
                        &(tdi_hdf5_link){(const char *)at + name_at, length, kind != 0,
                                         kind == 0 ? tdi_hdf5_number(at + name_at + length, 8) : 0},
                        error);
    if (length != s->length || memcmp(at + name_at, s->name, length) != 0)
        return TD_OK;
    s->found = true;
    if (kind != 0)
        return leads_elsewhere(s, kind == 1 ? "a link to another name" : "a link to another file", error);
    s->address = tdi_hdf5_number(at + name_at + length, 8);
    return TD_OK;
}

/* A record of the tree of names has the name's hash and the link's id in the heap. */
static td_status search_record(void *argument, const unsigned char *record, tdi_error *error)
{
    search *s = argument;
    unsigned char *link;
    uint64_t size;
    if (s->found)
        return TD_OK;
    s->seen++;
    if (!s->visit && tdi_hdf5_number(record, 4) != tdi_hdf5_checksum((const unsigned char *)s->name, s->length))
        return TD_OK;
    td_status status = tdi_hdf5_heap_read(s->heap, record + 4, &link, &size, error);
    if (status == TD_OK)
        status = search_link(s, link, size, error);
    free(link);
    return status;
}

static td_status search_many(search *s, const tdi_hdf5_message *links, tdi_error *error)
{
    uint64_t at = links->size >= 2 && links->data[1] & 1u ? 10 : 2;
    if (links->size < at + 16)
        return tdi_hdf5_damaged(s->file, "a group is damaged", error);
    uint64_t heap_at = tdi_hdf5_number(links->data + at, 8), tree = tdi_hdf5_number(links->data + at + 8, 8);
    if (heap_at == TDI_HDF5_UNDEFINED)
        return TD_OK;
    tdi_hdf5_heap heap;
    TDI_TRY(tdi_hdf5_heap_open(s->file, heap_at, &heap, error));
    s->heap = &heap;
    return tdi_hdf5_newer_tree(s->file, tree, 5, 4 + heap.id_size, search_record, s, error);
}

static td_status search_newer(search *s, const tdi_hdf5_header *header, tdi_error *error)
{
    const tdi_hdf5_message *many = tdi_hdf5_header_find(header, TDI_HDF5_LINKS);
    for (int i = 0; i < header->messages.count && !s->found; i++)
        if (header->messages.at[i].type == TDI_HDF5_LINK) {
            s->seen++;
            TDI_TRY(search_link(s, header->messages.at[i].data, header->messages.at[i].size, error));
        }
    return many && !s->found ? search_many(s, many, error) : TD_OK;
}

/* ---- paths ---- */

static td_status search_group(search *s, uint64_t address, tdi_error *error)
{
    tdi_hdf5_header header;
    td_status status = tdi_hdf5_header_read(s->file, address, &header, error);
    if (status == TD_OK) {
        const tdi_hdf5_message *original = tdi_hdf5_header_find(&header, TDI_HDF5_SYMBOLS);
        status = original ? search_original(s, original, error) : search_newer(s, &header, error);
    }
    tdi_hdf5_header_release(&header);
    return status;
}

/* Walks a path from the root. *found is false when a name on the way does not exist. */
static td_status walk_path(tdi_hdf5_file *file, const char *path, uint64_t *address, bool *found, tdi_error *error)
{
    *address = file->root;
    *found = true;
    for (const char *at = path + strspn(path, "/"); *at && *found; at += strspn(at, "/")) {
        search s = {.file = file, .name = at, .length = strcspn(at, "/")};
        tdi_hdf5_begin(file);
        TDI_TRY(search_group(&s, *address, error));
        *found = s.found;
        *address = s.address;
        at += s.length;
    }
    return TD_OK;
}

td_status tdi_hdf5_find(tdi_hdf5_file *file, const char *path, uint64_t *address, tdi_error *error)
{
    bool found;
    TDI_TRY(walk_path(file, path, address, &found, error));
    return found ? TD_OK : tdi_fail(error, TD_NOT_FOUND, "%s: has no array \"%s\"", file->name, path);
}

bool tdi_hdf5_file_has(tdi_hdf5_file *file, const char *path)
{
    uint64_t address;
    bool found;
    tdi_error error = {0};
    return walk_path(file, path, &address, &found, &error) != TD_OK || found;
}

/* A search for a name that no link can have visits all links. */
td_status tdi_hdf5_file_count(tdi_hdf5_file *file, const char *path, int64_t *count, tdi_error *error)
{
    uint64_t address;
    bool found;
    search s = {.file = file, .name = "/", .length = 1, .every = true};
    TDI_TRY(walk_path(file, path, &address, &found, error));
    tdi_hdf5_begin(file);
    if (found)
        TDI_TRY(search_group(&s, address, error));
    *count = s.seen;
    return TD_OK;
}

td_status tdi_hdf5_links_visit(tdi_hdf5_file *file, uint64_t address,
                               td_status (*visit)(void *argument, const tdi_hdf5_link *link, tdi_error *error),
                               void *argument, tdi_error *error)
{
    search s = {.file = file, .name = "", .every = true, .visit = visit, .argument = argument};
    return search_group(&s, address, error);
}
