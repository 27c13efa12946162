/* lstm_isa.h - what the steps of an LSTM share forwards and backwards: products of few rows, activations, the share of
 * a thread, and the layout of the weights for a single row. */
#ifndef TDI_CPU_LSTM_LSTM_ISA_H
#define TDI_CPU_LSTM_LSTM_ISA_H

#include "base/thread.h"
#include "cpu/elementwise/sigmoid_tanh_isa.h"
#include "cpu/elementwise/softmax_isa.h"
#include "cpu/isa.h"
#include "cpu/prefetch.h"
#include "cpu/vector_loops.h"
#include "ops/lstm.h"

enum { TDI_LSTM_DEPTH = 128 }; /* steps of a product that are made at a time, for many rows */
#if defined(__AVX512F__)
enum { TDI_LSTM_TILE = 6, TDI_LSTM_CHAINS = 4 };
#else
enum { TDI_LSTM_TILE = 3, TDI_LSTM_CHAINS = 2 };
#endif

/* ---- products ---- */

/* Element (i, k) is at data[i * row + k * step]. */
typedef struct tdi_operand {
    const float *data;
    int64_t row, step;
} tdi_operand;

/* Row i begins at data + i * row. `fresh`: the sums replace what is there; else they are added to it. */
typedef struct tdi_result {
    float *data;
    int64_t row;
    bool fresh;
} tdi_result;

/* A panel's row k begins at data + k * row. */
typedef struct tdi_panel {
    const float *data;
    int64_t row;
} tdi_panel;

/* One term of a sum of products: a . b over `depth`. */
typedef struct tdi_term {
    tdi_operand a;
    tdi_panel b;
    int64_t depth;
} tdi_term;

enum { TDI_LSTM_TERMS = 2 /* terms of a sum, at most */ };

/* Adds steps k to k + chains - 1 of a term. Sums are [chain, row, vector]. */
TDI_INLINE void tdi_tile_steps(const tdi_term *of, int64_t k, int rows, int vectors, int chains, tdi_vector *sum)
{
    TDI_UNROLL
    for (int c = 0; c < chains; c++) {
        tdi_vector of_a[TDI_LSTM_TILE];
        TDI_UNROLL
        for (int i = 0; i < rows; i++)
            of_a[i] = tdi_splat(of->a.data[i * of->a.row + (k + c) * of->a.step]);
        TDI_UNROLL
        for (int v = 0; v < vectors; v++) {
            tdi_vector of_b = tdi_load(of->b.data + (k + c) * of->b.row + v * TDI_WIDTH);
            TDI_UNROLL
            for (int i = 0; i < rows; i++)
                sum[(c * rows + i) * vectors + v] += of_a[i] * of_b;
        }
    }
}

TDI_INLINE void tdi_tile_clear(int rows, int vectors, int chains, tdi_vector *sum)
{
    TDI_UNROLL
    for (int c = 0; c < chains; c++) {
        TDI_UNROLL
        for (int i = 0; i < rows; i++) {
            TDI_UNROLL
            for (int v = 0; v < vectors; v++)
                sum[(c * rows + i) * vectors + v] = (tdi_vector){0};
        }
    }
}

/* Makes rows x vectors of the sum of the terms. A sum waits for the latency of its own additions, so few rows and
 * vectors keep several chains of sums. */
TDI_INLINE void tdi_tile(const tdi_term *term, int terms, tdi_result to, int rows, int vectors, int chains)
{
    tdi_vector sum[24];
    tdi_tile_clear(rows, vectors, chains, sum);
    for (int t = 0; t < terms; t++) {
        const tdi_term of = term[t];
        int64_t k = 0;
        for (; k + chains <= of.depth; k += chains)
            tdi_tile_steps(&of, k, rows, vectors, chains, sum);
        for (; k < of.depth; k++)
            tdi_tile_steps(&of, k, rows, vectors, 1, sum);
    }
    TDI_UNROLL
    for (int i = 0; i < rows; i++) {
        TDI_UNROLL
        for (int v = 0; v < vectors; v++) {
            tdi_vector all = to.fresh ? (tdi_vector){0} : tdi_load(to.data + i * to.row + v * TDI_WIDTH);
            TDI_UNROLL
            for (int c = 0; c < chains; c++)
                all += sum[(c * rows + i) * vectors + v];
            tdi_store(to.data + i * to.row + v * TDI_WIDTH, all);
        }
    }
}

#define TDI_TILE_CASE(rows, vectors, chains)                                                                           \
    case (rows)*16 + (vectors)-1:                                                                                      \
        tdi_tile(term, terms, to, rows, vectors, chains);                                                              \
        break;

/* Runs tdi_tile for the shapes that tdi_product and the panels use, and no others. */
static inline void tdi_any_tile(const tdi_term *term, int terms, tdi_result to, int64_t rows, int64_t vectors)
{
    switch (rows * 16 + vectors - 1) {
        TDI_TILE_CASE(1, 1, TDI_LSTM_CHAINS)
        TDI_TILE_CASE(2, 1, TDI_LSTM_CHAINS)
        TDI_TILE_CASE(3, 1, TDI_LSTM_CHAINS)
        TDI_TILE_CASE(1, 4, TDI_LSTM_CHAINS)
        TDI_TILE_CASE(2, 4, TDI_LSTM_CHAINS / 2)
        TDI_TILE_CASE(3, 4, 1)
        TDI_TILE_CASE(1, 8, TDI_LSTM_CHAINS / 2)
#if defined(__AVX512F__)
        TDI_TILE_CASE(4, 1, TDI_LSTM_CHAINS)
        TDI_TILE_CASE(5, 1, TDI_LSTM_CHAINS)
        TDI_TILE_CASE(6, 1, TDI_LSTM_CHAINS)
        TDI_TILE_CASE(4, 4, 1)
        TDI_TILE_CASE(5, 4, 1)
        TDI_TILE_CASE(6, 4, 1)
        TDI_TILE_CASE(2, 8, 1)
        TDI_TILE_CASE(3, 8, 1)
        TDI_TILE_CASE(1, 12, 1)
        TDI_TILE_CASE(1, 16, 1)
#endif
    }
}

/* The term as a tile's rows from row i on see it, for at most `most` steps of its depth from k on. */
static inline tdi_term tdi_term_at(const tdi_term *of, int64_t i, int64_t k, int64_t most)
{
    int64_t from = k < of->depth ? k : of->depth, rest = of->depth - from;
    return (tdi_term){.a = {of->a.data + i * of->a.row + from * of->a.step, of->a.row, of->a.step},
                      .b = {of->b.data + from * of->b.row, of->b.row},
                      .depth = rest < most ? rest : most};
}

/* The sum of the terms for any number of rows and any depth. For many rows the depth is cut, so that a cut's panel
 * stays in the first-level cache. */
static inline void tdi_sum_terms(const tdi_term *term, int terms, tdi_result to, int64_t rows, int64_t vectors)
{
    int64_t deepest = 0;
    for (int t = 0; t < terms; t++)
        deepest = tdi_most(deepest, term[t].depth);
    int64_t most = rows > TDI_LSTM_TILE ? TDI_LSTM_DEPTH : deepest;
    for (int64_t k = 0; k < deepest; k += most)
        for (int64_t i = 0; i < rows; i += TDI_LSTM_TILE) {
            tdi_term cut[TDI_LSTM_TERMS];
            for (int t = 0; t < terms; t++)
                cut[t] = tdi_term_at(&term[t], i, k, most);
            tdi_any_tile(cut, terms, (tdi_result){to.data + i * to.row, to.row, to.fresh && k == 0},
                         tdi_least(rows - i, TDI_LSTM_TILE), vectors);
        }
}

static inline void tdi_product(tdi_operand a, tdi_panel b, int64_t depth, tdi_result to, int64_t rows, int64_t vectors)
{
    tdi_sum_terms(&(tdi_term){a, b, depth}, 1, to, rows, vectors);
}

/* ---- shares and activations ---- */

static inline int64_t tdi_lstm_blocks(int64_t units)
{
    return (units + TDI_WIDTH - 1) / TDI_WIDTH;
}

typedef struct tdi_lstm_share {
    int64_t row, rows; /* of the batch */
    int64_t unit, units;
    bool by_units; /* threads share units, and wait for each other's steps */
} tdi_lstm_share;

static inline tdi_lstm_share tdi_lstm_share_of(const tdi_call *call, int64_t rows, int64_t units)
{
    if (call->split == TDI_ROWS)
        return (tdi_lstm_share){call->begin, call->end - call->begin, 0, units, false};
    if (call->split == TDI_COLUMNS)
        return (tdi_lstm_share){0, rows, call->begin, call->end - call->begin, true};
    return (tdi_lstm_share){0, rows, 0, units, false};
}

static inline bool tdi_lstm_usual(const tdi_lstm_attrs *attrs)
{
    return attrs->activation == TD_TANH && attrs->recurrent_activation == TD_SIGMOID;
}

/* y = activation(y) for some units of a row; softmax wants all of them. */
static inline void tdi_lstm_activate(int activation, int64_t units, float *y)
{
    if (activation == TD_SOFTMAX)
        tdi_softmax_row(units, y, y);
    else if (activation == TD_LOG_SOFTMAX)
        tdi_log_softmax_row(units, y, y);
    else
        TDI_ISA_NAME(tdi_vector_loops).epilogue(1, units, units, NULL, activation, y);
}

/* dy = dy * the activation's derivative, which follows from `kept`, as the reserve has it. */
static inline void tdi_lstm_slope(int activation, int64_t units, const float *kept, float *dy)
{
    if (activation == TD_SOFTMAX)
        tdi_softmax_slope_row(units, kept, dy, dy);
    else if (activation == TD_LOG_SOFTMAX)
        tdi_log_softmax_slope_row(units, kept, dy, dy);
    else
        TDI_ISA_NAME(tdi_vector_loops).slope(activation, units, kept, dy, dy);
}

/* ---- one row ---- */

/* A single row uses each weight of R once a step, so that a step takes as long as R takes to come from the second-level
 * cache. Two things shorten that.
 *
 * For many steps a thread packs its own units of R, since caches prefetch streams best: forwards their columns,
 * [own units / LONE, units, 4, LONE], backwards their rows, [units / LONE, own units, 4, LONE].
 *
 * A step begins with the weights that the step before has ended with, which the first-level cache still holds. To that
 * end a thread goes through its own units upwards in one step and downwards in the next. Backwards it takes them by
 * quarters, with the other threads' units between the first two and the last two quarters. Forwards likewise, except
 * when one panel holds all of its units: then by halves, or by eighths if the first-level cache is small. */
#if defined(__AVX512F__)
enum { TDI_LSTM_LONE_BLOCKS = 4 };
#else
enum { TDI_LSTM_LONE_BLOCKS = 2 };
#endif
enum { TDI_LSTM_LONE = TDI_LSTM_LONE_BLOCKS * TDI_WIDTH, TDI_LSTM_QUARTERS = 4 };
enum { TDI_LSTM_PACKED_STEPS = 8 }; /* steps that are worth packing for */

/* Whether there is one row and every thread's units are whole panels; LONE is a power of 2. */
static inline bool tdi_lstm_is_lone(const tdi_lstm_share *own, int64_t units)
{
    return own->rows == 1 && (own->unit | own->units | units) % TDI_LSTM_LONE == 0;
}

/* Packs the first `wanted` units of a matrix [rows, 4, units]. */
static inline void tdi_lstm_pack_lone(const float *from, int64_t rows, int64_t units, int64_t wanted, float *to)
{
    for (int64_t unit = 0; unit < wanted; unit += TDI_LSTM_LONE)
        for (int64_t i = 0; i < rows * TDI_LSTM_GATES; i++, to += TDI_LSTM_LONE)
            memcpy(to, from + i * units + unit, TDI_LSTM_LONE * sizeof *to);
}

/* `declines` of the kernels whose threads may share units. */
static inline const char *tdi_lstm_declines(const tdi_call *call)
{
    const tdi_lstm_attrs *attrs = call->attrs;
    bool over_units = tdi_lstm_over_units(attrs->activation) || tdi_lstm_over_units(attrs->recurrent_activation);
    return over_units ? "softmax over units" : NULL;
}

static inline void tdi_lstm_step_is_made(const tdi_call *call, const tdi_lstm_share *own)
{
    if (own->by_units)
        tdi_lockstep_advance(call->lockstep, call->thread);
}

static inline void tdi_lstm_wait(const tdi_call *call, const tdi_lstm_share *own)
{
    if (own->by_units)
        tdi_lockstep_wait(call->lockstep, call->thread);
}

#endif
