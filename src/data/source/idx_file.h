/* idx_file.h - reads one IDX file. */
#ifndef TDI_DATA_SOURCE_IDX_FILE_H
#define TDI_DATA_SOURCE_IDX_FILE_H

#include "data/array_table.h"

/* Reads the array of an IDX file, gzipped or not. The caller releases it; on failure there is nothing to release. */
td_status tdi_idx_read(const char *path, tdi_array *array, tdi_error *error);

#endif
