/* weights.c - a model's weights and facts: names, shapes, values in and out, the learning rate, the table of layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <tandem/tandem.h>

#include "files/scratch.h"

/* [batch, 3] -> dense "first" of 4, without a bias -> normalization "norm" -> dense "last" of 2 */
static td_model *three_layers(td_context *context)
{
    td_tensor *x = td_input(context, TD_SHAPE(3));
    td_tensor *y = td_dense(x, 4, .use_bias = TD_NO, .name = "first");
    y = td_dense(td_batch_normalization(y, .name = "norm"), 2, .name = "last");
    return td_model_create(x, y, .name = "facts", .seed = 1);
}

static void weights_are_named_in_keras_order(void **state)
{
    static const struct {
        const char *layer, *name;
        int rank, trainable;
    } expected[] = {{"first", "kernel", 2, 1},     {"norm", "gamma", 1, 1},           {"norm", "beta", 1, 1},
                    {"norm", "moving_mean", 1, 0}, {"norm", "moving_variance", 1, 0}, {"last", "kernel", 2, 1},
                    {"last", "bias", 1, 1}};
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = three_layers(context);
    assert_int_equal(td_weight_count(model), 7);
    for (int i = 0; i < 7; i++) {
        td_weight_info info;
        assert_int_equal(td_weight(model, i, &info), TD_OK);
        assert_string_equal(info.layer, expected[i].layer);
        assert_string_equal(info.name, expected[i].name);
        assert_int_equal(info.shape.rank, expected[i].rank);
        assert_int_equal(!!info.trainable, expected[i].trainable);
    }
    int64_t trainable;
    assert_int_equal(td_parameter_count(model, &trainable), 12 + 4 * 4 + 8 + 2);
    assert_int_equal(trainable, 12 + 2 * 4 + 8 + 2);
    td_context_free(context);
}

static void values_go_in_and_come_out(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = three_layers(context);
    const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, bias[2] = {0.5f, -0.25f};
    const float zeros[12] = {0}, x[3] = {1, 1, 1};
    float read[8], y[2];
    assert_int_equal(td_set_weight(model, 0, zeros, 12), TD_OK);
    assert_int_equal(td_set_weight(model, 5, values, 8), TD_OK);
    assert_int_equal(td_set_weight(model, 6, bias, 2), TD_OK);
    assert_int_equal(td_get_weight(model, 5, read, 8), TD_OK);
    assert_memory_equal(read, values, sizeof values);
    assert_int_equal(td_predict_on_batch(model, 1, x, y), TD_OK);
    assert_memory_equal(y, bias, sizeof bias);
    td_context_free(context);
}

static void wrong_numbers_and_sizes_are_refused(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = three_layers(context);
    td_weight_info info;
    float values[12] = {0};
    assert_int_equal(td_weight(model, 7, &info), TD_NOT_FOUND);
    assert_string_equal(td_error(context), "model \"facts\" has 7 weights; there is no number 7");
    td_clear_error(context);
    assert_int_equal(td_set_weight(model, -1, values, 12), TD_NOT_FOUND);
    td_clear_error(context);
    assert_int_equal(td_set_weight(model, 0, values, 11), TD_INVALID_ARGUMENT);
    assert_string_equal(td_error(context), "first/kernel has 12 elements, not 11");
    td_clear_error(context);
    assert_int_equal(td_get_weight(model, 0, values, 13), TD_INVALID_ARGUMENT);
    td_context_free(context);
}

static void shapes_are_a_samples(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = three_layers(context);
    td_shape shape;
    assert_int_equal(td_input_shape(model, 0, &shape), TD_OK);
    assert_true(shape.rank == 1 && shape.dim[0] == 3);
    assert_int_equal(td_output_shape(model, 0, &shape), TD_OK);
    assert_true(shape.rank == 1 && shape.dim[0] == 2);
    assert_int_equal(td_output_shape(model, 1, &shape), TD_NOT_FOUND);
    assert_int_equal(shape.rank, 0);
    td_context_free(context);
}

static void compilation_can_be_asked_for(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = three_layers(context);
    assert_int_equal(td_model_optimizer(model).kind, TD_OPTIMIZER_NONE);
    assert_int_equal(td_model_loss(model), TD_LOSS_NONE);
    assert_int_equal(td_set_learning_rate(model, 0.1f), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    assert_int_equal(td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR), TD_OK);
    td_optimizer optimizer = td_model_optimizer(model);
    assert_int_equal(optimizer.kind, TD_OPTIMIZER_ADAM);
    assert_true(optimizer.learning_rate == 0.001f && optimizer.beta_2.is_set && optimizer.beta_2.value == 0.999f);
    assert_int_equal(td_model_loss(model), TD_MEAN_SQUARED_ERROR);
    assert_int_equal(td_set_learning_rate(model, 0.25f), TD_OK);
    assert_true(td_learning_rate(model) == 0.25f);
    assert_int_equal(td_set_learning_rate(model, NAN), TD_INVALID_ARGUMENT);
    assert_true(td_learning_rate(model) == 0.25f);
    td_context_free(context);
}

/* In arguments a rate of 0 is the default; in a file it is 0. */
static void a_rate_of_0_is_saved(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = three_layers(context);
    td_compile(model, .optimizer = td_sgd(.momentum = 0.5f), .loss = TD_MEAN_SQUARED_ERROR);
    assert_int_equal(td_set_learning_rate(model, 0), TD_OK);
    assert_int_equal(td_save(model, scratch_path("still.keras")), TD_OK);
    td_model *loaded = td_load(context, scratch_path("still.keras"));
    assert_non_null(loaded);
    assert_int_equal(td_model_loss(loaded), TD_MEAN_SQUARED_ERROR);
    assert_true(td_learning_rate(loaded) == 0 && td_model_optimizer(loaded).momentum == 0.5f);
    td_context_free(context);
}

static void the_summary_counts_what_there_is(void **state)
{
    (void)state;
    char text[8192] = "";
    td_context *context = td_context_create(NULL);
    td_model *model = three_layers(context);
    FILE *out = fmemopen(text, sizeof text - 1, "w");
    assert_non_null(out);
    assert_int_equal(td_summary(model, out), TD_OK);
    fclose(out);
    assert_non_null(strstr(text, "first (Dense)"));
    assert_non_null(strstr(text, "norm (BatchNormalization)"));
    assert_non_null(strstr(text, "38"));
    assert_non_null(strstr(text, "30"));
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_named_in_keras_order),    cmocka_unit_test(values_go_in_and_come_out),
        cmocka_unit_test(wrong_numbers_and_sizes_are_refused), cmocka_unit_test(shapes_are_a_samples),
        cmocka_unit_test(compilation_can_be_asked_for),        cmocka_unit_test(a_rate_of_0_is_saved),
        cmocka_unit_test(the_summary_counts_what_there_is),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
