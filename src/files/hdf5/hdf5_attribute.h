/* hdf5_attribute.h - reads the strings in an attribute of an HDF5 object: Keras keeps a legacy model's JSON, and the
 * names and order of its weights, in attributes. */
#ifndef TDI_FILES_HDF5_HDF5_ATTRIBUTE_H
#define TDI_FILES_HDF5_HDF5_ATTRIBUTE_H

#include "files/hdf5/hdf5_file.h"

typedef struct tdi_hdf5_strings {
    tdi_vec(char *) list; /* owned, each with a 0 behind it */
} tdi_hdf5_strings;

/* Reads a string, or an array of strings, of fixed or variable length. `path` is the object's; "": the root.
 * TD_NOT_FOUND without such an attribute; TD_UNSUPPORTED when it holds something else. The caller releases *strings
 * even after a failure. */
td_status tdi_hdf5_strings_read(tdi_hdf5_file *file, const char *path, const char *attribute, tdi_hdf5_strings *strings,
                                tdi_error *error);
void tdi_hdf5_strings_release(tdi_hdf5_strings *strings);
/* True when the object has the attribute, whatever it holds. */
bool tdi_hdf5_has_attribute(tdi_hdf5_file *file, const char *path, const char *attribute);

#endif
