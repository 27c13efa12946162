/* Storages alive at the same time never overlap, and lifetimes that do not meet share bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "plan/memory.h"

static void check(const tdi_storage *s, int count, int64_t total)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(s[i].offset % 64, 0);
        assert_true(s[i].offset + s[i].bytes <= total);
        for (int j = 0; j < i; j++) {
            bool together = s[i].first <= s[j].last && s[j].first <= s[i].last;
            bool apart = s[i].offset + s[i].bytes <= s[j].offset || s[j].offset + s[j].bytes <= s[i].offset;
            assert_true(!together || apart || !s[i].bytes || !s[j].bytes);
        }
    }
}

static void test_random(void **state)
{
    (void)state;
    tdi_random random = tdi_random_create(11, 0);
    for (int round = 0; round < 50; round++) {
        tdi_storage s[60];
        for (int i = 0; i < 60; i++) {
            s[i] = (tdi_storage){.bytes = (int64_t)tdi_random_below(&random, 5000),
                                 .first = (int)tdi_random_below(&random, 100)};
            s[i].last = s[i].first + (int)tdi_random_below(&random, 30);
        }
        check(s, 60, tdi_memory_place(s, 60));
    }
}

static void test_chain_needs_two(void **state)
{
    (void)state;
    tdi_storage s[10];
    for (int i = 0; i < 10; i++)
        s[i] = (tdi_storage){.bytes = 1024, .first = i, .last = i + 1};
    assert_int_equal(tdi_memory_place(s, 10), 2048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_chain_needs_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
