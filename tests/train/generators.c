/* Samples that functions make: the weights are those of the same samples in memory; streams of known and unknown
 * length, restarted or going on; a shuffle's buffer; what a function may get wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "data/source.h"
#include "support/small.h"

enum { SAMPLES = 203, BATCH = 16 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];

typedef struct stream {
    int64_t at, end;        /* end: the samples it has; 0: it goes round for ever */
    int64_t restarts, most; /* most: the largest number taken */
    td_status fails;        /* at sample 50 */
    int released;
} stream;

static td_status any(void *user, int64_t sample, void *to_x, void *to_y)
{
    stream *of = user;
    if (to_x)
        memcpy(to_x, x + sample * SMALL_SAMPLE, SMALL_SAMPLE * sizeof *x);
    if (to_y)
        memcpy(to_y, y + sample, sizeof *y);
    return sample == 50 ? of->fails : TD_OK;
}

static td_status next(void *user, void *to_x, void *to_y)
{
    stream *of = user;
    if (of->end && of->at == of->end)
        return TD_STOPPED;
    of->most = of->at > of->most ? of->at : of->most;
    return any(user, of->at++ % SAMPLES, to_x, to_y);
}

static td_status restart(void *user)
{
    stream *of = user;
    of->at = 0;
    of->restarts++;
    return TD_OK;
}

static void release(void *user)
{
    ((stream *)user)->released++;
}

static td_shape shape(void)
{
    return TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
}

typedef struct run {
    td_choice shuffle;
    int64_t buffer, steps;
    int epochs;
    double split;
    td_choice drop;
    const char *devices;
} run;

static float *trained(td_data *data, run r, td_epoch *last)
{
    int64_t count;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){.devices = r.devices, .shards = 2});
    td_fit(model, data, .batch_size = BATCH, .epochs = r.epochs, .shuffle = r.shuffle, .shuffle_buffer = r.buffer,
           .steps_per_epoch = r.steps, .validation_split = r.split, .drop_remainder = r.drop, .seed = 4, .last = last);
    assert_string_equal(td_error(context), "");
    float *weights = small_weights(model, &count);
    assert_true(count > 1000);
    td_context_free(context);
    return weights;
}

static void expect_same(float *a, float *b)
{
    assert_memory_equal(a, b, 1000 * sizeof *a);
    free(a);
    free(b);
}

static td_data *arrays(int64_t samples)
{
    return td_arrays(samples, x, shape(), .y = y);
}

static void test_any_sample(void **state)
{
    (void)state;
    stream of = {0};
    run r = {.epochs = 2};
    td_data *data = td_generator(shape(), .read = any, .samples = SAMPLES, .user = &of, .release = release);
    expect_same(trained(data, r, NULL), trained(arrays(SAMPLES), r, NULL));
    assert_int_equal(of.released, 1);
}

static void test_a_stream_of_known_length(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu:0", "cpu:0,cpu:1"};
    for (int d = 0; d < 2; d++)
        for (int64_t buffer = 0; buffer < 40; buffer += 13) {
            stream of = {.end = SAMPLES};
            run r = {.epochs = 3, .buffer = buffer, .devices = devices[d]}, ordered = r;
            ordered.shuffle = buffer ? TD_YES : TD_NO; /* a stream is not shuffled whole */
            td_data *data = td_generator(shape(), .next = next, .restart = restart, .samples = SAMPLES, .user = &of);
            expect_same(trained(data, r, NULL), trained(arrays(SAMPLES), ordered, NULL));
            assert_int_equal(of.restarts, 3);
        }
}

static void test_a_stream_is_counted(void **state)
{
    (void)state;
    stream of = {.end = SAMPLES};
    run r = {.epochs = 2, .shuffle = TD_NO, .split = 40};
    td_epoch last, in_memory;
    td_data *data = td_generator(shape(), .next = next, .restart = restart, .user = &of);
    assert_int_equal(td_data_samples(data), -1);
    expect_same(trained(data, r, &last), trained(arrays(SAMPLES), r, &in_memory));
    assert_int_equal(last.logs.count, in_memory.logs.count);
    for (int i = 0; i < last.logs.count; i++)
        assert_true(last.logs.entry[i].value == in_memory.logs.entry[i].value);
    assert_int_equal(of.restarts, 5); /* to count, and for two epochs and their validation */
}

/* Twice 5 steps of 16 are the first 160 samples, in the stream's order. */
static void test_an_endless_stream_goes_on(void **state)
{
    (void)state;
    stream of = {0};
    run r = {.epochs = 2, .steps = 5}, whole = {.epochs = 1, .steps = 10, .shuffle = TD_NO};
    td_epoch last;
    td_data *data = td_generator(shape(), .next = next, .user = &of);
    expect_same(trained(data, r, &last), trained(arrays(160), whole, NULL));
    assert_int_equal(of.at, 160);
    assert_int_equal(last.samples, 80);
}

static void test_stages_over_a_stream(void **state)
{
    (void)state;
    stream of = {.end = SAMPLES};
    run r = {.epochs = 3, .buffer = 20};
    for (int kind = 0; kind < 2; kind++) {
        td_data *data = td_generator(shape(), .next = next, .restart = restart, .user = &of), *plain = arrays(SAMPLES);
        if (kind == 0)
            expect_same(trained(td_cache(data), r, NULL), trained(plain, r, NULL));
        else
            expect_same(trained(td_augment(data, .flip = TD_FLIP_BOTH, .crop = 1), r, NULL),
                        trained(td_augment(plain, .flip = TD_FLIP_BOTH, .crop = 1), r, NULL));
    }
}

static void test_an_uneven_batch_is_left_out(void **state)
{
    (void)state;
    run r = {.epochs = 1, .shuffle = TD_NO, .drop = TD_YES}, whole = {.epochs = 1, .shuffle = TD_NO};
    td_epoch last;
    expect_same(trained(arrays(SAMPLES), r, &last), trained(arrays(SAMPLES / BATCH * BATCH), whole, NULL));
    assert_int_equal(last.samples, SAMPLES / BATCH * BATCH);
    assert_int_equal(last.steps, SAMPLES / BATCH);
}

/* ---- the order of a buffer ---- */

static void test_a_buffer_s_order(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    int64_t order[COUNT], again[COUNT];
    for (int64_t buffer = 1; buffer <= 2 * COUNT; buffer = buffer * 3 + 1) {
        bool seen[COUNT] = {false};
        int moved = 0;
        assert_int_equal(tdi_buffered_order(order, COUNT, buffer, 7, 3, NULL), TD_OK);
        assert_int_equal(tdi_buffered_order(again, COUNT, buffer, 7, 3, NULL), TD_OK);
        assert_memory_equal(order, again, sizeof order);
        for (int i = 0; i < COUNT; i++) {
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
            assert_true(order[i] < i + buffer);
            moved += order[i] != i;
        }
        assert_true(buffer == 1 ? moved == 0 : moved > COUNT / 3);
        assert_int_equal(tdi_buffered_order(again, COUNT, buffer, 7, 4, NULL), TD_OK);
        if (buffer > 1)
            assert_memory_not_equal(order, again, sizeof order);
    }
}

/* ---- what goes wrong ---- */

static void expect_failure(td_data *data, int64_t steps, int epochs, td_status status, const char *word)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    assert_int_equal(td_fit(model, data, .batch_size = BATCH, .steps_per_epoch = steps, .epochs = epochs), status);
    if (!strstr(td_error(context), word))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), word);
    td_context_free(context);
}

static void test_failures(void **state)
{
    (void)state;
    stream of = {.end = SAMPLES, .fails = TD_IO};
    expect_failure(td_generator(shape(), .next = next, .user = &of), 10, 1, TD_IO, "sample 50: the generator's");
    expect_failure(td_generator(shape(), .read = any, .samples = SAMPLES, .user = &of), 0, 1, TD_IO, "sample 50");
    of = (stream){.end = 100};
    expect_failure(td_generator(shape(), .next = next, .user = &of), 5, 2, TD_INVALID_ARGUMENT,
                   "ended after 100 samples");
    of = (stream){.end = 100};
    expect_failure(td_generator(shape(), .next = next, .user = &of), 0, 1, TD_INVALID_ARGUMENT, "steps_per_epoch");
    of = (stream){.end = 100};
    expect_failure(td_generator(shape(), .next = next, .restart = restart, .samples = 120, .user = &of), 0, 1,
                   TD_INVALID_ARGUMENT, "ended after 100 samples");
    expect_failure(td_generator(shape(), .user = &of), 1, 1, TD_INVALID_ARGUMENT, "one of .read and .next");
    expect_failure(td_generator(shape(), .read = any, .user = &of), 1, 1, TD_INVALID_ARGUMENT, "samples is 0");
    expect_failure(td_generator(TD_SHAPE(0), .next = next, .user = &of), 1, 1, TD_INVALID_ARGUMENT, "x_shape");
    expect_failure(td_generator(shape(), .next = next, .targets = TD_NO, .user = &of), 1, 1, TD_INVALID_ARGUMENT,
                   "holds no targets");
    td_context *context = td_context_create(NULL);
    td_data *data = td_generator(shape(), .next = next, .samples = 9, .user = &of);
    float one[SMALL_SAMPLE];
    assert_int_equal(td_data_read(context, data, NULL, 1, one, NULL), TD_UNSUPPORTED);
    td_data_release(data);
    td_context_free(context);
}

int main(void)
{
    small_data(SAMPLES, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_sample),           cmocka_unit_test(test_a_stream_of_known_length),
        cmocka_unit_test(test_a_stream_is_counted),  cmocka_unit_test(test_an_endless_stream_goes_on),
        cmocka_unit_test(test_stages_over_a_stream), cmocka_unit_test(test_an_uneven_batch_is_left_out),
        cmocka_unit_test(test_a_buffer_s_order),     cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
