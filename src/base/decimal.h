/* decimal.h - decimal numbers in files: the point is a point, whatever the program's locale. */
#ifndef TDI_BASE_DECIMAL_H
#define TDI_BASE_DECIMAL_H

#include <stdbool.h>

/* Parses a text that is a decimal number as a whole. False when it is none: empty, with blanks, hexadecimal, "inf" or
 * "nan", or beyond what a double holds. */
bool tdi_parse_decimal(const char *text, double *number);

#endif
