/* The vector loops' exp, log, tanh and related functions against the C library in double precision: near zero, over the
 * whole range, at its ends, and for NaN; for every instruction set that this CPU has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "ops/ops.h"

enum { COUNT = 400000 };

static double exact_exp(double x)
{
    return exp(x);
}

static double exact_sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double exact_softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double exact_elu(double x)
{
    return x > 0 ? x : expm1(x);
}

static double exact_gelu(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

static double exact_mish(double x)
{
    return x * tanh(exact_softplus(x));
}

static double exact_squareplus(double x)
{
    double root = sqrt(x * x + 4);
    return x < 0 ? 2 / (root - x) : (x + root) / 2;
}

/* Inputs from low to high, and as many again spread over all magnitudes; relative errors must be at most `bound`. */
typedef struct function {
    const char *name;
    int kind;
    double (*exact)(double x);
    double low, high, bound;
} function;

static const function functions[] = {
    {"exponential", TD_EXPONENTIAL, exact_exp, -87, 88.7, 2e-7},
    {"log", TDI_UNARY_LOG, log, 1e-6, 1e6, 2e-7},
    {"tanh", TD_TANH, tanh, -12, 12, 3e-7},
    {"sigmoid", TD_SIGMOID, exact_sigmoid, -86, 40, 3e-7},
    {"softplus", TD_SOFTPLUS, exact_softplus, -86, 60, 3e-7},
    {"elu", TD_ELU, exact_elu, -40, 40, 3e-7},
    {"gelu", TD_GELU, exact_gelu, -12.5, 40, 6e-7},
    {"mish", TD_MISH, exact_mish, -80, 40, 4e-7},
    {"squareplus", TD_SQUAREPLUS, exact_squareplus, -1e4, 1e4, 3e-7},
};

static const tdi_kernel *find(tdi_cpu_isa isa, const tdi_op *op)
{
    for (const tdi_kernel *const *k = tdi_cpu_kernels(isa); *k; k++)
        if ((*k)->op == op)
            return *k;
    fail_msg("no such kernel");
    return NULL;
}

static void apply(tdi_cpu_isa isa, int kind, int64_t count, float *x, float *y)
{
    tdi_unary_attrs attrs = {kind};
    td_shape shape = {.rank = 1, .dim = {count}};
    tdi_value in = {.data = x, .shape = shape, .dtype = TD_FLOAT32};
    tdi_call call = {.in = &in,
                     .n_in = 1,
                     .out = {.data = y, .shape = shape, .dtype = TD_FLOAT32},
                     .attrs = &attrs,
                     .end = count,
                     .threads = 1};
    find(isa, &tdi_op_unary)->run(&call);
}

static float slope(tdi_cpu_isa isa, int kind, float x)
{
    float at[33], with[33], out[33];
    tdi_unary_attrs attrs = {kind};
    td_shape shape = {.rank = 1, .dim = {33}};
    tdi_value in[] = {{.data = at, .shape = shape, .dtype = TD_FLOAT32},
                      {.data = with, .shape = shape, .dtype = TD_FLOAT32}};
    tdi_call call = {.in = in,
                     .n_in = 2,
                     .out = {.data = out, .shape = shape, .dtype = TD_FLOAT32},
                     .attrs = &attrs,
                     .end = 33,
                     .threads = 1};
    for (int i = 0; i < 33; i++) {
        at[i] = x;
        with[i] = 1;
    }
    find(isa, &tdi_op_unary_grad)->run(&call);
    for (int i = 1; i < 33 && !isnan(x); i++) /* the sign of a NaN may differ */
        assert_memory_equal(&out[i], &out[0], sizeof *out);
    return out[0];
}

static void fill(const function *f, float *x)
{
    for (int i = 0; i < COUNT / 2; i++)
        x[i] = (float)(f->low + (f->high - f->low) * i / (COUNT / 2));
    for (int i = COUNT / 2; i < COUNT; i++) {
        double magnitude = exp2(-40 + 46.0 * (i - COUNT / 2) / (COUNT / 2));
        x[i] = (float)(i % 2 && f->low < 0 ? -magnitude : magnitude);
    }
}

static void check_function(tdi_cpu_isa isa, const function *f)
{
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    assert_non_null(x);
    assert_non_null(y);
    fill(f, x);
    apply(isa, f->kind, COUNT, x, y);
    for (int i = 0; i < COUNT; i++) {
        double expected = f->exact((double)x[i]);
        if ((double)x[i] < f->low || (double)x[i] > f->high)
            continue;
        if (!(fabs((double)y[i] - expected) <= f->bound * fabs(expected)))
            fail_msg("%s(%.9g) is %.9g, not %.9g", f->name, (double)x[i], (double)y[i], expected);
    }
    free(x);
    free(y);
}

static float value(tdi_cpu_isa isa, int kind, float x)
{
    float in[33], out[33];
    for (int i = 0; i < 33; i++)
        in[i] = x;
    apply(isa, kind, 33, in, out);
    for (int i = 1; i < 33; i++) /* SIMD lanes agree with what is left over */
        assert_memory_equal(&out[i], &out[0], sizeof *out);
    return out[0];
}

static void check_ends(tdi_cpu_isa isa)
{
    const float inf = INFINITY;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        assert_true(isnan(value(isa, functions[i].kind, NAN)));
    assert_true(isnan(value(isa, TD_RELU, NAN)));
    assert_true(value(isa, TD_EXPONENTIAL, inf) == inf);
    assert_true(value(isa, TD_EXPONENTIAL, 89.0f) == inf);
    assert_true(value(isa, TD_EXPONENTIAL, -inf) == 0.0f);
    assert_true(value(isa, TD_EXPONENTIAL, -200.0f) == 0.0f);
    assert_true(value(isa, TD_EXPONENTIAL, 0.0f) == 1.0f);
    assert_true(value(isa, TDI_UNARY_LOG, 0.0f) == -inf);
    assert_true(value(isa, TDI_UNARY_LOG, 1.0f) == 0.0f);
    assert_true(value(isa, TDI_UNARY_LOG, inf) == inf);
    assert_true(isnan(value(isa, TDI_UNARY_LOG, -1.0f)));
    assert_true(value(isa, TD_TANH, inf) == 1.0f && value(isa, TD_TANH, -inf) == -1.0f);
    assert_true(value(isa, TD_TANH, 0.0f) == 0.0f);
    assert_true(value(isa, TD_SIGMOID, inf) == 1.0f && value(isa, TD_SIGMOID, -inf) == 0.0f);
    assert_true(value(isa, TD_SOFTPLUS, inf) == inf && value(isa, TD_SOFTPLUS, -inf) == 0.0f);
    assert_true(value(isa, TD_ELU, -inf) == -1.0f);
    assert_true(value(isa, TD_GELU, inf) == inf && value(isa, TD_GELU, 1e30f) == 1e30f);
    assert_true(value(isa, TD_GELU, -1e30f) == 0.0f);
    assert_true(value(isa, TD_MISH, inf) == inf && value(isa, TD_MISH, -1e30f) == 0.0f);
    assert_true(value(isa, TD_SQUAREPLUS, inf) == inf && value(isa, TD_SQUAREPLUS, 1e30f) == 1e30f);
    assert_true(value(isa, TD_SQUAREPLUS, -inf) == 0.0f);
    assert_true(value(isa, TD_SQUAREPLUS, 3e38f) == 3e38f && value(isa, TD_SQUAREPLUS, -3e38f) < 1e-38f);
}

static void check_slopes_of_large(tdi_cpu_isa isa)
{
    static const int kinds[] = {TD_MISH, TD_SQUAREPLUS, TD_GELU, TD_SILU};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_true(slope(isa, kinds[i], 3e38f) == 1.0f);
        assert_true(fabsf(slope(isa, kinds[i], -3e38f)) < 1e-38f);
        assert_true(isnan(slope(isa, kinds[i], NAN)));
    }
}

static void check(tdi_cpu_isa isa)
{
    if (isa > tdi_cpu_best_isa()) {
        print_message("this CPU lacks it\n");
        skip();
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        check_function(isa, &functions[i]);
    check_ends(isa);
    check_slopes_of_large(isa);
}

static void baseline(void **state)
{
    (void)state;
    check(TDI_CPU_BASELINE);
}

static void avx2(void **state)
{
    (void)state;
    check(TDI_CPU_AVX2);
}

static void avx512(void **state)
{
    (void)state;
    check(TDI_CPU_AVX512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(baseline), cmocka_unit_test(avx2), cmocka_unit_test(avx512)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
