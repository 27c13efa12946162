/* hdf5_numbers.h - the types of numbers that HDF5 arrays hold, and what is read of them. */
#ifndef TDI_FILES_HDF5_NUMBERS_H
#define TDI_FILES_HDF5_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <tandem/tensor.h>

typedef struct tdi_hdf5_type {
    enum { TDI_HDF5_UNSIGNED, TDI_HDF5_SIGNED, TDI_HDF5_FLOAT } kind;
    unsigned size; /* bytes: 1, 2, 4, 8 */
    bool big_endian;
    td_dtype dtype; /* the smallest of Tandem's that holds it, at least as large */
} tdi_hdf5_type;

/* A datatype message: integers of 8 to 64 bits, IEEE floats of 16 to 64 bits, booleans as h5py has them (an enumeration
 * of bytes). False: another. */
bool tdi_hdf5_type_read(const unsigned char *message, uint64_t size, tdi_hdf5_type *type);
/* `count` stored numbers as type->dtype; `from` may be the end of `to`'s memory. */
void tdi_hdf5_widen(const tdi_hdf5_type *type, unsigned char *from, void *to, uint64_t count);

#endif
