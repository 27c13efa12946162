/* csv_header.h - finds out which CSV files begin with a line of column names, and which with their first row.
 *
 * The first line alone does not say it: pandas names columns 0, 1, 2, and a first row may hold text. So the line is
 * held against the caller's word, the columns that features name, the line below it, and the other files. */
#ifndef TDI_DATA_SOURCE_CSV_HEADER_H
#define TDI_DATA_SOURCE_CSV_HEADER_H

#include <tandem/data.h>

#include "base/text.h"
#include "base/vec.h"
#include "data/file_list.h"

typedef struct tdi_csv_header {
    char *path;
    char **names; /* [count] the file's columns; "0", "1", ... where no file names them */
    int count;
    bool is_there; /* the file's first line holds the names */
} tdi_csv_header;

typedef tdi_vec(tdi_csv_header) tdi_csv_headers;

typedef struct tdi_csv_header_args {
    const tdi_paths *paths;
    const char *features; /* and the weights' names; NULL: none are given */
    td_choice header;     /* what the caller says of all files */
    bool skip;            /* lines that cannot be parsed are passed over */
} tdi_csv_header_args;

/* Adds the header of each file. Blanks stand for commas in names, an empty name is "Unnamed: 0" (1, ...), and a second
 * "a" is "a.1", as in pandas. `note` receives a sentence where the first line might have been understood otherwise.
 * TD_INVALID_ARGUMENT when nothing tells whether there is a header. */
td_status tdi_csv_headers_find(const tdi_csv_header_args *args, tdi_csv_headers *headers, tdi_text *note,
                               tdi_error *error);
void tdi_csv_headers_release(tdi_csv_headers *headers);

/* True when a cell stands for a missing value: empty, or one of the words that pandas takes for that. */
bool tdi_csv_is_missing(const char *cell);

#endif
