/* foreign_file.h - names a file that is given as a model or as weights and is neither: for the sentence of the refusal.
 */
#ifndef TDI_FORMATS_FOREIGN_FILE_H
#define TDI_FORMATS_FOREIGN_FILE_H

#include <stdbool.h>

#include "files/zip.h"

/* Fails with TD_BAD_FILE, or TD_UNSUPPORTED for another program's model, and says what the file is, by its content, and
 * what to do; TD_OK when it may be a zip archive or an HDF5 file. TD_NOT_FOUND and TD_IO when it cannot be read. */
td_status tdi_foreign_check(const char *path, tdi_error *error);
/* The same of a zip archive without the member config.json. */
td_status tdi_foreign_archive(const tdi_zip *zip, const char *path, tdi_error *error);
/* True when the file begins as HDF5 does. */
bool tdi_is_hdf5(const char *path);

#endif
