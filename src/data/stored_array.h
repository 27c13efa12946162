/* stored_array.h - an array of samples out of a store. */
#ifndef TDI_DATA_STORED_ARRAY_H
#define TDI_DATA_STORED_ARRAY_H

#include "data/table.h"
#include "files/npy.h"

/* Makes `array`, whose samples and shape are set, of `stored`, whose store it adopts, even on failure: in memory when
 * it holds it, else where it lies. */
td_status tdi_array_from_store(const tdi_stored *stored, tdi_array *array, tdi_error *error);

/* The same of a .npy file, which `what` names in messages. Numbers that lie column by column are put in another store
 * row by row. */
td_status tdi_array_from_npy(const tdi_npy *npy, tdi_store *store, const char *what, tdi_array *array,
                             tdi_error *error);

#endif
