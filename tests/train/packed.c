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

enum { SAMPLES = 6, SAMPLE = 12 * 12 * 3, UNITS = 64, MOST_WEIGHT = 9 * 32 * 64 };
#define WEIGHTS "packed.weights.h5"

/* An LSTM of which a lone row, or a few rows, and convolutions of which a lone image have their weights packed. */
typedef struct net {
    td_shape sample;
    int weight; /* one that is packed */
    td_tensor *(*layers)(td_tensor *in, td_choice trainable);
} net;

static td_tensor *forecast(td_tensor *in, td_choice trainable)
{
    return td_dense(td_lstm(in, UNITS, .trainable = trainable), 1);
}

static td_tensor *see(td_tensor *in, td_choice trainable)
{
    td_tensor *out = td_conv2d(in, 32, 3, .activation = TD_RELU, .trainable = trainable);
    out = td_conv2d(out, 64, 3, .activation = TD_RELU, .trainable = trainable);
    out = td_conv2d(out, 64, 1, .activation = TD_RELU, .trainable = trainable);
    return td_dense(td_flatten(out), 1);
}

static const net nets[] = {{{.rank = 2, .dim = {36, 12}}, 1, forecast}, {{.rank = 3, .dim = {12, 12, 3}}, 2, see}};
static const net *now;

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

static td_model *make(td_context *context, td_choice trainable)
{
    td_tensor *in = td_input(context, now->sample);
    td_model *model = td_model_create(in, now->layers(in, trainable), .seed = 3);
    td_compile(model, .optimizer = td_adam(.learning_rate = 0.01f, .use_ema = TD_YES), .loss = TD_MEAN_SQUARED_ERROR);
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
    td_model *fresh = make(context, TD_YES);
    assert_int_equal(td_save_weights(model, WEIGHTS), TD_OK);
    assert_int_equal(td_load_weights(fresh, WEIGHTS), TD_OK);
    float alone = 0, seen[SAMPLES], expected[SAMPLES];
    for (int64_t rows = 1; rows <= SAMPLES; rows += SAMPLES - 1) {
        predict(model, rows, seen);
        predict(fresh, rows, expected);
        assert_memory_equal(seen, expected, (size_t)rows * sizeof *seen);
        alone = rows == 1 ? seen[0] : alone;
    }
    assert_true(fabs((double)(alone - seen[0])) < 1e-5 * fmax(1, fabs((double)alone)));
    td_context_free(context);
}

static td_data *data(void)
{
    return td_arrays(SAMPLES, x, now->sample, .y = y);
}

/* ---- what changes weights ---- */

static void set_weight(td_model *model)
{
    static float weights[MOST_WEIGHT];
    td_weight_info info;
    assert_int_equal(td_weight(model, now->weight, &info), TD_OK);
    size_t count = 1;
    for (int i = 0; i < info.shape.rank; i++)
        count *= (size_t)info.shape.dim[i];
    assert_true(count <= sizeof weights / sizeof *weights);
    assert_int_equal(td_get_weight(model, now->weight, weights, count), TD_OK);
    for (size_t i = 0; i < count; i++)
        weights[i] = -weights[i];
    assert_int_equal(td_set_weight(model, now->weight, weights, count), TD_OK);
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
    td_model *other = make(context, TD_YES);
    assert_int_equal(td_save_weights(other, WEIGHTS), TD_OK);
    assert_int_equal(td_load_weights(model, WEIGHTS), TD_OK);
    td_context_free(context);
}

static void expect_changes_seen(void)
{
    static void (*const changes[])(td_model *) = {
        set_weight, train_on_batch, train_in_halves, take_averages, fit, fit_and_restore, load};
    td_context *context = td_context_create(NULL);
    td_model *model = make(context, TD_YES);
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

static void every_change_is_seen(void **state)
{
    (void)state;
    for (now = nets; now < nets + sizeof nets / sizeof *nets; now++)
        expect_changes_seen();
}

/* In training, weights that are frozen are packed once too. */
static void frozen_weights_are_seen(void **state)
{
    (void)state;
    now = nets;
    td_context *context = td_context_create(NULL);
    td_model *model = make(context, TD_NO), *other = make(context, TD_NO);
    assert_int_equal(td_train_on_batch(model, 1, x, y, NULL), TD_OK);
    assert_int_equal(td_save_weights(model, WEIGHTS), TD_OK);
    assert_int_equal(td_load_weights(other, WEIGHTS), TD_OK);
    set_weight(model);
    set_weight(other);
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
