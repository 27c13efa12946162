/* order.c - the order of an epoch: a function of (seed, epoch) alone, so that it is the same for every number of
 * replicas and after a resume. */
#include "base/rng.h"
#include "data/source.h"

#define SHUFFLE_STREAM UINT64_C(0x73687566666c6500) /* "shuffle": apart from other draws by the same seed */

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
