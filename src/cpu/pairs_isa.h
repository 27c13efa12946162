/* pairs_isa.h - products of bfloat16s by AVX512-BF16: an instruction multiplies pairs and adds both products to a
 * float, for sixteen floats at a time. */
#ifndef TDI_CPU_PAIRS_ISA_H
#define TDI_CPU_PAIRS_ISA_H

#include <immintrin.h>

#include "base/bfloat16.h"
#include "cpu/isa.h"

#define TDI_PAIRS __attribute__((target("avx512bf16")))

enum {
    TDI_PAIR_ROWS = 8,  /* of sums that stay in registers, two vectors each */
    TDI_PAIR_SIDE = 16, /* pairs in a vector */
};

/* Whether this CPU has the instruction. */
static inline bool tdi_pairs_work(void)
{
    return __builtin_cpu_supports("avx512bf16");
}

/* Two rows of 32 bfloat16s in turn: the pairs of the first 16 columns, and of the others. */
TDI_INLINE void tdi_pair_up(const tdi_bfloat16 *first, const tdi_bfloat16 *second, tdi_bfloat16 *low,
                            tdi_bfloat16 *high)
{
    const __m512i lows = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                          37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i highs = _mm512_or_si512(lows, _mm512_set1_epi16(16));
    __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
    _mm512_storeu_si512(low, _mm512_permutex2var_epi16(a, lows, b));
    _mm512_storeu_si512(high, _mm512_permutex2var_epi16(a, highs, b));
}

/* ---- what is asked for ahead: memory that is read next, a line at each step of a product ---- */

enum { TDI_LINE = 64 /* bytes of the cache's */ };

/* `left` lines, `step` bytes apart. */
typedef struct tdi_ahead {
    const char *at;
    int64_t step, left;
} tdi_ahead;

static inline tdi_ahead tdi_ahead_of(const void *from, int64_t bytes)
{
    return (tdi_ahead){from, TDI_LINE, bytes / TDI_LINE};
}

/* What a product of so many steps is to ask for; one line again and again when nothing is left. */
static inline tdi_ahead tdi_take_ahead(tdi_ahead *lists, int count, int64_t steps)
{
    for (int i = 0; i < count; i++)
        if (lists[i].left > 0) {
            tdi_ahead taken = lists[i];
            lists[i].left -= steps;
            lists[i].at += steps * taken.step;
            return taken;
        }
    return (tdi_ahead){.at = lists[0].at};
}

#endif
