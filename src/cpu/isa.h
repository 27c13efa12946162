/* isa.h - what the *_isa.c files share. Each of them is compiled once per instruction set (TDI_ISA) and defines kernels
 * named after it, such as tdi_cpu_softmax_avx2.
 *
 * A loop over elements is plain C marked with TDI_LANES: iteration i touches element i alone, so that the compiler may
 * turn 4, 8 or 16 iterations into one, and the output may be an input's own storage. What needs registers by hand uses
 * tdi_vector, a vector of TDI_WIDTH floats. "Lane" means one element of such a vector. */
#ifndef TDI_CPU_ISA_H
#define TDI_CPU_ISA_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu/unroll.h"
#include "device/kernel.h"
#include "ops/op_helpers.h"

#define TDI_JOIN_(stem, isa) stem##_##isa
#define TDI_JOIN(stem, isa)  TDI_JOIN_(stem, isa)
#define TDI_ISA_NAME(stem)   TDI_JOIN(stem, TDI_ISA)
#define TDI_QUOTE_(name)     #name
#define TDI_QUOTE(name)      TDI_QUOTE_(name)
#define TDI_ISA_TEXT         TDI_QUOTE(TDI_ISA)

/* Defines the kernel of an op: `TDI_CPU_KERNEL(softmax, .splits = ..., .run = ...);` */
#define TDI_CPU_KERNEL_(stem, variable, ...)                                                                           \
    extern const tdi_kernel variable;                                                                                  \
    const tdi_kernel variable = {.name = TDI_ISA_TEXT " " #stem, .op = &tdi_op_##stem, __VA_ARGS__}
#define TDI_CPU_KERNEL(stem, ...) TDI_CPU_KERNEL_(stem, TDI_ISA_NAME(tdi_cpu_##stem), __VA_ARGS__)

#if defined(__clang__)
#define TDI_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define TDI_LANES _Pragma("GCC ivdep")
#endif

/* A function that the compiler makes anew for the constants of each call, so that its sums stay in registers and its
 * branches disappear. */
#define TDI_INLINE static inline __attribute__((always_inline))

/* Floats in a vector register. */
#if defined(__AVX512F__)
enum { TDI_WIDTH = 16 };
#elif defined(__AVX2__)
enum { TDI_WIDTH = 8 };
#else
enum { TDI_WIDTH = 4 };
#endif
typedef float tdi_vector __attribute__((vector_size(TDI_WIDTH * 4)));
typedef int32_t tdi_vector_bits __attribute__((vector_size(TDI_WIDTH * 4)));

static inline tdi_vector tdi_load(const float *from)
{
    tdi_vector v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void tdi_store(float *to, tdi_vector v)
{
    memcpy(to, &v, sizeof v);
}

/* Loads the first `count` floats, at most a whole vector; zeros stand behind them. */
static inline tdi_vector tdi_load_first(const float *from, int64_t count)
{
    tdi_vector v = {0};
    if (count >= TDI_WIDTH)
        return tdi_load(from);
#if defined(__AVX512F__)
    v = (tdi_vector)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#else
    memcpy(&v, from, (size_t)count * sizeof(float));
#endif
    return v;
}

static inline void tdi_store_first(float *to, tdi_vector v, int64_t count)
{
    if (count >= TDI_WIDTH) {
        tdi_store(to, v);
        return;
    }
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), (__m512)v);
#else
    memcpy(to, &v, (size_t)count * sizeof(float));
#endif
}

static inline tdi_vector tdi_splat(float x)
{
    return x - (tdi_vector){0};
}

/* Loads a vector and keeps it in a register. Without the assembly a compiler may read memory again in each instruction
 * that needs the vector, which costs a load per product. */
static inline tdi_vector tdi_load_to_register(const float *from)
{
    tdi_vector v = tdi_load(from);
#if defined(__x86_64__)
    __asm__("" : "+v"(v));
#endif
    return v;
}

/* Takes `yes` where the mask's element is all ones, `no` where it is all zeros, as comparisons make it. */
static inline tdi_vector tdi_select(tdi_vector_bits mask, tdi_vector yes, tdi_vector no)
{
#if defined(__AVX2__) && !defined(__AVX512F__)
    return (tdi_vector)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
#else
    return (tdi_vector)((mask & (tdi_vector_bits)yes) | (~mask & (tdi_vector_bits)no));
#endif
}

/* The larger of two numbers; NaN when either is NaN. */
static inline tdi_vector tdi_larger(tdi_vector a, tdi_vector b)
{
    return tdi_select((a > b) | (a != a), a, b);
}

static inline float tdi_larger_of(float a, float b)
{
    return a > b || a != a ? a : b;
}

/* Adds up a vector, always in the same order, so that the bits do not depend on the code around it. */
static inline float tdi_fold_sum(tdi_vector v)
{
    float lane[TDI_WIDTH];
    memcpy(lane, &v, sizeof lane);
    for (int width = TDI_WIDTH / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

static inline float tdi_fold_larger(tdi_vector v)
{
    float largest = v[0];
    for (int i = 1; i < TDI_WIDTH; i++)
        largest = tdi_larger_of(v[i], largest);
    return largest;
}

/* Which function of each number is summed: x, |x| or x^2. */
typedef enum tdi_summand { TDI_ITSELF, TDI_ITS_SIZE, TDI_ITS_SQUARE } tdi_summand;

TDI_INLINE tdi_vector tdi_summands(tdi_summand what, tdi_vector v)
{
    return what == TDI_ITSELF ? v : what == TDI_ITS_SIZE ? (tdi_vector)((tdi_vector_bits)v & INT32_MAX) : v * v;
}

/* Sums n numbers lane by lane, a block at a time, so that rounding errors stay small in long arrays. */
TDI_INLINE double tdi_sum_of(tdi_summand what, const float *x, int64_t n)
{
    enum { BLOCK = 1024 };
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t end = begin + BLOCK < n ? begin + BLOCK : n, i = begin;
        tdi_vector sum[4] = {{0}};
        for (; i + 4 * TDI_WIDTH <= end; i += 4 * TDI_WIDTH)
            for (int j = 0; j < 4; j++)
                sum[j] += tdi_summands(what, tdi_load(x + i + j * TDI_WIDTH));
        float rest = 0;
        for (; i < end; i++)
            rest += what == TDI_ITSELF ? x[i] : what == TDI_ITS_SIZE ? fabsf(x[i]) : x[i] * x[i];
        total += (double)tdi_fold_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) + (double)rest;
    }
    return total;
}

static inline double tdi_sum(const float *x, int64_t n)
{
    return tdi_sum_of(TDI_ITSELF, x, n);
}

static inline float tdi_dot(int64_t n, const float *a, const float *b)
{
    enum { CHAINS = 4 };
    tdi_vector sum[CHAINS] = {{0}};
    int64_t k = 0;
    for (; k + CHAINS * TDI_WIDTH <= n; k += CHAINS * TDI_WIDTH)
        for (int i = 0; i < CHAINS; i++)
            sum[i] += tdi_load(a + k + i * TDI_WIDTH) * tdi_load(b + k + i * TDI_WIDTH);
    for (; k < n; k += TDI_WIDTH)
        sum[0] += tdi_load_first(a + k, n - k) * tdi_load_first(b + k, n - k);
    return tdi_fold_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static inline float tdi_largest(const float *x, int64_t n)
{
    int64_t i = 0;
    float largest = -INFINITY;
    if (n >= TDI_WIDTH) {
        tdi_vector v = tdi_load(x);
        for (i = TDI_WIDTH; i + TDI_WIDTH <= n; i += TDI_WIDTH)
            v = tdi_larger(tdi_load(x + i), v);
        largest = tdi_fold_larger(v);
    }
    for (; i < n; i++)
        largest = tdi_larger_of(x[i], largest);
    return largest;
}

/* ---- squares: TDI_WIDTH rows of TDI_WIDTH floats ---- */

#if defined(__clang__)
#define TDI_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define TDI_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (tdi_vector_bits){__VA_ARGS__})
#endif

/* Interleaves the first (low) or the second (high) halves of a and b. */
static inline tdi_vector tdi_zip_low(tdi_vector a, tdi_vector b)
{
#if defined(__AVX512F__)
    return TDI_SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif defined(__AVX2__)
    return TDI_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
    return TDI_SHUFFLE(a, b, 0, 4, 1, 5);
#endif
}

static inline tdi_vector tdi_zip_high(tdi_vector a, tdi_vector b)
{
#if defined(__AVX512F__)
    return TDI_SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif defined(__AVX2__)
    return TDI_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    return TDI_SHUFFLE(a, b, 2, 6, 3, 7);
#endif
}

/* Transposes a square. Zipping row i with row i + TDI_WIDTH / 2 moves one bit of an element's row number into its
 * column number; after log2(TDI_WIDTH) rounds all bits have moved. */
static inline void tdi_transpose_square(const float *from, int64_t from_row, float *to, int64_t to_row)
{
    tdi_vector row[TDI_WIDTH], zipped[TDI_WIDTH];
    for (int i = 0; i < TDI_WIDTH; i++)
        row[i] = tdi_load(from + i * from_row);
    for (int moved = 1; moved < TDI_WIDTH; moved *= 2) {
        for (int i = 0; i < TDI_WIDTH / 2; i++) {
            zipped[2 * i] = tdi_zip_low(row[i], row[i + TDI_WIDTH / 2]);
            zipped[2 * i + 1] = tdi_zip_high(row[i], row[i + TDI_WIDTH / 2]);
        }
        for (int i = 0; i < TDI_WIDTH; i++)
            row[i] = zipped[i];
    }
    for (int i = 0; i < TDI_WIDTH; i++)
        tdi_store(to + i * to_row, row[i]);
}

/* Returns the sums of a square's rows, one in each element: halves are zipped as for a transpose, and added. */
static inline tdi_vector tdi_fold_rows(const float *from)
{
    tdi_vector row[TDI_WIDTH];
    for (int i = 0; i < TDI_WIDTH; i++)
        row[i] = tdi_load(from + i * TDI_WIDTH);
    for (int half = TDI_WIDTH / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            row[i] = tdi_zip_low(row[i], row[i + half]) + tdi_zip_high(row[i], row[i + half]);
    return row[0];
}

/* Rounds n up to a multiple of `to`. */
static inline int64_t tdi_rounded_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static inline int64_t tdi_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tdi_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Divides `all` into nearly equal shares of at most `limit`; returns the size of one. */
static inline int64_t tdi_share_of(int64_t all, int64_t limit)
{
    int64_t shares = (all + limit - 1) / limit;
    return shares ? (all + shares - 1) / shares : 0;
}

#endif
