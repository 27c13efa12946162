/* Philox against the known answers of Random123 1.14, and the sequences over it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/rng.h"

static void test_known_answers(void **state)
{
    (void)state;
    tdi_philox zeros = tdi_philox_block(0, 0, 0);
    const uint32_t expect_zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    assert_memory_equal(zeros.word, expect_zeros, sizeof expect_zeros);
    tdi_philox ones = tdi_philox_block(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    const uint32_t expect_ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    assert_memory_equal(ones.word, expect_ones, sizeof expect_ones);
    /* counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0 */
    tdi_philox pi = tdi_philox_block(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u);
    const uint32_t expect_pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    assert_memory_equal(pi.word, expect_pi, sizeof expect_pi);
}

static void test_moments(void **state)
{
    (void)state;
    const int count = 200000;
    tdi_random random = tdi_random_create(7, 1);
    double sum = 0, squares = 0, normals = 0, normal_squares = 0;
    for (int i = 0; i < count; i++) {
        double u = tdi_random_uniform(&random), n = tdi_random_normal(&random);
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += u * u;
        normals += n;
        normal_squares += n * n;
    }
    assert_true(fabs(sum / count - 0.5) < 0.004);
    assert_true(fabs(squares / count - 1.0 / 3) < 0.004);
    assert_true(fabs(normals / count) < 0.012);
    assert_true(fabs(normal_squares / count - 1) < 0.02);
}

static void test_permutation(void **state)
{
    (void)state;
    enum { N = 1000 };
    int64_t first[N], again[N];
    int seen[N] = {0}, moved = 0;
    tdi_random a = tdi_random_create(3, 5), b = tdi_random_create(3, 5);
    tdi_random_permutation(&a, first, N);
    tdi_random_permutation(&b, again, N);
    assert_memory_equal(first, again, sizeof first);
    for (int i = 0; i < N; i++) {
        seen[first[i]]++;
        moved += first[i] != i;
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(seen[i], 1);
    assert_true(moved > N * 9 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_answers), cmocka_unit_test(test_moments),
                                       cmocka_unit_test(test_permutation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
