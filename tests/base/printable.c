/* What a terminal shows of names from files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/error.h"
#include "base/printable.h"

static void assert_shown(const char *name, const char *shown)
{
    char text[64];
    strcpy(text, name);
    assert_string_equal(td_printable(text), shown);
}

static void control_characters_are_not_shown(void **state)
{
    (void)state;
    assert_shown("dense_1", "dense_1");
    assert_shown("a\033[31mb\177\n\t", "a?[31mb???");
    assert_shown("\302\233x слой 红", "?x слой 红");      /* a control sequence in one character of C1 */
    assert_shown("\342\200\256txt.exe", "?txt.exe");      /* right to left */
    assert_shown("\377\300\257 \355\240\200", "??? ???"); /* no UTF-8 */
    char lines[] = "one\n\033two\n";
    assert_string_equal(tdi_printable_lines(lines), "one\n?two\n");
}

static void columns_are_a_terminals(void **state)
{
    (void)state;
    assert_int_equal(td_columns("dense"), 5);
    assert_int_equal(td_columns("слой"), 4);
    assert_int_equal(td_columns("红色"), 4);
    assert_int_equal(td_columns("e\314\201"), 1); /* an accent that combines */
}

static void assert_padded(const char *name, int columns, const char *wanted)
{
    char padded[64];
    assert_string_equal(td_pad(name, columns, padded, sizeof padded), wanted);
}

static void texts_are_cut_and_padded_by_columns(void **state)
{
    (void)state;
    assert_padded("слой", 6, "слой  ");
    assert_padded("слой", 3, "сло");
    assert_padded("红色", 3, "红 ");
    assert_padded("e\314\201a", 1, "e\314\201");
    char small[4];
    assert_string_equal(td_pad("abcdef", 8, small, sizeof small), "abc");
}

static void sentences_are_printable(void **state)
{
    (void)state;
    tdi_error error = {0};
    tdi_fail(&error, TD_BAD_FILE, "layer \"%s\"", "a\033b");
    tdi_error_prefix(&error, "file %s", "c\rd");
    assert_string_equal(error.message, "file c?d: layer \"a?b\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_are_not_shown),
        cmocka_unit_test(columns_are_a_terminals),
        cmocka_unit_test(texts_are_cut_and_padded_by_columns),
        cmocka_unit_test(sentences_are_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
