/* pair_products_isa.h - products over 32-bit words by AVX-512: a word is a float, or a pair of bfloat16 values, whose
 * two products an instruction of AVX512-BF16 adds to a float.
 *
 * The kernels that include it keep a tile of sums in registers and pack their operands in words, so that one loop
 * serves both types. `pairs` says which one, and is a constant after inlining. */
#ifndef TDI_CPU_CONV_PAIR_PRODUCTS_ISA_H
#define TDI_CPU_CONV_PAIR_PRODUCTS_ISA_H

#include <immintrin.h>

#include "cpu/bfloat16_isa.h"
#include "cpu/prefetch_lines.h"

enum {
    TDI_SIDE = 16,        /* words in a vector */
    TDI_TILE_ROWS = 8,    /* rows of a tile of sums, at most, */
    TDI_TILE_VECTORS = 4, /* and vectors in each; rows * vectors <= 24, so that they fit into registers */
};

typedef uint32_t __attribute__((may_alias)) tdi_word;
typedef __m512 tdi_tile[TDI_TILE_ROWS][TDI_TILE_VECTORS];

/* Takes `bytes` of scratch behind the first `used`. Sets *at to them, or to NULL where `base` is NULL and only the size
 * is wanted. Returns how many bytes are used now. */
static inline size_t tdi_take_room(char **at, char *base, size_t used, int64_t bytes)
{
    *at = base ? base + used : NULL;
    return used + (size_t)tdi_rounded_up(bytes, TDI_LINE);
}

/* Whether this CPU multiplies pairs of bfloat16 values. */
static inline bool tdi_pairs_work(void)
{
    return __builtin_cpu_supports("avx512bf16");
}

/* Broadcasts a word. The assembly keeps it in a register: compilers would rather read it anew for each product. */
TDI_INLINE __m512i tdi_splat_word(const tdi_word *word)
{
    __m512i all = _mm512_set1_epi32((int32_t)*word);
    __asm__("" : "+v"(all));
    return all;
}

TDI_INLINE __m512 tdi_add_product(bool pairs, __m512 sum, __m512i a, __m512i b)
{
    if (!pairs)
        return _mm512_fmadd_ps((__m512)a, (__m512)b, sum);
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}

/* Adds to the sums word k of each row times `vectors` vectors of y, which are `panel` words apart. The more rows and
 * vectors there are, the fewer instructions a product takes; an Intel core begins four instructions while it multiplies
 * two vectors. */
TDI_INLINE void tdi_add_step(bool pairs, int rows, int vectors, const tdi_word *const *row, int64_t k,
                             const tdi_word *y, int64_t panel, tdi_tile sums)
{
    __m512i of_y[TDI_TILE_VECTORS];
    TDI_UNROLL_ALL
    for (int j = 0; j < vectors; j++)
        of_y[j] = _mm512_loadu_si512(y + j * panel);
    TDI_UNROLL_ALL
    for (int i = 0; i < rows; i++) {
        __m512i all = tdi_splat_word(row[i] + k);
        TDI_UNROLL_ALL
        for (int j = 0; j < vectors; j++)
            sums[i][j] = tdi_add_product(pairs, sums[i][j], all, of_y[j]);
    }
}

/* Pairs the elements of two rows of 32 bfloat16 values: the first 16 columns into `low`, the others into `high`. */
TDI_INLINE void tdi_pair_up(const void *first, const void *second, tdi_word *low, tdi_word *high)
{
    const __m512i lows = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                          37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i highs = _mm512_or_si512(lows, _mm512_set1_epi16(16));
    __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
    _mm512_storeu_si512(low, _mm512_permutex2var_epi16(a, lows, b));
    _mm512_storeu_si512(high, _mm512_permutex2var_epi16(a, highs, b));
}

/* Rounds two rows of 16 floats and pairs their elements. */
TDI_INLINE void tdi_pair_floats(const float *first, const float *second, void *to)
{
    const __m512i turns = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i both = tdi_narrowed_two(_mm512_loadu_ps(first), _mm512_loadu_ps(second));
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(turns, both));
}

/* Rounds 16 rows of 32 floats and transposes them by pairs: the pairs of a row get one below the other, `to_row` words
 * apart. */
static inline void tdi_turn_floats(const float *from, int64_t row, void *to, int64_t to_row)
{
    float pairs[TDI_SIDE][TDI_SIDE];
    for (int64_t i = 0; i < TDI_SIDE; i++, from += row)
        _mm512_storeu_si512(pairs[i], tdi_narrowed_two(_mm512_loadu_ps(from), _mm512_loadu_ps(from + TDI_SIDE)));
    tdi_transpose_square(pairs[0], TDI_SIDE, to, to_row);
}

#endif
