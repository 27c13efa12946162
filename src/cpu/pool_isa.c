/* pool_isa.c - maximum and average pooling and their gradients, channels last.
 *
 * A window is taken apart: first down the rows under it, whole lines of [width, channels] at a time, then along the
 * line. So the vector lanes are full even with one channel, but for the last, shorter step. */
#include "cpu/isa.h"
#include "ops/pool2d.h"

/* Shapes [n, h, w, c] of what is pooled and of the result; a line is one row of x. */
typedef struct pool {
    const tdi_pool2d_attrs *attrs;
    const td_shape *x, *y;
    int64_t channels, line;
    int64_t begin, end; /* samples to make */
} pool;

static pool pool_of(const tdi_call *call, const td_shape *x, const td_shape *y)
{
    bool rows = call->split == TDI_ROWS;
    return (pool){.attrs = call->attrs,
                  .x = x,
                  .y = y,
                  .channels = x->dim[3],
                  .line = x->dim[2] * x->dim[3],
                  .begin = rows ? call->begin : 0,
                  .end = rows ? call->end : x->dim[0]};
}

static int64_t row_at(const td_shape *shape, int64_t n, int64_t row)
{
    return (n * shape->dim[1] + row) * shape->dim[2] * shape->dim[3];
}

static td_status one_line(const td_shape *x, size_t *scratch)
{
    *scratch = (size_t)(x->dim[2] * x->dim[3]) * sizeof(float);
    return TD_OK;
}

static td_status prepare_forward(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    (void)error;
    return one_line(&call->in[0].shape, scratch);
}

static td_status prepare_backward(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    (void)state;
    (void)error;
    return one_line(&call->out.shape, scratch);
}

static void larger_of(int64_t n, const float *x, float *most)
{
    TDI_LANES for (int64_t i = 0; i < n; i++)
    {
        float a = x[i], b = most[i];
        most[i] = (a > b) | (a != a) ? a : b;
    }
}

static void add_to(int64_t n, const float *x, float *sum)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

static void scale_by(int64_t n, float factor, float *x)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

typedef void combine(int64_t n, const float *x, float *to);

/* The rows under a window into `line`, then each window's columns into `to`. */
static inline __attribute__((always_inline)) void pool_row(const pool *p, const float *x, int64_t n, int64_t oy,
                                                           combine *add, bool mean, float *line, float *to)
{
    tdi_pool2d_cells cells = tdi_pool2d_window(p->attrs, p->x, oy, 0);
    memcpy(line, x + row_at(p->x, n, cells.top), (size_t)p->line * sizeof *line);
    for (int64_t i = cells.top + 1; i < cells.bottom; i++)
        add(p->line, x + row_at(p->x, n, i), line);
    for (int64_t ox = 0; ox < p->y->dim[2]; ox++, to += p->channels) {
        cells = tdi_pool2d_window(p->attrs, p->x, oy, ox);
        memcpy(to, line + cells.left * p->channels, (size_t)p->channels * sizeof *to);
        for (int64_t j = cells.left + 1; j < cells.right; j++)
            add(p->channels, line + j * p->channels, to);
        if (mean)
            scale_by(p->channels, 1.0f / (float)((cells.bottom - cells.top) * (cells.right - cells.left)), to);
    }
}

static void max_pool2d_run(const tdi_call *call)
{
    pool p = pool_of(call, &call->in[0].shape, &call->out.shape);
    for (int64_t n = p.begin; n < p.end; n++)
        for (int64_t oy = 0; oy < p.y->dim[1]; oy++)
            pool_row(&p, call->in[0].data, n, oy, larger_of, false, call->scratch,
                     (float *)call->out.data + row_at(p.y, n, oy));
}
TDI_CPU_KERNEL(max_pool2d, .splits = TDI_CAN_ROWS, .prepare = prepare_forward, .run = max_pool2d_run);

static void average_pool2d_run(const tdi_call *call)
{
    pool p = pool_of(call, &call->in[0].shape, &call->out.shape);
    for (int64_t n = p.begin; n < p.end; n++)
        for (int64_t oy = 0; oy < p.y->dim[1]; oy++)
            pool_row(&p, call->in[0].data, n, oy, add_to, true, call->scratch,
                     (float *)call->out.data + row_at(p.y, n, oy));
}
TDI_CPU_KERNEL(average_pool2d, .splits = TDI_CAN_ROWS, .prepare = prepare_forward, .run = average_pool2d_run);

/* ---- gradients ---- */

static void clear_sample(const pool *p, int64_t n, float *dx)
{
    memset(dx + row_at(p->x, n, 0), 0, (size_t)(p->x->dim[1] * p->line) * sizeof *dx);
}

/* Each window's share along the line, then the line added to the rows under it. */
static void spread_row(const pool *p, const float *dy, int64_t n, int64_t oy, float *line, float *dx)
{
    tdi_pool2d_cells cells = tdi_pool2d_window(p->attrs, p->x, oy, 0);
    memset(line, 0, (size_t)p->line * sizeof *line);
    for (int64_t ox = 0; ox < p->y->dim[2]; ox++, dy += p->channels) {
        cells = tdi_pool2d_window(p->attrs, p->x, oy, ox);
        float share = 1.0f / (float)((cells.bottom - cells.top) * (cells.right - cells.left));
        for (int64_t j = cells.left; j < cells.right; j++) {
            float *to = line + j * p->channels;
            TDI_LANES for (int64_t c = 0; c < p->channels; c++) to[c] += share * dy[c];
        }
    }
    for (int64_t i = cells.top; i < cells.bottom; i++)
        add_to(p->line, line, dx + row_at(p->x, n, i));
}

static void average_pool2d_grad_run(const tdi_call *call)
{
    pool p = pool_of(call, &call->out.shape, &call->in[0].shape);
    const float *dy = call->in[0].data;
    float *dx = call->out.data;
    for (int64_t n = p.begin; n < p.end; n++) {
        clear_sample(&p, n, dx);
        for (int64_t oy = 0; oy < p.y->dim[1]; oy++)
            spread_row(&p, dy + row_at(p.y, n, oy), n, oy, call->scratch, dx);
    }
}
TDI_CPU_KERNEL(average_pool2d_grad, .splits = TDI_CAN_ROWS, .prepare = prepare_backward,
               .run = average_pool2d_grad_run);

/* Gives `left` to the cell where it is the maximum, and nothing to the later ones. NaN is the maximum of its window. */
static void give(int64_t channels, const float *x, const float *y, float *left, float *dx)
{
    TDI_LANES for (int64_t c = 0; c < channels; c++)
    {
        bool here = (x[c] == y[c]) | ((x[c] != x[c]) & (y[c] != y[c]));
        dx[c] += here ? left[c] : 0.0f;
        left[c] = here ? 0.0f : left[c];
    }
}

static void max_window(const pool *p, const float *x, const float *y, const float *dy, int64_t n,
                       const tdi_pool2d_cells *cells, float *left, float *dx)
{
    memcpy(left, dy, (size_t)p->channels * sizeof *left);
    for (int64_t i = cells->top; i < cells->bottom; i++)
        for (int64_t j = cells->left; j < cells->right; j++) {
            int64_t at = row_at(p->x, n, i) + j * p->channels;
            give(p->channels, x + at, y, left, dx + at);
        }
}

static void max_pool2d_grad_run(const tdi_call *call)
{
    pool p = pool_of(call, &call->in[0].shape, &call->in[2].shape);
    const float *y = call->in[1].data, *dy = call->in[2].data;
    for (int64_t n = p.begin; n < p.end; n++) {
        clear_sample(&p, n, call->out.data);
        for (int64_t oy = 0; oy < p.y->dim[1]; oy++)
            for (int64_t ox = 0; ox < p.y->dim[2]; ox++) {
                int64_t at = row_at(p.y, n, oy) + ox * p.channels;
                tdi_pool2d_cells cells = tdi_pool2d_window(p.attrs, p.x, oy, ox);
                max_window(&p, call->in[0].data, y + at, dy + at, n, &cells, call->scratch, call->out.data);
            }
    }
}
TDI_CPU_KERNEL(max_pool2d_grad, .splits = TDI_CAN_ROWS, .prepare = prepare_backward, .run = max_pool2d_grad_run);
