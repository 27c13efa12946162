/* array_npy.h - a parsed .npy file as an array of samples. */
#ifndef TDI_DATA_ARRAY_NPY_H
#define TDI_DATA_ARRAY_NPY_H

#include "data/table.h"
#include "files/npy.h"

/* `bytes`, the whole file, is adopted: array->owned, or freed on failure. `what` names the array in messages. */
td_status tdi_array_from_npy(const tdi_npy *npy, void *bytes, const char *what, tdi_array *array, tdi_error *error);

#endif
