/* math_isa.h - exp, log, tanh and related functions without branches or calls, for loops that become vector
 * instructions.
 *
 * Argument reduction and polynomials follow Cephes (S. Moshier). Errors are a few units in the last place over the
 * whole range (tests/cpu/math.c has the bounds). NaN stays NaN, infinities are exact; a result too small for a normal
 * number may be zero. */
#ifndef TDI_CPU_MATH_ISA_H
#define TDI_CPU_MATH_ISA_H

#include "cpu/isa.h"

static inline int32_t math_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float math_float(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float math_abs(float x)
{
    return math_float(math_bits(x) & 0x7fffffff);
}

static inline float math_with_sign(float magnitude, float sign)
{
    return math_float((math_bits(magnitude) & 0x7fffffff) | (math_bits(sign) & INT32_MIN));
}

static inline float math_clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* 1.5 * 2^23. Adding it to a number rounds the number to an integer, which stands in the low bits of the sum. */
#define MATH_ROUND_MAGIC 12582912.0f

/* Splits x = n ln 2 + r with |r| <= ln 2 / 2; returns n. */
static inline int32_t math_reduce(float x, float *r)
{
    float shifted = x * 1.44269504088896341f + MATH_ROUND_MAGIC;
    float n = shifted - MATH_ROUND_MAGIC;
    *r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    return math_bits(shifted) - math_bits(MATH_ROUND_MAGIC);
}

/* 2^n for n in [-126, 127] */
static inline float math_power2(int32_t n)
{
    return math_float((int32_t)((uint32_t)(n + 127) << 23));
}

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2 */
static inline float math_exp_polynomial(float r)
{
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    return p * r + 5.0000001201e-1f;
}

/* e^(n ln 2 + r) for n in [-252, 254] */
static inline float math_exp_reduced(int32_t n, float r)
{
    int32_t half = n >> 1;
    float e = math_exp_polynomial(r) * (r * r) + r + 1.0f;
    return e * math_power2(half) * math_power2(n - half);
}

static inline float math_exp(float x)
{
    float r;
    x = math_clamp(x, -104.0f, 90.0f);
    int32_t n = math_reduce(x, &r);
    return math_exp_reduced(n, r);
}

/* e^x - 1. For x > 88 it returns e^88 - 1, which is enough for its callers. */
static inline float math_expm1(float x)
{
    float r;
    x = math_clamp(x, -30.0f, 88.0f);
    int32_t n = math_reduce(x, &r);
    float scale = math_power2(n), p = math_exp_polynomial(r) * (r * r) + r;
    return scale * p + (scale - 1.0f);
}

/* 1.5 * 2^23 + 127. Adding it to a number near the integer n leaves n + 127 in the low bits; shifted left by 23 these
 * are the float 2^n. */
#define MATH_POWER_MAGIC 12583039.0f

/* tanh(a) = e / (e + 2) with e = e^2a - 1, for a = |x| = n ln 2 / 2 + r. The terms are the polynomial
 * (e^2r - 1 - 2r) / r^2, highest first. It has few terms, since networks spend much of their time in tanh. */
#define MATH_TANH_SCALE 2.88539008177792681f
#define MATH_TANH_STEP  0.34657359027997264f
enum { MATH_TANH_TERMS = 5 };
static const float math_tanh_terms[MATH_TANH_TERMS] = {8.8848064844e-2f, 2.6773057069e-1f, 6.6667522847e-1f,
                                                       1.3333234542f, 1.9999999258f};

static inline float math_tanh(float x)
{
    const float a = math_abs(x) > 10.0f ? 10.0f : math_abs(x);
    float shifted = a * MATH_TANH_SCALE + MATH_POWER_MAGIC;
    float r = a - (shifted - MATH_POWER_MAGIC) * MATH_TANH_STEP;
    float scale = math_float((int32_t)((uint32_t)math_bits(shifted) << 23)), p = math_tanh_terms[0];
    for (int k = 1; k < MATH_TANH_TERMS; k++)
        p = p * r + math_tanh_terms[k];
    float e = scale * (p * (r * r) + 2.0f * r) + (scale - 1.0f);
    return math_with_sign(e / (e + 2.0f), x);
}

static inline float math_sigmoid(float x)
{
    return 1.0f / (1.0f + math_exp(-x));
}

/* log(x) for normal x > 0, split into x = 2^e m with sqrt(1/2) <= m < sqrt(2). */
static inline float math_log_positive(float x)
{
    int32_t bits = math_bits(x), e = (bits - 0x3f3504f3) >> 23;
    float m = math_float(bits - (int32_t)((uint32_t)e << 23)) - 1.0f, n = (float)e, z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = p * m * z + n * -2.12194440e-4f - 0.5f * z;
    return (m + y) + n * 0.693359375f;
}

static inline float math_log(float x)
{
    bool tiny = x < 1.17549435e-38f;
    float y = math_log_positive(tiny ? x * 8388608.0f : x) - (tiny ? 15.9423851528787f : 0.0f);
    y = x > 3.40282347e+38f ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    return x < 0.0f ? NAN : x != x ? x : y;
}

/* log(1 + x) for x in [0, 1]. The second term puts back what rounding 1 + x has lost. */
static inline float math_log1p_unit(float x)
{
    float w = 1.0f + x;
    return math_log_positive(w) + (x - (w - 1.0f)) / w;
}

static inline float math_softplus(float x)
{
    return (x > 0.0f ? x : 0.0f) + math_log1p_unit(math_exp(-math_abs(x)));
}

/* e^-(a^2 / 2) for a in [0, 15]. The exponential would enlarge a rounding error of its argument; the square of a's
 * upper half has none, and the remainder of the square goes into the reduced argument. */
static inline float math_bell(float a)
{
    float upper = math_float(math_bits(a) & ~0xfff), r;
    int32_t n = math_reduce(-0.5f * upper * upper, &r);
    return math_exp_reduced(n, r - 0.5f * (a - upper) * (a + upper));
}

/* The share of a standard normal distribution above a in [0, 15], given bell = math_bell(a): bell t P(t) with
 * t = 1 / (1 + a / 3), the form of Abramowitz & Stegun 7.1.26. P is fitted to the least maximum relative error. */
static inline float math_normal_above(float a, float bell)
{
    float t = 1.0f / (1.0f + a * 0.333333333f);
    float p = -2.2127544507e-02f;
    p = p * t + 1.2659138441e-01f;
    p = p * t - 2.6528134942e-01f;
    p = p * t + 2.1235959232e-01f;
    p = p * t - 4.9017373472e-02f;
    p = p * t + 1.1815555394e-01f;
    p = p * t + 1.1284226924e-01f;
    p = p * t + 1.3351957500e-01f;
    p = p * t + 1.3295789063e-01f;
    return bell * t * p;
}

#endif
