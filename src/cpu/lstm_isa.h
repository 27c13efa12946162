/* lstm_isa.h - what the loops of an LSTM's steps and those of their gradients share: products of few rows, parts of
 * vectors, the usual activations, and which part of the steps a lane makes. */
#ifndef TDI_CPU_LSTM_ISA_H
#define TDI_CPU_LSTM_ISA_H

#include "base/thread.h"
#include "cpu/isa.h"
#include "cpu/math_isa.h"
#include "ops/lstm.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum { GATES = TDI_LSTM_GATES, BLOCK = GATES * TDI_WIDTH, PANEL = 4 * TDI_WIDTH, DEPTH = 128 };
/* Vectors that are squashed at once. */
enum { ABREAST = 4 };
#if defined(__AVX512F__)
enum { TILE = 6, CHAINS = 4, LONE_BLOCKS = 4, FEW_BLOCKS = 2 };
#else
enum { TILE = 3, CHAINS = 2, LONE_BLOCKS = 2, FEW_BLOCKS = 1 };
#endif

/* ---- products ---- */

/* Element (i, k) is at data[i * row + k * step]. */
typedef struct operand {
    const float *data;
    int64_t row, step;
} operand;

/* Row i begins at data + i * row. */
typedef struct result {
    float *data;
    int64_t row;
} result;

/* A panel's row k begins at data + k * row. */
typedef struct panel {
    const float *data;
    int64_t row;
} panel;

TDI_INLINE void tile_steps(operand a, panel b, int64_t k, int rows, int vectors, int chains, tdi_vector *sum)
{
    for (int c = 0; c < chains; c++) {
        tdi_vector of_a[TILE];
        for (int i = 0; i < rows; i++)
            of_a[i] = tdi_splat(a.data[i * a.row + (k + c) * a.step]);
        for (int v = 0; v < vectors; v++) {
            tdi_vector of_b = tdi_load(b.data + (k + c) * b.row + v * TDI_WIDTH);
            for (int i = 0; i < rows; i++)
                sum[(c * rows + i) * vectors + v] += of_a[i] * of_b;
        }
    }
}

/* to += a . b; several chains of sums where one would wait for itself. */
TDI_INLINE void tile(operand a, panel b, int64_t depth, result to, int rows, int vectors, int chains)
{
    tdi_vector sum[24];
    int64_t k = 0;
    for (int i = 0; i < chains * rows * vectors; i++)
        sum[i] = (tdi_vector){0};
    for (; k + chains <= depth; k += chains)
        tile_steps(a, b, k, rows, vectors, chains, sum);
    for (; k < depth; k++)
        tile_steps(a, b, k, rows, vectors, 1, sum);
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) {
            tdi_vector all = tdi_load(to.data + i * to.row + v * TDI_WIDTH);
            for (int c = 0; c < chains; c++)
                all += sum[(c * rows + i) * vectors + v];
            tdi_store(to.data + i * to.row + v * TDI_WIDTH, all);
        }
}

#define TILE_CASE(rows, vectors, chains)                                                                               \
    case (rows)*16 + (vectors)-1:                                                                                      \
        tile(a, b, depth, to, rows, vectors, chains);                                                                  \
        break;

/* Only the shapes that product() and the panels make. */
static inline void any_tile(operand a, panel b, int64_t depth, result to, int64_t rows, int64_t vectors)
{
    switch (rows * 16 + vectors - 1) {
        TILE_CASE(1, 1, CHAINS)
        TILE_CASE(2, 1, CHAINS)
        TILE_CASE(3, 1, CHAINS)
        TILE_CASE(1, 4, CHAINS)
        TILE_CASE(2, 4, CHAINS / 2)
        TILE_CASE(3, 4, 1)
        TILE_CASE(1, 8, CHAINS / 2)
#if defined(__AVX512F__)
        TILE_CASE(4, 1, CHAINS)
        TILE_CASE(5, 1, CHAINS)
        TILE_CASE(6, 1, CHAINS)
        TILE_CASE(4, 4, 1)
        TILE_CASE(5, 4, 1)
        TILE_CASE(6, 4, 1)
        TILE_CASE(2, 8, 1)
        TILE_CASE(3, 8, 1)
        TILE_CASE(1, 12, 1)
        TILE_CASE(1, 16, 1)
#endif
    }
}

/* to += a . b over any number of rows and any depth, which is cut so that a cut's panel stays in the first cache. */
static inline void product(operand a, panel b, int64_t depth, result to, int64_t rows, int64_t vectors)
{
    int64_t most = rows > TILE ? DEPTH : depth;
    for (int64_t k = 0; k < depth; k += most) {
        int64_t cut = depth - k < most ? depth - k : most;
        for (int64_t i = 0; i < rows; i += TILE)
            any_tile((operand){a.data + i * a.row + k * a.step, a.row, a.step}, (panel){b.data + k * b.row, b.row}, cut,
                     (result){to.data + i * to.row, to.row}, rows - i < TILE ? rows - i : TILE, vectors);
    }
}

/* ---- parts of vectors ---- */

static inline int64_t blocks_of(int64_t units)
{
    return (units + TDI_WIDTH - 1) / TDI_WIDTH;
}

static inline tdi_vector load_part(const float *from, int64_t count)
{
    tdi_vector v = {0};
    if (count >= TDI_WIDTH)
        return tdi_load(from);
    memcpy(&v, from, (size_t)count * sizeof(float));
    return v;
}

static inline void store_part(float *to, tdi_vector v, int64_t count)
{
    if (count >= TDI_WIDTH)
        tdi_store(to, v);
    else
        memcpy(to, &v, (size_t)count * sizeof(float));
}

/* ---- squashing: as in math_isa.h, within the range that leads to a float other than 0 and 1 ---- */

/* 1 / x to the last place or the one before, x > 0. */
static inline tdi_vector reciprocal(tdi_vector x)
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
TDI_INLINE void exponentials(const tdi_vector *x, tdi_vector *scale, tdi_vector *p, int count)
{
    static const float rest[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                                 5.0000001201e-1f};
    const float magic = 12582912.0f;
    tdi_vector r[ABREAST];
    for (int i = 0; i < count; i++)
        scale[i] = x[i] * 1.44269504088896341f + magic;
    for (int i = 0; i < count; i++)
        r[i] = x[i] - (scale[i] - magic) * 0.693359375f;
    for (int i = 0; i < count; i++)
        r[i] -= (scale[i] - magic) * -2.12194440e-4f;
    for (int i = 0; i < count; i++)
        p[i] = r[i] * 1.9875691500e-4f + rest[0];
    for (int k = 1; k < 5; k++)
        for (int i = 0; i < count; i++)
            p[i] = p[i] * r[i] + rest[k];
    for (int i = 0; i < count; i++)
        p[i] = p[i] * (r[i] * r[i]) + r[i];
    for (int i = 0; i < count; i++)
        scale[i] = (tdi_vector)(((tdi_vector_bits)scale[i] - math_bits(magic) + 127) << 23);
}

/* NaN stays NaN: of the two it is the second operand that these give then. */
static inline tdi_vector within(tdi_vector x, float most)
{
#if defined(__AVX512F__)
    return (tdi_vector)_mm512_max_ps(_mm512_set1_ps(-most), _mm512_min_ps(_mm512_set1_ps(most), (__m512)x));
#else
    x = tdi_select(x > most, tdi_splat(most), x);
    return tdi_select(x < -most, tdi_splat(-most), x);
#endif
}

/* From e^-x and e^2x. */
static inline tdi_vector sigmoid_from(tdi_vector scale, tdi_vector p)
{
    return reciprocal((1.0f + scale) + scale * p);
}

static inline tdi_vector tangent_from(tdi_vector scale, tdi_vector p)
{
    tdi_vector less_one = scale * p + (scale - 1.0f);
    return less_one * reciprocal(less_one + 2.0f);
}

/* y = tanh(x) */
TDI_INLINE void tangents(const tdi_vector *x, tdi_vector *y, int count)
{
    tdi_vector twice[ABREAST], p[ABREAST], scale[ABREAST];
    for (int i = 0; i < count; i++)
        twice[i] = 2.0f * within(x[i], 10.0f);
    exponentials(twice, scale, p, count);
    for (int i = 0; i < count; i++)
        y[i] = tangent_from(scale[i], p[i]);
}

/* ---- who makes what ---- */

typedef struct share {
    int64_t row, rows;   /* of the batch */
    int64_t unit, units; /* with the lanes' meetings when these are not all */
    bool by_units;
} share;

static inline share share_of(const tdi_call *call, int64_t rows, int64_t units)
{
    if (call->split == TDI_ROWS)
        return (share){call->begin, call->end - call->begin, 0, units, false};
    if (call->split == TDI_COLUMNS)
        return (share){0, rows, call->begin, call->end - call->begin, true};
    return (share){0, rows, 0, units, false};
}

static inline bool usual(const tdi_lstm_attrs *attrs)
{
    return attrs->activation == TD_TANH && attrs->recurrent_activation == TD_SIGMOID;
}

/* What other lanes have made, asked for all at once: each line comes from another core's cache. */
static inline void fetch(const float *from, int64_t row, int64_t rows, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = begin; k < end; k += 16)
            __builtin_prefetch(from + i * row + k);
}

static inline void step_is_made(const tdi_call *call, const share *own)
{
    if (own->by_units)
        tdi_lockstep_advance(call->lockstep, call->lane);
}

static inline void wait_for_others(const tdi_call *call, const share *own)
{
    if (own->by_units)
        tdi_lockstep_wait(call->lockstep, call->lane);
}

#endif
