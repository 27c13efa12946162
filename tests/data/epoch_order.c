/* The order of an epoch, and runs of samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "data/source.h"

#define COUNT 1000

static void shuffled_is_a_permutation(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= COUNT; count = count * 3 + 1) {
        int64_t order[COUNT], seen[COUNT] = {0};
        tdi_epoch_order(order, count, true, 7, 2);
        for (int64_t i = 0; i < count; i++) {
            assert_in_range(order[i], 0, count - 1);
            assert_int_equal(seen[order[i]]++, 0);
        }
    }
}

static void seed_and_epoch_fix_the_order(void **state)
{
    (void)state;
    int64_t a[COUNT], b[COUNT];
    tdi_epoch_order(a, COUNT, true, 7, 2);
    tdi_epoch_order(b, COUNT, true, 7, 2);
    assert_memory_equal(a, b, sizeof a);
    tdi_epoch_order(b, COUNT, true, 7, 3);
    assert_memory_not_equal(a, b, sizeof a);
    tdi_epoch_order(b, COUNT, true, 8, 2);
    assert_memory_not_equal(a, b, sizeof a);
}

static void unshuffled_is_the_files_order(void **state)
{
    (void)state;
    int64_t order[COUNT];
    tdi_epoch_order(order, COUNT, false, 7, 2);
    for (int64_t i = 0; i < COUNT; i++)
        assert_int_equal(order[i], i);
}

static void every_place_is_as_likely(void **state)
{
    (void)state;
    int hits[4][4] = {{0}};
    for (int64_t epoch = 0; epoch < 4000; epoch++) {
        int64_t order[4];
        tdi_epoch_order(order, 4, true, 1, epoch);
        for (int i = 0; i < 4; i++)
            hits[i][order[i]]++;
    }
    for (int i = 0; i < 16; i++) /* 1000 expected, deviation 27 */
        assert_in_range(hits[i / 4][i % 4], 860, 1140);
}

static void a_range_shifts_the_rows(void **state)
{
    (void)state;
    float x[2 * COUNT], got[2 * 200];
    for (int i = 0; i < 2 * COUNT; i++)
        x[i] = (float)i;
    td_data *data = td_arrays(COUNT, x, TD_SHAPE(2));
    tdi_source *range;
    tdi_error error = {0};
    assert_int_equal(tdi_source_range(data->source, 800, 200, &range, &error), TD_OK);
    assert_int_equal(range->samples, 200);
    int64_t rows[200];
    for (int i = 0; i < 200; i++)
        rows[i] = 199 - i;
    assert_int_equal(range->gather(range, 0, rows, 200, got, TD_FLOAT32, &error), TD_OK);
    for (int i = 0; i < 200; i++)
        assert_true(got[2 * i] == (float)(2 * (999 - i)) && got[2 * i + 1] == (float)(2 * (999 - i) + 1));
    range->release(range);
    td_data_release(data);
}

static void a_range_outside_is_refused(void **state)
{
    (void)state;
    float x[COUNT] = {0};
    td_data *data = td_arrays(COUNT, x, TD_SHAPE(1));
    const int64_t bad[][2] = {{-1, 2},    {0, 0},         {0, COUNT + 1}, {COUNT, 1},
                              {1, COUNT}, {INT64_MAX, 1}, {1, INT64_MAX}, {0, -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tdi_source *range;
        tdi_error error = {0};
        assert_int_equal(tdi_source_range(data->source, bad[i][0], bad[i][1], &range, &error), TD_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, "of 1000"));
    }
    td_data_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffled_is_a_permutation),     cmocka_unit_test(seed_and_epoch_fix_the_order),
        cmocka_unit_test(unshuffled_is_the_files_order), cmocka_unit_test(every_place_is_as_likely),
        cmocka_unit_test(a_range_shifts_the_rows),       cmocka_unit_test(a_range_outside_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
