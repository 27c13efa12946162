/* Text files: characters as numbers, windows, the vocabulary kept, and what is no text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <tandem/tandem.h>

#include "data/folder.h"

static const char *put(const folder *in, const char *name, const char *text)
{
    folder_write(in, name, text, strlen(text));
    return folder_path(in, name);
}

static void expect_numbers(td_data *data, int64_t samples, const float *x, const float *y, size_t count)
{
    float seen_x[32], seen_y[32];
    td_context *context = td_context_create(NULL);
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    assert_int_equal(td_data_samples(data), samples);
    assert_int_equal(td_data_read(context, data, NULL, samples, seen_x, y ? seen_y : NULL), TD_OK);
    assert_memory_equal(seen_x, x, count * sizeof *x);
    if (y)
        assert_memory_equal(seen_y, y, count * sizeof *y);
    td_context_free(context);
}

static void characters_are_numbered_in_order(void **state)
{
    td_data *data = td_open(put(*state, "a.txt",
                                "ba\xc3\xa9 \xe2\x82\xac\xf0\x9f\x99\x82"
                                "b"),
                            .window = 3); /* baé €🙂b */
    static const float x[] = {2, 1, 3, 0, 4, 5}, y[] = {1, 3, 0, 4, 5, 2};
    expect_numbers(data, 2, x, y, 6);
    uint32_t characters[6];
    assert_int_equal(td_recipe_characters(td_data_recipe(data), characters, 6), 6);
    assert_int_equal(characters[0], ' ');
    assert_int_equal(characters[3], 0xe9);
    assert_int_equal(characters[5], 0x1f642);
    td_data *more = td_open(put(*state, "b.txt", "ab  "), .recipe = td_data_recipe(data), .targets = TD_NO);
    static const float again[] = {1, 2, 0};
    expect_numbers(more, 1, again, NULL, 3);
    td_data_release(more);
    more = td_open(put(*state, "c.txt", "abc bb"), .recipe = td_data_recipe(data));
    assert_non_null(strstr(td_data_error(more), "character 2, U+0063, is none of the 6"));
    td_data_release(more);
    td_data_release(data);
}

/* Windows writes one, which is no character of the text. */
static void a_byte_order_mark_is_left_out(void **state)
{
    td_data *data = td_open(put(*state, "b.TXT",
                                "\xef\xbb\xbf"
                                "abab"),
                            .window = 3);
    static const float x[] = {0, 1, 0}, y[] = {1, 0, 1};
    expect_numbers(data, 1, x, y, 3);
    td_data_release(data);
}

static void what_is_no_text_is_refused(void **state)
{
    static const char *const wrong[] = {"ab\xff", "a\x80", "\xc0\xaf", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        td_data *data = td_open(put(*state, "w.txt", wrong[i]), .window = 1);
        assert_non_null(td_data_error(data));
        assert_non_null(strstr(td_data_error(data), "no UTF-8 text: byte 0x"));
        td_data_release(data);
    }
    td_data *data = td_open(put(*state, "s.txt", "short"));
    assert_non_null(strstr(td_data_error(data), "5 characters make no window of 100 and one more"));
    td_data_release(data);
    data = td_open(put(*state, "e.txt", ""));
    assert_non_null(strstr(td_data_error(data), "0 characters"));
    td_data_release(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(characters_are_numbered_in_order), TEST(a_byte_order_mark_is_left_out),
                                       TEST(what_is_no_text_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
