/* softmax_isa.c - softmax, log-softmax and softmax cross-entropy with their gradients, row by row. */
#include "cpu/elementwise/softmax_isa.h"

/* The rows, along the last axis, that a call makes. call->out has the row's length; for a loss per row, the logits have
 * it. */
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

static void softmax_run(const tdi_call *call)
{
    const float *x = call->in[0].data;
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++)
        tdi_softmax_row(w.length, x + r * w.length, (float *)call->out.data + r * w.length);
}
TDI_CPU_KERNEL(softmax, .splits = TDI_CAN_ROWS, .declines = declines, .run = softmax_run);

static void softmax_grad_run(const tdi_call *call)
{
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++)
        tdi_softmax_slope_row(w.length, (const float *)call->in[0].data + r * w.length,
                              (const float *)call->in[1].data + r * w.length, (float *)call->out.data + r * w.length);
}
TDI_CPU_KERNEL(softmax_grad, .splits = TDI_CAN_ROWS, .declines = declines, .run = softmax_grad_run);

static void log_softmax_run(const tdi_call *call)
{
    const float *x = call->in[0].data;
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++)
        tdi_log_softmax_row(w.length, x + r * w.length, (float *)call->out.data + r * w.length);
}
TDI_CPU_KERNEL(log_softmax, .splits = TDI_CAN_ROWS, .declines = declines, .run = log_softmax_run);

static void log_softmax_grad_run(const tdi_call *call)
{
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++)
        tdi_log_softmax_slope_row(w.length, (const float *)call->in[0].data + r * w.length,
                                  (const float *)call->in[1].data + r * w.length,
                                  (float *)call->out.data + r * w.length);
}
TDI_CPU_KERNEL(log_softmax_grad, .splits = TDI_CAN_ROWS, .declines = declines, .run = log_softmax_grad_run);

/* ---- cross-entropy: each gradient makes the losses too when the call has them as an extra output ---- */

static void keep_loss(const tdi_call *call, int64_t row, float loss)
{
    if (call->n_in > 3)
        ((float *)call->in[3].data)[row] = loss;
}

/* ---- with class numbers ---- */

static bool is_class(int32_t label, int64_t classes)
{
    return label >= 0 && label < classes;
}

static float class_loss(float sum, float below)
{
    return math_log(sum) - below;
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
        float largest = tdi_largest(x, w.length), sum = tdi_sum_exponentials(w.length, x, largest, NULL);
        loss[r] = class_loss(sum, is_class(labels[r], w.length) ? x[labels[r]] - largest : NAN);
    }
}
TDI_CPU_KERNEL(sparse_softmax_cross_entropy, .splits = TDI_CAN_ROWS, .declines = declines,
               .run = sparse_softmax_cross_entropy_run);

/* `to` may be the logits' own storage: each logit is read before its gradient is written. */
static float class_grad_row(int64_t n, const float *x, int32_t label, float dloss, float *to)
{
    bool valid = is_class(label, n);
    float largest = tdi_largest(x, n), below = valid ? x[label] - largest : NAN;
    float sum = tdi_sum_exponentials(n, x, largest, to), inverse = 1.0f / sum;
    float p = valid ? to[label] * inverse : 0.0f, by = valid ? dloss : NAN;
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = to[i] * inverse * by;
    if (valid)
        to[label] = (p - 1.0f) * by;
    return class_loss(sum, below);
}

static void sparse_softmax_cross_entropy_grad_run(const tdi_call *call)
{
    const int32_t *labels = call->in[1].data;
    const float *dloss = call->in[2].data;
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        float *to = (float *)call->out.data + r * w.length, loss = 0;
        if (tdi_ignores(call->attrs, labels[r]))
            memset(to, 0, (size_t)w.length * sizeof *to);
        else
            loss = class_grad_row(w.length, (const float *)call->in[0].data + r * w.length, labels[r], dloss[r], to);
        keep_loss(call, r, loss);
    }
}
TDI_CPU_KERNEL(sparse_softmax_cross_entropy_grad, .splits = TDI_CAN_ROWS, .declines = declines,
               .run = sparse_softmax_cross_entropy_grad_run);

/* ---- with distributions ---- */

/* Returns the sum of target * (log_sum - (x - largest)). */
static float distribution_loss(int64_t n, const float *x, const float *target, float largest, float log_sum)
{
    float chunk[TDI_SOFTMAX_CHUNK];
    double sum = 0;
    for (int64_t i = 0; i < n; i += TDI_SOFTMAX_CHUNK) {
        int64_t length = tdi_softmax_chunk(i, n);
        TDI_LANES for (int64_t j = 0; j < length; j++) chunk[j] = target[i + j] * (log_sum - (x[i + j] - largest));
        sum += tdi_sum(chunk, length);
    }
    return (float)sum;
}

static void softmax_cross_entropy_run(const tdi_call *call)
{
    float *loss = call->out.data;
    rows w = rows_of(call, &call->in[0].shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        const float *x = (const float *)call->in[0].data + r * w.length;
        const float *target = (const float *)call->in[1].data + r * w.length;
        float largest = tdi_largest(x, w.length), log_sum = math_log(tdi_sum_exponentials(w.length, x, largest, NULL));
        loss[r] = distribution_loss(w.length, x, target, largest, log_sum);
    }
}
TDI_CPU_KERNEL(softmax_cross_entropy, .splits = TDI_CAN_ROWS, .declines = declines, .run = softmax_cross_entropy_run);

static void softmax_cross_entropy_grad_run(const tdi_call *call)
{
    const float *dloss = call->in[2].data;
    rows w = rows_of(call, &call->out.shape);
    for (int64_t r = w.begin; r < w.end; r++) {
        const float *x = (const float *)call->in[0].data + r * w.length;
        const float *target = (const float *)call->in[1].data + r * w.length;
        float *to = (float *)call->out.data + r * w.length, mass = (float)tdi_sum(target, w.length);
        float largest = tdi_largest(x, w.length), sum = tdi_sum_exponentials(w.length, x, largest, to);
        float inverse = 1.0f / sum, by = dloss[r];
        TDI_LANES for (int64_t i = 0; i < w.length; i++) to[i] = (to[i] * inverse * mass - target[i]) * by;
        if (call->n_in > 3)
            keep_loss(call, r, distribution_loss(w.length, x, target, largest, math_log(sum)));
    }
}
TDI_CPU_KERNEL(softmax_cross_entropy_grad, .splits = TDI_CAN_ROWS, .declines = declines,
               .run = softmax_cross_entropy_grad_run);
