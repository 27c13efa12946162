/* csv_columns.h - the columns of a CSV that data is made of: which, as what, and what their cells say. */
#ifndef TDI_DATA_SOURCE_CSV_COLUMNS_H
#define TDI_DATA_SOURCE_CSV_COLUMNS_H

#include <jansson.h>

#include "base/vec.h"
#include "data/source.h"
#include "files/csv.h"

typedef enum tdi_cells { TDI_CELLS_NUMBERS = 0, TDI_CELLS_CODES, TDI_CELLS_ONE_HOT } tdi_cells;

typedef struct tdi_csv_column {
    char *name;
    tdi_cells cells;
    int group;                  /* of tdi_csv_columns: which input or target it is part of */
    int at;                     /* which cell of a record */
    tdi_vec(char *) categories; /* in the order of their codes */
    bool known;                 /* categories and mean are a recipe's: they do not change */
    double mean;                /* of the cells that are there */
    int64_t count;              /* of these */
} tdi_csv_column;

/* An input or a target: some columns side by side. */
typedef struct tdi_csv_group {
    char name[16]; /* "x", "y", "x0", ... */
    int64_t width; /* numbers in a row: known once categories are */
} tdi_csv_group;

typedef struct tdi_csv_columns {
    char *path;   /* of the file whose header was read, for messages */
    char **names; /* [n_names] of the file's columns */
    int n_names;
    int n_x, n_groups; /* inputs stand before targets */
    tdi_csv_group groups[TDI_MAX_COLUMNS];
    tdi_vec(tdi_csv_column) list;
} tdi_csv_columns;

/* The names in the first record: its cells, commas as blanks, or when all of them are numbers, and it is data, "0",
 * "1", ... */
td_status tdi_csv_header(const tdi_csv *csv, const tdi_csv_record *first, const char *path, tdi_csv_columns *columns,
                         bool *is_data, tdi_error *error);

/* `features`: "x=TEMP,PRES,wind:one-hot,y=pm2.5"; a word without "=" belongs to the name before it. Without x it is all
 * columns that are not in y; without features y is the last column. Without `targets` y is left out. */
td_status tdi_csv_choose(tdi_csv_columns *columns, const char *features, bool targets, tdi_error *error);

/* A cell as a number, or a category's code; NaN where it is missing: empty, NA, N/A, NaN or null. */
td_status tdi_csv_cell(const tdi_csv *csv, tdi_csv_column *column, const char *cell, float *value, tdi_error *error);

/* Sorts the categories that were met; `*codes`, which the caller frees, says what becomes of each code. NULL: they stay
 * as they are. */
td_status tdi_csv_sort(tdi_csv_column *column, float **codes, tdi_error *error);

/* What a column was found to hold: {"categories": [...]} or {"mean": 98.6}. */
json_t *tdi_csv_column_json(const tdi_csv_column *column);
td_status tdi_csv_column_restore(tdi_csv_column *column, const json_t *json, tdi_error *error);

void tdi_csv_columns_release(tdi_csv_columns *columns);

#endif
