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
    s = (shared){.barrier = {.count = (uint32_t)size, .spin = tdi_team_spins(team, size)}};
    for (int again = 0; again < 3; again++)
        tdi_team_run(team, size, run_rounds, &s);
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

static void count_run(void *argument, int index)
{
    ((int *)argument)[index]++;
}

/* Runs of all sizes one close upon the other, so that threads without a part in one wake when the next has begun; the
 * team grows in between. */
static void a_run_takes_as_many_as_it_needs(void **state)
{
    (void)state;
    enum { MOST = 9, ROUNDS = 3000 };
    tdi_team *team;
    int seen[MOST] = {0}, expected[MOST] = {0};
    assert_int_equal(tdi_team_create(1, &team, NULL), TD_OK);
    for (int most = 1; most <= MOST; most += 2) {
        assert_int_equal(tdi_team_grow(team, most, NULL), TD_OK);
        for (int round = 0; round < ROUNDS; round++) {
            int threads = 1 + round * 7 % most;
            tdi_team_run(team, threads, count_run, seen);
            for (int i = 0; i < threads; i++)
                expected[i]++;
        }
        assert_memory_equal(seen, expected, sizeof seen);
    }
    assert_int_equal(tdi_team_grow(team, 2, NULL), TD_OK);
    tdi_team_run(team, MOST, count_run, seen);
    tdi_team_free(team);
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
    tdi_team_run(team, 2, multiply_denormal, product);
    assert_true(product[0] == 0 && product[1] == 0);
    multiply_denormal(product, 0);
    assert_true(product[0] != 0);
    tdi_team_free(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one), cmocka_unit_test(test_as_many_as_cores), cmocka_unit_test(test_more_than_cores),
        cmocka_unit_test(a_run_takes_as_many_as_it_needs), cmocka_unit_test(test_denormals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
