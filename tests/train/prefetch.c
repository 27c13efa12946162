/* Batches made ahead: the same weights for any number of threads and replicas; a failure belongs to its step; time that
 * the devices wait is told; what is in memory is not made ahead. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tandem/stages.h>

#include "data/sample_reader.h"
#include "support/devices.h"
#include "support/small.h"

enum { SAMPLES = 203, BATCH = 16 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];

/* ---- a source whose samples are made when they are asked for ---- */

typedef struct made_source {
    tdi_sample_reader reader;
    int64_t bad;        /* the sample that cannot be read; -1: none */
    long pause;         /* nanoseconds an image takes */
    atomic_int threads; /* that have read at the same time, at most */
    atomic_int reading;
    td_data data;
} made_source;

static void wait_a_moment(long nanoseconds)
{
    struct timespec pause = {.tv_nsec = nanoseconds};
    if (nanoseconds)
        nanosleep(&pause, NULL);
}

static td_status made_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    made_source *made = (made_source *)reader;
    int now = atomic_fetch_add(&made->reading, 1) + 1;
    if (now > atomic_load(&made->threads))
        atomic_store(&made->threads, now);
    if (column == 0)
        wait_a_moment(made->pause);
    if (column == 0)
        memcpy(to, x + row * SMALL_SAMPLE, SMALL_SAMPLE * sizeof *x);
    else
        *(float *)to = y[row];
    atomic_fetch_sub(&made->reading, 1);
    return row == made->bad ? tdi_fail(error, TD_BAD_FILE, "made: sample %d is bad", (int)row) : TD_OK;
}

static void made_release(tdi_source *source)
{
    (void)source;
}

/* Borrowed: it outlives the td_fit. */
static td_data *made_data(made_source *made)
{
    tdi_source *source = &made->reader.source;
    *made = (made_source){.bad = -1};
    made->reader.read = made_read;
    *source = (tdi_source){.name = "made", .samples = SAMPLES, .n_x = 1, .n_y = 1};
    source->gather = tdi_sample_reader_gather;
    source->release = made_release;
    source->columns[0] = (tdi_column){.name = "x", .dtype = TD_FLOAT32, .scale = 1};
    source->columns[0].shape = TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
    source->columns[1] = (tdi_column){.name = "y", .dtype = TD_FLOAT32, .scale = 1};
    made->data.source = source;
    atomic_init(&made->data.references, 2);
    return &made->data;
}

/* ---- the same bits ---- */

static float *trained(int threads, const char *devices, td_choice shuffle, int64_t steps_per_execution, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_CNN, td_adam(), (td_strategy){.devices = devices, .shards = 2});
    td_compile(model, .steps_per_execution = steps_per_execution);
    made_source made;
    td_data *data = td_augment(made_data(&made), .flip = TD_FLIP_BOTH, .crop = 1, .shift = 0.1f, .rotation = 0.1f,
                               .brightness = 0.1f, .contrast = 0.1f, .value_max = 10);
    td_fit(model, data, .epochs = 3, .batch_size = BATCH, .shuffle = shuffle, .seed = 3, .input_threads = threads);
    assert_string_equal(td_error(context), "");
    assert_true(atomic_load(&made.threads) <= threads || !threads);
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static void test_threads_and_replicas_change_no_bit(void **state)
{
    (void)state;
    const char *const devices[] = {test_devices(1), test_devices(2)};
    static const int threads[] = {1, 2, 4, 0};
    int64_t count;
    for (td_choice shuffle = TD_YES; shuffle <= TD_NO; shuffle++) {
        float *first = trained(1, test_devices(1), shuffle, 0, &count);
        for (int d = 0; d < 2; d++)
            for (int t = 0; t < 4; t++)
                small_expect_same(first, trained(threads[t], devices[d], shuffle, 0, &count), count);
        small_expect_same(first, trained(2, test_devices(2), shuffle, 1, &count), count);
        small_expect_same(first, trained(2, test_devices(1), shuffle, 5, &count), count);
        free(first);
    }
}

/* Without augmentation: what rows in memory give. */
static float *plain(bool in_memory, int64_t batch, int64_t *count, double *loss)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    td_shape shape = TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
    made_source made;
    td_logs logs;
    td_epoch last;
    for (int i = 0; i < 2; i++) {
        td_data *data = in_memory ? td_arrays(SAMPLES, x, shape, .y = y) : made_data(&made);
        if (i == 0)
            td_fit(model, data, .epochs = 2, .batch_size = batch, .validation_split = 50, .seed = 3, .last = &last);
        else
            td_evaluate(model, data, &logs, .batch_size = batch);
    }
    assert_string_equal(td_error(context), "");
    *loss = logs.entry[0].value + last.logs.entry[2].value;
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static void test_made_ahead_is_as_in_memory(void **state)
{
    (void)state;
    const int64_t batches[] = {1, 7, 16, 152, 153, 1000};
    int64_t count;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        double loss, loss_in_memory;
        float *first = plain(true, batches[i], &count, &loss_in_memory);
        small_expect_same(first, plain(false, batches[i], &count, &loss), count);
        assert_true(loss == loss_in_memory);
        free(first);
    }
}

/* ---- what goes wrong ---- */

static void test_a_failure_belongs_to_its_step(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, SMALL_CNN, td_adam(), (td_strategy){.devices = test_devices(2)});
        made_source made;
        td_data *data = made_data(&made);
        made.bad = 5 * BATCH + 2;
        assert_int_equal(td_fit(model, data, .batch_size = BATCH, .shuffle = TD_NO, .input_threads = threads),
                         TD_BAD_FILE);
        assert_non_null(strstr(td_error(context), "sample 82 is bad"));
        assert_int_equal(model->state->iteration, 5);
        td_context_free(context);
    }
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    made_source made;
    assert_int_equal(td_fit(model, made_data(&made), .input_threads = -1), TD_INVALID_ARGUMENT);
    td_context_free(context);
}

static void test_it_can_be_stopped(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    made_source made;
    td_data *data = made_data(&made);
    made.pause = 1000000;
    assert_int_equal(td_fit(model, data, .batch_size = 4, .epochs = 1000, .callbacks = TD_CALLBACKS(small_stop_soon())),
                     TD_STOPPED);
    td_context_free(context);
}

/* ---- waiting ---- */

static td_epoch epoch_of(td_model *model, td_data *data, int threads)
{
    td_epoch last;
    assert_int_equal(td_fit(model, data, .batch_size = BATCH, .input_threads = threads, .last = &last), TD_OK);
    assert_true(last.seconds_waiting >= 0 && last.seconds_waiting <= last.seconds);
    return last;
}

/* The samples of an epoch sleep for a second (half of it on two threads), its steps need a few milliseconds: the
 * devices wait, and are told to have waited at least for a part of it, however busy the machine is. */
static void test_waiting_is_told(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){.devices = test_devices(1)});
    made_source made;
    for (int threads = 1; threads <= 2; threads++) {
        td_data *data = made_data(&made);
        made.pause = 5000000;
        td_epoch epoch = epoch_of(model, data, threads);
        assert_true(epoch.seconds_waiting > 0.1);
        assert_int_equal(atomic_load(&made.threads), threads);
    }
    td_context_free(context);
}

int main(void)
{
    small_data(SAMPLES, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_and_replicas_change_no_bit),
        cmocka_unit_test(test_made_ahead_is_as_in_memory),
        cmocka_unit_test(test_a_failure_belongs_to_its_step),
        cmocka_unit_test(test_it_can_be_stopped),
        cmocka_unit_test(test_waiting_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
