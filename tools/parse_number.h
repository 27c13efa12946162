/* parse_number.h - parses words that are numbers as a whole. */
#ifndef TOOL_PARSE_NUMBER_H
#define TOOL_PARSE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses "32": digits alone. False for anything else, or beyond int64_t. */
bool read_count(const char *text, int64_t *value);
/* Parses "0.1" or "-1e-7". False for anything else, or when it is not finite. */
bool read_real(const char *text, double *value);

#endif
