/* states.c - stateful layers: what is kept, by whom it is shared, what sets it back, and what cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "support/devices.h"
#include "support/small.h"

enum { BATCH = 6, TIME = 4, FEATURES = 3, BATCHES = 5, SAMPLES = BATCH * BATCHES, UNITS = 20 };

static float x[SAMPLES * TIME * FEATURES], y[SAMPLES];
static char heard[512];

static void hear(void *user, td_log_level level, const char *line)
{
    (void)user;
    if (level == TD_LOG_WARNING)
        snprintf(heard, sizeof heard, "%s", line);
}

static td_context *context_create(void)
{
    td_context *context = td_context_create(&(td_context_options){.log = hear});
    assert_non_null(context);
    heard[0] = '\0';
    return context;
}

static td_model *forecaster(td_context *context, td_strategy strategy)
{
    td_tensor *in = td_input(context, TD_SHAPE(TIME, FEATURES), .batch_size = BATCH);
    td_tensor *out = td_lstm(in, UNITS, .stateful = TD_YES, .return_sequences = TD_YES, .name = "first");
    td_model *model = td_model_create(
        in, td_dense(td_lstm(out, UNITS, .stateful = TD_YES, .name = "second"), 1, .name = "head"), .seed = 3);
    td_compile(model, .optimizer = td_sgd(.learning_rate = 0.1f), .loss = TD_MEAN_SQUARED_ERROR, .strategy = strategy);
    assert_string_equal(td_error(context), "");
    return model;
}

static td_data *data(int64_t samples)
{
    return td_arrays(samples, x, TD_SHAPE(TIME, FEATURES), .y = y);
}

static int fill(void **state)
{
    (void)state;
    tdi_random random = tdi_random_create(5, 0);
    for (int i = 0; i < SAMPLES * TIME * FEATURES; i++)
        x[i] = (float)tdi_random_normal(&random);
    for (int i = 0; i < SAMPLES; i++)
        y[i] = (float)tdi_random_normal(&random);
    return 0;
}

/* A batch in the middle, whose predictions tell the states before it. */
static void ask(td_model *model, float p[BATCH])
{
    assert_int_equal(td_predict_on_batch(model, BATCH, x + 2 * BATCH * TIME * FEATURES, p), TD_OK);
}

static void states_go_on_and_are_reset(void **state)
{
    (void)state;
    td_context *context = context_create();
    td_model *model = forecaster(context, (td_strategy){0});
    float fresh[BATCH], later[BATCH], again[BATCH], half[BATCH];
    ask(model, fresh);
    ask(model, later);
    assert_memory_not_equal(fresh, later, sizeof fresh);
    assert_int_equal(td_reset_states(model), TD_OK);
    ask(model, again);
    assert_memory_equal(fresh, again, sizeof fresh);
    assert_int_equal(td_reset_layer_states(model, "second"), TD_OK);
    ask(model, half);
    assert_memory_not_equal(fresh, half, sizeof fresh);
    assert_memory_not_equal(later, half, sizeof fresh);
    td_context_free(context);
}

/* Keras has one state variable for all: what training and evaluation leave is where a prediction goes on. */
static void training_and_evaluation_share_the_states(void **state)
{
    (void)state;
    float by_prediction[BATCH], by_evaluation[BATCH], by_gradients[BATCH], p[BATCH];
    td_context *context = context_create();
    td_model *model = forecaster(context, (td_strategy){0});
    assert_int_equal(td_predict_on_batch(model, BATCH, x, p), TD_OK);
    ask(model, by_prediction);
    td_reset_states(model);
    assert_int_equal(td_test_on_batch(model, BATCH, x, y, NULL), TD_OK);
    ask(model, by_evaluation);
    td_reset_states(model);
    assert_int_equal(td_compute_gradients(model, BATCH, x, y, NULL), TD_OK);
    ask(model, by_gradients);
    assert_true(relative_difference(by_evaluation, by_prediction, BATCH) < 1e-6);
    assert_true(relative_difference(by_gradients, by_prediction, BATCH) < 1e-6);
    td_context_free(context);
}

static void fit(td_model *model, int64_t batch)
{
    td_reset_states(model);
    td_fit(model, data(SAMPLES), .epochs = 2, .shuffle = TD_NO, .batch_size = batch);
    assert_string_equal(td_error(model->context), "");
}

/* Trained on one device: the weights, and predictions that go on from the last batch's states. */
static void expect_the_same(td_strategy strategy, bool separate, double tolerance)
{
    int64_t count;
    float p[BATCH], q[BATCH];
    td_context *context = context_create();
    td_model *one = forecaster(context, (td_strategy){.devices = test_devices(1)}),
             *many = forecaster(context, strategy);
    many->compiled.separate_replicas = separate;
    fit(one, BATCH);
    fit(many, 0);
    float *a = small_weights(one, &count), *b = small_weights(many, &count);
    assert_true(relative_difference(b, a, count) <= tolerance);
    ask(one, p);
    ask(many, q);
    assert_true(relative_difference(q, p, BATCH) <= tolerance);
    free(a);
    free(b);
    td_context_free(context);
}

static void each_shard_has_its_rows(void **state)
{
    (void)state;
    expect_the_same((td_strategy){.devices = test_devices(2)}, false, 3e-6);
    expect_the_same((td_strategy){.devices = test_devices(2)}, true, 3e-6);
    expect_the_same((td_strategy){.devices = test_devices(4)}, true, 3e-6);
    expect_the_same((td_strategy){.devices = test_devices(2), .shards = 4}, false, 3e-6);
}

static void files_hold_no_states(void **state)
{
    (void)state;
    const char *path = "states.keras";
    td_context *context = context_create();
    td_model *model = forecaster(context, (td_strategy){0});
    float fresh[BATCH], loaded[BATCH];
    ask(model, fresh);
    assert_int_equal(td_save(model, path), TD_OK);
    td_model *copy = td_load(context, path);
    assert_non_null(copy);
    ask(copy, loaded);
    assert_memory_equal(fresh, loaded, sizeof fresh);
    assert_int_equal(copy->architecture->inputs[0]->batch, BATCH);
    unlink(path);
    td_context_free(context);
}

static void expect_failure(td_context *context, td_status seen, td_status expected, const char *shard)
{
    assert_int_equal(seen, expected);
    if (!strstr(td_error(context), shard))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), shard);
    td_clear_error(context);
}

static void batches_of_another_size_are_refused(void **state)
{
    (void)state;
    float p[SAMPLES];
    td_context *context = context_create();
    td_model *model = forecaster(context, (td_strategy){0});
    expect_failure(
        context, td_fit(model, data(SAMPLES - 1), .shuffle = TD_NO), TD_INVALID_ARGUMENT,
        "the 29 samples of td_arrays end with a batch of 5; leave it out by drop_remainder (--drop-remainder)");
    expect_failure(context, td_fit(model, data(SAMPLES), .shuffle = TD_NO, .batch_size = 10), TD_INVALID_ARGUMENT,
                   "a batch size of 10 cannot be");
    expect_failure(context, td_fit(model, data(SAMPLES), .shuffle = TD_NO, .validation = data(7)), TD_INVALID_ARGUMENT,
                   "the 7 validation samples of td_arrays end with a batch of 1; leave it out by validation_steps");
    expect_failure(context, td_evaluate(model, data(8), NULL), TD_INVALID_ARGUMENT,
                   "the 8 samples of td_arrays end with a batch of 2; leave it out by steps");
    expect_failure(context, td_predict(model, data(8), p, SAMPLES), TD_INVALID_ARGUMENT,
                   "leave it out by steps (--steps)");
    expect_failure(context, td_evaluate(model, data(3), NULL), TD_INVALID_ARGUMENT, "has 3 samples, too few for one");
    expect_failure(context, td_predict_on_batch(model, 1, x, p), TD_INVALID_ARGUMENT,
                   "for each of 6 rows of a batch, and this one has 1");
    expect_failure(context, td_train_on_batch(model, 7, x, y, NULL), TD_INVALID_ARGUMENT, "this one has 7");
    assert_int_equal(td_fit(model, data(SAMPLES - 1), .shuffle = TD_NO, .steps_per_epoch = 4), TD_OK);
    td_context_free(context);
}

static void shuffling_is_warned_of(void **state)
{
    (void)state;
    td_context *context = context_create();
    td_model *model = forecaster(context, (td_strategy){0});
    assert_int_equal(td_fit(model, data(SAMPLES), .shuffle = TD_NO), TD_OK);
    assert_string_equal(heard, "");
    assert_int_equal(td_fit(model, data(SAMPLES)), TD_OK);
    assert_non_null(strstr(heard, "shuffle"));
    td_context_free(context);
}

static void what_cannot_be_is_said(void **state)
{
    (void)state;
    td_context *context = context_create();
    td_model *model = forecaster(context, (td_strategy){0});
    expect_failure(context, td_reset_layer_states(model, "third"), TD_NOT_FOUND, "no layer \"third\"");
    expect_failure(context, td_reset_layer_states(model, "head"), TD_INVALID_ARGUMENT, "is not stateful");
    td_tensor *open = td_input(context, TD_SHAPE(TIME, FEATURES));
    td_lstm(open, 3, .stateful = TD_YES);
    expect_failure(context, td_error_status(context), TD_INVALID_ARGUMENT, "batch_size");
    td_input(context, TD_SHAPE(TIME, FEATURES), .batch_size = -2);
    expect_failure(context, td_error_status(context), TD_INVALID_ARGUMENT, "batch_size is -2");
    td_tensor *two = td_input(context, TD_SHAPE(TIME, FEATURES), .batch_size = 2);
    td_tensor *three = td_input(context, TD_SHAPE(TIME, FEATURES), .batch_size = 3);
    td_add(TD_TENSORS(two, three));
    expect_failure(context, td_error_status(context), TD_INVALID_ARGUMENT, "batches of 2 and of 3");
    td_tensor *a = td_lstm(two, 3, .stateful = TD_YES), *b = td_lstm(three, 3, .stateful = TD_YES);
    td_model *both = td_model_create(NULL, NULL, .inputs = TD_TENSORS(two, three), .outputs = TD_TENSORS(a, b));
    assert_null(both);
    expect_failure(context, td_error_status(context), TD_INVALID_ARGUMENT, "batches of 2 and of 3");
    td_tensor *h = td_dense(td_lstm(two, 4), 3);
    td_lstm(two, 3, .initial_state = TD_TENSORS(h));
    expect_failure(context, td_error_status(context), TD_INVALID_ARGUMENT, "initial_state has 1 tensor: it takes two");
    td_lstm(two, 3, .initial_state = TD_TENSORS(h, h, h));
    expect_failure(context, td_error_status(context), TD_INVALID_ARGUMENT, "initial_state has 3 tensors: it takes two");
    td_lstm(two, 4, .initial_state = TD_TENSORS(h, h));
    expect_failure(context, td_error_status(context), TD_INVALID_ARGUMENT, "initial_state is [batch, 3]: h and c are");
    td_tensor *many = td_input(context, TD_SHAPE(TIME, FEATURES), .batch_size = 1000000000);
    td_lstm(many, 3, .stateful = TD_YES);
    expect_failure(context, td_error_status(context), TD_UNSUPPORTED, "at most");
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_go_on_and_are_reset),
        cmocka_unit_test(training_and_evaluation_share_the_states),
        cmocka_unit_test(each_shard_has_its_rows),
        cmocka_unit_test(files_hold_no_states),
        cmocka_unit_test(batches_of_another_size_are_refused),
        cmocka_unit_test(shuffling_is_warned_of),
        cmocka_unit_test(what_cannot_be_is_said),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
