/* td_explain with .time: every op of the plan has its time, its calls and its floor, the times add up to the step's,
 * and nothing of the model changes. Nothing is held against the clock. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "files/scratch.h"
#include "support/small.h"

enum { ROWS = 24 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS];

/* What was printed, until the next time. */
static const char *explained(const td_explain_args *args, td_status expected)
{
    static char report[1 << 18];
    td_explain_args to_report = *args;
    to_report.out = fmemopen(report, sizeof report, "w");
    assert_non_null(to_report.out);
    assert_int_equal(td_explain_(&to_report), expected);
    fclose(to_report.out);
    return report;
}

static json_t *numbers(td_explain_args args)
{
    args.json = TD_YES;
    json_t *root = json_loads(explained(&args, TD_OK), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    return root;
}

static double number(const json_t *object, const char *name)
{
    const json_t *found = json_object_get(object, name);
    if (!json_is_number(found))
        fail_msg("%s is not a number", name);
    return json_number_value(found);
}

static const char *text(const json_t *object, const char *name)
{
    const char *found = json_string_value(json_object_get(object, name));
    return found ? found : "";
}

static void check_step(const json_t *timed, const json_t *plain)
{
    static const char *const texts[] = {"layer", "variable", "op", "pass", "kernel", "share"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(text(timed, texts[i]), text(plain, texts[i]));
    assert_true(json_equal(json_object_get(timed, "flops"), json_object_get(plain, "flops")));
    assert_true(number(timed, "lanes") >= 1 && number(timed, "lanes") == number(plain, "lanes"));
    assert_true(json_is_boolean(json_object_get(timed, "barrier")));
    assert_true(number(timed, "kept_bytes") <= number(timed, "bytes"));
    assert_true(number(timed, "calls") >= 1 || json_is_true(json_object_get(timed, "within")));
    assert_true(number(timed, "us") >= 0);
    assert_true(number(timed, "floor_us") >= 0);
    assert_true(strcmp(text(timed, "bound"), "memory") == 0 || strcmp(text(timed, "bound"), "arithmetic") == 0);
}

/* What is timed is what is explained, and its times add up. */
static json_t *check_times(td_explain_args args)
{
    json_t *plain = numbers(args);
    args.time = TD_YES;
    json_t *timed = numbers(args), *time = json_object_get(timed, "time");
    const json_t *steps = json_object_get(timed, "steps"), *all = json_object_get(plain, "steps");
    double us = number(time, "waiting_us") + number(time, "feeding_us") + number(time, "rest_us"), floor = 0;
    assert_int_equal(json_array_size(steps), json_array_size(all));
    assert_true(json_array_size(steps) > 0);
    for (size_t i = 0; i < json_array_size(steps); i++) {
        check_step(json_array_get(steps, i), json_array_get(all, i));
        us += number(json_array_get(steps, i), "us");
        floor += number(json_array_get(steps, i), "floor_us");
    }
    assert_true(fabs(us - number(time, "us")) < 1e-6 * us);
    assert_true(fabs(floor - number(time, "floor_us")) < 1e-6 * floor);
    assert_true(floor > 0 && number(time, "rest_us") > -1e-6 * us && number(time, "waiting_us") >= 0);
    assert_true(number(time, "steps") >= 2);
    assert_true(number(json_object_get(json_object_get(time, "roofs"), "fp32_flops"), "all") > 0);
    json_decref(plain);
    return timed;
}

static void every_network_in_every_mode(void **state)
{
    (void)state;
    static const small_kind kinds[] = {SMALL_MLP, SMALL_MIXED, SMALL_DROPOUT, SMALL_LSTM};
    static const td_strategy strategies[] = {
        {.devices = "cpu"}, {.devices = "cpu:0,cpu:1", .shards = 2}, {.devices = "cpu", .shards = 1}};
    for (size_t i = 0; i < 12; i++)
        for (td_mode mode = TD_MODE_TRAIN; mode <= TD_MODE_PREDICT; mode++) {
            td_context *context = td_context_create(NULL);
            td_model *model = small_model(context, kinds[i / 3], td_adam(), strategies[i % 3]);
            json_t *found = check_times((td_explain_args){.model = model, .batch_size = 7, .mode = mode});
            assert_true(i % 3 != 1 || number(found, "parts") == 2);
            assert_true(i % 3 != 2 || number(json_object_get(found, "time"), "threads") == 1);
            json_decref(found);
            td_context_free(context);
        }
}

static int count_passes(const json_t *found, const char *pass)
{
    const json_t *steps = json_object_get(found, "steps");
    int count = 0;
    for (size_t i = 0; i < json_array_size(steps); i++)
        count += strcmp(text(json_array_get(steps, i), "pass"), pass) == 0;
    return count;
}

static void ops_have_names(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MIXED, td_adam(), td_mirrored("cpu:0"));
    json_t *trains = numbers((td_explain_args){.model = model});
    assert_true(count_passes(trains, "forward") > 4 && count_passes(trains, "backward") > 4);
    json_t *evaluates = numbers((td_explain_args){.model = model, .mode = TD_MODE_EVALUATE});
    assert_int_equal(count_passes(evaluates, "forward"), json_array_size(json_object_get(evaluates, "steps")));
    /* What is made when training is made of the same ops forward. */
    assert_true(count_passes(trains, "forward") >= count_passes(evaluates, "forward"));
    const json_t *steps = json_object_get(trains, "steps");
    int updates = 0;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        bool update = strcmp(text(step, "pass"), "update") == 0;
        updates += update;
        assert_true(!update || *text(step, "variable"));
        assert_true(*text(step, "layer") && *text(step, "op") && *text(step, "kernel"));
    }
    int64_t trained = 0;
    for (int i = 0; i < td_weight_count(model); i++) {
        td_weight_info info;
        td_weight(model, i, &info);
        trained += info.trainable;
    }
    assert_true(updates >= trained);
    json_decref(trains);
    json_decref(evaluates);
    td_context_free(context);
}

/* Steps whose gradients are accumulated differ from those that update; and whatever the clock, the model stays. */
static void ways_of_training(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model =
        small_model(context, SMALL_NORM,
                    td_sgd(.momentum = 0.9f, .gradient_accumulation_steps = 3, .use_ema = TD_YES, .global_clipnorm = 1),
                    td_mirrored("cpu:0,cpu:1"));
    json_t *found = check_times((td_explain_args){.model = model, .batch_size = 8});
    assert_int_equal((int)number(json_object_get(found, "time"), "steps") % 3, 0);
    json_decref(found);
    td_compile(model, .precision = TD_PRECISION_BFLOAT16, .rematerialize = TD_YES);
    json_decref(check_times((td_explain_args){.model = model, .batch_size = 8}));
    td_context_free(context);
}

static float *trained_weights(bool timed, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MIXED, td_adam(), td_mirrored("cpu:0,cpu:1"));
    for (int step = 0; step < 4; step++) {
        if (timed)
            explained(&(td_explain_args){.model = model, .batch_size = ROWS, .time = TD_YES}, TD_OK);
        assert_int_equal(td_train_on_batch(model, ROWS, x, y, NULL), TD_OK);
    }
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static void nothing_changes(void **state)
{
    (void)state;
    int64_t count;
    float *timed = trained_weights(true, &count), *plain = trained_weights(false, &count);
    assert_memory_equal(timed, plain, (size_t)count * sizeof *plain);
    free(timed);
    free(plain);
}

static void a_trace_under_way_does_not_show_it(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), td_mirrored("cpu:0"));
    assert_int_equal(td_trace_begin(context, 0), TD_OK);
    explained(&(td_explain_args){.model = model, .time = TD_YES}, TD_OK);
    assert_int_equal(td_trace_end(context, scratch_path("trace.json")), TD_OK);
    json_t *root = json_load_file(scratch_path("trace.json"), 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), 1); /* the process's name */
    json_decref(root);
    td_context_free(context);
}

/* Lines that end between two words of a text. */
static int lines_between(const char *all, const char *from, const char *to)
{
    int count = 0;
    size_t end = (size_t)(strstr(all, to) - all);
    for (size_t i = (size_t)(strstr(all, from) - all); i < end; i++)
        count += all[i] == '\n';
    return count;
}

static void the_table_shows_ten(void **state)
{
    (void)state;
    static const char *const shards[] = {"batch 24, training step in float32, by ",
                                         "us a step",
                                         "x floor",
                                         "the other ",
                                         "bringing",
                                         "between them",
                                         "\na step",
                                         "100.0%",
                                         "GFLOP/s",
                                         "synthetic rows"};
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MIXED, td_adam(), td_mirrored("cpu:0"));
    td_explain_args args = {.model = model, .batch_size = ROWS, .time = TD_YES};
    const char *table = explained(&args, TD_OK);
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++)
        if (!strstr(table, shards[i]))
            fail_msg("\"%s\" is not in\n%s", shards[i], table);
    assert_int_equal(lines_between(table, "x floor", "the other "), 11);
    td_context_free(context);
}

static void expect_failure(td_context *context, const td_explain_args *args, td_status status, const char *sentence)
{
    explained(args, status);
    if (!strstr(td_error(context), sentence))
        fail_msg("\"%s\" does not say \"%s\"", td_error(context), sentence);
    td_clear_error(context);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_tensor *in = td_input(context, TD_SHAPE(4));
    td_model *bare = td_model_create(in, td_dense(in, 2), .seed = 1);
    expect_failure(context, &(td_explain_args){.model = bare, .mode = TD_MODE_EVALUATE}, TD_INVALID_ARGUMENT,
                   "no loss");
    td_compile(bare, .loss = TD_MEAN_SQUARED_ERROR);
    expect_failure(context, &(td_explain_args){.model = bare, .mode = TD_MODE_TRAIN, .time = TD_YES},
                   TD_INVALID_ARGUMENT, "no optimizer");
    expect_failure(context, &(td_explain_args){.model = bare, .mode = 17}, TD_INVALID_ARGUMENT, "17 is not a mode");
    expect_failure(context, &(td_explain_args){.model = bare, .batch_size = -1}, TD_INVALID_ARGUMENT, "batch_size: -1");
    expect_failure(context, &(td_explain_args){.model = bare, .guard = 1}, TD_INVALID_ARGUMENT, "by name");
    json_decref(check_times((td_explain_args){.model = bare}));

    td_model *model = small_model(context, SMALL_MLP, td_adam(), td_mirrored("cpu:0"));
    td_weight_info info;
    td_weight(model, 0, &info);
    size_t count = (size_t)(info.shape.dim[0] * info.shape.dim[1]);
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = NAN;
    td_set_weight(model, 0, values, count);
    free(values);
    expect_failure(context, &(td_explain_args){.model = model, .time = TD_YES}, TD_NOT_FINITE,
                   "steps on synthetic rows cannot be timed: the loss is not a finite number");
    td_context_free(context);
}

int main(void)
{
    small_data(ROWS, x, y);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_network_in_every_mode),
                                       cmocka_unit_test(ops_have_names),
                                       cmocka_unit_test(ways_of_training),
                                       cmocka_unit_test(nothing_changes),
                                       cmocka_unit_test(a_trace_under_way_does_not_show_it),
                                       cmocka_unit_test(the_table_shows_ten),
                                       cmocka_unit_test(what_cannot_be_is_refused)};
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
