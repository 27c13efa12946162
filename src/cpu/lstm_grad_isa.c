/* lstm_grad_isa.c - the steps of an LSTM, back, and the gradient of its recurrent weights.
 *
 * Products as in lstm_isa.c; a panel holds the transposed rows of some units. A single row needs none: its dh are dot
 * products with rows of the recurrent weights where they lie. */
#include "cpu/lstm_isa.h"

enum { GATES = TDI_LSTM_GATES, PANEL = 4 * TDI_WIDTH };
/* Vectors of dz, and rows' sums, that stay in registers. */
#if defined(__AVX512F__)
enum { DOT_BLOCKS = 4, DOT_ROWS = 4 };
#else
enum { DOT_BLOCKS = 2, DOT_ROWS = 4 };
#endif

/* ---- back ---- */

typedef struct backward {
    const tdi_call *call;
    const tdi_lstm_attrs *attrs;
    tdi_lstm_tape tape;
    tdi_lstm_share own;
    int64_t panels, width; /* of units; floats of a row of dh and dc */
    bool in_place;         /* one row: R is read where it lies */
    float *sums;           /* in place [own units, WIDTH]: of each dot product, before its vector is added up */
    float *packed;         /* by panels [4 units, PANEL] of R' */
    float *dh, *dc;        /* [rows, width]: what arrives from the step behind */
    float *apart;          /* [rows, PANEL] of one gate, before its mask; NULL without a mask */
} backward;

static size_t backward_floats(const backward *b)
{
    int64_t mask = tdi_lstm_has(b->call, TDI_LSTM_GRAD_MASK);
    int64_t weights = b->in_place ? b->own.units * TDI_WIDTH : GATES * b->tape.units * b->width;
    return (size_t)(weights + 2 * b->own.rows * b->width + mask * b->own.rows * PANEL);
}

static backward backward_of(const tdi_call *call)
{
    backward b = {.call = call, .attrs = call->attrs, .tape = tdi_lstm_tape_of(&call->in[TDI_LSTM_GRAD_TAPE])};
    b.own = tdi_lstm_share_of(call, b.tape.rows, b.tape.units);
    b.panels = (b.own.units + PANEL - 1) / PANEL;
    b.width = b.panels * PANEL;
    int64_t dot = DOT_BLOCKS * TDI_WIDTH,
            ends = b.own.unit | b.own.units | b.tape.units; /* multiples of a power of 2 */
    b.in_place = b.own.rows == 1 && !tdi_lstm_has(call, TDI_LSTM_GRAD_MASK) && ends % dot == 0;
    if (!call->scratch) /* prepare asks for sizes */
        return b;
    b.sums = b.packed = call->scratch;
    b.dh = b.packed + (b.in_place ? b.own.units * TDI_WIDTH : GATES * b.tape.units * b.width);
    b.dc = b.dh + b.own.rows * b.width;
    b.apart = tdi_lstm_has(call, TDI_LSTM_GRAD_MASK) ? b.dc + b.own.rows * b.width : NULL;
    return b;
}

/* Columns of the panel beyond the own units are zeros. */
static void pack_panel(const backward *b, int64_t first, float *to)
{
    int64_t depth = GATES * b->tape.units, units = tdi_least(PANEL, b->own.units - first);
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

/* Where blocks of units begin: on the tape (c behind the gates), c before (NULL: zeros), what arrives at h from outside
 * (NULL: zeros) and from the step behind; dc, which becomes the next; dz. Sections lie `units` apart. */
typedef struct blocks {
    const float *made, *before, *outside, *dh;
    float *dc, *dz;
    int64_t units;
} blocks;

TDI_INLINE void unsquash_block(blocks b, int64_t at, tdi_vector squashed)
{
    const float *made = b.made + at;
    tdi_vector in = tdi_load(made), forget = tdi_load(made + b.units), candidate = tdi_load(made + 2 * b.units);
    tdi_vector out = tdi_load(made + 3 * b.units), before = {0}, dh = tdi_load(b.dh + at);
    if (b.before)
        before = tdi_load(b.before + at);
    if (b.outside)
        dh += tdi_load(b.outside + at);
    tdi_vector dc = tdi_load(b.dc + at) + dh * out * (1.0f - squashed * squashed);
    tdi_store(b.dz + at, dc * candidate * in * (1.0f - in));
    tdi_store(b.dz + b.units + at, dc * before * forget * (1.0f - forget));
    tdi_store(b.dz + 2 * b.units + at, dc * in * (1.0f - candidate * candidate));
    tdi_store(b.dz + 3 * b.units + at, dh * squashed * out * (1.0f - out));
    tdi_store(b.dc + at, dc * forget);
}

TDI_INLINE void unsquash(blocks b, int count)
{
    tdi_vector c[TDI_LSTM_ABREAST], squashed[TDI_LSTM_ABREAST];
    for (int i = 0; i < count; i++)
        c[i] = tdi_load(b.made + GATES * b.units + i * TDI_WIDTH);
    tdi_tangents(c, squashed, count);
    for (int i = 0; i < count; i++)
        unsquash_block(b, i * TDI_WIDTH, squashed[i]);
}

static void unsquash_one(const blocks *b)
{
    unsquash(*b, 1);
}

static void unsquash_abreast(const blocks *b)
{
    unsquash(*b, TDI_LSTM_ABREAST);
}

static void unsquash_otherwise(const tdi_lstm_attrs *attrs, blocks b)
{
    int inner = attrs->activation, outer = attrs->recurrent_activation;
    for (int i = 0; i < TDI_WIDTH; i++) {
        const float *made = b.made + i;
        float in = made[0], forget = made[b.units], candidate = made[2 * b.units], out = made[3 * b.units];
        float squashed = tdi_unary_value(inner, made[GATES * b.units]);
        float dh = b.dh[i] + (b.outside ? b.outside[i] : 0.0f), *dz = b.dz + i;
        float dc = b.dc[i] + dh * out * tdi_unary_derivative(inner, squashed);
        dz[0] = dc * candidate * tdi_unary_derivative(outer, in);
        dz[b.units] = dc * (b.before ? b.before[i] : 0.0f) * tdi_unary_derivative(outer, forget);
        dz[2 * b.units] = dc * in * tdi_unary_derivative(inner, candidate);
        dz[3 * b.units] = dh * squashed * tdi_unary_derivative(outer, out);
        b.dc[i] = dc * forget;
    }
}

static const float *padded(const float *from, int64_t units, float *to)
{
    return from ? memcpy(to, from, (size_t)units * sizeof *to) : NULL;
}

/* Fewer units than a vector has; dh and dc are whole vectors all the same. */
static void unsquash_part(const tdi_lstm_attrs *attrs, blocks b, int64_t units)
{
    float made[GATES + 1][TDI_WIDTH] = {{0}}, dz[GATES][TDI_WIDTH], before[TDI_WIDTH] = {0}, outside[TDI_WIDTH] = {0};
    for (int s = 0; s <= GATES; s++)
        padded(b.made + s * b.units, units, made[s]);
    blocks whole = {made[0],  padded(b.before, units, before), padded(b.outside, units, outside), b.dh, b.dc, dz[0],
                    TDI_WIDTH};
    if (tdi_lstm_usual(attrs))
        unsquash_one(&whole);
    else
        unsquash_otherwise(attrs, whole);
    for (int g = 0; g < GATES; g++)
        memcpy(b.dz + g * b.units, dz[g], (size_t)units * sizeof(float));
}

static void row_back(const backward *b, int64_t step, int64_t i)
{
    int64_t row = b->own.row + i, unit = b->own.unit, units = b->own.units;
    const float *outside = tdi_lstm_dh(&b->call->in[TDI_LSTM_GRAD_DY], b->attrs, &b->tape, row, step);
    const float *before = tdi_lstm_c_before(b->call, &b->tape, TDI_LSTM_GRAD_C, row, step);
    blocks at = {.made = tdi_lstm_at(&b->tape, row, step, 0) + unit,
                 .before = before ? before + unit : NULL,
                 .outside = outside ? outside + unit : NULL,
                 .dh = b->dh + i * b->width,
                 .dc = b->dc + i * b->width,
                 .dz = tdi_lstm_z(&b->call->out, b->attrs, &b->tape, row, step) + unit,
                 .units = b->tape.units};
    for (int64_t count; units > 0; units -= count) {
        count = units >= TDI_LSTM_ABREAST * TDI_WIDTH && tdi_lstm_usual(b->attrs) ? TDI_LSTM_ABREAST * TDI_WIDTH
                                                                                  : TDI_WIDTH;
        if (units < TDI_WIDTH)
            unsquash_part(b->attrs, at, units);
        else if (count > TDI_WIDTH)
            unsquash_abreast(&at);
        else if (tdi_lstm_usual(b->attrs))
            unsquash_one(&at);
        else
            unsquash_otherwise(b->attrs, at);
        at = (blocks){at.made + count,
                      at.before ? at.before + count : NULL,
                      at.outside ? at.outside + count : NULL,
                      at.dh + count,
                      at.dc + count,
                      at.dz + count,
                      at.units};
    }
}

static void step_back(const backward *b, int64_t step)
{
    for (int64_t i = 0; i < b->own.rows; i++)
        row_back(b, step, i);
}

/* dh += mask . what one gate gave. */
static void add_masked(const backward *b, int64_t gate, int64_t first)
{
    for (int64_t i = 0; i < b->own.rows; i++) {
        const float *mask = tdi_lstm_mask(b->call, TDI_LSTM_GRAD_MASK, b->own.row + i);
        float *dh = b->dh + i * b->width + first;
        for (int64_t j = 0; j < tdi_least(PANEL, b->own.units - first); j++)
            dh[j] += mask[gate * b->tape.units + b->own.unit + first + j] * b->apart[i * PANEL + j];
    }
}

/* dh += dz R' over units [begin, end) of one gate, from the last to the first when `down`. */
static void add_gate_back(const backward *b, tdi_operand dz, int64_t gate, int64_t begin, int64_t end, bool down)
{
    int64_t k = gate * b->tape.units + (down ? end - 1 : begin), next = down ? -1 : 1;
    for (int64_t p = 0; p < b->panels && begin < end; p++) {
        const float *packed = b->packed + (p * GATES * b->tape.units + k) * PANEL;
        tdi_result to = {b->dh + p * PANEL, b->width, false};
        if (b->apart)
            to = (tdi_result){b->apart, PANEL, true};
        tdi_product((tdi_operand){dz.data + k, dz.row, next}, (tdi_panel){packed, next * PANEL}, end - begin, to,
                    b->own.rows, PANEL / TDI_WIDTH);
        if (b->apart)
            add_masked(b, gate, p * PANEL);
    }
}

/* As forwards: two gates of the own units first, which came last in the step before, the other two last. */
static void recur_back(const backward *b, int64_t step)
{
    const tdi_lstm_share *own = &b->own;
    tdi_operand dz = {tdi_lstm_z(&b->call->out, b->attrs, &b->tape, own->row, step),
                      b->call->out.shape.dim[1] * GATES * b->tape.units, 1};
    int64_t begin = own->unit, end = begin + own->units, units = b->tape.units, turn = step & 1 ? GATES - 1 : 0;
    int64_t first = own->by_units ? GATES / 2 : GATES;
    memset(b->dh, 0, (size_t)(own->rows * b->width) * sizeof(float));
    for (int64_t g = 0; g < first; g++)
        add_gate_back(b, dz, g ^ turn, begin, end, own->by_units);
    tdi_lstm_wait(b->call, own);
    for (int64_t g = 0; g < GATES; g++) {
        tdi_fetch(dz.data + g * units, dz.row, own->rows, 0, begin);
        tdi_fetch(dz.data + g * units, dz.row, own->rows, end, units);
    }
    for (int64_t g = 0; g < GATES; g++) {
        add_gate_back(b, dz, g, 0, begin, false);
        add_gate_back(b, dz, g, end, units, false);
    }
    for (int64_t g = first; g < GATES; g++)
        add_gate_back(b, dz, g ^ turn, begin, end, false);
}

/* ---- in place ---- */

/* The sums of DOT_ROWS dot products, of dz and rows of R from `from` on: over DOT_BLOCKS vectors of each gate. */
TDI_INLINE void add_dots(const tdi_vector *of_dz, const float *from, int64_t units, float *sums, bool fresh)
{
    tdi_vector sum[DOT_ROWS];
    TDI_UNROLL
    for (int j = 0; j < DOT_ROWS; j++)
        sum[j] = fresh ? (tdi_vector){0} : tdi_load(sums + j * TDI_WIDTH);
    TDI_UNROLL
    for (int g = 0; g < GATES; g++) {
        const float *gate = from + g * units;
        __asm__("" : "+r"(gate)); /* else GCC keeps the addresses of all vectors from call to call, in memory */
        TDI_UNROLL
        for (int v = 0; v < DOT_BLOCKS; v++) {
            TDI_UNROLL
            for (int j = 0; j < DOT_ROWS; j++)
                sum[j] += of_dz[g * DOT_BLOCKS + v] * tdi_load(gate + j * GATES * units + v * TDI_WIDTH);
        }
    }
    TDI_UNROLL
    for (int j = 0; j < DOT_ROWS; j++)
        tdi_store(sums + j * TDI_WIDTH, sum[j]);
}

/* Over DOT_BLOCKS vectors from `unit` on, of all gates; every other step goes downwards, as forwards. */
static void add_block_back(const backward *b, const float *dz, int64_t unit, bool down, bool fresh)
{
    const float *weights = (const float *)b->call->in[TDI_LSTM_GRAD_R].data + unit;
    int64_t units = b->tape.units, count = b->own.units / DOT_ROWS;
    tdi_vector of_dz[GATES * DOT_BLOCKS];
    TDI_UNROLL
    for (int v = 0; v < GATES * DOT_BLOCKS; v++)
        of_dz[v] = tdi_load(dz + v / DOT_BLOCKS * units + unit + v % DOT_BLOCKS * TDI_WIDTH);
    for (int64_t i = 0; i < count; i++) {
        int64_t j = (down ? count - 1 - i : i) * DOT_ROWS;
        add_dots(of_dz, weights + (b->own.unit + j) * GATES * units, units, b->sums + j * TDI_WIDTH, fresh);
    }
}

static void add_units_back(const backward *b, const float *dz, int64_t begin, int64_t end, bool down, bool fresh)
{
    for (int64_t unit = begin; unit < end; unit += DOT_BLOCKS * TDI_WIDTH)
        add_block_back(b, dz, unit, down, fresh && unit == begin);
}

/* The own units first; meanwhile the others' come. */
static void recur_in_place(const backward *b, int64_t step)
{
    const tdi_lstm_share *own = &b->own;
    const float *dz = tdi_lstm_z(&b->call->out, b->attrs, &b->tape, own->row, step);
    int64_t begin = own->unit, end = begin + own->units, units = b->tape.units;
    bool down = step & 1;
    add_units_back(b, dz, begin, end, down, true);
    tdi_lstm_wait(b->call, own);
    tdi_fetch(dz, units, GATES, 0, begin);
    tdi_fetch(dz, units, GATES, end, units);
    add_units_back(b, dz, 0, begin, down, false);
    add_units_back(b, dz, end, units, down, false);
    for (int64_t j = 0; j < own->units; j += TDI_WIDTH)
        tdi_store(b->dh + j, tdi_fold_rows(b->sums + j * TDI_WIDTH));
}

static void begin_back(const backward *b)
{
    for (int64_t p = 0; p < b->panels && !b->in_place && (b->tape.steps > 1 || b->attrs->passed); p++)
        pack_panel(b, p * PANEL, b->packed + p * GATES * b->tape.units * PANEL);
    memset(b->dh, 0, (size_t)(2 * b->own.rows * b->width) * sizeof(float)); /* dc too */
    for (int64_t i = 0; i < b->own.rows; i++) {
        const float *dc = tdi_lstm_dc(&b->call->in[TDI_LSTM_GRAD_DY], b->attrs, &b->tape, b->own.row + i);
        if (dc)
            memcpy(b->dc + i * b->width, dc + b->own.unit, (size_t)b->own.units * sizeof(float));
    }
}

static void recur_any(const backward *b, int64_t step)
{
    (b->in_place ? recur_in_place : recur_back)(b, step);
}

/* What goes to the passed h and c. */
static void end_back(const backward *b)
{
    if (!b->attrs->passed)
        return;
    recur_any(b, 0);
    for (int64_t i = 0; i < b->own.rows; i++) {
        float *to = tdi_lstm_dstate(&b->call->out, &b->tape, b->own.row + i) + b->own.unit;
        size_t size = (size_t)b->own.units * sizeof *to;
        memcpy(to, b->dh + i * b->width, size);
        memcpy(to + b->tape.units, b->dc + i * b->width, size);
        for (int64_t g = 2; g < GATES; g++)
            memset(to + g * b->tape.units, 0, size);
    }
    tdi_lstm_step_is_made(b->call, &b->own); /* only now is what the other lanes made not read any more */
}

static td_status prepare_back(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    backward b = backward_of(call);
    *scratch = backward_floats(&b) * sizeof(float);
    return TD_OK;
}

static void make_step_back(const backward *b, int64_t step)
{
    if (step + 1 < b->tape.steps)
        recur_any(b, step + 1);
    step_back(b, step);
    tdi_lstm_step_is_made(b->call, &b->own);
}

static void run_back(const tdi_call *call)
{
    backward b = backward_of(call);
    begin_back(&b);
    for (int64_t step = b.tape.steps - 1; step >= 0; step--)
        make_step_back(&b, step);
    end_back(&b);
    tdi_lstm_wait(call, &b.own);
}

/* Step by step, so that no lane finds itself waiting. */
static void run_back_together(const tdi_call *calls, int lanes)
{
    int64_t steps = calls[0].in[TDI_LSTM_GRAD_TAPE].shape.dim[1];
    for (int lane = 0; lane < lanes; lane++) {
        backward b = backward_of(&calls[lane]);
        begin_back(&b);
    }
    for (int64_t step = steps - 1; step >= 0; step--)
        for (int lane = 0; lane < lanes; lane++) {
            backward b = backward_of(&calls[lane]);
            make_step_back(&b, step);
        }
    for (int lane = 0; lane < lanes; lane++) {
        backward b = backward_of(&calls[lane]);
        end_back(&b);
    }
}

TDI_CPU_KERNEL(lstm_grad, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .together = run_back_together,
               .prepare = prepare_back, .run = run_back);

/* ---- the recurrent weights' gradient ---- */

/* Rows [unit, unit + units) of it: sums over pairs, a time of a row of the batch and the h that arrives there, of
 * h' dz. Some pairs at a time, in whose order dz is a matrix that is read where it lies. */
typedef struct recurrent {
    const tdi_call *call;
    const tdi_lstm_attrs *attrs;
    tdi_lstm_tape tape;
    int64_t unit, units, pairs, columns;
    float *h;    /* [DEPTH, units], as one gate sees it */
    float *dz;   /* [DEPTH, PANEL]: columns that fill no panel, and zeros */
    float *sums; /* [units, PANEL] of them */
} recurrent;

static recurrent recurrent_of(const tdi_call *call)
{
    recurrent r = {.call = call, .attrs = call->attrs, .tape = tdi_lstm_tape_of(&call->in[TDI_LSTM_RECURRENT_TAPE])};
    bool by_rows = call->split == TDI_ROWS;
    r.unit = by_rows ? call->begin : 0;
    r.units = by_rows ? call->end - call->begin : r.tape.units;
    r.pairs = r.tape.rows * r.tape.steps;
    r.columns = GATES * r.tape.units;
    if (!call->scratch)
        return r;
    r.dz = call->scratch;
    r.sums = r.dz + TDI_LSTM_DEPTH * PANEL;
    r.h = r.sums + r.units * PANEL;
    return r;
}

static const float *pair_h(const recurrent *r, int64_t pair)
{
    int64_t time = pair % r->tape.steps;
    return tdi_lstm_h_before(r->call, &r->tape, TDI_LSTM_RECURRENT_H, pair / r->tape.steps,
                             tdi_lstm_time(r->attrs, &r->tape, time));
}

static void pack_h(const recurrent *r, int64_t first, int64_t count, int64_t gate)
{
    float *to = r->h;
    for (int64_t pair = first; pair < first + count; pair++, to += r->units) {
        const float *h = pair_h(r, pair), *mask = tdi_lstm_mask(r->call, TDI_LSTM_RECURRENT_MASK, pair / r->tape.steps);
        if (h)
            memcpy(to, h + r->unit, (size_t)r->units * sizeof *to);
        else
            memset(to, 0, (size_t)r->units * sizeof *to);
        for (int64_t i = 0; mask && i < r->units; i++)
            to[i] *= mask[gate * r->tape.units + r->unit + i];
    }
}

/* Sums += what `count` pairs give to fewer columns than a panel has. */
static void add_narrow(const recurrent *r, tdi_panel dz, int64_t count, tdi_result sums, int64_t wide)
{
    for (int64_t k = 0; k < count; k++)
        for (int64_t j = 0; j < PANEL; j += TDI_WIDTH)
            tdi_store(r->dz + k * PANEL + j,
                      j < wide ? tdi_load_part(dz.data + k * dz.row + j, wide - j) : (tdi_vector){0});
    tdi_product((tdi_operand){r->h, 1, r->units}, (tdi_panel){r->dz, PANEL}, count, (tdi_result){r->sums, PANEL, true},
                r->units, PANEL / TDI_WIDTH);
    for (int64_t i = 0; i < r->units; i++)
        for (int64_t j = 0; j < wide; j++)
            sums.data[i * sums.row + j] = r->sums[i * PANEL + j] + (sums.fresh ? 0.0f : sums.data[i * sums.row + j]);
}

/* Columns [begin, end) of what `count` pairs from `first` on give. */
static void add_pairs(const recurrent *r, int64_t first, int64_t count, int64_t begin, int64_t end)
{
    const float *dz = (const float *)r->call->in[TDI_LSTM_RECURRENT_DZ].data + first * r->columns;
    float *out = (float *)r->call->out.data + r->unit * r->columns;
    for (int64_t j = begin; j < end; j += PANEL) {
        tdi_panel b = {dz + j, r->columns};
        tdi_result to = {out + j, r->columns, first == 0};
        if (end - j < PANEL)
            add_narrow(r, b, count, to, end - j);
        else
            tdi_product((tdi_operand){r->h, 1, r->units}, b, count, to, r->units, PANEL / TDI_WIDTH);
    }
}

static td_status prepare_recurrent(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    recurrent r = recurrent_of(call);
    *scratch = (size_t)(TDI_LSTM_DEPTH * (PANEL + r.units) + r.units * PANEL) * sizeof(float);
    return TD_OK;
}

static void run_recurrent(const tdi_call *call)
{
    recurrent r = recurrent_of(call);
    int64_t gates = tdi_lstm_has(call, TDI_LSTM_RECURRENT_MASK) ? GATES : 1, wide = r.columns / gates;
    for (int64_t k = 0; k < r.pairs; k += TDI_LSTM_DEPTH)
        for (int64_t g = 0; g < gates; g++) {
            int64_t count = tdi_least(TDI_LSTM_DEPTH, r.pairs - k);
            pack_h(&r, k, count, g);
            add_pairs(&r, k, count, g * wide, (g + 1) * wide);
        }
}

TDI_CPU_KERNEL(lstm_grad_recurrent, .splits = TDI_CAN_ROWS, .prepare = prepare_recurrent, .run = run_recurrent);
