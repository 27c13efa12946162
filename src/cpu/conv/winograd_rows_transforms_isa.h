/* winograd_rows_transforms_isa.h - Winograd's transforms along a row of an image, on vectors.
 *
 * A tile of y, some neighbours in a row, is a polynomial product of the TDI_POINTS columns of x under it and a row of
 * the filter. Both are evaluated at 0, +-A, +-B, +-C and infinity, multiplied point by point, and interpolated:
 *
 *     y = T' [(G g) . (D d)]        dd = D' [(G g) . (T dy)]        dg = G' [(T dy) . (D d)]
 *
 * D, T and G are the matrices that evaluate, ' is the transpose; G is T times each point's share. The windows dd of
 * neighbouring tiles overlap and are added up. Points of nearly the same size keep rounding errors small, but these
 * stay larger than a direct sum's.
 *
 * A narrow tile, at the end of a row, lacks two columns or more. It leaves out +-C, whose places are the two before
 * infinity's. The filter at point p has been divided by the distance to +-C all the same; D multiplies by p^2 - C^2 to
 * undo that. */
#ifndef TDI_CPU_CONV_WINOGRAD_ROWS_TRANSFORMS_ISA_H
#define TDI_CPU_CONV_WINOGRAD_ROWS_TRANSFORMS_ISA_H

#include "cpu/isa.h"

enum { TDI_POINTS = 8, TDI_PAIRS = 3, TDI_NARROW_PAIRS = 2, TDI_NARROW_LACKS = 2 /* columns */ };

#define A2 0.25f
#define B2 1.0f
#define C2 4.0f
static const float tdi_points_root[TDI_PAIRS] = {0.5f, 1.0f, 2.0f}; /* A, B, C */
static const float tdi_points_square[TDI_PAIRS] = {A2, B2, C2};
static const float tdi_points_sum_of_others[TDI_PAIRS] = {B2 + C2, A2 + C2, A2 + B2},
                   tdi_points_product_of_others[TDI_PAIRS] = {B2 * C2, A2 *C2, A2 *B2};
static const float tdi_points_sum1 = A2 + B2 + C2, tdi_points_sum2 = A2 * B2 + A2 * C2 + B2 * C2,
                   tdi_points_sum3 = A2 * B2 * C2;

/* The filter's factor at each point: 1 / the product of the point's distances from the others. */
static const float tdi_points_share[TDI_PAIRS + 2] = {-1 / (A2 * B2 * C2), 1 / (2 * A2 * (A2 - B2) * (A2 - C2)),
                                                      1 / (2 * B2 * (B2 - A2) * (B2 - C2)),
                                                      1 / (2 * C2 * (C2 - A2) * (C2 - B2)), 1};

/* The transforms use the points 0, the first `pairs` pairs, and infinity. */

/* T y: evaluates the polynomial of `count` coefficients. */
TDI_INLINE void tdi_evaluate(int pairs, int count, const tdi_vector *y, tdi_vector *to)
{
    int even = (count - 1) / 2 * 2, odd = (count - 2) / 2 * 2 + 1;
    for (int k = 0; k < pairs; k++) {
        tdi_vector of_even = y[even], of_odd = y[odd];
        for (int i = even - 2; i >= 0; i -= 2)
            of_even = of_even * tdi_points_square[k] + y[i];
        for (int i = odd - 2; i > 0; i -= 2)
            of_odd = of_odd * tdi_points_square[k] + y[i];
        of_odd *= tdi_points_root[k];
        to[1 + 2 * k] = of_even + of_odd;
        to[2 + 2 * k] = of_even - of_odd;
    }
    to[0] = y[0];
    to[TDI_POINTS - 1] = y[count - 1];
}

TDI_INLINE tdi_vector tdi_add_pairs(int pairs, const float *factor, const tdi_vector *value)
{
    tdi_vector sum = factor[0] * value[0];
    for (int k = 1; k < pairs; k++)
        sum += factor[k] * value[k];
    return sum;
}

/* T' m: interpolates `count` values. */
TDI_INLINE void tdi_interpolate(int pairs, int count, const tdi_vector *m, tdi_vector *to)
{
    tdi_vector sum[TDI_PAIRS], difference[TDI_PAIRS];
    float power[TDI_PAIRS];
    for (int k = 0; k < pairs; k++) {
        sum[k] = m[1 + 2 * k] + m[2 + 2 * k];
        difference[k] = tdi_points_root[k] * (m[1 + 2 * k] - m[2 + 2 * k]);
        power[k] = 1;
    }
    for (int i = 0; i < count; i++) {
        to[i] = tdi_add_pairs(pairs, power, i % 2 ? difference : sum);
        for (int k = 0; i % 2 && k < pairs; k++)
            power[k] *= tdi_points_square[k];
    }
    to[0] += m[0];
    to[count - 1] += m[TDI_POINTS - 1];
}

/* D d for a whole window. */
TDI_INLINE void tdi_evaluate_whole(const tdi_vector *d, tdi_vector *to)
{
    to[0] = d[6] - tdi_points_sum1 * d[4] + tdi_points_sum2 * d[2] - tdi_points_sum3 * d[0];
    for (int k = 0; k < TDI_PAIRS; k++) {
        tdi_vector even = d[6] - tdi_points_sum_of_others[k] * d[4] + tdi_points_product_of_others[k] * d[2];
        tdi_vector odd =
            tdi_points_root[k] * (d[5] - tdi_points_sum_of_others[k] * d[3] + tdi_points_product_of_others[k] * d[1]);
        to[1 + 2 * k] = even + odd;
        to[2 + 2 * k] = even - odd;
    }
    to[TDI_POINTS - 1] = d[7] - tdi_points_sum1 * d[5] + tdi_points_sum2 * d[3] - tdi_points_sum3 * d[1];
}

/* D d for a narrow window. */
TDI_INLINE void tdi_evaluate_narrow(const tdi_vector *d, tdi_vector *to)
{
    to[0] = -C2 * (d[4] - (A2 + B2) * d[2] + A2 * B2 * d[0]);
    for (int k = 0; k < TDI_NARROW_PAIRS; k++) {
        float other = tdi_points_square[1 - k], lacks = tdi_points_square[k] - C2;
        tdi_vector even = lacks * (d[4] - other * d[2]), odd = lacks * tdi_points_root[k] * (d[3] - other * d[1]);
        to[1 + 2 * k] = even + odd;
        to[2 + 2 * k] = even - odd;
    }
    to[TDI_POINTS - 1] = d[5] - (A2 + B2) * d[3] + A2 * B2 * d[1];
}

TDI_INLINE void tdi_evaluate_window(int pairs, int count, const tdi_vector *d, tdi_vector *to)
{
    (void)count;
    if (pairs == TDI_PAIRS)
        tdi_evaluate_whole(d, to);
    else
        tdi_evaluate_narrow(d, to);
}

/* D' m for a whole window. */
TDI_INLINE void tdi_spread_whole(const tdi_vector *m, tdi_vector *to)
{
    tdi_vector zero = m[0], infinity = m[TDI_POINTS - 1], even[3], odd[3];
    for (int i = 0; i < 3; i++)
        even[i] = odd[i] = (tdi_vector){0};
    for (int k = 0; k < TDI_PAIRS; k++) {
        tdi_vector sum = m[1 + 2 * k] + m[2 + 2 * k], difference = tdi_points_root[k] * (m[1 + 2 * k] - m[2 + 2 * k]);
        even[0] += tdi_points_product_of_others[k] * sum;
        even[1] -= tdi_points_sum_of_others[k] * sum;
        even[2] += sum;
        odd[0] += tdi_points_product_of_others[k] * difference;
        odd[1] -= tdi_points_sum_of_others[k] * difference;
        odd[2] += difference;
    }
    to[0] = -tdi_points_sum3 * zero;
    to[1] = odd[0] - tdi_points_sum3 * infinity;
    to[2] = even[0] + tdi_points_sum2 * zero;
    to[3] = odd[1] + tdi_points_sum2 * infinity;
    to[4] = even[1] - tdi_points_sum1 * zero;
    to[5] = odd[2] - tdi_points_sum1 * infinity;
    to[6] = even[2] + zero;
    to[7] = infinity;
}

/* D' m for a narrow window, whose last two columns are zeros. */
TDI_INLINE void tdi_spread_narrow(const tdi_vector *m, tdi_vector *to)
{
    tdi_vector zero = -C2 * m[0], infinity = m[TDI_POINTS - 1], even[2], odd[2];
    for (int i = 0; i < 2; i++)
        even[i] = odd[i] = (tdi_vector){0};
    for (int k = 0; k < TDI_NARROW_PAIRS; k++) {
        float other = tdi_points_square[1 - k], lacks = tdi_points_square[k] - C2;
        tdi_vector sum = lacks * (m[1 + 2 * k] + m[2 + 2 * k]);
        tdi_vector difference = lacks * tdi_points_root[k] * (m[1 + 2 * k] - m[2 + 2 * k]);
        even[0] -= other * sum;
        even[1] += sum;
        odd[0] -= other * difference;
        odd[1] += difference;
    }
    to[0] = A2 * B2 * zero;
    to[1] = odd[0] + A2 * B2 * infinity;
    to[2] = even[0] - (A2 + B2) * zero;
    to[3] = odd[1] - (A2 + B2) * infinity;
    to[4] = even[1] + zero;
    to[5] = infinity;
    to[6] = to[7] = (tdi_vector){0};
}

TDI_INLINE void tdi_spread_window(int pairs, const tdi_vector *m, tdi_vector *to)
{
    if (pairs == TDI_PAIRS)
        tdi_spread_whole(m, to);
    else
        tdi_spread_narrow(m, to);
}

/* Whether `point` is left out when there are `pairs` pairs. */
TDI_INLINE bool tdi_lacks_point(int pairs, int point)
{
    return point > 2 * pairs && point < TDI_POINTS - 1;
}

static inline float tdi_share_of_point(int point)
{
    return tdi_points_share[(point + 1) / 2];
}

#undef A2
#undef B2
#undef C2

#endif
