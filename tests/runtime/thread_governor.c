/* When one thread takes the place of all, and when all come back: times are made up. And that the place is taken with
 * the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/runtime_struct.h"
#include "support/devices.h"
#include "support/small.h"

/* Windows of steps that take so long; how many of them one thread made. */
static int live(tdi_thread_governor *governor, int windows, double together, double in_turn)
{
    int alone = 0;
    for (int i = 0; i < windows; i++) {
        bool one = tdi_governor_in_turn(governor);
        double seconds = one ? in_turn : together;
        alone += one;
        double steps = floor(6e-3 / seconds) + 1;
        tdi_governor_note(governor, steps, steps * seconds);
    }
    return alone;
}

static void undisturbed_threads_stay_together(void **state)
{
    (void)state;
    tdi_thread_governor governor = {0};
    assert_int_equal(live(&governor, 1000, 1e-3, 2e-3), 1); /* at first, when nothing is known */
    assert_int_equal(live(&governor, 1000, 1.2e-3, 2e-3), 0);
    assert_true(tdi_governor_steps(&governor) >= 3 && tdi_governor_steps(&governor) <= 5);
}

static void one_takes_over_while_it_is_faster(void **state)
{
    (void)state;
    tdi_thread_governor governor = {0};
    live(&governor, 10, 1e-3, 2e-3);
    int alone = live(&governor, 1000, 5e-3, 2e-3);
    assert_true(alone > 950);
    alone = live(&governor, 1000, 1e-3, 2e-3);
    assert_true(alone < 50);
    assert_int_equal(live(&governor, 1000, 1e-3, 2e-3), 0);
}

/* Two threads are more than the machine's host has room for: now and then one of them stands still, one alone does not.
 * In between all are the faster, and are looked at again and again. */
static void one_takes_over_where_all_are_halted(void **state)
{
    (void)state;
    tdi_thread_governor governor = {0};
    double all = 0, one = 0;
    for (int i = 0; i < 10000; i++) {
        bool in_turn = tdi_governor_in_turn(&governor), halted = !in_turn && i % 4 == 3;
        double seconds = in_turn ? 6e-3 : halted ? 50e-3 : 6e-3;
        *(in_turn ? &one : &all) += seconds;
        tdi_governor_note(&governor, in_turn ? 3 : 6, seconds);
    }
    assert_true(all < 0.1 * one);
}

static void one_takes_over_from_the_start(void **state)
{
    (void)state;
    tdi_thread_governor governor = {0};
    assert_true(live(&governor, 1000, 5e-3, 2e-3) > 950);
}

/* A machine that has become slower as a whole. */
static void one_that_is_slower_is_rarely_tried(void **state)
{
    (void)state;
    tdi_thread_governor governor = {0};
    live(&governor, 10, 1e-3, 2e-3);
    assert_true(live(&governor, 1000, 2e-3, 4e-3) < 30);
    live(&governor, 10000, 2e-3, 4e-3);
    assert_int_equal(live(&governor, 1000, 2e-3, 4e-3), 0);
}

/* Of `count` calls of `rows` after pauses: how many one thread makes, when they take so long in either way. */
static int make_calls(tdi_short_calls *calls, int count, int64_t rows, double woken, double alone)
{
    int so_far = 0;
    for (int i = 0; i < count; i++) {
        bool one = tdi_short_calls_alone(calls, rows);
        so_far += one;
        tdi_short_calls_note(calls, one, (one ? alone : woken) * (i % 10 ? 1 : 9)); /* now and then either takes long */
    }
    return so_far;
}

static void short_calls_after_pauses_wake_nobody(void **state)
{
    (void)state;
    tdi_short_calls calls = {0};
    assert_true(make_calls(&calls, 1000, 1, 1e-4, 1.1e-4) > 950);
    assert_true(make_calls(&calls, 100, 8, 3e-4, 6.1e-4) <= 3); /* of more rows: nothing is known of them */
    assert_true(make_calls(&calls, 1000, 1, 1e-4, 1.5e-4) < 20);
    assert_true(make_calls(&calls, 10000, 1, 1e-4, 1.1e-4) > 5000); /* after a while it is tried again */
    assert_true(make_calls(&calls, 100, 3, 4e-3, 1e-4) > 95);       /* a core is another process's: soon seen */
    assert_int_equal(make_calls(&calls, 1000, 2, 6e-3, 3e-3), 0);
}

static void threads_fall_asleep_between_calls(void **state)
{
    (void)state;
    tdi_idle_threads idle = {0};
    int asleep = 0;
    double now = 1;
    for (int i = 0; i < 100; i++, now += 1e-4) { /* one after the other */
        asleep += tdi_idle_threads_begin(&idle, now);
        tdi_idle_threads_end(&idle, now, now + 0.9e-4);
    }
    assert_true(asleep > 10 && asleep < 40);
    for (int i = 0; i < 100; i++, now += 1e-3) {
        assert_true(tdi_idle_threads_begin(&idle, now + 2e-4));
        tdi_idle_threads_end(&idle, now + 2e-4, now + 3e-4);
    }
}

enum { SAMPLES = 40, LSTM = -1, LSTM_OF_ONE_ROW = -2 };

static int64_t batch_of(int kind)
{
    return kind == LSTM_OF_ONE_ROW ? 1 : 7;
}

/* One whose threads share its units, or for one row its depth, and wait for each other's steps. */
static td_model *lstm_model(td_context *context, int kind)
{
    td_tensor *in = td_input(context, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS));
    td_tensor *steps = td_reshape(in, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH * SMALL_CHANNELS));
    td_tensor *out = td_lstm(td_lstm(steps, kind == LSTM ? 48 : 128, .return_sequences = TD_YES), 32);
    td_model *model = td_model_create(in, td_dense(out, SMALL_CLASSES), .seed = 5);
    td_compile(model, .optimizer = td_adam(), .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
               .strategy = td_mirrored(test_devices(0)));
    return model;
}

static float *train(int kind, bool in_turn, int64_t *count)
{
    static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];
    for (int i = 0; i < SAMPLES * SMALL_SAMPLE; i++)
        x[i] = (float)(i * 37 % 101) * 0.02f - 1;
    for (int i = 0; i < SAMPLES; i++)
        y[i] = (float)(i % SMALL_CLASSES);
    td_context *context = td_context_create(NULL);
    td_model *model =
        kind < 0 ? lstm_model(context, kind)
                 : small_model(context, (small_kind)kind, td_adam(), (td_strategy){.devices = test_devices(2)});
    tdi_runtime *runtime;
    assert_int_equal(tdi_runtime_for(model, TDI_TRAIN, batch_of(kind), &runtime, NULL), TD_OK);
    runtime->modes[TDI_TRAIN].governor = (tdi_thread_governor){.in_turn = in_turn, .wait = 1e9};
    runtime->modes[TDI_PREDICT].governor = runtime->modes[TDI_TRAIN].governor;
    td_fit(model, td_arrays(SAMPLES, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y), .epochs = 3,
           .batch_size = batch_of(kind));
    float *weights = small_weights(model, count), *all = realloc(weights, (size_t)(*count + SMALL_CLASSES * 7) * 4);
    assert_non_null(all);
    td_predict_on_batch(model, 7, x, all + *count);
    *count += SMALL_CLASSES * 7;
    assert_string_equal(td_error(context), "");
    td_context_free(context);
    return all;
}

static void one_thread_makes_the_same_bits(void **state)
{
    (void)state;
    const int kinds[] = {SMALL_MLP, SMALL_CNN, SMALL_DROPOUT, SMALL_NORM, SMALL_SYNC, LSTM, LSTM_OF_ONE_ROW};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int64_t count, again;
        float *together = train(kinds[i], false, &count);
        float *in_turn = train(kinds[i], true, &again);
        assert_int_equal(count, again);
        assert_memory_equal(together, in_turn, (size_t)count * sizeof(float));
        free(together);
        free(in_turn);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undisturbed_threads_stay_together),    cmocka_unit_test(one_takes_over_while_it_is_faster),
        cmocka_unit_test(one_takes_over_from_the_start),        cmocka_unit_test(one_takes_over_where_all_are_halted),
        cmocka_unit_test(one_that_is_slower_is_rarely_tried),   cmocka_unit_test(one_thread_makes_the_same_bits),
        cmocka_unit_test(short_calls_after_pauses_wake_nobody), cmocka_unit_test(threads_fall_asleep_between_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
