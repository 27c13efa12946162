/* hdf5_trees.h - HDF5's two kinds of B-trees, the heap of a large group, a group's links, and the checksum of
 * structures. */
#ifndef TDI_FILES_HDF5_HDF5_TREES_H
#define TDI_FILES_HDF5_HDF5_TREES_H

#include <stddef.h>

#include "files/hdf5/hdf5_file.h"

/* The checksum at the end of structures; also the hash by which a large group's names are sorted. */
uint32_t tdi_hdf5_checksum(const unsigned char *at, size_t length);

static inline bool tdi_hdf5_is_power(uint64_t number)
{
    return number && !(number & (number - 1));
}

static inline unsigned tdi_hdf5_log2(uint64_t power)
{
    return (unsigned)__builtin_ctzll(power);
}

/* The number of bytes that hold `largest`. */
static inline unsigned tdi_hdf5_bytes_for(uint64_t largest)
{
    unsigned bytes = 1;
    while (bytes < 8 && largest >> 8 * bytes)
        bytes++;
    return bytes;
}

/* Visits the children of an original B-tree's ("TREE") leaves. `kind` is 0 for groups and 1 for chunks; a key has
 * key_size bytes. */
typedef struct tdi_hdf5_visitor {
    unsigned kind;
    uint64_t key_size;
    /* Called before each child, with the keys on both sides: *wanted false skips it. NULL: no child is skipped. */
    td_status (*wants)(void *argument, const unsigned char *key, const unsigned char *next, bool *wanted,
                       tdi_error *error);
    td_status (*visit)(void *argument, const unsigned char *key, uint64_t child, tdi_error *error);
    void *argument;
} tdi_hdf5_visitor;

td_status tdi_hdf5_original_tree(tdi_hdf5_file *file, uint64_t address, const tdi_hdf5_visitor *visitor,
                                 tdi_error *error);

/* Visits the records of a B-tree of version 2 ("BTHD"), whose records must be of that kind and have at least `least`
 * bytes. */
td_status tdi_hdf5_newer_tree(tdi_hdf5_file *file, uint64_t address, unsigned kind, uint64_t least,
                              td_status (*visit)(void *argument, const unsigned char *record, tdi_error *error),
                              void *argument, tdi_error *error);

/* A heap of blocks whose sizes double ("FRHP"); it has objects by ids. */
typedef struct tdi_hdf5_heap {
    tdi_hdf5_file *file; /* borrowed */
    unsigned id_size, offset_size, length_size, rows, max_rows;
    uint64_t width, start, largest, root;
} tdi_hdf5_heap;

td_status tdi_hdf5_heap_open(tdi_hdf5_file *file, uint64_t address, tdi_hdf5_heap *heap, tdi_error *error);
/* Reads the object of an id into memory, which the caller frees with free(). */
td_status tdi_hdf5_heap_read(const tdi_hdf5_heap *heap, const unsigned char *id, unsigned char **object, uint64_t *size,
                             tdi_error *error);

/* A link in a group. */
typedef struct tdi_hdf5_link {
    const char *name; /* `length` characters, not terminated */
    size_t length;
    bool leads_elsewhere; /* to another name or another file, so that there is no address */
    uint64_t address;
} tdi_hdf5_link;

/* Visits the links of the group at an address, in no order. Uses up the budget, which the caller has begun. */
td_status tdi_hdf5_links_visit(tdi_hdf5_file *file, uint64_t address,
                               td_status (*visit)(void *argument, const tdi_hdf5_link *link, tdi_error *error),
                               void *argument, tdi_error *error);

#endif
