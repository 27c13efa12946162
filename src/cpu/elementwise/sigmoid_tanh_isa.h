/* sigmoid_tanh_isa.h - sigmoid and tanh of several vectors at a time, for the loops that are bound by them.
 *
 * The instructions of one vector's exponential form a chain, each of which waits for the one before it; several vectors
 * at a time fill the waits. Errors are as in math_isa.h within the range whose results are floats other than 0 and 1.
 */
#ifndef TDI_CPU_ELEMENTWISE_SIGMOID_TANH_ISA_H
#define TDI_CPU_ELEMENTWISE_SIGMOID_TANH_ISA_H

#include "cpu/isa.h"
#include "cpu/math_isa.h"

enum { TDI_MOST_VECTORS = 4, TDI_EXPONENTIALS = 2 * TDI_MOST_VECTORS }; /* vectors at a time, at most */

/* 1 / x for x > 0, exact to the last place or the one before it. */
static inline tdi_vector tdi_reciprocal(tdi_vector x)
{
#if defined(__AVX512F__)
    tdi_vector y = (tdi_vector)_mm512_rcp14_ps((__m512)x);
    return y * (2.0f - x * y);
#else
    return 1.0f / x;
#endif
}

/* Finds scale = 2^n and p with e^x = scale (1 + p) for |x| <= 87, of `count` vectors. */
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

/* min(x, most); a NaN stays NaN, since the instructions return their second operand then. */
static inline tdi_vector tdi_clamp_above(tdi_vector x, float most)
{
#if defined(__AVX512F__)
    return (tdi_vector)_mm512_min_ps(_mm512_set1_ps(most), (__m512)x);
#elif defined(__AVX2__)
    return (tdi_vector)_mm256_min_ps(_mm256_set1_ps(most), (__m256)x);
#else
    return tdi_select(x > most, tdi_splat(most), x);
#endif
}

/* x clamped to [-most, most]; a NaN stays NaN. */
static inline tdi_vector tdi_clamp(tdi_vector x, float most)
{
    x = tdi_clamp_above(x, most);
#if defined(__AVX512F__)
    return (tdi_vector)_mm512_max_ps(_mm512_set1_ps(-most), (__m512)x);
#elif defined(__AVX2__)
    return (tdi_vector)_mm256_max_ps(_mm256_set1_ps(-most), (__m256)x);
#else
    return tdi_select(x < -most, tdi_splat(-most), x);
#endif
}

/* sigmoid(x) from the two parts of e^-x, and tanh(x) from those of e^2x (tdi_exponentials). */
static inline tdi_vector tdi_sigmoid_of_power(tdi_vector scale, tdi_vector p)
{
    return tdi_reciprocal((1.0f + scale) + scale * p);
}

static inline tdi_vector tdi_tanh_of_power(tdi_vector scale, tdi_vector p)
{
    tdi_vector less_one = scale * p + (scale - 1.0f);
    return less_one * tdi_reciprocal(less_one + 2.0f);
}

#if defined(__AVX512F__)

enum { TANH_PIECES = 32, TANH_TERMS = 6 }; /* terms of a polynomial: its degree + 1 */

/* tanh is approximated in pieces of this width around 0, STEP, 2 STEP, ...; behind the last piece it is 1. */
#define TANH_STEP 0.2900390625f
#define TANH_MOST 9.01f

/* Each piece's polynomial in x - k STEP, constant term first, fitted to the least maximum relative error. Where two
 * pieces meet, tanh of the next larger number may be smaller by a unit in the last place. */
static const float tanh_terms[TANH_TERMS][TANH_PIECES] = {
    {0.0f,         0.282170743f, 0.522722185f, 0.701433659f, 0.821090817f, 0.895731509f, 0.940253794f, 0.966105163f,
     0.980881214f, 0.989251018f, 0.993967891f, 0.99661839f,  0.998105407f, 0.998938859f, 0.999405742f, 0.999667287f,
     0.999813735f, 0.999895692f, 0.999941587f, 0.999967337f, 0.999981701f, 0.999989748f, 0.999994278f, 0.999996781f,
     0.999998212f, 0.999998987f, 0.999999464f, 0.999999702f, 0.999999821f, 0.999999881f, 0.99999994f,  1.0f},
    {1.0f,
     0.920379996f,
     0.726761639f,
     0.507990837f,
     0.325809896f,
     0.197665095f,
     0.115922756f,
     0.0666408241f,
     0.0378720686f,
     0.0213824082f,
     0.0120278783f,
     0.0067517776f,
     0.00378564629f,
     0.00212118006f,
     0.00118810742f,
     0.000665341388f,
     0.000372549024f,
     0.000208590398f,
     0.000116785661f,
     6.53846728e-05f,
     3.66064378e-05f,
     2.04944481e-05f,
     1.14739642e-05f,
     6.4237679e-06f,
     3.59638125e-06f,
     2.01345233e-06f,
     1.12724103e-06f,
     6.31091268e-07f,
     3.53319422e-07f,
     1.97807523e-07f,
     1.10743166e-07f,
     0.0f},
    {0.0f,
     -0.259686917f,
     -0.379886121f,
     -0.356324971f,
     -0.267523944f,
     -0.177056983f,
     -0.108997352f,
     -0.0643819794f,
     -0.0371478088f,
     -0.0211524088f,
     -0.0119552156f,
     -0.00672887871f,
     -0.00377843436f,
     -0.00211890647f,
     -0.00118738844f,
     -0.000665112748f,
     -0.000372475508f,
     -0.000208566329f,
     -0.000116777548f,
     -6.53818133e-05f,
     -3.66053609e-05f,
     -2.04940116e-05f,
     -1.14737704e-05f,
     -6.42367604e-06f,
     -3.59633486e-06f,
     -2.013428e-06f,
     -1.12722796e-06f,
     -6.31084106e-07f,
     -3.53315386e-07f,
     -1.97805264e-07f,
     -1.10757206e-07f,
     0.0f},
    {-0.333323181f,   -0.233578101f,   -0.043703869f,   0.0806023553f,
     0.11105825f,     0.0927080512f,   0.0638448894f,   0.0399865061f,
     0.023813758f,    0.0137976743f,   0.00787386298f,  0.00445556222f,
     0.00250941049f,  0.00140960736f,  0.000790652295f, 0.00044311388f,
     0.000248224766f, 0.000139015363f, 7.78426838e-05f, 4.3585067e-05f,
     2.44027069e-05f, 1.36624094e-05f, 7.64910237e-06f, 4.2824272e-06f,
     2.39755104e-06f, 1.34228264e-06f, 7.51485175e-07f, 4.20722529e-07f,
     2.35543865e-07f, 1.31870948e-07f, 7.40505968e-08f, 0.0f},
    {0.0f,
     0.1502233f,
     0.148407981f,
     0.0626330525f,
     -0.00145233842f,
     -0.0237504393f,
     -0.0236296877f,
     -0.0171789285f,
     -0.0109998882f,
     -0.0066190064f,
     -0.00385511434f,
     -0.00220604939f,
     -0.00125019392f,
     -0.000704696809f,
     -0.00039602787f,
     -0.000222189119f,
     -0.000124541417f,
     -6.97714422e-05f,
     -3.90763998e-05f,
     -2.18816567e-05f,
     -1.22519759e-05f,
     -6.85977329e-06f,
     -3.84062287e-06f,
     -2.1502301e-06f,
     -1.20383083e-06f,
     -6.73970192e-07f,
     -3.77325421e-07f,
     -2.11247766e-07f,
     -1.18272759e-07f,
     -6.62161597e-08f,
     -3.30924905e-08f,
     0.0f},
    {0.131768227f,    0.0576548465f,   -0.0456297658f,   -0.0588459745f,
     -0.0283433869f,  -0.00519569311f, 0.00348855951f,   0.00471714558f,
     0.00366892503f,  0.00240795035f,  0.00146492734f,   0.000857835868f,
     0.000492268475f, 0.000279395579f, 0.000157617003f,  8.86186244e-05f,
     4.97315523e-05f, 2.78794523e-05f, 1.56201131e-05f,  8.74863235e-06f,
     4.89910326e-06f, 2.74310196e-06f, 1.53580254e-06f,  8.59911495e-07f,
     4.81407085e-07f, 2.69598104e-07f, 1.50906573e-07f,  8.45018988e-08f,
     4.72949644e-08f, 2.64556466e-08f, -3.02615959e-08f, 0.0f}};

/* Looks up a term of each lane's piece; two vectors hold the whole row of the table. */
TDI_INLINE tdi_vector tanh_term(int term, tdi_vector_bits piece)
{
    __m512 low = _mm512_loadu_ps(tanh_terms[term]), high = _mm512_loadu_ps(tanh_terms[term] + TDI_WIDTH);
    return (tdi_vector)_mm512_permutex2var_ps(low, (__m512i)piece, high);
}

/* y = tanh(x) of `count` vectors by the table: a permutation finds the terms as fast as the CPU multiplies, and no
 * division is needed. */
TDI_INLINE void tdi_tanh_vectors(const tdi_vector *x, tdi_vector *y, int count)
{
    const tdi_vector_bits sign = (tdi_vector_bits){0} + INT32_MIN;
    tdi_vector r[TDI_MOST_VECTORS], p[TDI_MOST_VECTORS], piece[TDI_MOST_VECTORS];
    for (int i = 0; i < count; i++)
        r[i] = tdi_clamp_above((tdi_vector)((tdi_vector_bits)x[i] & ~sign), TANH_MOST);
    for (int i = 0; i < count; i++)
        piece[i] = r[i] * (1.0f / TANH_STEP) + MATH_ROUND_MAGIC;
    for (int i = 0; i < count; i++)
        r[i] -= (piece[i] - MATH_ROUND_MAGIC) * TANH_STEP;
    for (int i = 0; i < count; i++)
        p[i] = tanh_term(TANH_TERMS - 1, (tdi_vector_bits)piece[i]);
    for (int k = TANH_TERMS - 2; k >= 0; k--)
        for (int i = 0; i < count; i++)
            p[i] = p[i] * r[i] + tanh_term(k, (tdi_vector_bits)piece[i]);
    for (int i = 0; i < count; i++)
        y[i] = (tdi_vector)((tdi_vector_bits)p[i] | ((tdi_vector_bits)x[i] & sign));
}

#else

/* y = tanh(x) of `count` vectors, as math_tanh computes it. */
TDI_INLINE void tdi_tanh_vectors(const tdi_vector *x, tdi_vector *y, int count)
{
    const tdi_vector_bits sign = (tdi_vector_bits){0} + INT32_MIN;
    tdi_vector r[TDI_MOST_VECTORS], p[TDI_MOST_VECTORS], scale[TDI_MOST_VECTORS];
    for (int i = 0; i < count; i++)
        r[i] = tdi_clamp_above((tdi_vector)((tdi_vector_bits)x[i] & ~sign), 10.0f);
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

#endif
