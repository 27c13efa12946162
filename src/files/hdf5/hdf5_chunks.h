/* hdf5_chunks.h - finds the chunks of an array in an HDF5 file, and unpacks a chunk. */
#ifndef TDI_FILES_HDF5_HDF5_CHUNKS_H
#define TDI_FILES_HDF5_HDF5_CHUNKS_H

#include <tandem/tensor.h>

#include "files/hdf5/hdf5_file.h"

typedef struct tdi_hdf5_grid {
    int rank;
    uint64_t element;             /* bytes of an element */
    uint64_t extent[TD_MAX_RANK]; /* the array's */
    uint64_t most[TD_MAX_RANK];   /* extents to which the array may grow; UINT64_MAX: without limit */
    uint64_t chunk[TD_MAX_RANK];  /* extents of a chunk; chunks at the array's ends are no smaller */
} tdi_hdf5_grid;

static inline uint64_t tdi_hdf5_chunks_along(const tdi_hdf5_grid *grid, int axis)
{
    return grid->extent[axis] / grid->chunk[axis] + (grid->extent[axis] % grid->chunk[axis] != 0);
}

typedef struct tdi_hdf5_chunk {
    uint64_t number; /* position in the grid of chunks, row-major */
    uint64_t address, size;
    uint32_t left_out; /* bits: filters that were not applied to the chunk */
} tdi_hdf5_chunk;

typedef struct tdi_hdf5_filters {
    int count;
    unsigned id[16], value[16]; /* the filters; `value` is shuffle's element size in bytes */
    bool whole_only;            /* chunks that reach beyond the array are not filtered */
} tdi_hdf5_filters;

typedef struct tdi_hdf5_chunks {
    tdi_hdf5_grid grid;
    tdi_hdf5_filters filters;
    uint64_t bytes;               /* size of an unpacked chunk */
    tdi_vec(tdi_hdf5_chunk) list; /* the chunks that were written, sorted by number */
} tdi_hdf5_chunks;

/* Reads the list of chunks by the object's messages. chunks->grid is set before, without its `chunk`. The caller
 * releases *chunks even after a failure. `name` is the array's, for messages. */
td_status tdi_hdf5_chunks_read(tdi_hdf5_file *file, const char *name, const tdi_hdf5_header *header,
                               tdi_hdf5_chunks *chunks, tdi_error *error);
void tdi_hdf5_chunks_release(tdi_hdf5_chunks *chunks);

/* The chunk of that number; NULL: it was never written. */
const tdi_hdf5_chunk *tdi_hdf5_chunks_find(const tdi_hdf5_chunks *chunks, uint64_t number);

/* Reads and unpacks a chunk into chunks->bytes bytes, which the caller frees with free(). Several threads may call it.
 */
td_status tdi_hdf5_chunk_unpack(const tdi_hdf5_file *file, const tdi_hdf5_chunks *chunks, const tdi_hdf5_chunk *chunk,
                                unsigned char **unpacked, tdi_error *error);

/* ---- filters, in hdf5_filters.c ---- */

/* Parses the message with the filters; a NULL message means none. TD_UNSUPPORTED for an unknown filter. */
td_status tdi_hdf5_filters_read(const tdi_hdf5_file *file, const char *name, const tdi_hdf5_message *message,
                                tdi_hdf5_filters *filters, tdi_error *error);
/* Undoes the filters, without those left out, and returns exactly `size` bytes, which the caller frees. Adopts
 * `packed`. On failure returns NULL and sets *reason. */
unsigned char *tdi_hdf5_unfilter(const tdi_hdf5_filters *filters, uint32_t left_out, unsigned char *packed,
                                 uint64_t packed_size, uint64_t size, const char **reason);

#endif
