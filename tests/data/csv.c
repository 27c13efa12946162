/* CSV files: columns, categories, missing values, windows, and what is wrong with a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <tandem/tandem.h>

#include "data/folder.h"

static const char weather[] = "hour,temp,wind,pm\n"
                              "0,1.5,NW,10\n"
                              "1,-2,SE,20\n"
                              "2,3e0,NW,30\n"
                              "3,4,cv,40\n"
                              "4,5,SE,50\n";

/* ---- helpers ---- */

static void fine(const td_data *data)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
}

static const char *put(const folder *in, const char *name, const char *text)
{
    folder_write(in, name, text, strlen(text));
    return folder_path(in, name);
}

static void expect_numbers(const float *seen, const float *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (seen[i] != expected[i])
            fail_msg("number %zu is %g, not %g", i, (double)seen[i], (double)expected[i]);
}

/* All samples' inputs and targets, one after the other. */
static void expect_data(td_data *data, int64_t samples, const float *x, size_t x_count, const float *y, size_t y_count)
{
    float seen_x[256] = {0}, seen_y[64] = {0};
    td_context *context = td_context_create(NULL);
    fine(data);
    assert_int_equal(td_data_samples(data), samples);
    td_status status = td_data_read(context, data, NULL, samples, seen_x, y ? seen_y : NULL);
    if (status != TD_OK)
        fail_msg("%s", td_error(context));
    expect_numbers(seen_x, x, x_count);
    if (y)
        expect_numbers(seen_y, y, y_count);
    td_context_free(context);
}
#define FLOATS(...)                                                                                                    \
    (float[])                                                                                                          \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define COUNT(...)                       (sizeof(__VA_ARGS__) / sizeof *(__VA_ARGS__))
#define EXPECT_DATA(data, samples, x, y) expect_data(data, samples, x, COUNT(x), y, COUNT(y))

static void expect_error(td_data *data, const char *first, const char *second)
{
    const char *error = td_data_error(data);
    assert_non_null(error);
    if (!strstr(error, first) || !strstr(error, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error, first, second);
    td_data_release(data);
}

/* ---- columns ---- */

static void columns_are_chosen(void **state)
{
    const char *path = put(*state, "w.csv", weather);
    td_data *data = td_open(path, .features = "x=temp,hour,y=pm");
    static const float x[] = {1.5f, 0, -2, 1, 3, 2, 4, 3, 5, 4}, y[] = {10, 20, 30, 40, 50};
    EXPECT_DATA(data, 5, x, y);
    td_shape shape;
    assert_int_equal(td_data_y_shape(data, &shape), TD_OK);
    assert_int_equal(shape.rank, 0);
    assert_int_equal(td_recipe_class(td_data_recipe(data), 0, NULL, 0), 0);
    td_data_release(data);
    data = td_open(path, .features = "x=wind:one-hot,hour,y=wind:codes"); /* NW, SE, cv */
    static const float hot[] = {1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 2, 0, 0, 1, 3, 0, 1, 0, 4}, codes[] = {0, 1, 0, 2, 1};
    EXPECT_DATA(data, 5, hot, codes);
    char name[16];
    assert_int_equal(td_recipe_class(td_data_recipe(data), 2, name, sizeof name), 3);
    assert_string_equal(name, "cv");
    td_data_release(data);
    data = td_open(path, .features = "x0=hour,x1=temp,y0=pm,y1=hour", .scale = 2);
    static const float first[] = {0, 2, 4, 6, 8};
    EXPECT_DATA(data, 5, first, y);
    td_data_release(data);
}

static void the_last_column_is_y(void **state)
{
    static const float x[] = {1, 2, 4, 5}, y[] = {3, 6};
    static const struct {
        const char *name, *text;
    } forms[] = {{"a.csv", "a,b,c\n1,2,3\n4,5,6\n"},
                 {"crlf.csv", "\xef\xbb\xbf\"a\",b,c\r\n\r\n1, 2 ,3\r\n\"4\",5,6"},
                 {"semicolons.csv", "a;b;c\n1;2;3\n4;5;6\n"},
                 {"tabs.csv", "a\tb\tc\n1\t2\t3\n   \n4\t5\t6\n"},
                 {"no header.csv", "1,2,3\n4,5,6\n"}};
    for (size_t i = 0; i < COUNT(forms); i++) {
        td_data *data = td_open(put(*state, forms[i].name, forms[i].text));
        EXPECT_DATA(data, 2, x, y);
        td_data_release(data);
    }
    folder_write_gz(*state, "a.csv.gz", forms[0].text, strlen(forms[0].text));
    td_data *data = td_open(folder_path(*state, "a.csv.gz"));
    EXPECT_DATA(data, 2, x, y);
    td_data_release(data);
    data = td_open(put(*state, "n.csv", "5,6,7\n"), .features = "x=2,0,y=1"); /* by number, where there are no names */
    EXPECT_DATA(data, 1, FLOATS(7, 5), FLOATS(6));
    td_data_release(data);
    data = td_open(put(*state, "quoted.csv", "\"a,b\",\"c\"\"d\"\n1,2\n"), .features = "x=a b,y=c\"d");
    EXPECT_DATA(data, 1, FLOATS(1), FLOATS(2));
    td_data_release(data);
}

static void several_files_are_one(void **state)
{
    char both[1100];
    put(*state, "1.csv", "a,b\n1,2\n3,4\n");
    put(*state, "2.csv", "a,b\n5,6\n7,8\n");
    snprintf(both, sizeof both, "%s,%s", folder_path(*state, "1.csv"), folder_path(*state, "2.csv"));
    td_data *data = td_open(both);
    EXPECT_DATA(data, 4, FLOATS(1, 3, 5, 7), FLOATS(2, 4, 6, 8));
    td_data_release(data);
    data = td_open(folder_path(*state, "[12].csv"), .features = "x=a,y=b", .window = 2); /* none runs across */
    assert_int_equal(td_data_samples(data), -1);
    expect_error(data, "4 rows make no sample", "longer than the file");
    put(*state, "2.csv", "a,c\n5,6\n");
    expect_error(td_open(both), "2.csv: column 2", "\"c\", but \"b\"");
}

/* ---- windows ---- */

static void windows_go_over_time(void **state)
{
    const char *path = put(*state, "w.csv", weather);
    td_data *data = td_open(path, .features = "x=hour,temp,y=pm", .window = 2);
    static const float x[] = {0, 1.5f, 1, -2, 1, -2, 2, 3, 2, 3, 3, 4}, y[] = {30, 40, 50};
    EXPECT_DATA(data, 3, x, y);
    td_shape shape;
    assert_int_equal(td_data_x_shape(data, &shape), TD_OK);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.dim[0], 2);
    td_data_release(data);
    data = td_open(path, .features = "x=hour,y=pm", .window = 2, .horizon = 3);
    EXPECT_DATA(data, 1, FLOATS(0, 1), FLOATS(50));
    td_data_release(data);
    data =
        td_open(path, .features = "x=hour,y=pm", .window = 4, .targets = TD_NO); /* the last one's target is to come */
    expect_data(data, 2, FLOATS(0, 1, 2, 3, 1, 2, 3, 4), 8, NULL, 0);
    td_data_release(data);
    expect_error(td_open(path, .features = "x=hour,y=pm", .window = 5), "5 rows make no sample", "longer");
    expect_error(td_open(path, .features = "x=hour,y=pm", .horizon = 2), "horizon of 2", "no window");
}

/* ---- missing values ---- */

static const char gaps[] = "a,b,c\n"
                           "NA,1,1\n"
                           "2,,2\n"
                           "4,5,3\n"
                           "nan,6,4\n"
                           "null,7,5\n";

static void missing_values_are_stood_in_for(void **state)
{
    const char *path = put(*state, "gaps.csv", gaps);
    expect_error(td_open(path), "gaps.csv: line 2 at offset 6: column \"a\" is missing", "previous or drop");
    td_data *data = td_open(path, .missing = TD_MISSING_MEAN);
    EXPECT_DATA(data, 5, FLOATS(3, 1, 2, 4.75f, 4, 5, 3, 6, 3, 7), FLOATS(1, 2, 3, 4, 5));
    td_data_release(data);
    data = td_open(path, .missing = TD_MISSING_ZERO);
    EXPECT_DATA(data, 5, FLOATS(0, 1, 2, 0, 4, 5, 0, 6, 0, 7), FLOATS(1, 2, 3, 4, 5));
    td_data_release(data);
    data = td_open(path, .missing = TD_MISSING_PREVIOUS); /* nothing stands before the first */
    EXPECT_DATA(data, 4, FLOATS(2, 1, 4, 5, 4, 6, 4, 7), FLOATS(2, 3, 4, 5));
    assert_int_equal(td_data_skipped(data, NULL), 1);
    td_data_release(data);
    data = td_open(path, .missing = TD_MISSING_DROP);
    EXPECT_DATA(data, 1, FLOATS(4, 5), FLOATS(3));
    td_data_release(data);
    data = td_open(path, .features = "x=b,y=c", .missing = TD_MISSING_DROP, .window = 2);
    EXPECT_DATA(data, 1, FLOATS(5, 6), FLOATS(5));
    td_data_release(data);
    path = put(*state, "none.csv", "a,b\nNA,1\nNA,2\n");
    expect_error(td_open(path, .missing = TD_MISSING_MEAN), "\"a\" holds no number", "none.csv");
}

static void a_file_without_rows_begins_none(void **state)
{
    char all[256];
    const char *parts[] = {"a,b\n", "a,b\n1,1\n", "a,b\nNA,2\n3,3\n"};
    put(*state, "f1.csv", parts[0]);
    put(*state, "f2.csv", parts[1]);
    put(*state, "f3.csv", parts[2]);
    snprintf(all, sizeof all, "%s,", folder_path(*state, "f1.csv"));
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s,", folder_path(*state, "f2.csv"));
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s", folder_path(*state, "f3.csv"));
    td_data *data = td_open(all, .missing = TD_MISSING_PREVIOUS); /* of the file before none stands in */
    EXPECT_DATA(data, 2, FLOATS(1, 3), FLOATS(1, 3));
    td_data_release(data);
}

static void missing_categories(void **state)
{
    const char *path = put(*state, "c.csv", "k,y\nu,1\n,2\nv,3\n");
    td_data *data = td_open(path, .features = "x=k:one-hot,y=y", .missing = TD_MISSING_ZERO);
    EXPECT_DATA(data, 3, FLOATS(1, 0, 0, 0, 0, 1), FLOATS(1, 2, 3));
    td_data_release(data);
    data = td_open(path, .features = "x=k:codes,y=y", .missing = TD_MISSING_PREVIOUS);
    EXPECT_DATA(data, 3, FLOATS(0, 0, 1), FLOATS(1, 2, 3));
    td_data_release(data);
    expect_error(td_open(path, .features = "x=k:codes,y=y", .missing = TD_MISSING_ZERO), "c.csv: line 3",
                 "categories have no zero");
    expect_error(td_open(path, .features = "x=k:one-hot,y=y", .missing = TD_MISSING_MEAN), "line 3", "have no mean");
}

/* ---- recipes ---- */

/* Means and categories are those of the data trained on, in the model's file too. */
static void a_recipe_keeps_what_was_found(void **state)
{
    const folder *in = *state;
    char train[512];
    snprintf(train, sizeof train, "%s", put(in, "train.csv", "k,a,y\nv,1,1\nu,3,2\nw,NA,3\n"));
    td_context *context = td_context_create(NULL);
    td_tensor *x = td_input(context, TD_SHAPE(4));
    td_model *model = td_model_create(x, td_dense(x, 1), .seed = 1);
    td_compile(model, .optimizer = td_sgd(), .loss = TD_MEAN_SQUARED_ERROR);
    assert_null(td_model_recipe(model));
    td_data *data = td_open(train, .features = "x=k:one-hot,a,y=y", .missing = TD_MISSING_MEAN);
    assert_int_equal(td_fit(model, data), TD_OK);
    assert_int_equal(td_save(model, folder_path(in, "m.keras")), TD_OK);
    model = td_load(context, folder_path(in, "m.keras"));
    assert_non_null(td_model_recipe(model));
    data = td_open(put(in, "new.csv", "a,k\nNA,w\n7,v\n"), .recipe = td_model_recipe(model), .targets = TD_NO);
    expect_data(data, 2, FLOATS(0, 0, 1, 2, 0, 1, 0, 7), 8, NULL, 0);
    td_data_release(data);
    data = td_open(put(in, "odd.csv", "a,k\n1,z\n"), .recipe = td_model_recipe(model), .targets = TD_NO);
    expect_error(data, "odd.csv: line 2 at offset 4: column \"k\" is \"z\"", "the model knows: u, v, w");
    data = td_open(train, .features = "x=k:one-hot,a:codes,y=y", .recipe = td_model_recipe(model));
    expect_error(data, "\"a\" as numbers", "the same features");
    td_context_free(context);
}

/* ---- damage ---- */

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *first, *second;
    } cases[] = {
        {"a,b\n1,2\n3\n", "bad.csv: line 3 at offset 8: 1 cells", "the first line has 2"},
        {"a,b\n1,2\n\n3,4,5\n", "line 4 at offset 9: 3 cells", "has 2"},
        {"a,b\n1,2\n\"x\ny\",4\n", "line 3 at offset 8: column \"a\" is \"x?y\", which is not a number", "a:one-hot"},
        {"a,b\n1,0x10\n", "line 2 at offset 4: column \"b\" is \"0x10\"", "not a number"},
        {"a,b\n1,1e999\n", "\"1e999\"", "not finite"},
        {"a,b\n1,1,5\n", "line 2 at offset 4: 3 cells", "has 2"},
        {"a,b\n1,2\n\"3,4\n", "line 3 at offset 8: a quote is opened", "not closed"},
        {"a,b\n1,2\"3\n", "line 2 at offset 4: a quote stands inside", "not quoted"},
        {"a,b\n", "holds no rows", "bad.csv"},
        {"", "is empty", "bad.csv"}};
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_error(td_open(put(*state, "bad.csv", cases[i].text)), cases[i].first, cases[i].second);
    const char *path = put(*state, "w.csv", weather);
    expect_error(td_open(path, .features = "x=hour,rain,y=pm"), "no column \"rain\"", "hour, temp, wind, pm");
    expect_error(td_open(path, .features = "y=pm,x=hour"), "features: expected x", "\"x\"");
    expect_error(td_open(path, .features = "hour"), "features: expected NAME=COLUMN", "\"hour\"");
    expect_error(td_open(path), "wind", "is not a number");
    expect_error(td_open(folder_path(*state, "absent.csv")), "absent.csv", "no such file");
    folder_write_gz(*state, "cut.csv.gz", weather, strlen(weather));
    char bytes[256];
    size_t size = folder_read(*state, "cut.csv.gz", bytes, sizeof bytes);
    folder_write(*state, "cut.csv.gz", bytes, size / 2);
    expect_error(td_open(folder_path(*state, "cut.csv.gz"), .features = "x=hour,y=pm"), "cut.csv.gz: line",
                 "cannot be read");
}

static void lines_that_cannot_be_read_are_skipped(void **state)
{
    const char *reason, *path = put(*state, "s.csv", "a,b\n1,2\nx,3\n4\n5,\"6\"7\n8,9\n10,11\n");
    td_data *data = td_open(path, .skip_errors = TD_YES);
    EXPECT_DATA(data, 3, FLOATS(1, 8, 10), FLOATS(2, 9, 11));
    assert_int_equal(td_data_skipped(data, &reason), 3);
    assert_non_null(strstr(reason, "s.csv: line 3 at offset 8: column \"a\" is \"x\""));
    td_data_release(data);
    data = td_open(path, .features = "x=a,y=b", .skip_errors = TD_YES, .window = 2, .targets = TD_NO);
    expect_data(data, 1, FLOATS(8, 10), 2, NULL, 0); /* no window runs across the gap */
    td_data_release(data);
}

enum { ROWS = 20000 };

/* Rows "i,-i", gzipped; returns the file's bytes, to be freed. */
static char *many_rows(const folder *in, size_t *size)
{
    size_t room = 32 * ROWS, used = 4;
    char *text = malloc(room), *bytes = malloc(room);
    memcpy(text, "a,b\n", 5);
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, room - used, "%d,-%d\n", i, i);
    folder_write_gz(in, "many.csv.gz", text, used);
    *size = folder_read(in, "many.csv.gz", bytes, room);
    free(text);
    return bytes;
}

/* Refused with line and offset; with .skip_errors the rows before the damage, each as it was written, and no more. */
static void expect_rows_before_damage(const folder *in, const char *bytes, size_t size)
{
    const char *reason, *path = folder_path(in, "many.csv.gz");
    static float x[ROWS], y[ROWS];
    folder_write(in, "many.csv.gz", bytes, size);
    expect_error(td_open(path), "many.csv.gz: line ", ": cannot be read from here on");
    td_context *context = td_context_create(NULL);
    td_data *data = td_open(path, .skip_errors = TD_YES);
    fine(data);
    int64_t rows = td_data_samples(data);
    assert_in_range(rows, 1, ROWS);
    assert_int_equal(td_data_skipped(data, &reason), 1);
    assert_non_null(strstr(reason, " at offset "));
    assert_int_equal(td_data_read(context, data, NULL, rows, x, y), TD_OK);
    for (int i = 0; i < rows; i++)
        assert_true(x[i] == (float)i && y[i] == (float)-i);
    td_data_release(data);
    td_context_free(context);
}

static void damage_in_a_gzipped_file_ends_it(void **state)
{
    size_t size;
    char *bytes = many_rows(*state, &size);
    expect_rows_before_damage(*state, bytes, size / 2);
    expect_rows_before_damage(*state, bytes, size - 3);
    bytes[size - 6] ^= 1; /* of the checksum */
    expect_rows_before_damage(*state, bytes, size);
    bytes[size * 3 / 4] ^= 16; /* what that unpacks to is not known */
    folder_write(*state, "many.csv.gz", bytes, size);
    td_data *data = td_open(folder_path(*state, "many.csv.gz"), .skip_errors = TD_YES);
    fine(data);
    assert_true(td_data_skipped(data, NULL) > 0);
    td_data_release(data);
    free(bytes);
}

static void offsets_are_bytes_of_the_file(void **state)
{
    const char *path = put(*state, "o.csv",
                           "\xef\xbb\xbf"
                           "a,b\r\n1,2\r\n\r\n\"3\n3\",4\r\n");
    expect_error(td_open(path), "o.csv: line 4 at offset 15: column \"a\"", "not a number");
    path = put(*state, "q.csv", "a,b\n1,2\n\"3,4\n");
    expect_error(td_open(path), "q.csv: line 3 at offset 8: a quote is opened", "not closed");
}

static void numbers_are_read_whatever_the_locale(void **state)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        skip();
    td_data *data = td_open(put(*state, "l.csv", "a,b\n1.5,2.25\n"));
    EXPECT_DATA(data, 1, FLOATS(1.5f), FLOATS(2.25f));
    td_data_release(data);
    setlocale(LC_ALL, "C");
}

/* A line is longer than what is read at once, and the file longer than that. */
static void long_files(void **state)
{
    const folder *in = *state;
    FILE *file = fopen(folder_path(in, "long.csv"), "w");
    assert_non_null(file);
    fprintf(file, "a,text,b\n");
    for (int i = 0; i < 3; i++)
        fprintf(file, "%d,\"%0100000d\n\",%d\n", i, i, i + 1);
    fclose(file);
    td_data *data = td_open(folder_path(in, "long.csv"), .features = "x=a,y=b");
    EXPECT_DATA(data, 3, FLOATS(0, 1, 2), FLOATS(1, 2, 3));
    td_data_release(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(columns_are_chosen),
                                       TEST(the_last_column_is_y),
                                       TEST(several_files_are_one),
                                       TEST(windows_go_over_time),
                                       TEST(missing_values_are_stood_in_for),
                                       TEST(a_file_without_rows_begins_none),
                                       TEST(missing_categories),
                                       TEST(a_recipe_keeps_what_was_found),
                                       TEST(what_is_wrong_is_named),
                                       TEST(lines_that_cannot_be_read_are_skipped),
                                       TEST(damage_in_a_gzipped_file_ends_it),
                                       TEST(offsets_are_bytes_of_the_file),
                                       TEST(numbers_are_read_whatever_the_locale),
                                       TEST(long_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
