/* packed.c - weights that kernels pack once for many predictions: whatever changes a weight is seen by the next one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <tandem/callbacks.h>
#include <tandem/tandem.h>

enum { STEPS = 12, FEATURES = 3, UNITS = 64, SAMPLES = 6, SAMPLE = STEPS * FEATURES };
#define WEIGHTS "packed.weights.h5"

static float x[SAMPLES * SAMPLE], y[SAMPLES];

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES * SAMPLE; i++)
        x[i] = (float)sin(0.7 * i);
    for (int i = 0; i < SAMPLES; i++)
        y[i] = (float)cos(i);
    return 0;
}

/* An LSTM whose lone row, or few rows, a kernel packs weights for. */
static td_model *forecaster(td_context *context, td_choice trainable)
{
    td_tensor *in = td_input(context, TD_SHAPE(STEPS, FEATURES));
    td_tensor *out = td_lstm(in, UNITS, .trainable = trainable, .name = "lstm");
    td_model *model = td_model_create(in, td_dense(out, 1), .seed = 3);
    td_compile(model, .optimizer = td_adam(.learning_rate = 0.05f, .use_ema = TD_YES), .loss = TD_MEAN_SQUARED_ERROR);
    assert_string_equal(td_error(context), "");
    return model;
}

static void predict(td_model *model, int64_t rows, float *to)
{
    assert_int_equal(td_predict_on_batch(model, rows, x, to), TD_OK);
}

/* Another model with the same weights has packed nothing yet. */
static void expect_todays(td_model *model)
{
    td_context *context = td_context_create(NULL);
    td_model *fresh = forecaster(context, TD_YES);
    assert_int_equal(td_save_weights(model, WEIGHTS), TD_OK);
    assert_int_equal(td_load_weights(fresh, WEIGHTS), TD_OK);
    for (int64_t rows = 1; rows <= SAMPLES; rows += SAMPLES - 1) {
        float seen[SAMPLES], expected[SAMPLES];
        predict(model, rows, seen);
        predict(fresh, rows, expected);
        assert_memory_equal(seen, expected, (size_t)rows * sizeof *seen);
    }
    td_context_free(context);
}

static td_data *data(void)
{
    return td_arrays(SAMPLES, x, TD_SHAPE(STEPS, FEATURES), .y = y);
}

/* ---- what changes weights ---- */

static void set_recurrent(td_model *model)
{
    static float weights[UNITS * 4 * UNITS];
    const size_t count = sizeof weights / sizeof *weights;
    assert_int_equal(td_get_weight(model, 1, weights, count), TD_OK);
    for (size_t i = 0; i < count; i++)
        weights[i] = -weights[i];
    assert_int_equal(td_set_weight(model, 1, weights, count), TD_OK);
}

static void train_on_batch(td_model *model)
{
    assert_int_equal(td_train_on_batch(model, SAMPLES, x, y, NULL), TD_OK);
}

static void train_in_halves(td_model *model)
{
    assert_int_equal(td_compute_gradients(model, SAMPLES, x, y, NULL), TD_OK);
    assert_int_equal(td_apply_gradients(model), TD_OK);
}

static void fit(td_model *model)
{
    assert_int_equal(td_fit(model, data(), .epochs = 2, .batch_size = 2), TD_OK);
}

static void fit_and_restore(td_model *model)
{
    td_callback *stop = td_early_stopping(.monitor = "loss", .mode = TD_MAX, .restore_best_weights = TD_YES);
    assert_int_equal(td_fit(model, data(), .epochs = 3, .batch_size = 2, .callbacks = TD_CALLBACKS(stop)), TD_OK);
}

static void take_averages(td_model *model)
{
    td_finalize_variable_values(model);
}

static void load(td_model *model)
{
    td_context *context = td_context_create(NULL);
    td_model *other = forecaster(context, TD_YES);
    assert_int_equal(td_save_weights(other, WEIGHTS), TD_OK);
    assert_int_equal(td_load_weights(model, WEIGHTS), TD_OK);
    td_context_free(context);
}

static void every_change_is_seen(void **state)
{
    (void)state;
    static void (*const changes[])(td_model *) = {
        set_recurrent, train_on_batch, train_in_halves, take_averages, fit, fit_and_restore, load};
    td_context *context = td_context_create(NULL);
    td_model *model = forecaster(context, TD_YES);
    expect_todays(model);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        float before, after;
        predict(model, 1, &before);
        changes[i](model);
        predict(model, 1, &after);
        assert_true(before != after);
        expect_todays(model);
    }
    assert_string_equal(td_error(context), "");
    td_context_free(context);
}

/* In training, weights that are frozen are packed once too. */
static void frozen_weights_are_seen(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = forecaster(context, TD_NO), *other = forecaster(context, TD_NO);
    assert_int_equal(td_train_on_batch(model, 1, x, y, NULL), TD_OK);
    assert_int_equal(td_save_weights(model, WEIGHTS), TD_OK);
    assert_int_equal(td_load_weights(other, WEIGHTS), TD_OK);
    set_recurrent(model);
    set_recurrent(other);
    for (int step = 0; step < 2; step++) {
        assert_int_equal(td_train_on_batch(model, 1, x, y, NULL), TD_OK);
        assert_int_equal(td_train_on_batch(other, 1, x, y, NULL), TD_OK);
    }
    float a, b;
    predict(model, 1, &a);
    predict(other, 1, &b);
    assert_true(a == b);
    assert_string_equal(td_error(context), "");
    td_context_free(context);
}

static int clean(void **state)
{
    (void)state;
    remove(WEIGHTS);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_is_seen),
        cmocka_unit_test(frozen_weights_are_seen),
    };
    return cmocka_run_group_tests(tests, fill, clean);
}
