/* bands_isa.h - which columns of a matrix hold anything but zeros.
 *
 * Pixels along the border of images, words that no sample of the batch has, units that none wakes: whatever such a
 * column is multiplied by, it adds nothing, so that a product need not go there. Dense matrices are recognized by their
 * first rows. */
#ifndef TDI_CPU_BANDS_ISA_H
#define TDI_CPU_BANDS_ISA_H

#include "cpu/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Neighbouring columns [begin, end). */
typedef struct tdi_band {
    int64_t begin, end;
} tdi_band;

enum { TDI_MOST_BANDS = 128, TDI_MARKED = 4 /* vectors of a row looked at together */ };

/* In order; the last of TDI_MOST_BANDS has all that follows. */
typedef struct tdi_bands {
    int64_t count;
    tdi_band band[TDI_MOST_BANDS];
} tdi_bands;

/* Bit i: element i is not +0. (To take -0 for a number does no harm.) */
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

static inline void tdi_add_band(tdi_bands *bands, int64_t gap, int64_t begin, int64_t end)
{
    tdi_band *next = bands->band + bands->count;
    int64_t before = bands->count ? next[-1].end : 0;
    if (begin - before < gap)
        begin = before;
    if (bands->count && (begin == before || bands->count == TDI_MOST_BANDS))
        next[-1].end = end;
    else
        bands->band[bands->count++] = (tdi_band){begin, end};
}

/* Column `column` and those after it that have their bit set. */
static inline void tdi_add_bits(tdi_bands *bands, int64_t gap, int64_t column, uint32_t bits)
{
    while (bits) {
        int first = __builtin_ctz(bits), length = __builtin_ctzll(~((uint64_t)bits >> first));
        tdi_add_band(bands, gap, column + first, column + first + length);
        bits &= ~(((1u << length) - 1) << first);
    }
}

static inline void tdi_take_all(int64_t columns, tdi_bands *bands)
{
    bands->count = 1;
    bands->band[0] = (tdi_band){0, columns};
}

/* Into bits[v] those elements of vector v of the rows that are not zero in some row. */
TDI_INLINE void tdi_mark_vectors(const float *data, int64_t row, int64_t rows, int vectors, uint32_t *bits)
{
    enum { ROWS_AT_ONCE = 4 };
    tdi_vector_bits any[TDI_MARKED] = {{0}};
    bool full = false;
    for (int64_t i = 0; i < rows && !full;) {
        for (int64_t end = tdi_least(i + ROWS_AT_ONCE, rows); i < end; i++) {
            TDI_UNROLL
            for (int v = 0; v < vectors; v++)
                any[v] |= (tdi_vector_bits)tdi_load(data + i * row + v * TDI_WIDTH);
        }
        full = true;
        TDI_UNROLL
        for (int v = 0; v < vectors; v++) {
            bits[v] = tdi_nonzero_bits(any[v]);
            full = full && bits[v] == (1u << TDI_WIDTH) - 1;
        }
    }
}

/* Those of rows x columns elements, each row `row` floats behind the one before. Less than `gap` columns of zeros, at
 * either end too, are not left out. */
static inline void tdi_find_bands(const float *data, int64_t row, int64_t rows, int64_t columns, int64_t gap,
                                  tdi_bands *bands)
{
    uint32_t bits[TDI_MARKED] = {0};
    int64_t j = 0;
    bands->count = 0;
    for (; j + TDI_MARKED * TDI_WIDTH <= columns; j += TDI_MARKED * TDI_WIDTH) {
        tdi_mark_vectors(data + j, row, rows, TDI_MARKED, bits);
        for (int v = 0; v < TDI_MARKED; v++)
            tdi_add_bits(bands, gap, j + v * TDI_WIDTH, bits[v]);
    }
    for (; j + TDI_WIDTH <= columns; j += TDI_WIDTH) {
        tdi_mark_vectors(data + j, row, rows, 1, bits);
        tdi_add_bits(bands, gap, j, bits[0]);
    }
    for (; j < columns; j++) {
        int64_t i = 0;
        while (i < rows && data[i * row + j] == 0.0f)
            i++;
        if (i < rows)
            tdi_add_band(bands, gap, j, j + 1);
    }
    if (bands->count && columns - bands->band[bands->count - 1].end < gap)
        bands->band[bands->count - 1].end = columns;
}

/* Whether numbers, TDI_WIDTH columns or more of them, all stay zero when multiplied by zero: none is infinite or NaN.
 * What is left over after whole vectors is looked at with some of those before. */
static inline bool tdi_all_finite(const float *data, int64_t row, int64_t rows, int64_t columns)
{
    enum { ABREAST = 4 };
    tdi_vector sum[ABREAST] = {{0}};
    for (int64_t i = 0; i < rows; i++, data += row) {
        int64_t j = 0;
        for (; j + ABREAST * TDI_WIDTH <= columns; j += ABREAST * TDI_WIDTH) {
            TDI_UNROLL
            for (int v = 0; v < ABREAST; v++)
                sum[v] += tdi_load(data + j + v * TDI_WIDTH) * 0.0f;
        }
        for (; j < columns; j += TDI_WIDTH)
            sum[0] += tdi_load(data + tdi_least(j, columns - TDI_WIDTH)) * 0.0f;
    }
    return tdi_fold_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) == 0.0f;
}

#endif
