/* Python's format mini-language, against what Python itself writes (number_format_golden.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/number_format.h"
#include "base/number_format_golden.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void expect(const char *specification, const char *wanted, const char *wrong, tdi_text *seen)
{
    if (!wanted != !seen->length || (wanted && strcmp(wanted, seen->chars) != 0) || !wanted != (wrong != NULL))
        fail_msg("\"%s\": \"%s\" (%s) where Python says \"%s\"", specification, seen->chars ? seen->chars : "",
                 wrong ? wrong : "", wanted ? wanted : "an error");
    tdi_text_free(seen);
}

static void test_ints_are_as_python_writes_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(int_golden); i++) {
        tdi_text seen = {0};
        const char *wrong = tdi_format_int(int_golden[i].value, int_golden[i].specification, &seen);
        expect(int_golden[i].specification, int_golden[i].text, wrong, &seen);
    }
}

static void test_floats_are_as_python_writes_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(float_golden); i++) {
        tdi_text seen = {0};
        const char *wrong = tdi_format_float(float_golden[i].value, float_golden[i].specification, &seen);
        expect(float_golden[i].specification, float_golden[i].text, wrong, &seen);
    }
}

static void test_a_comma_is_no_point(void **state)
{
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "cs_CZ.UTF-8"};
    size_t i = 0;
    while (i < COUNT(commas) && !setlocale(LC_NUMERIC, commas[i]))
        i++;
    if (i == COUNT(commas))
        skip();
    test_floats_are_as_python_writes_them(state);
    setlocale(LC_NUMERIC, "C");
}

static void test_what_no_path_holds_is_refused(void **state)
{
    (void)state;
    tdi_text seen = {0};
    static const char *const wide[] = {"99999999999d", "4096", ".4096f", "5000.2f"};
    for (size_t i = 0; i < COUNT(wide); i++)
        assert_non_null(tdi_format_float(1, wide[i], &seen));
    assert_null(tdi_format_float(-1.7976931348623157e308, "04095_.4000f", &seen));
    assert_int_equal(seen.length, 1 + 309 + 102 + 1 + 4000);
    tdi_text_free(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ints_are_as_python_writes_them),
        cmocka_unit_test(test_floats_are_as_python_writes_them),
        cmocka_unit_test(test_a_comma_is_no_point),
        cmocka_unit_test(test_what_no_path_holds_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
