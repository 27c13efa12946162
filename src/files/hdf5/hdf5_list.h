/* hdf5_list.h - the arrays that an HDF5 file holds, in groups too. */
#ifndef TDI_FILES_HDF5_HDF5_LIST_H
#define TDI_FILES_HDF5_HDF5_LIST_H

#include "files/hdf5/hdf5_file.h"

typedef enum tdi_hdf5_kind { TDI_HDF5_ARRAY, TDI_HDF5_GROUP, TDI_HDF5_NEITHER } tdi_hdf5_kind;

typedef struct tdi_hdf5_listed {
    char *path; /* "group/name" */
    uint64_t address;
    int depth; /* number of groups above it but for the root */
    tdi_hdf5_kind kind;
} tdi_hdf5_listed;

typedef struct tdi_hdf5_list {
    tdi_vec(tdi_hdf5_listed) links;
    bool more; /* there may be others: links are too many, too deep or damaged */
} tdi_hdf5_list;

/* Lists the arrays, in the order of their paths. Soft links are left out, because what they lead to is listed by its
 * own name; links to other files are left out as well. An object that cannot be read is listed as an array. Fails only
 * with TD_NO_MEMORY. The caller releases the list even after a failure. */
td_status tdi_hdf5_list_arrays(tdi_hdf5_file *file, tdi_hdf5_list *list, tdi_error *error);
void tdi_hdf5_list_release(tdi_hdf5_list *list); /* accepts a zeroed one */

#endif
