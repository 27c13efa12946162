/* lstm_isa.c - the steps of an LSTM, forwards and back, and the gradient of its recurrent weights.
 *
 * Everything is a product of few rows: a tile of sums stays in registers while the depth runs by. Forwards the weights
 * are read where they lie, which costs a single step nothing but itself; where dropout gives each gate an h of its own,
 * or the units are no whole vectors, they are packed: a panel holds, for some units, the columns of all four gates.
 * Back, a panel holds the transposed rows of some units. Lanes share rows of the batch, or, when there are few, units:
 * then each needs what the others made in the step before, and does its own part of the next product while it waits for
 * it. */
#include "base/thread.h"
#include "cpu/isa.h"
#include "cpu/math_isa.h"
#include "ops/lstm.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum { GATES = TDI_LSTM_GATES, BLOCK = GATES * TDI_WIDTH, PANEL = 4 * TDI_WIDTH, DEPTH = 128 };
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
static void any_tile(operand a, panel b, int64_t depth, result to, int64_t rows, int64_t vectors)
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
static void product(operand a, panel b, int64_t depth, result to, int64_t rows, int64_t vectors)
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

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
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

/* e^x = 2^n (1 + p), |x| <= 87 */
static inline tdi_vector exponential_parts(tdi_vector x, tdi_vector *p)
{
    const float magic = 12582912.0f;
    tdi_vector shifted = x * 1.44269504088896341f + magic, n = shifted - magic;
    tdi_vector r = (x - n * 0.693359375f) - n * -2.12194440e-4f, q = 1.9875691500e-4f * r + 1.3981999507e-3f;
    q = q * r + 8.3334519073e-3f;
    q = q * r + 4.1665795894e-2f;
    q = q * r + 1.6666665459e-1f;
    q = q * r + 5.0000001201e-1f;
    *p = q * (r * r) + r;
    return (tdi_vector)(((tdi_vector_bits)shifted - math_bits(magic) + 127) << 23);
}

static inline tdi_vector within(tdi_vector x, float most)
{
    x = tdi_select(x > most, tdi_splat(most), x);
    return tdi_select(x < -most, tdi_splat(-most), x);
}

static inline tdi_vector sigmoid(tdi_vector x)
{
    tdi_vector p, scale = exponential_parts(-within(x, 80.0f), &p);
    return reciprocal((1.0f + scale) + scale * p);
}

static inline tdi_vector tangent(tdi_vector x)
{
    tdi_vector p, scale = exponential_parts(2.0f * within(x, 10.0f), &p), less_one = scale * p + (scale - 1.0f);
    return less_one * reciprocal(less_one + 2.0f);
}

/* ---- who makes what ---- */

typedef struct share {
    int64_t row, rows;   /* of the batch */
    int64_t unit, units; /* with the lanes' meetings when these are not all */
    bool by_units;
} share;

static share share_of(const tdi_call *call, int64_t rows, int64_t units)
{
    if (call->split == TDI_ROWS)
        return (share){call->begin, call->end - call->begin, 0, units, false};
    if (call->split == TDI_COLUMNS)
        return (share){0, rows, call->begin, call->end - call->begin, true};
    return (share){0, rows, 0, units, false};
}

/* What other lanes have made, asked for all at once: each line comes from another core's cache. */
static void fetch(const float *from, int64_t row, int64_t rows, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = begin; k < end; k += 16)
            __builtin_prefetch(from + i * row + k);
}

static void step_is_made(const tdi_call *call, const share *own)
{
    if (own->by_units)
        tdi_lockstep_advance(call->lockstep, call->lane);
}

static void wait_for_others(const tdi_call *call, const share *own)
{
    if (own->by_units)
        tdi_lockstep_wait(call->lockstep, call->lane);
}

/* ---- forwards ---- */

typedef struct forward {
    const tdi_call *call;
    const tdi_lstm_attrs *attrs;
    tdi_lstm_tape tape;
    share own;
    int64_t blocks, wide; /* of units: all, in a panel */
    bool in_place;        /* R is read where it lies: its units are whole vectors, and all gates see the same h */
    float *packed;        /* by panels [units, blocks, 4, WIDTH] of R */
    float *sums;          /* by panels [rows, blocks, 4, WIDTH]; in place [rows, 4, own units] */
    float *masked;        /* [4, rows, units]: h as each gate sees it; NULL without a mask */
} forward;

static int64_t wide_blocks(int64_t rows)
{
    return rows == 1 ? LONE_BLOCKS : rows <= 3 ? FEW_BLOCKS : 1;
}

static size_t forward_floats(const forward *f)
{
    int64_t mask = tdi_lstm_has(f->call, TDI_LSTM_MASK);
    return (size_t)((f->tape.units + f->own.rows) * f->blocks * BLOCK + mask * GATES * f->own.rows * f->tape.units);
}

static forward forward_of(const tdi_call *call)
{
    forward f = {.call = call, .attrs = call->attrs, .tape = tdi_lstm_tape_of(&call->out)};
    f.own = share_of(call, f.tape.rows, f.tape.units);
    f.blocks = blocks_of(f.own.units);
    f.wide = wide_blocks(f.own.rows);
    f.in_place = f.own.units % TDI_WIDTH == 0 && !tdi_lstm_has(call, TDI_LSTM_MASK);
    f.packed = call->scratch;
    f.sums = f.packed + f.tape.units * f.blocks * BLOCK;
    f.masked = tdi_lstm_has(call, TDI_LSTM_MASK) ? f.sums + f.own.rows * f.blocks * BLOCK : NULL;
    return f;
}

static int64_t panel_blocks(const forward *f, int64_t first)
{
    return least(f->wide, f->blocks - first);
}

static void pack_forward(const forward *f)
{
    const float *recurrent = f->call->in[TDI_LSTM_R].data;
    float *to = f->packed;
    for (int64_t first = 0; first < f->blocks; first += f->wide)
        for (int64_t k = 0; k < f->tape.units; k++)
            for (int64_t b = first; b < first + panel_blocks(f, first); b++)
                for (int64_t g = 0; g < GATES; g++, to += TDI_WIDTH) {
                    int64_t unit = b * TDI_WIDTH;
                    const float *from = recurrent + (k * GATES + g) * f->tape.units + f->own.unit + unit;
                    tdi_store(to, load_part(from, f->own.units - unit));
                }
}

/* The sums begin as z. */
static void begin_in_place(const forward *f, int64_t step)
{
    float *to = f->sums;
    for (int64_t i = 0; i < f->own.rows; i++) {
        const float *z = tdi_lstm_z(&f->call->in[TDI_LSTM_Z], f->attrs, f->own.row + i, step) + f->own.unit;
        for (int64_t g = 0; g < GATES; g++, to += f->own.units)
            memcpy(to, z + g * f->tape.units, (size_t)f->own.units * sizeof *to);
    }
}

static void begin_sums(const forward *f, int64_t step)
{
    float *to = f->sums;
    for (int64_t first = 0; first < f->blocks; first += f->wide)
        for (int64_t i = 0; i < f->own.rows; i++) {
            const float *z = tdi_lstm_z(&f->call->in[TDI_LSTM_Z], f->attrs, f->own.row + i, step) + f->own.unit;
            for (int64_t b = first; b < first + panel_blocks(f, first); b++)
                for (int64_t g = 0; g < GATES; g++, to += TDI_WIDTH)
                    tdi_store(to, load_part(z + g * f->tape.units + b * TDI_WIDTH, f->own.units - b * TDI_WIDTH));
        }
}

/* sums += h R over units [begin, end) of h. */
static void add_products(const forward *f, operand h, int64_t begin, int64_t end)
{
    int64_t each = f->tape.units * BLOCK, sums = f->own.rows * BLOCK;
    for (int64_t first = 0; first < f->blocks && begin < end; first += f->wide) {
        int64_t row = panel_blocks(f, first) * BLOCK;
        panel b = {f->packed + first * each + begin * row, row};
        result to = {f->sums + first * sums, row};
        for (int64_t v = 0; f->masked && v < row / TDI_WIDTH; v++)
            product((operand){f->masked + v % GATES * f->own.rows * f->tape.units + begin, f->tape.units, 1},
                    (panel){b.data + v * TDI_WIDTH, row}, end - begin, (result){to.data + v * TDI_WIDTH, row},
                    f->own.rows, 1);
        if (!f->masked)
            product((operand){h.data + begin, h.row, 1}, b, end - begin, to, f->own.rows, row / TDI_WIDTH);
    }
}

/* One row and LONE_BLOCKS blocks of units: the sums of all four gates, `apart` in `to` and `gate` in b. */
TDI_INLINE void add_lone(const float *h, panel b, int64_t gate, int64_t depth, float *to, int64_t apart)
{
    tdi_vector sum[GATES * LONE_BLOCKS];
    for (int v = 0; v < GATES * LONE_BLOCKS; v++)
        sum[v] = tdi_load(to + v / LONE_BLOCKS * apart + v % LONE_BLOCKS * TDI_WIDTH);
    for (int64_t k = 0; k < depth; k++) {
        tdi_vector of_h = tdi_splat(h[k]);
        const float *from = b.data + k * b.row;
        for (int v = 0; v < GATES * LONE_BLOCKS; v++)
            sum[v] += of_h * tdi_load(from + v / LONE_BLOCKS * gate + v % LONE_BLOCKS * TDI_WIDTH);
    }
    for (int v = 0; v < GATES * LONE_BLOCKS; v++)
        tdi_store(to + v / LONE_BLOCKS * apart + v % LONE_BLOCKS * TDI_WIDTH, sum[v]);
}

/* One gate's sums, b from its column of R on. */
static void add_gate(const forward *f, operand h, panel b, int64_t depth, float *to)
{
    int64_t units = f->own.units;
    for (int64_t j = 0, vectors; j < units; j += vectors * TDI_WIDTH) {
        vectors = units - j >= 4 * TDI_WIDTH ? 4 : 1;
        product(h, (panel){b.data + j, b.row}, depth, (result){to + j, GATES * units}, f->own.rows, vectors);
    }
}

static void add_in_place(const forward *f, operand h, int64_t begin, int64_t end)
{
    int64_t units = f->own.units, all = f->tape.units, lone = LONE_BLOCKS * TDI_WIDTH, j = 0;
    const float *from = (const float *)f->call->in[TDI_LSTM_R].data + begin * GATES * all + f->own.unit;
    h.data += begin;
    if (f->own.rows == 1 && units % lone == 0)
        for (; j < units; j += lone)
            add_lone(h.data, (panel){from + j, GATES * all}, all, end - begin, f->sums + j, units);
    else
        for (int64_t g = 0; g < GATES; g++)
            add_gate(f, h, (panel){from + g * all, GATES * all}, end - begin, f->sums + g * units);
}

static void add_units(const forward *f, operand h, int64_t begin, int64_t end)
{
    if (begin == end)
        return;
    if (f->in_place) {
        add_in_place(f, h, begin, end);
        return;
    }
    for (int64_t i = 0; i < f->own.rows && f->masked; i++)
        for (int64_t g = 0; g < GATES; g++) {
            const float *mask = tdi_lstm_mask(f->call, TDI_LSTM_MASK, f->own.row + i) + g * f->tape.units;
            float *to = f->masked + (g * f->own.rows + i) * f->tape.units;
            for (int64_t k = begin; k < end; k++)
                to[k] = h.data[i * h.row + k] * mask[k];
        }
    add_products(f, h, begin, end);
}

/* The lane's own units first: the others' may still be under way. */
static void recur(const forward *f, int64_t step)
{
    const share *own = &f->own;
    operand h = {tdi_lstm_h_before(f->call, &f->tape, TDI_LSTM_H, own->row, step),
                 step ? f->tape.steps * f->tape.sections * f->tape.units : f->tape.units, 1};
    if (!h.data)
        return;
    add_units(f, h, own->unit, own->unit + own->units);
    wait_for_others(f->call, own);
    fetch(h.data, h.row, own->rows, 0, own->unit);
    fetch(h.data, h.row, own->rows, own->unit + own->units, f->tape.units);
    add_units(f, h, 0, own->unit);
    add_units(f, h, own->unit + own->units, f->tape.units);
}

/* Gates from their sums, `apart` from each other, c and h from them: made[6][WIDTH] as on the tape. */
static void squash(const float *sums, int64_t apart, const float *before, float made[6][TDI_WIDTH])
{
    tdi_vector in = sigmoid(tdi_load(sums)), forget = sigmoid(tdi_load(sums + apart));
    tdi_vector candidate = tangent(tdi_load(sums + 2 * apart)), out = sigmoid(tdi_load(sums + 3 * apart));
    tdi_vector c = forget * tdi_load(before) + in * candidate;
    tdi_store(made[0], in);
    tdi_store(made[1], forget);
    tdi_store(made[2], candidate);
    tdi_store(made[3], out);
    tdi_store(made[4], c);
    tdi_store(made[5], out * tangent(c));
}

static void squash_otherwise(const tdi_lstm_attrs *attrs, const float *sums, int64_t apart, const float *before,
                             float made[6][TDI_WIDTH])
{
    for (int i = 0; i < TDI_WIDTH; i++) {
        for (int g = 0; g < GATES; g++)
            made[g][i] =
                tdi_unary_value(g == TDI_LSTM_G ? attrs->activation : attrs->recurrent_activation, sums[g * apart + i]);
        made[4][i] = made[TDI_LSTM_F][i] * before[i] + made[TDI_LSTM_I][i] * made[TDI_LSTM_G][i];
        made[5][i] = made[TDI_LSTM_O][i] * tdi_unary_value(attrs->activation, made[4][i]);
    }
}

static inline bool usual(const tdi_lstm_attrs *attrs)
{
    return attrs->activation == TD_TANH && attrs->recurrent_activation == TD_SIGMOID;
}

static void make_block(const forward *f, int64_t step, int64_t row, int64_t unit, int64_t count, const float *sums)
{
    float made[6][TDI_WIDTH], before[TDI_WIDTH];
    int64_t apart = f->in_place ? f->own.units : TDI_WIDTH;
    const float *c = tdi_lstm_c_before(f->call, &f->tape, TDI_LSTM_C, row, step);
    tdi_store(before, c ? load_part(c + unit, count) : (tdi_vector){0});
    if (usual(f->attrs))
        squash(sums, apart, before, made);
    else
        squash_otherwise(f->attrs, sums, apart, before, made);
    int64_t skipped = GATES + 2 - f->tape.sections;
    for (int64_t s = skipped; s < GATES + 2; s++)
        store_part(tdi_lstm_at(&f->tape, row, step, s - skipped) + unit, tdi_load(made[s]), count);
}

static void make_in_place(const forward *f, int64_t step)
{
    for (int64_t i = 0; i < f->own.rows; i++)
        for (int64_t at = 0; at < f->own.units; at += TDI_WIDTH)
            make_block(f, step, f->own.row + i, f->own.unit + at, TDI_WIDTH, f->sums + i * GATES * f->own.units + at);
}

static void make_step(const forward *f, int64_t step)
{
    const float *sums = f->sums;
    for (int64_t first = 0; first < f->blocks; first += f->wide)
        for (int64_t i = 0; i < f->own.rows; i++)
            for (int64_t b = first; b < first + panel_blocks(f, first); b++, sums += BLOCK)
                make_block(f, step, f->own.row + i, f->own.unit + b * TDI_WIDTH, f->own.units - b * TDI_WIDTH, sums);
}

static td_status prepare_forward(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    forward f = forward_of(call);
    *scratch = forward_floats(&f) * sizeof(float);
    return TD_OK;
}

static void run_forward(const tdi_call *call)
{
    forward f = forward_of(call);
    if (!f.in_place && (f.tape.steps > 1 || tdi_lstm_has(call, TDI_LSTM_H)))
        pack_forward(&f);
    for (int64_t step = 0; step < f.tape.steps; step++) {
        (f.in_place ? begin_in_place : begin_sums)(&f, step);
        recur(&f, step);
        (f.in_place ? make_in_place : make_step)(&f, step);
        step_is_made(call, &f.own);
    }
    wait_for_others(call, &f.own); /* who may still read what this lane made */
}

TDI_CPU_KERNEL(lstm, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .together = true, .prepare = prepare_forward,
               .run = run_forward);

/* ---- back ---- */

typedef struct backward {
    const tdi_call *call;
    const tdi_lstm_attrs *attrs;
    tdi_lstm_tape tape;
    share own;
    int64_t panels, width; /* of units; floats of a row of dh and dc */
    float *packed;         /* by panels [4 units, PANEL] of R' */
    float *dh, *dc;        /* [rows, width]: what arrives from the step behind */
    float *apart;          /* [rows, PANEL] of one gate, before its mask; NULL without a mask */
} backward;

static size_t backward_floats(const backward *b)
{
    int64_t mask = tdi_lstm_has(b->call, TDI_LSTM_GRAD_MASK);
    return (size_t)(GATES * b->tape.units * b->width + 2 * b->own.rows * b->width + mask * b->own.rows * PANEL);
}

static backward backward_of(const tdi_call *call)
{
    backward b = {.call = call, .attrs = call->attrs, .tape = tdi_lstm_tape_of(&call->in[TDI_LSTM_GRAD_TAPE])};
    b.own = share_of(call, b.tape.rows, b.tape.units);
    b.panels = (b.own.units + PANEL - 1) / PANEL;
    b.width = b.panels * PANEL;
    b.packed = call->scratch;
    b.dh = b.packed + GATES * b.tape.units * b.width;
    b.dc = b.dh + b.own.rows * b.width;
    b.apart = tdi_lstm_has(call, TDI_LSTM_GRAD_MASK) ? b.dc + b.own.rows * b.width : NULL;
    return b;
}

/* Columns of the panel beyond the own units are zeros. */
static void pack_panel(const backward *b, int64_t first, float *to)
{
    int64_t depth = GATES * b->tape.units, units = least(PANEL, b->own.units - first);
    const float *from = (const float *)b->call->in[TDI_LSTM_GRAD_R].data + (b->own.unit + first) * depth;
    int64_t high = units / TDI_WIDTH * TDI_WIDTH, wide = depth / TDI_WIDTH * TDI_WIDTH;
    for (int64_t j = 0; j < high; j += TDI_WIDTH)
        for (int64_t k = 0; k < wide; k += TDI_WIDTH)
            tdi_transpose_square(from + j * depth + k, depth, to + k * PANEL + j, PANEL);
    for (int64_t k = 0; k < depth; k++) {
        for (int64_t j = k < wide ? high : 0; j < units; j++)
            to[k * PANEL + j] = from[j * depth + k];
        for (int64_t j = units; j < PANEL; j++)
            to[k * PANEL + j] = 0;
    }
}

/* dz and the next dc of WIDTH units of a row; `in` as on the tape, then c before and dh. */
typedef struct unit_block {
    float in[GATES + 1][TDI_WIDTH], before[TDI_WIDTH], dh[TDI_WIDTH], dc[TDI_WIDTH], dz[GATES][TDI_WIDTH];
} unit_block;

static void unsquash(unit_block *u)
{
    tdi_vector in = tdi_load(u->in[0]), forget = tdi_load(u->in[1]), candidate = tdi_load(u->in[2]);
    tdi_vector out = tdi_load(u->in[3]), squashed = tangent(tdi_load(u->in[4])), dh = tdi_load(u->dh);
    tdi_vector dc = tdi_load(u->dc) + dh * out * (1.0f - squashed * squashed);
    tdi_store(u->dz[0], dc * candidate * in * (1.0f - in));
    tdi_store(u->dz[1], dc * tdi_load(u->before) * forget * (1.0f - forget));
    tdi_store(u->dz[2], dc * in * (1.0f - candidate * candidate));
    tdi_store(u->dz[3], dh * squashed * out * (1.0f - out));
    tdi_store(u->dc, dc * forget);
}

static void unsquash_otherwise(const tdi_lstm_attrs *attrs, unit_block *u)
{
    int inner = attrs->activation, outer = attrs->recurrent_activation;
    for (int i = 0; i < TDI_WIDTH; i++) {
        float in = u->in[0][i], forget = u->in[1][i], candidate = u->in[2][i], out = u->in[3][i];
        float squashed = tdi_unary_value(inner, u->in[4][i]), dh = u->dh[i];
        float dc = u->dc[i] + dh * out * tdi_unary_derivative(inner, squashed);
        u->dz[0][i] = dc * candidate * tdi_unary_derivative(outer, in);
        u->dz[1][i] = dc * u->before[i] * tdi_unary_derivative(outer, forget);
        u->dz[2][i] = dc * in * tdi_unary_derivative(inner, candidate);
        u->dz[3][i] = dh * squashed * tdi_unary_derivative(outer, out);
        u->dc[i] = dc * forget;
    }
}

static void block_back(const backward *b, int64_t step, int64_t i, int64_t at)
{
    unit_block u;
    int64_t row = b->own.row + i, unit = b->own.unit + at, count = b->own.units - at;
    const float *outside = tdi_lstm_dh(&b->call->in[TDI_LSTM_GRAD_DY], b->attrs, &b->tape, row, step);
    const float *before = tdi_lstm_c_before(b->call, &b->tape, TDI_LSTM_GRAD_C, row, step);
    float *dh = b->dh + i * b->width + at, *dc = b->dc + i * b->width + at;
    float *dz = tdi_lstm_z(&b->call->out, b->attrs, row, step) + unit;
    for (int s = 0; s <= GATES; s++)
        tdi_store(u.in[s], load_part(tdi_lstm_at(&b->tape, row, step, s) + unit, count));
    tdi_store(u.before, before ? load_part(before + unit, count) : (tdi_vector){0});
    tdi_store(u.dh, outside ? load_part(outside + unit, count) + tdi_load(dh) : tdi_load(dh));
    tdi_store(u.dc, tdi_load(dc));
    if (usual(b->attrs))
        unsquash(&u);
    else
        unsquash_otherwise(b->attrs, &u);
    tdi_store(dc, tdi_load(u.dc));
    for (int g = 0; g < GATES; g++)
        store_part(dz + g * b->tape.units, tdi_load(u.dz[g]), count);
}

static void step_back(const backward *b, int64_t step)
{
    for (int64_t i = 0; i < b->own.rows; i++)
        for (int64_t at = 0; at < b->own.units; at += TDI_WIDTH)
            block_back(b, step, i, at);
}

/* dh += mask . what one gate gave. */
static void add_masked(const backward *b, int64_t gate, int64_t first)
{
    for (int64_t i = 0; i < b->own.rows; i++) {
        const float *mask = tdi_lstm_mask(b->call, TDI_LSTM_GRAD_MASK, b->own.row + i);
        float *dh = b->dh + i * b->width + first;
        for (int64_t j = 0; j < least(PANEL, b->own.units - first); j++)
            dh[j] += mask[gate * b->tape.units + b->own.unit + first + j] * b->apart[i * PANEL + j];
    }
}

/* dh += dz R' over units [begin, end) of every gate. */
static void add_back(const backward *b, operand dz, int64_t begin, int64_t end)
{
    int64_t units = b->tape.units;
    for (int64_t p = 0; p < b->panels && begin < end; p++)
        for (int64_t g = 0; g < GATES; g++) {
            int64_t k = g * units + begin;
            result to = {b->dh + p * PANEL, b->width};
            if (b->apart) {
                to = (result){b->apart, PANEL};
                memset(b->apart, 0, (size_t)(b->own.rows * PANEL) * sizeof(float));
            }
            product((operand){dz.data + k, dz.row, 1}, (panel){b->packed + (p * GATES * units + k) * PANEL, PANEL},
                    end - begin, to, b->own.rows, PANEL / TDI_WIDTH);
            if (b->apart)
                add_masked(b, g, p * PANEL);
        }
}

static void recur_back(const backward *b, int64_t step)
{
    const share *own = &b->own;
    operand dz = {tdi_lstm_z(&b->call->out, b->attrs, own->row, step), b->tape.steps * GATES * b->tape.units, 1};
    memset(b->dh, 0, (size_t)(own->rows * b->width) * sizeof(float));
    add_back(b, dz, own->unit, own->unit + own->units);
    wait_for_others(b->call, own);
    for (int64_t g = 0; g < GATES; g++) {
        fetch(dz.data + g * b->tape.units, dz.row, own->rows, 0, own->unit);
        fetch(dz.data + g * b->tape.units, dz.row, own->rows, own->unit + own->units, b->tape.units);
    }
    add_back(b, dz, 0, own->unit);
    add_back(b, dz, own->unit + own->units, b->tape.units);
}

static void begin_back(const backward *b)
{
    for (int64_t p = 0; p < b->panels && b->tape.steps > 1; p++)
        pack_panel(b, p * PANEL, b->packed + p * GATES * b->tape.units * PANEL);
    memset(b->dh, 0, (size_t)(2 * b->own.rows * b->width) * sizeof(float)); /* dc too */
    for (int64_t i = 0; i < b->own.rows; i++) {
        const float *dc = tdi_lstm_dc(&b->call->in[TDI_LSTM_GRAD_DY], b->attrs, &b->tape, b->own.row + i);
        if (dc)
            memcpy(b->dc + i * b->width, dc + b->own.unit, (size_t)b->own.units * sizeof(float));
    }
}

static td_status prepare_back(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    backward b = backward_of(call);
    *scratch = backward_floats(&b) * sizeof(float);
    return TD_OK;
}

static void run_back(const tdi_call *call)
{
    backward b = backward_of(call);
    begin_back(&b);
    for (int64_t step = b.tape.steps - 1; step >= 0; step--) {
        step_back(&b, step);
        step_is_made(call, &b.own);
        if (step)
            recur_back(&b, step);
    }
    wait_for_others(call, &b.own);
}

TDI_CPU_KERNEL(lstm_grad, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .together = true, .prepare = prepare_back,
               .run = run_back);

/* ---- the recurrent weights' gradient ---- */

/* Rows [unit, unit + units) of it: sums over pairs, a step and the h before it, of h' dz. */
typedef struct recurrent {
    const tdi_call *call;
    const tdi_lstm_attrs *attrs;
    tdi_lstm_tape tape;
    int64_t unit, units, pairs;
    float *h;    /* [pairs, units], as one gate sees it */
    float *dz;   /* [DEPTH, PANEL] */
    float *sums; /* [units, PANEL] */
} recurrent;

static recurrent recurrent_of(const tdi_call *call)
{
    recurrent r = {.call = call, .attrs = call->attrs, .tape = tdi_lstm_tape_of(&call->in[TDI_LSTM_RECURRENT_TAPE])};
    bool by_rows = call->split == TDI_ROWS;
    r.unit = by_rows ? call->begin : 0;
    r.units = by_rows ? call->end - call->begin : r.tape.units;
    r.pairs = r.tape.rows * r.tape.steps;
    r.dz = call->scratch;
    r.sums = r.dz + DEPTH * PANEL;
    r.h = r.sums + r.units * PANEL;
    return r;
}

static void pack_h(const recurrent *r, int64_t gate)
{
    float *to = r->h;
    for (int64_t row = 0; row < r->tape.rows; row++) {
        const float *mask = tdi_lstm_mask(r->call, TDI_LSTM_RECURRENT_MASK, row);
        for (int64_t step = 0; step < r->tape.steps; step++, to += r->units) {
            const float *h = tdi_lstm_h_before(r->call, &r->tape, TDI_LSTM_RECURRENT_H, row, step);
            if (h)
                memcpy(to, h + r->unit, (size_t)r->units * sizeof(float));
            else
                memset(to, 0, (size_t)r->units * sizeof(float));
            for (int64_t i = 0; mask && i < r->units; i++)
                to[i] *= mask[gate * r->tape.units + r->unit + i];
        }
    }
}

/* Pairs [first, first + count) of dz's columns [column, column + wide). */
static void pack_dz(const recurrent *r, int64_t first, int64_t count, int64_t column, int64_t wide)
{
    for (int64_t k = 0; k < count; k++) {
        int64_t pair = first + k;
        const float *from =
            tdi_lstm_z(&r->call->in[TDI_LSTM_RECURRENT_DZ], r->attrs, pair / r->tape.steps, pair % r->tape.steps) +
            column;
        for (int64_t j = 0; j < PANEL; j += TDI_WIDTH)
            tdi_store(r->dz + k * PANEL + j, j < wide ? load_part(from + j, wide - j) : (tdi_vector){0});
    }
}

static void make_panel(const recurrent *r, int64_t column, int64_t wide)
{
    int64_t columns = GATES * r->tape.units;
    memset(r->sums, 0, (size_t)(r->units * PANEL) * sizeof(float));
    for (int64_t k = 0; k < r->pairs; k += DEPTH) {
        int64_t count = least(DEPTH, r->pairs - k);
        pack_dz(r, k, count, column, wide);
        product((operand){r->h + k * r->units, 1, r->units}, (panel){r->dz, PANEL}, count, (result){r->sums, PANEL},
                r->units, PANEL / TDI_WIDTH);
    }
    for (int64_t i = 0; i < r->units; i++)
        memcpy((float *)r->call->out.data + (r->unit + i) * columns + column, r->sums + i * PANEL,
               (size_t)wide * sizeof(float));
}

static td_status prepare_recurrent(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    recurrent r = recurrent_of(call);
    *scratch = (size_t)(DEPTH * PANEL + r.units * (PANEL + r.pairs)) * sizeof(float);
    return TD_OK;
}

static void run_recurrent(const tdi_call *call)
{
    recurrent r = recurrent_of(call);
    bool masked = tdi_lstm_has(call, TDI_LSTM_RECURRENT_MASK);
    for (int64_t g = 0; g < GATES; g++) {
        if (g == 0 || masked)
            pack_h(&r, g);
        for (int64_t j = 0; j < r.tape.units; j += PANEL)
            make_panel(&r, g * r.tape.units + j, least(PANEL, r.tape.units - j));
    }
}

TDI_CPU_KERNEL(lstm_grad_recurrent, .splits = TDI_CAN_ROWS, .prepare = prepare_recurrent, .run = run_recurrent);

/* ---- what is taken from the tape ---- */

static void run_output(const tdi_call *call)
{
    const tdi_lstm_attrs *attrs = call->attrs;
    tdi_lstm_tape tape = tdi_lstm_tape_of(&call->in[TDI_LSTM_OUTPUT_TAPE]);
    share own = share_of(call, tape.rows, tape.units);
    int64_t given = attrs->sequences ? tape.steps : 1;
    size_t size = (size_t)own.units * sizeof(float);
    for (int64_t row = own.row; row < own.row + own.rows; row++) {
        float *to = (float *)call->out.data + row * (given + attrs->state) * tape.units + own.unit;
        for (int64_t step = tape.steps - given; step < tape.steps; step++, to += tape.units)
            memcpy(to, tdi_lstm_h(&tape, row, step) + own.unit, size);
        if (attrs->state)
            memcpy(to, tdi_lstm_c(&tape, row, tape.steps - 1) + own.unit, size);
    }
}

TDI_CPU_KERNEL(lstm_output, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = run_output);
