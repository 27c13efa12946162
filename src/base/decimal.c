/* decimal.c - parses decimal numbers by strtod in the C locale. */
#define _GNU_SOURCE
#include "base/decimal.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale; /* kept until the process ends */

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

bool tdi_parse_decimal(const char *text, double *number)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char *end;
    if (!*text || !strchr("+-.0123456789", *text) || strpbrk(text, "xXnN"))
        return false; /* hexadecimals and infinities */
    pthread_once(&once, make_locale);
    if (!c_locale)
        return false;
    *number = strtod_l(text, &end, c_locale);
    return end != text && !*end && isfinite(*number);
}
