/* lstm_grad_isa.c - the steps of an LSTM, back, and the gradient of its recurrent weights.
 *
 * Products as in lstm_isa.c; a panel holds the transposed rows of some units. */
#include "cpu/lstm_isa.h"

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

/* What the next step back reads and writes. */
static void foresee_block_back(const backward *b, int64_t step, int64_t row, int64_t unit)
{
    if (step == 0)
        return;
    const float *made = tdi_lstm_at(&b->tape, row, step - 1, 0) + unit;
    const float *dz = tdi_lstm_z(&b->call->out, b->attrs, &b->tape, row, step - 1) + unit;
    const float *outside = tdi_lstm_dh(&b->call->in[TDI_LSTM_GRAD_DY], b->attrs, &b->tape, row, step - 1);
    for (int64_t s = 0; s <= GATES; s++)
        foresee(made + s * b->tape.units, TDI_WIDTH);
    for (int64_t g = 0; g < GATES; g++)
        foresee(dz + g * b->tape.units, TDI_WIDTH);
    if (outside)
        foresee(outside + unit, TDI_WIDTH);
}

static void block_back(const backward *b, int64_t step, int64_t i, int64_t at)
{
    unit_block u;
    int64_t row = b->own.row + i, unit = b->own.unit + at, count = b->own.units - at;
    const float *outside = tdi_lstm_dh(&b->call->in[TDI_LSTM_GRAD_DY], b->attrs, &b->tape, row, step);
    const float *before = tdi_lstm_c_before(b->call, &b->tape, TDI_LSTM_GRAD_C, row, step);
    float *dh = b->dh + i * b->width + at, *dc = b->dc + i * b->width + at;
    float *dz = tdi_lstm_z(&b->call->out, b->attrs, &b->tape, row, step) + unit;
    foresee_block_back(b, step, row, unit);
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

/* dh += dz R' over units [begin, end) of one gate, from the last to the first when `down`. */
static void add_gate_back(const backward *b, operand dz, int64_t gate, int64_t begin, int64_t end, bool down)
{
    int64_t k = gate * b->tape.units + (down ? end - 1 : begin), next = down ? -1 : 1;
    for (int64_t p = 0; p < b->panels && begin < end; p++) {
        const float *packed = b->packed + (p * GATES * b->tape.units + k) * PANEL;
        result to = {b->dh + p * PANEL, b->width};
        if (b->apart) {
            to = (result){b->apart, PANEL};
            memset(b->apart, 0, (size_t)(b->own.rows * PANEL) * sizeof(float));
        }
        product((operand){dz.data + k, dz.row, next}, (panel){packed, next * PANEL}, end - begin, to, b->own.rows,
                PANEL / TDI_WIDTH);
        if (b->apart)
            add_masked(b, gate, p * PANEL);
    }
}

/* As forwards: two gates of the own units first, which came last in the step before, the other two last. */
static void recur_back(const backward *b, int64_t step)
{
    const share *own = &b->own;
    operand dz = {tdi_lstm_z(&b->call->out, b->attrs, &b->tape, own->row, step),
                  b->call->out.shape.dim[1] * GATES * b->tape.units, 1};
    int64_t begin = own->unit, end = begin + own->units, units = b->tape.units, turn = step & 1 ? GATES - 1 : 0;
    memset(b->dh, 0, (size_t)(own->rows * b->width) * sizeof(float));
    for (int64_t g = 0; g < GATES / 2; g++)
        add_gate_back(b, dz, g ^ turn, begin, end, true);
    wait_for_others(b->call, own);
    for (int64_t g = 0; g < GATES; g++) {
        fetch(dz.data + g * units, dz.row, own->rows, 0, begin);
        fetch(dz.data + g * units, dz.row, own->rows, end, units);
    }
    for (int64_t g = 0; g < GATES; g++) {
        add_gate_back(b, dz, g, 0, begin, false);
        add_gate_back(b, dz, g, end, units, false);
    }
    for (int64_t g = GATES / 2; g < GATES; g++)
        add_gate_back(b, dz, g ^ turn, begin, end, false);
}

static void begin_back(const backward *b)
{
    for (int64_t p = 0; p < b->panels && (b->tape.steps > 1 || b->attrs->passed); p++)
        pack_panel(b, p * PANEL, b->packed + p * GATES * b->tape.units * PANEL);
    memset(b->dh, 0, (size_t)(2 * b->own.rows * b->width) * sizeof(float)); /* dc too */
    for (int64_t i = 0; i < b->own.rows; i++) {
        const float *dc = tdi_lstm_dc(&b->call->in[TDI_LSTM_GRAD_DY], b->attrs, &b->tape, b->own.row + i);
        if (dc)
            memcpy(b->dc + i * b->width, dc + b->own.unit, (size_t)b->own.units * sizeof(float));
    }
}

/* What goes to the passed h and c. */
static void end_back(const backward *b)
{
    if (!b->attrs->passed)
        return;
    recur_back(b, 0);
    for (int64_t i = 0; i < b->own.rows; i++) {
        float *to = tdi_lstm_dstate(&b->call->out, &b->tape, b->own.row + i) + b->own.unit;
        size_t size = (size_t)b->own.units * sizeof *to;
        memcpy(to, b->dh + i * b->width, size);
        memcpy(to + b->tape.units, b->dc + i * b->width, size);
        for (int64_t g = 2; g < GATES; g++)
            memset(to + g * b->tape.units, 0, size);
    }
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
        recur_back(b, step + 1);
    step_back(b, step);
    step_is_made(b->call, &b->own);
}

static void run_back(const tdi_call *call)
{
    backward b = backward_of(call);
    begin_back(&b);
    for (int64_t step = b.tape.steps - 1; step >= 0; step--)
        make_step_back(&b, step);
    end_back(&b);
    wait_for_others(call, &b.own);
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

/* Steps whose h are under way from memory while one is copied. */
enum { AHEAD = 8 };

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
            if (h && step + AHEAD < r->tape.steps)
                fetch(tdi_lstm_h(&r->tape, row, step + AHEAD - 1), 0, 1, r->unit, r->unit + r->units);
            if (h)
                memcpy(to, h + r->unit, (size_t)r->units * sizeof(float));
            else
                memset(to, 0, (size_t)r->units * sizeof(float));
            for (int64_t i = 0; mask && i < r->units; i++)
                to[i] *= mask[gate * r->tape.units + r->unit + i];
        }
    }
}

static const float *pair_dz(const recurrent *r, int64_t pair)
{
    return tdi_lstm_z(&r->call->in[TDI_LSTM_RECURRENT_DZ], r->attrs, &r->tape, pair / r->tape.steps,
                      pair % r->tape.steps);
}

/* Pairs [first, first + count) of dz's columns [column, column + wide). */
static void pack_dz(const recurrent *r, int64_t first, int64_t count, int64_t column, int64_t wide)
{
    for (int64_t k = 0; k < count; k++) {
        const float *from = pair_dz(r, first + k) + column;
        if (first + k + DEPTH < r->pairs)
            foresee(pair_dz(r, first + k + DEPTH) + column, wide);
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
