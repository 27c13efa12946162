/* bfloat16_isa.h - bfloat16 values in vector loops: the only conversions between them and float32.
 *
 * A loop can read and write either type in registers (tdi_get_vector, tdi_put_vector): it is compiled twice, with
 * `narrow` a constant. Or it computes on float32 tiles in the first-level cache, which are widened before it and
 * rounded behind it (tdi_each_tile). Whole arrays go through tdi_widen_array and tdi_narrow_array; single numbers
 * through base/bfloat16.h; whole calls through ops/widen.h.
 *
 * Rounding is to nearest, ties to even. Where the CPU has an instruction for it (AVX512-BF16), numbers below 2^-126 in
 * size become zero in whole vectors, but not in what is left over behind them. */
#ifndef TDI_CPU_BFLOAT16_ISA_H
#define TDI_CPU_BFLOAT16_ISA_H

#include "base/bfloat16.h"
#include "cpu/isa.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

enum { TDI_TILE = 512 }; /* floats: a few tiles fit into the first-level cache */

/* Points to element `at` of a value, float32 or bfloat16. */
static inline void *tdi_element(const tdi_value *value, int64_t at)
{
    return (char *)value->data + (size_t)at * (value->dtype == TD_BFLOAT16 ? sizeof(tdi_bfloat16) : sizeof(float));
}

/* ---- one element, or one vector, of an array: bfloat16 where `narrow`, which is a constant of the loop, else float32
 * ---- */

TDI_INLINE float tdi_get(bool narrow, const void *from, int64_t i)
{
    return narrow ? tdi_widen(((const tdi_bfloat16 *)from)[i]) : ((const float *)from)[i];
}

TDI_INLINE void tdi_put(bool narrow, void *to, int64_t i, float value)
{
    if (narrow)
        ((tdi_bfloat16 *)to)[i] = tdi_narrow(value);
    else
        ((float *)to)[i] = value;
}

typedef tdi_bfloat16 tdi_narrow_vector __attribute__((vector_size(TDI_WIDTH * 2)));
typedef uint32_t tdi_vector_words __attribute__((vector_size(TDI_WIDTH * 4)));

/* Zero-extends each element to 32 bits. (GCC makes several shuffles of __builtin_convertvector where AVX-512 needs one
 * instruction.) */
TDI_INLINE tdi_vector_words tdi_words_of(tdi_narrow_vector v)
{
#if defined(__AVX512BW__)
    return (tdi_vector_words)_mm512_cvtepu16_epi32((__m256i)v);
#else
    return __builtin_convertvector(v, tdi_vector_words);
#endif
}

/* Reads elements [i, i + TDI_WIDTH). */
TDI_INLINE tdi_vector tdi_get_vector(bool narrow, const void *from, int64_t i)
{
    tdi_narrow_vector v;
    if (!narrow)
        return tdi_load((const float *)from + i);
    memcpy(&v, (const tdi_bfloat16 *)from + i, sizeof v);
    return (tdi_vector)(tdi_words_of(v) << 16);
}

/* Rounds as tdi_narrow does, in a dozen instructions. */
TDI_INLINE tdi_narrow_vector tdi_rounded(tdi_vector v)
{
    tdi_vector_words bits = (tdi_vector_words)v, rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    tdi_vector chosen = tdi_select(v != v, (tdi_vector)(bits | 0x400000u), (tdi_vector)rounded);
    return __builtin_convertvector((tdi_vector_words)chosen >> 16, tdi_narrow_vector);
}

/* Rounds by the CPU's instruction where it has one. */
TDI_INLINE tdi_narrow_vector tdi_narrowed(tdi_vector v)
{
#if defined(__AVX512BW__)
    if (__builtin_cpu_supports("avx512bf16")) {
        tdi_narrow_vector half;
        __asm__("vcvtneps2bf16 %1, %0" : "=v"(half) : "v"(v));
        return half;
    }
#endif
    return tdi_rounded(v);
}

#if defined(__AVX512BW__)
/* Rounds 32 floats by AVX512-BF16, which the caller knows to be there; `low` becomes the first 16. */
TDI_INLINE __m512i tdi_narrowed_two(__m512 low, __m512 high)
{
    __m512i both;
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(low), "v"(high));
    return both;
}
#endif

TDI_INLINE void tdi_put_vector(bool narrow, void *to, int64_t i, tdi_vector v)
{
    if (narrow) {
        tdi_narrow_vector half = tdi_narrowed(v);
        memcpy((tdi_bfloat16 *)to + i, &half, sizeof half);
    } else {
        tdi_store((float *)to + i, v);
    }
}

/* Reads or writes `count` <= TDI_WIDTH elements, without touching memory behind them; a vector has zeros behind those
 * that were read. */
TDI_INLINE tdi_vector tdi_get_first(bool narrow, const void *from, int64_t i, int64_t count)
{
    float padded[TDI_WIDTH] = {0};
    if (!narrow)
        return tdi_load_first((const float *)from + i, count);
    if (count == TDI_WIDTH)
        return tdi_get_vector(narrow, from, i);
    for (int64_t k = 0; k < count; k++)
        padded[k] = tdi_get(narrow, from, i + k);
    return tdi_load(padded);
}

TDI_INLINE void tdi_put_first(bool narrow, void *to, int64_t i, int64_t count, tdi_vector v)
{
    if (!narrow)
        tdi_store_first((float *)to + i, v, count);
    else if (count == TDI_WIDTH)
        tdi_put_vector(narrow, to, i, v);
    else
        for (int64_t k = 0; k < count; k++)
            tdi_put(narrow, to, i + k, v[k]);
}

/* ---- arrays ---- */

static inline void tdi_widen_array(int64_t n, const tdi_bfloat16 *from, float *to)
{
    int64_t i = 0;
    for (; i + TDI_WIDTH <= n; i += TDI_WIDTH)
        tdi_store(to + i, tdi_get_vector(true, from, i));
    for (; i < n; i++)
        to[i] = tdi_widen(from[i]);
}

static inline void tdi_narrow_array(int64_t n, const float *from, tdi_bfloat16 *to)
{
    int64_t i = 0;
    for (; i + TDI_WIDTH <= n; i += TDI_WIDTH)
        tdi_put_vector(true, to, i, tdi_load(from + i));
    for (; i < n; i++)
        to[i] = tdi_narrow(from[i]);
}

/* Points to element i. */
TDI_INLINE void *tdi_skip(bool narrow, const void *from, int64_t i)
{
    return (char *)(uintptr_t)from + i * (narrow ? (int64_t)sizeof(tdi_bfloat16) : (int64_t)sizeof(float));
}

/* ---- tiles ---- */

/* Returns n <= TDI_TILE elements from `at` on as floats: where they lie if they are float32, else widened into `room`.
 * It is not inlined, because compilers then warn that `room` may be unset. */
__attribute__((unused, noinline)) static const float *tdi_read_tile(const tdi_value *value, int64_t at, int64_t n,
                                                                    float *room)
{
    if (value->dtype != TD_BFLOAT16)
        return tdi_element(value, at);
    tdi_widen_array(n, tdi_element(value, at), room);
    return room;
}

/* Calls make(call, at, n) for each run of elements that the call has to make; in pieces of at most TDI_TILE when the
 * result or the first input is bfloat16. */
static inline void tdi_each_tile(const tdi_call *call, void (*make)(const tdi_call *call, int64_t at, int64_t n))
{
    tdi_runs runs = tdi_call_runs(call);
    bool tiles = call->out.dtype == TD_BFLOAT16 || call->in[0].dtype == TD_BFLOAT16;
    for (int64_t r = 0; r < runs.count; r++) {
        int64_t at = runs.first + r * runs.stride, end = at + runs.length;
        for (int64_t n = runs.length; at < end; at += n) {
            n = tiles && end - at > TDI_TILE ? TDI_TILE : end - at;
            make(call, at, n);
        }
    }
}

/* Returns where to write a tile of the result as floats: in place, or `room` if the value is bfloat16, from where
 * tdi_keep_tile rounds it into the value. */
static inline float *tdi_write_tile(const tdi_value *value, int64_t at, float *room)
{
    return value->dtype == TD_BFLOAT16 ? room : tdi_element(value, at);
}

static inline void tdi_keep_tile(const tdi_value *value, int64_t at, int64_t n, const float *made)
{
    if (value->dtype == TD_BFLOAT16)
        tdi_narrow_array(n, made, tdi_element(value, at));
}

#endif
