/* hdf5_lock.h - libhdf5 is entered by one thread at a time: Debian's is not made for more. */
#ifndef TDI_FILES_HDF5_LOCK_H
#define TDI_FILES_HDF5_LOCK_H

#include <hdf5.h>

/* The host program's way of printing HDF5's errors, kept while ours are silenced. */
typedef struct tdi_hdf5_silence {
    H5E_auto2_t print;
    void *data;
} tdi_hdf5_silence;

tdi_hdf5_silence tdi_hdf5_enter(void);
void tdi_hdf5_leave(tdi_hdf5_silence old);

#endif
