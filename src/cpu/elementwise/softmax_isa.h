/* softmax_isa.h - softmax and log-softmax of one row, and their gradients. */
#ifndef TDI_CPU_ELEMENTWISE_SOFTMAX_ISA_H
#define TDI_CPU_ELEMENTWISE_SOFTMAX_ISA_H

#include "cpu/math_isa.h"

/* to = exp(x - largest); returns the sum of `to`. */
static inline float tdi_exponential_row(int64_t n, const float *x, float largest, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = math_exp(x[i] - largest);
    return (float)tdi_sum(to, n);
}

enum { TDI_SOFTMAX_CHUNK = 256 };

static inline int64_t tdi_softmax_chunk(int64_t i, int64_t n)
{
    return n - i < TDI_SOFTMAX_CHUNK ? n - i : TDI_SOFTMAX_CHUNK;
}

/* Returns the sum of exp(x - largest); stores the exponentials in `to` unless it is NULL. */
static inline float tdi_sum_exponentials(int64_t n, const float *x, float largest, float *to)
{
    float chunk[TDI_SOFTMAX_CHUNK];
    double sum = 0;
    for (int64_t i = 0; i < n; i += TDI_SOFTMAX_CHUNK)
        sum += (double)tdi_exponential_row(tdi_softmax_chunk(i, n), x + i, largest, to ? to + i : chunk);
    return (float)sum;
}

static inline void tdi_scale(int64_t n, float by, float *x)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) x[i] *= by;
}

static inline void tdi_softmax_row(int64_t n, const float *x, float *to)
{
    float sum = tdi_exponential_row(n, x, tdi_largest(x, n), to);
    tdi_scale(n, 1.0f / sum, to);
}

static inline void tdi_log_softmax_row(int64_t n, const float *x, float *to)
{
    float largest = tdi_largest(x, n), log_sum = math_log(tdi_sum_exponentials(n, x, largest, NULL));
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = (x[i] - largest) - log_sum;
}

static inline void tdi_softmax_slope_row(int64_t n, const float *y, const float *dy, float *to)
{
    float d = tdi_dot(n, y, dy);
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = y[i] * (dy[i] - d);
}

static inline void tdi_log_softmax_slope_row(int64_t n, const float *y, const float *dy, float *to)
{
    float sum = (float)tdi_sum(dy, n);
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = dy[i] - math_exp(y[i]) * sum;
}

#endif
