/* hdf5_tree.c - walks HDF5's B-trees from the root to every leaf.
 *
 *   original    "TREE", kind 1, level 1, entries 2, siblings 2 x 8, then key, child, key, child, ..., key
 *   version 2   "BTHD" has the sizes; "BTIN" has records, then each child's address and number of records; "BTLF" has
 *               records. A checksum follows the used bytes of a node */
#include <stdlib.h>
#include <string.h>

#include "files/hdf5/hdf5_trees.h"

/* ---- the original ---- */

typedef struct original {
    tdi_hdf5_file *file;
    const tdi_hdf5_visitor *visitor;
} original;

static td_status walk_original(const original *tree, uint64_t address, int level, tdi_error *error);

static td_status visit_child(const original *tree, const unsigned char *key, int level, tdi_error *error)
{
    const tdi_hdf5_visitor *v = tree->visitor;
    uint64_t child = tdi_hdf5_number(key + v->key_size, 8);
    bool wanted = true;
    if (v->wants)
        TDI_TRY(v->wants(v->argument, key, key + v->key_size + 8, &wanted, error));
    if (!wanted)
        return TD_OK;
    return level ? walk_original(tree, child, level - 1, error) : v->visit(v->argument, key, child, error);
}

/* `level` is the one that the node above expects, -1 at the root. Levels decrease, so the walk is at most 256 deep. */
static td_status walk_original(const original *tree, uint64_t address, int level, tdi_error *error)
{
    unsigned char head[24], *entries;
    TDI_TRY(tdi_hdf5_bytes(tree->file, address, sizeof head, head, error));
    uint64_t count = tdi_hdf5_number(head + 6, 2), key = tree->visitor->key_size, last = tree->visitor->wants ? key : 0;
    if (memcmp(head, "TREE", 4) != 0 || head[4] != tree->visitor->kind || (level >= 0 && head[5] != level))
        return tdi_hdf5_damaged(tree->file, "a tree in it is damaged", error);
    td_status status = tdi_hdf5_block(tree->file, address + 24, count * (key + 8) + last, &entries, error);
    for (uint64_t i = 0; i < count && status == TD_OK; i++)
        status = visit_child(tree, entries + i * (key + 8), head[5], error);
    free(entries);
    return status;
}

td_status tdi_hdf5_original_tree(tdi_hdf5_file *file, uint64_t address, const tdi_hdf5_visitor *visitor,
                                 tdi_error *error)
{
    return walk_original(&(original){file, visitor}, address, -1, error);
}

/* ---- version 2 ---- */

enum { MAX_DEPTH = 16, NODE_HEAD = 6, CHECKSUM = 4 };

typedef struct newer {
    tdi_hdf5_file *file;
    unsigned kind;
    uint64_t record_size, node_size;
    unsigned count_size;                /* bytes of a child's number of records */
    unsigned total_size[MAX_DEPTH + 1]; /* bytes of the number of records below a node of each depth */
    td_status (*visit)(void *argument, const unsigned char *record, tdi_error *error);
    void *argument;
} newer;

static unsigned pointer_size(const newer *tree, int depth)
{
    return 8 + tree->count_size + (depth > 1 ? tree->total_size[depth - 1] : 0);
}

/* The widths of numbers follow from the number of records that nodes can have. */
static bool compute_sizes(newer *tree, int depth)
{
    uint64_t room = tree->node_size - NODE_HEAD - CHECKSUM, total = room / tree->record_size;
    tree->count_size = tdi_hdf5_bytes_for(total);
    for (int at = 1; at <= depth; at++) {
        uint64_t pointer = pointer_size(tree, at);
        uint64_t records = room < pointer ? 0 : (room - pointer) / (tree->record_size + pointer);
        if (records == 0 || __builtin_mul_overflow(records + 1, total, &total) ||
            __builtin_add_overflow(total, records, &total))
            return false;
        tree->total_size[at] = tdi_hdf5_bytes_for(total);
    }
    return true;
}

static td_status walk_newer(const newer *tree, uint64_t address, uint64_t count, int depth, tdi_error *error);

static td_status visit_node(const newer *tree, const unsigned char *records, uint64_t count, int depth,
                            tdi_error *error)
{
    const unsigned char *pointer = records + count * tree->record_size;
    for (uint64_t i = 0; i < count; i++)
        TDI_TRY(tree->visit(tree->argument, records + i * tree->record_size, error));
    for (uint64_t i = 0; depth > 0 && i <= count; i++, pointer += pointer_size(tree, depth))
        TDI_TRY(walk_newer(tree, tdi_hdf5_number(pointer, 8), tdi_hdf5_number(pointer + 8, tree->count_size), depth - 1,
                           error));
    return TD_OK;
}

static td_status walk_newer(const newer *tree, uint64_t address, uint64_t count, int depth, tdi_error *error)
{
    unsigned char *node;
    uint64_t used = NODE_HEAD + count * tree->record_size + (depth ? (count + 1) * pointer_size(tree, depth) : 0);
    if (used + CHECKSUM > tree->node_size)
        return tdi_hdf5_damaged(tree->file, "a tree in it is damaged", error);
    td_status status = tdi_hdf5_checked(tree->file, address, used + CHECKSUM, depth ? "BTIN" : "BTLF", &node, error);
    if (status == TD_OK && node[5] != tree->kind)
        status = tdi_hdf5_damaged(tree->file, "a tree in it is damaged", error);
    if (status == TD_OK)
        status = visit_node(tree, node + NODE_HEAD, count, depth, error);
    free(node);
    return status;
}

static td_status walk_from_head(newer *tree, const unsigned char *head, uint64_t least, tdi_error *error)
{
    int depth = (int)tdi_hdf5_number(head + 12, 2);
    tree->node_size = tdi_hdf5_number(head + 6, 4);
    tree->record_size = tdi_hdf5_number(head + 10, 2);
    uint64_t root = tdi_hdf5_number(head + 16, 8), count = tdi_hdf5_number(head + 24, 2);
    if (head[5] != tree->kind || tree->record_size < least || depth > MAX_DEPTH ||
        tree->node_size < NODE_HEAD + CHECKSUM + tree->record_size || !compute_sizes(tree, depth))
        return tdi_hdf5_damaged(tree->file, "a tree in it is damaged", error);
    return root == TDI_HDF5_UNDEFINED ? TD_OK : walk_newer(tree, root, count, depth, error);
}

td_status tdi_hdf5_newer_tree(tdi_hdf5_file *file, uint64_t address, unsigned kind, uint64_t least,
                              td_status (*visit)(void *argument, const unsigned char *record, tdi_error *error),
                              void *argument, tdi_error *error)
{
    newer tree = {.file = file, .kind = kind, .visit = visit, .argument = argument};
    unsigned char *head;
    td_status status = tdi_hdf5_checked(file, address, 38, "BTHD", &head, error);
    if (status == TD_OK)
        status = walk_from_head(&tree, head, least, error);
    free(head);
    return status;
}
