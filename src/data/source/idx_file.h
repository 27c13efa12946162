/* idx_file.h - one IDX file. */
#ifndef TDI_DATA_SOURCE_IDX_FILE_H
#define TDI_DATA_SOURCE_IDX_FILE_H

#include "data/table.h"

/* The array of an IDX file, gzipped or not, which the caller releases; nothing is left to release on failure. */
td_status tdi_idx_read(const char *path, tdi_array *array, tdi_error *error);

#endif
