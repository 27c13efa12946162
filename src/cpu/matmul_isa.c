/* matmul_isa.c - activation(op(a) . op(b) + bias), without packing.
 *
 * A block of ROWS x (COLUMNS vectors) of the result is kept in registers while the depth runs by: each step loads
 * COLUMNS vectors of b's row and multiplies them by ROWS elements of a. b's panel stays in the second-level cache from
 * one block of rows to the next; long depths are cut so that it does. a may be transposed at no cost, since its
 * elements are taken one by one; when b is, the product is computed the other way round, result' = b . op(a)', over
 * small transposed copies. */
#include "cpu/isa.h"
#include "cpu/loops.h"

#if defined(__AVX512F__)
enum { ROWS = 8, COLUMNS = 3 };
#elif defined(__AVX2__)
enum { ROWS = 4, COLUMNS = 3 };
#else
enum { ROWS = 4, COLUMNS = 2 };
#endif
enum { DEPTH = 1024, CHUNK = 64 };

/* Element (i, k) of the left factor is at data[i * row + k * step]. */
typedef struct left {
    const float *data;
    int64_t row, step;
} left;

/* Row k of the right factor begins at data + k * row. */
typedef struct right {
    const float *data;
    int64_t row;
} right;

typedef struct result {
    float *data;
    int64_t row;
} result;

/* rows x (columns vectors) of the result, depth steps. */
TDI_INLINE void block(left a, right b, result c, int64_t depth, bool add, int rows, int columns)
{
    tdi_vector sum[ROWS][COLUMNS];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            sum[i][j] = add ? tdi_load(c.data + i * c.row + j * TDI_WIDTH) : (tdi_vector){0};
    for (int64_t k = 0; k < depth; k++) {
        tdi_vector of_b[COLUMNS];
        for (int j = 0; j < columns; j++)
            of_b[j] = tdi_load(b.data + k * b.row + j * TDI_WIDTH);
        for (int i = 0; i < rows; i++) {
            tdi_vector of_a = tdi_splat(a.data[i * a.row + k * a.step]);
            for (int j = 0; j < columns; j++)
                sum[i][j] += of_a * of_b[j];
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            tdi_store(c.data + i * c.row + j * TDI_WIDTH, sum[i][j]);
}

/* As many blocks of `high` rows as there are from row i on; returns the row behind them. */
TDI_INLINE int64_t blocks(left a, right b, result c, int64_t i, int64_t rows, int64_t depth, bool add, int high,
                          int columns)
{
    for (; i + high <= rows; i += high)
        block((left){a.data + i * a.row, a.row, a.step}, b, (result){c.data + i * c.row, c.row}, depth, add, high,
              columns);
    return i;
}

TDI_INLINE void panel_rows(left a, right b, result c, int64_t rows, int64_t depth, bool add, int columns)
{
    int64_t i = blocks(a, b, c, 0, rows, depth, add, ROWS, columns);
    i = blocks(a, b, c, i, rows, depth, add, ROWS / 2, columns);
    i = blocks(a, b, c, i, rows, depth, add, ROWS / 4, columns);
    if (ROWS / 4 > 1)
        blocks(a, b, c, i, rows, depth, add, 1, columns);
}

/* All rows of `columns` vectors, the depth in cuts. */
TDI_INLINE void panel(left a, right b, result c, int64_t rows, int64_t depth, int columns)
{
    for (int64_t k = 0; k < depth; k += DEPTH) {
        int64_t cut = depth - k < DEPTH ? depth - k : DEPTH;
        panel_rows((left){a.data + k * a.step, a.row, a.step}, (right){b.data + k * b.row, b.row}, c, rows, cut, k > 0,
                   columns);
    }
}

static void wide_panel(left a, right b, result c, int64_t rows, int64_t depth)
{
    panel(a, b, c, rows, depth, COLUMNS);
}

static void double_panel(left a, right b, result c, int64_t rows, int64_t depth)
{
    panel(a, b, c, rows, depth, 2);
}

static void single_panel(left a, right b, result c, int64_t rows, int64_t depth)
{
    panel(a, b, c, rows, depth, 1);
}

/* `count` rows, at most ROWS, of fewer columns than a vector has floats; b is padded. */
static void narrow_block(left a, const float *b, result c, int64_t count, int64_t columns, int64_t depth, bool add)
{
    float sum[ROWS][TDI_WIDTH] = {{0}};
    for (int64_t i = 0; i < count && add; i++)
        memcpy(sum[i], c.data + i * c.row, (size_t)columns * sizeof(float));
    if (count == ROWS)
        block(a, (right){b, TDI_WIDTH}, (result){sum[0], TDI_WIDTH}, depth, true, ROWS, 1);
    for (int64_t i = 0; i < count && count < ROWS; i++)
        block((left){a.data + i * a.row, a.row, a.step}, (right){b, TDI_WIDTH}, (result){sum[i], TDI_WIDTH}, depth,
              true, 1, 1);
    for (int64_t i = 0; i < count; i++)
        memcpy(c.data + i * c.row, sum[i], (size_t)columns * sizeof(float));
}

static void narrow_panel(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth)
{
    enum { CUT = 128 };
    float padded[CUT][TDI_WIDTH] = {{0}};
    for (int64_t k = 0; k < depth; k += CUT) {
        int64_t cut = depth - k < CUT ? depth - k : CUT;
        for (int64_t i = 0; i < cut; i++)
            for (int64_t j = 0; j < columns; j++)
                padded[i][j] = b.data[(k + i) * b.row + j];
        for (int64_t i = 0; i < rows; i += ROWS)
            narrow_block((left){a.data + i * a.row + k * a.step, a.row, a.step}, padded[0],
                         (result){c.data + i * c.row, c.row}, rows - i < ROWS ? rows - i : ROWS, columns, cut, k > 0);
    }
}

/* The last vector may overlap the one before it: what both make is the same. */
static void multiply(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth)
{
    if (columns < TDI_WIDTH) {
        narrow_panel(a, b, c, rows, columns, depth);
        return;
    }
    int64_t j = 0;
    for (; j + COLUMNS * TDI_WIDTH <= columns; j += COLUMNS * TDI_WIDTH)
        wide_panel(a, (right){b.data + j, b.row}, (result){c.data + j, c.row}, rows, depth);
    for (; j + 2 * TDI_WIDTH <= columns; j += 2 * TDI_WIDTH)
        double_panel(a, (right){b.data + j, b.row}, (result){c.data + j, c.row}, rows, depth);
    for (; j < columns; j += TDI_WIDTH) {
        int64_t at = j + TDI_WIDTH <= columns ? j : columns - TDI_WIDTH;
        single_panel(a, (right){b.data + at, b.row}, (result){c.data + at, c.row}, rows, depth);
    }
}

/* ---- b transposed ---- */

/* to[k][i] = from[i][k]: whole squares through registers, what is left one by one. */
static void transpose(const float *from, int64_t from_row, int64_t rows, int64_t columns, float *to, int64_t to_row)
{
    int64_t high = rows / TDI_WIDTH * TDI_WIDTH, wide = columns / TDI_WIDTH * TDI_WIDTH;
    for (int64_t i = 0; i < high; i += TDI_WIDTH)
        for (int64_t k = 0; k < wide; k += TDI_WIDTH)
            tdi_transpose_square(from + i * from_row + k, from_row, to + k * to_row + i, to_row);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = i < high ? wide : 0; k < columns; k++)
            to[k * to_row + i] = from[i * from_row + k];
}

/* result' = b . op(a)', some rows of the result at a time. */
static void multiply_transposed(left a, right b, result c, int64_t rows, int64_t columns, int64_t depth, float *scratch)
{
    for (int64_t i = 0; i < rows; i += CHUNK) {
        int64_t count = rows - i < CHUNK ? rows - i : CHUNK;
        float *turned = scratch, *made = scratch + depth * CHUNK;
        right factor = {turned, CHUNK};
        if (a.step == 1)
            transpose(a.data + i * a.row, a.row, count, depth, turned, CHUNK);
        else
            factor = (right){a.data + i * a.row, a.step}; /* a' already */
        multiply((left){b.data, b.row, 1}, factor, (result){made, CHUNK}, columns, count, depth);
        transpose(made, CHUNK, columns, count, c.data + i * c.row, c.row);
    }
}

/* ---- the kernels ---- */

/* Large products are worth oneDNN's packing, and the memory it takes for that. */
static const char *declines(const tdi_call *call)
{
#ifdef TANDEM_ONEDNN
    if (tdi_outer_extent(&call->out.shape) > 4 * CHUNK && tdi_last_extent(&call->out.shape) > 4 * CHUNK)
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

/* This lane's share of the depth; no transposes. */
static void run_depth(const tdi_call *call)
{
    int64_t lda = tdi_last_extent(&call->in[0].shape), rows = tdi_outer_extent(&call->out.shape);
    int64_t columns = tdi_last_extent(&call->out.shape);
    multiply((left){(const float *)call->in[0].data + call->begin, lda, 1},
             (right){(const float *)call->in[1].data + call->begin * columns, columns},
             (result){call->sums + call->lane * rows * columns, columns}, rows, columns, call->end - call->begin);
}

static void add_up(int64_t n, const float *sums, int lanes, int64_t apart, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = sums[i] + sums[i + apart];
    for (int lane = 2; lane < lanes; lane++)
        TDI_LANES for (int64_t i = 0; i < n; i++) to[i] += sums[i + lane * apart];
}

/* Row by row, while it is in the first-level cache. */
static void finish(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    int64_t columns = tdi_last_extent(&call->out.shape), elements = tdi_shape_elements(&call->out.shape);
    tdi_runs runs = tdi_call_runs(call);
    bool by_columns = call->split == TDI_COLUMNS;
    int64_t rows = by_columns ? runs.count : runs.length / columns, n = by_columns ? runs.length : columns;
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    bias = bias && by_columns ? bias + call->begin : bias;
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = runs.first + r * columns;
        float *out = (float *)call->out.data + at;
        add_up(n, call->sums + at, call->lanes, elements, out);
        TDI_ISA_NAME(tdi_loops).epilogue(1, n, columns, bias, attrs->activation, out);
    }
}

static void run(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    if (call->split == TDI_DEPTH) {
        run_depth(call);
        return;
    }
    int64_t lda = tdi_last_extent(&call->in[0].shape), ldb = tdi_last_extent(&call->in[1].shape);
    int64_t rows = tdi_outer_extent(&call->out.shape), ldc = tdi_last_extent(&call->out.shape), columns = ldc;
    int64_t depth = depth_of(call);
    left a = {call->in[0].data, attrs->transpose_a ? 1 : lda, attrs->transpose_a ? lda : 1};
    right b = {call->in[1].data, ldb};
    result c = {call->out.data, ldc};
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    if (call->split == TDI_ROWS) {
        int64_t each = rows / call->out.shape.dim[0];
        a.data += call->begin * each * a.row;
        c.data += call->begin * each * ldc;
        rows = (call->end - call->begin) * each;
    } else if (call->split == TDI_COLUMNS) {
        b.data += call->begin * (attrs->transpose_b ? ldb : 1);
        c.data += call->begin;
        bias = bias ? bias + call->begin : NULL;
        columns = call->end - call->begin;
    }
    if (attrs->transpose_b)
        multiply_transposed(a, b, c, rows, columns, depth, call->scratch);
    else
        multiply(a, b, c, rows, columns, depth);
    if (bias || attrs->activation)
        TDI_ISA_NAME(tdi_loops).epilogue(rows, columns, ldc, bias, attrs->activation, c.data);
}

TDI_CPU_KERNEL(matmul, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_DEPTH, .declines = declines,
               .prepare = prepare, .run = run, .finish = finish);

/* ---- an update by a' . b ---- */

enum { GRADIENT_FLOATS = 2048 };

static int64_t gradient_rows(const tdi_call *call)
{
    return tdi_gradient_rows(call, GRADIENT_FLOATS, ROWS);
}

static const char *update_declines(const tdi_call *call)
{
#ifdef TANDEM_ONEDNN
    bool few = tdi_outer_extent(&call->out.shape) <= 2 * ROWS; /* packing is for more than are here */
    if (!few && tdi_outer_extent(&call->in[1].shape) > 4 * CHUNK && tdi_last_extent(&call->out.shape) > 4 * CHUNK)
        return "large: better packed";
#endif
    (void)call;
    return NULL;
}

static td_status update_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    *scratch = (size_t)(gradient_rows(call) * tdi_last_extent(&call->out.shape)) * sizeof(float);
    return TD_OK;
}

static void multiply_gradient(const tdi_call *call, int64_t first, int64_t rows, float *gradient)
{
    bool by_columns = call->split == TDI_COLUMNS;
    int64_t ldb = tdi_last_extent(&call->out.shape), lda = tdi_last_extent(&call->in[1].shape);
    int64_t begin = by_columns ? call->begin : 0, columns = by_columns ? call->end - begin : ldb;
    multiply((left){(const float *)call->in[1].data + first, 1, lda},
             (right){(const float *)call->in[2].data + begin, ldb}, (result){gradient, columns}, rows, columns,
             tdi_outer_extent(&call->in[1].shape));
}

static void update_run(const tdi_call *call)
{
    tdi_update_by_product(call, gradient_rows(call), multiply_gradient, TDI_ISA_NAME(tdi_loops).update);
}

TDI_CPU_KERNEL(matmul_update, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .declines = update_declines,
               .prepare = update_prepare, .run = update_run);
