/* Models of several inputs and outputs: trained from lists and from files of arrays, predicted whole. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "files/scratch.h"
#include "support/devices.h"
#include "support/small.h"

enum { ROWS = 60, A = 5, B = 3 };

static float a[ROWS * A], b[ROWS * B], sums[ROWS * 2];

static void make_data(void)
{
    tdi_random random = tdi_random_create(5, 1);
    for (int i = 0; i < ROWS * A; i++)
        a[i] = (float)tdi_random_normal(&random);
    for (int i = 0; i < ROWS * B; i++)
        b[i] = (float)tdi_random_normal(&random);
    for (int i = 0; i < ROWS; i++) {
        sums[2 * i] = a[i * A] + b[i * B];
        sums[2 * i + 1] = a[i * A + 1];
    }
}

static td_model *two_by_two(td_context *context, bool losses)
{
    td_tensor *x = td_input(context, TD_SHAPE(A)), *z = td_input(context, TD_SHAPE(B));
    td_tensor *joined = td_dense(td_concatenate(TD_TENSORS(x, z)), 32, .activation = TD_TANH);
    td_tensor *label = td_dense(joined, 2), *sum = td_dense(joined, 2);
    td_model *model =
        td_model_create(NULL, NULL, .inputs = TD_TENSORS(x, z), .outputs = TD_TENSORS(label, sum), .seed = 4);
    if (losses)
        td_compile(model, .optimizer = td_adam(.learning_rate = 0.02f), .loss = TD_MEAN_SQUARED_ERROR,
                   .strategy = td_mirrored(test_devices(0)));
    return model;
}

/* The total is the sum of the outputs' losses, and falls. */
static void lists_train(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = two_by_two(context, true);
    const float *x[] = {a, b}, *y[] = {sums, sums};
    td_logs logs;
    double first = 0;
    for (int step = 0; step < 200; step++) {
        assert_int_equal(td_train_on_batch_lists(model, ROWS, x, y, &logs), TD_OK);
        assert_int_equal(logs.count, 3);
        assert_true(fabs(logs.entry[0].value - logs.entry[1].value - logs.entry[2].value) < 1e-5 * logs.entry[0].value);
        first = step ? first : logs.entry[0].value;
    }
    assert_true(logs.entry[0].value < first / 20);
    assert_int_equal(td_test_on_batch_lists(model, ROWS, x, y, &logs), TD_OK);
    assert_true(logs.entry[0].value < first / 20);
    td_context_free(context);
}

static td_model *beside_words(td_context *context, bool give_back)
{
    td_tensor *x = td_input(context, TD_SHAPE(A)), *words = td_input(context, TD_SHAPE(B), .dtype = TD_INT32);
    td_tensor *made = td_dense(x, 2);
    return td_model_create(NULL, NULL, .inputs = TD_TENSORS(x, words),
                           .outputs = give_back ? TD_TENSORS(made, words) : TD_TENSORS(made));
}

/* Of words too, which only an Embedding could read. */
static void an_input_that_no_layer_reads(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = beside_words(context, false);
    td_compile(model, .optimizer = td_sgd(), .loss = TD_MEAN_SQUARED_ERROR, .strategy = td_mirrored(test_devices(0)));
    td_logs logs;
    assert_int_equal(td_train_on_batch_lists(model, ROWS, (const float *[]){a, b}, (const float *[]){sums}, &logs),
                     TD_OK);
    assert_null(beside_words(context, true));
    assert_non_null(strstr(td_error(context), "of int32 is an output as well"));
    td_context_free(context);
}

/* Keras's logs are a dict: outputs of one layer have one entry, and the last one's value is in it. */
static void outputs_of_one_layer_share_a_name(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_tensor *x = td_input(context, TD_SHAPE(A, 1));
    td_tensor *h = td_lstm(x, 2, .return_state = TD_YES), *c = td_layer_output(h, 2);
    td_model *model = td_model_create(x, NULL, .outputs = TD_TENSORS(h, td_layer_output(h, 1), c), .seed = 4);
    td_compile(model, .loss = TD_MEAN_SQUARED_ERROR, .strategy = td_mirrored(test_devices(0)));
    const float *ins[] = {a}, *y[] = {sums, sums, sums};
    float out[3][ROWS * 2], *outs[] = {out[0], out[1], out[2]};
    td_logs logs;
    assert_int_equal(td_test_on_batch_lists(model, ROWS, ins, y, &logs), TD_OK);
    assert_int_equal(td_predict_on_batch_lists(model, ROWS, ins, outs), TD_OK);
    double squares = 0;
    for (int i = 0; i < ROWS * 2; i++)
        squares += pow((double)out[2][i] - (double)sums[i], 2);
    assert_int_equal(logs.count, 2);
    assert_string_equal(logs.entry[1].name, "lstm_loss");
    assert_true(fabs(logs.entry[1].value - squares / (ROWS * 2)) < 1e-5);
    td_context_free(context);
}

/* ---- outputs without a loss ---- */

enum { SMALL = 8 };

/* As keras.Model(x, [a, b]) with kernels of ones, and its numbers after two epochs of fit(batch_size=4, shuffle=False)
 * by Keras 3.15.1. */
static td_model *two_heads(td_context *context, td_regularizer of_b, td_compile_args compile)
{
    td_initializer ones = {.kind = TD_ONES};
    td_tensor *x = td_input(context, TD_SHAPE(3));
    td_tensor *h = td_dense(x, 4, .activation = TD_TANH, .kernel_initializer = ones, .name = "h");
    td_tensor *a = td_dense(h, 2, .kernel_initializer = ones, .name = "a");
    td_tensor *b = td_dense(h, 2, .kernel_initializer = ones, .kernel_regularizer = of_b, .name = "b");
    compile.model = td_model_create(x, NULL, .outputs = TD_TENSORS(a, b), .seed = 1);
    compile.optimizer = td_sgd(.learning_rate = 0.1f);
    compile.strategy = td_mirrored(test_devices(0));
    assert_int_equal(td_compile_(&compile), TD_OK);
    return compile.model;
}

/* With weights of `weighted` outputs beside `targets` targets. */
static td_data *heads_data(td_context *context, int targets, int weighted)
{
    static float x[SMALL * 3], y[2][SMALL * 2], w[2][SMALL];
    for (int i = 0; i < SMALL * 3; i++)
        x[i] = (float)(i % 5) / 4;
    for (int i = 0; i < SMALL * 2; i++) {
        y[0][i] = (float)(i % 3);
        y[1][i] = (float)(i % 4);
    }
    for (int i = 0; i < SMALL; i++) {
        w[0][i] = (float)(i % 3);
        w[1][i] = (float)(1 + i % 2);
    }
    td_named_array all[] = {{"x", x, TD_SHAPE(SMALL, 3)},
                            {"y0", y[0], TD_SHAPE(SMALL, 2)},
                            {"y1", y[1], TD_SHAPE(SMALL, 2)},
                            {"sample_weight0", w[0], TD_SHAPE(SMALL)},
                            {"sample_weight1", w[1], TD_SHAPE(SMALL)}};
    td_named_array arrays[5];
    memcpy(arrays, all, sizeof all);
    for (int i = 0; i < weighted; i++)
        arrays[1 + targets + i] = all[3 + i];
    const char *path = scratch_path("heads.npz");
    assert_int_equal(td_save_npz(context, path, 1 + targets + weighted, arrays), TD_OK);
    return td_open(path, .role = TD_TRAIN);
}

/* Trains, and compares the last epoch's loss and the kernels' first elements. */
static void check_weighted(td_context *context, td_model *model, td_data *data, double loss, double of_a, double of_b)
{
    td_epoch last;
    float a_kernel[8], b_kernel[8];
    if (td_fit(model, data, .epochs = 2, .batch_size = 4, .shuffle = TD_NO, .last = &last) != TD_OK)
        fail_msg("%s", td_error(context));
    assert_int_equal(td_get_weight(model, 2, a_kernel, 8), TD_OK);
    assert_int_equal(td_get_weight(model, 4, b_kernel, 8), TD_OK);
    assert_string_equal(last.logs.entry[0].name, "loss");
    assert_true(fabs(last.logs.entry[0].value - loss) < 1e-5);
    assert_true(fabs((double)a_kernel[0] - of_a) < 1e-6);
    assert_true(fabs((double)b_kernel[0] - of_b) < 1e-6);
}

static void check_heads(td_context *context, td_model *model, int targets, double loss, double of_a, double of_b)
{
    check_weighted(context, model, heads_data(context, targets, 0), loss, of_a, of_b);
}

static void an_output_without_a_loss_is_not_trained(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_regularizer none = {0};
    td_compile_args first = {.losses = TD_LOSSES(TD_MEAN_SQUARED_ERROR, TD_LOSS_NONE)};
    td_compile_args second = {.losses = TD_LOSSES(TD_LOSS_NONE, TD_MEAN_SQUARED_ERROR)}, weighted = first;
    weighted.loss_weights = TD_LOSS_WEIGHTS(0.5f, 2);
    check_heads(context, two_heads(context, none, first), 2, 1.276349, 0.6009931, 1);
    check_heads(context, two_heads(context, none, second), 2, 1.584635, 1, 0.55090266);
    check_heads(context, two_heads(context, none, weighted), 2, 1.334201, 0.7182205, 1);
    check_heads(context, two_heads(context, none, first), 1, 1.276349, 0.6009931, 1); /* targets of the one alone */
    check_heads(context, two_heads(context, (td_regularizer){.l2 = 0.1f}, first), 2, 1.999633, 0.6009931, 0.92236817);
    td_context_free(context);
}

/* Its weights are there or not; one array of them is that of the only output with a loss. */
static void an_output_without_a_loss_has_no_weights(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_regularizer none = {0};
    td_compile_args first = {.losses = TD_LOSSES(TD_MEAN_SQUARED_ERROR, TD_LOSS_NONE)};
    td_compile_args second = {.losses = TD_LOSSES(TD_LOSS_NONE, TD_MEAN_SQUARED_ERROR)};
    for (int targets = 1; targets <= 2; targets++)
        for (int weighted = 1; weighted <= 2; weighted++)
            check_weighted(context, two_heads(context, none, first), heads_data(context, targets, weighted), 1.239209,
                           0.6842888, 1);
    check_weighted(context, two_heads(context, none, second), heads_data(context, 2, 2), 1.82186, 1, 0.56097054);
    check_weighted(context, two_heads(context, none, (td_compile_args){.loss = TD_MEAN_SQUARED_ERROR}),
                   heads_data(context, 2, 1), 3.388872, 0.70007914, 0.6142255);
    td_context_free(context);
}

static void batches_without_its_weights(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_compile_args compile = {.losses = TD_LOSSES(TD_LOSS_NONE, TD_MEAN_SQUARED_ERROR)};
    td_model *model = two_heads(context, (td_regularizer){0}, compile);
    float x[3] = {0.25f, 0.5f, 1}, target[2] = {1, 3}, weight = 0.5f;
    const float *in[] = {x}, *y[] = {NULL, target}, *w[] = {NULL, &weight}, *no[] = {&weight, NULL};
    td_logs plain, weighted;
    assert_int_equal(td_test_on_batch_lists(model, 1, in, y, &plain), TD_OK);
    assert_int_equal(td_test_on_batch_weighted(model, 1, in, y, w, TD_NO, &weighted), TD_OK);
    assert_true(fabs(weighted.entry[0].value - plain.entry[0].value / 2) < 1e-6);
    assert_int_equal(td_test_on_batch_weighted(model, 1, in, y, no, TD_NO, &weighted), TD_INVALID_ARGUMENT);
    td_context_free(context);
}

static void some_output_needs_a_loss(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = two_by_two(context, false);
    assert_int_equal(td_compile(model, .optimizer = td_sgd(), .losses = TD_LOSSES(TD_LOSS_NONE, TD_LOSS_NONE)),
                     TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "at least one output"));
    td_clear_error(context);
    assert_int_equal(td_compile(model, .losses = TD_LOSSES(TD_MEAN_SQUARED_ERROR)), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "each of the 2 outputs"));
    td_context_free(context);
}

static void halves_train_as_well(void **state)
{
    (void)state;
    const float *x[] = {a, b}, *y[] = {sums, sums};
    float *weights[2];
    int64_t count = 0;
    for (int halves = 0; halves < 2; halves++) {
        td_context *context = td_context_create(NULL);
        td_model *model = two_by_two(context, true);
        for (int step = 0; step < 3; step++) {
            if (halves) {
                assert_int_equal(td_compute_gradients_lists(model, ROWS, x, y, NULL), TD_OK);
                assert_int_equal(td_apply_gradients(model), TD_OK);
            } else {
                assert_int_equal(td_train_on_batch_lists(model, ROWS, x, y, NULL), TD_OK);
            }
        }
        weights[halves] = small_weights(model, &count);
        td_context_free(context);
    }
    assert_true(relative_difference(weights[0], weights[1], count) < 1e-6);
    free(weights[0]);
    free(weights[1]);
}

static void every_output_is_predicted(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = two_by_two(context, false);
    const char *path = scratch_path("two.npz");
    td_named_array arrays[] = {{"x0", a, TD_SHAPE(ROWS, A)}, {"x1", b, TD_SHAPE(ROWS, B)}};
    assert_int_equal(td_save_npz(context, path, 2, arrays), TD_OK);
    float first[ROWS * 2], second[ROWS * 2], whole[2][ROWS * 2], only[ROWS * 2];
    float *outputs[] = {first, second}, *by_hand[] = {whole[0], whole[1]};
    const float *x[] = {a, b};
    assert_int_equal(td_predict(model, td_open(path), .outputs = outputs, .batch_size = 7), TD_OK);
    assert_int_equal(td_predict_on_batch_lists(model, ROWS, x, by_hand), TD_OK);
    assert_true(relative_difference(first, whole[0], ROWS * 2) < 1e-5);
    assert_true(relative_difference(second, whole[1], ROWS * 2) < 1e-5);
    assert_true(relative_difference(first, second, ROWS * 2) > 0.01);
    assert_int_equal(td_predict(model, td_open(path), only, ROWS * 2, .batch_size = 7), TD_OK);
    assert_memory_equal(only, first, sizeof only);
    td_context_free(context);
}

static void a_file_trains_them(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = two_by_two(context, true);
    const char *path = scratch_path("all.npz");
    td_named_array arrays[] = {{"x0", a, TD_SHAPE(ROWS, A)},
                               {"x1", b, TD_SHAPE(ROWS, B)},
                               {"y0", sums, TD_SHAPE(ROWS, 2)},
                               {"y1", sums, TD_SHAPE(ROWS, 2)}};
    assert_int_equal(td_save_npz(context, path, 4, arrays), TD_OK);
    td_epoch last;
    assert_int_equal(td_fit(model, td_open(path), .epochs = 40, .batch_size = 16, .last = &last, .seed = 2), TD_OK);
    assert_int_equal(last.logs.count, 3);
    assert_true(last.logs.entry[0].value < 0.4);
    td_context_free(context);
}

static void single_functions_name_the_lists(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = two_by_two(context, true);
    float out[ROWS * 2], *nothing[2] = {out, NULL};
    const float *lacking[] = {a, NULL};
    assert_int_equal(td_train_on_batch(model, ROWS, a, sums, NULL), TD_UNSUPPORTED);
    assert_non_null(strstr(td_error(context), "2 inputs and 2 outputs"));
    td_clear_error(context);
    assert_int_equal(td_train_on_batch_lists(model, ROWS, lacking, lacking, NULL), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    td_data *data = td_arrays(ROWS, a, TD_SHAPE(A));
    assert_int_equal(td_predict(model, data, .outputs = nothing), TD_INVALID_ARGUMENT);
    td_context_free(context);
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_train),
        cmocka_unit_test(an_input_that_no_layer_reads),
        cmocka_unit_test(outputs_of_one_layer_share_a_name),
        cmocka_unit_test(an_output_without_a_loss_is_not_trained),
        cmocka_unit_test(an_output_without_a_loss_has_no_weights),
        cmocka_unit_test(batches_without_its_weights),
        cmocka_unit_test(some_output_needs_a_loss),
        cmocka_unit_test(halves_train_as_well),
        cmocka_unit_test(every_output_is_predicted),
        cmocka_unit_test(a_file_trains_them),
        cmocka_unit_test(single_functions_name_the_lists),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
