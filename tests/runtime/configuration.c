/* configuration.c - a configuration is chosen once for its key: the same steps have the same runtime, whatever was
 * asked of the model in between, and looking at a step does not choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/thread.h"
#include "runtime/runtime_struct.h"

enum { SIDE = 32, CHANNELS = 32, SAMPLE = SIDE * SIDE * 3, MANY = 8 };

static float x[MANY * SAMPLE], y[MANY];

static td_model *make(td_context *context)
{
    td_tensor *in = td_input(context, TD_SHAPE(SIDE, SIDE, 3));
    td_tensor *out = td_conv2d(in, CHANNELS, 3, .padding = TD_SAME);
    out = td_conv2d(out, CHANNELS, 3, .padding = TD_SAME);
    td_model *model = td_model_create(in, td_dense(td_global_average_pooling2d(out), 1), .seed = 3);
    td_compile(model, .optimizer = td_sgd(.learning_rate = 0.01f), .loss = TD_MEAN_SQUARED_ERROR);
    assert_string_equal(td_error(context), "");
    return model;
}

static tdi_runtime *runtime_for(td_model *model, tdi_mode mode, int64_t rows)
{
    tdi_runtime *runtime;
    assert_int_equal(tdi_runtime_for(model, mode, rows, &runtime, NULL), TD_OK);
    return runtime;
}

static void look_at(td_model *model, int64_t rows)
{
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    assert_int_equal(td_explain(model, nowhere, .batch_size = rows, .mode = TD_MODE_TRAIN), TD_OK);
    fclose(nowhere);
}

/* Predictions and reports before the first step that trains leave it the choice. */
static void steps_that_train_choose(void **state)
{
    (void)state;
    float predictions[MANY];
    td_context *context = td_context_create(NULL);
    td_model *model = make(context);
    assert_null(tdi_runtime_own(model));
    assert_int_equal(td_predict_on_batch(model, MANY, x, predictions), TD_OK);
    look_at(model, 1);
    assert_null(tdi_configuration_of(model, TDI_TRAIN));
    assert_int_equal(td_train_on_batch(model, MANY, x, y, NULL), TD_OK);
    const tdi_configuration *chosen = tdi_configuration_of(model, TDI_TRAIN);
    assert_non_null(chosen);
    assert_ptr_equal(tdi_configuration_of(model, TDI_PREDICT), chosen);
    assert_int_equal(chosen->division.shards, tdi_runtime_shards(tdi_runtime_own(model)));
    td_context_free(context);
}

static void the_same_key_has_the_same_runtime(void **state)
{
    (void)state;
    int cores = tdi_cores_allowed();
    if (cores == 1 || cores > MANY)
        skip();
    td_context *context = td_context_create(NULL);
    td_model *model = make(context);
    tdi_runtime *few = runtime_for(model, TDI_TRAIN, 1), *many;
    assert_int_equal(tdi_runtime_shards(few), 1);
    assert_true(tdi_configuration_of(model, TDI_TRAIN)->few);
    assert_int_equal(td_train_on_batch(model, 1, x, y, NULL), TD_OK);
    tdi_runtime *predicts = runtime_for(model, TDI_PREDICT, MANY);
    assert_int_equal(tdi_runtime_shards(predicts), cores);
    look_at(model, MANY);
    assert_ptr_equal(runtime_for(model, TDI_PREDICT, MANY), predicts);
    assert_ptr_equal(runtime_for(model, TDI_TRAIN, 1), few);
    assert_ptr_equal(tdi_runtime_own(model), few);
    many = runtime_for(model, TDI_TRAIN, MANY);
    assert_int_equal(tdi_runtime_shards(many), cores);
    assert_ptr_equal(runtime_for(model, TDI_TRAIN, 1), many);
    assert_ptr_equal(runtime_for(model, TDI_PREDICT, MANY), many);
    assert_int_equal(tdi_runtime_shards(runtime_for(model, TDI_PREDICT, 1)), 1);
    td_context_free(context);
}

/* What a backup brings is chosen, unless these cores have no such division. */
static void a_resumed_run_is_told(void **state)
{
    (void)state;
    int shards;
    bool float32;
    td_context *context = td_context_create(NULL);
    td_model *model = make(context);
    assert_int_equal(tdi_runtime_resume(model, TDI_MAX_SHARDS - 1, false, MANY, NULL), TD_OK);
    assert_false(tdi_runtime_is_chosen(model, &shards, &float32));
    assert_int_equal(tdi_runtime_resume(model, 1, false, MANY, NULL), TD_OK);
    assert_true(tdi_runtime_is_chosen(model, &shards, &float32));
    assert_int_equal(shards, 1);
    assert_false(float32);
    tdi_runtime *told = tdi_runtime_own(model);
    assert_int_equal(td_train_on_batch(model, MANY, x, y, NULL), TD_OK);
    assert_ptr_equal(tdi_runtime_own(model), told);
    td_context_free(context);
}

int main(void)
{
    setenv("TANDEM_CACHE", "off", 1); /* a trial might choose otherwise */
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_that_train_choose),
                                       cmocka_unit_test(the_same_key_has_the_same_runtime),
                                       cmocka_unit_test(a_resumed_run_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
