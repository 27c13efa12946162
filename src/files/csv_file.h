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

/* Opens a file of UTF-8 text. The separator is the comma, the semicolon, the tab or the bar: whichever the first line
 * has most of outside quotes, but the semicolon when what it separates are numbers with decimal commas. TD_BAD_FILE for
 * UTF-16. */
td_status tdi_csv_open(const char *path, tdi_csv **csv, tdi_error *error);
/* Reads the next record; sets *end, and no record, behind the last. Empty lines are skipped. TD_BAD_FILE names file,
 * line and offset; the next call goes on behind that line, or finds the end where a gzipped file is damaged. */
td_status tdi_csv_next(tdi_csv *csv, tdi_csv_record *record, bool *end, tdi_error *error);
void tdi_csv_close(tdi_csv *csv); /* accepts NULL */

/* Parses a cell as a decimal number, whatever the locale. With semicolons as separators the decimal mark may be a
 * comma. False when it is none, or not finite. */
bool tdi_csv_number(tdi_csv *csv, const char *cell, double *number);
/* True when the numbers that were parsed have both decimal marks. */
bool tdi_csv_mixes_marks(const tdi_csv *csv);
/* True for a cell that would be a number if a comma were the decimal mark. */
bool tdi_csv_has_decimal_comma(const char *cell);
/* True for "inf" and the like, and for a number that is too large. */
bool tdi_csv_is_infinite(const char *cell);

#endif
