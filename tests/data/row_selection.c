/* Rows of other data: repeated, shared, several in turn; every sample once, streams and passes included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <tandem/tandem.h>

#include "data/source.h"
#include "refusal.h"

enum { SAMPLES = 103 };

static float numbers[SAMPLES];

/* Samples first, first + 1, ...: a sample is its number. */
static td_data *counting(int first, int count)
{
    return td_arrays(count, numbers + first, TD_SHAPE(1), .y = numbers + first);
}

static void expect_rows(td_data *data, const int *expected, int count)
{
    float x[2 * SAMPLES], y[2 * SAMPLES];
    int64_t rows[2 * SAMPLES];
    td_context *context = td_context_create(NULL);
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    assert_int_equal(td_data_samples(data), count);
    for (int i = 0; i < count; i++)
        rows[i] = count - 1 - i; /* from the last on */
    assert_int_equal(td_data_read(context, data, rows, count, x, y), TD_OK);
    for (int i = 0; i < count; i++)
        assert_true(x[i] == (float)expected[count - 1 - i] && y[i] == x[i]);
    td_data_release(data);
    td_context_free(context);
}

static void test_repeated(void **state)
{
    (void)state;
    expect_rows(td_repeat(counting(5, 3), 3), (int[]){5, 6, 7, 5, 6, 7, 5, 6, 7}, 9);
    expect_rows(td_repeat(counting(5, 3), 1), (int[]){5, 6, 7}, 3);
}

static void test_shares_have_every_sample_once(void **state)
{
    (void)state;
    for (int count = 1; count <= 7; count++) {
        bool seen[SAMPLES] = {false};
        td_context *context = td_context_create(NULL);
        int64_t total = 0;
        for (int index = 0; index < count; index++) {
            float x[SAMPLES];
            td_data *data = td_shard(counting(0, SAMPLES), index, count);
            int64_t samples = td_data_samples(data);
            assert_in_range(samples, SAMPLES / count, (SAMPLES + count - 1) / count);
            assert_int_equal(td_data_read(context, data, NULL, samples, x, NULL), TD_OK);
            for (int64_t i = 0; i < samples; i++) {
                assert_false(seen[(int)x[i]]);
                seen[(int)x[i]] = true;
            }
            total += samples;
            td_data_release(data);
        }
        assert_int_equal(total, SAMPLES);
        td_context_free(context);
    }
}

static void test_in_turn(void **state)
{
    (void)state;
    expect_rows(td_interleave(TD_DATA_LIST(counting(0, 2), counting(10, 4), counting(20, 1))),
                (int[]){0, 10, 20, 1, 11, 12, 13}, 7);
    expect_rows(td_interleave(TD_DATA_LIST(counting(0, 3), counting(10, 5)), .block = 2),
                (int[]){0, 1, 10, 11, 2, 12, 13, 14}, 8);
    expect_rows(td_interleave(TD_DATA_LIST(counting(7, 2))), (int[]){7, 8}, 2);
    expect_rows(td_shard(td_repeat(td_interleave(TD_DATA_LIST(counting(0, 2), counting(10, 2))), 2), 1, 3),
                (int[]){10, 0, 11}, 3);
}

/* Which sample of which data a row is. */
static void test_origins(void **state)
{
    (void)state;
    static const int expected[][2] = {{10, 1}, {0, 0}, {11, 1}}; /* number, which data */
    td_data *a = counting(0, 2), *b = counting(10, 2);
    const tdi_source *sources[] = {a->source, b->source};
    td_data *all = td_cache(td_shard(td_repeat(td_interleave(TD_DATA_LIST(a, b)), 2), 1, 3));
    tdi_source *end;
    tdi_error error = {0};
    assert_int_equal(tdi_source_range(all->source, 1, 2, &end, &error), TD_OK);
    for (int row = 0; row < 3; row++) {
        int64_t of_all = row, of_end = row - 1;
        assert_ptr_equal(tdi_source_origin(all->source, &of_all), sources[expected[row][1]]);
        assert_int_equal(of_all, expected[row][0] % 10);
        if (row == 0)
            continue;
        assert_ptr_equal(tdi_source_origin(end, &of_end), sources[expected[row][1]]);
        assert_int_equal(of_end, expected[row][0] % 10);
    }
    end->release(end);
    td_data_release(all);
}

/* ---- passes ---- */

typedef struct stream {
    int first, at, count;
} stream;

static td_status next(void *user, void *const *x, void *const *y)
{
    stream *of = user;
    if (of->at == of->count)
        return TD_STOPPED;
    *(float *)x[0] = *(float *)y[0] = (float)(of->first + of->at++);
    return TD_OK;
}

static td_status restart(void *user)
{
    ((stream *)user)->at = 0;
    return TD_OK;
}

/* A pass over two streams in turn, begun in its midst, as a run that is resumed does. */
static void test_streams_in_turn(void **state)
{
    (void)state;
    stream a = {.first = 0, .count = 4}, b = {.first = 10, .count = 2};
    td_data *data = td_interleave(
        TD_DATA_LIST(td_generator(TD_SHAPE(1), .next = next, .restart = restart, .samples = 4, .user = &a),
                     td_generator(TD_SHAPE(1), .next = next, .restart = restart, .samples = 2, .user = &b)));
    static const float expected[] = {0, 10, 1, 11, 2, 3};
    int64_t order[6] = {1, 0, 3, 2, 5, 4};
    tdi_error error = {0};
    tdi_source *source = data->source;
    assert_int_equal(source->samples, 6);
    for (int first = 0; first < 6; first++) {
        tdi_source_run pass = {.order = order, .first = first, .samples = 6, .batch = 2, .columns = 2};
        assert_int_equal(tdi_source_begin(source, &pass, &error), TD_OK);
        for (int column = 0; column < 2; column++) {
            float values[6];
            assert_int_equal(source->gather(source, column, order + first, 6 - first, values, TD_FLOAT32, &error),
                             TD_OK);
            for (int i = first; i < 6; i++)
                assert_true(values[i - first] == expected[order[i]]);
        }
        tdi_source_end(source);
    }
    td_data_release(data);
}

static void test_refusals(void **state)
{
    (void)state;
    stream a = {.count = 4};
    td_data *wide = td_arrays(4, numbers, TD_SHAPE(2), .y = numbers);
    expect_refusal(td_repeat(counting(0, 3), 0), "above 0");
    expect_refusal(td_shard(counting(0, 3), 3, 3), "shard 3 of 3");
    expect_refusal(td_shard(counting(0, 3), 3, 4), "leave none");
    expect_refusal(td_interleave(TD_DATA_LIST(counting(0, 3), wide)), "shapes and types");
    expect_refusal(td_interleave(TD_DATA_LIST(counting(0, 3), td_open("no/such/data"), counting(0, 1))), "no/such");
    expect_refusal(td_interleave(NULL), "no data");
    expect_refusal(td_repeat(td_generator(TD_SHAPE(1), .next = next, .samples = 4, .user = &a), 2), "stream");
    expect_refusal(td_shard(td_generator(TD_SHAPE(1), .next = next, .user = &a), 0, 2), "not known");
}

int main(void)
{
    for (int i = 0; i < SAMPLES; i++)
        numbers[i] = (float)i;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeated),        cmocka_unit_test(test_shares_have_every_sample_once),
        cmocka_unit_test(test_origins),         cmocka_unit_test(test_in_turn),
        cmocka_unit_test(test_streams_in_turn), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
