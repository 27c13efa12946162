/* winograd_tiles_isa.h - Winograd's transforms for F(4x4, 3x3), of vectors.
 *
 * An output tile of 4x4 is a polynomial product: the 6x6 input tile d and the filter g are evaluated at the points
 * 0, +-A, +-B and infinity in both directions, multiplied point by point, and interpolated:
 *
 *     y = T' [(G g G') . (D d D')] T      dd = D' [(G g G') . (T dy T')] D      dg = G' [(T dy T') . (D d D')] G
 *
 * The windows dd of neighbours overlap and are added up. Points of nearly the same size keep rounding errors small,
 * here A = 1/sqrt(2), B = sqrt(2); they stay larger than those of a direct sum. */
#ifndef TDI_CPU_WINOGRAD_TILES_ISA_H
#define TDI_CPU_WINOGRAD_TILES_ISA_H

#include "cpu/isa.h"

enum { TDI_TILE_OUT = 4, TDI_TILE_TAPS = 3, TDI_TILE_IN = 6 };

static const float a1 = 0.70710678118654752f, a2 = 0.5f, a3 = 0.35355339059327376f;
static const float b1 = 1.4142135623730951f, b2 = 2.0f, b3 = 2.8284271247461903f;
static const float both = 1.0f, sum2 = 2.5f;              /* A^2 B^2, A^2 + B^2 */
static const float over_a = -1 / 1.5f, over_b = 1 / 6.0f; /* 1 / 2A^2(A^2 - B^2), 1 / 2B^2(B^2 - A^2) */

/* ---- one dimension of the transforms ---- */

TDI_INLINE void tdi_evaluate_image(const tdi_vector *d, int step, tdi_vector *to, int to_step)
{
    tdi_vector even_a = d[4 * step] - b2 * d[2 * step], odd_a = a1 * (d[3 * step] - b2 * d[step]);
    tdi_vector even_b = d[4 * step] - a2 * d[2 * step], odd_b = b1 * (d[3 * step] - a2 * d[step]);
    to[0] = both * d[0] - sum2 * d[2 * step] + d[4 * step];
    to[to_step] = even_a + odd_a;
    to[2 * to_step] = even_a - odd_a;
    to[3 * to_step] = even_b + odd_b;
    to[4 * to_step] = even_b - odd_b;
    to[5 * to_step] = both * d[step] - sum2 * d[3 * step] + d[5 * step];
}

TDI_INLINE void tdi_evaluate_filter(const tdi_vector *g, int step, tdi_vector *to, int to_step)
{
    tdi_vector even_a = over_a * (g[0] + a2 * g[2 * step]), odd_a = (over_a * a1) * g[step];
    tdi_vector even_b = over_b * (g[0] + b2 * g[2 * step]), odd_b = (over_b * b1) * g[step];
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
    to[to_step] = a1 * difference_a + b1 * difference_b;
    to[2 * to_step] = a2 * sum_a + b2 * sum_b;
    to[3 * to_step] = a3 * difference_a + b3 * difference_b + m[5 * step];
}

/* The other way round, for the gradient of the filter: dy as a polynomial, evaluated. */
TDI_INLINE void tdi_evaluate_gradient(const tdi_vector *y, int step, tdi_vector *to, int to_step)
{
    tdi_vector even_a = y[0] + a2 * y[2 * step], odd_a = a1 * y[step] + a3 * y[3 * step];
    tdi_vector even_b = y[0] + b2 * y[2 * step], odd_b = b1 * y[step] + b3 * y[3 * step];
    to[0] = y[0];
    to[to_step] = even_a + odd_a;
    to[2 * to_step] = even_a - odd_a;
    to[3 * to_step] = even_b + odd_b;
    to[4 * to_step] = even_b - odd_b;
    to[5 * to_step] = y[3 * step];
}

TDI_INLINE void tdi_gather_filter(const tdi_vector *u, int step, tdi_vector *to, int to_step)
{
    tdi_vector sum_a = over_a * (u[step] + u[2 * step]), sum_b = over_b * (u[3 * step] + u[4 * step]);
    tdi_vector difference_a = u[step] - u[2 * step], difference_b = u[3 * step] - u[4 * step];
    to[0] = u[0] + sum_a + sum_b;
    to[to_step] = (over_a * a1) * difference_a + (over_b * b1) * difference_b;
    to[2 * to_step] = a2 * sum_a + b2 * sum_b + u[5 * step];
}

/* D', the other way round for the gradient of the image. */
TDI_INLINE void tdi_scatter_image(const tdi_vector *m, int step, tdi_vector *to, int to_step)
{
    tdi_vector sum_a = m[step] + m[2 * step], difference_a = m[step] - m[2 * step];
    tdi_vector sum_b = m[3 * step] + m[4 * step], difference_b = m[3 * step] - m[4 * step];
    to[0] = both * m[0];
    to[to_step] = both * m[5 * step] - (a1 * b2) * difference_a - (b1 * a2) * difference_b;
    to[2 * to_step] = -sum2 * m[0] - b2 * sum_a - a2 * sum_b;
    to[3 * to_step] = a1 * difference_a + b1 * difference_b - sum2 * m[5 * step];
    to[4 * to_step] = m[0] + sum_a + sum_b;
    to[5 * to_step] = m[5 * step];
}

/* ---- both dimensions ---- */

typedef void tdi_transform(const tdi_vector *from, int step, tdi_vector *to, int to_step);

/* [size, size] -> [made, made]: columns first, then rows. */
TDI_INLINE void tdi_both_ways(tdi_transform *one_way, int size, int made, const tdi_vector *from, tdi_vector *to)
{
    tdi_vector half[TDI_TILE_IN * TDI_TILE_IN];
    for (int x = 0; x < size; x++)
        one_way(from + x, size, half + x, size);
    for (int y = 0; y < made; y++)
        one_way(half + y * size, 1, to + y * made, 1);
}

#endif
