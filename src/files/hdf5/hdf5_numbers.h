/* hdf5_numbers.h - the types of numbers in HDF5 arrays. */
#ifndef TDI_FILES_HDF5_HDF5_NUMBERS_H
#define TDI_FILES_HDF5_HDF5_NUMBERS_H

#include "files/stored_numbers.h"

/* Parses a datatype message: integers of 8 to 64 bits, IEEE floats of 16 to 64 bits, and booleans as h5py writes them
 * (an enumeration of bytes). False for any other type. */
bool tdi_hdf5_numbers_read(const unsigned char *message, uint64_t size, tdi_numbers *numbers);

#endif
