/* rematerialize.c - computing values again instead of keeping them takes less memory and gives the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/small.h"

enum { ROWS = 20 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS];

static td_tensor *block(td_tensor *in, td_activation activation)
{
    td_tensor *out = td_activation_layer(td_batch_normalization(td_conv2d(in, 8, 3, .padding = TD_SAME)), activation);
    out = td_batch_normalization(td_conv2d(td_dropout(out, 0.2f), 8, 1));
    return td_relu(td_add(TD_TENSORS(in, out)));
}

static td_model *residual(td_context *context, td_strategy strategy, td_choice rematerialize)
{
    td_tensor *in = td_input(context, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS));
    td_tensor *out = td_zero_padding2d(td_conv2d(td_zero_padding2d(in, 2), 8, 3, .activation = TD_RELU), 1);
    out = td_max_pooling2d(out, 3, .strides = TD_SIZE(1, 1));
    for (int i = 0; i < 6; i++)
        out = block(out, i % 2 ? TD_TANH : TD_RELU);
    out = td_dense(td_global_average_pooling2d(out), SMALL_CLASSES, .activation = TD_SOFTMAX);
    td_model *model = td_model_create(in, out, .seed = 7);
    assert_int_equal(td_compile(model, .optimizer = td_adam(), .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY,
                                .strategy = strategy, .rematerialize = rematerialize),
                     TD_OK);
    return model;
}

static float *weights_after(td_strategy strategy, td_choice rematerialize, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_model *model = residual(context, strategy, rematerialize);
    for (int step = 0; step < 3; step++)
        assert_int_equal(td_train_on_batch(model, ROWS - step, x, y, NULL), TD_OK);
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static void check_same_bits(td_strategy strategy)
{
    int64_t count;
    float *kept = weights_after(strategy, TD_NO, &count), *again = weights_after(strategy, TD_YES, &count);
    assert_memory_equal(again, kept, (size_t)count * sizeof *kept);
    free(kept);
    free(again);
}

static void the_bits_are_the_same(void **state)
{
    (void)state;
    check_same_bits((td_strategy){.devices = test_devices(1)});
    check_same_bits((td_strategy){.devices = test_devices(2)});
    check_same_bits((td_strategy){.devices = test_devices(2), .shards = 4});
}

/* Megabytes of activations, as explained. */
static double activations(td_choice rematerialize)
{
    td_context *context = td_context_create(NULL);
    td_model *model = residual(context, (td_strategy){.devices = test_devices(1)}, rematerialize);
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(td_explain(model, file, .batch_size = 256), TD_OK);
    rewind(file);
    double total = 0, shard = 0;
    for (char line[512]; shard == 0 && fgets(line, sizeof line, file);)
        sscanf(line, "peak memory: %lf MB: %lf of activations", &total, &shard);
    fclose(file);
    td_context_free(context);
    assert_true(total > shard && shard > 0);
    return shard;
}

static void it_takes_less_memory(void **state)
{
    (void)state;
    assert_true(activations(TD_YES) < 0.75 * activations(TD_NO));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_bits_are_the_same), cmocka_unit_test(it_takes_less_memory)};
    small_data(ROWS, x, y);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
