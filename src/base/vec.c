/* vec.c - growth of arrays. */
#include "base/vec.h"

#include <limits.h>

bool tdi_vec_grow(void **items, int count, int *capacity, int more, size_t item_size)
{
    if (more <= *capacity - count)
        return true;
    if (more > INT_MAX / 4 - count)
        return false;
    int wanted = *capacity ? 2 * *capacity : 8;
    while (wanted < count + more)
        wanted *= 2;
    void *grown = realloc(*items, (size_t)wanted * item_size);
    if (!grown)
        return false;
    *items = grown;
    *capacity = wanted;
    return true;
}
