/* arrays.h - arrays in the caller's memory as a source. */
#ifndef TDI_DATA_SOURCE_ARRAYS_H
#define TDI_DATA_SOURCE_ARRAYS_H

#include "data/source.h"

/* The arrays are borrowed until the source is released. */
td_status tdi_source_arrays(const td_arrays_args *args, tdi_source **source, tdi_error *error);

#endif
