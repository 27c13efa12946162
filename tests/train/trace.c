/* A trace is valid JSON with every thread by its name, its ops by layer and its steps; it is bounded, changes no bits,
 * and a file that cannot be written is said and leaves the old one. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "files/scratch.h"
#include "support/devices.h"
#include "support/small.h"

enum { ROWS = 64, STEPS = 4 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS];

static int prepare(void **state)
{
    small_data(ROWS, x, y);
    return scratch_create(state);
}

/* Two epochs of STEPS steps on two replicas; `path` NULL: without a trace. */
static float *train(const char *path, int64_t events, int64_t *count)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MIXED, td_adam(), td_mirrored(test_devices(2), .shards = 2));
    td_data *data = td_arrays(ROWS, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    if (path)
        assert_int_equal(td_trace_begin(context, events), TD_OK);
    assert_int_equal(
        td_fit(model, td_data_retain(data), .validation = data, .epochs = 2, .batch_size = ROWS / STEPS, .seed = 3),
        TD_OK);
    if (path)
        assert_int_equal(td_trace_end(context, path), TD_OK);
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static json_t *events_of(const char *path, int64_t *lost)
{
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    assert_non_null(root);
    *lost = json_integer_value(json_object_get(json_object_get(root, "otherData"), "events_lost"));
    json_t *events = json_incref(json_object_get(root, "traceEvents"));
    json_decref(root);
    return events;
}

static const char *text(const json_t *event, const char *key)
{
    const char *found = json_string_value(json_object_get(event, key));
    return found ? found : "";
}

/* Events of a name ("": any) and category ("": any) on a track (0: any). */
static int count_of(const json_t *events, const char *name, const char *category, int tid)
{
    int count = 0;
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        bool complete = strcmp(text(event, "ph"), "X") == 0;
        bool here = !tid || json_integer_value(json_object_get(event, "tid")) == tid;
        count += complete && here && (!*name || strcmp(text(event, "name"), name) == 0) &&
                 (!*category || strcmp(text(event, "cat"), category) == 0);
        if (complete)
            assert_true(json_number_value(json_object_get(event, "ts")) >= 0 &&
                        json_number_value(json_object_get(event, "dur")) >= 0);
    }
    return count;
}

static void assert_thread(const json_t *events, const char *name)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        if (strcmp(text(event, "name"), "thread_name") == 0 &&
            strcmp(text(json_object_get(event, "args"), "name"), name) == 0)
            return;
    }
    fail_msg("there is no thread %s", name);
}

/* The first thread of each replica is named after its device. */
static void assert_replica_thread(json_t *events, int replica)
{
    char name[64];
    const char *type = test_devices(0);
    snprintf(name, sizeof name, "%s:%d replica %d thread 0", type, replica, replica);
    assert_thread(events, name);
}

static void threads_and_ops_have_names(void **state)
{
    (void)state;
    int64_t count, lost;
    const char *path = scratch_path("trace.json");
    float *with = train(path, 0, &count), *without = train(NULL, 0, &count);
    assert_memory_equal(with, without, (size_t)count * sizeof *with);
    json_t *events = events_of(path, &lost);
    assert_int_equal(lost, 0);
    assert_thread(events, "td_fit");
    assert_replica_thread(events, 0);
    assert_replica_thread(events, 1);
    /* Trained twice STEPS steps, validated as often. */
    assert_int_equal(count_of(events, "step", "step", 1), 4 * STEPS);
    assert_int_equal(count_of(events, "epoch", "host", 0), 2);
    assert_int_equal(count_of(events, "validation", "host", 0), 2);
    assert_true(count_of(events, "conv2d conv2d", "op", 1) >= 4 * STEPS);
    assert_true(count_of(events, "", "op", 2) > 20 * STEPS);
    assert_true(count_of(events, "wait for gradients", "communication", 2) >= 2 * STEPS);
    assert_true(count_of(events, "bring rows together", "input", 0) >= 4 * STEPS);
    json_decref(events);
    free(with);
    free(without);
}

static void the_newest_events_are_kept(void **state)
{
    (void)state;
    int64_t count, lost;
    const char *path = scratch_path("short.json");
    free(train(path, 50, &count));
    json_t *events = events_of(path, &lost);
    assert_true(lost > 100);
    assert_int_equal(count_of(events, "", "", 1), 50);
    assert_int_equal(count_of(events, "", "", 2), 50);
    assert_true(count_of(events, "step", "step", 1) > 0);
    json_decref(events);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    assert_int_equal(td_trace_end(context, scratch_path("none.json")), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "no trace was begun"));
    td_clear_error(context);
    assert_int_equal(td_trace_begin(context, -1), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    assert_int_equal(td_trace_begin(context, 0), TD_OK);
    assert_int_equal(td_trace_begin(context, 0), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    assert_int_equal(td_trace_end(context, "/no/such/folder/trace.json"), TD_NOT_FOUND);
    td_clear_error(context);
    assert_int_equal(td_trace_begin(context, 10), TD_OK);
    assert_int_equal(td_trace_end(context, scratch_path("empty.json")), TD_OK);
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_and_ops_have_names),
                                       cmocka_unit_test(the_newest_events_are_kept),
                                       cmocka_unit_test(what_cannot_be_is_refused)};
    return cmocka_run_group_tests(tests, prepare, scratch_remove);
}
