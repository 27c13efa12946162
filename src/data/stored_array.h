/* stored_array.h - makes an array of samples from numbers in a store: in memory when that holds it, else in place. */
#ifndef TDI_DATA_STORED_ARRAY_H
#define TDI_DATA_STORED_ARRAY_H

#include "data/array_table.h"
#include "files/npy_file.h"

/* Fills in `array`, whose samples and shape are set. Adopts the store of `stored`, even on failure. */
td_status tdi_array_from_store(const tdi_stored *stored, tdi_array *array, tdi_error *error);

/* Makes an array of a .npy file, which `what` names in messages. Adopts `store`, even on failure. Numbers in
 * column-major order are first rewritten row by row in another store. */
td_status tdi_array_from_npy(const tdi_npy *npy, tdi_store *store, const char *what, tdi_array *array,
                             tdi_error *error);

#endif
