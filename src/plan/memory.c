/* memory.c - where activations live: greedy by size (Pisarchyk & Lee 2020). The largest storage is placed first, each
 * at the lowest offset at which it overlaps none that is alive at the same time. */
#include <stdlib.h>

#include "plan/memory.h"

static int64_t rounded(int64_t bytes)
{
    return (bytes + 63) & ~(int64_t)63;
}

static int larger_first(const void *a, const void *b)
{
    const tdi_storage *const *x = a, *const *y = b;
    if ((*x)->bytes != (*y)->bytes)
        return (*x)->bytes < (*y)->bytes ? 1 : -1;
    return *x < *y ? -1 : 1;
}

static int lower_first(const void *a, const void *b)
{
    const tdi_storage *const *x = a, *const *y = b;
    return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

/* The lowest offset at which `storage` fits among the `count` storages placed so far; `alive` [count] is overwritten.
 */
static int64_t find_gap(const tdi_storage *storage, tdi_storage **placed, int count, tdi_storage **alive)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        if (placed[i]->first <= storage->last && storage->first <= placed[i]->last)
            alive[n++] = placed[i];
    qsort(alive, (size_t)n, sizeof *alive, lower_first);
    int64_t offset = 0;
    for (int i = 0; i < n; i++) {
        if (alive[i]->offset - offset >= rounded(storage->bytes))
            break;
        int64_t end = alive[i]->offset + rounded(alive[i]->bytes);
        if (end > offset)
            offset = end;
    }
    return offset;
}

int64_t tdi_memory_place(tdi_storage *storages, int count)
{
    tdi_storage **order = malloc(((size_t)count + 1) * sizeof(tdi_storage *));
    tdi_storage **alive = malloc(((size_t)count + 1) * sizeof(tdi_storage *));
    int64_t total = order && alive ? 0 : -1;
    for (int i = 0; i < count && total >= 0; i++)
        order[i] = &storages[i];
    if (total >= 0)
        qsort(order, (size_t)count, sizeof *order, larger_first);
    for (int i = 0; i < count && total >= 0; i++) {
        order[i]->offset = find_gap(order[i], order, i, alive);
        int64_t end = order[i]->offset + rounded(order[i]->bytes);
        total = end > total ? end : total;
    }
    free(order);
    free(alive);
    return total;
}
