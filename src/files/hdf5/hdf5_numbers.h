/* hdf5_numbers.h - the types of numbers that HDF5 arrays hold. */
#ifndef TDI_FILES_HDF5_HDF5_NUMBERS_H
#define TDI_FILES_HDF5_HDF5_NUMBERS_H

#include "files/stored_numbers.h"

/* A datatype message: integers of 8 to 64 bits, IEEE floats of 16 to 64 bits, booleans as h5py has them (an enumeration
 * of bytes). False: another. */
bool tdi_hdf5_numbers_read(const unsigned char *message, uint64_t size, tdi_numbers *numbers);

#endif
