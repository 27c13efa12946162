/* td_generate: what is written follows from the scores, by chance and in the shares that temperature and top_k say; the
 * window, prompts of any length, states that remember; what is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "support/devices.h"

enum { LETTERS = 3, WINDOW = 8 };

#define LETTERS_RECIPE "{\"format\":\"text\",\"window\":8,\"characters\":[97,98,233]}" /* a b é */

static td_context *context;

static int set_up(void **state)
{
    (void)state;
    context = td_context_create(NULL);
    return context ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    td_context_free(context);
    return 0;
}

static void set_weight(td_model *model, int index, const float *values, size_t count)
{
    assert_int_equal(td_set_weight(model, index, values, count), TD_OK);
}

/* After a letter always the same scores: row i of `table` is behind letter i. */
static td_model *table_model(const float table[LETTERS * LETTERS], td_choice probabilities)
{
    td_tensor *x = td_input(context, TD_SHAPE(WINDOW), .dtype = TD_INT32);
    td_tensor *y = td_embedding(x, LETTERS, LETTERS);
    td_model *model = td_model_create(x, probabilities == TD_YES ? td_softmax(y) : y, .seed = 1);
    set_weight(model, 0, table, LETTERS * LETTERS);
    assert_int_equal(td_compile(model,
                                .loss = probabilities == TD_YES ? TD_SPARSE_CATEGORICAL_CROSSENTROPY
                                                                : TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                .strategy = td_mirrored(test_devices(0))),
                     TD_OK);
    return model;
}

/* What is written; the caller frees it. */
static char *written(td_generate_args args)
{
    char *text = NULL;
    size_t size;
    args.output = open_memstream(&text, &size);
    args.recipe = args.recipe ? args.recipe : LETTERS_RECIPE;
    assert_non_null(args.output);
    td_status status = td_generate_(&args);
    fclose(args.output);
    if (status != TD_OK)
        fail_msg("%s", td_error(context));
    return text;
}

static void expect_text(td_generate_args args, const char *expected)
{
    char *text = written(args);
    assert_string_equal(text, expected);
    free(text);
}

static const float in_a_ring[] = {0, 3, 1, 0, 1, 3, 3, 0, 1}; /* a b é a ... */

static void test_the_likeliest(void **state)
{
    (void)state;
    td_model *model = table_model(in_a_ring, TD_NO);
    td_optional none = TD_SET(0);
    expect_text((td_generate_args){.model = model, .prompt = "a", .length = 5, .temperature = none}, "béabé");
    expect_text((td_generate_args){.model = model, .prompt = "é", .length = 4, .top_k = 1}, "abéa");
    expect_text((td_generate_args){.model = model, .prompt = "abéabéabéabéab", .length = 2, .temperature = none}, "éa");
    expect_text((td_generate_args){.model = model, .prompt = "é", .length = 2, .top_k = 1, .echo = TD_YES}, "éab");
    expect_text((td_generate_args){.model = model, .length = 2, .temperature = none}, "bé");
    expect_text((td_generate_args){.model = model, .prompt = "é", .echo = TD_YES}, "é");
}

/* How often each letter is written behind "a". */
static void count_letters(td_model *model, float temperature, int top_k, double shares[LETTERS])
{
    enum { LENGTH = 4000 };
    char *text = written((td_generate_args){.model = model,
                                            .prompt = "a",
                                            .length = LENGTH,
                                            .temperature = TD_SET(temperature),
                                            .top_k = top_k,
                                            .seed = 5});
    memset(shares, 0, LETTERS * sizeof *shares);
    for (const char *at = text; *at; at++)
        if (*at != '\xa9')
            shares[*at == 'a' ? 0 : *at == 'b' ? 1 : 2] += 1.0 / LENGTH;
    free(text);
}

static void expect_shares(td_model *model, float temperature, int top_k, double a, double b, double c)
{
    double shares[LETTERS];
    count_letters(model, temperature, top_k, shares);
    if (fabs(shares[0] - a) > 0.04 || fabs(shares[1] - b) > 0.04 || fabs(shares[2] - c) > 0.04)
        fail_msg("temperature %g, top_k %d: shares of %g, %g, %g", (double)temperature, top_k, shares[0], shares[1],
                 shares[2]);
}

static void test_shares_are_those_of_the_scores(void **state)
{
    (void)state;
    float table[LETTERS * LETTERS];
    for (int i = 0; i < LETTERS; i++) {
        table[i * LETTERS] = logf(0.5f) + (float)i; /* a constant changes nothing */
        table[i * LETTERS + 1] = logf(0.3f) + (float)i;
        table[i * LETTERS + 2] = logf(0.2f) + (float)i;
    }
    for (int probabilities = 0; probabilities < 2; probabilities++) {
        td_model *model = table_model(table, probabilities ? TD_YES : TD_NO);
        expect_shares(model, 1, 0, 0.5, 0.3, 0.2);
        expect_shares(model, 1, 2, 0.625, 0.375, 0);
        expect_shares(model, 0.5f, 0, 25.0 / 38, 9.0 / 38, 4.0 / 38);
        expect_shares(model, 1e6f, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3);
        expect_shares(model, 1e-3f, 0, 1, 0, 0);
    }
}

static void test_a_seed_fixes_the_text(void **state)
{
    (void)state;
    td_model *model = table_model(in_a_ring, TD_NO);
    char *first = written((td_generate_args){.model = model, .prompt = "b", .length = 60, .seed = 3});
    char *other = written((td_generate_args){.model = model, .prompt = "b", .length = 60, .seed = 4});
    expect_text((td_generate_args){.model = model, .prompt = "b", .length = 60, .seed = 3}, first);
    assert_string_not_equal(first, other);
    free(first);
    free(other);
}

/* ---- what a model remembers ---- */

enum { LONG = 40, BATCH = 2 };

static td_model *lstm_model(int64_t window, td_choice stateful)
{
    td_tensor *x = td_input(context, TD_SHAPE(window), .dtype = TD_INT32, .batch_size = stateful == TD_YES ? BATCH : 0);
    td_tensor *y = td_lstm(td_embedding(x, LETTERS, 4), 8, .return_sequences = TD_YES, .stateful = stateful);
    td_model *model = td_model_create(x, td_dense(y, LETTERS + 1), .seed = 2);
    assert_int_equal(td_compile(model, .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                .strategy = td_mirrored(test_devices(0))),
                     TD_OK);
    for (int i = 0; i < td_weight_count(model); i++) { /* so that what was seen matters */
        td_weight_info info;
        float values[512];
        td_weight(model, i, &info);
        size_t count = (size_t)(info.shape.dim[0] * (info.shape.rank > 1 ? info.shape.dim[1] : 1));
        for (size_t v = 0; v < count; v++)
            values[v] = sinf((float)(v * v % 97 + 3 * (size_t)i));
        set_weight(model, i, values, count);
    }
    return model;
}

static void test_states_are_as_good_as_a_window(void **state)
{
    (void)state;
    char *expected =
        written((td_generate_args){.model = lstm_model(LONG, TD_NO), .prompt = "abéba", .length = LONG - 5, .seed = 6});
    assert_true(strchr(expected, 'a') && strchr(expected, 'b') && strstr(expected, "é"));
    td_model *steps = lstm_model(1, TD_YES), *windows = lstm_model(LONG, TD_YES);
    for (int again = 0; again < 2; again++) {
        expect_text((td_generate_args){.model = steps, .prompt = "abéba", .length = LONG - 5, .seed = 6}, expected);
        expect_text((td_generate_args){.model = windows, .prompt = "abéba", .length = LONG - 5, .seed = 6}, expected);
    }
    free(expected);
}

/* What has left the window does not matter; what is in it does. */
static void test_the_window_holds_the_last(void **state)
{
    (void)state;
    td_model *model = lstm_model(4, TD_NO);
    char *last = written((td_generate_args){.model = model, .prompt = "abéb", .length = 30, .seed = 2});
    char *other = written((td_generate_args){.model = model, .prompt = "bbéb", .length = 30, .seed = 2});
    expect_text((td_generate_args){.model = model, .prompt = "ééababéb", .length = 30, .seed = 2}, last);
    assert_string_not_equal(last, other);
    free(last);
    free(other);
}

/* ---- what is refused ---- */

static void refuse(td_generate_args args, td_status expected, const char *pattern)
{
    char *text = NULL;
    size_t size;
    FILE *output = open_memstream(&text, &size);
    args.output = output;
    td_status status = td_generate_(&args);
    fclose(output);
    if (status != expected || !strstr(td_error(context), pattern))
        fail_msg("status %d, \"%s\"; expected %d, \"%s\"", status, td_error(context), expected, pattern);
    assert_int_equal(size, 0);
    free(text);
    td_clear_error(context);
}

static void test_prompts_that_cannot_be_read(void **state)
{
    (void)state;
    td_generate_args args = {.model = table_model(in_a_ring, TD_NO), .length = 3, .recipe = LETTERS_RECIPE};
    args.echo = TD_YES;
    args.prompt = "abé€";
    refuse(args, TD_INVALID_ARGUMENT, "prompt: character 3, U+20AC '€', is none of the 3 that the model was trained");
    args.prompt = "a\n";
    refuse(args, TD_INVALID_ARGUMENT, "character 1, U+000A, is none");
    args.prompt = "a\xe9";
    refuse(args, TD_INVALID_ARGUMENT, "prompt: character 1, byte 0xe9, is no UTF-8");
}

static void test_models_that_cannot_write(void **state)
{
    (void)state;
    td_generate_args args = {.model = table_model(in_a_ring, TD_NO), .prompt = "a", .length = 3};
    refuse(args, TD_INVALID_ARGUMENT, "knows no characters");
    args.recipe = "{\"format\":\"csv\"}";
    refuse(args, TD_INVALID_ARGUMENT, "knows no characters");
    args.recipe = "{\"format\":\"text\",\"characters\":[97,2000000]}";
    refuse(args, TD_BAD_FILE, "its character 1 cannot be: 2000000");
    args.recipe = "{\"format\":\"text\",\"characters\":[97,98,99,100]}";
    refuse(args, TD_INVALID_ARGUMENT, "scores [window, 4], were expected");
    args.recipe = LETTERS_RECIPE;
    td_tensor *x = td_input(context, TD_SHAPE(4));
    args.model = td_model_create(x, td_dense(x, 4), .seed = 1);
    refuse(args, TD_INVALID_ARGUMENT, "scores [window, 3], were expected");
    args.model = table_model(in_a_ring, TD_NO);
    td_compile(args.model, .loss = TD_MEAN_SQUARED_ERROR);
    refuse(args, TD_INVALID_ARGUMENT, "its loss is no categorical cross-entropy");
    args.model = table_model((float[]){NAN, 0, 0, 0, 0, 0, 0, 0, 0}, TD_NO);
    refuse(args, TD_NOT_FINITE, "scores of the next character are not finite");
}

static void test_arguments_that_cannot_be(void **state)
{
    (void)state;
    td_generate_args args = {.model = table_model(in_a_ring, TD_NO), .recipe = LETTERS_RECIPE, .length = -1};
    refuse(args, TD_INVALID_ARGUMENT, "length is -1 and top_k 0");
    args.length = 1;
    args.temperature = TD_SET(-1);
    refuse(args, TD_INVALID_ARGUMENT, "temperature: -1");
    args.temperature = TD_SET(NAN);
    refuse(args, TD_INVALID_ARGUMENT, "temperature: ");
    args.guard = 1;
    refuse(args, TD_INVALID_ARGUMENT, "td_generate takes three arguments");
}

static void test_a_full_disk_is_said(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    td_model *model = table_model(in_a_ring, TD_NO);
    assert_int_equal(td_generate(model, "a", 3, .output = full, .recipe = LETTERS_RECIPE), TD_IO);
    assert_non_null(strstr(td_error(context), "the text cannot be written: No space left"));
    fclose(full);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_the_likeliest),
                                       TEST(test_shares_are_those_of_the_scores),
                                       TEST(test_a_seed_fixes_the_text),
                                       TEST(test_states_are_as_good_as_a_window),
                                       TEST(test_the_window_holds_the_last),
                                       TEST(test_prompts_that_cannot_be_read),
                                       TEST(test_models_that_cannot_write),
                                       TEST(test_arguments_that_cannot_be),
                                       TEST(test_a_full_disk_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
