/* Strings, errors, arenas, names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/context.h"
#include "base/text.h"

static void test_text_grows(void **state)
{
    (void)state;
    tdi_text text = {0};
    for (int i = 0; i < 1000; i++)
        tdi_text_format(&text, "%d,", i);
    assert_false(text.failed);
    assert_int_equal(text.length, 3890);
    assert_int_equal(strlen(text.chars), 3890);
    tdi_text_free(&text);
}

static void test_first_failure_stays(void **state)
{
    (void)state;
    tdi_error error = {0};
    assert_int_equal(tdi_fail(&error, TD_IO, "first %d", 1), TD_IO);
    assert_int_equal(tdi_fail(&error, TD_NO_MEMORY, "second"), TD_NO_MEMORY);
    tdi_error_prefix(&error, "file %s", "f");
    assert_int_equal(error.status, TD_IO);
    assert_string_equal(error.message, "file f: first 1");
}

static void test_names_and_arena(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    assert_string_equal(tdi_context_name(context, "dense"), "dense");
    assert_string_equal(tdi_context_name(context, "dense"), "dense_1");
    assert_string_equal(tdi_context_name(context, "conv2d"), "conv2d");
    assert_string_equal(tdi_context_name(context, "dense"), "dense_2");
    for (size_t size = 1; size < 200000; size = size * 3 + 1) {
        unsigned char *p = tdi_alloc(context->arena, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_int_equal(p[0] | p[size - 1], 0);
        memset(p, 255, size);
    }
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_grows), cmocka_unit_test(test_first_failure_stays),
                                       cmocka_unit_test(test_names_and_arena)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
