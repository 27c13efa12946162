/* initializers.c - Keras's initializers: the same distributions, drawn from Tandem's own random numbers.
 *
 * Variance scaling draws with the variance scale / fan. A normal distribution truncated at two deviations keeps
 * 0.87962566103423978 of the deviation, so the deviation is divided by this number first. Orthogonal is the Q of a
 * normal matrix's QR decomposition with a positive diagonal of R, which Gram-Schmidt gives: uniform among orthogonal
 * matrices. */
#include <math.h>

#include "base/rng.h"
#include "layers/layer.h"

#define TRUNCATED_DEVIATION 0.87962566103423978

typedef struct scaling {
    double scale;
    td_fan_mode mode;
    td_distribution distribution;
} scaling;

td_status tdi_initializer_check(const td_initializer *initializer, const td_shape *shape, tdi_error *error)
{
    const char *name = tdi_initializer_class(initializer->kind);
    double a = initializer->a, b = initializer->b;
    if (!name)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "there is no initializer number %d: use one of td_initializer_kind",
                        (int)initializer->kind);
    if (!isfinite(a) || !isfinite(b))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: its numbers %g and %g must be finite", name, a, b);
    if (initializer->kind == TD_RANDOM_UNIFORM && a > b)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: minval %g is above maxval %g", name, a, b);
    if ((initializer->kind == TD_RANDOM_NORMAL || initializer->kind == TD_TRUNCATED_NORMAL) && b < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: stddev is %g and must be at least 0", name, b);
    if (initializer->kind == TD_VARIANCE_SCALING && (a <= 0 || (unsigned)initializer->mode > TD_FAN_AVG ||
                                                     (unsigned)initializer->distribution > TD_DISTRIBUTION_UNIFORM))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: scale is %g and must be above 0; mode and distribution must be of their enumerations",
                        name, a);
    if (initializer->kind == TD_ORTHOGONAL && shape->rank < 2)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: it makes weights of two axes or more, not of %d", name,
                        shape->rank);
    if (initializer->kind == TD_IDENTITY && shape->rank != 2)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: it makes weights of two axes, not of %d", name, shape->rank);
    return TD_OK;
}

/* ---- filling ---- */

static tdi_random sequence_of(const tdi_weight *weight, uint64_t seed)
{
    return tdi_random_create(seed, UINT64_C(0x696E6974) << 32 | (uint32_t)weight->variable.index);
}

static void fill_constant(float *values, int64_t count, double value)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)value;
}

/* Draws come four at a time, because this loop decides how fast a large model starts. */
static void fill_uniform(tdi_random random, float *values, int64_t count, double low, double high)
{
    for (int64_t i = 0; i < count; i += 4) {
        tdi_philox block = tdi_philox_block(random.key, random.stream, (uint64_t)i / 4);
        for (int64_t j = i; j < i + 4 && j < count; j++)
            values[j] = (float)(low + (high - low) * (double)tdi_uniform(block.word[j - i]));
    }
}

static void fill_normal(tdi_random random, float *values, int64_t count, double mean, double deviation)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(mean + deviation * tdi_random_normal(&random));
}

static void fill_truncated(tdi_random random, float *values, int64_t count, double mean, double deviation)
{
    for (int64_t i = 0; i < count; i++) {
        double draw;
        do
            draw = tdi_random_normal(&random);
        while (fabs(draw) > 2);
        values[i] = (float)(mean + deviation * draw);
    }
}

/* ---- variance scaling ---- */

/* A convolution's kernel is [height, width, in, out]; each output sees height x width pixels of the inputs. */
static void fans_of(const td_shape *shape, double *fan_in, double *fan_out)
{
    double field = 1;
    if (shape->rank < 2) {
        *fan_in = *fan_out = shape->rank ? (double)shape->dim[0] : 1;
        return;
    }
    for (int i = 0; i < shape->rank - 2; i++)
        field *= (double)shape->dim[i];
    *fan_in = field * (double)shape->dim[shape->rank - 2];
    *fan_out = field * (double)shape->dim[shape->rank - 1];
}

static scaling scaling_of(const td_initializer *initializer)
{
    switch (initializer->kind) {
    case TD_GLOROT_UNIFORM:
        return (scaling){1, TD_FAN_AVG, TD_DISTRIBUTION_UNIFORM};
    case TD_GLOROT_NORMAL:
        return (scaling){1, TD_FAN_AVG, TD_DISTRIBUTION_TRUNCATED_NORMAL};
    case TD_HE_UNIFORM:
        return (scaling){2, TD_FAN_IN, TD_DISTRIBUTION_UNIFORM};
    case TD_HE_NORMAL:
        return (scaling){2, TD_FAN_IN, TD_DISTRIBUTION_TRUNCATED_NORMAL};
    case TD_LECUN_UNIFORM:
        return (scaling){1, TD_FAN_IN, TD_DISTRIBUTION_UNIFORM};
    case TD_LECUN_NORMAL:
        return (scaling){1, TD_FAN_IN, TD_DISTRIBUTION_TRUNCATED_NORMAL};
    default:
        return (scaling){initializer->a, initializer->mode, initializer->distribution};
    }
}

static void fill_scaled(const tdi_weight *weight, tdi_random random, float *values)
{
    scaling s = scaling_of(&weight->initializer);
    int64_t count = weight->variable.elements;
    double in, out;
    fans_of(&weight->variable.shape, &in, &out);
    double fan = s.mode == TD_FAN_IN ? in : s.mode == TD_FAN_OUT ? out : (in + out) / 2;
    double variance = s.scale / fmax(1, fan);
    if (s.distribution == TD_DISTRIBUTION_UNIFORM)
        fill_uniform(random, values, count, -sqrt(3 * variance), sqrt(3 * variance));
    else if (s.distribution == TD_DISTRIBUTION_TRUNCATED_NORMAL)
        fill_truncated(random, values, count, 0, sqrt(variance) / TRUNCATED_DEVIATION);
    else
        fill_normal(random, values, count, 0, sqrt(variance));
}

/* ---- orthogonal ---- */

/* `count` vectors of `length` within a matrix: its columns, or its rows when it has fewer rows. */
typedef struct vectors {
    float *values;
    int64_t count, length;
    int64_t next, step; /* floats from one vector to the next, and from one element to the next */
} vectors;

static double dot(const vectors *v, int64_t a, int64_t b)
{
    double sum = 0;
    for (int64_t i = 0; i < v->length; i++)
        sum += (double)v->values[a * v->next + i * v->step] * (double)v->values[b * v->next + i * v->step];
    return sum;
}

static void subtract(const vectors *v, int64_t from, int64_t other, double factor)
{
    for (int64_t i = 0; i < v->length; i++)
        v->values[from * v->next + i * v->step] -= (float)(factor * (double)v->values[other * v->next + i * v->step]);
}

static void scale(const vectors *v, int64_t vector, double factor)
{
    for (int64_t i = 0; i < v->length; i++)
        v->values[vector * v->next + i * v->step] *= (float)factor;
}

/* Gram-Schmidt runs twice per vector, because cancellation leaves the first result inexact. */
static void orthonormalize(const vectors *v)
{
    for (int64_t k = 0; k < v->count; k++)
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t j = 0; j < k; j++)
                subtract(v, k, j, dot(v, k, j));
            scale(v, k, 1 / sqrt(dot(v, k, k)));
        }
}

static void fill_orthogonal(const tdi_weight *weight, tdi_random random, float *values)
{
    int64_t columns = weight->variable.shape.dim[weight->variable.shape.rank - 1];
    int64_t rows = weight->variable.elements / columns;
    vectors v = {values, columns, rows, 1, columns};
    if (rows < columns)
        v = (vectors){values, rows, columns, columns, 1};
    fill_normal(random, values, weight->variable.elements, 0, 1);
    orthonormalize(&v);
    for (int64_t k = 0; k < v.count; k++)
        scale(&v, k, weight->initializer.a);
}

/* The matrix need not be square, as in keras.ops.eye. */
static void fill_identity(const tdi_weight *weight, float *values)
{
    int64_t rows = weight->variable.shape.dim[0], columns = weight->variable.shape.dim[1];
    fill_constant(values, rows * columns, 0);
    for (int64_t i = 0; i < rows && i < columns; i++)
        values[i * columns + i] = weight->initializer.a;
}

void tdi_initialize(const tdi_weight *weight, uint64_t seed, float *values)
{
    const td_initializer *initializer = &weight->initializer;
    tdi_random random = sequence_of(weight, seed);
    int64_t count = weight->variable.elements;
    switch (initializer->kind) {
    case TD_ZEROS:
        fill_constant(values, count, 0);
        break;
    case TD_ONES:
        fill_constant(values, count, 1);
        break;
    case TD_CONSTANT:
        fill_constant(values, count, initializer->a);
        break;
    case TD_RANDOM_UNIFORM:
        fill_uniform(random, values, count, initializer->a, initializer->b);
        break;
    case TD_RANDOM_NORMAL:
        fill_normal(random, values, count, initializer->a, initializer->b);
        break;
    case TD_TRUNCATED_NORMAL:
        fill_truncated(random, values, count, initializer->a, initializer->b);
        break;
    case TD_ORTHOGONAL:
        fill_orthogonal(weight, random, values);
        break;
    case TD_IDENTITY:
        fill_identity(weight, values);
        break;
    default:
        fill_scaled(weight, random, values);
        break;
    }
    fill_constant(values + weight->ones, weight->ones_end - weight->ones, 1);
}
