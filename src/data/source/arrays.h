/* arrays.h - a source over arrays in the user's memory. */
#ifndef TDI_DATA_SOURCE_ARRAYS_H
#define TDI_DATA_SOURCE_ARRAYS_H

#include "data/source.h"

/* Makes a source of the arrays, which are borrowed until it is released. */
td_status tdi_source_arrays(const td_arrays_args *args, tdi_source **source, tdi_error *error);

#endif
