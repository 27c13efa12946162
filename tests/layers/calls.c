/* calls.c - calling layers: shapes, names, weights, and what a wrong call says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "layers/layer.h"

static int make_context(void **state)
{
    *state = td_context_create(NULL);
    return *state ? 0 : -1;
}

static int free_context(void **state)
{
    td_context_free(*state);
    return 0;
}

static void check_shape(td_tensor *tensor, td_shape expected)
{
    td_shape shape = td_tensor_shape(tensor);
    assert_string_equal(td_error(tensor->context), "");
    assert_true(tdi_shape_equal(&shape, &expected));
}

static void shapes(void **state)
{
    td_context *context = *state;
    td_tensor *x = td_input(context, TD_SHAPE(28, 20, 3)), *v = td_input(context, TD_SHAPE(4, 6));
    check_shape(x, TD_SHAPE(28, 20, 3));
    check_shape(td_dense(v, 9), TD_SHAPE(4, 9));
    check_shape(td_conv2d(x, 8, 5), TD_SHAPE(24, 16, 8));
    check_shape(td_conv2d(x, 8, 5, .padding = TD_SAME, .strides = TD_SIZE(3, 2)), TD_SHAPE(10, 10, 8));
    check_shape(td_conv2d(x, 6, 3, .kernel = TD_SIZE(1, 0), .groups = 3), TD_SHAPE(28, 18, 6));
    check_shape(td_conv2d(x, 8, 3, .dilation = TD_SIZE(2, 4)), TD_SHAPE(24, 12, 8));
    check_shape(td_max_pooling2d(x), TD_SHAPE(14, 10, 3));
    check_shape(td_max_pooling2d(x, 3, .strides = TD_SIZE(2, 2), .padding = TD_SAME), TD_SHAPE(14, 10, 3));
    check_shape(td_average_pooling2d(x, .pool = TD_SIZE(5, 3)), TD_SHAPE(5, 6, 3));
    check_shape(td_global_average_pooling2d(x), TD_SHAPE(3));
    check_shape(td_global_average_pooling2d(x, .keepdims = TD_YES), TD_SHAPE(1, 1, 3));
    check_shape(td_flatten(x), TD_SHAPE(28 * 20 * 3));
    check_shape(td_reshape(x, TD_SHAPE(-1, 60)), TD_SHAPE(28, 60));
    check_shape(td_activation_layer(x, TD_SOFTMAX), TD_SHAPE(28, 20, 3));
    check_shape(td_dropout(x, 0.5f), TD_SHAPE(28, 20, 3));
    check_shape(td_add(TD_TENSORS(x, x, x)), TD_SHAPE(28, 20, 3));
    check_shape(td_concatenate(TD_TENSORS(x, x)), TD_SHAPE(28, 20, 6));
    check_shape(td_concatenate(TD_TENSORS(x, x, x), .axis = 1), TD_SHAPE(84, 20, 3));
    check_shape(td_batch_normalization(x, .axis = 3), TD_SHAPE(28, 20, 3));
    check_shape(td_zero_padding2d(x, 2), TD_SHAPE(32, 24, 3));
    check_shape(td_zero_padding2d(x, 0, .sides = TD_SIDES(1, 0, 2, 3)), TD_SHAPE(29, 25, 3));
    check_shape(td_relu(x), TD_SHAPE(28, 20, 3));
    check_shape(td_softmax(x), TD_SHAPE(28, 20, 3));
}

static void names(void **state)
{
    td_context *context = *state;
    td_tensor *x = td_input(context, TD_SHAPE(4));
    assert_string_equal(x->site->layer->name, "input_layer");
    assert_string_equal(td_dense(x, 2)->site->layer->name, "dense");
    assert_string_equal(td_dense(x, 2, .name = "mine")->site->layer->name, "mine");
    assert_string_equal(td_dense(x, 2)->site->layer->name, "dense_1");
    assert_string_equal(td_batch_normalization(x)->site->layer->name, "batch_normalization");
    assert_string_equal(td_activation_layer(x, TD_RELU)->site->layer->name, "activation");
    assert_string_equal(td_input(context, TD_SHAPE(1))->site->layer->name, "input_layer_1");
}

static void check_weight(const td_tensor *tensor, int index, const char *name, td_shape shape, bool trainable)
{
    const tdi_weight *weight = tensor->site->layer->weights.at[index];
    assert_string_equal(weight->variable.name, name);
    assert_string_equal(weight->variable.layer, tensor->site->layer->name);
    assert_true(tdi_shape_equal(&weight->variable.shape, &shape));
    assert_int_equal(weight->variable.elements, tdi_shape_elements(&shape));
    assert_int_equal(weight->variable.trainable, trainable);
}

static void weights(void **state)
{
    td_context *context = *state;
    td_tensor *x = td_input(context, TD_SHAPE(8, 8, 6)), *y;
    y = td_conv2d(x, 4, 3, .groups = 2, .bias_regularizer = {.l2 = 0.5f});
    check_weight(y, 0, "kernel", TD_SHAPE(3, 3, 3, 4), true);
    check_weight(y, 1, "bias", TD_SHAPE(4), true);
    assert_true(y->site->layer->weights.at[1]->variable.l2 == 0.5f);
    y = td_dense(x, 5, .use_bias = TD_NO, .trainable = TD_NO, .kernel_regularizer = {.l1 = 1});
    assert_int_equal(y->site->layer->weights.count, 1);
    check_weight(y, 0, "kernel", TD_SHAPE(6, 5), false);
    assert_true(y->site->layer->weights.at[0]->variable.l1 == 0);
    y = td_batch_normalization(x);
    check_weight(y, 0, "gamma", TD_SHAPE(6), true);
    check_weight(y, 1, "beta", TD_SHAPE(6), true);
    check_weight(y, 2, "moving_mean", TD_SHAPE(6), false);
    check_weight(y, 3, "moving_variance", TD_SHAPE(6), false);
    y = td_batch_normalization(x, .scale = TD_NO, .center = TD_NO);
    check_weight(y, 0, "moving_mean", TD_SHAPE(6), false);
    assert_string_equal(td_error(context), "");
}

static void shared_layers(void **state)
{
    td_context *context = *state;
    td_tensor *a = td_input(context, TD_SHAPE(4)), *b = td_input(context, TD_SHAPE(3, 4)),
              *c = td_input(context, TD_SHAPE(5));
    td_tensor *first = td_dense(a, 2);
    tdi_layer *dense = first->site->layer;
    td_tensor *second = tdi_layer_call(dense, 1, &b, NULL);
    check_shape(second, TD_SHAPE(3, 2));
    assert_int_equal(first->site->index, 0);
    assert_int_equal(second->site->index, 1);
    assert_int_equal(dense->weights.count, 2);
    assert_null(tdi_layer_call(dense, 1, &c, NULL)->site);
    assert_string_equal(
        td_error(context),
        "layer \"dense\" (Dense): its weights were made for inputs like [batch, 4] and do not fit [batch, "
        "5]: share it between inputs whose last axis agrees, or make a second layer");
}

/* The sentence of a failed call, which must end in poison; the context is clear again. */
static void check_error(td_context *context, td_tensor *tensor, td_status status, const char *sentence)
{
    assert_non_null(tensor);
    assert_null(tensor->site);
    assert_int_equal(td_tensor_shape(tensor).rank, 0);
    assert_int_equal(td_error_status(context), status);
    const char *seen = td_error(context);
    assert_ptr_equal(strstr(seen, __FILE__ ":"), seen); /* the user's place first */
    if (!strstr(seen, sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, seen);
    td_clear_error(context);
}

#define EXPECT(call, sentence) check_error(*state, (call), TD_INVALID_ARGUMENT, (sentence))

static void wrong_sizes(void **state)
{
    td_context *context = *state;
    td_tensor *x = td_input(context, TD_SHAPE(4, 4, 3)), *v = td_input(context, TD_SHAPE(6));
    EXPECT(td_dense(v, 0), "layer \"dense\" (Dense): units is 0: it must be at least 1");
    EXPECT(td_dense(v, -3), "units is -3");
    EXPECT(td_dense(v, INT64_MAX / 2), "larger than any machine's memory");
    EXPECT(
        td_conv2d(x, 8, 5),
        "layer \"conv2d\" (Conv2D): a 5 x 5 kernel (dilation 1 x 1) does not fit into its input [batch, 4, 4, 3]: use "
        "TD_SAME or a smaller kernel");
    EXPECT(td_conv2d(v, 8, 3), "needs an input of [batch, height, width, channels] and got [batch, 6]");
    EXPECT(td_conv2d(x, 0, 3), "filters is 0");
    EXPECT(td_conv2d(x, 8, 0), "kernel_size is 0 x 0");
    EXPECT(td_conv2d(x, 8, 3, .strides = {-1, 1}), "strides is -1 x 1");
    EXPECT(td_conv2d(x, 8, 3, .strides = {2, 2}, .dilation = {2, 2}), "one of the two must be 1 x 1");
    EXPECT(td_conv2d(x, 8, 3, .groups = 3), "8 filters cannot be cut into 3 groups");
    EXPECT(td_conv2d(x, 8, 3, .groups = 2), "the 3 channels of its input [batch, 4, 4, 3] cannot be cut into 2 groups");
    EXPECT(td_conv2d(x, 8, 3, .padding = (td_padding)7), "no padding number 7");
    EXPECT(td_conv2d(x, 8, 3, .activation = (td_activation)99), "no activation number 99");
    EXPECT(td_max_pooling2d(x, 5), "a 5 x 5 pool");
    EXPECT(td_average_pooling2d(x, -2), "pool_size is -2 x -2");
    EXPECT(td_global_average_pooling2d(v), "got [batch, 6]");
    EXPECT(td_zero_padding2d(v, 1), "got [batch, 6]");
    EXPECT(td_zero_padding2d(x, 0, .sides = TD_SIDES(0, -1, 0, 0)), "-1 below");
    EXPECT(td_reshape(x, TD_SHAPE(5, -1)),
           "the 48 elements a sample of its input [batch, 4, 4, 3] cannot be laid out as target_shape (5, -1)");
    EXPECT(td_reshape(x, TD_SHAPE(4, 4)), "cannot be laid out");
    EXPECT(td_reshape(x, TD_SHAPE(-1, -1)), "one of them may be -1");
    EXPECT(td_reshape(x, TD_SHAPE(0, 48)), "axis 1 of its target_shape is 0");
    EXPECT(td_dropout(x, 1.0f), "rate is 1");
    EXPECT(td_dropout(x, -0.1f), "rate is -0.1");
    EXPECT(td_input(context, TD_SHAPE(3, 0)), "axis 2 of its shape is 0");
    EXPECT(td_input(context, TD_SHAPE(1, 2, 3, 4, 5, 6)), "at most 5");
    EXPECT(td_input(context, TD_SHAPE(INT64_MAX, INT64_MAX)), "larger than any machine's memory");
    check_error(context, td_input(context, TD_SHAPE(3), .dtype = TD_UINT8), TD_UNSUPPORTED, "computes in float32");
    check_error(context, td_dense(td_input(context, TD_SHAPE(3), .dtype = TD_INT32), 4), TD_UNSUPPORTED,
                "called on an input of int32");
    EXPECT(td_embedding(v, 0, 4), "input_dim is 0");
    EXPECT(td_embedding(v, 4, -1), "output_dim is -1");
    EXPECT(td_up_sampling2d(v), "got [batch, 6]");
    EXPECT(td_up_sampling2d(x, -1), "size is -1 x -1");
    EXPECT(td_up_sampling2d(x, .interpolation = (td_interpolation)7), "no interpolation number 7");
}

static void wrong_combinations(void **state)
{
    td_context *context = *state;
    td_tensor *a = td_input(context, TD_SHAPE(4, 3)), *b = td_input(context, TD_SHAPE(5, 3)),
              *n = td_input(context, (td_shape){0});
    EXPECT(td_add(TD_TENSORS(a, a, b)), "its inputs 1 and 3 have the shapes [batch, 4, 3] and [batch, 5, 3]");
    EXPECT(td_concatenate(TD_TENSORS(a, b)), "all extents but those of axis 2 must agree");
    EXPECT(td_concatenate(TD_TENSORS(a, a), .axis = 3), "cannot be joined along axis 3");
    EXPECT(td_concatenate(TD_TENSORS(a, a), .axis = -3), "the batch is axis 0");
    check_error(context, td_batch_normalization(a, .axis = 1), TD_UNSUPPORTED,
                "the last axis of [batch, 4, 3] only, -1 or 2");
    EXPECT(td_batch_normalization(a, .momentum = TD_SET(1.5f)), "momentum is 1.5");
    EXPECT(td_batch_normalization(a, .epsilon = TD_SET(-1.0f)), "epsilon is -1");
    EXPECT(td_batch_normalization(n), "[batch] has none but the batch");
    EXPECT(td_dense(n, 3), "[batch] has none but the batch");
    EXPECT(td_activation_layer(n, TD_SOFTMAX), "softmax is over the last axis");
    EXPECT(td_dense(a, 3, .bias_initializer = {.kind = TD_ORTHOGONAL}),
           "the initializer of its bias: Orthogonal: it makes weights of two axes or more, not of 1");
    EXPECT(td_dense(a, 3, .kernel_initializer = {.kind = TD_RANDOM_NORMAL, .b = -1}), "stddev is -1");
    EXPECT(td_dense(a, 3, .kernel_initializer = {.kind = TD_RANDOM_UNIFORM, .a = 2, .b = 1}),
           "minval 2 is above maxval 1");
    EXPECT(td_dense(a, 3, .kernel_initializer = {.kind = TD_VARIANCE_SCALING, .a = -1}), "scale is -1");
    EXPECT(td_dense(a, 3, .kernel_initializer = {.kind = (td_initializer_kind)50}), "no initializer number 50");
}

static void wrong_names(void **state)
{
    td_tensor *x = td_input(*state, TD_SHAPE(3));
    EXPECT(td_dense(x, 4, .name = "a/b"),
           "layer \"a/b\" (Dense): its name must not be empty and must not contain \"/\"");
    EXPECT(td_dense(x, 4, .name = ""), "its name must not be empty");
}

static void contexts_do_not_mix(void **state)
{
    td_context *other = td_context_create(NULL);
    td_tensor *a = td_input(*state, TD_SHAPE(3)), *b = td_input(other, TD_SHAPE(3));
    EXPECT(td_add(TD_TENSORS(a, b)), "its inputs belong to different contexts");
    assert_false(td_failed(other));
    td_context_free(other);
}

static void stray_arguments(void **state)
{
    td_tensor *x = td_input(*state, TD_SHAPE(3));
    EXPECT(td_dense(x, 4, 1), "td_dense: one positional argument too many");
    EXPECT(td_add(TD_TENSORS(x, x), 1), "td_add: one positional");
    EXPECT(td_input(*state, TD_SHAPE(3), 1), "td_input: one positional");
}

static void poison_passes_through(void **state)
{
    td_context *context = *state;
    td_tensor *x = td_input(context, TD_SHAPE(6));
    td_tensor *y = td_conv2d(x, 8, 3);
    char first[1024];
    snprintf(first, sizeof first, "%s", td_error(context));
    y = td_max_pooling2d(y);
    y = td_batch_normalization(y);
    y = td_dropout(y, 7.0f);
    y = td_add(TD_TENSORS(x, y));
    y = td_dense(td_flatten(y), -1);
    assert_non_null(y);
    assert_null(y->site);
    assert_string_equal(td_error(context), first); /* the first failure stays */
    assert_null(td_dense(NULL, 3));
    assert_null(td_add(NULL));
    assert_null(td_input(NULL, TD_SHAPE(1)));
    assert_int_equal(td_tensor_shape(NULL).rank, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_context, free_context)
    const struct CMUnitTest tests[] = {
        TEST(shapes),          TEST(names),
        TEST(weights),         TEST(shared_layers),
        TEST(wrong_sizes),     TEST(wrong_combinations),
        TEST(wrong_names),     TEST(contexts_do_not_mix),
        TEST(stray_arguments), TEST(poison_passes_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
