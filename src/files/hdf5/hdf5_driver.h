/* hdf5_driver.h - what libhdf5 writes of a file, kept in memory by pages: groups, headers, numbers. Arrays for which it
 * only sets space aside take none. */
#ifndef TDI_FILES_HDF5_HDF5_DRIVER_H
#define TDI_FILES_HDF5_HDF5_DRIVER_H

#include <hdf5.h>
#include <stdint.h>

#include "base/vec.h"

typedef struct tdi_hdf5_page {
    uint64_t number; /* its first byte's offset / the size of a page */
    unsigned char bytes[4096];
} tdi_hdf5_page;

typedef struct tdi_hdf5_pages {
    tdi_vec(tdi_hdf5_page *) list; /* those written to, by number */
    hid_t registered;              /* the driver, for as long as the file is open */
    bool ended;                    /* what is written from now on is dropped, so that closing cannot fail */
} tdi_hdf5_pages;

/* Begins a file, whose pages live until it is closed; a negative id when memory is out. Under hdf5_write.c's lock, as
 * all calls of libhdf5. */
hid_t tdi_hdf5_create_in_pages(tdi_hdf5_pages **pages);
void tdi_hdf5_close_in_pages(hid_t id, tdi_hdf5_pages *pages);
/* Bytes [at, at + size): 0 where nothing was written. */
void tdi_hdf5_pages_read(const tdi_hdf5_pages *pages, uint64_t at, void *to, size_t size);

#endif
