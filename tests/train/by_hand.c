/* by_hand.c - the two halves of a step: gradients may be read and changed between them, and together they are the whole
 * step, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/small.h"

enum { ROWS = 20 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS];

/* Three steps; what the weights are then. The context is gone. */
static float *train(td_context *context, td_model *model, bool in_halves, const float *rows, int64_t *count)
{
    for (int step = 0; step < 3; step++) {
        if (!in_halves) {
            assert_int_equal(td_train_on_batch(model, ROWS, rows, y, NULL), TD_OK);
            continue;
        }
        assert_int_equal(td_compute_gradients(model, ROWS, rows, y, NULL), TD_OK);
        assert_int_equal(td_apply_gradients(model), TD_OK);
    }
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static float *weights_after(bool in_halves, small_kind kind, td_strategy strategy, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    return train(context, small_model(context, kind, td_adam(), strategy), in_halves, x, count);
}

static void check_halves(small_kind kind, td_strategy strategy)
{
    int64_t count;
    float *whole = weights_after(false, kind, strategy, &count), *halves = weights_after(true, kind, strategy, &count);
    assert_memory_equal(halves, whole, (size_t)count * sizeof *whole);
    free(whole);
    free(halves);
}

static void halves_make_the_whole_step(void **state)
{
    (void)state;
    for (int kind = SMALL_MLP; kind <= SMALL_MIXED; kind++) {
        check_halves((small_kind)kind, (td_strategy){.devices = test_devices(1)});
        check_halves((small_kind)kind, (td_strategy){.devices = test_devices(2)});
        check_halves((small_kind)kind, (td_strategy){.devices = test_devices(2), .shards = 4});
    }
}

/* Dense layers behind a convolution, of 392 x 300, a large product, and 300 x 120: trained so, or by halves. */
static float *larger_weights_after(bool in_halves, int64_t *count)
{
    enum { SIDE = 16, CHANNELS = 2 };
    static float images[ROWS * SIDE * SIDE];
    for (int i = 0; i < ROWS * SIDE * SIDE; i++)
        images[i] = (float)sin(0.37 * i);
    td_context *context = td_context_create(NULL);
    td_tensor *in = td_input(context, TD_SHAPE(SIDE, SIDE, 1));
    td_tensor *out = td_flatten(td_conv2d(in, CHANNELS, 3, .activation = TD_TANH));
    out = td_dense(td_dense(td_dense(out, 300, .activation = TD_TANH), 120, .activation = TD_RELU), SMALL_CLASSES);
    td_model *model = td_model_create(in, out, .seed = 3);
    td_compile(model, .optimizer = td_adam(), .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS);
    return train(context, model, in_halves, images, count);
}

static void halves_of_larger_layers_too(void **state)
{
    (void)state;
    int64_t count;
    float *whole = larger_weights_after(false, &count), *halves = larger_weights_after(true, &count);
    assert_memory_equal(halves, whole, (size_t)count * sizeof *whole);
    free(whole);
    free(halves);
}

static void what_is_not_finite_is_in_the_logs(void **state)
{
    (void)state;
    float spoilt[ROWS * SMALL_SAMPLE], out[ROWS * SMALL_CLASSES];
    td_logs logs;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){.devices = test_devices(1)});
    memcpy(spoilt, x, sizeof x);
    spoilt[3] = NAN;
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, &logs), TD_OK);
    assert_int_equal(td_train_on_batch(model, ROWS, x, y, &logs), TD_OK);
    assert_true(isfinite(logs.entry[0].value));
    assert_int_equal(td_train_on_batch(model, ROWS, spoilt, y, &logs), TD_NOT_FINITE);
    assert_true(isnan(logs.entry[0].value));
    assert_non_null(strstr(td_error(context), "not a finite number at step 2;"));
    assert_int_equal(td_test_on_batch(model, ROWS, spoilt, y, &logs), TD_OK);
    assert_true(isnan(logs.entry[0].value));
    assert_int_equal(td_predict_on_batch(model, ROWS, x, NULL), TD_INVALID_ARGUMENT);
    assert_int_equal(td_predict_on_batch_lists(model, ROWS, NULL, (float *[]){out}), TD_INVALID_ARGUMENT);
    td_context_free(context);
}

/* SGD with rate 1 takes the gradient from the weight: as it is, or as it was changed. */
static void gradients_are_what_is_applied(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model =
        small_model(context, SMALL_CNN, td_sgd(.learning_rate = 1.0f), (td_strategy){.devices = test_devices(1)});
    int64_t count;
    float *before = small_weights(model, &count);
    assert_int_equal(td_compute_gradients(model, ROWS, x, y, NULL), TD_OK);
    int last = td_weight_count(model) - 1;
    float *first = td_gradient(model, 0), *bias = td_gradient(model, last), expected = before[0] - first[0];
    assert_true(first[0] != 0);
    for (int i = 0; i < SMALL_CLASSES; i++)
        bias[i] = 0.5f;
    assert_int_equal(td_apply_gradients(model), TD_OK);
    float *after = small_weights(model, &count);
    assert_true(after[0] == expected);
    for (int64_t i = count - SMALL_CLASSES; i < count; i++)
        assert_true(after[i] == before[i] - 0.5f);
    free(before);
    free(after);
    td_context_free(context);
}

static void what_has_no_gradient_gives_null(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_NORM, td_adam(), (td_strategy){.devices = test_devices(1)});
    assert_null(td_gradient(model, 0));
    assert_int_equal(td_apply_gradients(model), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    assert_int_equal(td_compute_gradients(model, ROWS, x, y, NULL), TD_OK);
    assert_null(td_gradient(model, -1));
    assert_null(td_gradient(model, td_weight_count(model)));
    for (int i = 0; i < td_weight_count(model); i++) {
        td_weight_info info;
        assert_int_equal(td_weight(model, i, &info), TD_OK);
        assert_int_equal(td_gradient(model, i) != NULL, info.trainable != 0);
    }
    td_context_free(context);
}

int main(void)
{
    small_data(ROWS, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_make_the_whole_step),      cmocka_unit_test(halves_of_larger_layers_too),
        cmocka_unit_test(gradients_are_what_is_applied),   cmocka_unit_test(what_is_not_finite_is_in_the_logs),
        cmocka_unit_test(what_has_no_gradient_gives_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
