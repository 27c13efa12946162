/* number_format.h - numbers as Python's format() writes them, whatever the program's locale. */
#ifndef TDI_BASE_NUMBER_FORMAT_H
#define TDI_BASE_NUMBER_FORMAT_H

#include <stdint.h>

#include "base/text.h"

/* Adds the number to `text` by a specification of Python's mini-language for int and float,
 * [[fill]align][sign][z][#][0][width][grouping][.precision][type]; "" is as str() does it. NULL, or why there is no
 * such format, as a phrase; then nothing is added. */
const char *tdi_format_int(int64_t value, const char *specification, tdi_text *text);
const char *tdi_format_float(double value, const char *specification, tdi_text *text);

#endif
