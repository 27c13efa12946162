/* parse_number.h - whole words that are numbers, whatever the locale. */
#ifndef TOOL_PARSE_NUMBER_H
#define TOOL_PARSE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* "32": digits alone. False when it is none, or no int64_t holds it. */
bool read_count(const char *text, int64_t *value);
/* "0.1", "-1e-7": finite. False when it is none. */
bool read_real(const char *text, double *value);

#endif
