/* matmul_isa.c - matrix products.
 *
 * A tile of the result stays in registers while it runs through up to DEPTH of the inner extent. The second matrix is
 * read a panel of columns at a time: as it lies when few rows read it, else from a copy, which is also how a transposed
 * one and the last, narrower panel are read. The order of additions depends on the extents alone. */
#include "cpu/isa.h"
#include "cpu/loops.h"

#if defined(__AVX512F__)
enum { ROWS = 8, VECTORS = 3 }; /* 32 registers: 24 sums, 3 columns, the rest for rows */
#else
enum { ROWS = 6, VECTORS = 2 }; /* 16 registers */
#endif
enum { PANEL = VECTORS * TDI_WIDTH, DEPTH = 256, FEW_ROWS = 160 };

#define INLINE static inline __attribute__((always_inline))

/* c [m, n] = op(a) . op(b) + bias. Element (i, k) of op(a) is a[i * a_row + k * a_step]. */
typedef struct product {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_step;
    const float *b;
    int64_t b_row; /* between rows of b as stored */
    bool b_transposed;
    const float *bias; /* [n] or NULL */
    float *c;
    int64_t c_row;
    float *panel; /* [DEPTH, PANEL] */
} product;

/* One block of the inner extent for one tile. */
typedef struct strip {
    int64_t depth;
    const float *a;
    int64_t a_row, a_step;
    const float *b;
    int64_t b_step;
    const float *start; /* what the sums start from: [rows, start_row]; NULL: zeros */
    int64_t start_row;
    float *c;
    int64_t c_row;
} strip;

INLINE void tile(int rows, int vectors, const strip *s)
{
    tdi_vector sum[ROWS][VECTORS] = {{{0}}};
    if (s->start)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                sum[r][v] = tdi_load(s->start + r * s->start_row + v * TDI_WIDTH);
    const float *a = s->a, *b = s->b;
    for (int64_t k = 0; k < s->depth; k++, a += s->a_step, b += s->b_step) {
        tdi_vector right[VECTORS];
        for (int v = 0; v < vectors; v++)
            right[v] = tdi_load(b + v * TDI_WIDTH);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                sum[r][v] += a[r * s->a_row] * right[v];
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            tdi_store(s->c + r * s->c_row + v * TDI_WIDTH, sum[r][v]);
}

INLINE void tile_of_rows(int rows, int vectors, const strip *s)
{
    if (vectors == 1)
        tile(rows, 1, s);
    else if (vectors == 2)
        tile(rows, 2, s);
    else
        tile(rows, VECTORS, s);
}

static void any_tile(int64_t rows, int vectors, const strip *s)
{
    switch (rows) {
#if defined(__AVX512F__)
    case 8:
        tile_of_rows(8, vectors, s);
        break;
    case 7:
        tile_of_rows(7, vectors, s);
        break;
#endif
    case 6:
        tile_of_rows(6, vectors, s);
        break;
    case 5:
        tile_of_rows(5, vectors, s);
        break;
    case 4:
        tile_of_rows(4, vectors, s);
        break;
    case 3:
        tile_of_rows(3, vectors, s);
        break;
    case 2:
        tile_of_rows(2, vectors, s);
        break;
    default:
        tile_of_rows(1, vectors, s);
        break;
    }
}

/* ---- panels ---- */

/* Rows of at most PANEL columns, copied with zeros behind. */
static void copy_panel(const product *p, int64_t k, int64_t depth, int64_t column, int64_t width, int64_t padded)
{
    for (int64_t i = 0; i < depth; i++) {
        float *to = p->panel + i * padded;
        memcpy(to, p->b + (k + i) * p->b_row + column, (size_t)width * sizeof *to);
        for (int64_t j = width; j < padded; j++)
            to[j] = 0;
    }
}

/* The same of a transposed matrix: whole squares through registers, the rest one by one. */
static void transpose_panel(const product *p, int64_t k, int64_t depth, int64_t column, int64_t width, int64_t padded)
{
    int64_t squares = depth / TDI_WIDTH * TDI_WIDTH, full = width / TDI_WIDTH * TDI_WIDTH;
    const float *from = p->b + column * p->b_row + k;
    for (int64_t j = 0; j < full; j += TDI_WIDTH)
        for (int64_t i = 0; i < squares; i += TDI_WIDTH)
            tdi_transpose_square(from + j * p->b_row + i, p->b_row, p->panel + i * padded + j, padded);
    for (int64_t j = 0; j < padded; j++)
        for (int64_t i = j < full ? squares : 0; i < depth; i++)
            p->panel[i * padded + j] = j < width ? from[j * p->b_row + i] : 0;
}

typedef struct panel {
    int64_t k, depth, column, width;
    const float *at;
    int64_t step;
    bool ragged; /* its last vector has columns that are none of c's */
} panel;

/* Columns left over are shared by the last panels, so that none is narrow. */
static int64_t panel_width(int64_t left)
{
    int64_t vectors = (left + TDI_WIDTH - 1) / TDI_WIDTH, panels = (vectors + VECTORS - 1) / VECTORS;
    int64_t width = (vectors + panels - 1) / panels * TDI_WIDTH;
    return width < left ? width : left;
}

static panel open_panel(const product *p, int64_t k, int64_t column)
{
    panel q = {.k = k, .column = column};
    q.depth = p->k - k < DEPTH ? p->k - k : DEPTH;
    q.width = panel_width(p->n - column);
    q.ragged = q.width % TDI_WIDTH != 0;
    q.at = p->b + k * p->b_row + column;
    q.step = p->b_row;
    if (!p->b_transposed && !q.ragged && p->m <= FEW_ROWS)
        return q;
    q.at = p->panel;
    q.step = (q.width + TDI_WIDTH - 1) / TDI_WIDTH * TDI_WIDTH;
    (p->b_transposed ? transpose_panel : copy_panel)(p, k, q.depth, column, q.width, q.step);
    return q;
}

/* ---- tiles of c ---- */

static strip strip_of(const product *p, const panel *q, int64_t row)
{
    float *c = p->c + row * p->c_row + q->column;
    return (strip){.depth = q->depth,
                   .a = p->a + row * p->a_row + q->k * p->a_step,
                   .a_row = p->a_row,
                   .a_step = p->a_step,
                   .b = q->at,
                   .b_step = q->step,
                   .start = q->k      ? c
                            : p->bias ? p->bias + q->column
                                      : NULL,
                   .start_row = q->k ? p->c_row : 0,
                   .c = c,
                   .c_row = p->c_row};
}

/* 0 < n < PANEL numbers, without a call. */
INLINE void copy_few(float *to, const float *from, int64_t n)
{
    for (; n >= TDI_WIDTH; n -= TDI_WIDTH, to += TDI_WIDTH, from += TDI_WIDTH)
        tdi_store(to, tdi_load(from));
    for (int width = TDI_WIDTH / 2; width; width /= 2)
        if (n & width) {
            memcpy(to, from, (size_t)width * sizeof *to);
            to += width;
            from += width;
        }
}

/* By way of a tile of whole vectors, so that nothing beside c is touched. */
static void ragged_tile(int64_t rows, int vectors, const panel *q, strip s)
{
    float aside[ROWS * PANEL] = {0}, *c = s.c;
    int64_t c_row = s.c_row;
    for (int64_t r = 0; s.start && r < rows; r++)
        copy_few(aside + r * PANEL, s.start + r * s.start_row, q->width);
    s.start = s.start ? aside : NULL;
    s.c = aside;
    s.start_row = s.c_row = PANEL;
    any_tile(rows, vectors, &s);
    for (int64_t r = 0; r < rows; r++)
        copy_few(c + r * c_row, aside + r * PANEL, q->width);
}

static void run_tile(const product *p, const panel *q, int64_t row)
{
    int64_t rows = p->m - row < ROWS ? p->m - row : ROWS;
    int vectors = (int)((q->width + TDI_WIDTH - 1) / TDI_WIDTH);
    strip s = strip_of(p, q, row);
    if (q->ragged)
        ragged_tile(rows, vectors, q, s);
    else
        any_tile(rows, vectors, &s);
}

static void multiply(const product *p)
{
    for (int64_t k = 0; k < p->k; k += DEPTH)
        for (int64_t column = 0; column < p->n; column += panel_width(p->n - column)) {
            panel q = open_panel(p, k, column);
            for (int64_t row = 0; row < p->m; row += ROWS)
                run_tile(p, &q, row);
        }
}

/* ---- the kernel ---- */

#ifdef TANDEM_ONEDNN
/* oneDNN also packs the first matrix, which large products repay; it allocates for that, which small ones do not. */
static const char *matmul_declines(const tdi_call *call)
{
    const double large = 128e6;
    return tdi_op_matmul.flops(call) > large ? "large enough for a library" : NULL;
}
#else
static const char *matmul_declines(const tdi_call *call)
{
    (void)call;
    return NULL;
}
#endif

static td_status matmul_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)call;
    (void)state;
    (void)error;
    *scratch = (size_t)DEPTH * PANEL * sizeof(float);
    return TD_OK;
}

static void matmul_run(const tdi_call *call)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    const float *bias = call->n_in > 2 ? call->in[2].data : NULL;
    int64_t a_extent = tdi_last_extent(&call->in[0].shape), b_extent = tdi_last_extent(&call->in[1].shape);
    int64_t columns = tdi_last_extent(&call->out.shape);
    tdi_runs runs = tdi_call_runs(call);
    bool by_columns = call->split == TDI_COLUMNS;
    int64_t row = by_columns ? 0 : runs.first / columns, column = by_columns ? runs.first : 0;
    product p = {.m = by_columns ? runs.count : runs.length / columns,
                 .n = by_columns ? runs.length : columns,
                 .k = attrs->transpose_b ? b_extent : tdi_outer_extent(&call->in[1].shape),
                 .a_row = attrs->transpose_a ? 1 : a_extent,
                 .a_step = attrs->transpose_a ? a_extent : 1,
                 .b_row = b_extent,
                 .b_transposed = attrs->transpose_b,
                 .bias = bias ? bias + column : NULL,
                 .c = (float *)call->out.data + runs.first,
                 .c_row = columns,
                 .panel = call->scratch};
    p.a = (const float *)call->in[0].data + row * p.a_row;
    p.b = (const float *)call->in[1].data + column * (attrs->transpose_b ? b_extent : 1);
    multiply(&p);
    TDI_ISA_NAME(tdi_loops).epilogue(p.m, p.n, columns, NULL, attrs->activation, p.c);
}

TDI_CPU_KERNEL(matmul, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .declines = matmul_declines, .prepare = matmul_prepare,
               .run = matmul_run);
