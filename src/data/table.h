/* table.h - a source whose columns lie in memory, each one array [samples, shape...] in its own dtype. */
#ifndef TDI_DATA_TABLE_H
#define TDI_DATA_TABLE_H

#include "data/source.h"

typedef struct tdi_table {
    tdi_source source;
    void *owned[TDI_MAX_COLUMNS]; /* freed with the table; NULL: borrowed */
} tdi_table;

/* An array [samples, shape...] to become a column. */
typedef struct tdi_array {
    td_dtype dtype;
    int64_t samples;
    td_shape shape; /* per sample */
    const void *values;
    void *owned; /* what free() takes; NULL: borrowed */
} tdi_array;

/* An array's size in bytes; false when it overflows or an extent is negative. */
bool tdi_array_size(const tdi_array *array, size_t *size);

/* An empty table named `name`. Released by source.release. */
td_status tdi_table_create(const char *name, tdi_table **table, tdi_error *error);

/* Appends an input, or once all inputs are there a target. The table adopts `array->owned`, even when this fails: an
 * array without samples or elements, or with other samples than the columns before it. */
td_status tdi_table_add(tdi_table *table, bool target, const char *name, float scale, const tdi_array *array,
                        tdi_error *error);

#endif
