/* hdf5_heap.c - HDF5's fractal heap, in which a large group keeps its links.
 *
 * Objects lie at offsets of one long space, which is cut into rows of `width` blocks. Blocks of the first two rows have
 * the starting size; those of each further row are twice as large as the row before. Blocks up to the largest size have
 * objects
 * ("FHDB"); larger ones are such tables themselves ("FHIB"). */
#include <stdlib.h>
#include <string.h>

#include "files/hdf5/hdf5_trees.h"

enum { HEAD_SIZE = 146, MAX_LEVELS = 8 };

static td_status damaged(const tdi_hdf5_heap *heap, tdi_error *error)
{
    return tdi_hdf5_damaged(heap->file, "a group's names are damaged", error);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static td_status understand(tdi_hdf5_heap *heap, const unsigned char *head, tdi_error *error)
{
    unsigned bits = (unsigned)tdi_hdf5_number(head + 128, 2);
    unsigned object_size = tdi_hdf5_bytes_for(tdi_hdf5_number(head + 10, 4));
    heap->id_size = (unsigned)tdi_hdf5_number(head + 5, 2);
    heap->width = tdi_hdf5_number(head + 110, 2);
    heap->start = tdi_hdf5_number(head + 112, 8);
    heap->largest = tdi_hdf5_number(head + 120, 8);
    heap->root = tdi_hdf5_number(head + 132, 8);
    heap->rows = (unsigned)tdi_hdf5_number(head + 140, 2);
    if (tdi_hdf5_number(head + 7, 2) != 0)
        return tdi_hdf5_damaged(heap->file, "a group's names are compressed, which is not read", error);
    if (!tdi_hdf5_is_power(heap->width) || !tdi_hdf5_is_power(heap->start) || !tdi_hdf5_is_power(heap->largest) ||
        heap->largest < heap->start || heap->largest > UINT32_MAX || bits < 1 || bits > 48)
        return damaged(heap, error);
    heap->offset_size = (bits + 7) / 8;
    heap->length_size = least((tdi_hdf5_log2(heap->largest) + 7) / 8, object_size);
    heap->max_rows = tdi_hdf5_log2(heap->largest) - tdi_hdf5_log2(heap->start) + 2; /* rows of blocks with objects */
    return heap->id_size >= 1 + heap->offset_size + heap->length_size ? TD_OK : damaged(heap, error);
}

td_status tdi_hdf5_heap_open(tdi_hdf5_file *file, uint64_t address, tdi_hdf5_heap *heap, tdi_error *error)
{
    unsigned char *head;
    *heap = (tdi_hdf5_heap){.file = file};
    td_status status = tdi_hdf5_checked(file, address, HEAD_SIZE, "FRHP", &head, error);
    if (status == TD_OK)
        status = understand(heap, head, error);
    free(head);
    return status;
}

/* ---- from an offset to the block that holds it ---- */

typedef struct block {
    uint64_t address;     /* in the file */
    uint64_t begin, size; /* in the heap's space */
    unsigned rows;        /* of a table; 0: the block has objects */
} block;

/* Returns the table's row that contains offset `at` and sets the block's place. */
static unsigned row_of(const tdi_hdf5_heap *heap, uint64_t at, block *found)
{
    uint64_t row_size = heap->width * heap->start, begin = 0;
    unsigned row = 0;
    for (; at - begin >= row_size && row < 64; row++) {
        begin += row_size;
        row_size *= row ? 2 : 1;
    }
    found->size = row_size / heap->width;
    found->begin = begin + (at - begin) / found->size * found->size;
    return row;
}

static td_status step_down(const tdi_hdf5_heap *heap, uint64_t offset, block *at, tdi_error *error)
{
    block below = {0};
    unsigned row = row_of(heap, offset - at->begin, &below);
    if (row >= at->rows)
        return damaged(heap, error);
    uint64_t row_begin = row ? heap->width * heap->start << (row - 1) : 0;
    uint64_t child = row * heap->width + (below.begin - row_begin) / below.size;
    uint64_t head = 13 + heap->offset_size, length = head + at->rows * heap->width * 8 + 4;
    unsigned char *table;
    td_status status = tdi_hdf5_checked(heap->file, at->address, length, "FHIB", &table, error);
    if (status == TD_OK)
        below.address = tdi_hdf5_number(table + head + 8 * child, 8);
    free(table);
    below.begin += at->begin;
    below.rows = row < heap->max_rows ? 0 : tdi_hdf5_log2(below.size) - tdi_hdf5_log2(heap->width * heap->start) + 1;
    *at = below;
    return status;
}

td_status tdi_hdf5_heap_read(const tdi_hdf5_heap *heap, const unsigned char *id, unsigned char **object, uint64_t *size,
                             tdi_error *error)
{
    uint64_t offset = tdi_hdf5_number(id + 1, heap->offset_size);
    block at = {heap->root, 0, heap->start, heap->rows};
    *size = tdi_hdf5_number(id + 1 + heap->offset_size, heap->length_size);
    *object = NULL;
    if (id[0] != 0)
        return tdi_hdf5_damaged(heap->file, "a group's name is longer than is read", error);
    for (int level = 0; at.rows && level < MAX_LEVELS; level++)
        TDI_TRY(step_down(heap, offset, &at, error));
    if (at.rows || offset - at.begin >= at.size || *size > at.size - (offset - at.begin))
        return damaged(heap, error);
    return tdi_hdf5_block(heap->file, at.address + (offset - at.begin), *size, object, error);
}
