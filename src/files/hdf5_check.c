/* hdf5_check.c - walks a file of HDF5's original format (superblock 0), as h5py writes it by default, and sees that
 * nothing in it leads libhdf5 astray. libhdf5 crashes on many malformed files, and a checksum of the archive around it
 * only tells that the file is as its maker wrote it.
 *
 * The format ("HDF5 File Format Specification", version 3), little-endian throughout:
 *   superblock   at 0; holds the root group's symbol table entry
 *   object       a header: messages, each [type 2, size 2, flags 1, reserved 3, data]; continued elsewhere by message
 * 0x10 group        a header with a symbol table message: the address of a B-tree ("TREE") and of a heap of names
 * ("HEAP") B-tree       leads to symbol table nodes ("SNOD"), whose entries name a link and its object's header array
 * a header with dataspace, datatype, fill value and layout messages */
#include "files/hdf5_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define UNDEFINED    UINT64_MAX
#define MAX_DEPTH    16   /* of groups */
#define MAX_RANK     32   /* HDF5's own */
#define MAX_K        1024 /* half the entries of a node */
#define ENTRY_SIZE   40   /* of a symbol table */
#define MESSAGE_HEAD 8

typedef struct range {
    uint64_t begin, end;
} range;

typedef struct checker {
    const unsigned char *bytes;
    uint64_t size;
    uint64_t leaf_k, tree_k;
    int64_t budget;       /* structures still to be looked at: hard links may form loops */
    tdi_vec(range) taken; /* where the structures seen so far lie */
    const char *reason;   /* the first defect */
} checker;

typedef struct heap {
    const unsigned char *names;
    uint64_t size;
} heap;

static bool defect(checker *c, const char *reason)
{
    if (!c->reason)
        c->reason = reason;
    return false;
}

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

/* The bytes of a structure, which no other may share; NULL when they are not all in the file. */
static const unsigned char *structure(checker *c, uint64_t address, uint64_t length)
{
    if (c->budget-- <= 0)
        defect(c, "it holds more, or deeper nested, structures than any model");
    else if (address > c->size || length > c->size - address)
        defect(c, "an address leads outside of it: it is truncated or damaged");
    else if (!tdi_push(&c->taken, (range){address, address + length}))
        defect(c, "memory is out");
    else
        return c->bytes + address;
    return NULL;
}

static bool signed_as(checker *c, const unsigned char *at, const char *signature)
{
    return memcmp(at, signature, 4) == 0 || defect(c, "a structure is not what another one says it is");
}

static int by_begin(const void *a, const void *b)
{
    uint64_t x = ((const range *)a)->begin, y = ((const range *)b)->begin;
    return (x > y) - (x < y);
}

/* libhdf5 keeps what it read by address: it takes one structure for another when two lie at the same place. */
static bool check_overlaps(checker *c)
{
    qsort(c->taken.at, (size_t)c->taken.count, sizeof(range), by_begin);
    for (int i = 1; i < c->taken.count; i++)
        if (c->taken.at[i].begin < c->taken.at[i - 1].end)
            return defect(c, "two of its structures lie at the same place");
    return true;
}

/* ---- messages ---- */

/* What a header is found to be. An array has a shape, a type and a layout, once each. */
typedef struct object {
    unsigned left; /* messages still to come */
    int continuations;
    bool group, shape, type, layout;
    uint64_t tree, heap;                          /* of a group */
    uint64_t elements, element_size, data_length; /* of an array; the lengths in bytes */
} object;

static bool check_dataspace(checker *c, const unsigned char *data, uint64_t size, object *found)
{
    if (size < 4 || (data[0] != 1 && data[0] != 2) || data[1] > MAX_RANK || data[2] > 1 || found->shape)
        return defect(c, "an array's shape is damaged");
    uint64_t rank = data[1], head = data[0] == 1 ? 8 : 4;
    bool simple = data[0] == 1 || data[3] == (rank > 0);
    if (!simple || head + rank * (data[2] ? 16 : 8) > size)
        return defect(c, "an array's shape is damaged");
    found->shape = true;
    found->elements = 1;
    for (uint64_t i = 0; i < rank; i++) {
        uint64_t extent = number(data + head + 8 * i, 8);
        bool fixed = !data[2] || number(data + head + 8 * (rank + i), 8) == extent;
        if (!fixed || (extent > 0 && found->elements > c->size / extent))
            return defect(c, "an array's shape is damaged");
        found->elements *= extent;
    }
    return true;
}

/* The types that are read, as libhdf5 writes them: [class and version, flags 3, size 4, properties]. Its conversion of
 * oddly laid out ones is a rich source of crashes. */
static const struct {
    unsigned char flags[3], size, length, properties[12];
} plain_types[] = {
    {{0x20, 31, 0}, 4, 12, {0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0}},   /* float32 */
    {{0x20, 63, 0}, 8, 12, {0, 0, 64, 0, 52, 11, 0, 52, 0xFF, 3, 0, 0}}, /* float64 */
    {{0x08, 0, 0}, 4, 4, {0, 0, 32, 0}},
    {{0x08, 0, 0}, 8, 4, {0, 0, 64, 0}}, /* int32, int64 */
    {{0x00, 0, 0}, 4, 4, {0, 0, 32, 0}},
    {{0x00, 0, 0}, 8, 4, {0, 0, 64, 0}}, /* uint32, uint64 */
    {{0x00, 0, 0}, 1, 4, {0, 0, 8, 0}},  /* uint8 */
};

static bool check_datatype(checker *c, const unsigned char *data, uint64_t size, object *found)
{
    for (size_t i = 0; i < sizeof plain_types / sizeof *plain_types && !found->type && size >= 8; i++) {
        unsigned class = plain_types[i].length == 12, length = plain_types[i].length;
        if ((data[0] & 15u) == class && data[0] >> 4u >= 1 && data[0] >> 4u <= 3 && size >= 8 + length &&
            memcmp(data + 1, plain_types[i].flags, 3) == 0 && number(data + 4, 4) == plain_types[i].size &&
            memcmp(data + 8, plain_types[i].properties, length) == 0) {
            found->type = true;
            found->element_size = plain_types[i].size;
            return true;
        }
    }
    return defect(c, "an array does not hold plain numbers (float32, float64 or integers)");
}

static bool check_fill_value(checker *c, const unsigned char *data, uint64_t size)
{
    if (size < 4)
        return defect(c, "a fill value is damaged");
    bool flagged = data[0] == 3;
    uint64_t head = flagged ? 6 : 8;
    bool holds = flagged ? (data[1] & 0x20u) != 0 : data[0] < 2 || data[3] != 0;
    if (data[0] < 1 || data[0] > 3 || (holds && size < head))
        return defect(c, "a fill value is damaged");
    uint64_t length = holds ? number(data + head - 4, 4) : 0;
    return !holds || length <= size - head || defect(c, "a fill value is damaged");
}

static bool check_old_fill_value(checker *c, const unsigned char *data, uint64_t size)
{
    return (size >= 4 && number(data, 4) <= size - 4) || defect(c, "a fill value is damaged");
}

/* In one piece: in the message (compact), or at an address (contiguous), which is undefined while nothing was written.
 */
static bool check_layout(checker *c, const unsigned char *data, uint64_t size, object *found)
{
    if (size < 4 || data[0] != 3 || found->layout)
        return defect(c, "an array is stored in a way that is not read");
    found->layout = true;
    if (data[1] == 0) {
        found->data_length = number(data + 2, 2);
        return found->data_length <= size - 4 || defect(c, "an array is damaged");
    }
    if (data[1] != 1)
        return defect(
            c, "an array is stored in chunks, perhaps compressed, or in other files, which is not read: Keras stores "
               "arrays whole");
    if (size < 18)
        return defect(c, "an array is damaged");
    uint64_t address = number(data + 2, 8);
    found->data_length = number(data + 10, 8);
    return address == UNDEFINED || structure(c, address, found->data_length) != NULL;
}

/* ---- object headers ---- */

static bool check_messages(checker *c, uint64_t address, uint64_t length, object *found);

static bool check_continuation(checker *c, const unsigned char *data, uint64_t size, object *found)
{
    if (size < 16 || ++found->continuations > 64)
        return defect(c, "an object's header is damaged");
    return check_messages(c, number(data, 8), number(data + 8, 8), found);
}

static bool check_symbol_table(checker *c, const unsigned char *data, uint64_t size, object *found)
{
    if (size < 16 || found->group)
        return defect(c, "a group is damaged");
    found->group = true;
    found->tree = number(data, 8);
    found->heap = number(data + 8, 8);
    return true;
}

static bool check_message(checker *c, unsigned type, const unsigned char *data, uint64_t size, object *found)
{
    switch (type) {
    case 0x01:
        return check_dataspace(c, data, size, found);
    case 0x03:
        return check_datatype(c, data, size, found);
    case 0x04:
        return check_old_fill_value(c, data, size);
    case 0x05:
        return check_fill_value(c, data, size);
    case 0x08:
        return check_layout(c, data, size, found);
    case 0x10:
        return check_continuation(c, data, size, found);
    case 0x11:
        return check_symbol_table(c, data, size, found);
    case 0x07:
        return defect(c, "an array keeps its data in another file, which is not read");
    case 0x0B:
        return defect(c, "an array is compressed, which is not read: Keras stores arrays whole");
    case 0x00: /* nothing */
    case 0x0C: /* an attribute: never read */
    case 0x0E: /* times */
    case 0x12:
        return true;
    default:
        return defect(c, "it holds a structure that Keras does not write");
    }
}

static bool check_messages(checker *c, uint64_t address, uint64_t length, object *found)
{
    const unsigned char *at = structure(c, address, length);
    if (!at)
        return false;
    while (length > 0) {
        if (length < MESSAGE_HEAD || found->left-- == 0)
            return defect(c, "an object's header is damaged");
        unsigned type = (unsigned)number(at, 2);
        uint64_t size = number(at + 2, 2), whole = MESSAGE_HEAD + size;
        /* Flag 2 says that the message is shared and stands elsewhere. */
        if (size % 8 || whole > length || (at[4] & ~5u))
            return defect(c, "an object's header is damaged");
        if (!check_message(c, type, at + MESSAGE_HEAD, size, found))
            return false;
        at += whole;
        length -= whole;
    }
    return true;
}

static bool check_kind(checker *c, const object *found)
{
    bool array = found->shape && found->type && found->layout;
    if (found->group ? found->shape || found->type || found->layout : !array)
        return defect(c, "it holds something that is neither a group nor an array");
    return found->group || found->data_length == found->elements * found->element_size ||
           defect(c, "an array's data does not have the size of its shape");
}

static bool check_header(checker *c, uint64_t address, object *found)
{
    const unsigned char *at = structure(c, address, 16);
    if (!at)
        return false;
    *found = (object){.left = (unsigned)number(at + 2, 2)};
    if (at[0] != 1 || number(at + 4, 4) == 0)
        return defect(c, "an object's header is of a kind that Keras does not write");
    return check_messages(c, address + 16, number(at + 8, 4), found) &&
           (found->left == 0 || defect(c, "an object's header is damaged")) && check_kind(c, found);
}

/* ---- groups ---- */

static bool check_free_list(checker *c, const unsigned char *head, const heap *names)
{
    uint64_t at = number(head + 16, 8);
    for (uint64_t step = 0; at != 1; step++) { /* 1 ends the list */
        if (step > names->size / 16 || at > names->size || names->size - at < 16 ||
            number(names->names + at + 8, 8) > names->size - at)
            return defect(c, "a group's names are damaged");
        at = number(names->names + at, 8);
    }
    return true;
}

static bool check_heap(checker *c, uint64_t address, heap *names)
{
    const unsigned char *head = structure(c, address, 32);
    if (!head || !signed_as(c, head, "HEAP"))
        return false;
    names->size = number(head + 8, 8);
    names->names = structure(c, number(head + 24, 8), names->size);
    if (!names->names || head[4] != 0)
        return defect(c, "a group's names are damaged");
    return check_free_list(c, head, names);
}

static bool check_name(checker *c, const heap *names, uint64_t offset)
{
    return (offset < names->size && memchr(names->names + offset, 0, names->size - offset)) ||
           defect(c, "a name is damaged");
}

static bool check_object(checker *c, const unsigned char *entry, int depth);

static bool check_symbols(checker *c, uint64_t address, const heap *names, int depth)
{
    const unsigned char *node = structure(c, address, 8 + 2 * c->leaf_k * ENTRY_SIZE);
    if (!node || !signed_as(c, node, "SNOD"))
        return false;
    uint64_t count = number(node + 6, 2);
    if (node[4] != 1 || count < 1 || count > 2 * c->leaf_k)
        return defect(c, "a group is damaged");
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *entry = node + 8 + i * ENTRY_SIZE;
        if (!check_name(c, names, number(entry, 8)) || !check_object(c, entry, depth + 1))
            return false;
    }
    return true;
}

/* `level` is what the node above expects; -1 at the root. */
static bool check_tree(checker *c, uint64_t address, int level, const heap *names, int depth)
{
    const unsigned char *node = structure(c, address, 24 + 8 * (4 * c->tree_k + 1));
    if (!node || !signed_as(c, node, "TREE"))
        return false;
    uint64_t count = number(node + 6, 2);
    if (node[4] != 0 || node[5] > 8 || (level >= 0 && node[5] != level) || count > 2 * c->tree_k)
        return defect(c, "a group is damaged");
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *key = node + 24 + 16 * i;
        uint64_t child = number(key + 8, 8);
        if (!check_name(c, names, number(key, 8)) || !check_name(c, names, number(key + 16, 8)))
            return false;
        if (node[5] ? !check_tree(c, child, node[5] - 1, names, depth) : !check_symbols(c, child, names, depth))
            return false;
    }
    return true;
}

/* What a symbol table entry leads to. Its copy of a group's addresses must be the group's. */
static bool check_object(checker *c, const unsigned char *entry, int depth)
{
    object found;
    heap names;
    uint64_t kind = number(entry + 16, 4);
    if (depth > MAX_DEPTH)
        return defect(c, "its groups are nested too deeply");
    if (kind > 1)
        return defect(c, "it holds a link that leads elsewhere, which is not followed");
    if (!check_header(c, number(entry + 8, 8), &found))
        return false;
    if (kind == 1 && (!found.group || number(entry + 24, 8) != found.tree || number(entry + 32, 8) != found.heap))
        return defect(c, "a group is damaged");
    return !found.group || (check_heap(c, found.heap, &names) && check_tree(c, found.tree, -1, &names, depth));
}

/* ---- the file ---- */

static bool check_superblock(checker *c)
{
    const unsigned char *at = structure(c, 0, 96);
    if (!at)
        return false;
    c->leaf_k = number(at + 16, 2);
    c->tree_k = number(at + 18, 2);
    bool usual = at[9] == 0 && at[10] == 0 && at[12] == 0 && at[13] == 8 && at[14] == 8 && number(at + 24, 8) == 0 &&
                 number(at + 32, 8) == UNDEFINED && number(at + 48, 8) == UNDEFINED;
    if (!usual || c->leaf_k < 1 || c->leaf_k > MAX_K || c->tree_k < 1 || c->tree_k > MAX_K)
        return defect(c, "its first block is not as Keras writes it");
    if (number(at + 40, 8) != c->size)
        return defect(c, "it is truncated, or not all of one file");
    return check_object(c, at + 56, 0) && check_overlaps(c);
}

td_status tdi_hdf5_check(const void *bytes, size_t size, const char *what, tdi_error *error)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    checker c = {.bytes = bytes, .size = size, .budget = 1000 + (int64_t)(size / 16)};
    if (size < 9 || memcmp(bytes, signature, sizeof signature) != 0)
        return tdi_fail(error, TD_BAD_FILE, "%s is no HDF5 file", what);
    if (c.bytes[8] != 0)
        return tdi_fail(error, TD_BAD_FILE,
                        "%s is an HDF5 file of a kind that Keras does not write: it has a superblock of version %d, "
                        "not 0; save it again by "
                        "Keras",
                        what, c.bytes[8]);
    bool good = check_superblock(&c);
    tdi_vec_free(&c.taken);
    return good ? TD_OK : tdi_fail(error, TD_BAD_FILE, "%s cannot be read: %s", what, c.reason);
}
