/* lstm_grad_isa.c - the steps of an LSTM backwards, and the gradient of its recurrent weights.
 *
 * Products are made as in lstm_isa.c; a panel holds the transposed rows of some units. For a single row they are not
 * transposed: dh are dot products with rows of the recurrent weights. */
#include "cpu/lstm/lstm_isa.h"

enum { GATES = TDI_LSTM_GATES, PANEL = 4 * TDI_WIDTH };
enum { LONE_BLOCKS = TDI_LSTM_LONE_BLOCKS, LONE = TDI_LSTM_LONE, QUARTERS = TDI_LSTM_QUARTERS };
enum { DOT_ROWS = LONE / QUARTERS < 4 ? LONE / QUARTERS : 4 }; /* dot products whose sums stay in registers */

/* ---- the steps backwards ---- */

typedef struct backward {
    const tdi_call *call;
    const tdi_lstm_attrs *attrs;
    tdi_lstm_reserve reserve;
    tdi_lstm_share own;
    int64_t panels, width; /* panels of units; floats of a row of dh and dc */
    bool lone;             /* one row */
    float *sums;           /* one row: [own units, WIDTH], each dot product's vector before it is added up */
    float *packed;         /* R' by panels [4 units, PANEL]; one row: as lstm_isa.h says, or NULL */
    float *dh, *dc;        /* [rows, width]: gradients that arrive from the next step */
    float *apart;          /* [rows, PANEL]: one gate's dh before its mask; NULL without a mask */
    float *row;            /* [5, own units]: gates and activated c, where activations are not the usual ones */
} backward;

static int64_t sums_floats(const backward *b)
{
    return b->lone ? b->own.units * TDI_WIDTH : 0;
}

static int64_t packed_floats(const backward *b)
{
    if (b->lone)
        return b->reserve.steps >= TDI_LSTM_PACKED_STEPS ? GATES * b->own.units * b->reserve.units : 0;
    return GATES * b->reserve.units * b->width;
}

static size_t backward_floats(const backward *b)
{
    int64_t mask = tdi_lstm_has(b->call, TDI_LSTM_GRAD_MASK), row = tdi_lstm_usual(b->attrs) ? 0 : GATES + 1;
    return (size_t)(sums_floats(b) + packed_floats(b) + 2 * b->own.rows * b->width + mask * b->own.rows * PANEL +
                    row * b->own.units);
}

static backward backward_of(const tdi_call *call)
{
    backward b = {.call = call, .attrs = call->attrs, .reserve = tdi_lstm_reserve_of(&call->in[TDI_LSTM_GRAD_RESERVE])};
    b.own = tdi_lstm_share_of(call, b.reserve.rows, b.reserve.units);
    b.panels = (b.own.units + PANEL - 1) / PANEL;
    b.width = b.panels * PANEL;
    b.lone = tdi_lstm_is_lone(&b.own, b.reserve.units) && !tdi_lstm_has(call, TDI_LSTM_GRAD_MASK);
    if (!call->scratch) /* prepare only wants the sizes */
        return b;
    b.sums = call->scratch;
    b.packed = packed_floats(&b) ? b.sums + sums_floats(&b) : NULL;
    b.dh = b.sums + sums_floats(&b) + packed_floats(&b);
    b.dc = b.dh + b.own.rows * b.width;
    float *behind = b.dc + b.own.rows * b.width;
    b.apart = tdi_lstm_has(call, TDI_LSTM_GRAD_MASK) ? behind : NULL;
    b.row = b.apart ? behind + b.own.rows * PANEL : behind;
    return b;
}

/* Packs a panel; its columns beyond the thread's own units are zeros. */
static void pack_panel(const backward *b, int64_t first, float *to)
{
    int64_t depth = GATES * b->reserve.units, units = tdi_least(PANEL, b->own.units - first);
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

/* Where blocks of units begin: in the reserve (c behind the gates); c of the step before (NULL: zeros); dh from outside
 * (NULL: zeros) and from the next step; dc, which becomes that of the step before; dz. Sections lie `units` apart. */
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
    tdi_vector c[TDI_MOST_VECTORS], squashed[TDI_MOST_VECTORS];
    for (int i = 0; i < count; i++)
        c[i] = tdi_load(b.made + GATES * b.units + i * TDI_WIDTH);
    tdi_tanh_vectors(c, squashed, count);
    for (int i = 0; i < count; i++)
        unsquash_block(b, i * TDI_WIDTH, squashed[i]);
}

static void unsquash_one(const blocks *b)
{
    unsquash(*b, 1);
}

static void unsquash_blocks(const blocks *b)
{
    unsquash(*b, TDI_MOST_VECTORS);
}

static const float *padded(const float *from, int64_t units, float *to)
{
    return from ? memcpy(to, from, (size_t)units * sizeof *to) : NULL;
}

/* Makes the rest of the units, fewer than a vector holds; dh and dc are whole vectors all the same. */
static void unsquash_rest(blocks b, int64_t units)
{
    float made[GATES + 1][TDI_WIDTH] = {{0}}, dz[GATES][TDI_WIDTH], before[TDI_WIDTH] = {0}, outside[TDI_WIDTH] = {0};
    for (int s = 0; s <= GATES; s++)
        padded(b.made + s * b.units, units, made[s]);
    blocks whole = {made[0],  padded(b.before, units, before), padded(b.outside, units, outside), b.dh, b.dc, dz[0],
                    TDI_WIDTH};
    unsquash_one(&whole);
    for (int g = 0; g < GATES; g++)
        memcpy(b.dz + g * b.units, dz[g], (size_t)units * sizeof(float));
}

/* The blocks of a row's own units. */
static blocks blocks_of(const backward *b, int64_t step, int64_t i)
{
    int64_t row = b->own.row + i, unit = b->own.unit;
    const float *outside = tdi_lstm_dh(&b->call->in[TDI_LSTM_GRAD_DY], b->attrs, &b->reserve, row, step);
    const float *before = tdi_lstm_c_before(b->call, &b->reserve, TDI_LSTM_GRAD_C, row, step);
    return (blocks){.made = tdi_lstm_at(&b->reserve, row, step, 0) + unit,
                    .before = before ? before + unit : NULL,
                    .outside = outside ? outside + unit : NULL,
                    .dh = b->dh + i * b->width,
                    .dc = b->dc + i * b->width,
                    .dz = tdi_lstm_z(&b->call->out, b->attrs, &b->reserve, row, step) + unit,
                    .units = b->reserve.units};
}

static void row_back(const backward *b, int64_t step, int64_t i)
{
    blocks at = blocks_of(b, step, i);
    int64_t units = b->own.units;
    for (int64_t count; units > 0; units -= count) {
        count = units >= TDI_MOST_VECTORS * TDI_WIDTH ? TDI_MOST_VECTORS * TDI_WIDTH : TDI_WIDTH;
        if (units < TDI_WIDTH)
            unsquash_rest(at, units);
        else if (count > TDI_WIDTH)
            unsquash_blocks(&at);
        else
            unsquash_one(&at);
        at = (blocks){at.made + count,
                      at.before ? at.before + count : NULL,
                      at.outside ? at.outside + count : NULL,
                      at.dh + count,
                      at.dc + count,
                      at.dz + count,
                      at.units};
    }
}

/* dc += dh * out * the derivative of c's activation; to = the activated c. */
static void through_cell(const backward *b, blocks at, const float *out, float *to)
{
    int64_t units = b->own.units;
    int activation = b->attrs->activation;
    const float *c = at.made + GATES * at.units;
    float *through = at.dz; /* free to use: dz is made later */
    memcpy(to, c, (size_t)units * sizeof *to);
    tdi_lstm_activate(activation, units, to);
    for (int64_t j = 0; j < units; j++)
        through[j] = at.dh[j] * out[j];
    tdi_lstm_slope(activation, units, tdi_lstm_keeps_output(activation) ? to : c, through);
    for (int64_t j = 0; j < units; j++)
        at.dc[j] += through[j];
}

/* Makes a row's gradients where activations are not the usual ones. */
static void row_back_otherwise(const backward *b, int64_t step, int64_t i)
{
    blocks at = blocks_of(b, step, i);
    int64_t units = b->own.units;
    const float *in = b->row, *forget = in + units, *candidate = forget + units, *out = candidate + units;
    float *squashed = b->row + GATES * units, *dh = b->dh + i * b->width;
    for (int g = 0; g < GATES; g++) {
        memcpy(b->row + g * units, at.made + g * at.units, (size_t)units * sizeof *squashed);
        if (!tdi_lstm_keeps_output(tdi_lstm_activation(b->attrs, g)))
            tdi_lstm_activate(tdi_lstm_activation(b->attrs, g), units, b->row + g * units);
    }
    for (int64_t j = 0; at.outside && j < units; j++)
        dh[j] += at.outside[j];
    through_cell(b, at, out, squashed);
    for (int64_t j = 0; j < units; j++) {
        at.dz[j] = at.dc[j] * candidate[j];
        at.dz[at.units + j] = at.before ? at.dc[j] * at.before[j] : 0.0f;
        at.dz[2 * at.units + j] = at.dc[j] * in[j];
        at.dz[3 * at.units + j] = dh[j] * squashed[j];
        at.dc[j] *= forget[j];
    }
    for (int g = 0; g < GATES; g++)
        tdi_lstm_slope(tdi_lstm_activation(b->attrs, g), units, at.made + g * at.units, at.dz + g * at.units);
}

static void step_back(const backward *b, int64_t step)
{
    for (int64_t i = 0; i < b->own.rows; i++)
        (tdi_lstm_usual(b->attrs) ? row_back : row_back_otherwise)(b, step, i);
}

/* dh += mask * one gate's dh. */
static void add_masked(const backward *b, int64_t gate, int64_t first)
{
    for (int64_t i = 0; i < b->own.rows; i++) {
        const float *mask = tdi_lstm_mask(b->call, TDI_LSTM_GRAD_MASK, b->own.row + i);
        float *dh = b->dh + i * b->width + first;
        for (int64_t j = 0; j < tdi_least(PANEL, b->own.units - first); j++)
            dh[j] += mask[gate * b->reserve.units + b->own.unit + first + j] * b->apart[i * PANEL + j];
    }
}

/* dh += dz R' over units [begin, end) of one gate, from the last to the first when `down`. */
static void add_gate_back(const backward *b, tdi_operand dz, int64_t gate, int64_t begin, int64_t end, bool down)
{
    int64_t k = gate * b->reserve.units + (down ? end - 1 : begin), next = down ? -1 : 1;
    for (int64_t p = 0; p < b->panels && begin < end; p++) {
        const float *packed = b->packed + (p * GATES * b->reserve.units + k) * PANEL;
        tdi_result to = {b->dh + p * PANEL, b->width, false};
        if (b->apart)
            to = (tdi_result){b->apart, PANEL, true};
        tdi_product((tdi_operand){dz.data + k, dz.row, next}, (tdi_panel){packed, next * PANEL}, end - begin, to,
                    b->own.rows, PANEL / TDI_WIDTH);
        if (b->apart)
            add_masked(b, gate, p * PANEL);
    }
}

/* Makes dh from dz R'. As forwards, two gates of the thread's own units come first, which came last in the step before;
 * the other two come last. */
static void recur_back(const backward *b, int64_t step)
{
    const tdi_lstm_share *own = &b->own;
    tdi_operand dz = {tdi_lstm_z(&b->call->out, b->attrs, &b->reserve, own->row, step),
                      b->call->out.shape.dim[1] * GATES * b->reserve.units, 1};
    int64_t begin = own->unit, end = begin + own->units, units = b->reserve.units, turn = step & 1 ? GATES - 1 : 0;
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

/* ---- one row ---- */

/* Adds to the sums of DOT_ROWS dot products, of dz and rows of R, over a panel's units. */
TDI_INLINE void add_dots(const tdi_vector *of_dz, const float *rows, int64_t row, int64_t gate, bool fresh, float *sums)
{
    tdi_vector sum[DOT_ROWS];
    TDI_UNROLL
    for (int j = 0; j < DOT_ROWS; j++)
        sum[j] = fresh ? (tdi_vector){0} : tdi_load(sums + j * TDI_WIDTH);
    TDI_UNROLL
    for (int v = 0; v < GATES * LONE_BLOCKS; v++) {
        TDI_UNROLL
        for (int j = 0; j < DOT_ROWS; j++)
            sum[j] += of_dz[v] * tdi_load(rows + j * row + v / LONE_BLOCKS * gate + v % LONE_BLOCKS * TDI_WIDTH);
    }
    TDI_UNROLL
    for (int j = 0; j < DOT_ROWS; j++)
        tdi_store(sums + j * TDI_WIDTH, sum[j]);
}

TDI_INLINE void load_panel(const float *dz, int64_t units, tdi_vector *of_dz)
{
    TDI_UNROLL
    for (int v = 0; v < GATES * LONE_BLOCKS; v++)
        of_dz[v] = tdi_load(dz + v / LONE_BLOCKS * units + v % LONE_BLOCKS * TDI_WIDTH);
}

/* The first unit, counted from the thread's own, of the quarter that a step takes after `done` others. */
static int64_t quarter(const backward *b, int64_t step, int done)
{
    return (step & 1 ? QUARTERS - 1 - done : done) * (b->own.units / QUARTERS);
}

/* Some quarters of the thread's own units; the sums of those from `begun` on have not begun. */
typedef struct quarters {
    int first, count, begun;
} quarters;

/* Adds a packed panel. */
static void add_packed(const backward *b, const float *dz, int64_t step, int64_t unit, quarters of)
{
    tdi_vector of_dz[GATES * LONE_BLOCKS];
    load_panel(dz + unit, b->reserve.units, of_dz);
    for (int i = of.first; i < of.first + of.count; i++) {
        int64_t begin = quarter(b, step, i), end = begin + b->own.units / QUARTERS;
        for (int64_t j = begin; j < end; j += DOT_ROWS)
            add_dots(of_dz, b->packed + (b->own.units * unit + j * LONE) * GATES, GATES * LONE, LONE, i >= of.begun,
                     b->sums + j * TDI_WIDTH);
    }
}

/* The same where R is read in place. (One function for both, with strides, is slower: docs/performance-notes.md.) */
static void add_unpacked(const backward *b, const float *dz, int64_t step, int64_t unit, quarters of)
{
    const float *recurrent = (const float *)b->call->in[TDI_LSTM_GRAD_R].data + unit;
    int64_t units = b->reserve.units;
    tdi_vector of_dz[GATES * LONE_BLOCKS];
    load_panel(dz + unit, units, of_dz);
    for (int i = of.first; i < of.first + of.count; i++) {
        int64_t begin = quarter(b, step, i), end = begin + b->own.units / QUARTERS;
        for (int64_t j = begin; j < end; j += DOT_ROWS)
            add_dots(of_dz, recurrent + (b->own.unit + j) * GATES * units, GATES * units, units, i >= of.begun,
                     b->sums + j * TDI_WIDTH);
    }
}

/* Adds the panels of units [begin, end); returns how many quarters' sums have begun. */
static int add_units_back(const backward *b, const float *dz, int64_t step, int64_t begin, int64_t end, quarters of)
{
    for (int64_t unit = begin; unit < end; unit += LONE) {
        (b->packed ? add_packed : add_unpacked)(b, dz, step, unit, of);
        of.begun = (int)tdi_most(of.begun, of.first + of.count);
    }
    return of.begun;
}

/* Makes dh of a single row: half of the thread's own units first and half last; meanwhile the others' arrive. */
static void recur_lone(const backward *b, int64_t step)
{
    enum { HALF = QUARTERS / 2 };
    const tdi_lstm_share *own = &b->own;
    const float *dz = tdi_lstm_z(&b->call->out, b->attrs, &b->reserve, own->row, step);
    int64_t begin = own->unit, end = begin + own->units, units = b->reserve.units;
    int begun = add_units_back(b, dz, step, begin, end, (quarters){0, HALF, 0});
    tdi_lstm_wait(b->call, own);
    tdi_fetch(dz, units, GATES, 0, begin);
    tdi_fetch(dz, units, GATES, end, units);
    begun = add_units_back(b, dz, step, 0, begin, (quarters){0, QUARTERS, begun});
    begun = add_units_back(b, dz, step, end, units, (quarters){0, QUARTERS, begun});
    add_units_back(b, dz, step, begin, end, (quarters){HALF, HALF, begun});
    for (int64_t j = 0; j < own->units; j += TDI_WIDTH)
        tdi_store(b->dh + j, tdi_fold_rows(b->sums + j * TDI_WIDTH));
}

static void begin_back(const backward *b)
{
    bool recurs = b->reserve.steps > 1 || b->attrs->passed;
    if (b->lone && b->packed)
        tdi_lstm_pack_lone((const float *)b->call->in[TDI_LSTM_GRAD_R].data + b->own.unit * GATES * b->reserve.units,
                           b->own.units, b->reserve.units, b->reserve.units, b->packed);
    for (int64_t p = 0; p < b->panels && recurs && !b->lone; p++)
        pack_panel(b, p * PANEL, b->packed + p * GATES * b->reserve.units * PANEL);
    memset(b->dh, 0, (size_t)(2 * b->own.rows * b->width) * sizeof(float)); /* dc too */
    for (int64_t i = 0; i < b->own.rows; i++) {
        const float *dc = tdi_lstm_dc(&b->call->in[TDI_LSTM_GRAD_DY], b->attrs, &b->reserve, b->own.row + i);
        if (dc)
            memcpy(b->dc + i * b->width, dc + b->own.unit, (size_t)b->own.units * sizeof(float));
    }
}

static void recur_any(const backward *b, int64_t step)
{
    (b->lone ? recur_lone : recur_back)(b, step);
}

/* Stores the gradients of the passed h and c. */
static void end_back(const backward *b)
{
    if (!b->attrs->passed)
        return;
    recur_any(b, 0);
    for (int64_t i = 0; i < b->own.rows; i++) {
        float *to = tdi_lstm_dstate(&b->call->out, &b->reserve, b->own.row + i) + b->own.unit;
        size_t size = (size_t)b->own.units * sizeof *to;
        memcpy(to, b->dh + i * b->width, size);
        memcpy(to + b->reserve.units, b->dc + i * b->width, size);
        for (int64_t g = 2; g < GATES; g++)
            memset(to + g * b->reserve.units, 0, size);
    }
    tdi_lstm_step_is_made(b->call, &b->own); /* only now this thread has stopped reading what the others made */
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
    if (step + 1 < b->reserve.steps)
        recur_any(b, step + 1);
    step_back(b, step);
    tdi_lstm_step_is_made(b->call, &b->own);
}

static void run_back(const tdi_call *call)
{
    backward b = backward_of(call);
    begin_back(&b);
    for (int64_t step = b.reserve.steps - 1; step >= 0; step--)
        make_step_back(&b, step);
    end_back(&b);
    tdi_lstm_wait(call, &b.own);
}

/* Makes all threads' shares on one thread, step by step, so that none has to wait. */
static void run_back_serially(const tdi_call *calls, int threads)
{
    int64_t steps = calls[0].in[TDI_LSTM_GRAD_RESERVE].shape.dim[1];
    for (int thread = 0; thread < threads; thread++) {
        backward b = backward_of(&calls[thread]);
        begin_back(&b);
    }
    for (int64_t step = steps - 1; step >= 0; step--)
        for (int thread = 0; thread < threads; thread++) {
            backward b = backward_of(&calls[thread]);
            make_step_back(&b, step);
        }
    for (int thread = 0; thread < threads; thread++) {
        backward b = backward_of(&calls[thread]);
        end_back(&b);
    }
}

TDI_CPU_KERNEL(lstm_grad, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run_serially = run_back_serially,
               .declines = tdi_lstm_declines, .prepare = prepare_back, .run = run_back);

extern const tdi_kernel TDI_ISA_NAME(tdi_cpu_lstm_grad_by_rows);
const tdi_kernel TDI_ISA_NAME(tdi_cpu_lstm_grad_by_rows) = {.name = TDI_ISA_TEXT " by rows lstm_grad",
                                                            .op = &tdi_op_lstm_grad,
                                                            .splits = TDI_CAN_ROWS,
                                                            .prepare = prepare_back,
                                                            .run = run_back};

/* ---- the recurrent weights' gradient ---- */

/* Rows [unit, unit + units) of the gradient: the sum of h' dz over all pairs of a row of the batch and a time, h being
 * what arrives there. Some pairs are summed at a time; in their order dz is a matrix, of which a panel is packed. */
typedef struct recurrent {
    const tdi_call *call;
    const tdi_lstm_attrs *attrs;
    tdi_lstm_reserve reserve;
    int64_t unit, units, pairs, columns;
    float *h;    /* [DEPTH, units], as one gate sees it */
    float *dz;   /* [DEPTH, PANEL] */
    float *sums; /* [units, PANEL], of columns that fill no panel */
} recurrent;

static recurrent recurrent_of(const tdi_call *call)
{
    recurrent r = {
        .call = call, .attrs = call->attrs, .reserve = tdi_lstm_reserve_of(&call->in[TDI_LSTM_RECURRENT_RESERVE])};
    bool by_rows = call->split == TDI_ROWS;
    r.unit = by_rows ? call->begin : 0;
    r.units = by_rows ? call->end - call->begin : r.reserve.units;
    r.pairs = r.reserve.rows * r.reserve.steps;
    r.columns = GATES * r.reserve.units;
    if (!call->scratch)
        return r;
    r.dz = call->scratch;
    r.sums = r.dz + TDI_LSTM_DEPTH * PANEL;
    r.h = r.sums + r.units * PANEL;
    return r;
}

static const float *pair_h(const recurrent *r, int64_t pair)
{
    int64_t time = pair % r->reserve.steps;
    return tdi_lstm_h_before(r->call, &r->reserve, TDI_LSTM_RECURRENT_H, pair / r->reserve.steps,
                             tdi_lstm_time(r->attrs, &r->reserve, time));
}

static void pack_h(const recurrent *r, int64_t first, int64_t count, int64_t gate)
{
    float *to = r->h;
    for (int64_t pair = first; pair < first + count; pair++, to += r->units) {
        const float *h = pair_h(r, pair),
                    *mask = tdi_lstm_mask(r->call, TDI_LSTM_RECURRENT_MASK, pair / r->reserve.steps);
        if (h)
            memcpy(to, h + r->unit, (size_t)r->units * sizeof *to);
        else
            memset(to, 0, (size_t)r->units * sizeof *to);
        for (int64_t i = 0; mask && i < r->units; i++)
            to[i] *= mask[gate * r->reserve.units + r->unit + i];
    }
}

/* Packs a panel of dz, so that it stays in the first-level cache; columns from `wide` on are zeros. */
static void pack_dz(const recurrent *r, const float *from, int64_t count, int64_t wide)
{
    float *to = r->dz;
    for (int64_t k = 0; k < count; k++, from += r->columns)
        for (int64_t j = 0; j < PANEL; j += TDI_WIDTH, to += TDI_WIDTH)
            tdi_store(to, j < wide ? tdi_load_first(from + j, wide - j) : (tdi_vector){0});
}

/* Adds the share of `count` pairs to some columns of the gradient or of `sums`. */
static void add_panel(const recurrent *r, int64_t count, tdi_result to)
{
    tdi_product((tdi_operand){r->h, 1, r->units}, (tdi_panel){r->dz, PANEL}, count, to, r->units, PANEL / TDI_WIDTH);
}

/* The same for fewer columns than a panel has: by way of `sums`. */
static void add_narrow(const recurrent *r, int64_t count, tdi_result to, int64_t wide)
{
    add_panel(r, count, (tdi_result){r->sums, PANEL, true});
    for (int64_t i = 0; i < r->units; i++)
        for (int64_t j = 0; j < wide; j++)
            to.data[i * to.row + j] = r->sums[i * PANEL + j] + (to.fresh ? 0.0f : to.data[i * to.row + j]);
}

/* Adds the share of `count` pairs from `first` on to columns [begin, end). */
static void add_pairs(const recurrent *r, int64_t first, int64_t count, int64_t begin, int64_t end)
{
    const float *dz = (const float *)r->call->in[TDI_LSTM_RECURRENT_DZ].data + first * r->columns;
    float *out = (float *)r->call->out.data + r->unit * r->columns;
    for (int64_t j = begin; j < end; j += PANEL) {
        tdi_result to = {out + j, r->columns, first == 0};
        pack_dz(r, dz + j, count, end - j);
        if (end - j < PANEL)
            add_narrow(r, count, to, end - j);
        else
            add_panel(r, count, to);
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
