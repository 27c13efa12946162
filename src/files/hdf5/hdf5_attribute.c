/* hdf5_attribute.c - attributes that hold strings.
 *
 *   message      version 1: [version 1, 0, sizes of name, type and space 2 each], each of the three padded to 8 bytes
 *                version 2: [version 1, flags 1, the sizes], without padding; version 3: a character set behind the
 * sizes type         class 3: a string of `size` bytes; class 9 of kind 1: [length 4, address of a heap 8, index 4]
 *   space        version 1: extents from byte 8 on; version 2: from byte 4 on; without extents there is one string
 *   global heap  "GCOL", [version 1, 0 0 0, size 8], then objects [index 2, references 2, 0 4, size 8, data padded to
 * 8] */
#include <stdlib.h>
#include <string.h>

#include "files/hdf5/hdf5_attribute.h"

enum { STRING = 3, VARIABLE = 9, MOST_STRINGS = 1 << 16 };

/* The three parts of an attribute's message, and what is behind them. */
typedef struct attribute {
    const unsigned char *name, *type, *space, *data;
    uint64_t name_size, type_size, space_size, data_size;
} attribute;

static uint64_t padded(uint64_t size, bool pads)
{
    return pads ? (size + 7) / 8 * 8 : size;
}

static bool split(const tdi_hdf5_message *message, attribute *to)
{
    const unsigned char *at = message->data;
    if (message->size < 9 || message->shared)
        return false;
    bool pads = at[0] == 1;
    uint64_t head = at[0] == 3 ? 9 : 8;
    *to = (attribute){.name_size = tdi_hdf5_number(at + 2, 2),
                      .type_size = tdi_hdf5_number(at + 4, 2),
                      .space_size = tdi_hdf5_number(at + 6, 2)};
    uint64_t type = head + padded(to->name_size, pads), space = type + padded(to->type_size, pads),
             data = space + padded(to->space_size, pads);
    if (data > message->size || to->name_size == 0 || to->type_size < 8 || to->space_size < 4)
        return false;
    to->name = at + head;
    to->type = at + type;
    to->space = at + space;
    to->data = at + data;
    to->data_size = message->size - data;
    return true;
}

static bool find(const tdi_hdf5_header *header, const char *name, attribute *found)
{
    size_t length = strlen(name);
    for (int i = 0; i < header->messages.count; i++)
        if (header->messages.at[i].type == TDI_HDF5_ATTRIBUTE && split(&header->messages.at[i], found) &&
            found->name_size > length && memcmp(found->name, name, length + 1) == 0)
            return true;
    return false;
}

/* The number of strings; 0 when there are none, or too many. */
static uint64_t count_of(const attribute *from)
{
    uint64_t rank = from->space[1], first = from->space[0] == 1 ? 8 : 4, count = 1;
    if (rank > 8 || first + 8 * rank > from->space_size)
        return 0;
    for (uint64_t i = 0; i < rank; i++) {
        uint64_t extent = tdi_hdf5_number(from->space + first + 8 * i, 8);
        if (extent == 0 || extent > MOST_STRINGS / count)
            return 0;
        count *= extent;
    }
    return count;
}

static td_status push(tdi_hdf5_strings *strings, const unsigned char *from, uint64_t length, tdi_error *error)
{
    char *text = strndup((const char *)from, length);
    if (text && tdi_push(&strings->list, text))
        return TD_OK;
    free(text);
    return tdi_no_memory(error);
}

/* Finds object `index` of a collection of the global heap. */
static td_status find_object(const tdi_hdf5_file *file, const unsigned char *heap, uint64_t size, unsigned index,
                             const unsigned char **object, uint64_t *length, tdi_error *error)
{
    for (uint64_t at = 16; at + 16 <= size;) {
        uint64_t data = tdi_hdf5_number(heap + at + 8, 8);
        if (data > size - at - 16)
            break;
        if (tdi_hdf5_number(heap + at, 2) == index) {
            *object = heap + at + 16;
            *length = data;
            return TD_OK;
        }
        if (data == 0)
            break;
        at += 16 + padded(data, true);
    }
    return tdi_hdf5_damaged(file, "a string is not in the heap: it is damaged", error);
}

/* A collection of the global heap: the last one read, as an attribute's strings mostly stand in one. */
typedef struct heap {
    uint64_t address, size;
    unsigned char *bytes;
} heap;

static td_status open_heap(tdi_hdf5_file *file, uint64_t address, heap *last, tdi_error *error)
{
    unsigned char head[16];
    if (last->bytes && last->address == address)
        return TD_OK;
    free(last->bytes);
    *last = (heap){.address = address};
    TDI_TRY(tdi_hdf5_bytes(file, address, sizeof head, head, error));
    if (memcmp(head, "GCOL", 4) != 0)
        return tdi_hdf5_damaged(file, "a string's heap is damaged", error);
    last->size = tdi_hdf5_number(head + 8, 8);
    return tdi_hdf5_block(file, address, last->size, &last->bytes, error);
}

static td_status read_variable(tdi_hdf5_file *file, const unsigned char *place, heap *last, tdi_hdf5_strings *strings,
                               tdi_error *error)
{
    const unsigned char *object = NULL;
    uint64_t length = tdi_hdf5_number(place, 4), had = 0;
    if (length == 0)
        return push(strings, place, 0, error);
    TDI_TRY(open_heap(file, tdi_hdf5_number(place + 4, 8), last, error));
    TDI_TRY(find_object(file, last->bytes, last->size, (unsigned)tdi_hdf5_number(place + 12, 4), &object, &had, error));
    return push(strings, object, had < length ? had : length, error);
}

static td_status read_strings(tdi_hdf5_file *file, const char *name, const attribute *from, tdi_hdf5_strings *strings,
                              tdi_error *error)
{
    unsigned kind = from->type[0] & 15u;
    bool variable = kind == VARIABLE && (from->type[1] & 15u) == 1;
    uint64_t size = tdi_hdf5_number(from->type + 4, 4), count = count_of(from);
    heap last = {0};
    td_status status = TD_OK;
    if ((kind != STRING && !variable && count) || (variable && size != 16) || size == 0 ||
        count > from->data_size / size)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: the attribute \"%.64s\" holds no strings", file->name, name);
    for (uint64_t i = 0; i < count && status == TD_OK; i++)
        status = variable ? read_variable(file, from->data + i * size, &last, strings, error)
                          : push(strings, from->data + i * size, size, error);
    free(last.bytes);
    return status;
}

static td_status open_header(tdi_hdf5_file *file, const char *path, tdi_hdf5_header *header, tdi_error *error)
{
    uint64_t address = file->root;
    *header = (tdi_hdf5_header){0};
    tdi_hdf5_begin(file);
    if (*path)
        TDI_TRY(tdi_hdf5_find(file, path, &address, error));
    return tdi_hdf5_header_read(file, address, header, error);
}

td_status tdi_hdf5_strings_read(tdi_hdf5_file *file, const char *path, const char *name, tdi_hdf5_strings *strings,
                                tdi_error *error)
{
    tdi_hdf5_header header;
    attribute found;
    *strings = (tdi_hdf5_strings){0};
    td_status status = open_header(file, path, &header, error);
    if (status == TD_OK)
        status = find(&header, name, &found)
                     ? read_strings(file, name, &found, strings, error)
                     : tdi_fail(error, TD_NOT_FOUND, "%s: \"%s\" has no attribute \"%.64s\"", file->name, path, name);
    tdi_hdf5_header_release(&header);
    return status;
}

void tdi_hdf5_strings_release(tdi_hdf5_strings *strings)
{
    for (int i = 0; i < strings->list.count; i++)
        free(strings->list.at[i]);
    tdi_vec_free(&strings->list);
}

bool tdi_hdf5_has_attribute(tdi_hdf5_file *file, const char *path, const char *name)
{
    tdi_hdf5_header header;
    attribute found;
    bool has = open_header(file, path, &header, NULL) == TD_OK && find(&header, name, &found);
    tdi_hdf5_header_release(&header);
    return has;
}
