/* pool_isa.c - maximum and average pooling and their gradients, channels last.
 *
 * With many channels the cells of a window are combined channel by channel. With few channels the lanes would stay
 * empty. Where windows lie side by side without gaps (`tidy`), whole lines of [width, channels] are combined
 * instead, and only copies go group by group, a group being the channels of one position. Batch-interleaved samples
 * count as so many more channels. */
#include "cpu/batch_interleaved_isa.h"
#include "cpu/prefetch_lines.h"
#include "cpu/vector_loops.h"
#include "ops/pool2d.h"

enum { FEW = 16 };

/* The images that are pooled and the result, both [n, h, w, c]; a line is one row of either. */
typedef struct pool {
    const tdi_pool2d_attrs *attrs;
    const td_shape *x, *y;
    int64_t channels, line, y_line;
    int64_t first, own; /* forwards: this call makes channels [first, first + own) */
    int64_t before_h, before_w;
    int64_t begin, end; /* this call makes samples [begin, end) */
    bool apart;         /* windows do not overlap, and none reaches into the padding */
    bool tidy;          /* apart, and few channels */
} pool;

static pool pool_of(const tdi_call *call, const td_shape *x, const td_shape *y)
{
    const tdi_pool2d_attrs *a = call->attrs;
    bool rows = call->split == TDI_ROWS, columns = call->split == TDI_COLUMNS;
    pool p = {.attrs = a, .x = x, .y = y, .channels = x->dim[3]};
    p.first = columns ? call->begin : 0;
    p.own = columns ? call->end - call->begin : p.channels;
    p.line = x->dim[2] * p.channels;
    p.y_line = y->dim[2] * p.channels;
    p.before_h =
        tdi_window_around(x->dim[1], a->pool_h, a->stride_h, 1, a->padding, a->sides.top, a->sides.bottom).before;
    p.before_w =
        tdi_window_around(x->dim[2], a->pool_w, a->stride_w, 1, a->padding, a->sides.left, a->sides.right).before;
    p.begin = rows ? call->begin : 0;
    p.end = rows ? call->end : x->dim[0];
    bool inside = y->dim[1] * a->pool_h <= x->dim[1] && y->dim[2] * a->pool_w <= x->dim[2];
    p.apart = a->stride_h == a->pool_h && a->stride_w == a->pool_w && inside && p.before_h + p.before_w == 0;
    p.tidy = p.apart && p.channels < FEW && !columns;
    return p;
}

static int64_t x_at(const pool *p, int64_t n, int64_t row)
{
    return (n * p->x->dim[1] + row) * p->line;
}

static int64_t y_at(const pool *p, int64_t n, int64_t row)
{
    return (n * p->y->dim[1] + row) * p->y_line;
}

static tdi_pool2d_cells cells_of(const pool *p, int64_t oy, int64_t ox)
{
    int64_t top = oy * p->attrs->stride_h - p->before_h, left = ox * p->attrs->stride_w - p->before_w;
    return (tdi_pool2d_cells){top > 0 ? top : 0, tdi_least(top + p->attrs->pool_h, p->x->dim[1]), left > 0 ? left : 0,
                              tdi_least(left + p->attrs->pool_w, p->x->dim[2])};
}

static size_t room(const tdi_call *call, int64_t floats)
{
    if (tdi_is_batch_interleaved(call))
        return tdi_batch_interleaved_room(call) + (size_t)(floats * TDI_WIDTH) * sizeof(float);
    return (size_t)floats * sizeof(float);
}

static void run_either(const tdi_call *call, void (*run)(const tdi_call *call))
{
    if (tdi_is_batch_interleaved(call))
        tdi_batch_interleaved_run(call, run);
    else
        run(call);
}

static tdi_batch_interleaving accepts_interleaving(const tdi_call *call)
{
    (void)call;
    return TDI_ACCEPTS_INTERLEAVING;
}

static td_status prepare_forward(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    (void)error;
    pool p = pool_of(call, &call->in[0].shape, &call->out.shape);
    *scratch = room(call, 2 * p.line);
    return TD_OK;
}

/* ---- groups ---- */

TDI_INLINE void copy_wide(int64_t count, int64_t width, float *to, int64_t to_step, const float *from,
                          int64_t from_step)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * to_step, from + i * from_step, (size_t)width * sizeof *to);
}

/* Copies `count` groups. All but the last are copied as 4, 8 or 16 numbers, which reach into the next group: that group
 * is there to be read, and is overwritten later, since groups are written in the order of their addresses. */
static void copy_groups(int64_t count, int64_t channels, float *to, int64_t to_step, const float *from,
                        int64_t from_step)
{
    if (channels == 1)
        copy_wide(count - 1, 1, to, to_step, from, from_step);
    else if (channels <= 4)
        copy_wide(count - 1, 4, to, to_step, from, from_step);
    else if (channels <= 8)
        copy_wide(count - 1, 8, to, to_step, from, from_step);
    else
        copy_wide(count - 1, FEW, to, to_step, from, from_step);
    memcpy(to + (count - 1) * to_step, from + (count - 1) * from_step, (size_t)channels * sizeof *to);
}

/* ---- forward ---- */

static void larger_of(int64_t n, const float *x, float *most)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        float a = x[i], b = most[i];
        most[i] = ((a > b) | (a != a)) ? a : b;
    }
}

static void add_to(int64_t n, const float *x, float *sum)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

static void scale_to(int64_t n, float factor, const float *x, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = factor * x[i];
}

typedef void combine(int64_t n, const float *x, float *to);
typedef float combine_one(float x, float sum);

static inline float larger_one(float x, float most)
{
    return ((x > most) | (x != x)) ? x : most;
}

static inline float add_one(float x, float sum)
{
    return sum + x;
}

/* Combines the rows under a line of windows, then the result with itself shifted by one group after the other; every
 * pool_w-th group is then a window's. */
TDI_INLINE void tidy_line(const pool *p, const float *x, combine *add, bool mean, float *scratch, float *to)
{
    const tdi_pool2d_attrs *a = p->attrs;
    float *line = scratch, *windows = scratch + p->line;
    memcpy(line, x, (size_t)p->line * sizeof *line);
    for (int i = 1; i < a->pool_h; i++)
        add(p->line, x + i * p->line, line);
    memcpy(windows, line, (size_t)p->line * sizeof *line);
    for (int j = 1; j < a->pool_w; j++)
        add(p->line - j * p->channels, line + j * p->channels, windows);
    copy_groups(p->y->dim[2], p->channels, to, p->channels, windows, a->pool_w * p->channels);
    if (mean)
        scale_to(p->y_line, 1.0f / (float)(a->pool_h * a->pool_w), to, to);
}

/* The same for many channels; x is the first row under the line. */
TDI_INLINE void apart_line(const pool *p, int pool_h, int pool_w, const float *x, combine_one *add, bool mean,
                           float *to)
{
    const int64_t line = p->line, c = p->channels, own = p->own;
    const float share = 1.0f / (float)(pool_h * pool_w);
    for (int64_t ox = 0; ox < p->y->dim[2]; ox++, x += pool_w * c, to += c)
        TDI_LANES for (int64_t k = 0; k < own; k++)
        {
            float sum = x[k];
            for (int i = 0; i < pool_h; i++)
                for (int j = i == 0; j < pool_w; j++)
                    sum = add(x[i * line + j * c + k], sum);
            to[k] = mean ? share * sum : sum;
        }
}

TDI_INLINE void any_line(const pool *p, const float *x, int64_t n, int64_t oy, combine *add, bool mean, float *to)
{
    for (int64_t ox = 0; ox < p->y->dim[2]; ox++, to += p->channels) {
        tdi_pool2d_cells cells = cells_of(p, oy, ox);
        memcpy(to, x + x_at(p, n, cells.top) + cells.left * p->channels, (size_t)p->own * sizeof *to);
        for (int64_t i = cells.top; i < cells.bottom; i++)
            for (int64_t j = cells.left + (i == cells.top); j < cells.right; j++)
                add(p->own, x + x_at(p, n, i) + j * p->channels, to);
        if (mean)
            scale_to(p->own, 1.0f / (float)((cells.bottom - cells.top) * (cells.right - cells.left)), to, to);
    }
}

static bool is_2x2(const pool *p)
{
    return p->apart && p->attrs->pool_h == 2 && p->attrs->pool_w == 2;
}

TDI_INLINE void pool_forward(const tdi_call *call, combine *add, combine_one *one, bool mean)
{
    pool p = pool_of(call, &call->in[0].shape, &call->out.shape);
    const float *x = (const float *)call->in[0].data + p.first;
    for (int64_t n = p.begin; n < p.end; n++)
        for (int64_t oy = 0; oy < p.y->dim[1]; oy++) {
            float *to = (float *)call->out.data + y_at(&p, n, oy) + p.first;
            if (p.tidy)
                tidy_line(&p, x + x_at(&p, n, oy * p.attrs->pool_h), add, mean, call->scratch, to);
            else if (is_2x2(&p))
                apart_line(&p, 2, 2, x + x_at(&p, n, 2 * oy), one, mean, to);
            else
                any_line(&p, x, n, oy, add, mean, to);
        }
}

static void max_forward(const tdi_call *call)
{
    pool_forward(call, larger_of, larger_one, false);
}

static void max_pool2d_run(const tdi_call *call)
{
    run_either(call, max_forward);
}
TDI_CPU_KERNEL(max_pool2d, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .interleaving = accepts_interleaving,
               .prepare = prepare_forward, .run = max_pool2d_run);

static void average_forward(const tdi_call *call)
{
    pool_forward(call, add_to, add_one, true);
}

static void average_pool2d_run(const tdi_call *call)
{
    run_either(call, average_forward);
}
TDI_CPU_KERNEL(average_pool2d, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .interleaving = accepts_interleaving,
               .prepare = prepare_forward, .run = average_pool2d_run);

/* ---- gradients ---- */

static void clear(float *to, int64_t count)
{
    if (count)
        memset(to, 0, (size_t)count * sizeof *to);
}

/* Clears the rows of a sample that no window covers. */
static void clear_below(const pool *p, float *dx, int64_t n)
{
    int64_t rows = p->y->dim[1] * p->attrs->pool_h;
    clear(dx + x_at(p, n, rows), (p->x->dim[1] - rows) * p->line);
}

/* Makes a row under a line of windows from pool_w lines of groups: column j of each window is line j's group. */
static void weave(const pool *p, const float *lines, int64_t step, float *dx)
{
    int pool_w = p->attrs->pool_w;
    int64_t c = p->channels, width = c == 1 ? 1 : c <= 4 ? 4 : c <= 8 ? 8 : FEW;
    for (int64_t ox = 0; ox < p->y->dim[2]; ox++)
        for (int j = 0; j < pool_w; j++, dx += c) {
            bool last = ox + 1 == p->y->dim[2] && j + 1 == pool_w;
            const float *from = lines + j * step + ox * c;
            if (last || width == 1)
                copy_groups(1, c, dx, 0, from, 0);
            else if (width == 4)
                copy_wide(1, 4, dx, 0, from, 0);
            else if (width == 8)
                copy_wide(1, 8, dx, 0, from, 0);
            else
                copy_wide(1, FEW, dx, 0, from, 0);
        }
}

/* Writes the row of dx at `row`, which may be x's own storage: `count` numbers, and zeros behind them. */
static void write_row(const pool *p, const float *x, const float *gradient, int64_t count, int64_t row, float *dx)
{
    if (p->attrs->activation == TD_LINEAR)
        memcpy(dx + row, gradient, (size_t)count * sizeof *dx);
    else
        TDI_ISA_NAME(tdi_vector_loops).slope(p->attrs->activation, count, x + row, gradient, dx + row);
    clear(dx + row + count, p->line - count);
}

/* For windows that do not overlap: dy / cells goes to every column of its window in the scratch, and from there to each
 * row. */
static void apart_average_grad(const pool *p, const float *x, const float *dy, int64_t n, float *scratch, float *dx)
{
    int pool_h = p->attrs->pool_h, pool_w = p->attrs->pool_w;
    float share = 1.0f / (float)(pool_h * pool_w), *gradient = scratch, *scaled = scratch + p->line;
    for (int64_t oy = 0; oy < p->y->dim[1]; oy++) {
        const float *from = dy + y_at(p, n, oy);
        if (p->tidy) {
            scale_to(p->y_line, share, from, scaled);
            weave(p, scaled, 0, gradient);
        }
        for (int64_t i = 0; i < p->y_line && !p->tidy; i += p->channels)
            for (int j = 0; j < pool_w; j++)
                scale_to(p->channels, share, from + i, gradient + i * pool_w + j * p->channels);
        for (int i = 0; i < pool_h; i++)
            write_row(p, x, gradient, p->y_line * pool_w, x_at(p, n, oy * pool_h + i), dx);
    }
    clear_below(p, dx, n);
}

/* The first of the lines of windows over a row of x. */
static int64_t first_over(const pool *p, int64_t row)
{
    int64_t above = row + p->before_h - p->attrs->pool_h; /* where the last window begins that ends before the row */
    return above < 0 ? 0 : above / p->attrs->stride_h + 1;
}

static int64_t end_over(const pool *p, int64_t row)
{
    return tdi_least((row + p->before_h) / p->attrs->stride_h + 1, p->y->dim[1]);
}

/* Adds what a line of windows gives to each row under it. */
static void add_line(const pool *p, const float *dy, int64_t n, int64_t oy, float *gradient)
{
    for (int64_t ox = 0; ox < p->y->dim[2]; ox++) {
        tdi_pool2d_cells cells = cells_of(p, oy, ox);
        const float *from = dy + y_at(p, n, oy) + ox * p->channels;
        float share = 1.0f / (float)((cells.bottom - cells.top) * (cells.right - cells.left));
        for (int64_t j = cells.left; j < cells.right; j++) {
            float *to = gradient + j * p->channels;
            TDI_LANES for (int64_t c = 0; c < p->channels; c++) to[c] += share * from[c];
        }
    }
}

/* For any windows: makes dx row by row from the windows over it. */
static void any_average_grad(const pool *p, const float *x, const float *dy, int64_t n, float *gradient, float *dx)
{
    for (int64_t row = 0; row < p->x->dim[1]; row++) {
        clear(gradient, p->line);
        for (int64_t oy = first_over(p, row); oy < end_over(p, row); oy++)
            add_line(p, dy, n, oy, gradient);
        write_row(p, x, gradient, p->line, x_at(p, n, row), dx);
    }
}

static void average_backward(const tdi_call *call)
{
    pool p = pool_of(call, &call->out.shape, &call->in[0].shape);
    const float *x = call->n_in > 1 ? call->in[1].data : NULL;
    for (int64_t n = p.begin; n < p.end; n++)
        (p.apart ? apart_average_grad : any_average_grad)(&p, x, call->in[0].data, n, call->scratch, call->out.data);
}

static td_status prepare_average_grad(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    pool p = pool_of(call, &call->out.shape, &call->in[0].shape);
    *scratch = room(call, 2 * p.line);
    return TD_OK;
}

static void average_pool2d_grad_run(const tdi_call *call)
{
    run_either(call, average_backward);
}
TDI_CPU_KERNEL(average_pool2d_grad, .splits = TDI_CAN_ROWS, .interleaving = accepts_interleaving,
               .prepare = prepare_average_grad, .run = average_pool2d_grad_run);

/* ---- the maximum's gradient ----
 *
 * It goes to the first cell that has the maximum, in row-major order; a NaN is the maximum of its window. dx may be x's
 * own storage, so a row of dx is made in the scratch and written when that row of x has been read. What a window has
 * not yet given away of its dy is kept from row to row. */

/* Moves `left`, the dy not yet given away, to dx where x is the maximum. */
static void take(int64_t n, const float *x, const float *y, float *left, float *taken)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        bool here = (x[i] == y[i]) | ((x[i] != x[i]) & (y[i] != y[i]));
        taken[i] = here ? left[i] : 0.0f;
        left[i] = here ? 0.0f : left[i];
    }
}

static void take_and_add(int64_t n, const float *x, const float *y, float *left, float *dx)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        bool here = (x[i] == y[i]) | ((x[i] != x[i]) & (y[i] != y[i]));
        dx[i] += here ? left[i] : 0.0f;
        left[i] = here ? 0.0f : left[i];
    }
}

static void tidy_max_grad(const pool *p, const float *x, const float *y, const float *dy, int64_t n, float *scratch,
                          float *dx)
{
    const tdi_pool2d_attrs *a = p->attrs;
    float *gradient = scratch, *taken = gradient + p->line, *left = taken + p->line, *column = left + p->y_line;
    for (int64_t oy = 0; oy < p->y->dim[1]; oy++) {
        memcpy(left, dy + y_at(p, n, oy), (size_t)p->y_line * sizeof *left);
        for (int i = 0; i < a->pool_h; i++) {
            int64_t row = x_at(p, n, oy * a->pool_h + i);
            for (int j = 0; j < a->pool_w; j++) {
                copy_groups(p->y->dim[2], p->channels, column, p->channels, x + row + j * p->channels,
                            a->pool_w * p->channels);
                take(p->y_line, column, y + y_at(p, n, oy), left, taken + j * p->y_line);
            }
            weave(p, taken, p->y_line, gradient);
            write_row(p, x, gradient, p->y_line * a->pool_w, row, dx);
        }
    }
    clear_below(p, dx, n);
}

/* Gives a line of windows' dy to a row of x under it. */
static void take_line(const pool *p, const float *x, const float *y, int64_t oy, float *left, float *gradient)
{
    for (int64_t ox = 0; ox < p->y->dim[2]; ox++, y += p->channels, left += p->channels) {
        tdi_pool2d_cells cells = cells_of(p, oy, ox);
        for (int64_t j = cells.left; j < cells.right; j++)
            take_and_add(p->channels, x + j * p->channels, y, left, gradient + j * p->channels);
    }
}

/* How many lines of windows a row may be under, at most. */
static int64_t most_over(const pool *p)
{
    return (p->attrs->pool_h + p->attrs->stride_h - 1) / p->attrs->stride_h;
}

static void any_max_grad(const pool *p, const float *x, const float *y, const float *dy, int64_t n, float *scratch,
                         float *dx)
{
    float *gradient = scratch, *lefts = scratch + p->line;
    for (int64_t row = 0; row < p->x->dim[1]; row++) {
        clear(gradient, p->line);
        for (int64_t oy = first_over(p, row); oy < end_over(p, row); oy++) {
            float *left = lefts + oy % most_over(p) * p->y_line;
            if (row == cells_of(p, oy, 0).top)
                memcpy(left, dy + y_at(p, n, oy), (size_t)p->y_line * sizeof *left);
            take_line(p, x + x_at(p, n, row), y + y_at(p, n, oy), oy, left, gradient);
        }
        write_row(p, x, gradient, p->line, x_at(p, n, row), dx);
    }
}

/* For 2x2 windows: a line gives to two rows. The rows under the next line are prefetched. */
static void take_line_2x2(const pool *p, const float *x, const float *y, const float *dy, float *gradient)
{
    const int64_t line = p->line, c = p->channels;
    for (int64_t ox = 0; ox < p->y->dim[2]; ox++, x += 2 * c, gradient += 2 * c, y += c, dy += c) {
        tdi_fetch(x + 2 * line, line, 2, 0, 2 * c);
        TDI_LANES for (int64_t k = 0; k < c; k++)
        {
            float most = y[k], left = dy[k];
            for (int cell = 0; cell < 4; cell++) {
                int64_t at = (cell >> 1) * line + (cell & 1) * c + k;
                bool here = (x[at] == most) | ((x[at] != x[at]) & (most != most));
                gradient[at] = here ? left : 0.0f;
                left = here ? 0.0f : left;
            }
        }
    }
}

static void max_grad_2x2(const pool *p, const float *x, const float *y, const float *dy, int64_t n, float *gradient,
                         float *dx)
{
    for (int64_t oy = 0; oy < p->y->dim[1]; oy++) {
        int64_t row = x_at(p, n, 2 * oy), windows = y_at(p, n, oy);
        take_line_2x2(p, x + row, y + windows, dy + windows, gradient);
        write_row(p, x, gradient, 2 * p->y_line, row, dx);
        write_row(p, x, gradient + p->line, 2 * p->y_line, row + p->line, dx);
    }
    clear_below(p, dx, n);
}

static pool max_grad_pool(const tdi_call *call)
{
    return pool_of(call, &call->in[0].shape, &call->in[2].shape);
}

static void max_backward(const tdi_call *call)
{
    pool p = max_grad_pool(call);
    const float *x = call->in[0].data, *y = call->in[1].data, *dy = call->in[2].data;
    for (int64_t n = p.begin; n < p.end; n++)
        (p.tidy       ? tidy_max_grad
         : is_2x2(&p) ? max_grad_2x2
                      : any_max_grad)(&p, x, y, dy, n, call->scratch, call->out.data);
}

static td_status prepare_max_grad(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state, (void)error;
    pool p = max_grad_pool(call);
    int64_t lines = p.apart ? 2 * p.line + 2 * p.y_line : p.line + most_over(&p) * p.y_line;
    *scratch = room(call, lines);
    return TD_OK;
}

static void max_pool2d_grad_run(const tdi_call *call)
{
    run_either(call, max_backward);
}
TDI_CPU_KERNEL(max_pool2d_grad, .splits = TDI_CAN_ROWS, .interleaving = accepts_interleaving,
               .prepare = prepare_max_grad, .run = max_pool2d_grad_run);
