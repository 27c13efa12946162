/* The interface used wrongly: what a failed call gave is passed on, sizes that cannot be, calls in callbacks that must
 * wait. Each is refused, most with a sentence; none crashes. */
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

#include "files/scratch.h"
#include "support/devices.h"
#include "support/small.h"

enum { SAMPLES = 32 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES], out[SAMPLES * SMALL_CLASSES];
static td_context *context;
static td_model *model;

static int set_up(void **state)
{
    (void)state;
    small_data(SAMPLES, x, y);
    context = td_context_create(NULL);
    model = small_model(context, SMALL_MLP, td_adam(), td_mirrored(test_devices(1)));
    return model ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    td_context_free(context);
    return 0;
}

static td_data *samples(void)
{
    return td_arrays(SAMPLES, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
}

static void expect(td_status status, const char *words)
{
    assert_int_equal(status, TD_INVALID_ARGUMENT);
    if (!strstr(td_error(context), words))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), words);
    td_clear_error(context);
}

static void expect_trained_as_before(td_loss loss, float rate)
{
    td_logs logs;
    assert_int_equal(td_train_on_batch(model, SAMPLES, x, y, &logs), TD_OK);
    assert_int_equal(logs.count, 2);
    assert_int_equal(td_model_loss(model), loss);
    assert_int_equal(td_model_optimizer(model).kind, TD_OPTIMIZER_ADAM);
    assert_float_equal(td_model_optimizer(model).learning_rate, rate, 0);
}

#define REFUSED(words, ...) (expect(td_compile(model, __VA_ARGS__), words), expect_trained_as_before(loss, rate))

/* Whatever else was asked for in the same call. */
static void a_refused_compile_changes_nothing(void **state)
{
    (void)state;
    td_loss loss = td_model_loss(model);
    float rate = td_model_optimizer(model).learning_rate;
    td_optimizer other = td_sgd(.learning_rate = 7);
    REFUSED("gpu:0", .strategy = td_mirrored("gpu:0"), .optimizer = other);
    REFUSED("cpu:0", .strategy = td_mirrored("cpu:0,cpu:0"), .optimizer = other);
    REFUSED("shards", .strategy = td_mirrored("cpu:0", .shards = -1), .loss = TD_MEAN_SQUARED_ERROR);
    REFUSED("precision", .precision = 7, .optimizer = other);
    REFUSED("rematerialize", .rematerialize = 9, .optimizer = other);
    REFUSED("steps_per_execution", .steps_per_execution = -2, .optimizer = other);
    REFUSED("loss", .loss = 99, .optimizer = other, .metrics = TD_METRICS(TD_ACCURACY, TD_ACCURACY));
    REFUSED("learning_rate", .optimizer = td_sgd(.learning_rate = -1), .metrics = TD_METRICS(TD_ACCURACY, TD_ACCURACY));
    REFUSED("num_thresholds", .metrics = TD_METRICS(td_metric_auc(.num_thresholds = -1)), .optimizer = other);
    REFUSED("delta", .delta = 1, .optimizer = other);
}

/* A program that goes straight on and asks at its end whether anything failed. */
static void no_model_is_passed_on(void **state)
{
    (void)state;
    const float *const inputs[] = {x};
    float *const outputs[] = {out};
    td_weight_info info;
    td_shape shape;
    td_rate_test *test;
    td_model *none = td_load(context, scratch_path("none.keras"));
    char *sentence = strdup(td_error(context));
    assert_null(none);
    const td_status refused[] = {
        td_compile(none, .loss = TD_MEAN_SQUARED_ERROR),
        td_fit(none, samples()),
        td_evaluate(none, samples(), NULL),
        td_predict(none, samples(), out, SAMPLES * SMALL_CLASSES),
        td_generate(none, "a", 3, .output = stdout),
        td_find_learning_rate(none, samples(), &test),
        td_train_on_batch(none, 1, x, y, NULL),
        td_test_on_batch(none, 1, x, y, NULL),
        td_predict_on_batch(none, 1, x, out),
        td_compute_gradients(none, 1, x, y, NULL),
        td_train_on_batch_lists(none, 1, inputs, inputs, NULL),
        td_test_on_batch_lists(none, 1, inputs, inputs, NULL),
        td_predict_on_batch_lists(none, 1, inputs, outputs),
        td_compute_gradients_lists(none, 1, inputs, inputs, NULL),
        td_apply_gradients(none),
        td_save(none, scratch_path("never.keras")),
        td_weight(none, 0, &info),
        td_get_weight(none, 0, out, 1),
        td_set_weight(none, 0, x, 1),
        td_set_learning_rate(none, 1),
        td_reset_states(none),
        td_reset_layer_states(none, "lstm"),
        td_summary(none, stdout),
        td_explain(none, stdout),
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i] != TD_INVALID_ARGUMENT)
            fail_msg("call %zu gave %s", i, td_status_name(refused[i]));
    assert_int_equal(td_weight_count(none), 0);
    assert_int_equal(td_parameter_count(none, NULL), 0);
    assert_int_equal(td_input_shape(none, 0, &shape), TD_NOT_FOUND);
    assert_int_equal(td_output_shape(none, 0, &shape), TD_NOT_FOUND);
    assert_int_equal(td_model_optimizer(none).kind, TD_OPTIMIZER_NONE);
    assert_int_equal(td_model_loss(none), TD_LOSS_NONE);
    assert_true(td_learning_rate(none) == 0);
    assert_null(td_model_recipe(none));
    assert_null(td_gradient(none, 0));
    td_finalize_variable_values(none);
    td_model_free(none);
    assert_string_equal(td_error(context), sentence);
    free(sentence);
}

static void no_context_is_passed_on(void **state)
{
    (void)state;
    td_context *none = NULL;
    assert_int_equal(td_failed(none), 1);
    assert_int_equal(td_error_status(none), TD_NO_MEMORY);
    assert_non_null(strstr(td_error(none), "no context"));
    td_clear_error(none);
    td_request_stop(none);
    assert_null(td_input(none, TD_SHAPE(4)));
    assert_null(td_load(none, "a.keras"));
    assert_null(td_new(none, "mlp", 1));
    assert_null(td_new_lstm(none, 0, 0, 0, 1));
    assert_null(td_new_resnet20(none, TD_NO, 1));
    assert_int_equal(td_doctor(none, stdout), TD_INVALID_ARGUMENT);
    assert_int_equal(td_trace_begin(none, 0), TD_INVALID_ARGUMENT);
    assert_int_equal(td_trace_end(none, "a.json"), TD_INVALID_ARGUMENT);
    assert_int_equal(td_save_npy(none, "a.npy", x, &TD_SHAPE(1)), TD_INVALID_ARGUMENT);
    assert_int_equal(td_save_npz(none, "a.npz", 0, NULL), TD_INVALID_ARGUMENT);
    td_context_free(none);
}

static void no_data_is_passed_on(void **state)
{
    (void)state;
    td_shape shape;
    td_rate_test *test;
    assert_int_equal(td_data_samples(NULL), -1);
    assert_int_equal(td_data_skipped(NULL, NULL), 0);
    assert_int_equal(td_data_x_shape(NULL, &shape), TD_NOT_FOUND);
    assert_int_equal(td_data_y_shape(NULL, NULL), TD_NOT_FOUND);
    assert_null(td_data_recipe(NULL));
    assert_null(td_data_retain(NULL));
    assert_non_null(td_data_error(NULL));
    assert_int_equal(td_recipe_class(NULL, 0, NULL, 8), 0);
    expect(td_data_read(context, NULL, NULL, 1, out, NULL), "no data was given");
    expect(td_fit(model, NULL), "no data was given");
    expect(td_find_learning_rate(model, NULL, &test), "no data was given");
    assert_int_equal(td_confusion_classes(NULL), 0);
    assert_int_equal(td_confusion_total(NULL), 0);
    assert_int_equal(td_confusion_count(NULL, 0, 0), 0);
    assert_int_equal(td_confusion_scores(NULL, 0).support, 0);
    assert_int_equal(td_confusion_mean(NULL).support, 0);
    assert_true(td_confusion_accuracy(NULL) == 0);
    expect(td_confusion_save(context, scratch_path("never.csv"), NULL), "no confusion matrix");
    assert_int_equal(td_rate_test_count(NULL), 0);
    assert_int_equal(td_rate_test_best(NULL), -1);
    assert_int_equal(td_rate_test_steepest(NULL), -1);
    assert_true(td_rate_test_suggestion(NULL) == 0 && td_rate_test_first_loss(NULL) == 0);
}

static void what_is_needed_is_missing(void **state)
{
    (void)state;
    expect(td_save(model, NULL), "the path is NULL");
    expect(td_save(model, scratch_path("model.h5")), "model.h5.keras\"");
    assert_null(td_load(context, NULL));
    expect(td_error_status(context), "the path is NULL");
    assert_null(td_new(context, NULL, 1));
    expect(td_error_status(context), "no architecture");
    assert_null(td_new_lstm(context, -1, 0, 0, 1));
    expect(td_error_status(context), "-1 steps");
    expect(td_get_weight(model, 0, NULL, SMALL_SAMPLE * 70), "values is NULL");
    expect(td_set_weight(model, 0, NULL, SMALL_SAMPLE * 70), "values is NULL");
    expect(td_predict_on_batch(model, 1, x, NULL), "a place for every output");
    expect(td_reset_layer_states(model, NULL), "layer is NULL");
    expect(td_summary(model, NULL), "a FILE to write to");
    expect(td_explain(model, NULL), "a FILE to write to");
    expect(td_doctor(context, NULL), "a FILE to write to");
    assert_int_equal(td_trace_begin(context, 0), TD_OK);
    expect(td_trace_end(context, NULL), "the path is NULL");
    assert_int_equal(td_weight(model, 0, NULL), TD_OK);
    assert_int_equal(td_input_shape(model, 0, NULL), TD_OK);
}

static void sizes_that_cannot_be(void **state)
{
    (void)state;
    expect(td_fit(model, samples(), .batch_size = INT64_MAX), "batch_size: 9223372036854775807; at most");
    expect(td_evaluate(model, samples(), NULL, .batch_size = INT64_MAX), "batch_size: 9223372036854775807; at most");
    expect(td_predict(model, samples(), out, SAMPLES * SMALL_CLASSES, .batch_size = INT64_MAX), "at most");
    expect(td_explain(model, stdout, .batch_size = INT64_MAX), "batch_size: 9223372036854775807; at most");
    expect(td_train_on_batch(model, INT64_MAX, x, y, NULL), "rows: 9223372036854775807; at most 2147483647");
    expect(td_trace_begin(context, INT64_MAX), "1 to 2147483647");
}

static td_status any(void *user, int64_t sample, void *const *to_x, void *const *to_y)
{
    (void)user, (void)sample, (void)to_x, (void)to_y;
    return TD_OK;
}

static void numbers_that_cannot_be(void **state)
{
    (void)state;
    td_data *many = td_generator(TD_SHAPE(4), .read = any, .samples = INT64_MAX);
    assert_non_null(strstr(td_data_error(many), "samples is 9223372036854775807"));
    td_data_release(many);
    td_tensor *in = td_input(context, TD_SHAPE(4));
    td_dense(in, 2, .kernel_regularizer = {.l2 = NAN});
    expect(td_error_status(context), "l1 0 and l2 nan");
    td_dense(in, 2, .bias_regularizer = {.l1 = -1});
    expect(td_error_status(context), "the regularizer of its bias");
    td_conv2d(td_input(context, TD_SHAPE(5, 5, 2)), 3, 3, .padding = TD_SAME, .dilation = TD_SIZE(1, 1000000000));
    assert_int_equal(td_error_status(context), TD_UNSUPPORTED);
    assert_non_null(strstr(td_error(context), "reaches over 2000000001 pixels"));
    td_clear_error(context);
    td_data *halves = td_arrays(4, x, TD_SHAPE(1), .x_dtype = TD_BFLOAT16);
    assert_non_null(strstr(td_data_error(halves), "x_dtype"));
    td_data_release(halves);
    const td_shape shapes[] = {{77, {1}}, {-1, {1}}, {1, {-4}}, {2, {INT64_MAX, INT64_MAX}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        expect(td_save_npy(context, scratch_path("never.npy"), x, &shapes[i]), "cannot be written");
    expect(td_save_npy(context, scratch_path("never.npy"), x, NULL), "cannot be written");
    expect(td_save_npy(context, scratch_path("never.npy"), NULL, &TD_SHAPE(4)), "values are NULL");
    const td_named_array twice[] = {{"a", x, TD_SHAPE(4)}, {"a", x, TD_SHAPE(4)}}, nameless = {"", x, TD_SHAPE(4)};
    expect(td_save_npz(context, scratch_path("never.npz"), 2, twice), "arrays 0 and 1 are both named \"a\"");
    expect(td_save_npz(context, scratch_path("never.npz"), 1, &nameless), "array 0 has no name");
    expect(td_save_npz(context, scratch_path("never.npz"), -1, twice), "-1 arrays");
    assert_int_equal(scratch_count(), 0);
}

static void callbacks_that_cannot_be(void **state)
{
    (void)state;
    td_callback *twice = td_early_stopping(.monitor = "loss");
    expect(td_fit(model, samples(), .callbacks = TD_CALLBACKS(twice, twice)), "number 1 was given before it");
    expect(td_fit(model, samples(), .callbacks = TD_CALLBACKS(td_callback_create(NULL, NULL))), "functions is NULL");
    expect(td_fit(model, samples(), .callbacks = TD_CALLBACKS(td_early_stopping(.min_delta = NAN))), "min_delta");
    expect(td_fit(model, samples(), .callbacks = TD_CALLBACKS(td_early_stopping(.mode = (td_monitor_mode)7))), "mode");
    expect(td_fit(model, samples(), .callbacks = TD_CALLBACKS(td_csv_logger("a.csv", .separator = ""))), "separator");
}

/* ---- calls from a callback ---- */

static td_status called(td_training *training, int what)
{
    td_model *of = td_training_model(training);
    switch (what) {
    case 0:
        return td_fit(of, samples());
    case 1:
        return td_compile(of, .optimizer = td_sgd());
    case 2:
        return td_train_on_batch(of, 1, x, y, NULL);
    case 3:
        return td_compute_gradients(of, 1, x, y, NULL);
    case 4:
        td_model_free(of);
        return td_error_status(context);
    case 5:
        return td_evaluate(of, samples(), NULL);
    case 6:
        return td_predict(of, samples(), out, SAMPLES * SMALL_CLASSES);
    default:
        return td_save(of, scratch_path("kept.keras"));
    }
}

enum { REFUSED = 5, ALL = 8 };

static td_status call(void *user, td_training *training, const td_logs *logs)
{
    (void)logs;
    td_status status = called(training, *(const int *)user);
    if (*(const int *)user < REFUSED)
        expect(status, "is being trained, and this is one of its callbacks");
    else
        assert_int_equal(status, TD_OK);
    return TD_OK;
}

static float *trained(int what, int64_t *count)
{
    td_model *fresh = small_model(context, SMALL_MLP, td_adam(), td_mirrored(test_devices(1)));
    td_callback *callback = td_callback_create(&(td_callback_functions){.batch_end = call}, &what);
    assert_int_equal(
        td_fit(fresh, samples(), .batch_size = 8, .epochs = 2, .callbacks = TD_CALLBACKS(what < ALL ? callback : NULL)),
        TD_OK);
    if (what == ALL)
        td_callback_free(callback);
    return small_weights(fresh, count);
}

/* Neither what is refused nor what is allowed changes the training. */
static void callbacks_call(void **state)
{
    (void)state;
    int64_t count;
    float *plain = trained(ALL, &count);
    for (int what = 0; what < ALL; what++) {
        float *weights = trained(what, &count);
        assert_memory_equal(weights, plain, (size_t)count * sizeof *plain);
        free(weights);
    }
    free(plain);
    assert_string_equal(td_error(context), "");
}

static td_status stop_and_evaluate(void *user, td_training *training, const td_logs *logs)
{
    (void)user, (void)logs;
    td_request_stop(context);
    return td_evaluate(td_training_model(training), samples(), NULL) == TD_STOPPED ? TD_OK : TD_INTERNAL;
}

/* An evaluation in a callback does not take the request for itself. */
static void a_stop_is_not_lost(void **state)
{
    (void)state;
    td_callback *callback = td_callback_create(&(td_callback_functions){.batch_end = stop_and_evaluate}, NULL);
    assert_int_equal(td_fit(model, samples(), .epochs = 1000, .callbacks = TD_CALLBACKS(callback)), TD_STOPPED);
    assert_int_equal(td_evaluate(model, samples(), NULL), TD_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_refused_compile_changes_nothing),
        TEST(no_model_is_passed_on),
        TEST(no_context_is_passed_on),
        TEST(no_data_is_passed_on),
        TEST(what_is_needed_is_missing),
        TEST(sizes_that_cannot_be),
        TEST(numbers_that_cannot_be),
        TEST(callbacks_that_cannot_be),
        TEST(callbacks_call),
        TEST(a_stop_is_not_lost),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
