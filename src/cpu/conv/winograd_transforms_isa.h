/* winograd_transforms_isa.h - Winograd's transforms for F(4x4, 3x3), on vectors.
 *
 * A 4x4 output tile is a polynomial product: the 6x6 input tile d and the filter g are evaluated at the points 0, +-A,
 * +-B and infinity in both directions, multiplied point by point, and interpolated:
 *
 *     y = T' [(G g G') . (D d D')] T      dd = D' [(G g G') . (T dy T')] D      dg = G' [(T dy T') . (D d D')] G
 *
 * The windows dd of neighbouring tiles overlap and are added up. Points of nearly the same size, here A = 1/sqrt(2) and
 * B = sqrt(2), keep rounding errors small, but these stay larger than a direct sum's. */
#ifndef TDI_CPU_CONV_WINOGRAD_TRANSFORMS_ISA_H
#define TDI_CPU_CONV_WINOGRAD_TRANSFORMS_ISA_H

#include "cpu/isa.h"

enum { TDI_TILE_OUT = 4, TDI_TILE_TAPS = 3, TDI_TILE_IN = 6 };

/* Powers of A and B, and the filter's factors at the points: 1 / 2A^2(A^2 - B^2) and 1 / 2B^2(B^2 - A^2). */
#define A1                 0.70710678118654752f
#define A2                 0.5f
#define A3                 0.35355339059327376f
#define B1                 1.4142135623730951f
#define B2                 2.0f
#define B3                 2.8284271247461903f
#define PRODUCT_OF_SQUARES 1.0f
#define SUM_OF_SQUARES     2.5f
#define SHARE_OF_A         (-1 / 1.5f)
#define SHARE_OF_B         (1 / 6.0f)

/* ---- one dimension of the transforms ---- */

TDI_INLINE void tdi_evaluate_image(const tdi_vector *d, int step, tdi_vector *to, int to_step)
{
    tdi_vector even_a = d[4 * step] - B2 * d[2 * step], odd_a = A1 * (d[3 * step] - B2 * d[step]);
    tdi_vector even_b = d[4 * step] - A2 * d[2 * step], odd_b = B1 * (d[3 * step] - A2 * d[step]);
    to[0] = PRODUCT_OF_SQUARES * d[0] - SUM_OF_SQUARES * d[2 * step] + d[4 * step];
    to[to_step] = even_a + odd_a;
    to[2 * to_step] = even_a - odd_a;
    to[3 * to_step] = even_b + odd_b;
    to[4 * to_step] = even_b - odd_b;
    to[5 * to_step] = PRODUCT_OF_SQUARES * d[step] - SUM_OF_SQUARES * d[3 * step] + d[5 * step];
}

TDI_INLINE void tdi_evaluate_filter(const tdi_vector *g, int step, tdi_vector *to, int to_step)
{
    tdi_vector even_a = SHARE_OF_A * (g[0] + A2 * g[2 * step]), odd_a = (SHARE_OF_A * A1) * g[step];
    tdi_vector even_b = SHARE_OF_B * (g[0] + B2 * g[2 * step]), odd_b = (SHARE_OF_B * B1) * g[step];
    to[0] = g[0];
    to[to_step] = even_a + odd_a;
    to[2 * to_step] = even_a - odd_a;
    to[3 * to_step] = even_b + odd_b;
    to[4 * to_step] = even_b - odd_b;
    to[5 * to_step] = g[2 * step];
}

TDI_INLINE void tdi_interpolate_tile(const tdi_vector *m, int step, tdi_vector *to, int to_step)
{
    tdi_vector sum_a = m[step] + m[2 * step], difference_a = m[step] - m[2 * step];
    tdi_vector sum_b = m[3 * step] + m[4 * step], difference_b = m[3 * step] - m[4 * step];
    to[0] = m[0] + sum_a + sum_b;
    to[to_step] = A1 * difference_a + B1 * difference_b;
    to[2 * to_step] = A2 * sum_a + B2 * sum_b;
    to[3 * to_step] = A3 * difference_a + B3 * difference_b + m[5 * step];
}

/* T: evaluates dy as a polynomial, for the gradient of the filter. */
TDI_INLINE void tdi_evaluate_gradient(const tdi_vector *y, int step, tdi_vector *to, int to_step)
{
    tdi_vector even_a = y[0] + A2 * y[2 * step], odd_a = A1 * y[step] + A3 * y[3 * step];
    tdi_vector even_b = y[0] + B2 * y[2 * step], odd_b = B1 * y[step] + B3 * y[3 * step];
    to[0] = y[0];
    to[to_step] = even_a + odd_a;
    to[2 * to_step] = even_a - odd_a;
    to[3 * to_step] = even_b + odd_b;
    to[4 * to_step] = even_b - odd_b;
    to[5 * to_step] = y[3 * step];
}

TDI_INLINE void tdi_gather_filter(const tdi_vector *u, int step, tdi_vector *to, int to_step)
{
    tdi_vector sum_a = SHARE_OF_A * (u[step] + u[2 * step]), sum_b = SHARE_OF_B * (u[3 * step] + u[4 * step]);
    tdi_vector difference_a = u[step] - u[2 * step], difference_b = u[3 * step] - u[4 * step];
    to[0] = u[0] + sum_a + sum_b;
    to[to_step] = (SHARE_OF_A * A1) * difference_a + (SHARE_OF_B * B1) * difference_b;
    to[2 * to_step] = A2 * sum_a + B2 * sum_b + u[5 * step];
}

/* D': for the gradient of the image. */
TDI_INLINE void tdi_scatter_image(const tdi_vector *m, int step, tdi_vector *to, int to_step)
{
    tdi_vector sum_a = m[step] + m[2 * step], difference_a = m[step] - m[2 * step];
    tdi_vector sum_b = m[3 * step] + m[4 * step], difference_b = m[3 * step] - m[4 * step];
    to[0] = PRODUCT_OF_SQUARES * m[0];
    to[to_step] = PRODUCT_OF_SQUARES * m[5 * step] - (A1 * B2) * difference_a - (B1 * A2) * difference_b;
    to[2 * to_step] = -SUM_OF_SQUARES * m[0] - B2 * sum_a - A2 * sum_b;
    to[3 * to_step] = A1 * difference_a + B1 * difference_b - SUM_OF_SQUARES * m[5 * step];
    to[4 * to_step] = m[0] + sum_a + sum_b;
    to[5 * to_step] = m[5 * step];
}

/* ---- both dimensions ---- */

typedef void tdi_transform(const tdi_vector *from, int step, tdi_vector *to, int to_step);

/* Applies a transform to columns, then to rows: [size, size] -> [made, made]. */
TDI_INLINE void tdi_both_ways(tdi_transform *one_way, int size, int made, const tdi_vector *from, tdi_vector *to)
{
    tdi_vector half[TDI_TILE_IN * TDI_TILE_IN];
    for (int x = 0; x < size; x++)
        one_way(from + x, size, half + x, size);
    for (int y = 0; y < made; y++)
        one_way(half + y * size, 1, to + y * made, 1);
}

#undef A1
#undef A2
#undef A3
#undef B1
#undef B2
#undef B3
#undef PRODUCT_OF_SQUARES
#undef SUM_OF_SQUARES
#undef SHARE_OF_A
#undef SHARE_OF_B

#endif
