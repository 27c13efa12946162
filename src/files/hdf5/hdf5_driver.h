/* hdf5_driver.h - keeps what libhdf5 writes of a file (groups, headers, numbers) in memory, by pages. Arrays for which
 * libhdf5 only reserves space take no memory. */
#ifndef TDI_FILES_HDF5_HDF5_DRIVER_H
#define TDI_FILES_HDF5_HDF5_DRIVER_H

#include <hdf5.h>
#include <stdint.h>

#include "base/vec.h"

typedef struct tdi_hdf5_page {
    uint64_t number; /* offset of its first byte / page size */
    unsigned char bytes[4096];
} tdi_hdf5_page;

typedef struct tdi_hdf5_pages {
    tdi_vec(tdi_hdf5_page *) list; /* the pages that were written to, sorted by number */
    hid_t registered;              /* the driver, registered while the file is open */
    bool ended;                    /* further writes are dropped, so that closing cannot fail */
} tdi_hdf5_pages;

/* Begins a file, whose pages live until it is closed; a negative id when out of memory. Like every call of libhdf5 it
 * is made under the lock of hdf5_write.c. */
hid_t tdi_hdf5_create_in_pages(tdi_hdf5_pages **pages);
void tdi_hdf5_close_in_pages(hid_t id, tdi_hdf5_pages *pages);
/* Copies bytes [at, at + size); those never written are 0. */
void tdi_hdf5_pages_read(const tdi_hdf5_pages *pages, uint64_t at, void *to, size_t size);

#endif
