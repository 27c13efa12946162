/* skip_zeros_isa.h - finds the steps of a product that multiply by nothing but zeros, so that they can be skipped.
 *
 * A left factor often has columns that are zero in all rows of a block: pixels along the border of images, words that
 * no sample has, units that a rectifier has switched off. Zero times a finite number adds nothing, so a product skips
 * such a column's step after checking that what it would multiply is finite (tdi_all_finite). Results are the same but
 * for the sign of a zero. */
#ifndef TDI_CPU_SKIP_ZEROS_ISA_H
#define TDI_CPU_SKIP_ZEROS_ISA_H

#include "cpu/isa.h"

/* Bit i is set where element i is not +0. (Treating -0 as nonzero does no harm.) */
static inline uint32_t tdi_nonzero_bits(tdi_vector_bits x)
{
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x);
#elif defined(__AVX2__)
    __m256i zero = _mm256_cmpeq_epi32((__m256i)x, _mm256_setzero_si256());
    return (uint32_t)_mm256_movemask_ps((__m256)zero) ^ 0xff;
#elif defined(__x86_64__)
    return (uint32_t)_mm_movemask_ps((__m128)_mm_cmpeq_epi32((__m128i)x, _mm_setzero_si128())) ^ 0xf;
#else
    uint32_t bits = 0;
    for (int i = 0; i < TDI_WIDTH; i++)
        bits |= (uint32_t)(x[i] != 0) << i;
    return bits;
#endif
}

/* Appends first + i to at[count ..] for each set bit i; returns the new count. It may write up to TDI_WIDTH entries
 * beyond the last. */
static inline int64_t tdi_append_bits(int64_t first, uint32_t bits, int64_t count, uint16_t *at)
{
#if defined(__AVX512F__)
    const __m512i each = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i all = _mm512_add_epi32(each, _mm512_set1_epi32((int)first));
    __m256i set = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32((__mmask16)bits, all));
    _mm256_storeu_si256((__m256i *)(at + count), set);
    return count + __builtin_popcount(bits);
#else
    static const uint8_t set[16][4] = {{0}, {0},    {1},    {0, 1},    {2},    {0, 2},    {1, 2},    {0, 1, 2},
                                       {3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3}};
    for (; bits; bits >>= 4, first += 4) {
        for (int i = 0; i < 4; i++)
            at[count + i] = (uint16_t)(first + set[bits & 15][i]);
        count += __builtin_popcount(bits & 15);
    }
    return count;
#endif
}

/* Finds the columns that are not zero in all of `rows` rows, which lie `row` floats apart: column g * TDI_WIDTH + i
 * sets bit i of bits[g]. */
static inline void tdi_nonzero_columns(const float *data, int64_t row, int64_t rows, int64_t columns, uint16_t *bits)
{
    int64_t j = 0;
    for (; j + TDI_WIDTH <= columns; j += TDI_WIDTH) {
        tdi_vector_bits any = {0};
        for (int64_t i = 0; i < rows; i++)
            any |= (tdi_vector_bits)tdi_load(data + i * row + j);
        *bits++ = (uint16_t)tdi_nonzero_bits(any);
    }
    if (j == columns)
        return;
    tdi_vector_bits any = {0};
    for (int64_t i = 0; i < rows; i++)
        any |= (tdi_vector_bits)tdi_load_first(data + i * row + j, columns - j);
    *bits = (uint16_t)tdi_nonzero_bits(any);
}

/* Lists the columns whose bit is `set`; returns how many there are. at[] has room for columns + TDI_WIDTH entries. */
static inline int64_t tdi_columns_of(const uint16_t *bits, bool set, int64_t columns, uint16_t *at)
{
    int64_t count = 0;
    for (int64_t j = 0; j < columns; j += TDI_WIDTH, bits++) {
        uint32_t all = (1u << tdi_least(columns - j, TDI_WIDTH)) - 1;
        count = tdi_append_bits(j, (set ? *bits : ~(uint32_t)*bits) & all, count, at);
    }
    return count;
}

/* Whether any of n numbers is not +0. */
TDI_INLINE bool tdi_any_nonzero(const float *x, int64_t n)
{
#if defined(__AVX512VL__)
    if (n == 8) {
        __m256i all = _mm256_loadu_si256((const __m256i *)(const void *)x);
        return _mm256_test_epi32_mask(all, all) != 0;
    }
#endif
    uint32_t any = 0;
    TDI_UNROLL
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        any |= bits;
    }
    return any != 0;
}

/* Lists the rows that are not zero in all of their columns; returns how many there are. */
TDI_INLINE int64_t tdi_nonzero_rows(const float *data, int64_t row, int64_t rows, int64_t columns, uint16_t *at)
{
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++, data += row) {
        at[count] = (uint16_t)i;
        count += tdi_any_nonzero(data, columns);
    }
    return count;
}

/* Whether any whole vector among n numbers is zero. */
static inline bool tdi_has_zeros(const float *x, int64_t n)
{
    for (int64_t i = 0; i + TDI_WIDTH <= n; i += TDI_WIDTH)
        if (!tdi_nonzero_bits((tdi_vector_bits)tdi_load(x + i)))
            return true;
    return false;
}

/* Whether no number in rows [0, rows), or in rows at[0 .. rows), is infinite or NaN. There are TDI_WIDTH columns or
 * more; the last vector of a row may overlap the one before it. */
static inline bool tdi_all_finite(const float *data, int64_t row, int64_t rows, const uint16_t *at, int64_t columns)
{
    enum { VECTORS = 4 };
    tdi_vector sum[VECTORS] = {{0}};
    for (int64_t i = 0; i < rows; i++) {
        const float *from = data + (at ? at[i] : i) * row;
        int64_t j = 0;
        for (; j + VECTORS * TDI_WIDTH <= columns; j += VECTORS * TDI_WIDTH) {
            TDI_UNROLL
            for (int v = 0; v < VECTORS; v++)
                sum[v] += tdi_load(from + j + v * TDI_WIDTH) * 0.0f;
        }
        for (; j < columns; j += TDI_WIDTH)
            sum[0] += tdi_load(from + tdi_least(j, columns - TDI_WIDTH)) * 0.0f;
    }
    return tdi_fold_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) == 0.0f;
}

#endif
