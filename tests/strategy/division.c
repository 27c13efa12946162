/* division.c - lists of devices, and how a model's work is divided among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "strategy/strategy.h"
#include "support/devices.h"
#include "support/small.h"

static void check_refused(const char *list, const char *sentence)
{
    tdi_device *devices[TDI_MAX_SHARDS];
    int count = -1;
    tdi_error error = {0};
    assert_int_equal(tdi_open_devices(list, devices, &count, &error), TD_INVALID_ARGUMENT);
    assert_int_equal(count, 0);
    if (!strstr(error.message, sentence))
        fail_msg("\"%s\" does not say \"%s\"", error.message, sentence);
}

static void lists_that_name_no_device_are_refused(void **state)
{
    (void)state;
    check_refused("", "empty name");
    check_refused("cpu:0,", "empty name");
    check_refused("gpu:0", "\"gpu:0\" is not a device here");
    check_refused("cpu:x", "a number from 0");
    check_refused("cpu:-1", "a number from 0");
    check_refused("cpu:0,cpu:1,cpu:0", "\"cpu:0\" is named twice");
    check_refused("cpu,cpu:0", "named twice");
}

static void devices_keep_the_names_given(void **state)
{
    (void)state;
    tdi_device *devices[TDI_MAX_SHARDS];
    int count;
    assert_int_equal(tdi_open_devices("cpu:3,cpu:1", devices, &count, NULL), TD_OK);
    assert_int_equal(count, 2);
    assert_string_equal(devices[0]->name, "cpu:3");
    assert_string_equal(devices[1]->name, "cpu:1");
    tdi_close_devices(devices, count);
}

static td_status divide(small_kind kind, int shards, int replicas, tdi_division *division)
{
    const char *const lists[] = {test_devices(1), test_devices(2), test_devices(3)};
    tdi_device *devices[TDI_MAX_SHARDS];
    int count;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, kind, td_adam(), (td_strategy){0});
    model->compiled.shards = shards;
    assert_int_equal(tdi_open_devices(lists[replicas - 1], devices, &count, NULL), TD_OK);
    td_status status = tdi_divide(model, devices, count, division, NULL);
    tdi_close_devices(devices, count);
    td_context_free(context);
    return status;
}

static void shards_are_shards_whatever_the_replicas(void **state)
{
    (void)state;
    tdi_division d;
    for (int replicas = 1; replicas <= 3; replicas++) {
        assert_int_equal(divide(SMALL_CNN, 6, replicas, &d), TD_OK);
        assert_true(d.replicas == replicas && d.shards == 6 && d.groups == 6 && d.threads == 1 && 6 % d.workers == 0);
    }
    assert_int_equal(divide(SMALL_CNN, 4, 3, &d), TD_INVALID_ARGUMENT);
    assert_int_equal(divide(SMALL_CNN, TDI_MAX_SHARDS + 1, 1, &d), TD_INVALID_ARGUMENT);
}

static tdi_division divided(small_kind kind, bool separate, int replicas, int cores)
{
    tdi_division d;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, kind, td_adam(), (td_strategy){0});
    model->compiled.separate_replicas = separate;
    assert_int_equal(tdi_mirrored.divide(model, replicas, cores, &d, NULL), TD_OK);
    td_context_free(context);
    return d;
}

static void check_divided(small_kind kind, int replicas, int cores, int shards, int threads, int groups, bool either)
{
    tdi_division d = divided(kind, false, replicas, cores);
    if (d.replicas != replicas || d.shards != shards || d.workers != shards || d.threads != threads ||
        d.groups != groups || d.either != either)
        fail_msg("kind %d, %d replicas on %d cores: %d shards of %d groups, %d workers of %d threads, %s", (int)kind,
                 replicas, cores, d.shards, d.groups, d.workers, d.threads, d.either ? "or else" : "for sure");
}

/* Computed as one all the same: some replicas to a shard, or some shards to a replica. */
static void statistics_may_be_per_replica(void **state)
{
    (void)state;
    check_divided(SMALL_NORM, 1, 2, 2, 1, 1, true);
    check_divided(SMALL_NORM, 3, 1, 1, 1, 3, false);
    check_divided(SMALL_NORM, 4, 2, 2, 1, 4, true);
    check_divided(SMALL_NORM, 2, 8, 8, 1, 2, true);
    check_divided(SMALL_NORM, 3, 2, 1, 2, 3, false);
    check_divided(SMALL_NORM, 6, 4, 2, 2, 6, false);
    check_divided(SMALL_NORM, 5, 16, 15, 1, 5, false);
    check_divided(SMALL_NORM, 256, 64, 64, 1, 256, true);
    check_divided(SMALL_MIXED, 4, 2, 2, 1, 4, true);
    check_divided(SMALL_SYNC, 3, 2, 2, 1, 1, true);
    check_divided(SMALL_DENSE, 4, 2, 1, 2, 4, true);
    check_divided(SMALL_DENSE, 3, 2, 1, 2, 3, false);
    check_divided(SMALL_MLP, 3, 2, 1, 2, 1, true);
}

static void separate_replicas_have_no_more_threads_than_cores(void **state)
{
    (void)state;
    for (int replicas = 2; replicas <= 5; replicas++)
        for (int cores = 1; cores <= 5; cores++) {
            tdi_division d = divided(SMALL_NORM, true, replicas, cores);
            assert_true(d.shards % replicas == 0 && d.groups == replicas && d.threads == 1);
            assert_int_equal(d.workers, d.shards < cores ? d.shards : cores);
            d = divided(SMALL_CNN, true, replicas, cores);
            assert_true(d.shards == replicas && d.groups == 1 && d.workers <= cores);
        }
}

static void networks_without_convolutions_share_columns(void **state)
{
    (void)state;
    tdi_division d;
    assert_int_equal(divide(SMALL_MLP, 0, 2, &d), TD_OK);
    assert_true(d.shards == 1 && d.workers == 1 && d.threads >= 1);
    assert_int_equal(divide(SMALL_CNN, 0, 2, &d), TD_OK);
    assert_true(d.shards == d.workers && d.threads == 1);
}

static tdi_division by_rows(int cores)
{
    return (tdi_division){.replicas = 1, .shards = cores, .groups = 1, .workers = cores, .threads = 1, .either = true};
}

static void check_few(int cores, int64_t rows, int workers)
{
    tdi_division d = by_rows(cores), few;
    assert_true(tdi_has_too_few(&d, rows));
    few = tdi_divide_few(&d, rows);
    assert_true(few.shards == workers && few.workers == workers && few.threads == cores / workers);
}

static void few_rows_are_shared_by_threads(void **state)
{
    (void)state;
    tdi_division d;
    check_few(2, 1, 1);
    check_few(16, 8, 8);
    check_few(16, 1, 1);
    check_few(64, 32, 32);
    check_few(8, 6, 2); /* 3 rows for 4 threads, not 2 for 2 */
    check_few(64, 48, 16);
    d = divided(SMALL_NORM, false, 6, 12);
    assert_true(tdi_has_too_few(&d, 4));
    assert_int_equal(tdi_divide_few(&d, 4).workers, 2); /* not 4, for 6 replicas */
    d = by_rows(8);
    assert_false(tdi_has_too_few(&d, 7)); /* 7 eighths of the time */
    assert_false(tdi_has_too_few(&d, 8));
    assert_int_equal(divide(SMALL_CNN, 4, 2, &d), TD_OK);
    assert_false(tdi_has_too_few(&d, 1)); /* shards are shards */
}

static void check_again(const tdi_division *d, int shards, int64_t rows, int threads)
{
    tdi_division again;
    assert_int_equal(tdi_divide_again(d, shards, rows, &again), threads > 0);
    if (threads)
        assert_true(again.shards == shards && again.workers == shards && again.threads == threads);
}

static void a_resumed_run_finds_its_shards(void **state)
{
    (void)state;
    tdi_division d = by_rows(8);
    check_again(&d, 8, 32, 1);
    check_again(&d, 1, 32, 8);
    check_again(&d, 4, 4, 2);
    check_again(&d, 4, 32, 0); /* it had 4 cores */
    check_again(&d, 3, 3, 0);
    d.either = false;
    check_again(&d, 8, 32, 1);
    check_again(&d, 1, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_that_name_no_device_are_refused),
        cmocka_unit_test(devices_keep_the_names_given),
        cmocka_unit_test(shards_are_shards_whatever_the_replicas),
        cmocka_unit_test(statistics_may_be_per_replica),
        cmocka_unit_test(separate_replicas_have_no_more_threads_than_cores),
        cmocka_unit_test(networks_without_convolutions_share_columns),
        cmocka_unit_test(few_rows_are_shared_by_threads),
        cmocka_unit_test(a_resumed_run_finds_its_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
