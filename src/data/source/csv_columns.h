/* csv_columns.h - the columns of a CSV that become inputs and targets: which ones, in which form, and their cells. */
#ifndef TDI_DATA_SOURCE_CSV_COLUMNS_H
#define TDI_DATA_SOURCE_CSV_COLUMNS_H

#include <jansson.h>

#include "base/text.h"
#include "base/vec.h"
#include "data/source.h"
#include "data/source/csv_header.h"
#include "files/csv_file.h"

typedef enum tdi_cells { TDI_CELLS_NUMBERS = 0, TDI_CELLS_CODES, TDI_CELLS_ONE_HOT } tdi_cells;

typedef struct tdi_csv_column {
    char *name;
    tdi_cells cells;
    int group; /* number of the input, target or weight that it belongs to, in tdi_csv_columns.groups */
    int at;    /* number of its cell in a record of the file that is read */
    tdi_vec(char *) categories; /* in the order of their codes */
    bool target;                /* it belongs to a target */
    bool known;                 /* a recipe gives categories and mean, which then do not change */
    double mean;                /* of the cells that are not missing */
    int64_t count;              /* number of those cells */
} tdi_csv_column;

/* An input, a target or weights: one or more columns side by side. */
typedef struct tdi_csv_group {
    char name[16]; /* "x", "y", "w", "x0", ... */
    int64_t width; /* numbers per row; known once the categories are */
} tdi_csv_group;

typedef struct tdi_csv_columns {
    const tdi_csv_header *header; /* the names that are chosen from; borrowed */
    int n_x, n_y, n_groups;       /* inputs come before targets, and these before weights */
    tdi_csv_group groups[TDI_MAX_COLUMNS];
    tdi_vec(tdi_csv_column) list;
} tdi_csv_columns;

typedef struct tdi_csv_choice {
    const char *features; /* "x=TEMP,PRES,wind:one-hot,y=pm2.5"; NULL: y is the last column that is not in `weights`, x
                           * all others */
    const char *weights;  /* "w" or "w0,w1"; NULL: none */
    bool targets;         /* false: there is no y */
    int64_t wanted;       /* number of columns that the model's only input takes; 0: not known */
} tdi_csv_choice;

/* Chooses columns from columns->header. A word without "=" belongs to the name before it. Without x the inputs are all
 * columns that are in neither y nor the weights, except for an unnamed first column, as of pandas's index, where it is
 * one more than the model takes. `note` receives a sentence that names the columns which are not used. */
td_status tdi_csv_choose(tdi_csv_columns *columns, const tdi_csv_choice *choice, tdi_text *note, tdi_error *error);

/* Finds the columns in a file. TD_BAD_FILE when it has others. */
td_status tdi_csv_place(tdi_csv_columns *columns, const tdi_csv_header *header, tdi_error *error);

/* Sets *value to a cell's number (of True and False 1 and 0) or its category's code; NaN when it is missing. */
td_status tdi_csv_cell(tdi_csv *csv, tdi_csv_column *column, const char *cell, float *value, tdi_error *error);

/* Sorts the categories that were found, as numbers if all of them are. (*codes)[old] is the new code of each; the
 * caller frees it. *codes is NULL when nothing changes. */
td_status tdi_csv_sort(tdi_csv_column *column, float **codes, tdi_error *error);

/* The column's entry of the recipe: {"categories": [...]} or {"mean": 98.6}; and the way back. */
json_t *tdi_csv_column_json(const tdi_csv_column *column);
td_status tdi_csv_column_restore(tdi_csv_column *column, const json_t *json, tdi_error *error);

void tdi_csv_columns_release(tdi_csv_columns *columns);

#endif
