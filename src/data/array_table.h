/* array_table.h - a source whose columns are arrays [samples, shape...], each in its own dtype: in memory, or in a
 * store when memory does not hold them, from which rows are read when they are gathered. */
#ifndef TDI_DATA_ARRAY_TABLE_H
#define TDI_DATA_ARRAY_TABLE_H

#include "data/sample_reader.h"
#include "files/store.h"
#include "files/stored_numbers.h"

/* The place of an array in a store, in row-major order. */
typedef struct tdi_stored {
    tdi_store *store; /* NULL: the array is in memory */
    int64_t begin;    /* byte offset of the first number */
    tdi_numbers numbers;
} tdi_stored;

/* Reads numbers [first, first + count), widened to their dtype. */
td_status tdi_stored_read(const tdi_stored *stored, int64_t first, int64_t count, void *to, tdi_error *error);

/* An array [samples, shape...] that is to become a column. */
typedef struct tdi_array {
    td_dtype dtype;
    int64_t samples;
    td_shape shape;     /* per sample */
    const void *values; /* NULL: the array is in `stored` */
    void *owned;        /* passed to free(); NULL: the values are borrowed */
    tdi_stored stored;
} tdi_array;

typedef struct tdi_table {
    tdi_sample_reader reader;
    void *owned[TDI_MAX_COLUMNS]; /* freed with the table; NULL: the values are borrowed or stored */
    tdi_stored stored[TDI_MAX_COLUMNS];
} tdi_table;

/* Sets *size to an array's size in bytes. False when it overflows or an extent is negative. */
bool tdi_array_size(const tdi_array *array, size_t *size);

/* Frees what the array owns. */
void tdi_array_release(tdi_array *array);

/* Makes an empty table with this name. Its source's release frees it. */
td_status tdi_table_create(const char *name, tdi_table **table, tdi_error *error);

/* Appends a column, behind those of its role and of the roles before. Adopts what the array owns, even on failure.
 * Fails for an array without samples or elements, or whose number of samples differs from the columns before it. */
td_status tdi_table_add(tdi_table *table, tdi_column_role role, const char *name, float scale, tdi_array *array,
                        tdi_error *error);

#endif
