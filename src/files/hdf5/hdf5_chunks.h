/* hdf5_chunks.h - where the chunks of an array in an HDF5 file are, and unpacking one. */
#ifndef TDI_FILES_HDF5_HDF5_CHUNKS_H
#define TDI_FILES_HDF5_HDF5_CHUNKS_H

#include <tandem/tensor.h>

#include "files/hdf5/hdf5_file.h"

typedef struct tdi_hdf5_grid {
    int rank;
    uint64_t element;             /* bytes */
    uint64_t extent[TD_MAX_RANK]; /* of the array */
    uint64_t most[TD_MAX_RANK];   /* to which it may grow; UINT64_MAX: without limit */
    uint64_t chunk[TD_MAX_RANK];  /* of one chunk; those at the ends are as large */
} tdi_hdf5_grid;

static inline uint64_t tdi_hdf5_chunks_along(const tdi_hdf5_grid *grid, int axis)
{
    return grid->extent[axis] / grid->chunk[axis] + (grid->extent[axis] % grid->chunk[axis] != 0);
}

typedef struct tdi_hdf5_chunk {
    uint64_t number; /* counted along the last axis first */
    uint64_t address, size;
    uint32_t left_out; /* a bit for each filter that the chunk did without */
} tdi_hdf5_chunk;

typedef struct tdi_hdf5_filters {
    int count;
    unsigned id[16], value[16]; /* the value: shuffle's bytes of an element */
    bool whole_only;            /* chunks that reach beyond the array are stored as they are */
} tdi_hdf5_filters;

typedef struct tdi_hdf5_chunks {
    tdi_hdf5_grid grid;
    tdi_hdf5_filters filters;
    uint64_t bytes;               /* of an unpacked chunk */
    tdi_vec(tdi_hdf5_chunk) list; /* those that were written, by number */
} tdi_hdf5_chunks;

/* Reads where the chunks are, by the object's messages; chunks->grid but for its chunk is set. To be released even
 * after a failure. `name` is the array's, for sentences. */
td_status tdi_hdf5_chunks_read(tdi_hdf5_file *file, const char *name, const tdi_hdf5_header *header,
                               tdi_hdf5_chunks *chunks, tdi_error *error);
void tdi_hdf5_chunks_release(tdi_hdf5_chunks *chunks);

/* NULL: it was never written. */
const tdi_hdf5_chunk *tdi_hdf5_chunks_find(const tdi_hdf5_chunks *chunks, uint64_t number);

/* Reads and unpacks a chunk into chunks->bytes of memory that the caller frees with free(). May be called by several
 * threads at once. */
td_status tdi_hdf5_chunk_unpack(const tdi_hdf5_file *file, const tdi_hdf5_chunks *chunks, const tdi_hdf5_chunk *chunk,
                                unsigned char **unpacked, tdi_error *error);

/* ---- filters, in hdf5_filters.c ---- */

/* What the message says; TD_UNSUPPORTED for filters that are not known. NULL: there are none. */
td_status tdi_hdf5_filters_read(const tdi_hdf5_file *file, const char *name, const tdi_hdf5_message *message,
                                tdi_hdf5_filters *filters, tdi_error *error);
/* Undoes the filters but those left out: `packed`, which is freed or becomes the answer, to exactly `size` bytes. NULL
 * and *reason when that cannot be. */
unsigned char *tdi_hdf5_unfilter(const tdi_hdf5_filters *filters, uint32_t left_out, unsigned char *packed,
                                 uint64_t packed_size, uint64_t size, const char **reason);

#endif
