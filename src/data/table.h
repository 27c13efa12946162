/* table.h - a source whose columns are arrays [samples, shape...], each in its own dtype: in memory, or, where memory
 * does not hold it, in a store, from where its rows are read as they are needed. */
#ifndef TDI_DATA_TABLE_H
#define TDI_DATA_TABLE_H

#include "data/decoded_items.h"
#include "files/numbers.h"
#include "files/store.h"

/* Where an array lies in a store, row by row. */
typedef struct tdi_stored {
    tdi_store *store; /* NULL: nowhere, it is in memory */
    int64_t begin;    /* of the first number */
    tdi_numbers numbers;
} tdi_stored;

/* Numbers [first, first + count), as their dtype. */
td_status tdi_stored_read(const tdi_stored *stored, int64_t first, int64_t count, void *to, tdi_error *error);

/* An array [samples, shape...] to become a column. */
typedef struct tdi_array {
    td_dtype dtype;
    int64_t samples;
    td_shape shape;     /* per sample */
    const void *values; /* NULL: stored */
    void *owned;        /* what free() takes; NULL: borrowed */
    tdi_stored stored;
} tdi_array;

typedef struct tdi_table {
    tdi_items items;
    void *owned[TDI_MAX_COLUMNS]; /* freed with the table; NULL: borrowed, or stored */
    tdi_stored stored[TDI_MAX_COLUMNS];
} tdi_table;

/* An array's size in bytes; false when it overflows or an extent is negative. */
bool tdi_array_size(const tdi_array *array, size_t *size);

/* Frees what the array owns. */
void tdi_array_release(tdi_array *array);

/* An empty table named `name`. Released by its source's release. */
td_status tdi_table_create(const char *name, tdi_table **table, tdi_error *error);

/* Appends an input, or once all inputs are there a target. The table adopts what the array owns, even when this fails:
 * an array without samples or elements, or with other samples than the columns before it. */
td_status tdi_table_add(tdi_table *table, bool target, const char *name, float scale, tdi_array *array,
                        tdi_error *error);

#endif
