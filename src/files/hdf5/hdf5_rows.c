/* hdf5_rows.c - rows of an array in an HDF5 file. The messages of its header give its type, its shape and its layout:
 * contiguous, compact (in the header) or in chunks. Unpacked chunks are kept in a small cache per array. */
#define _GNU_SOURCE
#include "files/hdf5/hdf5_rows.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "files/hdf5/hdf5_chunks.h"
#include "files/hdf5/hdf5_numbers.h"

enum { CACHE = 64 << 20 }; /* bytes of unpacked chunks per array; a single chunk may be larger */

typedef struct slot {
    uint64_t number; /* the chunk's */
    unsigned char *bytes;
} slot;

struct tdi_hdf5_rows {
    tdi_hdf5_file *file; /* borrowed */
    char *name;
    tdi_hdf5_facts facts;
    tdi_numbers type;
    unsigned char fill[8];
    enum { COMPACT, WHOLE, CHUNKED } layout;
    uint64_t address;       /* layout WHOLE: of the elements */
    unsigned char *compact; /* layout COMPACT: the elements */
    tdi_hdf5_chunks chunks; /* layout CHUNKED */
    tdi_hdf5_grid box;      /* the grid, each axis that chunks do not cut merged into the axis before */
    uint64_t row_extent;    /* extent of a row along the first axis of `box` */
    uint64_t row_elements;
    pthread_mutex_t lock; /* guards the slots */
    slot *slots;
    uint64_t slot_count;
};

/* ---- what an array is ---- */

static td_status refuse(const tdi_hdf5_rows *rows, td_status status, const char *what, tdi_error *error)
{
    return tdi_fail(error, status, "%s: \"%s\" %s", rows->file->name, rows->name, what);
}

static td_status look_at_type(tdi_hdf5_rows *rows, const tdi_hdf5_header *header, tdi_error *error)
{
    const tdi_hdf5_message *type = tdi_hdf5_header_find(header, TDI_HDF5_TYPE);
    if (type && !type->shared && tdi_hdf5_numbers_read(type->data, type->size, &rows->type)) {
        rows->facts.dtype = rows->type.dtype;
        return TD_OK;
    }
    return refuse(rows, TD_UNSUPPORTED, "holds neither integers nor floats of at most 64 bits", error);
}

/* Parses the message: version, number of axes, whether their limits follow and, in version 2, whether it is an array.
 */
static td_status read_extents(tdi_hdf5_rows *rows, const tdi_hdf5_message *shape, tdi_error *error)
{
    tdi_hdf5_grid *grid = &rows->chunks.grid;
    bool known = shape->size >= 4 && !shape->shared && (shape->data[0] == 1 || shape->data[0] == 2);
    uint64_t head = known && shape->data[0] == 1 ? 8 : 4;
    if (!known)
        return refuse(rows, TD_BAD_FILE, "has a shape that is damaged", error);
    grid->rank = shape->data[1];
    if (grid->rank > TD_MAX_RANK || (head == 4 && shape->data[3] == 2))
        return refuse(rows, TD_UNSUPPORTED, "has no shape, or more than 6 axes", error);
    uint64_t axes = (uint64_t)grid->rank;
    bool limits = shape->data[2] & 1u;
    if (shape->size < head + 8 * axes * (limits ? 2 : 1))
        return refuse(rows, TD_BAD_FILE, "has a shape that is damaged", error);
    for (uint64_t i = 0; i < axes; i++) {
        grid->extent[i] = tdi_hdf5_number(shape->data + head + 8 * i, 8);
        grid->most[i] = limits ? tdi_hdf5_number(shape->data + head + 8 * (axes + i), 8) : grid->extent[i];
        if (grid->most[i] < grid->extent[i])
            return refuse(rows, TD_BAD_FILE, "has a shape that is damaged", error);
    }
    return TD_OK;
}

static td_status take_extents(tdi_hdf5_rows *rows, tdi_error *error)
{
    const tdi_hdf5_grid *grid = &rows->chunks.grid;
    int64_t bytes = 8;
    rows->facts.shape.rank = grid->rank;
    rows->row_elements = 1;
    for (int i = grid->rank - 1; i >= 0; i--) {
        uint64_t extent = grid->extent[i];
        if (extent > INT64_MAX || (extent && __builtin_mul_overflow(bytes, (int64_t)extent, &bytes)))
            return refuse(rows, TD_BAD_FILE, "has more elements than memory can hold", error);
        rows->facts.shape.dim[i] = (int64_t)extent;
        rows->row_elements *= i ? extent : 1;
    }
    return TD_OK;
}

/* Finds the fill value. The message is [version, times 2, defined, size 4, value] in versions 1 and 2, [version, flags,
 * size 4, value] in version 3; the older message is [size 4, value]. */
static void find_fill(tdi_hdf5_rows *rows, const tdi_hdf5_header *header)
{
    const tdi_hdf5_message *fill = tdi_hdf5_header_find(header, TDI_HDF5_FILL);
    const tdi_hdf5_message *old = tdi_hdf5_header_find(header, TDI_HDF5_OLD_FILL);
    bool newest = fill && fill->size >= 2 && fill->data[0] == 3;
    uint64_t at = !fill ? 0 : newest ? 2 : 4, size = rows->chunks.grid.element;
    fill = fill ? fill : old;
    if (fill && !fill->shared && fill->size >= at + 4 + size && tdi_hdf5_number(fill->data + at, 4) == size)
        memcpy(rows->fill, fill->data + at + 4, size);
}

/* ---- where it is ---- */

static uint64_t bytes_of_all(const tdi_hdf5_rows *rows)
{
    uint64_t bytes = rows->chunks.grid.element;
    for (int i = 0; i < rows->chunks.grid.rank; i++)
        bytes *= rows->chunks.grid.extent[i];
    return bytes;
}

static td_status take_compact(tdi_hdf5_rows *rows, const tdi_hdf5_message *layout, tdi_error *error)
{
    uint64_t size = tdi_hdf5_number(layout->data + 2, 2);
    rows->layout = COMPACT;
    if (size > layout->size - 4 || size != bytes_of_all(rows))
        return refuse(rows, TD_BAD_FILE, "does not have the size of its shape: damaged", error);
    rows->compact = malloc(size ? size : 1);
    if (!rows->compact)
        return tdi_no_memory(error);
    memcpy(rows->compact, layout->data + 4, size);
    return TD_OK;
}

static td_status take_whole(tdi_hdf5_rows *rows, const tdi_hdf5_message *layout, tdi_error *error)
{
    rows->layout = WHOLE;
    rows->address = layout->size >= 18 ? tdi_hdf5_number(layout->data + 2, 8) : 0;
    uint64_t size = bytes_of_all(rows);
    if (layout->size < 18 || tdi_hdf5_number(layout->data + 10, 8) != size)
        return refuse(rows, TD_BAD_FILE, "does not have the size of its shape: damaged", error);
    bool inside = rows->address <= rows->file->size && size <= rows->file->size - rows->address;
    return inside || rows->address == TDI_HDF5_UNDEFINED
               ? TD_OK
               : refuse(rows, TD_BAD_FILE, "does not lie in the file: it is truncated or damaged", error);
}

/* Merges an axis that chunks do not cut into the axis before, so that copies along the last axis are longer. */
static void merge_axes(tdi_hdf5_rows *rows)
{
    tdi_hdf5_grid *box = &rows->box;
    *box = rows->chunks.grid;
    rows->row_extent = 1;
    for (int last; (last = box->rank - 1) > 0 && box->chunk[last] == box->extent[last]; box->rank--) {
        box->extent[last - 1] *= box->extent[last];
        box->chunk[last - 1] *= box->chunk[last];
        rows->row_extent *= last == 1 ? box->extent[last] : 1;
    }
}

static td_status take_chunks(tdi_hdf5_rows *rows, const tdi_hdf5_header *header, tdi_error *error)
{
    rows->layout = CHUNKED;
    if (rows->chunks.grid.rank == 0)
        return refuse(rows, TD_BAD_FILE, "is in chunks without having axes: damaged", error);
    if (bytes_of_all(rows) == 0)
        return TD_OK;
    TDI_TRY(tdi_hdf5_chunks_read(rows->file, rows->name, header, &rows->chunks, error));
    merge_axes(rows);
    uint64_t fit = CACHE / rows->chunks.bytes, written = (uint64_t)rows->chunks.list.count;
    rows->slot_count = fit < 1 || written < 1 ? 1 : fit < written ? fit : written;
    rows->slots = calloc(rows->slot_count, sizeof *rows->slots);
    return rows->slots ? TD_OK : tdi_no_memory(error);
}

static td_status look_at_layout(tdi_hdf5_rows *rows, const tdi_hdf5_header *header, tdi_error *error)
{
    const tdi_hdf5_message *layout = tdi_hdf5_header_find(header, TDI_HDF5_LAYOUT);
    if (!layout || layout->size < 4 || layout->shared)
        return refuse(rows, TD_BAD_FILE, "is no array, or a damaged one", error);
    unsigned version = layout->data[0], class = layout->data[1];
    if (version < 3 || version > 5)
        return refuse(rows, TD_UNSUPPORTED,
                      "is stored as before HDF5 1.6, or after 2.0; write it again by h5repack or h5py", error);
    if (class == 3 || tdi_hdf5_header_find(header, TDI_HDF5_EXTERNAL))
        return refuse(rows, TD_UNSUPPORTED, "lies in other files, which Tandem does not follow", error);
    return class == 0   ? take_compact(rows, layout, error)
           : class == 1 ? take_whole(rows, layout, error)
           : class == 2 ? take_chunks(rows, header, error)
                        : refuse(rows, TD_BAD_FILE, "is damaged", error);
}

/* ---- opening ---- */

static td_status look(tdi_hdf5_rows *rows, const tdi_hdf5_header *header, tdi_error *error)
{
    const tdi_hdf5_message *shape = tdi_hdf5_header_find(header, TDI_HDF5_SHAPE);
    if (!shape && tdi_hdf5_is_group(header))
        return refuse(rows, TD_BAD_FILE, "is a group, not an array: name an array in it, as GROUP/NAME", error);
    if (!shape)
        return refuse(rows, TD_BAD_FILE, "is no array, or a damaged one", error);
    TDI_TRY(look_at_type(rows, header, error));
    rows->chunks.grid.element = rows->type.size;
    TDI_TRY(read_extents(rows, shape, error));
    TDI_TRY(take_extents(rows, error));
    find_fill(rows, header);
    return look_at_layout(rows, header, error);
}

static td_status find_and_look(tdi_hdf5_rows *rows, tdi_error *error)
{
    uint64_t address;
    tdi_hdf5_header header;
    TDI_TRY(tdi_hdf5_find(rows->file, rows->name, &address, error));
    tdi_hdf5_begin(rows->file);
    td_status status = tdi_hdf5_header_read(rows->file, address, &header, error);
    if (status == TD_OK)
        status = look(rows, &header, error);
    tdi_hdf5_header_release(&header);
    return status;
}

td_status tdi_hdf5_rows_open(tdi_hdf5_file *file, const char *name, tdi_hdf5_rows **opened, tdi_hdf5_facts *facts,
                             tdi_error *error)
{
    tdi_hdf5_rows *rows = calloc(1, sizeof *rows);
    char *copy = strdup(name);
    if (!rows || !copy) {
        free(rows);
        free(copy);
        return tdi_no_memory(error);
    }
    rows->file = file;
    rows->name = copy;
    pthread_mutex_init(&rows->lock, NULL);
    td_status status = find_and_look(rows, error);
    if (status != TD_OK) {
        tdi_hdf5_rows_close(rows);
        return status;
    }
    *facts = rows->facts;
    *opened = rows;
    return TD_OK;
}

void tdi_hdf5_rows_close(tdi_hdf5_rows *rows)
{
    if (!rows)
        return;
    for (uint64_t i = 0; rows->slots && i < rows->slot_count; i++)
        free(rows->slots[i].bytes);
    free(rows->slots);
    free(rows->compact);
    tdi_hdf5_chunks_release(&rows->chunks);
    pthread_mutex_destroy(&rows->lock);
    free(rows->name);
    free(rows);
}

/* ---- copying out of chunks ---- */

/* The number of elements to copy along an axis, and the bytes from one to the next. */
typedef struct stride {
    uint64_t count, from, to;
} stride;

/* The elements of a chunk that lie in the rows to read. */
typedef struct overlap {
    int rank;
    uint64_t element;
    const unsigned char *fill; /* used for a chunk that was never written */
    stride axis[TD_MAX_RANK];
} overlap;

static void fill_run(const overlap *p, unsigned char *to, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + i * p->element, p->fill, p->element);
}

static void copy_overlap(const overlap *p, const stride *axis, int rank, const unsigned char *from, unsigned char *to)
{
    if (rank == 1 && from)
        memcpy(to, from, axis->count * p->element);
    else if (rank == 1)
        fill_run(p, to, axis->count);
    else
        for (uint64_t i = 0; i < axis->count; i++)
            copy_overlap(p, axis + 1, rank - 1, from ? from + i * axis->from : NULL, to + i * axis->to);
}

/* The overlap of the chunk at `place` with [begin, end) of the first axis; sets where it begins in the chunk and in
 * `to`. */
static overlap overlap_of(const tdi_hdf5_rows *rows, const uint64_t *place, uint64_t begin, uint64_t end,
                          uint64_t *from_at, uint64_t *to_at)
{
    const tdi_hdf5_grid *box = &rows->box;
    overlap p = {.rank = box->rank, .element = box->element, .fill = rows->fill};
    uint64_t from_step = box->element, to_step = box->element;
    *from_at = *to_at = 0;
    for (int i = box->rank - 1; i >= 0; i--) {
        uint64_t first = i ? 0 : begin, last = i ? box->extent[i] : end;
        uint64_t low = place[i] * box->chunk[i], high = last - low < box->chunk[i] ? last : low + box->chunk[i];
        uint64_t from = low < first ? first : low;
        p.axis[i] = (stride){high - from, from_step, to_step};
        *from_at += (from - low) * from_step;
        *to_at += (from - first) * to_step;
        from_step *= box->chunk[i];
        to_step *= last - first;
    }
    return p;
}

static slot *slot_of(tdi_hdf5_rows *rows, uint64_t number)
{
    return &rows->slots[number % rows->slot_count];
}

/* Brings a chunk into the cache. The lock is held on entry and exit, and released while the chunk is read. */
static td_status keep_chunk(tdi_hdf5_rows *rows, uint64_t number, const tdi_hdf5_chunk *chunk, tdi_error *error)
{
    unsigned char *bytes;
    slot *kept = slot_of(rows, number);
    pthread_mutex_unlock(&rows->lock);
    td_status status = tdi_hdf5_chunk_unpack(rows->file, &rows->chunks, chunk, &bytes, error);
    pthread_mutex_lock(&rows->lock);
    if (status != TD_OK)
        return status;
    free(kept->bytes);
    *kept = (slot){number, bytes};
    return TD_OK;
}

static td_status copy_chunk(tdi_hdf5_rows *rows, uint64_t number, const overlap *p, uint64_t from_at, unsigned char *to,
                            tdi_error *error)
{
    const tdi_hdf5_chunk *chunk = tdi_hdf5_chunks_find(&rows->chunks, number);
    if (!chunk) {
        copy_overlap(p, p->axis, p->rank, NULL, to);
        return TD_OK;
    }
    pthread_mutex_lock(&rows->lock);
    const slot *kept = slot_of(rows, number);
    bool here = kept->bytes && kept->number == number;
    td_status status = here ? TD_OK : keep_chunk(rows, number, chunk, error);
    if (status == TD_OK)
        copy_overlap(p, p->axis, p->rank, kept->bytes + from_at, to);
    pthread_mutex_unlock(&rows->lock);
    return status;
}

/* Reads elements [begin, end) along the first axis of `box`. */
static td_status read_chunks(tdi_hdf5_rows *rows, uint64_t begin, uint64_t end, unsigned char *to, tdi_error *error)
{
    const tdi_hdf5_grid *box = &rows->box;
    uint64_t abreast = 1, place[TD_MAX_RANK], from_at, to_at;
    for (int i = 1; i < box->rank; i++)
        abreast *= tdi_hdf5_chunks_along(box, i);
    for (uint64_t row = begin / box->chunk[0]; row * box->chunk[0] < end; row++)
        for (uint64_t beside = 0; beside < abreast; beside++) {
            place[0] = row;
            for (uint64_t i = (uint64_t)box->rank - 1, left = beside; i > 0; i--) {
                place[i] = left % tdi_hdf5_chunks_along(box, (int)i);
                left /= tdi_hdf5_chunks_along(box, (int)i);
            }
            overlap p = overlap_of(rows, place, begin, end, &from_at, &to_at);
            TDI_TRY(copy_chunk(rows, row * abreast + beside, &p, from_at, to + to_at, error));
        }
    return TD_OK;
}

/* ---- reading ---- */

/* Reads rows in their stored type. */
static td_status read_stored(tdi_hdf5_rows *rows, uint64_t first, uint64_t count, unsigned char *to, tdi_error *error)
{
    uint64_t row = rows->row_elements * rows->type.size;
    if (count * row == 0)
        return TD_OK;
    if (rows->layout == CHUNKED)
        return read_chunks(rows, first * rows->row_extent, (first + count) * rows->row_extent, to, error);
    if (rows->layout == COMPACT)
        memcpy(to, rows->compact + first * row, count * row);
    else if (rows->address != TDI_HDF5_UNDEFINED)
        return tdi_hdf5_bytes(rows->file, rows->address + first * row, count * row, to, error);
    else
        fill_run(&(overlap){.element = rows->type.size, .fill = rows->fill}, to, count * row / rows->type.size);
    return TD_OK;
}

td_status tdi_hdf5_rows_read(tdi_hdf5_rows *rows, int64_t first, int64_t count, void *to, tdi_error *error)
{
    /* Stored numbers are never larger than widened ones: they are read to the end of `to` and widened to its begin. */
    uint64_t elements = rows->row_elements * (uint64_t)count, stored = elements * rows->type.size;
    unsigned char *from = (unsigned char *)to + elements * td_dtype_size(rows->facts.dtype) - stored;
    td_status status = read_stored(rows, (uint64_t)first, (uint64_t)count, from, error);
    if (status == TD_OK)
        tdi_numbers_widen(&rows->type, from, to, elements);
    else
        tdi_error_prefix(error, "rows %" PRId64 " to %" PRId64 " of \"%s\"", first, first + count - 1, rows->name);
    return status;
}
