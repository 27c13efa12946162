/* squash_isa.h - sigmoid and tanh of some vectors abreast, for the loops that wait for them: one vector's is a chain of
 * instructions that wait for each other. As in math_isa.h, within the range that leads to a float other than 0 and 1.
 */
#ifndef TDI_CPU_SQUASH_ISA_H
#define TDI_CPU_SQUASH_ISA_H

#include "cpu/isa.h"
#include "cpu/math_isa.h"

enum { TDI_ABREAST = 4, TDI_EXPONENTIALS = 2 * TDI_ABREAST }; /* vectors at most */

/* 1 / x to the last place or the one before, x > 0. */
static inline tdi_vector tdi_reciprocal(tdi_vector x)
{
#if defined(__AVX512F__)
    tdi_vector y = (tdi_vector)_mm512_rcp14_ps((__m512)x);
    return y * (2.0f - x * y);
#else
    return 1.0f / x;
#endif
}

/* e^x = scale (1 + p), scale = 2^n, |x| <= 87, of `count` vectors abreast: each is a chain of instructions that wait
 * for each other. */
TDI_INLINE void tdi_exponentials(const tdi_vector *x, tdi_vector *scale, tdi_vector *p, int count)
{
    static const float rest[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                                 5.0000001201e-1f};
    tdi_vector r[TDI_EXPONENTIALS];
    TDI_UNROLL
    for (int i = 0; i < count; i++)
        scale[i] = x[i] * 1.44269504088896341f + MATH_POWER_MAGIC;
    TDI_UNROLL
    for (int i = 0; i < count; i++)
        r[i] = x[i] - (scale[i] - MATH_POWER_MAGIC) * 0.693359375f;
    TDI_UNROLL
    for (int i = 0; i < count; i++)
        r[i] -= (scale[i] - MATH_POWER_MAGIC) * -2.12194440e-4f;
    TDI_UNROLL
    for (int i = 0; i < count; i++)
        p[i] = r[i] * 1.9875691500e-4f + rest[0];
    TDI_UNROLL
    for (int k = 1; k < 5; k++) {
        TDI_UNROLL
        for (int i = 0; i < count; i++)
            p[i] = p[i] * r[i] + rest[k];
    }
    TDI_UNROLL
    for (int i = 0; i < count; i++)
        p[i] = p[i] * (r[i] * r[i]) + r[i];
    TDI_UNROLL
    for (int i = 0; i < count; i++)
        scale[i] = (tdi_vector)((tdi_vector_bits)scale[i] << 23);
}

/* NaN stays NaN: of the two it is the second operand that the instructions give then. */
static inline tdi_vector tdi_at_most(tdi_vector x, float most)
{
#if defined(__AVX512F__)
    return (tdi_vector)_mm512_min_ps(_mm512_set1_ps(most), (__m512)x);
#elif defined(__AVX2__)
    return (tdi_vector)_mm256_min_ps(_mm256_set1_ps(most), (__m256)x);
#else
    return tdi_select(x > most, tdi_splat(most), x);
#endif
}

static inline tdi_vector tdi_within(tdi_vector x, float most)
{
    x = tdi_at_most(x, most);
#if defined(__AVX512F__)
    return (tdi_vector)_mm512_max_ps(_mm512_set1_ps(-most), (__m512)x);
#elif defined(__AVX2__)
    return (tdi_vector)_mm256_max_ps(_mm256_set1_ps(-most), (__m256)x);
#else
    return tdi_select(x < -most, tdi_splat(-most), x);
#endif
}

/* From e^-x and e^2x. */
static inline tdi_vector tdi_sigmoid_from(tdi_vector scale, tdi_vector p)
{
    return tdi_reciprocal((1.0f + scale) + scale * p);
}

static inline tdi_vector tdi_tangent_from(tdi_vector scale, tdi_vector p)
{
    tdi_vector less_one = scale * p + (scale - 1.0f);
    return less_one * tdi_reciprocal(less_one + 2.0f);
}

/* y = tanh(x), as math_tanh. */
TDI_INLINE void tdi_tangents(const tdi_vector *x, tdi_vector *y, int count)
{
    const tdi_vector_bits sign = (tdi_vector_bits){0} + INT32_MIN;
    tdi_vector r[TDI_ABREAST], p[TDI_ABREAST], scale[TDI_ABREAST];
    for (int i = 0; i < count; i++)
        r[i] = tdi_at_most((tdi_vector)((tdi_vector_bits)x[i] & ~sign), 10.0f);
    for (int i = 0; i < count; i++)
        scale[i] = r[i] * MATH_TANH_SCALE + MATH_POWER_MAGIC;
    for (int i = 0; i < count; i++)
        r[i] -= (scale[i] - MATH_POWER_MAGIC) * MATH_TANH_STEP;
    for (int i = 0; i < count; i++)
        p[i] = r[i] * math_tanh_terms[0] + math_tanh_terms[1];
    for (int k = 2; k < MATH_TANH_TERMS; k++)
        for (int i = 0; i < count; i++)
            p[i] = p[i] * r[i] + math_tanh_terms[k];
    for (int i = 0; i < count; i++)
        p[i] = p[i] * (r[i] * r[i]) + 2.0f * r[i];
    for (int i = 0; i < count; i++) {
        tdi_vector power = (tdi_vector)((tdi_vector_bits)scale[i] << 23), e = power * p[i] + (power - 1.0f);
        y[i] = (tdi_vector)((tdi_vector_bits)(e / (e + 2.0f)) | ((tdi_vector_bits)x[i] & sign));
    }
}

#endif
