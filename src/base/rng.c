/* rng.c - Philox4x32-10, and host-side sequences over it. */
#include "base/rng.h"

#include <math.h>

static void philox_round(uint32_t c[4], const uint32_t k[2])
{
    uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k[0], (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ k[1],
                        (uint32_t)p0};
    for (int i = 0; i < 4; i++)
        c[i] = next[i];
}

tdi_philox tdi_philox_block(uint64_t key, uint64_t counter_high, uint64_t counter_low)
{
    uint32_t c[4] = {(uint32_t)counter_low, (uint32_t)(counter_low >> 32), (uint32_t)counter_high,
                     (uint32_t)(counter_high >> 32)};
    uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    for (int round = 0; round < 10; round++) {
        philox_round(c, k);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return (tdi_philox){{c[0], c[1], c[2], c[3]}};
}

tdi_random tdi_random_create(uint64_t seed, uint64_t stream)
{
    return (tdi_random){.key = seed, .stream = stream};
}

uint32_t tdi_random_word(tdi_random *random)
{
    tdi_philox block = tdi_philox_block(random->key, random->stream, random->position / 4);
    return block.word[random->position++ % 4];
}

double tdi_random_uniform(tdi_random *random)
{
    uint64_t high = tdi_random_word(random), low = tdi_random_word(random);
    return (double)((high << 21) ^ (low >> 11)) * 0x1p-53;
}

double tdi_random_normal(tdi_random *random)
{
    double radius = sqrt(-2.0 * log1p(-tdi_random_uniform(random)));
    return radius * cos(6.283185307179586 * tdi_random_uniform(random));
}

uint64_t tdi_random_below(tdi_random *random, uint64_t bound)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound, draw;
    do
        draw = (uint64_t)tdi_random_word(random) << 32 | tdi_random_word(random);
    while (draw >= limit);
    return draw % bound;
}

void tdi_random_permutation(tdi_random *random, int64_t *items, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        items[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)tdi_random_below(random, (uint64_t)i + 1), other = items[j];
        items[j] = items[i];
        items[i] = other;
    }
}
