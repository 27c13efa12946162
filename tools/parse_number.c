/* parse_number.c - parses numbers. The command never leaves the C locale, so strtod sees a point as a point. */
#include "parse_number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool read_count(const char *text, int64_t *value)
{
    if (!*text || text[strspn(text, "0123456789")])
        return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0;
}

bool read_real(const char *text, double *value)
{
    if (!isdigit((unsigned char)*text) && !strchr("+-.", *text))
        return false; /* nan, inf, leading blanks */
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}
