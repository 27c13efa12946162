/* td_map: what a function makes of samples, of any shape and type; the same bits on any number of threads and replicas,
 * with a cache before it or behind it, and from a stream; draws by the key; what a function may get wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "base/rng.h"
#include "data/refusal.h"
#include "files/scratch.h"
#include "support/devices.h"
#include "support/small.h"

enum { SAMPLES = 203, BATCH = 16, EPOCHS = 3 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];

/* What has been made, by whom it was asked for. */
typedef struct maker {
    atomic_int calls, trained_on, released;
    uint64_t keys[SAMPLES]; /* of the last pass */
    td_status fails;        /* at sample 50 */
} maker;

static td_shape shape(void)
{
    return TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
}

static td_data *arrays(void)
{
    return td_arrays(SAMPLES, x, shape(), .y = y);
}

static void release(void *user)
{
    atomic_fetch_add(&((maker *)user)->released, 1);
}

/* Noise by the key, in training, and another class by the way. */
static td_status add_noise(void *user, const td_map_sample *sample)
{
    maker *of = user;
    float *to = sample->to_x[0];
    tdi_random random = tdi_random_create(sample->key, 0);
    atomic_fetch_add(&of->calls, 1);
    atomic_fetch_add(&of->trained_on, sample->training);
    of->keys[sample->number] = sample->key;
    for (int i = 0; i < SMALL_SAMPLE; i++)
        to[i] = sample->x[0][i] + (float)(0.1 * tdi_random_normal(&random));
    if (sample->to_y)
        *(uint8_t *)sample->to_y[0] = (uint8_t)((int)(sample->y[0][0] + 1) % SMALL_CLASSES);
    return sample->number == 50 ? of->fails : TD_OK;
}

/* With new classes, or those that there are. */
static td_data *noisy(td_data *data, maker *of, bool classes, td_choice random)
{
    return td_map(data, .function = add_noise, .user = of, .release = release, .random = random,
                  .y = classes ? TD_COLUMNS({.shape = TD_SHAPE(1), .dtype = TD_UINT8}) : NULL);
}

static float *trained(td_data *data, int threads, const char *devices, td_choice shuffle, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){.devices = devices, .shards = 2});
    td_fit(model, data, .epochs = EPOCHS, .batch_size = BATCH, .seed = 3, .input_threads = threads, .shuffle = shuffle);
    assert_string_equal(td_error(context), "");
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static void test_threads_and_replicas_change_no_bit(void **state)
{
    (void)state;
    int64_t count;
    for (int classes = 0; classes < 2; classes++) {
        maker of = {0};
        float *first = trained(noisy(arrays(), &of, classes, TD_YES), 1, test_devices(1), TD_YES, &count);
        assert_int_equal(atomic_load(&of.calls), EPOCHS * SAMPLES);
        assert_int_equal(atomic_load(&of.trained_on), EPOCHS * SAMPLES);
        assert_int_equal(atomic_load(&of.released), 1);
        for (int threads = 2; threads <= 4; threads++)
            small_expect_same(first,
                              trained(noisy(arrays(), &of, classes, TD_YES), threads,
                                      threads % 2 ? test_devices(1) : test_devices(2), TD_YES, &count),
                              count);
        float *other = trained(noisy(arrays(), &of, classes, TD_NO), 2, test_devices(1), TD_YES, &count);
        assert_memory_not_equal(first, other, (size_t)count * sizeof *first);
        free(other);
        free(first);
    }
}

/* A sample's key is its own: in training each epoch another, else always the same. */
static void test_keys(void **state)
{
    (void)state;
    static maker epochs[3], evaluated[2];
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    for (int i = 0; i < 3; i++)
        td_fit(model, noisy(arrays(), &epochs[i], false, TD_YES), .seed = 9, .initial_epoch = i % 2,
               .epochs = i % 2 + 1);
    for (int i = 0; i < 2; i++)
        td_evaluate(model, noisy(arrays(), &evaluated[i], false, i ? TD_YES : TD_NO), NULL);
    assert_string_equal(td_error(context), "");
    assert_memory_equal(epochs[0].keys, epochs[2].keys, sizeof epochs[0].keys);
    assert_memory_equal(evaluated[0].keys, evaluated[1].keys, sizeof evaluated[0].keys);
    assert_int_equal(atomic_load(&evaluated[1].trained_on), 0);
    for (int i = 0; i < SAMPLES; i++) {
        assert_true(epochs[0].keys[i] != epochs[1].keys[i] && epochs[0].keys[i] != evaluated[0].keys[i]);
        assert_true(!i || epochs[0].keys[i] != epochs[0].keys[i - 1]);
    }
    td_context_free(context);
}

static void test_caches_change_no_bit(void **state)
{
    (void)state;
    static maker plain, before, behind, in_file, on_augmented;
    int64_t count;
    float *first = trained(noisy(arrays(), &plain, true, TD_NO), 2, test_devices(1), TD_YES, &count);
    const char *file = scratch_path("map.cache");
    small_expect_same(
        first, trained(noisy(td_cache(arrays()), &before, true, TD_NO), 2, test_devices(1), TD_YES, &count), count);
    small_expect_same(
        first, trained(td_cache(noisy(arrays(), &behind, true, TD_NO)), 2, test_devices(1), TD_YES, &count), count);
    small_expect_same(
        first,
        trained(td_cache(noisy(arrays(), &in_file, true, TD_NO), .file = file), 2, test_devices(1), TD_YES, &count),
        count);
    assert_int_equal(atomic_load(&plain.calls), EPOCHS * SAMPLES);
    assert_int_equal(atomic_load(&before.calls), EPOCHS * SAMPLES);
    assert_int_equal(atomic_load(&behind.calls), SAMPLES);
    free(first);
    expect_refusal(td_cache(noisy(arrays(), &behind, true, TD_YES)), "cache first, then augment or map");
    td_data *both = noisy(td_augment(arrays(), .flip = TD_FLIP_BOTH), &on_augmented, true, TD_NO);
    first = trained(td_data_retain(both), 1, test_devices(1), TD_YES, &count);
    small_expect_same(first, trained(both, 3, test_devices(1), TD_YES, &count), count);
    free(first);
}

/* ---- other shapes and types ---- */

enum { SIDE = 3 };

static td_status make_others(void *user, const td_map_sample *sample)
{
    float *mean = sample->to_x[0];
    int32_t *number = sample->to_x[1];
    double *twice = sample->to_y ? sample->to_y[0] : NULL;
    (void)user;
    for (int i = 0; i < SIDE; i++)
        mean[i] = sample->x[0][i] / 2;
    *number = (int32_t)sample->number;
    for (int i = 0; twice && i < 2; i++)
        twice[i] = 2 * (double)sample->y[0][0] + i;
    return TD_OK;
}

static td_data *others(td_data *data)
{
    return td_map(data, .function = make_others,
                  .x = TD_COLUMNS({.shape = TD_SHAPE(SIDE)}, {.shape = TD_SHAPE(1), .dtype = TD_INT32}),
                  .y = TD_COLUMNS({.shape = TD_SHAPE(2), .dtype = TD_FLOAT64}));
}

static td_model *model_of_others(td_context *context)
{
    td_tensor *means = td_input(context, TD_SHAPE(SIDE)), *number = td_input(context, TD_SHAPE(1), .dtype = TD_INT32);
    td_tensor *both = td_concatenate(TD_TENSORS(means, td_flatten(td_embedding(number, SAMPLES, 2))));
    td_model *model = td_model_create(NULL, NULL, .inputs = TD_TENSORS(means, number),
                                      .outputs = TD_TENSORS(td_dense(both, 2)), .seed = 2);
    if (model)
        td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR);
    return model;
}

static void test_other_shapes_and_types(void **state)
{
    (void)state;
    td_shape of;
    float means[2 * SIDE], targets[2 * 2];
    const int64_t rows[] = {77, 3};
    td_context *context = td_context_create(NULL);
    td_data *data = others(arrays());
    td_data_x_shape(data, &of);
    assert_true(of.rank == 1 && of.dim[0] == SIDE);
    assert_int_equal(td_data_read(context, data, rows, 2, means, targets), TD_OK);
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < SIDE; i++)
            assert_true(means[r * SIDE + i] == x[rows[r] * SMALL_SAMPLE + i] / 2);
        assert_true(targets[2 * r] == 2 * y[rows[r]] && targets[2 * r + 1] == 2 * y[rows[r]] + 1);
    }
    td_data_release(data);
    td_model *model = model_of_others(context);
    static float of_both[2][2 * SAMPLES];
    td_fit(model, others(arrays()), .epochs = 2, .batch_size = BATCH);
    td_predict(model, others(arrays()), of_both[0], 2 * SAMPLES);
    td_predict(model, others(td_arrays(SAMPLES, x, shape())), of_both[1], 2 * SAMPLES); /* without targets */
    assert_string_equal(td_error(context), "");
    assert_memory_equal(of_both[0], of_both[1], sizeof of_both[0]);
    td_context_free(context);
}

/* ---- streams ---- */

static td_status next(void *user, void *const *to_x, void *const *to_y)
{
    int64_t *at = user;
    if (*at == SAMPLES)
        return TD_STOPPED;
    memcpy(to_x[0], x + *at * SMALL_SAMPLE, SMALL_SAMPLE * sizeof *x);
    memcpy(to_y[0], y + *at, sizeof *y);
    ++*at;
    return TD_OK;
}

static td_status restart(void *user)
{
    *(int64_t *)user = 0;
    return TD_OK;
}

static void test_a_stream_is_mapped(void **state)
{
    (void)state;
    int64_t count, at = 0;
    td_logs made, in_memory;
    for (int classes = 0; classes < 2; classes++) {
        maker of = {0}, other = {0};
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
        td_data *stream = td_generator(shape(), .next = next, .restart = restart, .user = &at);
        td_evaluate(model, noisy(td_data_retain(stream), &of, classes, TD_NO), &made);
        td_evaluate(model, noisy(arrays(), &other, classes, TD_NO), &in_memory);
        assert_string_equal(td_error(context), "");
        assert_true(made.entry[0].value == in_memory.entry[0].value);
        float *first = trained(noisy(arrays(), &other, classes, TD_YES), 2, test_devices(1), TD_NO, &count);
        small_expect_same(first, trained(noisy(stream, &of, classes, TD_YES), 3, test_devices(1), TD_NO, &count),
                          count);
        free(first);
        td_context_free(context);
    }
}

/* ---- what goes wrong ---- */

static void expect_failure(td_data *data, td_status status, const char *word)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    assert_int_equal(td_fit(model, data, .batch_size = BATCH), status);
    if (!strstr(td_error(context), word))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), word);
    td_context_free(context);
}

static void test_failures(void **state)
{
    (void)state;
    maker of = {.fails = TD_IO};
    expect_failure(noisy(arrays(), &of, true, TD_NO), TD_IO,
                   "td_arrays: sample 50: td_map's function returned input/output error");
    expect_failure(noisy(td_shard(td_repeat(arrays(), 2), 1, 2), &of, true, TD_YES), TD_IO, "sample 101: td_map's");
    of.fails = TD_STOPPED;
    expect_failure(noisy(arrays(), &of, true, TD_NO), TD_INVALID_ARGUMENT, "td_map's function returned stopped");
    atomic_store(&of.released, 0);
    expect_refusal(td_map(arrays(), .user = &of, .release = release), "there is no .function");
    expect_refusal(td_map(td_open("no/such"), .function = make_others, .user = &of, .release = release), "no/such");
    expect_refusal(td_map(NULL, .function = make_others, .user = &of, .release = release), "no data");
    assert_int_equal(atomic_load(&of.released), 3);
    expect_refusal(td_map(arrays(), .function = make_others, .x = TD_COLUMNS({.shape = TD_SHAPE(0)})),
                   "td_map: the shape, the dtype or the scale of x0 is none");
    expect_refusal(td_map(arrays(), .function = make_others, .x = (td_column[]){{.shape = {.rank = -1}}}),
                   ".x is an empty list");
}

int main(void)
{
    small_data(SAMPLES, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_and_replicas_change_no_bit),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_caches_change_no_bit),
        cmocka_unit_test(test_other_shapes_and_types),
        cmocka_unit_test(test_a_stream_is_mapped),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
