/* few_rows.c - a model whose first steps have fewer rows than cores is trained by threads that share each of them;
 * later steps of many rows, and predictions of many, are made by rows all the same, with the same numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <tandem/tandem.h>

#include "base/thread.h"
#include "runtime/runtime.h"

enum { SIDE = 32, CHANNELS = 32, SAMPLE = SIDE * SIDE * 3, MANY = 8 };

static float x[MANY * SAMPLE], y[MANY];

static td_model *make(td_context *context)
{
    td_tensor *in = td_input(context, TD_SHAPE(SIDE, SIDE, 3));
    td_tensor *out = td_conv2d(in, CHANNELS, 3, .activation = TD_TANH, .padding = TD_SAME);
    out = td_conv2d(out, CHANNELS, 3, .activation = TD_TANH, .padding = TD_SAME);
    td_model *model = td_model_create(in, td_dense(td_global_average_pooling2d(out), 1), .seed = 3);
    td_compile(model, .optimizer = td_sgd(.learning_rate = 0.01f), .loss = TD_MEAN_SQUARED_ERROR);
    assert_string_equal(td_error(context), "");
    return model;
}

static int shards(const td_model *model)
{
    return tdi_runtime_shards(tdi_runtime_own(model));
}

static int shards_to_predict(td_model *model, int64_t rows)
{
    tdi_runtime *runtime;
    assert_int_equal(tdi_runtime_for(model, TDI_PREDICT, rows, &runtime, NULL), TD_OK);
    return tdi_runtime_shards(runtime);
}

static void expect_near(const float *seen, const float *expected)
{
    for (int i = 0; i < MANY; i++)
        assert_true(fabs((double)seen[i] - (double)expected[i]) <= 1e-6);
}

static void expect_same_loss(td_model *a, td_model *b, int64_t rows)
{
    td_logs of_a, of_b;
    assert_int_equal(td_test_on_batch(a, rows, x, y, &of_a), TD_OK);
    assert_int_equal(td_test_on_batch(b, rows, x, y, &of_b), TD_OK);
    assert_true(fabs(of_a.entry[0].value - of_b.entry[0].value) <= 1e-6);
}

/* Explaining a step of many changes nothing: gradients stay where they are, and can be applied. */
static void explain_in_between(td_model *model)
{
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    assert_int_equal(td_compute_gradients(model, 1, x, y, NULL), TD_OK);
    const float *gradient = td_gradient(model, 0);
    assert_int_equal(td_explain(model, nowhere, .batch_size = MANY, .mode = TD_MODE_TRAIN), TD_OK);
    assert_ptr_equal(td_gradient(model, 0), gradient);
    assert_int_equal(td_apply_gradients(model), TD_OK);
    assert_int_equal(shards(model), 1);
    fclose(nowhere);
}

static void many_rows_after_few(void **state)
{
    (void)state;
    int cores = tdi_cores_allowed();
    if (cores == 1 || cores > MANY)
        skip();
    td_context *context = td_context_create(NULL);
    td_model *model = make(context), *by_rows = make(context);
    float seen[MANY], expected[MANY];
    assert_int_equal(td_predict_on_batch(by_rows, MANY, x, expected), TD_OK);
    assert_int_equal(td_predict_on_batch(model, MANY, x, seen), TD_OK);
    expect_near(seen, expected);
    expect_same_loss(model, by_rows, MANY);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(td_compute_gradients(by_rows, MANY, x, y, NULL), TD_OK);
        assert_int_equal(td_train_on_batch(by_rows, 1, x, y, NULL), TD_OK);
        assert_int_equal(td_train_on_batch(model, 1, x, y, NULL), TD_OK);
        assert_int_equal(shards(by_rows), cores);
        assert_int_equal(shards(model), 1);
        assert_int_equal(td_predict_on_batch(by_rows, MANY, x, expected), TD_OK);
        assert_int_equal(td_predict_on_batch(model, MANY, x, seen), TD_OK);
        expect_near(seen, expected);
        assert_int_equal(shards_to_predict(model, MANY), cores);
        assert_int_equal(shards_to_predict(by_rows, 1), 1);
        expect_same_loss(model, by_rows, 1);
        expect_same_loss(model, by_rows, MANY);
    }
    explain_in_between(model);
    assert_int_equal(td_train_on_batch(by_rows, 1, x, y, NULL), TD_OK);
    assert_int_equal(td_train_on_batch(by_rows, MANY, x, y, NULL), TD_OK);
    assert_int_equal(td_train_on_batch(model, MANY, x, y, NULL), TD_OK);
    assert_int_equal(shards(model), cores);
    assert_int_equal(td_train_on_batch(by_rows, 1, x, y, NULL), TD_OK);
    assert_int_equal(td_train_on_batch(model, 1, x, y, NULL), TD_OK);
    assert_int_equal(shards(model), cores);
    assert_int_equal(td_predict_on_batch(by_rows, MANY, x, expected), TD_OK);
    assert_int_equal(td_predict_on_batch(model, MANY, x, seen), TD_OK);
    expect_near(seen, expected);
    td_model_free(model);
    td_model_free(by_rows);
    td_context_free(context);
}

int main(void)
{
    setenv("TANDEM_CACHE", "off", 1); /* the clock might say otherwise */
    for (int i = 0; i < MANY * SAMPLE; i++)
        x[i] = (float)sin(0.7 * i);
    for (int i = 0; i < MANY; i++)
        y[i] = (float)cos(i);
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_rows_after_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
