/* csv_file.h - comma-separated values (RFC 4180), plain or gzipped: one record after the other. */
#ifndef TDI_FILES_CSV_FILE_H
#define TDI_FILES_CSV_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_csv tdi_csv;

/* Cells without the quotes or blanks around them; borrowed until the next record is read. */
typedef struct tdi_csv_record {
    int count;
    char *const *cells;
    int64_t line;   /* of the file, from 1: where it begins */
    int64_t offset; /* of its first byte in the (unpacked) file */
} tdi_csv_record;

/* Cells are set apart by commas, semicolons or tabs: whichever the first line has most of. */
td_status tdi_csv_open(const char *path, tdi_csv **csv, tdi_error *error);
/* The next record; `*end`, with no record, behind the last. TD_BAD_FILE names file, line and offset, and the rest of
 * that line is behind the reader then; behind the break of a gzipped file there is the end. Empty lines are no
 * records. */
td_status tdi_csv_next(tdi_csv *csv, tdi_csv_record *record, bool *end, tdi_error *error);
void tdi_csv_close(tdi_csv *csv); /* NULL is accepted */

/* A cell as a decimal number, whatever the program's locale: false when it is none, or not finite. */
bool tdi_csv_number(const tdi_csv *csv, const char *cell, double *number);

#endif
