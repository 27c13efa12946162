/* lstm_isa.c - the steps of an LSTM forwards.
 *
 * A step is a product of few rows: a tile of sums stays in registers while the depth runs by. For few steps the weights
 * are read where they lie. For many steps and more than three rows, R is packed by panels of some columns, which the
 * first-level cache then holds for all rows; in R itself the elements of a column lie a power of two apart and evict
 * each other. (lstm_isa.h says how R is packed for one row.) Where dropout gives each gate an h of its own, or the
 * units are no whole vectors, R and W are always packed; a panel then holds, for some units, the columns of all four
 * gates.
 *
 * Threads share rows of the batch or, when rows are few, units. Then each thread needs what the others made in the
 * step before, and does some of its own part of the next product while it waits. */
#include "cpu/lstm/lstm_isa.h"
#include "cpu/features.h"

enum { GATES = TDI_LSTM_GATES, BLOCK = GATES * TDI_WIDTH };
enum { LONE_BLOCKS = TDI_LSTM_LONE_BLOCKS, LONE = TDI_LSTM_LONE, QUARTERS = TDI_LSTM_QUARTERS };
enum { PIECES = 4 }; /* pieces of half a panel that the first-level cache does not hold */
enum { RUNS = 2 * PIECES + 2 };
enum { LOOKS = 100 }; /* looks at the other threads' steps: for about as long as a hand-over takes */
enum { FEW_BLOCKS = TDI_WIDTH == 16 ? 2 : 1 }; /* blocks of a panel for two or three rows */
enum { AHEAD = 9 * TDI_LSTM_TILE };            /* steps of a lone row whose x W is made at a time */
/* Blocks whose gates are made together, in 32 or 16 registers. */
enum { PAIR = TDI_WIDTH == 16 ? TDI_EXPONENTIALS / TDI_LSTM_GATES : 1 };

/* A run of adjacent units of h. */
typedef struct run {
    int64_t first, count;
} run;

typedef struct forward {
    const tdi_call *call;
    const tdi_lstm_attrs *attrs;
    tdi_lstm_reserve reserve;
    tdi_lstm_share own;
    int64_t blocks, wide; /* blocks of units in all, and in a panel */
    int64_t features;     /* of x; 0: z comes in */
    bool in_place;        /* weights are read in place: units are whole vectors, and all gates see the same h */
    bool lone;            /* a lone row: one row for many steps */
    int half;             /* runs in half of a lone row's own units */
    int runs;             /* runs of its h in the order of even steps; odd steps begin with the last */
    run run[RUNS];
    float *packed;       /* R: by panels [units, blocks, 4, WIDTH]; in place, as packed for many steps, or NULL */
    float *sums;         /* by panels [rows, blocks, 4, WIDTH]; in place, [rows, 4, own units] */
    float *ahead;        /* [AHEAD, 4, own units]: x W of some steps, which become their sums; or NULL */
    bool biased;         /* the sums begin with b in them */
    float *packed_input; /* W by panels [features, blocks, 4, WIDTH] */
    float *masked;       /* [4, rows, units]: h as each gate sees it; NULL without a mask */
    float *row;          /* [5, own units]: gates and activated c, where activations are not the usual ones */
} forward;

static int64_t wide_blocks(int64_t rows)
{
    return rows == 1 ? LONE_BLOCKS : rows <= 3 ? FEW_BLOCKS : 1;
}

static bool looks_ahead(const forward *f)
{
    return f->in_place && f->features && f->own.rows == 1;
}

/* For weights that are read in place. */
static int64_t sums_floats(const forward *f)
{
    return GATES * f->own.units * (looks_ahead(f) ? AHEAD : f->own.rows);
}

/* R packed for in-place sums, for many steps and rows; two or three rows use each weight too seldom. */
static int64_t packed_floats(const forward *f)
{
    bool pays = f->own.rows > 3 && f->reserve.steps >= TDI_LSTM_PACKED_STEPS;
    return f->lone || pays ? GATES * f->own.units * f->reserve.units : 0;
}

static int64_t kept_floats(const forward *f)
{
    return f->in_place && tdi_is_constant_input(f->call, TDI_LSTM_R) ? packed_floats(f) : 0;
}

static size_t forward_floats(const forward *f)
{
    int64_t row = tdi_lstm_usual(f->attrs) ? 0 : (GATES + 1) * f->own.units;
    if (f->in_place)
        return (size_t)(sums_floats(f) + packed_floats(f) - kept_floats(f) + row);
    int64_t mask = tdi_lstm_has(f->call, TDI_LSTM_MASK);
    return (size_t)((f->reserve.units + f->own.rows + f->features) * f->blocks * BLOCK +
                    mask * GATES * f->own.rows * f->reserve.units + row);
}

static void add_runs(forward *f, int64_t unit, int64_t units, int count)
{
    for (int64_t length = units / count, i = 0; i < count && units; i++)
        f->run[f->runs++] = (run){unit + i * length, length};
}

static bool has_one_panel(const forward *f)
{
    return f->own.units == LONE;
}

/* Whether the first-level cache holds half of a panel beside what the gates need. */
static bool holds_half(void)
{
    return LONE / 2 * GATES * LONE * (int64_t)sizeof(float) <= tdi_cpu_first_cache() / 4 * 3;
}

/* How many runs half of the thread's own units are. Fewer loops take less time, but where there are several panels, or
 * a half is large, the first-level cache holds less of it. */
static int half_runs(const forward *f)
{
    if (has_one_panel(f))
        return holds_half() ? 1 : PIECES;
    return QUARTERS / 2;
}

/* Half of the thread's own units come first and half last, since the other threads' may still be under way. */
static void order_runs(forward *f)
{
    int64_t half = f->own.units / 2, end = f->own.unit + f->own.units;
    f->half = half_runs(f);
    add_runs(f, f->own.unit, half, f->half);
    add_runs(f, 0, f->own.unit, 1);
    add_runs(f, end, f->reserve.units - end, 1);
    add_runs(f, f->own.unit + half, half, f->half);
}

static forward forward_of(const tdi_call *call)
{
    forward f = {.call = call, .attrs = call->attrs, .reserve = tdi_lstm_reserve_of(&call->out)};
    f.own = tdi_lstm_share_of(call, f.reserve.rows, f.reserve.units);
    f.blocks = tdi_lstm_blocks(f.own.units);
    f.wide = wide_blocks(f.own.rows);
    f.features = tdi_lstm_features(call);
    f.in_place = f.own.units % TDI_WIDTH == 0 && !tdi_lstm_has(call, TDI_LSTM_MASK);
    f.lone = f.in_place && f.reserve.steps >= TDI_LSTM_PACKED_STEPS && tdi_lstm_is_lone(&f.own, f.reserve.units);
    if (f.lone)
        order_runs(&f);
    if (!call->scratch) /* prepare only wants the sizes */
        return f;
    if (f.in_place) {
        f.sums = call->scratch;
        f.ahead = looks_ahead(&f) ? f.sums : NULL;
        f.biased = f.ahead && f.own.units % LONE == 0;
        f.row = f.sums + sums_floats(&f);
        f.packed = tdi_packed_cache(call);
        if (!f.packed && packed_floats(&f)) {
            f.packed = f.row;
            f.row += packed_floats(&f);
        }
        return f;
    }
    f.packed = call->scratch;
    f.sums = f.packed + f.reserve.units * f.blocks * BLOCK;
    f.packed_input = f.sums + f.own.rows * f.blocks * BLOCK;
    float *behind = f.packed_input + f.features * f.blocks * BLOCK;
    f.masked = tdi_lstm_has(call, TDI_LSTM_MASK) ? behind : NULL;
    f.row = f.masked ? behind + GATES * f.own.rows * f.reserve.units : behind;
    return f;
}

static int64_t panel_blocks(const forward *f, int64_t first)
{
    return tdi_least(f->wide, f->blocks - first);
}

static void pack_forward(const forward *f, const float *matrix, int64_t depth, float *to)
{
    for (int64_t first = 0; first < f->blocks; first += f->wide)
        for (int64_t k = 0; k < depth; k++)
            for (int64_t b = first; b < first + panel_blocks(f, first); b++)
                for (int64_t g = 0; g < GATES; g++, to += TDI_WIDTH) {
                    int64_t unit = b * TDI_WIDTH;
                    const float *from = matrix + (k * GATES + g) * f->reserve.units + f->own.unit + unit;
                    tdi_store(to, tdi_load_first(from, f->own.units - unit));
                }
}

static tdi_operand input_of(const forward *f, int64_t step)
{
    return (tdi_operand){tdi_lstm_x(f->call, &f->reserve, f->own.row, step), f->reserve.steps * f->features, 1};
}

static float *panel_sums(const forward *f, int64_t first)
{
    return f->sums + first * f->own.rows * BLOCK;
}

static void copy_to_panel(const forward *f, int64_t step, int64_t first)
{
    float *to = panel_sums(f, first);
    for (int64_t i = 0; i < f->own.rows; i++) {
        const float *z =
            tdi_lstm_z(&f->call->in[TDI_LSTM_Z], f->attrs, &f->reserve, f->own.row + i, step) + f->own.unit;
        for (int64_t b = first; b < first + panel_blocks(f, first); b++)
            for (int64_t g = 0; g < GATES; g++, to += TDI_WIDTH)
                tdi_store(to, tdi_load_first(z + g * f->reserve.units + b * TDI_WIDTH, f->own.units - b * TDI_WIDTH));
    }
}

/* Begins a panel's sums with z, or with x W. */
static void begin_panel(const forward *f, int64_t step, int64_t first)
{
    int64_t row = panel_blocks(f, first) * BLOCK;
    if (f->features)
        tdi_product(input_of(f, step), (tdi_panel){f->packed_input + first * f->features * BLOCK, row}, f->features,
                    (tdi_result){panel_sums(f, first), row, true}, f->own.rows, row / TDI_WIDTH);
    else
        copy_to_panel(f, step, first);
}

/* Makes h as each gate sees it through its mask. */
static void mask_units(const forward *f, tdi_operand h, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < f->own.rows; i++)
        for (int64_t g = 0; g < GATES; g++) {
            const float *mask = tdi_lstm_mask(f->call, TDI_LSTM_MASK, f->own.row + i) + g * f->reserve.units;
            float *to = f->masked + (g * f->own.rows + i) * f->reserve.units;
            for (int64_t k = begin; k < end; k++)
                to[k] = h.data[i * h.row + k] * mask[k];
        }
}

/* Adds to a panel's sums h R over units [begin, end) of h, from the last to the first when `down`. */
static void add_panel(const forward *f, tdi_operand h, int64_t first, int64_t begin, int64_t end, bool down)
{
    int64_t row = panel_blocks(f, first) * BLOCK, k = down ? end - 1 : begin, next = down ? -1 : 1;
    tdi_panel b = {f->packed + first * f->reserve.units * BLOCK + k * row, next * row};
    tdi_result to = {panel_sums(f, first), row, false};
    if (!f->masked) {
        tdi_product((tdi_operand){h.data + k, h.row, next}, b, end - begin, to, f->own.rows, row / TDI_WIDTH);
        return;
    }
    for (int64_t v = 0; v < row / TDI_WIDTH; v++)
        tdi_product((tdi_operand){f->masked + v % GATES * f->own.rows * f->reserve.units + k, f->reserve.units, next},
                    (tdi_panel){b.data + v * TDI_WIDTH, b.row}, end - begin,
                    (tdi_result){to.data + v * TDI_WIDTH, row, false}, f->own.rows, 1);
}

/* Floats from unit to unit of h, from row to row, and from gate to gate. */
typedef struct lone_steps {
    int64_t next, row, gate;
} lone_steps;

/* Loads the sums of all gates of LONE units; gates are `row` floats apart. */
TDI_INLINE void load_lone(const float *from, int64_t row, tdi_vector *sum)
{
    TDI_UNROLL
    for (int g = 0; g < GATES; g++, from += row) {
        __asm__("" : "+r"(from)); /* else GCC computes the addresses of all vectors first, and keeps them in memory */
        TDI_UNROLL
        for (int v = 0; v < LONE_BLOCKS; v++)
            sum[g * LONE_BLOCKS + v] = tdi_load(from + v * TDI_WIDTH);
    }
}

TDI_INLINE void store_lone(float *to, int64_t row, const tdi_vector *sum)
{
    TDI_UNROLL
    for (int g = 0; g < GATES; g++, to += row) {
        __asm__("" : "+r"(to));
        TDI_UNROLL
        for (int v = 0; v < LONE_BLOCKS; v++)
            tdi_store(to + v * TDI_WIDTH, sum[g * LONE_BLOCKS + v]);
    }
}

/* Adds h R over some runs of h, each `next_run` behind the one before. */
TDI_INLINE void add_runs_of(const float *h, const float *rows, const run *over, int runs, int next_run, lone_steps step,
                            tdi_vector *sum)
{
    for (int i = 0; i < runs; i++, over += next_run) {
        const float *of_h = h + over->first * step.next, *row = rows + over->first * step.row;
        for (int64_t k = 0; k < over->count; k++, of_h += step.next, row += step.row) {
            tdi_vector unit = tdi_splat(*of_h);
            TDI_UNROLL
            for (int v = 0; v < GATES * LONE_BLOCKS; v++)
                sum[v] += unit * tdi_load(row + v / LONE_BLOCKS * step.gate + v % LONE_BLOCKS * TDI_WIDTH);
        }
    }
}

TDI_INLINE void add_lone(const float *h, const float *rows, const run *over, int runs, int next_run, lone_steps step,
                         tdi_result to)
{
    tdi_vector sum[GATES * LONE_BLOCKS];
    load_lone(to.data, to.row, sum);
    add_runs_of(h, rows, over, runs, next_run, step, sum);
    store_lone(to.data, to.row, sum);
}

static void add_unpacked(tdi_operand h, tdi_panel rows, int64_t count, int64_t gate, tdi_result to)
{
    add_lone(h.data, rows.data, &(run){0, count}, 1, 0, (lone_steps){h.step, rows.row, gate}, to);
}

/* Weights [depth, 4, units] from the thread's first unit on, in place; or packed panels of them, each [depth, vectors].
 */
typedef struct weights {
    const float *data;
    int64_t depth;
    bool packed;
} weights;

static int64_t panel_vectors(int64_t units)
{
    return units >= 4 * TDI_WIDTH ? 4 : 1;
}

/* The panel of a gate's own units from `unit` on. */
static tdi_panel panel_of(const forward *f, const weights *w, int64_t gate, int64_t unit, int64_t vectors)
{
    if (w->packed)
        return (tdi_panel){w->data + (gate * f->own.units + unit) * w->depth, vectors * TDI_WIDTH};
    return (tdi_panel){w->data + gate * f->reserve.units + unit, GATES * f->reserve.units};
}

/* The product a w over `count` rows of w: row `first`, and each time the row `next` further on. */
typedef struct factors {
    tdi_operand a;
    weights w;
    int64_t first, next, count;
} factors;

/* to [rows, 4, own units] = the sum of the products; added to `to` unless fresh. */
static void add_gates(const forward *f, const factors *of, int terms, float *to, int64_t rows, bool fresh)
{
    int64_t units = f->own.units;
    for (int64_t g = 0; g < GATES; g++)
        for (int64_t j = 0, vectors; j < units; j += vectors * TDI_WIDTH) {
            tdi_term term[TDI_LSTM_TERMS];
            vectors = panel_vectors(units - j);
            for (int t = 0; t < terms; t++) {
                tdi_panel b = panel_of(f, &of[t].w, g, j, vectors);
                term[t] = (tdi_term){of[t].a, {b.data + of[t].first * b.row, of[t].next * b.row}, of[t].count};
            }
            tdi_sum_terms(term, terms, (tdi_result){to + g * units + j, GATES * units, fresh}, rows, vectors);
        }
}

static void pack_gates(const forward *f)
{
    weights from = {(const float *)f->call->in[TDI_LSTM_R].data + f->own.unit, f->reserve.units, false};
    float *to = f->packed;
    for (int64_t g = 0; g < GATES; g++)
        for (int64_t j = 0, vectors; j < f->own.units; j += vectors * TDI_WIDTH) {
            vectors = panel_vectors(f->own.units - j);
            tdi_panel panel = panel_of(f, &from, g, j, vectors);
            for (int64_t k = 0; k < from.depth; k++, to += vectors * TDI_WIDTH)
                memcpy(to, panel.data + k * panel.row, (size_t)(vectors * TDI_WIDTH) * sizeof *to);
        }
}

/* The product h R over units [begin, end) of h, from the last to the first when `down`. */
static factors of_units(const forward *f, tdi_operand h, int64_t begin, int64_t end, bool down)
{
    int64_t k = down ? end - 1 : begin, next = down ? -1 : 1;
    const float *recurrent = (const float *)f->call->in[TDI_LSTM_R].data + f->own.unit;
    return (factors){.a = {h.data + k, h.row, next},
                     .w = {f->packed ? f->packed : recurrent, f->reserve.units, f->packed},
                     .first = k,
                     .next = next,
                     .count = end - begin};
}

static factors of_features(const forward *f, tdi_operand x)
{
    const float *from = (const float *)f->call->in[TDI_LSTM_W].data + f->own.unit;
    return (factors){.a = x, .w = {from, f->features, false}, .first = 0, .next = 1, .count = f->features};
}

static void add_in_place(const forward *f, tdi_operand h, int64_t begin, int64_t end, bool down)
{
    factors of = of_units(f, h, begin, end, down);
    bool lone = f->own.rows == 1 && f->own.units % LONE == 0;
    for (int64_t j = 0; lone && j < f->own.units; j += LONE) {
        tdi_panel b = panel_of(f, &of.w, 0, j, LONE_BLOCKS);
        add_unpacked(of.a, (tdi_panel){b.data + of.first * b.row, of.next * b.row}, of.count, f->reserve.units,
                     (tdi_result){f->sums + j, f->own.units, false});
    }
    if (!lone)
        add_gates(f, &of, 1, f->sums, f->own.rows, false);
}

static void copy_in_place(const forward *f, int64_t step)
{
    float *to = f->sums;
    for (int64_t i = 0; i < f->own.rows; i++) {
        const float *z =
            tdi_lstm_z(&f->call->in[TDI_LSTM_Z], f->attrs, &f->reserve, f->own.row + i, step) + f->own.unit;
        for (int64_t g = 0; g < GATES; g++, to += f->own.units)
            memcpy(to, z + g * f->reserve.units, (size_t)f->own.units * sizeof *to);
    }
}

static void find_sums(forward *f, int64_t step)
{
    if (f->ahead)
        f->sums = f->ahead + step % AHEAD * GATES * f->own.units;
}

static const float *bias_of(const forward *f)
{
    return tdi_lstm_has(f->call, TDI_LSTM_B) ? f->call->in[TDI_LSTM_B].data : NULL;
}

/* Adds x W for LONE units; W is read in place. */
TDI_INLINE void add_features(const float *x, const float *row, int64_t count, int64_t gate, tdi_vector *sum)
{
    for (int64_t k = 0; k < count; k++, row += GATES * gate) {
        tdi_vector feature = tdi_splat(x[k]);
        const float *from = row;
        TDI_UNROLL
        for (int g = 0; g < GATES; g++, from += gate) {
            __asm__("" : "+r"(from)); /* else GCC computes an address for each vector, and has no registers for them */
            TDI_UNROLL
            for (int v = 0; v < LONE_BLOCKS; v++)
                sum[g * LONE_BLOCKS + v] += feature * tdi_load(from + v * TDI_WIDTH);
        }
    }
}

/* Makes x W + b of some steps by whole panels. */
static void begin_panels(const forward *f, const factors *of, int64_t steps)
{
    const float *bias = bias_of(f);
    int64_t units = f->own.units, gate = f->reserve.units;
    for (int64_t j = 0; j < units; j += LONE)
        for (int64_t i = 0; i < steps; i++) {
            tdi_vector sum[GATES * LONE_BLOCKS] = {{0}};
            if (bias)
                load_lone(bias + f->own.unit + j, gate, sum);
            add_features(of->a.data + i * of->a.row, of->w.data + j, of->count, gate, sum);
            store_lone(f->ahead + i * GATES * units + j, units, sum);
        }
}

/* Begins the sums with x W: of one step, or of a lone row for several steps from this one on, so that W is read once
 * for them; then b is in them, if the units are whole panels. */
static void begin_in_place(forward *f, int64_t step)
{
    find_sums(f, step);
    if (!f->features) {
        copy_in_place(f, step);
        return;
    }
    if (f->ahead && step % AHEAD)
        return;
    factors of = of_features(f, input_of(f, step));
    if (!f->ahead) {
        add_gates(f, &of, 1, f->sums, f->own.rows, true);
        return;
    }
    int64_t steps = tdi_least(AHEAD, f->reserve.steps - step);
    of.a.row = steps > 1 ? input_of(f, step + 1).data - of.a.data : 0;
    if (f->biased)
        begin_panels(f, &of, steps);
    else
        add_gates(f, &of, 1, f->ahead, steps, true);
}

/* Adds to the sums h R over units [begin, end) of h, from the last to the first when `down`. */
static void add_units(const forward *f, tdi_operand h, int64_t begin, int64_t end, bool down)
{
    if (begin == end)
        return;
    if (f->in_place) {
        add_in_place(f, h, begin, end, down);
        return;
    }
    if (f->masked)
        mask_units(f, h, begin, end);
    for (int64_t first = 0; first < f->blocks; first += f->wide)
        add_panel(f, h, first, begin, end, down);
}

/* The h of the step before, [rows, units]; data is NULL where there is none. */
static tdi_operand h_before(const forward *f, int64_t step)
{
    return (tdi_operand){tdi_lstm_h_before(f->call, &f->reserve, TDI_LSTM_H, f->own.row, step),
                         step ? f->reserve.steps * f->reserve.sections * f->reserve.units : f->reserve.units, 1};
}

TDI_INLINE void fetch_others(const forward *f, tdi_operand h)
{
    tdi_fetch(h.data, h.row, f->own.rows, 0, f->own.unit);
    tdi_fetch(h.data, h.row, f->own.rows, f->own.unit + f->own.units, f->reserve.units);
}

/* Adds h R: half of the thread's own units first, the other half last, since the other threads' may still be under way.
 * The half that comes last is the first of the next step, which reads it backwards: what the first-level cache still
 * holds of it need not come from the second-level cache again. */
static void recur(const forward *f, int64_t step)
{
    int64_t begin = f->own.unit, end = begin + f->own.units, middle = begin + f->own.units / 2;
    tdi_operand h = h_before(f, step);
    bool odd = step & 1;
    if (!h.data)
        return;
    if (!f->own.by_units) {
        add_units(f, h, 0, f->reserve.units, false);
        return;
    }
    add_units(f, h, odd ? middle : begin, odd ? end : middle, true);
    tdi_lstm_wait(f->call, &f->own);
    fetch_others(f, h);
    add_units(f, h, 0, begin, false);
    add_units(f, h, end, f->reserve.units, false);
    add_units(f, h, odd ? begin : middle, odd ? middle : end, false);
}

/* Where blocks of units begin: the sums, from block to block and, `apart`, from gate to gate; c of the step before
 * (NULL: zeros); the reserve that is made and b (NULL: zeros), whose sections are `units` apart. */
typedef struct blocks {
    const float *sums, *before, *bias;
    float *made;
    int64_t next, apart, sections, units;
} blocks;

/* Stores the gates of blocks [at, at + count) into the reserve. */
TDI_INLINE void keep_gates(blocks b, int64_t at, int count, const tdi_vector *made)
{
    for (int k = 0; k < GATES * count; k++)
        tdi_store(b.made + k % GATES * b.units + (at + k / GATES) * TDI_WIDTH, made[k]);
}

TDI_INLINE void squash_gates(blocks b, int64_t at, int count, tdi_vector *c, tdi_vector *out)
{
    tdi_vector x[GATES * PAIR], p[GATES * PAIR], scale[GATES * PAIR], made[GATES * PAIR];
    TDI_UNROLL
    for (int k = 0; k < GATES * count; k++) {
        int64_t g = k % GATES, i = at + k / GATES;
        tdi_vector sum = tdi_load(b.sums + i * b.next + g * b.apart);
        if (b.bias)
            sum += tdi_load(b.bias + g * b.units + i * TDI_WIDTH);
        x[k] = g == TDI_LSTM_G ? 2.0f * tdi_clamp(sum, 10.0f) : -tdi_clamp(sum, 80.0f);
    }
    tdi_exponentials(x, scale, p, GATES * count);
    TDI_UNROLL
    for (int k = 0; k < GATES * count; k++)
        made[k] = k % GATES == TDI_LSTM_G ? tdi_tanh_of_power(scale[k], p[k]) : tdi_sigmoid_of_power(scale[k], p[k]);
    if (b.sections > 2)
        keep_gates(b, at, count, made);
    TDI_UNROLL
    for (int i = 0; i < count; i++) {
        const tdi_vector *of = made + i * GATES;
        c[i] = of[TDI_LSTM_I] * of[TDI_LSTM_G];
        if (b.before)
            c[i] += of[TDI_LSTM_F] * tdi_load(b.before + (at + i) * TDI_WIDTH);
        out[i] = of[TDI_LSTM_O];
    }
}

TDI_INLINE void squash(blocks b, int count)
{
    tdi_vector c[TDI_MOST_VECTORS], out[TDI_MOST_VECTORS], squashed[TDI_MOST_VECTORS];
    int pair = count < PAIR ? count : PAIR;
    TDI_UNROLL
    for (int i = 0; i < count; i += pair)
        squash_gates(b, i, pair, c + i, out + i);
    tdi_tanh_vectors(c, squashed, count);
    for (int i = 0; i < count; i++) {
        tdi_store(b.made + (b.sections - 2) * b.units + i * TDI_WIDTH, c[i]);
        tdi_store(b.made + (b.sections - 1) * b.units + i * TDI_WIDTH, out[i] * squashed[i]);
    }
}

static void squash_one(const blocks *b)
{
    squash(*b, 1);
}

static void squash_blocks(const blocks *b)
{
    squash(*b, TDI_MOST_VECTORS);
}

/* Makes the rest of a row's units, fewer than a vector holds. */
static void squash_rest(blocks b, int64_t units)
{
    float made[GATES + 2][TDI_WIDTH], before[TDI_WIDTH] = {0}, bias[GATES][TDI_WIDTH] = {{0}};
    if (b.before)
        memcpy(before, b.before, (size_t)units * sizeof *before);
    for (int g = 0; g < GATES && b.bias; g++)
        memcpy(bias[g], b.bias + g * b.units, (size_t)units * sizeof *before);
    blocks whole = {b.sums, before, bias[0], made[0], b.next, b.apart, b.sections, TDI_WIDTH};
    squash_one(&whole);
    for (int64_t s = 0; s < b.sections; s++)
        memcpy(b.made + s * b.units, made[s], (size_t)units * sizeof *before);
}

static void make_units(const forward *f, int64_t step, int64_t row, int64_t unit, int64_t units, const float *sums)
{
    const float *c = tdi_lstm_c_before(f->call, &f->reserve, TDI_LSTM_C, row, step);
    const float *bias = f->biased ? NULL : bias_of(f);
    blocks b = {.sums = sums,
                .before = c ? c + unit : NULL,
                .bias = bias ? bias + unit : NULL,
                .made = tdi_lstm_at(&f->reserve, row, step, 0) + unit,
                .next = f->in_place ? TDI_WIDTH : BLOCK,
                .apart = f->in_place ? f->own.units : TDI_WIDTH,
                .sections = f->reserve.sections,
                .units = f->reserve.units};
    for (int64_t count; units > 0; units -= count * TDI_WIDTH) {
        count = units >= TDI_MOST_VECTORS * TDI_WIDTH ? TDI_MOST_VECTORS : 1;
        if (units < TDI_WIDTH)
            squash_rest(b, units);
        else if (count == TDI_MOST_VECTORS)
            squash_blocks(&b);
        else
            squash_one(&b);
        b.sums += count * b.next;
        b.made += count * TDI_WIDTH;
        b.before = b.before ? b.before + count * TDI_WIDTH : NULL;
        b.bias = b.bias ? b.bias + count * TDI_WIDTH : NULL;
    }
}

static void make_in_place(const forward *f, int64_t step)
{
    for (int64_t i = 0; i < f->own.rows; i++)
        make_units(f, step, f->own.row + i, f->own.unit, f->own.units, f->sums + i * GATES * f->own.units);
}

static void make_panel(const forward *f, int64_t step, int64_t first)
{
    const float *sums = panel_sums(f, first);
    int64_t at = first * TDI_WIDTH, wide = panel_blocks(f, first);
    for (int64_t i = 0; i < f->own.rows; i++, sums += wide * BLOCK)
        make_units(f, step, f->own.row + i, f->own.unit + at, tdi_least(wide * TDI_WIDTH, f->own.units - at), sums);
}

/* ---- activations other than the usual ones ---- */

static void take_sums(const forward *f, int64_t i, int64_t gate, float *to)
{
    int64_t units = f->own.units;
    if (f->in_place)
        memcpy(to, f->sums + (i * GATES + gate) * units, (size_t)units * sizeof *to);
    for (int64_t first = 0; !f->in_place && first < f->blocks; first += f->wide) {
        int64_t wide = panel_blocks(f, first);
        const float *from = panel_sums(f, first) + i * wide * BLOCK + gate * TDI_WIDTH;
        for (int64_t at = first * TDI_WIDTH; at < units && wide > 0; at += TDI_WIDTH, from += BLOCK, wide--)
            memcpy(to + at, from, (size_t)tdi_least(TDI_WIDTH, units - at) * sizeof *to);
    }
}

static void keep_gate(const forward *f, int64_t step, int64_t i, int64_t gate, const float *from)
{
    float *kept = tdi_lstm_at(&f->reserve, f->own.row + i, step, gate) + f->own.unit;
    memcpy(kept, from, (size_t)f->own.units * sizeof *kept);
}

/* Makes a gate's values, and stores in the reserve what it keeps of them. */
static void make_gate(const forward *f, int64_t step, int64_t i, int64_t gate, float *to)
{
    const float *bias = f->biased ? NULL : bias_of(f);
    int64_t units = f->own.units;
    int activation = tdi_lstm_activation(f->attrs, (int)gate);
    take_sums(f, i, gate, to);
    for (int64_t j = 0; bias && j < units; j++)
        to[j] += bias[gate * f->reserve.units + f->own.unit + j];
    if (f->attrs->gates && !tdi_lstm_keeps_output(activation))
        keep_gate(f, step, i, gate, to);
    tdi_lstm_activate(activation, units, to);
    if (f->attrs->gates && tdi_lstm_keeps_output(activation))
        keep_gate(f, step, i, gate, to);
}

static void make_row(const forward *f, int64_t step, int64_t i)
{
    int64_t units = f->own.units, row = f->own.row + i, unit = f->own.unit;
    const float *before = tdi_lstm_c_before(f->call, &f->reserve, TDI_LSTM_C, row, step);
    float *c = tdi_lstm_c(&f->reserve, row, step) + unit, *h = tdi_lstm_h(&f->reserve, row, step) + unit;
    const float *in = f->row, *forget = in + units, *candidate = forget + units, *out = candidate + units;
    float *squashed = f->row + GATES * units;
    for (int64_t g = 0; g < GATES; g++)
        make_gate(f, step, i, g, f->row + g * units);
    for (int64_t j = 0; j < units; j++)
        c[j] = in[j] * candidate[j] + (before ? forget[j] * before[unit + j] : 0.0f);
    memcpy(squashed, c, (size_t)units * sizeof *c);
    tdi_lstm_activate(f->attrs->activation, units, squashed);
    for (int64_t j = 0; j < units; j++)
        h[j] = out[j] * squashed[j];
}

static void make_panels(const forward *f, int64_t step)
{
    for (int64_t first = 0; first < f->blocks; first += f->wide)
        make_panel(f, step, first);
}

static void make_rows(const forward *f, int64_t step)
{
    for (int64_t i = 0; i < f->own.rows; i++)
        make_row(f, step, i);
}

static void make(const forward *f, int64_t step)
{
    if (!tdi_lstm_usual(f->attrs))
        make_rows(f, step);
    else
        (f->in_place ? make_in_place : make_panels)(f, step);
}

/* ---- steps ---- */

/* Whether x W and h R are made in one pass: where the thread waits for no other between the two. */
static bool sums_at_once(const forward *f)
{
    return f->features && f->packed && !f->own.by_units;
}

static void sum_in_place(forward *f, int64_t step)
{
    tdi_operand h = h_before(f, step);
    if (sums_at_once(f) && h.data) {
        factors of[] = {of_features(f, input_of(f, step)), of_units(f, h, 0, f->reserve.units, false)};
        add_gates(f, of, 2, f->sums, f->own.rows, true);
        return;
    }
    begin_in_place(f, step);
    recur(f, step);
}

/* ---- a lone row for many steps ---- */

/* Adds to the sums h R over the runs [begin, end) of the step, if any. */
static void add_some_runs(const forward *f, int64_t step, const float *h, int begin, int end)
{
    bool odd = step & 1;
    int64_t panel = GATES * LONE * f->reserve.units;
    for (int64_t done = 0; done < f->own.units && begin < end; done += LONE) {
        int64_t j = odd ? f->own.units - LONE - done : done;
        add_lone(h, f->packed + j / LONE * panel, f->run + (odd ? f->runs - 1 - begin : begin), end - begin,
                 odd ? -1 : 1, (lone_steps){1, GATES * LONE, LONE}, (tdi_result){f->sums + j, f->own.units, false});
    }
}

/* Whether the other threads have made their step, or do so within LOOKS looks: a call that waits for them would have to
 * store the sums and load them again. */
TDI_INLINE bool others_are_here(const forward *f)
{
    if (!f->own.by_units)
        return true;
    for (int i = 0; i < LOOKS; i++)
        if (tdi_lockstep_reached(f->call->lockstep, f->call->thread))
            return true;
    return false;
}

/* Makes the sums where there is one panel. They stay in registers, unless other threads are late. */
static void sum_panel(const forward *f, int64_t step, tdi_operand h)
{
    const lone_steps steps = {1, GATES * LONE, LONE};
    bool odd = step & 1;
    int next = odd ? -1 : 1;
    const run *over = odd ? f->run + f->runs - 1 : f->run;
    int64_t units = f->own.units;
    tdi_vector sum[GATES * LONE_BLOCKS];
    load_lone(f->sums, units, sum);
    add_runs_of(h.data, f->packed, over, f->half, next, steps, sum);
    if (!others_are_here(f)) {
        store_lone(f->sums, units, sum);
        tdi_lstm_wait(f->call, &f->own);
        load_lone(f->sums, units, sum);
    }
    fetch_others(f, h);
    add_runs_of(h.data, f->packed, over + f->half * next, f->runs - f->half, next, steps, sum);
    store_lone(f->sums, units, sum);
}

/* Makes the sums of a lone row's step. What the other threads made is prefetched as soon as it is there. Several panels
 * take the last half one after the other, for what the first-level cache keeps of it. */
static void sum_lone(forward *f, int64_t step)
{
    tdi_operand h = h_before(f, step);
    begin_in_place(f, step);
    if (!h.data)
        return;
    if (has_one_panel(f)) {
        sum_panel(f, step, h);
        return;
    }
    int last = f->runs - f->half;
    add_some_runs(f, step, h.data, 0, 1);
    for (int i = 1; i < f->half; i++) {
        if (f->own.by_units && tdi_lockstep_reached(f->call->lockstep, f->call->thread))
            fetch_others(f, h);
        add_some_runs(f, step, h.data, i, i + 1);
    }
    tdi_lstm_wait(f->call, &f->own);
    fetch_others(f, h);
    add_some_runs(f, step, h.data, f->half, last);
    add_some_runs(f, step, h.data, last, f->runs);
}

static void sum_by_panels(forward *f, int64_t step)
{
    for (int64_t first = 0; first < f->blocks; first += f->wide)
        begin_panel(f, step, first);
    recur(f, step);
}

static td_status prepare_forward(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    forward f = forward_of(call);
    *scratch = forward_floats(&f) * sizeof(float);
    return TD_OK;
}

static size_t cache_bytes(const tdi_call *call)
{
    forward f = forward_of(call);
    return (size_t)kept_floats(&f) * sizeof(float);
}

static void begin_forward(const forward *f)
{
    if (!tdi_must_pack(f->call))
        return;
    if (f->lone)
        tdi_lstm_pack_lone((const float *)f->call->in[TDI_LSTM_R].data + f->own.unit, f->reserve.units,
                           f->reserve.units, f->own.units, f->packed);
    else if (f->in_place && f->packed)
        pack_gates(f);
    if (f->in_place)
        return;
    if (f->reserve.steps > 1 || tdi_lstm_has(f->call, TDI_LSTM_H))
        pack_forward(f, f->call->in[TDI_LSTM_R].data, f->reserve.units, f->packed);
    if (f->features)
        pack_forward(f, f->call->in[TDI_LSTM_W].data, f->features, f->packed_input);
}

static void make_step(forward *f, int64_t step)
{
    (f->lone ? sum_lone : f->in_place ? sum_in_place : sum_by_panels)(f, step);
    make(f, step);
    tdi_lstm_step_is_made(f->call, &f->own);
}

static void run_forward(const tdi_call *call)
{
    forward f = forward_of(call);
    begin_forward(&f);
    for (int64_t step = 0; step < f.reserve.steps; step++)
        make_step(&f, step);
    tdi_lstm_wait(call, &f.own); /* other threads may still read what this one has made */
}

/* Makes all threads' shares on one thread, step by step, so that none has to wait. */
static void run_forward_serially(const tdi_call *calls, int threads)
{
    for (int thread = 0; thread < threads; thread++) {
        forward f = forward_of(&calls[thread]);
        begin_forward(&f);
    }
    int64_t steps = calls[0].out.shape.dim[1];
    for (int64_t step = 0; step < steps; step++) {
        for (int thread = 0; thread < threads; thread++) {
            forward f = forward_of(&calls[thread]);
            make_step(&f, step);
        }
    }
}

TDI_CPU_KERNEL(lstm, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = run_forward, .run_serially = run_forward_serially,
               .declines = tdi_lstm_declines, .prepare = prepare_forward, .packed_cache_bytes = cache_bytes);

extern const tdi_kernel TDI_ISA_NAME(tdi_cpu_lstm_by_rows);
const tdi_kernel TDI_ISA_NAME(tdi_cpu_lstm_by_rows) = {.name = TDI_ISA_TEXT " by rows lstm",
                                                       .op = &tdi_op_lstm,
                                                       .splits = TDI_CAN_ROWS,
                                                       .prepare = prepare_forward,
                                                       .packed_cache_bytes = cache_bytes,
                                                       .run = run_forward};

/* ---- what is taken from the reserve ---- */

static void run_output(const tdi_call *call)
{
    const tdi_lstm_attrs *attrs = call->attrs;
    tdi_lstm_reserve reserve = tdi_lstm_reserve_of(&call->in[TDI_LSTM_OUTPUT_RESERVE]);
    tdi_lstm_share own = tdi_lstm_share_of(call, reserve.rows, reserve.units);
    int64_t given = attrs->sequences ? reserve.steps : 1;
    size_t size = (size_t)own.units * sizeof(float);
    for (int64_t row = own.row; row < own.row + own.rows; row++) {
        float *to = (float *)call->out.data + row * (given + attrs->state) * reserve.units + own.unit;
        for (int64_t step = reserve.steps - given; step < reserve.steps; step++, to += reserve.units)
            memcpy(to, tdi_lstm_h(&reserve, row, step) + own.unit, size);
        if (attrs->state)
            memcpy(to, tdi_lstm_c(&reserve, row, reserve.steps - 1) + own.unit, size);
    }
}

TDI_CPU_KERNEL(lstm_output, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = run_output);
