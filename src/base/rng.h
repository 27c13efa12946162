/* rng.h - counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011). A draw is a function of its key and counter alone, so any thread can make any draw, in any order. */
#ifndef TDI_BASE_RNG_H
#define TDI_BASE_RNG_H

#include <stdint.h>

typedef struct tdi_philox {
    uint32_t word[4];
} tdi_philox;

/* The block of four words for a 64-bit key and a 128-bit counter. */
tdi_philox tdi_philox_block(uint64_t key, uint64_t counter_high, uint64_t counter_low);

/* [0, 1) from a word, 24 bits. */
static inline float tdi_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* A sequence for host-side draws (initial weights, shuffles): fixed by (seed, stream). */
typedef struct tdi_random {
    uint64_t key, stream, position;
} tdi_random;

tdi_random tdi_random_create(uint64_t seed, uint64_t stream);
uint32_t tdi_random_word(tdi_random *random);
double tdi_random_uniform(tdi_random *random);                 /* [0, 1), 53 bits */
double tdi_random_normal(tdi_random *random);                  /* mean 0, deviation 1 (Box-Muller) */
uint64_t tdi_random_below(tdi_random *random, uint64_t bound); /* [0, bound), unbiased */

/* A random permutation of 0 .. count-1 (Fisher-Yates). */
void tdi_random_permutation(tdi_random *random, int64_t *items, int64_t count);

#endif
