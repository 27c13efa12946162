/* matmul_isa.c - matrix products without packing: activation(op(a) . op(b) + bias), or op(a) . op(b) times a slope;
 * updates that make their gradient so.
 *
 * A block of ROWS x (COLUMNS vectors) of the result stays in registers while the depth runs by: each step loads COLUMNS
 * vectors of a row of b and multiplies them by ROWS elements of a. b's panel stays in the second-level cache from one
 * block of rows to the next; long depths are cut so that it does. a may be transposed at no cost, since its elements
 * are read one by one. Where b is transposed, either b's rows are transposed a panel at a time, or the product is
 * computed the other way round, result' = b . op(a)', over small transposed copies, whichever moves fewer numbers. Few
 * rows of a are multiplied by b's rows as they lie, by dot products. Where b has few columns they are transposed; where
 * a is transposed too, the product is, so that vectors stand along the depth or along a's rows.
 *
 * Where ROWS rows of a have zeros in one column, the block skips that step (skip_zeros_isa.h): in handwritten digits
 * four in five pixels are blank, and half of all steps are skipped. Results are the same but for the sign of a zero: no
 * step is skipped that would multiply zeros by an infinity or NaN, which gives NaN.
 *
 * Limit: large products are left to oneDNN, where there is oneDNN, which packs. */
#include "cpu/isa.h"
#include "cpu/skip_zeros_isa.h"
#include "cpu/vector_loops.h"

#if defined(__AVX512F__)
enum { ROWS = 8, COLUMNS = 3 };
#elif defined(__AVX2__)
enum { ROWS = 4, COLUMNS = 3 };
#else
enum { ROWS = 4, COLUMNS = 2 };
#endif
enum { DEPTH = 1024, CHUNK = 64, GROUP = 16, FEW = TDI_WIDTH * 3 / 4 /* rows */, FEW_COLUMNS = 4 };
enum { STEPS_AHEAD = TDI_WIDTH == 16 ? 4 : 0 /* with AVX-512 a vector is a cache line */ };
enum { CHECK = 4 /* checking that a row of b is finite takes at least as long as multiplying it by so many rows */ };

/* Element (i, k) of the left factor is at data[i * row + k * step]. */
typedef struct left {
    const float *data;
    int64_t row, step;
} left;

/* Row k of the right factor begins at data + k * row. */
typedef struct right {
    const float *data;
    int64_t row;
    bool finite; /* known to have neither infinities nor NaN; decided beforehand where a is transposed (with_zeros) */
} right;

typedef struct result {
    float *data;
    int64_t row;
} result;

/* The steps of the depth that add something to a block of rows: at[0 .. count), or [0, count) where `at` is NULL. */
typedef struct steps {
    int64_t count;
    const uint16_t *at;
} steps;

/* Epilogue: what happens to sums between the registers and the result. Its pointers move along with the result. */
typedef struct ending {
    const float *sums; /* the other threads' shares of the same sums, `apart` floats from each to the next; or NULL */
    int64_t apart;
    int thread, threads; /* this thread's share is in the registers */
    const float *bias;   /* or NULL */
    bool relu;
    const float *value; /* a relu's output, by whose slope the sums are multiplied; or NULL */
} ending;

static inline ending ending_at(ending e, int64_t offset, int64_t column)
{
    e.sums = e.sums ? e.sums + offset : NULL;
    e.bias = e.bias ? e.bias + column : NULL;
    e.value = e.value ? e.value + offset : NULL;
    return e;
}

/* Prefetches the result and the other threads' sums while the product is made: lines that other cores have written or
 * read take long to come. */
TDI_INLINE void prefetch_row(const ending *e, const float *to, int64_t offset, int columns)
{
    TDI_UNROLL
    for (int j = 0; j < columns; j++) {
        __builtin_prefetch(to + offset + j * TDI_WIDTH, 1);
        for (int thread = 0; thread < e->threads; thread++)
            if (thread != e->thread)
                __builtin_prefetch(e->sums + thread * e->apart + offset + j * TDI_WIDTH);
    }
}

TDI_INLINE tdi_vector ended(const ending *e, tdi_vector sum, int64_t offset, int64_t column)
{
    for (int thread = 0; thread < e->threads; thread++)
        if (thread != e->thread)
            sum += tdi_load(e->sums + thread * e->apart + offset);
    if (e->bias)
        sum += tdi_load(e->bias + column);
    if (e->value)
        sum = tdi_select(tdi_load(e->value + offset) > 0.0f, sum, (tdi_vector){0});
    return e->relu ? tdi_select(sum < 0.0f, (tdi_vector){0}, sum) : sum;
}

/* The distances of ROWS rows from the first: each is a register, or twice a register, since an x86 address may double
 * its index. Left alone, compilers add up from row to row, for which some CPUs have no slot left in a step of the
 * depth. */
typedef struct distances {
    int64_t one, three, four, five, seven;
} distances;

TDI_INLINE int64_t in_register(int64_t x)
{
#if defined(__x86_64__)
    __asm__("" : "+r"(x));
#endif
    return x;
}

TDI_INLINE distances distances_of(int64_t row)
{
    return (distances){in_register(row), in_register(3 * row), in_register(4 * row), in_register(5 * row),
                       in_register(7 * row)};
}

TDI_INLINE int64_t distance(distances d, int i)
{
    const int64_t all[] = {0, d.one, 2 * d.one, d.three, d.four, d.five, 2 * d.three, d.seven};
    return all[i];
}

TDI_INLINE void ask_for(const float *from, int vectors)
{
    TDI_UNROLL_ALL
    for (int i = 0; i < vectors; i++)
        __builtin_prefetch(from + i * TDI_WIDTH);
}

/* One step of the depth. Full blocks of several vectors, whose steps take long enough, prefetch the row of b some rows
 * below: long panels do not stay in the first-level cache, least of all where rows are a power of two apart. */
TDI_INLINE void add_products(const float *a, distances d, const float *b, int64_t b_row, int rows, int columns,
                             tdi_vector (*sum)[COLUMNS])
{
    tdi_vector of_b[COLUMNS];
    TDI_UNROLL_ALL
    for (int j = 0; j < columns; j++)
        of_b[j] = tdi_load(b + j * TDI_WIDTH);
    if (STEPS_AHEAD > 0 && rows == ROWS && columns > 1)
        ask_for(b + STEPS_AHEAD * b_row, columns);
    TDI_UNROLL_ALL
    for (int i = 0; i < rows; i++) {
        tdi_vector of_a = tdi_splat(a[distance(d, i)]);
        TDI_UNROLL_ALL
        for (int j = 0; j < columns; j++)
            sum[i][j] += of_a * of_b[j];
    }
}

/* A block of the result; the pointers are at its first row and column. */
typedef struct tile {
    left a;
    right b;
    result c;
    steps of;
    bool add;
    const ending *e; /* NULL: sums are stored as they are */
} tile;

/* Hides from the compiler where the result is. It would compute all addresses before the loop, and has no registers for
 * them. */
TDI_INLINE result anew(result c)
{
#if defined(__x86_64__)
    __asm__("" : "+r"(c.data), "+r"(c.row));
#endif
    return c;
}

TDI_INLINE void load_sums(result c, int rows, int columns, tdi_vector (*sum)[COLUMNS])
{
    distances down = distances_of(c.row);
    TDI_UNROLL_ALL
    for (int i = 0; i < rows; i++) {
        TDI_UNROLL_ALL
        for (int j = 0; j < columns; j++)
            sum[i][j] = tdi_load(c.data + distance(down, i) + j * TDI_WIDTH);
    }
}

TDI_INLINE void store_sums(result c, const ending *e, int rows, int columns, tdi_vector (*sum)[COLUMNS])
{
    distances down = distances_of(c.row);
    TDI_UNROLL_ALL
    for (int i = 0; i < rows; i++) {
        TDI_UNROLL_ALL
        for (int j = 0; j < columns; j++) {
            int64_t at = distance(down, i) + j * TDI_WIDTH;
            tdi_store(c.data + at, e ? ended(e, sum[i][j], at, j * TDI_WIDTH) : sum[i][j]);
        }
    }
}

/* Makes a block of rows x (columns vectors). */
TDI_INLINE void block(const tile *t, int rows, int columns)
{
    left a = t->a;
    right b = t->b;
    tdi_vector sum[ROWS][COLUMNS] = {{{0}}};
    distances d = distances_of(a.row);
    if (t->add)
        load_sums(anew(t->c), rows, columns, sum);
    for (int i = 0; t->e && i < rows; i++)
        prefetch_row(t->e, t->c.data, i * t->c.row, columns);
    if (t->of.at)
        for (const uint16_t *at = t->of.at, *end = at + t->of.count; at < end; at++)
            add_products(a.data + *at * a.step, d, b.data + *at * b.row, b.row, rows, columns, sum);
    else
        for (int64_t n = t->of.count; n > 0; n--, a.data += a.step, b.data += b.row)
            add_products(a.data, d, b.data, b.row, rows, columns, sum);
    if (t->e)
        store_sums(anew(t->c), t->e, rows, columns, sum);
    else
        store_sums(anew(t->c), NULL, rows, columns, sum); /* compiled without an epilogue's tests */
}

/* Each size is a function of its own: inlined into one loop over blocks, the addresses of all sizes would be computed
 * before the first block, which takes as long as half a block. */
typedef void block_of(const tile *t);

#define BLOCK(name_, rows_, columns_)                                                                                  \
    static __attribute__((noinline)) void name_(const tile *t)                                                         \
    {                                                                                                                  \
        block(t, rows_, columns_);                                                                                     \
    }
#define BLOCKS(stem_, rows_)                                                                                           \
    BLOCK(stem_##_single, rows_, 1) BLOCK(stem_##_double, rows_, 2) BLOCK(stem_##_wide, rows_, COLUMNS)
BLOCKS(whole, ROWS)
BLOCKS(half, ROWS / 2)
BLOCKS(quarter, ROWS / 4)
BLOCKS(one, 1)
#undef BLOCK
#undef BLOCKS

/* The block sizes, highest first; of[n - 1] makes n vectors. Where ROWS is 4 or COLUMNS is 2, two entries are the same
 * size. */
static const struct {
    int rows;
    block_of *of[3];
} heights[] = {{ROWS, {whole_single, whole_double, whole_wide}},
               {ROWS / 2, {half_single, half_double, half_wide}},
               {ROWS / 4, {quarter_single, quarter_double, quarter_wide}},
               {1, {one_single, one_double, one_wide}}};

/* Makes a panel of `vectors` vectors, by the highest blocks that fit into the rows left. */
static void panel(left a, right b, result c, int64_t rows, int64_t vectors, const steps *of, bool add, const ending *e)
{
    for (int64_t i = 0, h = 0; i < rows; i += heights[h].rows) {
        while (heights[h].rows > rows - i)
            h++;
        ending end = e ? ending_at(*e, i * c.row, 0) : (ending){0};
        tile t = {
            {a.data + i * a.row, a.row, a.step}, b, {c.data + i * c.row, c.row}, of[i / ROWS], add, e ? &end : NULL};
        heights[h].of[vectors - 1](&t);
    }
}

/* Applies the epilogue to sums that are in the result already. */
static void end_rows(ending e, int64_t rows, int64_t columns, result c)
{
    for (int64_t i = 0; i < rows; i++, e = ending_at(e, c.row, 0), c.data += c.row) {
        for (int thread = 0; thread < e.threads; thread++)
            for (int64_t j = 0; thread != e.thread && j < columns; j++)
                c.data[j] += e.sums[thread * e.apart + j];
        TDI_ISA_NAME(tdi_vector_loops).epilogue(1, columns, columns, e.bias, e.relu ? TD_RELU : TD_LINEAR, c.data);
        if (e.value)
            TDI_ISA_NAME(tdi_vector_loops).slope(TD_RELU, columns, e.value, c.data, c.data);
    }
}

/* The width of the panel from column j on. The last four vectors make two panels of two, since a single vector has too
 * few sums to keep the multipliers busy. */
static int64_t panel_width(int64_t j, int64_t columns)
{
    int64_t vectors = (columns - j) / TDI_WIDTH;
    return (vectors == 4 ? 2 : tdi_least(vectors, COLUMNS)) * TDI_WIDTH;
}

/* Makes `columns` columns, which are whole vectors. */
static void panels(left a, right b, result c, int64_t rows, int64_t columns, const steps *of, bool add, const ending *e)
{
    for (int64_t j = 0, width; j < columns; j += width) {
        width = panel_width(j, columns);
        ending end = e ? ending_at(*e, j, j) : (ending){0};
        panel(a, (right){b.data + j, b.row, b.finite}, (result){c.data + j, c.row}, rows, width / TDI_WIDTH, of, add,
              e ? &end : NULL);
    }
}

/* Whether looking for zeros in the left factor is much less work than multiplying. */
static bool worth_looking(int64_t rows, int64_t columns)
{
    return rows >= ROWS && columns >= 8 * TDI_WIDTH;
}

typedef uint16_t step_list[DEPTH + TDI_WIDTH];
typedef uint16_t step_bits[DEPTH / TDI_WIDTH]; /* a bit for each step of the depth */

/* Finds the steps of a block. Unless a is transposed, `bits` gets them too. */
static steps steps_of_block(left a, int64_t rows, int64_t depth, uint16_t *at, uint16_t *bits)
{
    if (a.step == 1) {
        tdi_nonzero_columns(a.data, a.row, rows, depth, bits);
        return (steps){tdi_columns_of(bits, true, depth, at), at};
    }
    int64_t count = rows == ROWS ? tdi_nonzero_rows(a.data, a.step, depth, ROWS, at)
                                 : tdi_nonzero_rows(a.data, a.step, depth, rows, at);
    return (steps){count, at};
}

/* Finds the steps of each block that needs clearly fewer than all; returns the number of row steps that this saves.
 * Where the first block needs nearly all steps, no other block is looked at. Unless a is transposed, `kept` gets the
 * steps that no block skips. */
static int64_t find_steps(left a, int64_t rows, int64_t depth, step_list *at, steps *of, uint16_t *kept)
{
    int64_t saved = 0;
    step_bits bits = {0};
    memset(kept, 0xff, sizeof bits);
    for (int64_t i = 0; i < rows && (i == 0 || saved > 0); i += ROWS, at++, of++) {
        int64_t high = tdi_least(rows - i, ROWS);
        steps found = steps_of_block((left){a.data + i * a.row, a.row, a.step}, high, depth, *at, bits);
        if (32 * found.count > 31 * depth)
            continue;
        *of = found;
        saved += (depth - found.count) * high;
        for (int64_t g = 0; g < DEPTH / TDI_WIDTH; g++)
            kept[g] &= bits[g];
    }
    return saved;
}

/* Decides for a transposed left factor whether zeros are looked for. Each step reads another cache line of it, so that
 * looking is expensive: it is not done where the first line has no zeros. */
static right with_zeros(right b, const float *a, int64_t rows, int64_t columns, int64_t depth)
{
    b.finite = depth > 0 && worth_looking(rows, columns) && tdi_has_zeros(a, rows) &&
               tdi_all_finite(b.data, b.row, depth, NULL, columns);
    return b;
}

/* Whether the rows of b that some blocks skip are finite, so that zero times them adds nothing; false, too, where there
 * are so many of them that checking costs more than skipping saves. */
static bool may_leave_out(right b, int64_t columns, int64_t depth, const uint16_t *kept, int64_t saved)
{
    step_list at;
    int64_t count = tdi_columns_of(kept, false, depth, at);
    return saved > CHECK * count && tdi_all_finite(b.data, b.row, count, at, columns);
}

/* Multiplies at most GROUP blocks of rows over at most DEPTH steps. */
static void multiply_cut(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, bool add,
                         const ending *e)
{
    step_list at[GROUP];
    step_bits kept;
    steps found[GROUP], all[GROUP];
    for (int64_t i = 0; i * ROWS < rows; i++)
        found[i] = all[i] = (steps){depth, NULL};
    bool look = b.finite || (a.step == 1 && worth_looking(rows, columns));
    int64_t saved = look ? find_steps(a, rows, depth, at, found, kept) : 0;
    bool leave = saved > 0 && (b.finite || may_leave_out(b, columns, depth, kept, saved));
    panels(a, b, c, rows, columns, leave ? found : all, add, e);
}

/* Multiplies at most GROUP blocks of rows over any depth. */
static void multiply_group(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, const ending *e)
{
    for (int64_t k = 0; k < depth; k += DEPTH) {
        int64_t cut = tdi_least(depth - k, DEPTH);
        multiply_cut((left){a.data + k * a.step, a.row, a.step}, (right){b.data + k * b.row, b.row, b.finite}, c, rows,
                     columns, cut, k > 0, k + cut == depth ? e : NULL);
    }
}

static void multiply_vectors(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, const ending *e)
{
    for (int64_t i = 0; i < rows; i += GROUP * ROWS) {
        ending end = e ? ending_at(*e, i * c.row, 0) : (ending){0};
        multiply_group((left){a.data + i * a.row, a.row, a.step}, b, (result){c.data + i * c.row, c.row},
                       tdi_least(rows - i, GROUP * ROWS), columns, depth, e ? &end : NULL);
    }
}

/* Multiplies where there is at least a vector of columns. The last vector may overlap the one before it; both make the
 * same numbers. */
static void multiply_wide(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, const ending *e)
{
    int64_t whole = columns / TDI_WIDTH * TDI_WIDTH, last = columns - TDI_WIDTH;
    multiply_vectors(a, b, c, rows, whole, depth, e);
    if (whole == columns)
        return;
    ending end = e ? ending_at(*e, last, last) : (ending){0};
    multiply_vectors(a, (right){b.data + last, b.row, b.finite}, (result){c.data + last, c.row}, rows, TDI_WIDTH, depth,
                     e ? &end : NULL);
}

/* Transposes at most TDI_WIDTH rows and columns. */
static void transpose_rest(const float *from, int64_t from_row, int64_t rows, int64_t columns, float *to,
                           int64_t to_row)
{
    float square[TDI_WIDTH * TDI_WIDTH] = {0}, turned[TDI_WIDTH * TDI_WIDTH];
    for (int64_t i = 0; i < rows; i++)
        tdi_store(square + i * TDI_WIDTH, tdi_load_first(from + i * from_row, columns));
    tdi_transpose_square(square, TDI_WIDTH, turned, TDI_WIDTH);
    for (int64_t k = 0; k < columns; k++)
        tdi_store_first(to + k * to_row, tdi_load(turned + k * TDI_WIDTH), rows);
}

/* to[k][i] = from[i][k], square by square. */
static void transpose(const float *from, int64_t from_row, int64_t rows, int64_t columns, float *to, int64_t to_row)
{
    for (int64_t i = 0; i < rows; i += TDI_WIDTH)
        for (int64_t k = 0; k < columns; k += TDI_WIDTH) {
            const float *corner = from + i * from_row + k;
            float *turned = to + k * to_row + i;
            int64_t high = tdi_least(rows - i, TDI_WIDTH), wide = tdi_least(columns - k, TDI_WIDTH);
            if (high == TDI_WIDTH && wide == TDI_WIDTH)
                tdi_transpose_square(corner, from_row, turned, to_row);
            else
                transpose_rest(corner, from_row, high, wide, turned, to_row);
        }
}

/* ---- few columns ---- */

/* Makes `count` <= ROWS rows of fewer columns than a vector holds; b is padded. */
static void narrow_block(left a, const float *b, result c, int64_t count, int64_t columns, int64_t depth, bool add)
{
    float sum[ROWS][TDI_WIDTH] = {{0}};
    for (int64_t i = 0; i < count && add; i++)
        memcpy(sum[i], c.data + i * c.row, (size_t)columns * sizeof(float));
    steps all = {depth, NULL};
    panel(a, (right){b, TDI_WIDTH, false}, (result){sum[0], TDI_WIDTH}, count, 1, &all, true, NULL);
    for (int64_t i = 0; i < count; i++)
        memcpy(c.data + i * c.row, sum[i], (size_t)columns * sizeof(float));
}

static void narrow_panel(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth)
{
    enum { CUT = 128 };
    float padded[CUT][TDI_WIDTH];
    for (int64_t k = 0; k < depth; k += CUT) {
        int64_t cut = depth - k < CUT ? depth - k : CUT;
        for (int64_t i = 0; i < cut; i++)
            tdi_store(padded[i], tdi_load_first(b.data + (k + i) * b.row, columns));
        for (int64_t i = 0; i < rows; i += ROWS)
            narrow_block((left){a.data + i * a.row + k * a.step, a.row, a.step}, padded[0],
                         (result){c.data + i * c.row, c.row}, rows - i < ROWS ? rows - i : ROWS, columns, cut, k > 0);
    }
}

/* Dot products of rows of a with the columns of b, which are transposed; there are FEW_COLUMNS at most. */
static void narrow_dots(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth)
{
    float turned[FEW_COLUMNS][DEPTH];
    for (int64_t k = 0; k < depth; k += DEPTH) {
        int64_t cut = tdi_least(depth - k, DEPTH);
        for (int64_t i = 0; i < cut; i++)
            for (int64_t j = 0; j < columns; j++)
                turned[j][i] = b.data[(k + i) * b.row + j];
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                float sum = tdi_dot(cut, a.data + i * a.row + k, turned[j]), *to = c.data + i * c.row + j;
                *to = k ? *to + sum : sum;
            }
    }
}

/* For a transposed a of at least a vector of rows: result' = b' . op(a)'. The last rows may overlap those before them;
 * both make the same numbers. */
static void narrow_turned(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth)
{
    enum { LONG = 4 * CHUNK };
    float made[TDI_WIDTH][LONG];
    int64_t count = tdi_least(rows, LONG);
    for (int64_t done = 0; done < rows; done += count) {
        int64_t i = tdi_least(done, rows - count);
        multiply_wide((left){b.data, 1, b.row}, (right){a.data + i, a.step, false}, (result){made[0], LONG}, columns,
                      count, depth, NULL);
        transpose(made[0], LONG, columns, count, c.data + i * c.row, c.row);
    }
}

/* Multiplies where there are fewer columns than a vector holds. */
static void multiply_narrow(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, const ending *e)
{
    if (a.row == 1 && a.step != 1 && rows >= TDI_WIDTH)
        narrow_turned(a, b, c, rows, columns, depth);
    else if (a.step == 1 && b.row <= FEW_COLUMNS && depth >= TDI_WIDTH)
        narrow_dots(a, b, c, rows, columns, depth);
    else
        narrow_panel(a, b, c, rows, columns, depth);
    if (e)
        end_rows(*e, rows, columns, c);
}

/* c = a . b, for b as it lies. `e` NULL: sums are stored as they are. */
static void multiply(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, const ending *e)
{
    (columns < TDI_WIDTH ? multiply_narrow : multiply_wide)(a, b, c, rows, columns, depth, e);
}

/* ---- b transposed ---- */

/* Makes result' = b . op(a)' for some rows of the result at a time, and transposes it. */
static void multiply_transposed(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, float *scratch,
                                const ending *e)
{
    for (int64_t i = 0; i < rows; i += CHUNK) {
        int64_t count = rows - i < CHUNK ? rows - i : CHUNK;
        float *turned = scratch, *made = scratch + depth * CHUNK;
        right factor = {turned, CHUNK, false};
        if (a.step == 1)
            transpose(a.data + i * a.row, a.row, count, depth, turned, CHUNK);
        else
            factor = (right){a.data + i * a.row, a.step, false}; /* it lies as a' already */
        multiply((left){b.data, b.row, 1}, factor, (result){made, CHUNK}, columns, count, depth, NULL);
        transpose(made, CHUNK, columns, count, c.data + i * c.row, c.row);
        end_rows(ending_at(*e, i * c.row, 0), count, columns, (result){c.data + i * c.row, c.row});
    }
}

/* Makes op(a) . b' by transposed copies of some rows of b at a time. */
static void multiply_by_turned(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, float *scratch,
                               const ending *e)
{
    enum { PANEL = COLUMNS * TDI_WIDTH };
    for (int64_t j = 0; j < columns; j += PANEL) {
        int64_t count = tdi_least(columns - j, PANEL);
        transpose(b.data + j * b.row, b.row, count, depth, scratch, PANEL);
        ending end = ending_at(*e, j, j);
        multiply(a, (right){scratch, PANEL, false}, (result){c.data + j, c.row}, rows, count, depth, &end);
    }
}

/* The dot products of a row of a with TDI_WIDTH rows of b. */
TDI_INLINE tdi_vector dots(const float *a, right b, int64_t depth)
{
    float square[TDI_WIDTH * TDI_WIDTH];
    tdi_vector sum[TDI_WIDTH] = {{0}};
    int64_t k = 0;
    for (; k + TDI_WIDTH <= depth; k += TDI_WIDTH) {
        tdi_vector of_a = tdi_load(a + k);
        TDI_UNROLL
        for (int i = 0; i < TDI_WIDTH; i++)
            sum[i] += of_a * tdi_load(b.data + i * b.row + k);
    }
    TDI_UNROLL
    for (int i = 0; i < TDI_WIDTH && k < depth; i++)
        sum[i] += tdi_load_first(a + k, depth - k) * tdi_load_first(b.data + i * b.row + k, depth - k);
    memcpy(square, sum, sizeof square);
    return tdi_fold_rows(square);
}

/* Makes few rows by dot products with rows of b where they lie. The last vector may overlap the one before it; both
 * make the same numbers. */
static void multiply_by_dots(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, const ending *e)
{
    for (int64_t j = 0; j < columns; j += TDI_WIDTH) {
        int64_t at = tdi_least(j, columns - TDI_WIDTH);
        right group = {b.data + at * b.row, b.row, false};
        for (int64_t i = 0; i < rows; i++)
            tdi_store(c.data + i * c.row + at, dots(a.data + i * a.row, group, depth));
    }
    end_rows(*e, rows, columns, c);
}

/* Chooses the way that transposes the fewest numbers; few rows need none. */
static void multiply_by_transpose(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth,
                                  float *scratch, const ending *e)
{
    if (depth == 1 && b.row == 1) /* a single row is its own transpose */
        multiply(a, b, c, rows, columns, depth, e);
    else if (rows <= FEW && columns >= TDI_WIDTH && a.step == 1)
        multiply_by_dots(a, b, c, rows, columns, depth, e);
    else if (columns * depth < rows * (depth + columns))
        multiply_by_turned(a, b, c, rows, columns, depth, scratch, e);
    else
        multiply_transposed(a, b, c, rows, columns, depth, scratch, e);
}

/* ---- the kernels ---- */

/* Large products are worth oneDNN's packing and the memory that it allocates for it. */
static const char *declines(const tdi_call *call)
{
#ifdef TANDEM_ONEDNN
    if (tdi_outer_extent(&call->out.shape) > TDI_LARGE_PRODUCT && tdi_last_extent(&call->out.shape) > TDI_LARGE_PRODUCT)
        return "large: better packed";
#endif
    (void)call;
    return NULL;
}

static int64_t depth_of(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    const td_shape *b = &call->in[1].shape;
    return attrs->transpose_b ? tdi_last_extent(b) : tdi_outer_extent(b);
}

static td_status prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    const tdi_matmul_attrs *attrs = call->attrs;
    if (attrs->transpose_b)
        *scratch = (size_t)(depth_of(call) + tdi_last_extent(&call->out.shape)) * CHUNK * sizeof(float);
    return TD_OK;
}

/* The area of the result that a thread finishes. */
typedef struct area {
    int64_t row, rows, column, columns;
} area;

static area area_of(const td_shape *out, tdi_share share)
{
    int64_t rows = tdi_outer_extent(out), columns = tdi_last_extent(out);
    int64_t each = out->dim[0] ? rows / out->dim[0] : 0;
    if (share.split == TDI_ROWS)
        return (area){share.begin * each, (share.end - share.begin) * each, 0, columns};
    if (share.split == TDI_COLUMNS)
        return (area){0, rows, share.begin, share.end - share.begin};
    return (area){0, share.begin < share.end ? rows : 0, 0, columns};
}

/* Makes the sums over [begin, end) of the depth for an area; nothing is transposed. */
static void multiply_area(const tdi_call *call, int64_t begin, int64_t end, area at, float *to, const ending *e)
{
    int64_t lda = tdi_last_extent(&call->in[0].shape), columns = tdi_last_extent(&call->out.shape);
    if (at.rows <= 0 || at.columns <= 0)
        return;
    multiply((left){(const float *)call->in[0].data + at.row * lda + begin, lda, 1},
             (right){(const float *)call->in[1].data + begin * columns + at.column, columns, false},
             (result){to + at.row * columns + at.column, columns}, at.rows, at.columns, end - begin, e);
}

/* Makes the sums that other threads wait for: all but those of the area that this thread finishes. */
static void run_depth(const tdi_call *call)
{
    int64_t rows = tdi_outer_extent(&call->out.shape), columns = tdi_last_extent(&call->out.shape);
    area own = area_of(&call->out.shape, call->other_half);
    float *sums = call->sums + call->thread * rows * columns;
    const area others[4] = {{0, own.row, 0, columns},
                            {own.row + own.rows, rows - own.row - own.rows, 0, columns},
                            {own.row, own.rows, 0, own.column},
                            {own.row, own.rows, own.column + own.columns, columns - own.column - own.columns}};
    for (int i = 0; i < 4; i++)
        multiply_area(call, call->begin, call->end, others[i], sums, NULL);
}

/* Applies activations and slopes other than relu's once the sums are in the result. `value` is laid out as the result.
 */
static void end_by_function(const tdi_matmul_attrs *attrs, int64_t rows, int64_t columns, const float *value, result c)
{
    const tdi_vector_loops *loops = &TDI_ISA_NAME(tdi_vector_loops);
    if (attrs->activation && attrs->activation != TD_RELU)
        loops->epilogue(rows, columns, c.row, NULL, attrs->activation, c.data);
    bool slope = attrs->slope && attrs->slope != TD_RELU;
    for (int64_t i = 0; slope && i < rows; i++, c.data += c.row, value += c.row)
        loops->slope(attrs->slope, columns, value, c.data, c.data);
}

/* Makes this thread's area, adding the sums that the other threads have made for it. */
static void finish(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    int64_t columns = tdi_last_extent(&call->out.shape);
    area own = area_of(&call->out.shape, (tdi_share){call->split, call->begin, call->end});
    int64_t first = own.row * columns + own.column;
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    ending e = {.sums = call->sums + first,
                .apart = tdi_shape_elements(&call->out.shape),
                .thread = call->thread,
                .threads = call->threads,
                .bias = bias ? bias + own.column : NULL,
                .relu = attrs->activation == TD_RELU};
    multiply_area(call, call->other_half.begin, call->other_half.end, own, call->out.data, &e);
    end_by_function(attrs, own.rows, own.columns, NULL, (result){(float *)call->out.data + first, columns});
}

static void run(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    if (call->split == TDI_DEPTH) {
        run_depth(call);
        return;
    }
    int64_t lda = tdi_last_extent(&call->in[0].shape), ldb = tdi_last_extent(&call->in[1].shape);
    int64_t ldc = tdi_last_extent(&call->out.shape), depth = depth_of(call);
    area at = area_of(&call->out.shape, (tdi_share){call->split, call->begin, call->end});
    int64_t first = at.row * ldc + at.column;
    left a = {call->in[0].data, attrs->transpose_a ? 1 : lda, attrs->transpose_a ? lda : 1};
    right b = {(const float *)call->in[1].data + at.column * (attrs->transpose_b ? ldb : 1), ldb, false};
    result c = {(float *)call->out.data + first, ldc};
    const float *third = call->n_in > 2 ? call->in[2].data : NULL;
    const float *value = attrs->slope ? third + first : NULL;
    ending e = {.bias = third && !value ? third + at.column : NULL,
                .relu = attrs->activation == TD_RELU,
                .value = attrs->slope == TD_RELU ? value : NULL};
    a.data += at.row * a.row;
    if (attrs->transpose_a && !attrs->transpose_b)
        b = with_zeros(b, a.data, at.rows, at.columns, depth);
    if (attrs->transpose_b)
        multiply_by_transpose(a, b, c, at.rows, at.columns, depth, call->scratch, &e);
    else
        multiply(a, b, c, at.rows, at.columns, depth, &e);
    end_by_function(attrs, at.rows, at.columns, value, c);
}

TDI_CPU_KERNEL(matmul, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_DEPTH, .declines = declines,
               .prepare = prepare, .run = run, .finish = finish);

/* ---- an update by a' . b ---- */

enum { GRADIENT_FLOATS = 16384 /* fits into the second-level cache with what it updates */ };

static int64_t gradient_rows(const tdi_call *call)
{
    return tdi_gradient_rows(call, GRADIENT_FLOATS, ROWS);
}

static const char *update_declines(const tdi_call *call)
{
#ifdef TANDEM_ONEDNN
    bool few = tdi_outer_extent(&call->out.shape) <= 2 * ROWS; /* too few rows to be worth packing */
    if (!few && tdi_outer_extent(&call->in[1].shape) > TDI_LARGE_PRODUCT &&
        tdi_last_extent(&call->out.shape) > TDI_LARGE_PRODUCT)
        return "large: better packed";
#endif
    (void)call;
    return NULL;
}

/* The scratch holds some rows of the gradient. */
static td_status update_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    *scratch = (size_t)(gradient_rows(call) * tdi_last_extent(&call->out.shape)) * sizeof(float);
    return TD_OK;
}

/* Makes a' . b some rows at a time, for the thread's columns, and updates the weight by each of them. */
static void update_run(const tdi_call *call)
{
    tdi_row_update of = tdi_row_update_of(call, call->attrs, 3, TDI_ISA_NAME(tdi_vector_loops).update);
    int64_t features = tdi_last_extent(&call->in[1].shape), depth = tdi_outer_extent(&call->in[1].shape);
    int64_t first = call->split == TDI_COLUMNS ? call->begin : 0, most = gradient_rows(call);
    const float *a = call->in[1].data;
    right b = {(const float *)call->in[2].data + first, tdi_last_extent(&call->out.shape), false};
    b = with_zeros(b, a + of.begin, of.end - of.begin, of.columns, depth);
    for (int64_t i = of.begin; i < of.end; i += most) {
        int64_t rows = tdi_least(of.end - i, most);
        multiply((left){a + i, 1, features}, b, (result){call->scratch, of.columns}, rows, of.columns, depth, NULL);
        tdi_update_rows(&of, i, rows, call->scratch);
    }
}

TDI_CPU_KERNEL(matmul_update, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .declines = update_declines,
               .prepare = update_prepare, .run = update_run);

/* ---- gradients left behind by the shards, and the update by all of them (src/ops/update/joint_update.c) ---- */

static const char *leave_declines(const tdi_call *call)
{
    return tdi_leaves_factors(call) ? "factors" : declines(call);
}

extern const tdi_kernel TDI_ISA_NAME(tdi_cpu_leave_product);
const tdi_kernel TDI_ISA_NAME(tdi_cpu_leave_product) = {.name = TDI_ISA_TEXT " leave_gradient",
                                                        .op = &tdi_op_leave_gradient,
                                                        .splits = TDI_CAN_ROWS,
                                                        .declines = leave_declines,
                                                        .run = run};

/* Some rows of the gradient, summed over all shards: the bits are those of tdi_tree_sum over each shard's product. */
typedef struct joint {
    const tdi_call *call;
    int64_t first, rows, columns;
} joint;

enum { JOINT_FLOATS = 4096 }; /* two sums fit into the first-level cache */

/* The buffers that the sum of `shards` shards needs: one for the first half's sum, beside those of the second half. */
static int joint_buffers(int shards)
{
    int left = tdi_tree_half(shards);
    if (shards == 1)
        return 1;
    int of_left = joint_buffers(left), of_right = 1 + joint_buffers(shards - left);
    return of_left > of_right ? of_left : of_right;
}

static int64_t joint_rows(const tdi_call *call)
{
    return tdi_gradient_rows(call, JOINT_FLOATS, ROWS);
}

static td_status joint_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    int64_t floats = joint_rows(call) * tdi_last_extent(&call->out.shape);
    int shards = ((const tdi_joint_update_attrs *)call->attrs)->shards;
    *scratch = (size_t)joint_buffers(shards) * (size_t)floats * sizeof(float);
    return TD_OK;
}

/* Makes what one shard has left. It looks for no zeros: which rows are made together differs from replica to replica,
 * and must not matter. */
static void make_share(const joint *j, int shard, float *to)
{
    tdi_left_gradient of = tdi_left_by(j->call, shard);
    size_t size = (size_t)(j->rows * j->columns) * sizeof *to;
    if (of.gradient)
        memcpy(to, of.gradient + j->first * j->columns, size);
    else if (of.depth == 0)
        memset(to, 0, size);
    else
        multiply((left){of.a + j->first, 1, j->call->out.shape.dim[0]}, (right){of.b, j->columns, false},
                 (result){to, j->columns}, j->rows, j->columns, of.depth, NULL);
}

/* Sums `count` shards' gradients into `to`, using the buffers from `to` on. */
static void sum_shares(const joint *j, int shard, int count, float *to)
{
    int half = tdi_tree_half(count);
    int64_t n = j->rows * j->columns;
    float *right = to + n;
    if (count == 1) {
        make_share(j, shard, to);
        return;
    }
    sum_shares(j, shard, half, to);
    sum_shares(j, shard + half, count - half, right);
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] += right[i];
}

static void joint_update_run(const tdi_call *call)
{
    const tdi_joint_update_attrs *attrs = call->attrs;
    tdi_row_update of = tdi_row_update_of(call, &attrs->of, 2, TDI_ISA_NAME(tdi_vector_loops).update);
    int64_t most = joint_rows(call);
    for (int64_t i = of.begin; i < of.end; i += most) {
        joint j = {call, i, tdi_least(of.end - i, most), of.columns};
        sum_shares(&j, 0, attrs->shards, call->scratch);
        tdi_update_rows(&of, i, j.rows, call->scratch);
    }
}

TDI_CPU_KERNEL(joint_update, .splits = TDI_CAN_ROWS, .prepare = joint_prepare, .run = joint_update_run);
