/* softmax_isa.c - softmax, log-softmax and softmax cross-entropy, with their gradients, row by row. */
#include "cpu/math_isa.h"

/* Rows of the last axis that a call is to make; `call->out`, or for a loss per row its logits, give the row's length.
 */
typedef struct rows {
    int64_t begin, end, length;
} rows;

static rows rows_of(const tdi_call *call, const td_shape *shape)
{
    int64_t length = tdi_last_extent(shape), count = tdi_outer_extent(shape);
    if (call->split != TDI_ROWS)
        return (rows){0, count, length};
    int64_t inner = shape->dim[0] ? count / shape->dim[0] : 0;
    return (rows){call->begin * inner, call->end * inner, length};
}

static const char *declines(const tdi_call *call)
{
    return call->in[0].shape.rank < 2 ? "a single row" : NULL;
}

/* to = exp(x - largest), in place of nothing else; returns the sum */
static float exponentials(int64_t n, const float *x, float largest, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = math_exp(x[i] - largest);
    return (float)tdi_sum(to, n);
}

static float sum_exponentials(int64_t n, const float *x, float largest)
{
    enum { CHUNK = 256 };
    float part[CHUNK];
    double sum = 0;
    for (int64_t i = 0; i < n; i += CHUNK)
        sum += (double)exponentials(n - i < CHUNK ? n - i : CHUNK, x + i, largest, part);
    return (float)sum;
}

static void scale(int64_t n, float by, float *x)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) x[i] *= by;
}

static float dot(int64_t n, const float *a, const float *b)
{
    int64_t i = 0;
    tdi_vector sum = {0};
    for (; i + TDI_WIDTH <= n; i += TDI_WIDTH)
        sum += tdi_load(a + i) * tdi_load(b + i);
    float rest = 0;
    for (; i < n; i++)
        rest += a[i] * b[i];
    return tdi_fold_sum(sum) + rest;
}

static void softmax_row(int64_t n, const float *x, float *to)
{
    float sum = exponentials(n, x, tdi_largest(x, n), to);
    scale(n, 1.0f / sum, to);
}

static void softmax_run(const tdi_call *call)
{
    const float *x = call->in[0].data;
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++)
        softmax_row(w.length, x + r * w.length, (float *)call->out.data + r * w.length);
}
TDI_CPU_KERNEL(softmax, .splits = TDI_CAN_ROWS, .declines = declines, .run = softmax_run);

static void softmax_grad_run(const tdi_call *call)
{
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        const float *y = (const float *)call->in[0].data + r * w.length;
        const float *dy = (const float *)call->in[1].data + r * w.length;
        float *to = (float *)call->out.data + r * w.length, d = dot(w.length, y, dy);
        TDI_LANES for (int64_t i = 0; i < w.length; i++) to[i] = y[i] * (dy[i] - d);
    }
}
TDI_CPU_KERNEL(softmax_grad, .splits = TDI_CAN_ROWS, .declines = declines, .run = softmax_grad_run);

static void log_softmax_run(const tdi_call *call)
{
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        const float *x = (const float *)call->in[0].data + r * w.length;
        float *to = (float *)call->out.data + r * w.length, largest = tdi_largest(x, w.length);
        float log_sum = math_log(sum_exponentials(w.length, x, largest));
        TDI_LANES for (int64_t i = 0; i < w.length; i++) to[i] = (x[i] - largest) - log_sum;
    }
}
TDI_CPU_KERNEL(log_softmax, .splits = TDI_CAN_ROWS, .declines = declines, .run = log_softmax_run);

static void log_softmax_grad_run(const tdi_call *call)
{
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        const float *y = (const float *)call->in[0].data + r * w.length;
        const float *dy = (const float *)call->in[1].data + r * w.length;
        float *to = (float *)call->out.data + r * w.length, sum = (float)tdi_sum(dy, w.length);
        TDI_LANES for (int64_t i = 0; i < w.length; i++) to[i] = dy[i] - math_exp(y[i]) * sum;
    }
}
TDI_CPU_KERNEL(log_softmax_grad, .splits = TDI_CAN_ROWS, .declines = declines, .run = log_softmax_grad_run);

/* ---- cross-entropy with class numbers ---- */

static bool is_class(int32_t label, int64_t classes)
{
    return label >= 0 && label < classes;
}

static void sparse_softmax_cross_entropy_run(const tdi_call *call)
{
    const int32_t *labels = call->in[1].data;
    float *loss = call->out.data;
    rows w = rows_of(call, &call->in[0].shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        const float *x = (const float *)call->in[0].data + r * w.length;
        if (tdi_ignores(call->attrs, labels[r])) {
            loss[r] = 0;
            continue;
        }
        float largest = tdi_largest(x, w.length), sum = sum_exponentials(w.length, x, largest);
        loss[r] = is_class(labels[r], w.length) ? math_log(sum) - (x[labels[r]] - largest) : NAN;
    }
}
TDI_CPU_KERNEL(sparse_softmax_cross_entropy, .splits = TDI_CAN_ROWS, .declines = declines,
               .run = sparse_softmax_cross_entropy_run);

static void sparse_softmax_cross_entropy_grad_run(const tdi_call *call)
{
    const int32_t *labels = call->in[1].data;
    const float *dloss = call->in[2].data;
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        float *to = (float *)call->out.data + r * w.length;
        if (tdi_ignores(call->attrs, labels[r])) {
            memset(to, 0, (size_t)w.length * sizeof *to);
            continue;
        }
        softmax_row(w.length, (const float *)call->in[0].data + r * w.length, to);
        bool valid = is_class(labels[r], w.length);
        if (valid)
            to[labels[r]] -= 1.0f;
        scale(w.length, valid ? dloss[r] : NAN, to);
    }
}
TDI_CPU_KERNEL(sparse_softmax_cross_entropy_grad, .splits = TDI_CAN_ROWS, .declines = declines,
               .run = sparse_softmax_cross_entropy_grad_run);

/* ---- cross-entropy with distributions ---- */

static void softmax_cross_entropy_run(const tdi_call *call)
{
    float *loss = call->out.data;
    rows w = rows_of(call, &call->in[0].shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        const float *x = (const float *)call->in[0].data + r * w.length;
        const float *target = (const float *)call->in[1].data + r * w.length;
        float largest = tdi_largest(x, w.length), log_sum = math_log(sum_exponentials(w.length, x, largest));
        double sum = 0;
        for (int64_t i = 0; i < w.length; i++)
            sum += (double)(target[i] * (log_sum - (x[i] - largest)));
        loss[r] = (float)sum;
    }
}
TDI_CPU_KERNEL(softmax_cross_entropy, .splits = TDI_CAN_ROWS, .declines = declines, .run = softmax_cross_entropy_run);

static void softmax_cross_entropy_grad_run(const tdi_call *call)
{
    const float *dloss = call->in[2].data;
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        const float *target = (const float *)call->in[1].data + r * w.length;
        float *to = (float *)call->out.data + r * w.length, mass = (float)tdi_sum(target, w.length);
        softmax_row(w.length, (const float *)call->in[0].data + r * w.length, to);
        TDI_LANES for (int64_t i = 0; i < w.length; i++) to[i] = (to[i] * mass - target[i]) * dloss[r];
    }
}
TDI_CPU_KERNEL(softmax_cross_entropy_grad, .splits = TDI_CAN_ROWS, .declines = declines,
               .run = softmax_cross_entropy_grad_run);
