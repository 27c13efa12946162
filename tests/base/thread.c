/* Teams and barriers: everyone runs, everyone meets, and the caller's floating-point mode survives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>

#include "base/thread.h"

typedef struct shared {
    tdi_barrier barrier;
    int turn[8];
    int rounds_seen[8];
} shared;

static void run_rounds(void *argument, int index)
{
    shared *s = argument;
    for (int round = 1; round <= 2000; round++) {
        s->turn[index] = round;
        tdi_barrier_wait(&s->barrier);
        int low = round;
        for (uint32_t i = 0; i < s->barrier.count; i++)
            low = s->turn[i] < low ? s->turn[i] : low;
        s->rounds_seen[index] += low == round;
        tdi_barrier_wait(&s->barrier);
    }
}

static void check_team(int size)
{
    tdi_team *team;
    tdi_error error = {0};
    assert_int_equal(tdi_team_create(size, &team, &error), TD_OK);
    static shared s;
    s = (shared){.barrier = {.count = (uint32_t)size, .spin = tdi_team_spins(team)}};
    for (int again = 0; again < 3; again++)
        tdi_team_run(team, run_rounds, &s);
    for (int i = 0; i < size; i++)
        assert_int_equal(s.rounds_seen[i], 3 * 2000);
    tdi_team_free(team);
}

static void test_one(void **state)
{
    (void)state;
    check_team(1);
}

static void test_as_many_as_cores(void **state)
{
    (void)state;
    check_team(2);
}

static void test_more_than_cores(void **state)
{
    (void)state;
    check_team(7);
}

static void multiply_denormal(void *argument, int index)
{
    volatile float tiny = FLT_MIN, half = 0.5f;
    ((float *)argument)[index] = tiny * half;
}

static void test_denormals(void **state)
{
    (void)state;
    tdi_team *team;
    tdi_error error = {0};
    float product[2] = {1, 1};
    assert_int_equal(tdi_team_create(2, &team, &error), TD_OK);
    tdi_team_run(team, multiply_denormal, product);
    assert_true(product[0] == 0 && product[1] == 0);
    multiply_denormal(product, 0);
    assert_true(product[0] != 0);
    tdi_team_free(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one), cmocka_unit_test(test_as_many_as_cores),
                                       cmocka_unit_test(test_more_than_cores), cmocka_unit_test(test_denormals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
