/* bfloat16_isa.h - bfloat16 in vector loops: widened and rounded in registers, or a tile at a time in the first-level
 * cache. */
#ifndef TDI_CPU_BFLOAT16_ISA_H
#define TDI_CPU_BFLOAT16_ISA_H

#include "base/bfloat16.h"
#include "cpu/isa.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

enum { TDI_TILE = 512 }; /* floats: a few tiles fit in the first-level cache */

/* Element `at` of a value of floats or bfloat16s. */
static inline void *tdi_element(const tdi_value *value, int64_t at)
{
    return (char *)value->data + (size_t)at * (value->dtype == TD_BFLOAT16 ? sizeof(tdi_bfloat16) : sizeof(float));
}

/* The same element by element, for loops made anew for either type: `narrow` is a constant there. */
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

/* GCC makes of __builtin_convertvector several shuffles where AVX-512 has one. */
TDI_INLINE tdi_vector_words tdi_words_of(tdi_narrow_vector v)
{
#if defined(__AVX512BW__)
    return (tdi_vector_words)_mm512_cvtepu16_epi32((__m256i)v);
#else
    return __builtin_convertvector(v, tdi_vector_words);
#endif
}

/* Elements i to i + TDI_WIDTH - 1. */
TDI_INLINE tdi_vector tdi_get_vector(bool narrow, const void *from, int64_t i)
{
    tdi_narrow_vector v;
    if (!narrow)
        return tdi_load((const float *)from + i);
    memcpy(&v, (const tdi_bfloat16 *)from + i, sizeof v);
    return (tdi_vector)(tdi_words_of(v) << 16);
}

/* As tdi_narrow, in a dozen instructions. */
TDI_INLINE tdi_narrow_vector tdi_rounded(tdi_vector v)
{
    tdi_vector_words bits = (tdi_vector_words)v, rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    tdi_vector chosen = tdi_select(v != v, (tdi_vector)(bits | 0x400000u), (tdi_vector)rounded);
    return __builtin_convertvector((tdi_vector_words)chosen >> 16, tdi_narrow_vector);
}

/* Where the CPU has an instruction for it, which whole vectors take, numbers below 2^-126 become zero. */
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

TDI_INLINE void tdi_put_vector(bool narrow, void *to, int64_t i, tdi_vector v)
{
    if (narrow) {
        tdi_narrow_vector half = tdi_narrowed(v);
        memcpy((tdi_bfloat16 *)to + i, &half, sizeof half);
    } else {
        tdi_store((float *)to + i, v);
    }
}

/* `count` of them, a constant TDI_WIDTH or fewer; what is behind is zero, and is not written. */
TDI_INLINE tdi_vector tdi_get_part(bool narrow, const void *from, int64_t i, int64_t count)
{
    float part[TDI_WIDTH] = {0};
    if (!narrow)
        return tdi_load_part((const float *)from + i, count);
    if (count == TDI_WIDTH)
        return tdi_get_vector(narrow, from, i);
    for (int64_t k = 0; k < count; k++)
        part[k] = tdi_get(narrow, from, i + k);
    return tdi_load(part);
}

TDI_INLINE void tdi_put_part(bool narrow, void *to, int64_t i, int64_t count, tdi_vector v)
{
    if (!narrow)
        tdi_store_part((float *)to + i, v, count);
    else if (count == TDI_WIDTH)
        tdi_put_vector(narrow, to, i, v);
    else
        for (int64_t k = 0; k < count; k++)
            tdi_put(narrow, to, i + k, v[k]);
}

static inline void tdi_widen_loop(int64_t n, const tdi_bfloat16 *from, float *to)
{
    int64_t i = 0;
    for (; i + TDI_WIDTH <= n; i += TDI_WIDTH)
        tdi_store(to + i, tdi_get_vector(true, from, i));
    for (; i < n; i++)
        to[i] = tdi_widen(from[i]);
}

static inline void tdi_narrow_loop(int64_t n, const float *from, tdi_bfloat16 *to)
{
    int64_t i = 0;
    for (; i + TDI_WIDTH <= n; i += TDI_WIDTH)
        tdi_put_vector(true, to, i, tdi_load(from + i));
    for (; i < n; i++)
        to[i] = tdi_narrow(from[i]);
}

/* Where element i is. */
TDI_INLINE void *tdi_skip(bool narrow, const void *from, int64_t i)
{
    return (char *)(uintptr_t)from + i * (narrow ? (int64_t)sizeof(tdi_bfloat16) : (int64_t)sizeof(float));
}

/* n <= TDI_TILE elements as floats: where they are, or in `room`. Not inline: compilers then take it to fill the room.
 */
__attribute__((unused, noinline)) static const float *tdi_read_tile(const tdi_value *value, int64_t at, int64_t n,
                                                                    float *room)
{
    if (value->dtype != TD_BFLOAT16)
        return tdi_element(value, at);
    tdi_widen_loop(n, tdi_element(value, at), room);
    return room;
}

/* Calls make(call, at, n) for the elements that the call is to make, at most TDI_TILE at a time when one of its values
 * is bfloat16. */
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

/* Where to make them, and putting them in their place. */
static inline float *tdi_write_tile(const tdi_value *value, int64_t at, float *room)
{
    return value->dtype == TD_BFLOAT16 ? room : tdi_element(value, at);
}

static inline void tdi_keep_tile(const tdi_value *value, int64_t at, int64_t n, const float *made)
{
    if (value->dtype == TD_BFLOAT16)
        tdi_narrow_loop(n, made, tdi_element(value, at));
}

#endif
