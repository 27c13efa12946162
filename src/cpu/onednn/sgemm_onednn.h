/* sgemm_onednn.h - oneDNN's product of float32 matrices, made so that it cannot fail. */
#ifndef TDI_CPU_ONEDNN_SGEMM_ONEDNN_H
#define TDI_CPU_ONEDNN_SGEMM_ONEDNN_H

#include <stdint.h>

/* A factor in memory; its rows are `stride` floats apart. */
typedef struct tdi_factor {
    const float *at;
    int64_t stride;
    char transposed; /* 'T', or 'N': as it lies */
} tdi_factor;

/* to[m, n] = a[m, depth] . b[depth, n] + beta * to, with `beta` 0 or 1; rows of `to` are `stride` floats apart. oneDNN
 * allocates memory for packed factors at each call; when there is none, plain loops make the product, slowly. */
void tdi_sgemm(int64_t m, int64_t n, int64_t depth, tdi_factor a, tdi_factor b, float beta, float *to, int64_t stride);

#endif
