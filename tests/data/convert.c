/* Elements of every dtype as floats and as class numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "cpu/cpu.h"
#include "cpu/vector_loops.h"
#include "data/convert.h"

static void bytes_divide_exactly(void **state)
{
    (void)state;
    uint8_t bytes[256];
    float floats[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    for (int divisor = 1; divisor <= 1024; divisor++) {
        tdi_convert_floats(TD_UINT8, bytes, floats, 256, tdi_exact_scale(1.0f / (float)divisor));
        for (int i = 0; i < 256; i++)
            assert_true(floats[i] == (float)i / (float)divisor);
    }
}

static void the_device_divides_exactly_too(void **state)
{
    (void)state;
    static const tdi_vector_loops *const all[] = {
        &tdi_vector_loops_baseline,
#ifdef TANDEM_X86
        &tdi_vector_loops_avx2,
        &tdi_vector_loops_avx512,
#endif
    };
    uint8_t bytes[256];
    float floats[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    for (int isa = 0; isa <= (int)tdi_cpu_best_isa(); isa++)
        for (int divisor = 1; divisor <= 1024; divisor++) {
            all[isa]->convert_bytes(bytes, floats, 256, tdi_exact_scale(1.0f / (float)divisor));
            for (int i = 0; i < 256; i++)
                assert_true(floats[i] == (float)i / (float)divisor);
        }
}

static void odd_scales_are_themselves(void **state)
{
    (void)state;
    assert_true(tdi_exact_scale(1) == 1);
    assert_true(tdi_exact_scale(0.75f) == 0.75);
    assert_true(tdi_exact_scale(-3) == -3);
    assert_true(tdi_exact_scale(1.0f / 255) == 1.0 / 255);
    assert_true(tdi_exact_scale(-1.0f / 3) == -1.0 / 3);
    assert_true(fabs(tdi_exact_scale(3.1e38f) - (double)3.1e38f) == 0);
}

static void every_dtype_becomes_floats(void **state)
{
    (void)state;
    float f32[3] = {-1.5f, 0, 2}, to[3];
    double f64[3] = {-1.5, 0, 2};
    int32_t i32[3] = {-3, 0, 4};
    int64_t i64[3] = {-3, 0, 4};
    uint8_t u8[3] = {255, 0, 4};
    tdi_convert_floats(TD_FLOAT32, f32, to, 3, 1);
    assert_true(to[0] == -1.5f && to[1] == 0 && to[2] == 2);
    tdi_convert_floats(TD_FLOAT32, f32, to, 3, 2);
    assert_true(to[0] == -3 && to[1] == 0 && to[2] == 4);
    tdi_convert_floats(TD_FLOAT64, f64, to, 3, 2);
    assert_true(to[0] == -3 && to[1] == 0 && to[2] == 4);
    tdi_convert_floats(TD_INT32, i32, to, 3, 0.5);
    assert_true(to[0] == -1.5f && to[1] == 0 && to[2] == 2);
    tdi_convert_floats(TD_INT64, i64, to, 3, 0.5);
    assert_true(to[0] == -1.5f && to[1] == 0 && to[2] == 2);
    tdi_convert_floats(TD_UINT8, u8, to, 3, 1);
    assert_true(to[0] == 255 && to[1] == 0 && to[2] == 4);
    f32[1] = NAN;
    tdi_convert_floats(TD_FLOAT32, f32, to, 3, 1);
    assert_true(isnan(to[1]));
}

static void every_dtype_becomes_classes(void **state)
{
    (void)state;
    float f32[2] = {-2147483648.0f, 2147483520.0f};
    double f64[2] = {-2147483648.0, 2147483647.0};
    int32_t i32[2] = {INT32_MIN, INT32_MAX}, to[2];
    int64_t i64[2] = {INT32_MIN, INT32_MAX};
    uint8_t u8[2] = {0, 255};
    assert_int_equal(tdi_convert_classes(TD_FLOAT32, f32, to, 2), -1);
    assert_true(to[0] == INT32_MIN && to[1] == 2147483520);
    assert_int_equal(tdi_convert_classes(TD_FLOAT64, f64, to, 2), -1);
    assert_true(to[0] == INT32_MIN && to[1] == INT32_MAX);
    assert_int_equal(tdi_convert_classes(TD_INT32, i32, to, 2), -1);
    assert_true(to[0] == INT32_MIN && to[1] == INT32_MAX);
    assert_int_equal(tdi_convert_classes(TD_INT64, i64, to, 2), -1);
    assert_true(to[0] == INT32_MIN && to[1] == INT32_MAX);
    assert_int_equal(tdi_convert_classes(TD_UINT8, u8, to, 2), -1);
    assert_true(to[0] == 0 && to[1] == 255);
}

static void what_is_no_class_is_found(void **state)
{
    (void)state;
    int32_t to[2];
    const float f32[] = {0.5f, NAN, INFINITY, -INFINITY, 2147483648.0f, -2147483904.0f};
    for (size_t i = 0; i < sizeof f32 / sizeof *f32; i++)
        assert_int_equal(tdi_convert_classes(TD_FLOAT32, (float[]){1, f32[i]}, to, 2), 1);
    const double f64[] = {0.5, NAN, INFINITY, -INFINITY, 2147483648.0, -2147483649.0, 2147483647.5};
    for (size_t i = 0; i < sizeof f64 / sizeof *f64; i++)
        assert_int_equal(tdi_convert_classes(TD_FLOAT64, (double[]){1, f64[i]}, to, 2), 1);
    const int64_t i64[] = {INT64_MIN, INT64_MAX, INT64_C(2147483648), INT64_C(-2147483649)};
    for (size_t i = 0; i < sizeof i64 / sizeof *i64; i++)
        assert_int_equal(tdi_convert_classes(TD_INT64, (int64_t[]){1, i64[i]}, to, 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_divide_exactly),        cmocka_unit_test(the_device_divides_exactly_too),
        cmocka_unit_test(odd_scales_are_themselves),   cmocka_unit_test(every_dtype_becomes_floats),
        cmocka_unit_test(every_dtype_becomes_classes), cmocka_unit_test(what_is_no_class_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
