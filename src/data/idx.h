/* idx.h - one IDX file. */
#ifndef TDI_DATA_IDX_H
#define TDI_DATA_IDX_H

#include "data/table.h"

/* Reads a whole IDX file, gzipped or not. The caller frees array->owned; nothing is left to free on failure. */
td_status tdi_idx_read(const char *path, tdi_array *array, tdi_error *error);

#endif
