/* same_answers.c - what the clock chose is taken again, by whichever run: the same bits; and what the file says is
 * taken, whatever the clock would say. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <tandem/tandem.h>

#include "base/thread.h"
#include "cpu/cpu.h"
#include "files/scratch.h"
#include "support/occurrences.h"
#include "support/small.h"
#include "tune/tuning_cache_file.h"

enum { SAMPLES = 8, SIDE = 8, CHANNELS = 32, SAMPLE = SIDE * SIDE * CHANNELS };

static float x[SAMPLES * SAMPLE], y[SAMPLES], predictions[SAMPLES * SMALL_CLASSES];
static td_precision precision; /* TD_PRECISION_FILE */
static int said;               /* that float32 is what runs */
static bool predicts_first;

static void count_said(void *user, td_log_level level, const char *line)
{
    (void)user;
    said += level == TD_LOG_INFO && strstr(line, "computing in float32 instead of bfloat16: ");
}

static td_tensor *dense(td_tensor *in)
{
    return td_dense(td_dense(td_flatten(in), 40, .activation = TD_TANH), SMALL_CLASSES);
}

/* Of few samples its threads share the units, and wait for each other at every time step. */
static td_tensor *steps(td_tensor *in)
{
    return td_dense(td_lstm(td_reshape(in, TD_SHAPE(4, SAMPLE / 4)), 64), SMALL_CLASSES);
}

/* Its activations take twice the memory of its weights. */
static td_tensor *more_steps(td_tensor *in)
{
    return td_dense(td_lstm(td_reshape(in, TD_SHAPE(32, SAMPLE / 32)), 128), SMALL_CLASSES);
}

/* And of this one several times. */
static td_tensor *many_steps(td_tensor *in)
{
    return td_dense(td_lstm(td_reshape(in, TD_SHAPE(128, SAMPLE / 128)), 128), SMALL_CLASSES);
}

/* Smooth, as the others are: a sum next to zero, rounded otherwise, would have another derivative of ReLU. */
static td_tensor *convolutions(td_tensor *in)
{
    td_tensor *out = td_conv2d(in, 32, 3, .padding = TD_SAME, .activation = TD_TANH);
    out = td_conv2d(out, 32, 3, .padding = TD_SAME, .activation = TD_TANH);
    return td_dense(td_global_average_pooling2d(out), SMALL_CLASSES);
}

/* Their samples are batch-interleaved, in blocks of as many as a vector has numbers. */
static td_tensor *interleaved(td_tensor *in)
{
    td_tensor *out = td_conv2d(td_conv2d(in, 6, 1), 6, 5, .padding = TD_SAME, .activation = TD_TANH);
    out = td_conv2d(td_average_pooling2d(out, 2), 8, 3, .activation = TD_TANH);
    return td_dense(td_flatten(out), SMALL_CLASSES);
}

/* More than four million numbers, little of which a row asks for. */
static td_tensor *large_table(td_tensor *in)
{
    td_tensor *few = td_dense(td_flatten(in), 2, .activation = TD_SIGMOID);
    return td_dense(td_flatten(td_embedding(few, 70000, 64)), SMALL_CLASSES);
}

static td_model *make_model(td_context *context, td_tensor *(*network)(td_tensor *in), const char *devices, int shards)
{
    td_tensor *in = td_input(context, TD_SHAPE(SIDE, SIDE, CHANNELS));
    td_tensor *out = network(in);
    td_model *model = td_model_create(in, out, .seed = 3);
    td_compile(model, .optimizer = td_sgd(.learning_rate = 0.1f),
               .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
               .strategy = {.devices = devices, .shards = shards}, .precision = precision);
    assert_string_equal(td_error(context), "");
    return model;
}

typedef struct outcome {
    float *weights;
    int64_t count;
    char *explained;
} outcome;

static outcome train_once(td_tensor *(*network)(td_tensor *in), int shards, int64_t batch)
{
    outcome o;
    td_context *context = td_context_create(&(td_context_options){.log = count_said});
    td_model *model = make_model(context, network, "cpu", shards);
    said = 0;
    if (predicts_first)
        assert_int_equal(td_predict_on_batch(model, SAMPLES, x, predictions), TD_OK);
    td_fit(model, td_arrays(SAMPLES, x, TD_SHAPE(SIDE, SIDE, CHANNELS), .y = y), .epochs = 3, .batch_size = batch,
           .seed = 5);
    o.weights = small_weights(model, &o.count);
    o.explained = small_explained(model, batch);
    assert_string_equal(td_error(context), "");
    td_context_free(context);
    return o;
}

static void release(outcome *o)
{
    free(o->weights);
    free(o->explained);
}

/* All answers whose question begins so. */
static void mark_file(const char *question, bool unsure)
{
    const char *machine, *key;
    json_t *of_machine, *answer, *root = json_load_file(scratch_path("choices.json"), 0, NULL);
    json_object_foreach(json_object_get(root, "machines"), machine, of_machine)
        json_object_foreach(of_machine, key, answer)
    {
        if (strncmp(key, question, strlen(question)) == 0)
            json_object_set_new(answer, "unsure", json_integer(unsure));
    }
    assert_true(!root || json_dump_file(root, scratch_path("choices.json"), 0) == 0);
    json_decref(root);
}

static outcome train_by(td_tensor *(*network)(td_tensor *in), int shards, int64_t batch)
{
    outcome o = train_once(network, shards, batch);
    mark_file("", false); /* or what other tests disturb now would be timed again */
    return o;
}

static outcome train(td_tensor *(*network)(td_tensor *in), int shards)
{
    return train_by(network, shards, SAMPLES);
}

/* Makes every answer of the file whose question begins so the `index`-th candidate, at a time to be seen. */
static void edit_file(const char *question, size_t index)
{
    const char *machine, *key;
    json_t *of_machine, *answer;
    json_t *root = json_load_file(scratch_path("choices.json"), 0, NULL);
    json_object_foreach(json_object_get(root, "machines"), machine, of_machine)
        json_object_foreach(of_machine, key, answer)
    {
        if (strncmp(key, question, strlen(question)) != 0)
            continue;
        json_t *pair = json_array_get(json_object_get(answer, "us"), index);
        json_object_set(answer, "take", json_array_get(pair, 0));
        json_array_set_new(pair, 1, json_real(4321));
    }
    assert_int_equal(json_dump_file(root, scratch_path("choices.json"), 0), 0);
    json_decref(root);
}

static void test_remembered(void **state)
{
    (void)state;
#ifndef TANDEM_ONEDNN
    skip(); /* there is nothing to choose from */
#endif
    outcome first = train(convolutions, 0), again = train(convolutions, 0);
    assert_int_equal(occurrences(first.explained, "  timed"), occurrences(again.explained, "  timed before:"));
    assert_true(occurrences(again.explained, "  timed before:") >= 4);
    assert_memory_equal(first.weights, again.weights, (size_t)first.count * sizeof(float));
    outcome other[2];
    for (size_t i = 0; i < 2; i++) {
        edit_file("conv2d", i);
        other[i] = train(convolutions, 0);
        assert_true(occurrences(other[i].explained, " 4321 us") >= 4);
        assert_true(relative_difference(other[i].weights, first.weights, first.count) < 1e-5);
    }
    assert_true(occurrences(other[0].explained, " winograd") > occurrences(other[1].explained, " winograd"));
    for (size_t i = 0; i < 2; i++)
        release(&other[i]);
    release(&first);
    release(&again);
}

/* The last block of a device's samples is timed too where it is not full, without harm. Whether samples are
 * batch-interleaved in the end is for the clock to say. */
static void test_interleaved(void **state)
{
    (void)state;
    int64_t width = tdi_cpu_width(tdi_cpu_best_isa()), empty = width > 4 ? 3 : 1; /* more would not be asked about */
    int64_t rows[] = {width - 1, 2 * width - empty};
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, interleaved, "cpu:0,cpu:1", 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *explained = small_explained(model, 2 * rows[i]);
        assert_non_null(strstr(explained, "  timed"));
        free(explained);
    }
    td_context_free(context);
}

/* A step may be made by one thread or by all: the same numbers up to rounding, and the same bits for the same answer.
 */
static void check_sharing(td_tensor *(*network)(td_tensor *in), int64_t batch)
{
    outcome asked = train_by(network, 0, batch);
    edit_file("configuration", 0);
    outcome first = train_by(network, 0, batch), again = train_by(network, 0, batch);
    assert_non_null(strstr(first.explained, "so short a step is made by "));
    assert_memory_equal(first.weights, again.weights, (size_t)first.count * sizeof(float));
    for (size_t i = 0; i < 2; i++) {
        edit_file("threads for", i);
        outcome other = train_by(network, 0, batch);
        assert_non_null(strstr(other.explained, i ? " threads: timed before" : " 1 thread: timed before"));
        assert_true(relative_difference(other.weights, first.weights, first.count) < 1e-5);
        release(&other);
    }
    release(&asked);
    release(&first);
    release(&again);
}

/* Answers whose question begins so. */
static int questions(const char *question)
{
    const char *machine, *key;
    json_t *of_machine, *answer, *root = json_load_file(scratch_path("choices.json"), 0, NULL);
    int count = 0;
    json_object_foreach(json_object_get(root, "machines"), machine, of_machine)
        json_object_foreach(of_machine, key, answer) count += strncmp(key, question, strlen(question)) == 0;
    json_decref(root);
    return count;
}

/* Threads are asked about once for batches of 5 to 8 rows. */
static void check_batches_alike(int asked_before)
{
    for (int64_t batch = 8; batch > 4; batch--) {
        outcome o = train_by(dense, 0, batch);
        edit_file("configuration", 0);
        release(&o);
        o = train_by(dense, 0, batch);
        release(&o);
    }
    assert_int_equal(questions("threads for up to 8 rows of step"), asked_before + 1);
}

static void test_sharing(void **state)
{
    (void)state;
    if (tdi_cores_allowed() < 2)
        skip();
    int asked_before = questions("threads for up to 8 rows of step"); /* of other models */
    check_sharing(dense, SAMPLES);
    check_sharing(steps, 3); /* and a last batch of 2 */
    check_batches_alike(asked_before);
}

/* Of large models predictions are asked about, which need no second memory for gradients, and steps that train are not.
 */
static void test_large_models(void **state)
{
    (void)state;
    if (tdi_cores_allowed() < 2)
        skip();
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, large_table, "cpu", 0);
    remove(scratch_path("choices.json"));
    assert_int_equal(td_train_on_batch(model, 8, x, y, NULL), TD_OK);
    assert_int_equal(td_predict_on_batch(model, 8, x, predictions), TD_OK);
    td_context_free(context);
    assert_int_equal(questions("threads for up to 8 rows of step"), 1);
}

/* Cores may take rows of the batch or share ops: the same numbers up to rounding, the same bits for the same answer. */
static void check_configurations(td_tensor *(*network)(td_tensor *in))
{
    outcome first = train_by(network, 0, 3), again = train_by(network, 0, 3);
    assert_non_null(strstr(first.explained, "whole steps were compared: timed"));
    assert_memory_equal(first.weights, again.weights, (size_t)first.count * sizeof(float));
    for (size_t i = 0; i < 2; i++) {
        edit_file("configuration", i);
        outcome other = train_by(network, 0, 3);
        bool rows = (network == convolutions) == (i == 0);
        assert_non_null(strstr(other.explained, rows ? " of 1 thread: " : " by 1 worker of "));
        assert_true(relative_difference(other.weights, first.weights, first.count) < 1e-5);
        release(&other);
    }
    release(&first);
    release(&again);
}

static void test_configurations(void **state)
{
    (void)state;
    if (tdi_cores_allowed() < 2)
        skip();
    check_configurations(convolutions);
    check_configurations(dense);
    check_configurations(more_steps);
}

static td_status stop_after(void *user, td_training *training, const td_logs *logs)
{
    int64_t *left = user;
    (void)logs;
    if (--*left == 0)
        td_request_stop(td_training_model(training)->context);
    return TD_OK;
}

/* Two epochs of three steps, or until `stop` of them are done; goes on from a backup. */
static outcome train_on(td_tensor *(*network)(td_tensor *in), int64_t stop, td_epoch *last)
{
    outcome o = {0};
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, network, "cpu", 0);
    td_callback_functions functions = {.batch_end = stop_after};
    td_compile(model, .metrics = TD_METRICS(TD_ACCURACY));
    td_status status = td_fit(model, td_arrays(SAMPLES, x, TD_SHAPE(SIDE, SIDE, CHANNELS), .y = y), .epochs = 2,
                              .batch_size = 3, .seed = 5, .last = last,
                              .callbacks = TD_CALLBACKS(td_backup_and_restore(scratch_path("backups")),
                                                        td_callback_create(&functions, &stop)));
    assert_int_equal(status, stop == 0 ? TD_STOPPED : TD_OK);
    assert_string_equal(td_error(context), "");
    o.weights = small_weights(model, &o.count);
    td_context_free(context);
    return o;
}

/* A run is resumed in an epoch's midst, and its configuration, which is not that of the rules, is taken at the next
 * step: what the epoch's loss and metrics had added up to before is kept. */
static void check_resumed(td_tensor *(*network)(td_tensor *in))
{
    td_epoch whole, shard, resumed;
    outcome asked = train_by(network, 0, 3);
    edit_file("configuration", 1);
    outcome first = train_on(network, -1, &whole); /* asks for the kernels of that configuration */
    mark_file("", false);
    outcome all = train_on(network, -1, &whole), begun = train_on(network, 5, &shard);
    outcome ended = train_on(network, -1, &resumed);
    assert_int_equal(shard.epoch, 0);
    assert_int_equal(resumed.steps, whole.steps);
    assert_int_equal(resumed.logs.count, 2);
    for (int i = 0; i < 2; i++)
        assert_true(resumed.logs.entry[i].value == whole.logs.entry[i].value);
    assert_memory_equal(ended.weights, all.weights, (size_t)all.count * sizeof(float));
    release(&asked);
    release(&first);
    release(&all);
    release(&begun);
    release(&ended);
}

static void test_resumed(void **state)
{
    (void)state;
    if (tdi_cores_allowed() < 2)
        skip();
    check_resumed(convolutions);
    check_resumed(dense);
}

static bool lacks_bfloat16(void)
{
    tdi_device *device;
    assert_int_equal(tdi_cpu_device.open(0, 1, &device, NULL), TD_OK);
    bool lacks = device->no_bfloat16;
    device->close(device);
    return lacks;
}

/* Where bfloat16 is not faster float32 takes its place, for prediction too. */
static void test_precision(void **state)
{
    (void)state;
    if (lacks_bfloat16())
        skip();
    outcome asked[2] = {train(convolutions, 0)}; /* so that the file has answers to make known ones of */
    precision = TD_PRECISION_BFLOAT16;
    asked[1] = train(convolutions, 0);
    edit_file("configuration", 0);
    outcome narrow = train(convolutions, 0);
    assert_int_equal(said, 0);
    edit_file("configuration", 1);
    outcome wide = train(convolutions, 0);
    assert_int_equal(said, 1);
    mark_file("configuration", true);
    outcome unsure = train(convolutions, 0);
    assert_non_null(strstr(unsure.explained, "float32 4321 us"));
    assert_memory_equal(unsure.weights, wide.weights, (size_t)wide.count * sizeof(float));
    edit_file("configuration", 0);
    mark_file("configuration", true);
    outcome again = train(convolutions, 0);
    assert_memory_equal(again.weights, narrow.weights, (size_t)narrow.count * sizeof(float));
    precision = TD_PRECISION_FILE;
    edit_file("configuration", 0);
    outcome plain = train(convolutions, 0);
    assert_int_equal(said, 0);
    assert_non_null(strstr(narrow.explained, "precision: bfloat16"));
    assert_non_null(
        strstr(wide.explained, "precision: float32 instead of bfloat16, since bfloat16 is not faster here"));
    assert_memory_equal(wide.weights, plain.weights, (size_t)plain.count * sizeof(float));
    assert_memory_not_equal(narrow.weights, plain.weights, (size_t)plain.count * sizeof(float));
    assert_true(relative_difference(narrow.weights, plain.weights, plain.count) < 1.0f / 256);
    release(&asked[0]);
    release(&asked[1]);
    release(&narrow);
    release(&wide);
    release(&unsure);
    release(&again);
    release(&plain);
}

static void predict(void)
{
    td_context *context = td_context_create(&(td_context_options){.log = count_said});
    td_model *model = make_model(context, convolutions, "cpu", 0);
    said = 0;
    assert_int_equal(td_predict_on_batch(model, SAMPLES, x, predictions), TD_OK);
    td_context_free(context);
}

/* A compiled model that only predicts asks too, and says so; one that trains then has the same answers as without. */
static void test_precision_of_predictions(void **state)
{
    (void)state;
    float narrow[SAMPLES * SMALL_CLASSES];
    if (lacks_bfloat16())
        skip();
    precision = TD_PRECISION_BFLOAT16;
    predict();
    edit_file("configuration", 0);
    predict();
    assert_int_equal(said, 0);
    memcpy(narrow, predictions, sizeof narrow);
    edit_file("configuration", 1);
    predict();
    assert_int_equal(said, 1);
    assert_memory_not_equal(narrow, predictions, sizeof narrow);
    outcome alone = train(convolutions, 0); /* the first to ask for steps that train: now the file has an answer */
    release(&alone);
    edit_file("configuration", 1);
    alone = train(convolutions, 0);
    predicts_first = true;
    outcome after = train(convolutions, 0);
    predicts_first = false;
    precision = TD_PRECISION_FILE;
    assert_int_equal(said, 1);
    assert_memory_equal(alone.weights, after.weights, (size_t)alone.count * sizeof(float));
    release(&alone);
    release(&after);
}

static void check_rules(td_tensor *(*network)(td_tensor *in), int shards, const char *why)
{
    outcome o = train(network, shards);
    assert_null(strstr(o.explained, "  timed"));
    assert_null(strstr(o.explained, "were compared"));
    if (tdi_cores_allowed() > 1 && tdi_cores_allowed() <= SAMPLES) /* each has a row */
        assert_non_null(strstr(o.explained, why));
    release(&o);
}

/* Neither with shards nor when it is off, from here on, is anything timed. */
static void test_rules(void **state)
{
    (void)state;
    check_rules(convolutions, 2, "2 shards fix the sums");
    setenv("TANDEM_CACHE", "off", 1);
    check_rules(convolutions, 0, "with convolutions each core computes rows");
    check_rules(dense, 0, "the threads share the weights");
    check_rules(many_steps, 0, "with more activations than weights each core computes rows");
}

/* Four steps of all samples, or until `stop` of them are done; goes on from a backup, before which steps of one row
 * had chosen a configuration. */
static outcome train_after_one_row(int64_t stop, bool resumed, const char *backups)
{
    outcome o = {0};
    td_context *context = td_context_create(NULL);
    td_model *model = make_model(context, many_steps, "cpu", 0);
    td_callback_functions functions = {.batch_end = stop_after};
    if (!resumed)
        assert_int_equal(td_train_on_batch(model, 1, x, y, NULL), TD_OK);
    td_fit(model, td_arrays(SAMPLES, x, TD_SHAPE(SIDE, SIDE, CHANNELS), .y = y), .epochs = 4, .batch_size = SAMPLES,
           .callbacks =
               TD_CALLBACKS(td_backup_and_restore(scratch_path(backups)), td_callback_create(&functions, &stop)));
    assert_string_equal(td_error(context), "");
    o.weights = small_weights(model, &o.count);
    td_context_free(context);
    return o;
}

static void test_resumed_by_rules(void **state)
{
    (void)state;
    outcome whole = train_after_one_row(-1, false, "whole"), begun = train_after_one_row(2, false, "part");
    outcome ended = train_after_one_row(-1, true, "part");
    assert_memory_equal(ended.weights, whole.weights, (size_t)whole.count * sizeof(float));
    release(&whole);
    release(&begun);
    release(&ended);
}

/* What is looked at before a step does not choose for it. */
static void test_explained_first(void **state)
{
    (void)state;
    outcome o[2];
    for (int i = 0; i < 2; i++) {
        td_context *context = td_context_create(NULL);
        td_model *model = make_model(context, many_steps, "cpu", 0);
        FILE *out = fopen("/dev/null", "w");
        if (i)
            td_explain(model, out, .batch_size = 1);
        fclose(out);
        td_train_on_batch(model, SAMPLES, x, y, NULL);
        assert_string_equal(td_error(context), "");
        o[i] = (outcome){.weights = small_weights(model, &o[i].count)};
        td_context_free(context);
    }
    assert_memory_equal(o[0].weights, o[1].weights, (size_t)o[0].count * sizeof(float));
    release(&o[0]);
    release(&o[1]);
}

static int begin(void **state)
{
    uint32_t draw = 1;
    for (int i = 0; i < SAMPLES * SAMPLE; i++)
        x[i] = (float)((draw = draw * 1664525u + 1013904223u) >> 8) / (float)(1 << 23) - 1;
    for (int i = 0; i < SAMPLES; i++)
        y[i] = (float)(i % SMALL_CLASSES);
    int failed = scratch_create(state);
    return setenv("TANDEM_CACHE", scratch_folder, 1) || failed;
}

/* The fastest, by more than noise; but one that is preferred unless others are worth it. */
static void test_fastest(void **state)
{
    (void)state;
    tdi_tuned tuned = {.count = 3, .candidates = {{"1 thread", 91}, {"4 threads", 89}, {"8 threads", 100}}};
    assert_int_equal(tdi_tuned_fastest(&tuned), 0);
    tuned.preferred = 2;
    tuned.worth_it = 0.9;
    assert_int_equal(tdi_tuned_fastest(&tuned), 2);
    tuned.candidates[0].us = 81;
    assert_int_equal(tdi_tuned_fastest(&tuned), 0);
    tuned.candidates[1].us = 50;
    assert_int_equal(tdi_tuned_fastest(&tuned), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remembered),      cmocka_unit_test(test_interleaved),
        cmocka_unit_test(test_sharing),         cmocka_unit_test(test_large_models),
        cmocka_unit_test(test_configurations),  cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_precision),       cmocka_unit_test(test_precision_of_predictions),
        cmocka_unit_test(test_rules),           cmocka_unit_test(test_resumed_by_rules),
        cmocka_unit_test(test_explained_first), cmocka_unit_test(test_fastest)};
    return cmocka_run_group_tests(tests, begin, scratch_remove);
}
