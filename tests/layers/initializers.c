/* initializers.c - initial weights: bounds and moments of each distribution, and that (seed, index) fixes them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/layer.h"

typedef struct moments {
    double mean, deviation, low, high;
} moments;

static tdi_weight weight_of(td_initializer initializer, td_shape shape, int index)
{
    td_dense_args args = {.kernel_initializer = initializer};
    tdi_fields_resolve(tdi_layer_type_dense.fields, &args);
    return (tdi_weight){.variable = {.shape = shape, .elements = tdi_shape_elements(&shape), .index = index},
                        .initializer = args.kernel_initializer};
}

static float *draw(td_initializer initializer, td_shape shape, uint64_t seed, int index)
{
    tdi_weight weight = weight_of(initializer, shape, index);
    float *values = malloc((size_t)weight.variable.elements * sizeof *values);
    assert_non_null(values);
    tdi_initialize(&weight, seed, values);
    return values;
}

static moments moments_of(td_initializer initializer, td_shape shape)
{
    float *values = draw(initializer, shape, 11, 2);
    int64_t count = tdi_shape_elements(&shape);
    moments m = {0, 0, values[0], values[0]};
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        m.mean += values[i];
        squares += (double)values[i] * (double)values[i];
        m.low = fmin(m.low, values[i]);
        m.high = fmax(m.high, values[i]);
    }
    m.mean /= (double)count;
    m.deviation = sqrt(squares / (double)count - m.mean * m.mean);
    free(values);
    return m;
}

/* Four standard errors of 100,000 draws are 1.3 % of a deviation for the mean, and 0.9 % for the deviation. */
static void check(td_initializer initializer, td_shape shape, double mean, double deviation, double low, double high)
{
    moments m = moments_of(initializer, shape);
    assert_true(fabs(m.mean - mean) < 0.013 * deviation + 1e-12);
    assert_true(fabs(m.deviation - deviation) <= 0.009 * deviation);
    assert_true(m.low >= low && m.high <= high);
    if (isfinite(high) && deviation > 0) /* and it reaches its bounds */
        assert_true(m.high > high - 0.01 * (high - low) && m.low < low + 0.01 * (high - low));
}

static void check_uniform(td_initializer initializer, td_shape shape, double limit)
{
    double slack = 1e-6 * limit;
    check(initializer, shape, 0, limit / sqrt(3), -limit - slack, limit + slack);
}

static void check_truncated(td_initializer initializer, td_shape shape, double deviation)
{
    double limit = 2 * deviation / 0.87962566103423978;
    check(initializer, shape, 0, deviation, -limit * 1.000001, limit * 1.000001);
}

static void constants(void **state)
{
    (void)state;
    check((td_initializer){.kind = TD_ZEROS}, TD_SHAPE(7), 0, 0, 0, 0);
    check((td_initializer){.kind = TD_ONES}, TD_SHAPE(7), 1, 0, 1, 1);
    check((td_initializer){.kind = TD_CONSTANT, .a = -2.5f}, TD_SHAPE(7), -2.5, 0, -2.5, -2.5);
}

static void plain_distributions(void **state)
{
    (void)state;
    td_shape shape = TD_SHAPE(250, 400);
    check((td_initializer){.kind = TD_RANDOM_UNIFORM, .a = 1, .b = 3}, shape, 2, 2 / sqrt(12), 1, 3);
    check_uniform((td_initializer){.kind = TD_RANDOM_UNIFORM}, shape, 0.05);
    check((td_initializer){.kind = TD_RANDOM_NORMAL, .a = 1, .b = 2}, shape, 1, 2, -INFINITY, INFINITY);
    check((td_initializer){.kind = TD_RANDOM_NORMAL}, shape, 0, 0.05, -INFINITY, INFINITY);
    check_truncated((td_initializer){.kind = TD_TRUNCATED_NORMAL, .b = 3}, shape, 3 * 0.87962566103423978);
}

static void scaled_distributions(void **state)
{
    (void)state;
    td_shape shape = TD_SHAPE(100, 1000), kernel = TD_SHAPE(3, 5, 20, 400); /* fans: 300 and 6000 */
    check_uniform((td_initializer){.kind = TD_GLOROT_UNIFORM}, shape, sqrt(6.0 / 1100));
    check_truncated((td_initializer){.kind = TD_GLOROT_NORMAL}, shape, sqrt(2.0 / 1100));
    check_uniform((td_initializer){.kind = TD_HE_UNIFORM}, shape, sqrt(6.0 / 100));
    check_truncated((td_initializer){.kind = TD_HE_NORMAL}, shape, sqrt(2.0 / 100));
    check_uniform((td_initializer){.kind = TD_LECUN_UNIFORM}, shape, sqrt(3.0 / 100));
    check_truncated((td_initializer){.kind = TD_LECUN_NORMAL}, shape, sqrt(1.0 / 100));
    check_uniform((td_initializer){.kind = TD_GLOROT_UNIFORM}, kernel, sqrt(6.0 / 6300));
    check_truncated((td_initializer){.kind = TD_HE_NORMAL}, kernel, sqrt(2.0 / 300));
    check_uniform((td_initializer){.kind = TD_GLOROT_UNIFORM}, TD_SHAPE(100000), sqrt(6.0 / 200000));
}

static void variance_scaling(void **state)
{
    (void)state;
    td_shape shape = TD_SHAPE(100, 1000);
    td_initializer scaled = {.kind = TD_VARIANCE_SCALING};
    check_truncated(scaled, shape, sqrt(1.0 / 100));
    scaled = (td_initializer){TD_VARIANCE_SCALING, 3, 0, TD_FAN_OUT, TD_DISTRIBUTION_UNIFORM, 0};
    check_uniform(scaled, shape, sqrt(9.0 / 1000));
    scaled = (td_initializer){TD_VARIANCE_SCALING, 2, 0, TD_FAN_AVG, TD_DISTRIBUTION_UNTRUNCATED_NORMAL, 0};
    check(scaled, shape, 0, sqrt(2.0 / 550), -INFINITY, INFINITY);
}

/* Of a matrix [rows, columns] the shorter side's vectors are orthogonal and `gain` long. */
static void check_orthogonal(td_shape shape, int64_t rows, int64_t columns, float gain)
{
    float *values = draw((td_initializer){.kind = TD_ORTHOGONAL, .a = gain}, shape, 5, 1);
    int64_t count = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
    int64_t next = rows < columns ? columns : 1, step = rows < columns ? 1 : columns;
    double square = gain > 0 ? (double)gain * (double)gain : 1;
    for (int64_t a = 0; a < count; a++)
        for (int64_t b = 0; b <= a; b++) {
            double dot = 0;
            for (int64_t i = 0; i < length; i++)
                dot += (double)values[a * next + i * step] * (double)values[b * next + i * step];
            assert_true(fabs(dot - (a == b ? square : 0)) < 1e-5 * square);
        }
    free(values);
}

static void orthogonal(void **state)
{
    (void)state;
    check_orthogonal(TD_SHAPE(64, 64), 64, 64, 0);
    check_orthogonal(TD_SHAPE(90, 30), 90, 30, 2);
    check_orthogonal(TD_SHAPE(30, 90), 30, 90, 0.5f);
    check_orthogonal(TD_SHAPE(3, 3, 4, 50), 36, 50, 0);
    check_orthogonal(TD_SHAPE(1, 1), 1, 1, 0);
}

static void check_identity(td_shape shape, float gain)
{
    float *values = draw((td_initializer){.kind = TD_IDENTITY, .a = gain}, shape, 5, 1);
    for (int64_t i = 0; i < shape.dim[0]; i++)
        for (int64_t j = 0; j < shape.dim[1]; j++)
            assert_true(values[i * shape.dim[1] + j] == (i == j ? gain : 0));
    free(values);
}

static void identity(void **state)
{
    (void)state;
    check_identity(TD_SHAPE(5, 5), 1);
    check_identity(TD_SHAPE(3, 12), 0.5f);
    check_identity(TD_SHAPE(7, 2), -2);
}

static void fixed_by_seed_and_index(void **state)
{
    (void)state;
    static const td_initializer_kind kinds[] = {TD_GLOROT_UNIFORM, TD_HE_NORMAL, TD_RANDOM_NORMAL, TD_ORTHOGONAL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        td_initializer initializer = {.kind = kinds[i]};
        td_shape shape = TD_SHAPE(9, 7);
        float *a = draw(initializer, shape, 1, 0), *b = draw(initializer, shape, 1, 0);
        float *seed = draw(initializer, shape, 2, 0), *index = draw(initializer, shape, 1, 1);
        assert_memory_equal(a, b, 63 * sizeof *a);
        for (int k = 0; k < 63; k++)
            assert_true(a[k] != seed[k] && a[k] != index[k]);
        free(a);
        free(b);
        free(seed);
        free(index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants),
        cmocka_unit_test(plain_distributions),
        cmocka_unit_test(scaled_distributions),
        cmocka_unit_test(variance_scaling),
        cmocka_unit_test(orthogonal),
        cmocka_unit_test(identity),
        cmocka_unit_test(fixed_by_seed_and_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
