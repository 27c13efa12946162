/* The forms that CSV files come in: with and without names of columns, by which marks cells and numbers are told, and
 * what is said of what is not used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include <stdio.h>
#include <string.h>
#include <tandem/tandem.h>

#include "data/folder.h"

/* ---- helpers ---- */

static const char *put(const folder *in, const char *name, const char *text)
{
    folder_write(in, name, text, strlen(text));
    return folder_path(in, name);
}

static void expect_numbers(td_data *data, bool y, int64_t samples, const float *expected, size_t count)
{
    float x[64] = {0}, seen[64] = {0};
    td_context *context = td_context_create(NULL);
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    assert_int_equal(td_data_samples(data), samples);
    if (td_data_read(context, data, NULL, samples, x, y ? seen : NULL) != TD_OK)
        fail_msg("%s", td_error(context));
    for (size_t i = 0; i < count; i++)
        if ((y ? seen : x)[i] != expected[i])
            fail_msg("number %zu is %g, not %g", i, (double)(y ? seen : x)[i], (double)expected[i]);
    td_context_free(context);
}
#define EXPECT_X(data, samples, ...)                                                                                   \
    expect_numbers(data, false, samples, (float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / sizeof(float))
#define EXPECT_Y(data, samples, ...)                                                                                   \
    expect_numbers(data, true, samples, (float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / sizeof(float))

static void expect_words(const char *seen, const char *first, const char *second)
{
    if (!seen || !strstr(seen, first) || !strstr(seen, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", seen ? seen : "nothing", first, second);
}

static void expect_error(td_data *data, const char *first, const char *second)
{
    expect_words(td_data_error(data), first, second);
    td_data_release(data);
}

static void expect_note(td_data *data, const char *first, const char *second)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    if (first)
        expect_words(td_data_note(data), first, second);
    else if (*td_data_note(data))
        fail_msg("a note: %s", td_data_note(data));
    td_data_release(data);
}

/* ---- headers ---- */

/* What the first line is, without a word of the caller: the number of samples, or 0 where it must be told. */
static void the_first_line(void **state)
{
    static const struct {
        const char *text;
        int64_t samples;
        const char *note; /* NULL: none */
    } cases[] = {
        {"a,b,c\n1,2,3\n4,5,6\n", 2, NULL},
        {"1,2.5,3\n4,5,6\n", 2, NULL},
        {"0,1,2\n1.5,2.5,0\n3.5,4.5,1\n", 2, "its first line, 0,1,2, is taken for the columns' names"},
        {",0,1,2\n0,1,2,3\n1,1,2,3\n", 2, "is taken for the columns' names; if it is a sample"},
        {"2019,2020,2021\n1.5,2,3\n", 1, "taken for the columns' names"},
        {"1,2,3\n4,5,6\n", 2, "is taken for a sample; if it is the columns' names"},
        {"NA,2,3\n4,5,6\n", 2, NULL},
        {"country,2019,2020\n1,5,6\n", 1, "its first line, country,2019,2020, is taken for the columns' names"},
        {"?,0.1,0.5\n1,5,6\n", 1, "its first line, ?,0.1,0.5, is taken for the columns' names"},
        {"cat,1,2\ndog,3,4\n", 0, NULL},
        {"0\n1\n", 0, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        td_data *data = td_open(put(*state, "f.csv", cases[i].text), .missing = TD_MISSING_PREVIOUS,
                                .features = strncmp(cases[i].text, "0\n", 2) == 0 ? "x=0" : NULL);
        if (!cases[i].samples) {
            expect_error(data, "f.csv: its first line, ", "say which by header (--header yes or no)");
            continue;
        }
        if (td_data_error(data))
            fail_msg("%s", td_data_error(data));
        if (td_data_samples(data) + td_data_skipped(data, NULL) != cases[i].samples)
            fail_msg("%s: %d samples", cases[i].text, (int)td_data_samples(data));
        expect_note(data, cases[i].note, "");
    }
}

static void the_caller_says_it(void **state)
{
    const char *path = put(*state, "f.csv", "0,1,2\n1.5,2.5,0\n");
    td_data *data = td_open(path, .header = TD_NO);
    EXPECT_X(data, 2, 0, 1, 1.5f, 2.5f);
    expect_note(data, NULL, NULL);
    data = td_open(path, .header = TD_YES);
    EXPECT_X(data, 1, 1.5f, 2.5f);
    expect_note(data, NULL, NULL);
    data = td_open(path, .features = "x=0,1,y=2"); /* the names are those, whatever the line is */
    EXPECT_X(data, 1, 1.5f, 2.5f);
    expect_note(data, "taken for the columns' names", "--header no");
    path = put(*state, "n.csv", "2019,2020,2021\n1,2,3\n");
    data = td_open(path, .features = "x=2021,2019,y=2020");
    EXPECT_X(data, 1, 3, 1);
    expect_note(data, NULL, NULL);
    path = put(*state, "i.csv", "5.1,3.5,setosa\n7,3.2,virginica\n"); /* text in the first row */
    data = td_open(path, .features = "x=0,1,y=2:codes");
    EXPECT_Y(data, 2, 0, 1);
    expect_note(data, NULL, NULL);
    path = put(*state, "c.csv", "cat,1,2\ndog,3,4\n");
    data = td_open(path, .features = "x=1,2,y=0:codes");
    EXPECT_X(data, 2, 1, 2, 3, 4);
    td_data_release(data);
    data = td_open(path, .header = TD_YES, .features = "x=1,2,y=cat:codes");
    EXPECT_X(data, 1, 3, 4);
    td_data_release(data);
    expect_error(td_open(put(*state, "h.csv", "a,b\n1,2\n"), .features = "x=0,y=1"), "no column \"0\"", "it has a, b");
    expect_error(td_open(put(*state, "r.csv", "1,2\n3,4\n"), .features = "x=a,y=b"), "no column \"a\"; it has 0, 1",
                 "its first line is a sample");
}

static const char *both(const folder *in, const char *first, const char *second)
{
    static char paths[2200];
    put(in, "1.csv", first);
    put(in, "2.csv", second);
    snprintf(paths, sizeof paths, "%s/1.csv,%s/2.csv", in->path, in->path);
    return paths;
}

/* The same, whichever file comes first. */
static void files_agree_on_names(void **state)
{
    static const char named[] = "a,b\n1,2\n", rows[] = "3,4\n", first_rows[] = "0,1\n";
    td_data *data = td_open(both(*state, named, rows));
    EXPECT_X(data, 2, 1, 3);
    td_data_release(data);
    data = td_open(both(*state, rows, named));
    EXPECT_X(data, 2, 3, 1);
    expect_note(data, NULL, NULL);
    data = td_open(both(*state, first_rows, named), .features = "x=b,y=a");
    EXPECT_X(data, 2, 1, 2);
    td_data_release(data);
    data = td_open(both(*state, "b,c,a\n2,0,1\n", named), .features = "x=a,y=b"); /* in another order */
    EXPECT_X(data, 2, 1, 1);
    td_data_release(data);
    expect_error(td_open(both(*state, "b,a\n2,1\n", named)), "column 1 is", "features must name those of x and of y");
    expect_error(td_open(both(*state, "b,c\n2,1\n", named), .features = "x=a,y=b"), "1.csv: has no column \"a\"",
                 "it has b, c");
    expect_error(td_open(both(*state, named, "1,2,3\n4,5,6\n")), "2.csv: column 1", "1.csv");
}

static void names_are_pandas(void **state)
{
    td_data *data = td_open(put(*state, "d.csv", "a,a,b,a\n1,2,3,4\n"), .features = "x=a.1,a.2,y=a");
    EXPECT_X(data, 1, 2, 4);
    td_data_release(data);
    const char *path = put(*state, "i.csv", ",a,b\n0,5,6\n1,7,8\n");
    const td_shape one = TD_SHAPE(1), two = TD_SHAPE(2), three = TD_SHAPE(3);
    data = td_open(path, .input_shapes = &one, .inputs = 1); /* the index that pandas writes */
    EXPECT_X(data, 2, 5, 7);
    expect_note(data, "1 of its 3 columns is not used: Unnamed: 0", "i.csv");
    data = td_open(path, .input_shapes = &two, .inputs = 1);
    EXPECT_X(data, 2, 0, 5, 1, 7);
    expect_note(data, NULL, NULL);
    data = td_open(path, .features = "x=Unnamed: 0,y=a");
    EXPECT_X(data, 2, 0, 1);
    td_data_release(data);
    data = td_open(path, .input_shapes = &three, .inputs = 1, .targets = TD_NO); /* no y, to predict */
    EXPECT_X(data, 2, 0, 5, 6, 1, 7, 8);
    expect_note(data, NULL, NULL);
    data = td_open(path, .input_shapes = &two, .inputs = 1, .targets = TD_NO);
    EXPECT_X(data, 2, 5, 6, 7, 8);
    expect_note(data, "1 of its 3 columns is not used: Unnamed: 0", "");
}

static void unused_columns_are_named(void **state)
{
    const char *path = put(*state, "u.csv", "id,a,b,note,c\n1,2,3,hm,4\n");
    expect_note(td_open(path, .features = "x=a,b,y=c"), "u.csv: 2 of its 5 columns are not used: id, note", "");
    expect_note(td_open(path, .features = "x=a,b,y=c", .targets = TD_NO), "2 of its 5 columns", "id, note");
    expect_note(td_open(path, .features = "x=id,a,b,note:codes,y=c"), NULL, NULL);
    td_data *data = td_open(put(*state, "t.csv", "a,b,c,d\n1,2,3,4\n"), .features = "y0=d,y1=b");
    EXPECT_X(data, 1, 1, 3);
    EXPECT_Y(data, 1, 4);
    expect_note(data, NULL, NULL);
}

/* ---- cells ---- */

static void decimal_commas(void **state)
{
    td_data *data = td_open(put(*state, "d.csv", "a;b\n1,5;2,5\n-0,25;1e3\n;7\n"), .missing = TD_MISSING_ZERO);
    EXPECT_X(data, 3, 1.5f, -0.25f, 0);
    EXPECT_Y(data, 3, 2.5f, 1000, 7);
    td_data_release(data);
    data = td_open(put(*state, "n.csv", "1,5;2,5;3,5\n4;5,5;6\n")); /* more commas than semicolons */
    EXPECT_X(data, 2, 1.5f, 2.5f, 4, 5.5f);
    td_data_release(data);
    expect_error(td_open(put(*state, "m.csv", "a;b\n1,5;2\n2.5;3\n"), .skip_errors = TD_YES), "line 3",
                 "with a decimal point and with a decimal comma");
    expect_error(td_open(put(*state, "q.csv", "a,b\n\"1,5\",2\n")),
                 "q.csv: line 2 at offset 4: column \"a\" is \"1,5\"", "with a comma: write 1.5");
    expect_error(td_open(put(*state, "t.csv", "a;b\n1.234,5;2\n")), "\"1.234,5\"", "not a number");
}

static void separators_and_ends(void **state)
{
    static const char *const forms[] = {"a|b\n1|2\n",
                                        "a,b,\n1,2,\n",
                                        "a,b\n1,2,\n",
                                        "a,b,\n1,2\n",
                                        "\n\na\tb\n1\t2\n\n",
                                        "a,b\r\n1,2\r\n\r\n",
                                        "\"a;b;c\",b\n1,2\n",
                                        "a,b\r1,2\r",
                                        ("\xef\xbb\xbf"
                                         "a;b\n1;2"),
                                        "a,b\nTrue,2\n",
                                        "a,\"b\nc\"\n1,\"2\"\n"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        td_data *data = td_open(put(*state, "f.csv", forms[i]));
        EXPECT_X(data, 1, 1);
        EXPECT_Y(data, 1, 2);
        expect_note(data, NULL, NULL);
    }
    static const char *const names[] = {"F.CSV", "f.TSV", "f.tsv", "f.Csv", "f.tab"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        td_data *data = td_open(put(*state, names[i], "a\tb\n1\t2\n"));
        EXPECT_X(data, 1, 1);
        td_data_release(data);
    }
}

static void other_encodings_are_named(void **state)
{
    folder_write(*state, "u.csv",
                 "\xff\xfe"
                 "a\0,\0b\0\n\0",
                 10);
    expect_error(td_open(folder_path(*state, "u.csv")), "u.csv: it is UTF-16 text", "iconv -f UTF-16 -t UTF-8");
    folder_write(*state, "b.csv", "\0a\0,\0b\0\n", 8);
    expect_error(td_open(folder_path(*state, "b.csv")), "b.csv: it holds NUL bytes", "UTF-8");
}

static void what_numbers_are_not(void **state)
{
    expect_error(td_open(put(*state, "i.csv", "a,b\n-inf,1\n")), "column \"a\" is \"-inf\"", "not finite");
    expect_error(td_open(put(*state, "l.csv", "a,b\n1e39,1\n")), "\"1e39\"", "not finite");
    expect_error(td_open(put(*state, "w.csv", "a,b\ninfo,1\n")), "\"info\"", "not a number");
    expect_error(td_open(put(*state, "r.csv", "1.5,inf\n3,4\n")), "r.csv: line 1 at offset 0: column \"1\" is \"inf\"",
                 "not finite");
    expect_error(td_open(put(*state, "k.csv", "a,b\n1,cat\n")), "\"cat\", which is not a number",
                 "give features y=b:codes");
    expect_error(td_open(put(*state, "s.csv", "1 2 3\n4 5 6\n")), "s.csv has one column, \"1 2 3\"",
                 "separated by commas, semicolons, tabs or bars");
    static const char *const missing[] = {"", "NA", "#N/A", "<NA>", "None", "NULL", "n/a", "nan"};
    char text[64];
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        snprintf(text, sizeof text, "a,b\n%s,1\n3,1\n", missing[i]);
        expect_error(td_open(put(*state, "m.csv", text)), "column \"a\" is missing", "--missing");
    }
}

/* Rows without names: most of them say how many cells a row has, not the first. */
static void the_first_row_is_as_any(void **state)
{
    static const char *const forms[] = {"9\n1.5,2\n3,4\n", "1.5,2\n9\n3,4\n", "1.5,2\n3,4\n9\n",
                                        "x\"y,1\n1.5,2\n3,4\n"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        td_data *data = td_open(put(*state, "s.csv", forms[i]), .skip_errors = TD_YES);
        EXPECT_X(data, 2, 1.5f, 3);
        assert_int_equal(td_data_skipped(data, NULL), 1);
        td_data_release(data);
    }
    expect_error(td_open(put(*state, "e.csv", forms[0])), "e.csv: line 1 at offset 0: 1 cells, where 2 were expected",
                 "most lines");
}

static void numbers_as_categories_are_in_order(void **state)
{
    td_data *data = td_open(put(*state, "c.csv", "a,k\n1,10\n1,9\n1,1\n"), .features = "x=a,y=k:codes");
    EXPECT_Y(data, 3, 2, 1, 0); /* and not as texts */
    td_data_release(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(the_first_line),
                                       TEST(the_caller_says_it),
                                       TEST(files_agree_on_names),
                                       TEST(names_are_pandas),
                                       TEST(unused_columns_are_named),
                                       TEST(decimal_commas),
                                       TEST(separators_and_ends),
                                       TEST(other_encodings_are_named),
                                       TEST(what_numbers_are_not),
                                       TEST(the_first_row_is_as_any),
                                       TEST(numbers_as_categories_are_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
