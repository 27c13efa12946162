/* sgemm_onednn.c - dnnl_sgemm, and plain loops for when it finds no memory. */
#include "cpu/onednn/sgemm_onednn.h"

#include <oneapi/dnnl/dnnl.h>

static int64_t row_step(const tdi_factor *f)
{
    return f->transposed == 'T' ? 1 : f->stride;
}

static int64_t column_step(const tdi_factor *f)
{
    return f->transposed == 'T' ? f->stride : 1;
}

static void multiply_plainly(int64_t m, int64_t n, int64_t depth, const tdi_factor *a, const tdi_factor *b, float beta,
                             float *to, int64_t stride)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const float *left = a->at + i * row_step(a), *right = b->at + j * column_step(b);
            double sum = 0;
            for (int64_t k = 0; k < depth; k++, left += column_step(a), right += row_step(b))
                sum += (double)*left * (double)*right;
            to[i * stride + j] = (float)sum + (beta == 0 ? 0 : to[i * stride + j]);
        }
}

/* dnnl_sgemm allocates all of its memory before it writes anything, so the plain loops can start over. */
void tdi_sgemm(int64_t m, int64_t n, int64_t depth, tdi_factor a, tdi_factor b, float beta, float *to, int64_t stride)
{
    if (dnnl_sgemm(a.transposed, b.transposed, m, n, depth, 1, a.at, a.stride, b.at, b.stride, beta, to, stride) !=
        dnnl_success)
        multiply_plainly(m, n, depth, &a, &b, beta, to, stride);
}
