/* occurrences.h - how often a text holds another. */
#ifndef TEST_SUPPORT_OCCURRENCES_H
#define TEST_SUPPORT_OCCURRENCES_H

#include <string.h>

static inline int occurrences(const char *text, const char *of)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, of)) != NULL; at++)
        count++;
    return count;
}

#endif
