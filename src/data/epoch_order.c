/* epoch_order.c - the order of an epoch's samples. It depends on (seed, epoch) alone, so that it is the same for every
 * number of replicas and after a resume. */
#include <stdlib.h>

#include "base/rng.h"
#include "data/source.h"

#define SHUFFLE_STREAM                                                                                                 \
    UINT64_C(0x73687566666c6500) /* "shuffle"; keeps these draws independent of others by the same seed */

void tdi_epoch_order(int64_t *order, int64_t count, bool shuffle, uint64_t seed, int64_t epoch)
{
    if (shuffle) {
        tdi_random random = tdi_random_create(seed, SHUFFLE_STREAM + (uint64_t)epoch);
        tdi_random_permutation(&random, order, count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
}

static void fill_order(int64_t *order, int64_t count, int64_t *held, int64_t holds, tdi_random *random)
{
    int64_t next = 0;
    for (; next < holds; next++)
        held[next] = next;
    for (int64_t i = 0; i < count; i++) {
        int64_t drawn = (int64_t)tdi_random_below(random, (uint64_t)holds);
        order[i] = held[drawn];
        held[drawn] = next < count ? next++ : held[--holds];
    }
}

td_status tdi_buffered_order(int64_t *order, int64_t count, int64_t buffer, uint64_t seed, int64_t epoch,
                             tdi_error *error)
{
    int64_t holds = buffer < count ? buffer : count;
    int64_t *held = malloc((size_t)holds * sizeof *held + 1);
    if (!held)
        return tdi_no_memory(error);
    tdi_random random = tdi_random_create(seed, SHUFFLE_STREAM + (uint64_t)epoch);
    fill_order(order, count, held, holds, &random);
    free(held);
    return TD_OK;
}
