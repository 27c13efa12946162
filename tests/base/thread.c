/* Teams and barriers: everyone runs, everyone meets, on cores of their own; the caller's floating-point mode survives.
 */
#define _GNU_SOURCE
#include <sched.h>
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

enum { MEETINGS = 200 };

typedef struct crowd {
    tdi_barrier barrier;
    tdi_lockstep lockstep;
    bool by_steps;
    cpu_set_t allowed, one;
    int core[2], apart; /* meetings after which they were */
    bool restored[2];
} crowd;

/* The system moves a thread at once off a core that it may not use, and leaves it where it may. */
static void crowd_onto_one(crowd *c)
{
    sched_setaffinity(0, sizeof c->one, &c->one);
    sched_setaffinity(0, sizeof c->allowed, &c->allowed);
}

static void meet_by_steps(crowd *c, int index)
{
    tdi_lockstep_advance(&c->lockstep, index);
    tdi_lockstep_wait(&c->lockstep, index);
}

static void meet_crowded(void *argument, int index)
{
    crowd *c = argument;
    for (int i = 0; i < MEETINGS; i++) {
        crowd_onto_one(c);
        if (c->by_steps)
            meet_by_steps(c, index);
        else
            tdi_barrier_wait(&c->barrier);
        c->core[index] = sched_getcpu();
        tdi_barrier_wait(&c->barrier);
        if (index == 0)
            c->apart += c->core[0] != c->core[1];
        tdi_barrier_wait(&c->barrier);
    }
    cpu_set_t after;
    sched_getaffinity(0, sizeof after, &after);
    c->restored[index] = CPU_EQUAL(&after, &c->allowed);
}

/* Cores beyond the 64th are not told apart. */
static int cores_told_apart(const cpu_set_t *allowed)
{
    int cores = 0;
    for (size_t i = 0; i < 64; i++)
        cores += CPU_ISSET(i, allowed) != 0;
    return cores;
}

static void check_that_they_part(bool by_steps)
{
    tdi_team *team;
    tdi_error error = {0};
    static crowd c;
    c = (crowd){.barrier = {.count = 2, .spin = true}, .by_steps = by_steps};
    sched_getaffinity(0, sizeof c.allowed, &c.allowed);
    CPU_SET((size_t)sched_getcpu(), &c.one);
    if (cores_told_apart(&c.allowed) < 2 || sched_getcpu() >= 64)
        skip();
    assert_int_equal(tdi_lockstep_create(&c.lockstep, 2, true, &error), TD_OK);
    assert_int_equal(tdi_team_create(2, &team, &error), TD_OK);
    tdi_team_run(team, meet_crowded, &c);
    tdi_team_free(team);
    tdi_lockstep_release(&c.lockstep);
    assert_true(c.restored[0] && c.restored[1]);
    assert_true(c.apart > MEETINGS / 2);
}

static void test_of_one_core_they_part_as_they_meet(void **state)
{
    (void)state;
    check_that_they_part(false);
}

static void test_of_one_core_they_part_in_lockstep(void **state)
{
    (void)state;
    check_that_they_part(true);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one),
                                       cmocka_unit_test(test_as_many_as_cores),
                                       cmocka_unit_test(test_more_than_cores),
                                       cmocka_unit_test(test_of_one_core_they_part_as_they_meet),
                                       cmocka_unit_test(test_of_one_core_they_part_in_lockstep),
                                       cmocka_unit_test(test_denormals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
