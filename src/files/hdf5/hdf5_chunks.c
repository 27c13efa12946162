/* hdf5_chunks.c - reads HDF5's lists of an array's chunks.
 *
 * Original files use a B-tree. Layout messages of versions 4 and 5 know a single chunk, all chunks in a row, a fixed
 * array
 * ("FAHD"), an array that grows along one axis ("EAHD") and a B-tree of version 2.
 *
 * An entry is an address of 8 bytes. With filters the chunk's size and the filters that were left out follow. */
#include "files/hdf5/hdf5_chunks.h"

#include <stdlib.h>
#include <string.h>

#include "files/hdf5/hdf5_trees.h"

typedef struct reader {
    tdi_hdf5_file *file;
    tdi_hdf5_chunks *chunks;
    const unsigned char *layout; /* the layout message; its bytes */
    uint64_t layout_size;
    int grows;        /* the axis along which the array grows; it comes first in the entries' numbers */
    uint64_t number;  /* of the next entry */
    uint64_t element; /* bytes per entry */
} reader;

static td_status damaged(const reader *r, tdi_error *error)
{
    return tdi_hdf5_damaged(r->file, "the list of an array's chunks is damaged", error);
}

/* ---- entries ---- */

/* Adds the chunk at a place of the grid, unless it lies beyond the array, which may have shrunk. */
static td_status add(reader *r, const uint64_t *place, tdi_hdf5_chunk chunk, tdi_error *error)
{
    const tdi_hdf5_grid *grid = &r->chunks->grid;
    chunk.number = 0;
    for (int i = 0; i < grid->rank; i++) {
        uint64_t along = tdi_hdf5_chunks_along(grid, i);
        if (place[i] >= along)
            return TD_OK;
        chunk.number = chunk.number * along + place[i];
    }
    if (chunk.address == TDI_HDF5_UNDEFINED)
        return TD_OK;
    return tdi_push(&r->chunks->list, chunk) ? TD_OK : tdi_no_memory(error);
}

static tdi_hdf5_chunk unfiltered(const reader *r, uint64_t address)
{
    return (tdi_hdf5_chunk){.address = address, .size = r->chunks->bytes, .left_out = UINT32_MAX};
}

/* Parses an entry: the address and, of a filtered chunk, its size and 4 bytes of filters left out. The size takes the
 * bytes that remain. */
static tdi_hdf5_chunk entry_of(const reader *r, const unsigned char *at, uint64_t size)
{
    if (!r->chunks->filters.count)
        return unfiltered(r, tdi_hdf5_number(at, 8));
    unsigned wide = (unsigned)size - 12;
    return (tdi_hdf5_chunk){.address = tdi_hdf5_number(at, 8),
                            .size = tdi_hdf5_number(at + 8, wide),
                            .left_out = (uint32_t)tdi_hdf5_number(at + 8 + wide, 4)};
}

static uint64_t most_along(const tdi_hdf5_grid *grid, int axis)
{
    return grid->most[axis] / grid->chunk[axis] + (grid->most[axis] % grid->chunk[axis] != 0);
}

/* The place in the grid of entry `number`. Entries count over the extents to which the array may grow, the growing axis
 * slowest. */
static void place_of(const reader *r, uint64_t number, uint64_t *place)
{
    const tdi_hdf5_grid *grid = &r->chunks->grid;
    for (int i = grid->rank - 1; i >= 0; i--) {
        if (i == r->grows)
            continue;
        uint64_t along = most_along(grid, i);
        place[i] = number % along;
        number /= along;
    }
    if (r->grows >= 0)
        place[r->grows] = number;
    else if (number)
        place[0] = UINT64_MAX;
}

static bool entries_are_known(const reader *r)
{
    return r->chunks->filters.count ? r->element >= 13 && r->element <= 20 : r->element == 8;
}

static td_status add_next(reader *r, tdi_hdf5_chunk chunk, tdi_error *error)
{
    uint64_t place[TD_MAX_RANK];
    place_of(r, r->number++, place);
    return add(r, place, chunk, error);
}

static td_status add_entries(reader *r, const unsigned char *at, uint64_t count, tdi_error *error)
{
    for (uint64_t i = 0; i < count; i++)
        TDI_TRY(add_next(r, entry_of(r, at + i * r->element, r->element), error));
    return TD_OK;
}

/* ---- the original tree ---- */

/* Adds the chunk of a key, which has its size, the filters left out and its first element; a 0 follows. */
static td_status add_of_key(void *argument, const unsigned char *key, uint64_t child, tdi_error *error)
{
    reader *r = argument;
    const tdi_hdf5_grid *grid = &r->chunks->grid;
    uint64_t place[TD_MAX_RANK];
    for (int i = 0; i < grid->rank; i++) {
        uint64_t begin = tdi_hdf5_number(key + 8 + 8 * i, 8);
        if (begin % grid->chunk[i])
            return damaged(r, error);
        place[i] = begin / grid->chunk[i];
    }
    return add(r, place,
               (tdi_hdf5_chunk){.address = child,
                                .size = tdi_hdf5_number(key, 4),
                                .left_out = (uint32_t)tdi_hdf5_number(key + 4, 4)},
               error);
}

static td_status read_original(reader *r, uint64_t address, tdi_error *error)
{
    const tdi_hdf5_visitor visitor = {
        .kind = 1, .key_size = 8 + 8 * ((uint64_t)r->chunks->grid.rank + 1), .visit = add_of_key, .argument = r};
    return address == TDI_HDF5_UNDEFINED ? TD_OK : tdi_hdf5_original_tree(r->file, address, &visitor, error);
}

/* ---- the tree of version 2 ---- */

static td_status add_of_record(void *argument, const unsigned char *record, tdi_error *error)
{
    reader *r = argument;
    uint64_t place[TD_MAX_RANK];
    int rank = r->chunks->grid.rank;
    for (int i = 0; i < rank; i++)
        place[i] = tdi_hdf5_number(record + r->element + 8 * i, 8);
    return add(r, place, entry_of(r, record, r->element), error);
}

/* The number of bytes of a filtered chunk's size. */
static unsigned size_bytes(const reader *r)
{
    unsigned bytes = tdi_hdf5_bytes_for(r->chunks->bytes) + 1;
    return r->layout[0] >= 5 || bytes > 8 ? 8 : bytes;
}

static td_status read_tree(reader *r, uint64_t address, tdi_error *error)
{
    bool filtered = r->chunks->filters.count > 0;
    r->element = filtered ? 8 + size_bytes(r) + 4 : 8;
    return tdi_hdf5_newer_tree(r->file, address, filtered ? 11 : 10, r->element + 8 * (uint64_t)r->chunks->grid.rank,
                               add_of_record, r, error);
}

/* ---- the fixed array ---- */

/* Reads a page or block of entries, checks its checksum and adds the chunks. */
static td_status read_page(reader *r, uint64_t address, uint64_t count, tdi_error *error)
{
    unsigned char *page;
    td_status status = tdi_hdf5_checked(r->file, address, count * r->element + 4, NULL, &page, error);
    if (status == TD_OK)
        status = add_entries(r, page, count, error);
    free(page);
    return status;
}

/* A bit per page that says whether it was ever written, the highest bit of a byte first; and the first page of
 * interest. */
typedef struct page_map {
    const unsigned char *bits;
    uint64_t first;
} page_map;

static td_status read_pages(reader *r, uint64_t address, uint64_t count, uint64_t per_page, page_map map,
                            tdi_error *error)
{
    for (uint64_t begin = 0, bit = map.first; begin < count; begin += per_page, bit++) {
        uint64_t here = count - begin < per_page ? count - begin : per_page;
        if (map.bits[bit / 8] & 0x80u >> bit % 8)
            TDI_TRY(read_page(r, address, here, error));
        else
            r->number += here;
        address += per_page * r->element + 4;
    }
    return TD_OK;
}

static td_status read_fixed_block(reader *r, uint64_t address, uint64_t count, uint64_t per_page, tdi_error *error)
{
    unsigned char *block;
    bool paged = count > per_page;
    uint64_t map = paged ? ((count + per_page - 1) / per_page + 7) / 8 : 0;
    uint64_t head = 14 + map, length = head + (paged ? 0 : count * r->element) + 4;
    td_status status = tdi_hdf5_checked(r->file, address, length, "FADB", &block, error);
    if (status == TD_OK)
        status = paged ? read_pages(r, address + length, count, per_page, (page_map){block + 14, 0}, error)
                       : add_entries(r, block + head, count, error);
    free(block);
    return status;
}

static td_status read_fixed(reader *r, uint64_t address, tdi_error *error)
{
    unsigned char *head;
    td_status status = tdi_hdf5_checked(r->file, address, 28, "FAHD", &head, error);
    uint64_t count = status == TD_OK ? tdi_hdf5_number(head + 8, 8) : 0;
    if (status == TD_OK) {
        r->element = head[6];
        if (!entries_are_known(r) || head[7] > 31 || count / 8 > r->file->size)
            status = damaged(r, error);
        else if (tdi_hdf5_number(head + 16, 8) != TDI_HDF5_UNDEFINED)
            status = read_fixed_block(r, tdi_hdf5_number(head + 16, 8), count, UINT64_C(1) << head[7], error);
    }
    free(head);
    return status;
}

/* ---- the growing array ----
 *
 * The index block has the first entries, then addresses of data blocks, then addresses of super blocks, which have
 * addresses of further data blocks. Super block u stands for 2^(u/2) data blocks of `least` * 2^((u+1)/2) entries. The
 * first super blocks' addresses are in the index block itself. */

typedef struct growing {
    unsigned offset_size, supers; /* number of super blocks, with those in the index block */
    uint64_t direct, least, least_blocks, per_page;
} growing;

static td_status read_data_block(reader *r, const growing *g, uint64_t address, uint64_t count, page_map map,
                                 tdi_error *error)
{
    unsigned char *block;
    if (address == TDI_HDF5_UNDEFINED) {
        r->number += count;
        return TD_OK;
    }
    bool paged = count > g->per_page;
    uint64_t head = 14 + g->offset_size, length = head + (paged ? 0 : count * r->element) + 4;
    if (paged && !map.bits)
        return damaged(r, error);
    td_status status = tdi_hdf5_checked(r->file, address, length, "EADB", &block, error);
    if (status == TD_OK)
        status = paged ? read_pages(r, address + length, count, g->per_page, map, error)
                       : add_entries(r, block + head, count, error);
    free(block);
    return status;
}

static uint64_t blocks_of(unsigned super)
{
    return UINT64_C(1) << super / 2;
}

static uint64_t entries_of(const growing *g, unsigned super)
{
    return g->least << (super + 1) / 2;
}

static td_status read_super_block(reader *r, const growing *g, unsigned super, uint64_t address, tdi_error *error)
{
    uint64_t blocks = blocks_of(super), count = entries_of(g, super);
    if (address == TDI_HDF5_UNDEFINED) {
        r->number += blocks * count;
        return TD_OK;
    }
    unsigned char *block;
    uint64_t map = count > g->per_page ? (count / g->per_page + 7) / 8 : 0, head = 14 + g->offset_size;
    if (blocks > r->file->size || map > r->file->size)
        return damaged(r, error);
    td_status status = tdi_hdf5_checked(r->file, address, head + blocks * (map + 8) + 4, "EASB", &block, error);
    for (uint64_t i = 0; i < blocks && status == TD_OK; i++)
        status = read_data_block(r, g, tdi_hdf5_number(block + head + blocks * map + 8 * i, 8), count,
                                 (page_map){block + head, i * (count / g->per_page)}, error);
    free(block);
    return status;
}

static td_status read_index_block(reader *r, const growing *g, uint64_t address, tdi_error *error)
{
    unsigned inside = 2 * tdi_hdf5_log2(g->least_blocks);
    uint64_t blocks = 2 * (g->least_blocks - 1), supers = g->supers > inside ? g->supers - inside : 0;
    unsigned char *block;
    td_status status = tdi_hdf5_checked(r->file, address, 14 + g->direct * r->element + 8 * (blocks + supers) + 4,
                                        "EAIB", &block, error);
    if (status == TD_OK)
        status = add_entries(r, block + 14, g->direct, error);
    const unsigned char *next = block ? block + 14 + g->direct * r->element : NULL;
    for (unsigned super = 0; super < inside; super++)
        for (uint64_t i = 0; i < blocks_of(super) && status == TD_OK; i++, next += 8)
            status = read_data_block(r, g, tdi_hdf5_number(next, 8), entries_of(g, super), (page_map){0}, error);
    for (unsigned super = inside; super < g->supers && status == TD_OK; super++, next += 8)
        status = read_super_block(r, g, super, tdi_hdf5_number(next, 8), error);
    free(block);
    return status;
}

static td_status read_growing(reader *r, uint64_t address, tdi_error *error)
{
    unsigned char *head;
    td_status status = tdi_hdf5_checked(r->file, address, 72, "EAHD", &head, error);
    if (status == TD_OK) {
        unsigned bits = head[7];
        growing g = {(bits + 7) / 8, 0, head[8], head[9], head[10], UINT64_C(1) << (head[11] & 31)};
        bool known = bits >= 1 && bits <= 64 && tdi_hdf5_is_power(g.least) && tdi_hdf5_is_power(g.least_blocks);
        r->element = head[6];
        if (!known || !entries_are_known(r) || head[11] > 31 || bits < tdi_hdf5_log2(g.least))
            status = damaged(r, error);
        g.supers = known ? 1 + bits - tdi_hdf5_log2(g.least) : 0;
        if (status == TD_OK && tdi_hdf5_number(head + 60, 8) != TDI_HDF5_UNDEFINED)
            status = read_index_block(r, &g, tdi_hdf5_number(head + 60, 8), error);
    }
    free(head);
    return status;
}

/* ---- the layout message ---- */

static bool single_is_filtered(const reader *r)
{
    return (r->layout[2] & 2u) != 0;
}

/* Reads the single chunk; with filters its size and the filters left out precede the address. */
static td_status read_single(reader *r, const unsigned char *at, tdi_error *error)
{
    if (!single_is_filtered(r))
        return add_next(r, unfiltered(r, tdi_hdf5_number(at, 8)), error);
    return add_next(r,
                    (tdi_hdf5_chunk){.address = tdi_hdf5_number(at + 12, 8),
                                     .size = tdi_hdf5_number(at, 8),
                                     .left_out = (uint32_t)tdi_hdf5_number(at + 8, 4)},
                    error);
}

/* Adds all chunks, one behind the other. They must lie in the file, which bounds the list. */
static td_status read_row(reader *r, uint64_t address, tdi_error *error)
{
    const tdi_hdf5_grid *grid = &r->chunks->grid;
    uint64_t count = 1;
    for (int i = 0; i < grid->rank; i++)
        if (__builtin_mul_overflow(count, most_along(grid, i), &count))
            return damaged(r, error);
    if (address == TDI_HDF5_UNDEFINED)
        return TD_OK;
    if (address > r->file->size || count > (r->file->size - address) / r->chunks->bytes)
        return damaged(r, error);
    for (uint64_t i = 0; i < count; i++)
        TDI_TRY(add_next(r, unfiltered(r, address + i * r->chunks->bytes), error));
    return TD_OK;
}

/* Reads the list behind the chunk's extents: its kind, its parameters, its address. */
static td_status read_newer(reader *r, uint64_t at, tdi_error *error)
{
    enum { SINGLE = 1, ROW, FIXED, GROWING, TREE };
    static const unsigned made_with[] = {[SINGLE] = 0, [ROW] = 0, [FIXED] = 1, [GROWING] = 5, [TREE] = 6};
    unsigned kind = at < r->layout_size ? r->layout[at] : 0;
    if (kind < SINGLE || kind > TREE)
        return damaged(r, error);
    uint64_t before = kind == SINGLE && single_is_filtered(r) ? 12 : made_with[kind];
    if (r->layout_size - at < 1 + before + 8)
        return damaged(r, error);
    const unsigned char *here = r->layout + at + 1;
    uint64_t address = tdi_hdf5_number(here + before, 8);
    switch (kind) {
    case SINGLE:
        return read_single(r, here, error);
    case ROW:
        return read_row(r, address, error);
    case FIXED:
        return read_fixed(r, address, error);
    case GROWING:
        return read_growing(r, address, error);
    default:
        return read_tree(r, address, error);
    }
}

/* Reads the chunk's extents, behind which an element's size follows as one more. */
static td_status read_chunk(reader *r, const unsigned char *at, unsigned wide, tdi_error *error)
{
    tdi_hdf5_grid *grid = &r->chunks->grid;
    r->chunks->bytes = grid->element;
    for (int i = 0; i < grid->rank; i++) {
        grid->chunk[i] = tdi_hdf5_number(at + wide * (unsigned)i, wide);
        if (grid->chunk[i] == 0 || __builtin_mul_overflow(r->chunks->bytes, grid->chunk[i], &r->chunks->bytes))
            return damaged(r, error);
        if (grid->most[i] == UINT64_MAX && r->grows < 0)
            r->grows = i;
    }
    bool matches = tdi_hdf5_number(at + wide * (unsigned)grid->rank, wide) == grid->element;
    return matches && r->chunks->bytes <= INT64_MAX ? TD_OK : damaged(r, error);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = ((const tdi_hdf5_chunk *)a)->number, y = ((const tdi_hdf5_chunk *)b)->number;
    return (x > y) - (x < y);
}

static td_status read_layout(reader *r, tdi_error *error)
{
    bool original = r->layout[0] == 3;
    uint64_t extents = (uint64_t)r->chunks->grid.rank + 1, address_at = 3, dimensions = r->layout[original ? 2 : 3];
    unsigned wide = original ? 4 : r->layout[4];
    uint64_t at = original ? address_at + 8 : 5;
    if (dimensions != extents || wide < 1 || wide > 8 || r->layout_size < at + wide * extents)
        return damaged(r, error);
    r->chunks->filters.whole_only = !original && r->layout[2] & 1u;
    TDI_TRY(read_chunk(r, r->layout + at, wide, error));
    return original ? read_original(r, tdi_hdf5_number(r->layout + address_at, 8), error)
                    : read_newer(r, at + wide * extents, error);
}

td_status tdi_hdf5_chunks_read(tdi_hdf5_file *file, const char *name, const tdi_hdf5_header *header,
                               tdi_hdf5_chunks *chunks, tdi_error *error)
{
    const tdi_hdf5_message *layout = tdi_hdf5_header_find(header, TDI_HDF5_LAYOUT);
    const tdi_hdf5_message *filters = tdi_hdf5_header_find(header, TDI_HDF5_FILTERS);
    reader r = {.file = file, .chunks = chunks, .layout = layout->data, .layout_size = layout->size, .grows = -1};
    if (layout->size < 5)
        return damaged(&r, error);
    if (filters)
        TDI_TRY(tdi_hdf5_filters_read(file, name, filters, &chunks->filters, error));
    TDI_TRY(read_layout(&r, error));
    if (chunks->list.count)
        qsort(chunks->list.at, (size_t)chunks->list.count, sizeof *chunks->list.at, by_number);
    return TD_OK;
}

void tdi_hdf5_chunks_release(tdi_hdf5_chunks *chunks)
{
    tdi_vec_free(&chunks->list);
}

/* ---- one chunk ---- */

const tdi_hdf5_chunk *tdi_hdf5_chunks_find(const tdi_hdf5_chunks *chunks, uint64_t number)
{
    const tdi_hdf5_chunk wanted = {.number = number};
    return chunks->list.count ? bsearch(&wanted, chunks->list.at, (size_t)chunks->list.count, sizeof wanted, by_number)
                              : NULL;
}

/* True when the chunk extends beyond the array. */
static bool reaches_beyond(const tdi_hdf5_grid *grid, uint64_t number)
{
    for (int i = grid->rank - 1; i >= 0; i--) {
        uint64_t along = tdi_hdf5_chunks_along(grid, i), place = number % along;
        if (grid->extent[i] - place * grid->chunk[i] < grid->chunk[i])
            return true;
        number /= along;
    }
    return false;
}

static td_status unpack(const tdi_hdf5_file *file, const tdi_hdf5_chunks *chunks, const tdi_hdf5_chunk *chunk,
                        unsigned char *packed, unsigned char **unpacked, tdi_error *error)
{
    const char *reason;
    bool as_it_is = chunks->filters.whole_only && reaches_beyond(&chunks->grid, chunk->number);
    *unpacked = tdi_hdf5_unfilter(&chunks->filters, as_it_is ? UINT32_MAX : chunk->left_out, packed, chunk->size,
                                  chunks->bytes, &reason);
    return *unpacked ? TD_OK
                     : tdi_fail(error, TD_BAD_FILE, "%s: the chunk of %llu bytes at %llu: %s", file->name,
                                (unsigned long long)chunk->size, (unsigned long long)chunk->address, reason);
}

td_status tdi_hdf5_chunk_unpack(const tdi_hdf5_file *file, const tdi_hdf5_chunks *chunks, const tdi_hdf5_chunk *chunk,
                                unsigned char **unpacked, tdi_error *error)
{
    if (chunk->size > file->size)
        return tdi_hdf5_damaged(file, "a chunk is larger than the file: it is damaged", error);
    unsigned char *packed = malloc(chunk->size ? chunk->size : 1);
    if (!packed)
        return tdi_no_memory(error);
    td_status status = tdi_hdf5_bytes(file, chunk->address, chunk->size, packed, error);
    if (status == TD_OK)
        return unpack(file, chunks, chunk, packed, unpacked, error);
    free(packed);
    return status;
}
