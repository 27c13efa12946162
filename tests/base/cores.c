/* A thread leaves its core for another, and may then use the same cores as before. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cores.h"

static cpu_set_t allowed_now(void)
{
    cpu_set_t cores;
    assert_int_equal(sched_getaffinity(0, sizeof cores, &cores), 0);
    return cores;
}

static int cores_told_apart(const cpu_set_t *allowed)
{
    int cores = 0;
    for (size_t i = 0; i < 64; i++)
        cores += CPU_ISSET(i, allowed) != 0;
    return cores;
}

/* The system may move it back at once, to balance what others run; but not each time. */
static void test_leaves(void **state)
{
    (void)state;
    cpu_set_t before = allowed_now();
    if (cores_told_apart(&before) < 2 || tdi_core() == 0)
        skip();
    int left = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t core = tdi_core();
        tdi_core_leave(core);
        left += tdi_core() != core;
        cpu_set_t after = allowed_now();
        assert_true(CPU_EQUAL(&after, &before));
    }
    assert_true(left > 0);
}

static void test_stays_if_all_are_taken(void **state)
{
    (void)state;
    cpu_set_t before = allowed_now();
    tdi_core_leave(UINT64_MAX);
    cpu_set_t after = allowed_now();
    assert_true(CPU_EQUAL(&after, &before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_leaves), cmocka_unit_test(test_stays_if_all_are_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
