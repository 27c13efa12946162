/* nearest_word.c - finds the candidate with the least optimal string alignment distance. */
#include "nearest_word.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define LONGEST 40

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static int distance(const char *a, const char *b)
{
    int row[3][LONGEST + 1]; /* rows i - 2, i - 1 and i, in turn */
    int length = (int)strlen(b);
    for (int j = 0; j <= length; j++)
        row[0][j] = j;
    int i = 0;
    for (; a[i]; i++) {
        int *above = row[i % 3], *here = row[(i + 1) % 3], *two_above = row[(i + 2) % 3];
        here[0] = i + 1;
        for (int j = 0; j < length; j++) {
            here[j + 1] = least(above[j] + !same(a[i], b[j]), least(above[j + 1], here[j]) + 1);
            if (i && j && same(a[i], b[j - 1]) && same(a[i - 1], b[j]))
                here[j + 1] = least(here[j + 1], two_above[j - 1] + 1);
        }
    }
    return row[i % 3][length];
}

const char *nearest_word(const char *word, const char *const *candidates, int count)
{
    size_t length = strlen(word);
    if (length > LONGEST)
        return NULL;
    const char *nearest = NULL;
    int best = 2 + (int)length / 4; /* a candidate must be nearer than this */
    for (int i = 0; i < count; i++) {
        if (strlen(candidates[i]) > LONGEST)
            continue;
        int d = distance(word, candidates[i]);
        if (d < best) {
            best = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}
