/* csv_file.h - reads comma-separated values (RFC 4180), plain or gzipped, record by record. */
#ifndef TDI_FILES_CSV_FILE_H
#define TDI_FILES_CSV_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_csv tdi_csv;

/* A record's cells, without the quotes or blanks around them; borrowed until the next record is read. */
typedef struct tdi_csv_record {
    int count;
    char *const *cells;
    int64_t line;   /* number of its first line, from 1 */
    int64_t offset; /* of its first byte in the unpacked file */
} tdi_csv_record;

/* Opens a file. The separator is the comma, the semicolon or the tab: whichever the first line has most of. */
td_status tdi_csv_open(const char *path, tdi_csv **csv, tdi_error *error);
/* Reads the next record; sets *end, and no record, behind the last. Empty lines are skipped. TD_BAD_FILE names file,
 * line and offset; the next call goes on behind that line, or finds the end where a gzipped file is damaged. */
td_status tdi_csv_next(tdi_csv *csv, tdi_csv_record *record, bool *end, tdi_error *error);
void tdi_csv_close(tdi_csv *csv); /* accepts NULL */

/* Parses a cell as a decimal number, whatever the locale. False when it is none, or not finite. */
bool tdi_csv_number(const tdi_csv *csv, const char *cell, double *number);

#endif
