/* An epoch as one run: the same numbers however its rows come and however many steps a run has; it can be stopped in
 * its midst. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/stages.h>

#include "support/devices.h"
#include "support/small.h"

enum { SAMPLES = 203, BATCH = 16 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];
static uint8_t bytes[SAMPLES * SMALL_SAMPLE];
static double doubles[SAMPLES * SMALL_SAMPLE];
static float halves[SAMPLES * SMALL_SAMPLE];

static td_data *data_of(td_dtype dtype)
{
    td_shape shape = TD_SHAPE(SMALL_SAMPLE);
    const void *values = dtype == TD_UINT8 ? (const void *)bytes : dtype == TD_FLOAT64 ? (const void *)doubles : halves;
    float scale = dtype == TD_UINT8 ? 0.5f : 1;
    return td_arrays(SAMPLES, values, shape, .x_dtype = dtype, .y = y, .scale = scale);
}

static float *trained(td_dtype dtype, td_choice shuffle, int64_t steps_per_execution, const char *devices,
                      int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){.devices = devices, .shards = 2});
    td_compile(model, .steps_per_execution = steps_per_execution);
    td_epoch last;
    assert_int_equal(
        td_fit(model, data_of(dtype), .epochs = 2, .batch_size = BATCH, .shuffle = shuffle, .seed = 3, .last = &last),
        TD_OK);
    assert_int_equal(last.steps, (SAMPLES + BATCH - 1) / BATCH);
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

/* Read in place, gathered as floats, converted from bytes, converted from doubles: the values are the same. */
static void rows_are_the_same_however_they_come(void **state)
{
    (void)state;
    const char *const devices[] = {test_devices(1), test_devices(2)};
    int64_t count;
    for (int d = 0; d < 2; d++)
        for (td_choice shuffle = TD_YES; shuffle <= TD_NO; shuffle++) {
            float *first = trained(TD_FLOAT32, shuffle, 0, devices[d], &count);
            small_expect_same(first, trained(TD_UINT8, shuffle, 0, devices[d], &count), count);
            small_expect_same(first, trained(TD_FLOAT64, shuffle, 0, devices[d], &count), count);
            free(first);
        }
}

static void steps_per_execution_changes_no_bit(void **state)
{
    (void)state;
    int64_t count;
    float *first = trained(TD_UINT8, TD_YES, 0, test_devices(1), &count);
    for (int64_t steps = 1; steps < 20; steps += 6)
        small_expect_same(first, trained(TD_UINT8, TD_YES, steps, test_devices(1), &count), count);
    free(first);
}

static void expect_explained(td_model *model, const char *what)
{
    char *text = small_explained(model, BATCH);
    assert_non_null(strstr(text, what));
    free(text);
}

static void steps_per_execution_can_be_automatic_again(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    assert_int_equal(td_compile(model, .steps_per_execution = -2), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "steps_per_execution: -2"));
    assert_int_equal(td_compile(model, .steps_per_execution = 7), TD_OK);
    assert_int_equal(td_compile(model), TD_OK);
    expect_explained(model, "an epoch: 7 steps a run");
    assert_int_equal(td_compile(model, .steps_per_execution = TD_AUTOMATIC_STEPS), TD_OK);
    expect_explained(model, "an epoch: one run of all its steps");
    td_context_free(context);
}

/* One epoch is one run, which would take minutes: the request ends it after a whole step. */
static void a_run_can_be_stopped(void **state)
{
    (void)state;
    enum { MANY = 1 << 21 };
    float *many = calloc(MANY, sizeof *many);
    td_context *context = td_context_create(NULL);
    td_tensor *in = td_input(context, TD_SHAPE(1));
    td_model *model = td_model_create(in, td_dense(td_dense(in, 64), 1), .seed = 1);
    td_compile(model, .optimizer = td_sgd(), .loss = TD_MEAN_SQUARED_ERROR);
    assert_non_null(many);
    td_data *data = td_arrays(MANY, many, TD_SHAPE(1), .y = many);
    assert_int_equal(td_fit(model, data, .batch_size = 1, .epochs = 1000, .callbacks = TD_CALLBACKS(small_stop_soon())),
                     TD_STOPPED);
    assert_int_equal(td_failed(context), 0);
    assert_int_equal(td_train_on_batch(model, 1, many, many, NULL), TD_OK);
    td_context_free(context);
    free(many);
}

/* A class number that the model does not have ends the run before its step; the steps before it are done. */
static void a_bad_row_ends_the_run_before_its_step(void **state)
{
    (void)state;
    float labels[SAMPLES];
    memcpy(labels, y, sizeof labels);
    labels[5 * BATCH + 2] = SMALL_CLASSES;
    for (int threads = 0; threads < 2; threads++) {
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, SMALL_CNN, td_adam(),
                                      (td_strategy){.devices = threads ? test_devices(3) : test_devices(1)});
        td_data *data = td_arrays(SAMPLES, halves, TD_SHAPE(SMALL_SAMPLE), .y = labels);
        assert_int_equal(td_fit(model, data, .batch_size = BATCH, .shuffle = TD_NO), TD_INVALID_ARGUMENT);
        assert_non_null(strstr(td_error(context), "step 5, row 2 (sample 82 of td_arrays): class number"));
        assert_int_equal(model->state->iteration, 5);
        td_context_free(context);
    }
}

/* The same for an index that the embedding has no row for, and for a number that is none. */
static void an_index_is_checked(void **state)
{
    (void)state;
    static const struct {
        float wrong;
        td_status status;
        const char *sentence;
    } cases[] = {{7, TD_INVALID_ARGUMENT, "step 1, row 1 (sample 5 of td_arrays): index 7 for input"},
                 {-1, TD_INVALID_ARGUMENT, "the model's embedding has rows 0 to 6"},
                 {1.5f, TD_BAD_FILE, "sample 5 is 1.5, which is not an index"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float tokens[8 * 3] = {0, 6, 1}, targets[8] = {0};
        td_context *context = td_context_create(NULL);
        td_tensor *in = td_input(context, TD_SHAPE(3), .dtype = i % 2 ? TD_FLOAT32 : TD_INT32);
        td_tensor *out = td_dense(td_flatten(td_embedding(in, 7, 4)), 1);
        td_model *model = td_model_create(in, out, .seed = 1);
        td_compile(model, .optimizer = td_sgd(), .loss = TD_MEAN_SQUARED_ERROR);
        tokens[5 * 3 + 2] = cases[i].wrong;
        td_data *data = td_arrays(8, tokens, TD_SHAPE(3), .y = targets);
        assert_int_equal(td_fit(model, data, .batch_size = 4, .shuffle = TD_NO), cases[i].status);
        assert_non_null(strstr(td_error(context), cases[i].sentence));
        assert_int_equal(model->state->iteration, 1);
        td_context_free(context);
    }
}

/* Behind stages too it is the sample's number in the data that it comes from. */
static void a_bad_sample_is_found_below_stages(void **state)
{
    (void)state;
    static uint8_t some[SAMPLES * SMALL_SAMPLE], classes[SAMPLES];
    static float numbers[SAMPLES * SMALL_SAMPLE];
    for (int kind = 0; kind < 4; kind++) {
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){.devices = test_devices(1)});
        td_shape shape = TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
        memset(classes, 0, sizeof classes);
        classes[77] = kind < 3 ? SMALL_CLASSES : 0;
        numbers[77 * SMALL_SAMPLE] = NAN;
        td_data *bytes_of = td_arrays(SAMPLES, some, shape, .x_dtype = TD_UINT8, .y = classes, .y_dtype = TD_UINT8);
        td_data *floats = td_arrays(SAMPLES, numbers, shape, .y = classes, .y_dtype = TD_UINT8);
        td_data *data = kind == 0   ? td_shard(td_repeat(bytes_of, 2), 1, 2)
                        : kind == 1 ? td_augment(td_cache(td_interleave(TD_DATA_LIST(bytes_of))), .flip = TD_FLIP_BOTH)
                        : kind == 2 ? td_resize(td_shard(bytes_of, 2, 3), SMALL_HEIGHT, SMALL_WIDTH)
                                    : td_shard(floats, 77 % 5, 5);
        td_fit(model, data, .batch_size = BATCH);
        const char *words = kind < 3 ? "(sample 77 of td_arrays): class number 4" : "sample 77 of td_arrays, counted";
        if (!strstr(td_error(context), words))
            fail_msg("\"%s\" lacks \"%s\"", td_error(context), words);
        td_data_release(kind < 3 ? floats : bytes_of);
        td_context_free(context);
    }
}

/* A shuffled batch is no help to who looks for the sample. */
static void what_is_not_finite_is_named(void **state)
{
    (void)state;
    static float some[SAMPLES * SMALL_SAMPLE];
    memcpy(some, halves, sizeof some);
    for (int bad = 1; bad >= 0; bad--) {
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, SMALL_MLP, td_sgd(.learning_rate = bad ? 0.01f : 1e30f),
                                      (td_strategy){.devices = test_devices(1)});
        some[77 * SMALL_SAMPLE + 3] = bad ? NAN : 0;
        td_data *data = td_arrays(SAMPLES, some, TD_SHAPE(SMALL_SAMPLE), .y = y);
        assert_int_equal(td_fit(model, data, .batch_size = BATCH, .epochs = 3), TD_NOT_FINITE);
        const char *words =
            bad ? ": sample 77 of td_arrays, counted from 0, holds NaN, infinity or a number beyond float32 in x"
                : "though the data of its batch are; lower the learning rate";
        if (!strstr(td_error(context), words))
            fail_msg("\"%s\" lacks \"%s\"", td_error(context), words);
        td_context_free(context);
    }
}

int main(void)
{
    small_data(SAMPLES, x, y);
    for (int i = 0; i < SAMPLES * SMALL_SAMPLE; i++) {
        bytes[i] = (uint8_t)(x[i] > 0 ? x[i] * 4 : 0);
        doubles[i] = bytes[i] / 2.0;
        halves[i] = bytes[i] / 2.0f;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_same_however_they_come),
        cmocka_unit_test(steps_per_execution_changes_no_bit),
        cmocka_unit_test(steps_per_execution_can_be_automatic_again),
        cmocka_unit_test(a_run_can_be_stopped),
        cmocka_unit_test(a_bad_row_ends_the_run_before_its_step),
        cmocka_unit_test(what_is_not_finite_is_named),
        cmocka_unit_test(a_bad_sample_is_found_below_stages),
        cmocka_unit_test(an_index_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
