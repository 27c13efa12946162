/* Buffers for numbers: zeroed, aligned, at different places of a page, small and large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/arena.h"
#include "base/machine.h"

enum { MB = 1 << 20 };

static void check_buffer(size_t size)
{
    unsigned char *buffer = tdi_buffer_create(size);
    assert_non_null(buffer);
    assert_int_equal((uintptr_t)buffer % 64, 0);
    for (size_t i = 0; i < size; i++)
        if (buffer[i] != 0)
            fail_msg("byte %zu of %zu is %d", i, size, buffer[i]);
    memset(buffer, 0xff, size); /* all of it is there, and what the next gets is zeroed again */
    tdi_buffer_free(buffer);
}

static void test_zeroed_and_aligned(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 64, 4095, 2 * MB, 4 * MB - 5000, 4 * MB, 5 * MB + 3, 64 * MB};
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_buffer(sizes[i]);
}

static void test_places_of_a_page_differ(void **state)
{
    (void)state;
    const size_t sizes[] = {1 * MB, 8 * MB};
    for (int i = 0; i < 2; i++) {
        void *a = tdi_buffer_create(sizes[i]), *b = tdi_buffer_create(sizes[i]);
        assert_non_null(a);
        assert_non_null(b);
        assert_int_not_equal((uintptr_t)a % 4096, (uintptr_t)b % 4096);
        tdi_buffer_free(a);
        tdi_buffer_free(b);
    }
}

static void test_sizes_beyond_memory(void **state)
{
    (void)state;
    assert_null(tdi_buffer_create(SIZE_MAX));
    assert_null(tdi_buffer_create(SIZE_MAX - 4096));
}

/* The system would promise it, and end the process as it is touched. */
static void test_more_than_is_left(void **state)
{
    (void)state;
    size_t all = (size_t)tdi_memory_allowed();
    assert_true(tdi_memory_suffices(MB));
    assert_false(tdi_memory_suffices(all + 1));
    assert_null(tdi_buffer_create(all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_and_aligned), cmocka_unit_test(test_places_of_a_page_differ),
        cmocka_unit_test(test_sizes_beyond_memory), cmocka_unit_test(test_more_than_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
