/* N replicas give what one gives: for any batch size, uneven, smaller than N, a last batch of one; with shards, bit for
 * bit. */
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

enum { SAMPLES = 43 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];

typedef struct setting {
    const char *devices;
    int shards;
    bool separate;
    int64_t batch;
    td_optimizer optimizer;
    small_kind kind;
    td_precision precision;
} setting;

static float *train(const setting *s, int64_t *count, td_logs *logs)
{
    td_context *context = td_context_create(NULL);
    td_model *model =
        small_model(context, s->kind, s->optimizer, (td_strategy){.devices = s->devices, .shards = s->shards});
    assert_string_equal(td_error(context), "");
    model->compiled.separate_replicas = s->separate;
    model->compiled.precision = s->precision;
    td_epoch last = {0};
    td_data *data = td_arrays(SAMPLES, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    td_fit(model, data, .epochs = 2, .batch_size = s->batch, .seed = 5, .last = &last);
    assert_string_equal(td_error(context), "");
    if (logs)
        *logs = last.logs;
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static void expect_same(const setting *s, const setting *other, double tolerance)
{
    double of_logs = s->precision == TD_PRECISION_BFLOAT16 ? tolerance : 1e-5;
    int64_t count;
    td_logs logs, expected_logs;
    float *made = train(s, &count, &logs), *expected = train(other, &count, &expected_logs);
    double difference = relative_difference(made, expected, count);
    if (difference > tolerance)
        fail_msg("kind %d on %s, batch %d: weights differ by %g", (int)s->kind, s->devices, (int)s->batch, difference);
    for (int i = 0; i < logs.count; i++)
        assert_float_equal(logs.entry[i].value, expected_logs.entry[i].value, of_logs);
    free(made);
    free(expected);
}

static void expect_same_as_one(setting s, const char *devices, double tolerance)
{
    setting alone = s;
    alone.devices = test_devices(1);
    alone.separate = true;
    s.devices = devices;
    expect_same(&s, &alone, tolerance);
}

static const int REPLICAS[] = {2, 3, 5};

static void check_kind(small_kind kind, bool separate)
{
    const int64_t batches[] = {1, 3, 14, 21, 43, 64}; /* 43 = 3 * 14 + 1 = 2 * 21 + 1 */
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
        for (size_t l = 0; l < sizeof REPLICAS / sizeof *REPLICAS; l++)
            expect_same_as_one((setting){.kind = kind,
                                         .separate = separate,
                                         .batch = batches[b],
                                         .optimizer = td_sgd(.learning_rate = 0.05f, .momentum = 0.9f)},
                               test_devices(REPLICAS[l]), 3e-6);
}

static void test_mlp_separately(void **state)
{
    (void)state;
    check_kind(SMALL_MLP, true);
}

static void test_mlp_as_one(void **state)
{
    (void)state;
    check_kind(SMALL_MLP, false);
}

static void test_cnn_separately(void **state)
{
    (void)state;
    check_kind(SMALL_CNN, true);
}

/* Each row is rounded alike wherever it is computed, but for a sum that is made in another order and falls on the other
 * side: a bfloat16 is then 2^-8 off. */
static void test_bfloat16(void **state)
{
    (void)state;
    const small_kind kinds[] = {SMALL_MLP, SMALL_CNN};
    const int64_t batches[] = {1, 14, 43};
    for (size_t i = 0; i < 12; i++)
        expect_same_as_one((setting){.kind = kinds[i % 2],
                                     .separate = i >= 6,
                                     .batch = batches[i / 2 % 3],
                                     .precision = TD_PRECISION_BFLOAT16,
                                     .optimizer = td_sgd(.learning_rate = 0.05f)},
                           test_devices(REPLICAS[0]), 1.0 / 256);
}

static void test_dropout(void **state)
{
    (void)state;
    check_kind(SMALL_DROPOUT, true);
    check_kind(SMALL_DROPOUT, false);
}

static void test_synchronized_batch_norm(void **state)
{
    (void)state;
    const int64_t batches[] = {14, 21, 43};
    for (size_t b = 0; b < 3; b++)
        for (size_t l = 0; l < 3; l++)
            for (int separate = 0; separate < 2; separate++)
                expect_same_as_one((setting){.kind = SMALL_SYNC,
                                             .separate = separate == 1,
                                             .batch = batches[b],
                                             .optimizer = td_sgd(.learning_rate = 0.02f)},
                                   test_devices(REPLICAS[l]), 1e-5);
}

/* Replicas with batch statistics of their own are computed as one, several to a core; kept separate, each is a shard.
 */
static void test_batch_norm_per_replica(void **state)
{
    (void)state;
    const char *const lists[] = {test_devices(2), test_devices(3), test_devices(4), test_devices(8)};
    const small_kind kinds[] = {SMALL_NORM, SMALL_MIXED, SMALL_DENSE};
    const int64_t batches[] = {14, 21, 43};
    for (size_t i = 0; i < 4 * 3 * 3; i++) {
        setting s = {.kind = kinds[i / 4 % 3],
                     .devices = lists[i % 4],
                     .batch = batches[i / 12],
                     .optimizer = td_sgd(.learning_rate = 0.02f)};
        setting separate = s;
        separate.separate = true;
        expect_same(&s, &separate, 1e-5);
    }
}

static void test_shards_give_the_same_bits(void **state)
{
    (void)state;
    const char *const lists[] = {test_devices(1), test_devices(2), test_devices(4), test_devices(8)};
    for (int kind = 0; kind < SMALL_KINDS; kind++)
        for (int64_t batch = 5; batch <= 17; batch += 6) {
            int64_t count;
            setting s = {
                .kind = (small_kind)kind, .shards = 8, .batch = batch, .optimizer = td_adam(.learning_rate = 0.01f)};
            s.devices = lists[0];
            float *one = train(&s, &count, NULL);
            for (int l = 1; l < 4; l++) {
                s.devices = lists[l];
                float *many = train(&s, &count, NULL);
                if (memcmp(one, many, (size_t)count * sizeof *one) != 0)
                    fail_msg("kind %d, batch %d: %s gives other bits than one device", kind, (int)batch, lists[l]);
                free(many);
            }
            free(one);
        }
}

/* Of everything that every optimizer can do besides its update. */
static const td_optimizer common[] = {
    {.kind = TD_OPTIMIZER_SGD, .learning_rate = 0.05f, .momentum = 0.9f, .clipnorm = 0.3f},
    {.kind = TD_OPTIMIZER_ADAM, .learning_rate = 0.01f, .global_clipnorm = 0.4f},
    {.kind = TD_OPTIMIZER_SGD, .learning_rate = 0.05f, .use_ema = TD_YES, .ema_overwrite_frequency = 3},
    {.kind = TD_OPTIMIZER_ADAM, .learning_rate = 0.01f, .gradient_accumulation_steps = 2, .loss_scale_factor = 128},
    {.kind = TD_OPTIMIZER_SGD,
     .learning_rate = 0.05f,
     .momentum = 0.9f,
     .global_clipnorm = 0.4f,
     .use_ema = TD_YES,
     .gradient_accumulation_steps = 3},
};
enum { COMMON = sizeof common / sizeof *common };

static void test_common_arguments(void **state)
{
    (void)state;
    const int64_t batches[] = {3, 14, 43};
    for (int i = 0; i < COMMON; i++)
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
            for (size_t l = 0; l < sizeof REPLICAS / sizeof *REPLICAS; l++)
                for (int separate = 0; separate < 2; separate++)
                    expect_same_as_one(
                        (setting){
                            .kind = SMALL_MLP, .separate = separate == 1, .batch = batches[b], .optimizer = common[i]},
                        test_devices(REPLICAS[l]), 1e-5);
}

static void test_common_arguments_give_the_same_bits(void **state)
{
    (void)state;
    const char *const lists[] = {test_devices(2), test_devices(4)};
    for (int i = 0; i < COMMON; i++) {
        int64_t count;
        setting s = {.kind = SMALL_CNN, .shards = 4, .batch = 11, .optimizer = common[i], .devices = test_devices(1)};
        float *one = train(&s, &count, NULL);
        for (int l = 0; l < 2; l++) {
            s.devices = lists[l];
            float *many = train(&s, &count, NULL);
            if (memcmp(one, many, (size_t)count * sizeof *one) != 0)
                fail_msg("optimizer %d: %s gives other bits than one device", i, lists[l]);
            free(many);
        }
        free(one);
    }
}

static void test_same_bits_again(void **state)
{
    (void)state;
    for (int kind = 0; kind < SMALL_KINDS; kind++) {
        int64_t count;
        setting s = {.kind = (small_kind)kind, .devices = test_devices(2), .batch = 16, .optimizer = td_adam()};
        float *first = train(&s, &count, NULL), *second = train(&s, &count, NULL);
        assert_memory_equal(first, second, (size_t)count * sizeof *first);
        free(first);
        free(second);
    }
}

/* Per replica: each half is normalised by its own statistics; the moving ones are the average by rows. */
static void test_moving_statistics_per_replica(void **state)
{
    (void)state;
    enum { ROWS = 5 }; /* 2 and 3 */
    float rows[ROWS] = {1, 3, 2, 4, 9}, targets[ROWS] = {0};
    td_context *context = td_context_create(NULL);
    td_tensor *in = td_input(context, TD_SHAPE(1));
    td_tensor *out = td_dense(td_batch_normalization(in, .momentum = TD_SET(0.5f)), 1);
    td_model *model = td_model_create(in, out, .seed = 1);
    td_compile(model, .optimizer = td_sgd(), .loss = TD_MEAN_SQUARED_ERROR, .strategy = td_mirrored(test_devices(2)));
    td_train_on_batch(model, ROWS, rows, targets, NULL);
    assert_string_equal(td_error(context), "");
    float mean, variance;
    td_get_weight(model, 2, &mean, 1);
    td_get_weight(model, 3, &variance, 1);
    double batch_mean = (2 * 2.0 + 3 * 5.0) / 5, batch_variance = (2 * 1.0 + 3 * (9 + 1 + 16) / 3.0) / 5;
    assert_true(fabs(mean - (0.5 * 0 + 0.5 * batch_mean)) < 1e-6);
    assert_true(fabs(variance - (0.5 * 1 + 0.5 * batch_variance)) < 1e-5);
    td_context_free(context);
}

/* A synchronized layer of a model whose replicas are otherwise separate takes its statistics from all of them. */
static void test_synchronized_beside_per_replica(void **state)
{
    (void)state;
    float rows[4] = {1, 2, 3, 6}, targets[4] = {0}, mean, variance;
    td_context *context = td_context_create(NULL);
    td_tensor *in = td_input(context, TD_SHAPE(1));
    td_tensor *together = td_batch_normalization(in, .momentum = TD_SET(0.5f), .synchronized = TD_YES);
    td_tensor *out = td_dense(td_batch_normalization(together, .momentum = TD_SET(0.5f)), 1);
    td_model *model = td_model_create(in, out, .seed = 1);
    td_compile(model, .optimizer = td_sgd(), .loss = TD_MEAN_SQUARED_ERROR, .strategy = td_mirrored(test_devices(2)));
    td_train_on_batch(model, 4, rows, targets, NULL);
    assert_string_equal(td_error(context), "");
    td_get_weight(model, 2, &mean, 1);
    td_get_weight(model, 3, &variance, 1);
    assert_true(fabs(mean - 0.5 * 3.0) < 1e-6);
    assert_true(fabs(variance - (0.5 * 1 + 0.5 * 3.5)) < 1e-5);
    td_get_weight(model, 7, &variance, 1); /* within the halves (1, 2) and (3, 6), of what the first layer made */
    double scale = 1 / (3.5 + 1e-3);
    assert_true(fabs(variance - (0.5 + 0.5 * scale * (0.25 + 2.25) / 2)) < 1e-4);
    td_context_free(context);
}

int main(void)
{
    small_data(SAMPLES, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mlp_separately),
        cmocka_unit_test(test_mlp_as_one),
        cmocka_unit_test(test_cnn_separately),
        cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_synchronized_batch_norm),
        cmocka_unit_test(test_batch_norm_per_replica),
        cmocka_unit_test(test_shards_give_the_same_bits),
        cmocka_unit_test(test_common_arguments),
        cmocka_unit_test(test_common_arguments_give_the_same_bits),
        cmocka_unit_test(test_same_bits_again),
        cmocka_unit_test(test_moving_statistics_per_replica),
        cmocka_unit_test(test_synchronized_beside_per_replica),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
