/* isa.h - what the *_isa.c files share. Each of them is compiled once per instruction set (TDI_ISA) and defines kernels
 * named after it: tdi_cpu_softmax_avx2.
 *
 * Loops over elements are plain and marked with TDI_LANES: iteration i touches element i alone, so the output may be an
 * input's own storage, and the compiler may turn 4, 8 or 16 iterations into one. */
#ifndef TDI_CPU_ISA_H
#define TDI_CPU_ISA_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "graph/kernel.h"
#include "ops/common.h"

#define TDI_JOIN_(stem, isa) stem##_##isa
#define TDI_JOIN(stem, isa)  TDI_JOIN_(stem, isa)
#define TDI_ISA_NAME(stem)   TDI_JOIN(stem, TDI_ISA)
#define TDI_QUOTE_(name)     #name
#define TDI_QUOTE(name)      TDI_QUOTE_(name)
#define TDI_ISA_TEXT         TDI_QUOTE(TDI_ISA)

/* `TDI_CPU_KERNEL(softmax, .splits = ..., .run = ...);` */
#define TDI_CPU_KERNEL_(stem, variable, ...)                                                                           \
    extern const tdi_kernel variable;                                                                                  \
    const tdi_kernel variable = {.name = TDI_ISA_TEXT " " #stem, .op = &tdi_op_##stem, __VA_ARGS__}
#define TDI_CPU_KERNEL(stem, ...) TDI_CPU_KERNEL_(stem, TDI_ISA_NAME(tdi_cpu_##stem), __VA_ARGS__)

#if defined(__clang__)
#define TDI_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define TDI_LANES _Pragma("GCC ivdep")
#endif

/* One vector register of floats. */
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

static inline tdi_vector tdi_splat(float x)
{
    return x - (tdi_vector){0};
}

/* `mask` is all ones or all zeros per element, as comparisons give. */
static inline tdi_vector tdi_select(tdi_vector_bits mask, tdi_vector yes, tdi_vector no)
{
    return (tdi_vector)((mask & (tdi_vector_bits)yes) | (~mask & (tdi_vector_bits)no));
}

/* The larger; NaN when either is. */
static inline tdi_vector tdi_larger(tdi_vector a, tdi_vector b)
{
    return tdi_select((a > b) | (a != a), a, b);
}

static inline float tdi_larger_of(float a, float b)
{
    return a > b || a != a ? a : b;
}

/* Always in this order, whatever is around it. */
static inline float tdi_fold_sum(tdi_vector v)
{
    float part[TDI_WIDTH];
    memcpy(part, &v, sizeof part);
    for (int width = TDI_WIDTH / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            part[i] += part[i + width];
    return part[0];
}

static inline float tdi_fold_larger(tdi_vector v)
{
    float largest = v[0];
    for (int i = 1; i < TDI_WIDTH; i++)
        largest = tdi_larger_of(v[i], largest);
    return largest;
}

/* Sums a stretch in vector lanes; a long stretch in blocks, so that rounding stays small. */
static inline double tdi_sum(const float *x, int64_t n)
{
    enum { BLOCK = 1024 };
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t end = begin + BLOCK < n ? begin + BLOCK : n, i = begin;
        tdi_vector sum[4] = {{0}};
        for (; i + 4 * TDI_WIDTH <= end; i += 4 * TDI_WIDTH)
            for (int j = 0; j < 4; j++)
                sum[j] += tdi_load(x + i + j * TDI_WIDTH);
        float rest = 0;
        for (; i < end; i++)
            rest += x[i];
        total += (double)tdi_fold_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) + (double)rest;
    }
    return total;
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

#endif
