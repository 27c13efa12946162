/* fingerprint.c - by what a backup knows its data again: a change of any value in memory is seen, and a copy is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <tandem/tandem.h>

#include "data/folder.h"
#include "data/source.h"

enum { SAMPLES = 1000, SIDE = 2, CHANGED = 333 };

static float x[SAMPLES][SIDE][SIDE];
static int32_t y[SAMPLES];

static td_data *arrays(void)
{
    return td_arrays(SAMPLES, x, TD_SHAPE(SIDE, SIDE), .y = y, .y_dtype = TD_INT32);
}

static td_data *repeated(void)
{
    return td_repeat(arrays(), 2);
}

static td_data *shared(void)
{
    return td_shard(arrays(), 0, 2);
}

static td_data *augmented(void)
{
    return td_augment(arrays(), .flip = TD_FLIP_HORIZONTAL);
}

static td_data *resized(void)
{
    return td_resize(augmented(), 3, 3);
}

static td_data *cached(void)
{
    return td_cache(repeated());
}

static td_data *in_turn(void)
{
    return td_interleave(TD_DATA_LIST(arrays(), arrays()));
}

static uint32_t fingerprint(td_data *data)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    uint32_t crc = 0;
    tdi_error error = {0};
    assert_int_equal(tdi_source_fingerprint(data->source, &crc, NULL, &error), TD_OK);
    td_data_release(data);
    return crc;
}

static void any_value_in_memory_counts(void **state)
{
    (void)state;
    td_data *(*const makers[])(void) = {arrays, repeated, shared, augmented, resized, cached, in_turn};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        uint32_t before = fingerprint(makers[i]());
        y[CHANGED]++;
        assert_int_not_equal(fingerprint(makers[i]()), before);
        y[CHANGED]--;
        x[CHANGED][1][1] = 1;
        assert_int_not_equal(fingerprint(makers[i]()), before);
        x[CHANGED][1][1] = 0;
        assert_int_equal(fingerprint(makers[i]()), before);
    }
}

/* A part of the samples is known by that part, or by all of what a stage is made of. */
static void a_range_counts(void **state)
{
    (void)state;
    for (int staged = 0; staged < 2; staged++) {
        uint32_t crc[2] = {0, 0};
        for (int changed = 0; changed < 2; changed++) {
            td_data *data = staged ? repeated() : arrays();
            tdi_source *range;
            tdi_error error;
            y[CHANGED] = changed;
            assert_int_equal(tdi_source_range(data->source, CHANGED - 5, 10, &range, &error), TD_OK);
            assert_int_equal(tdi_source_fingerprint(range, &crc[changed], NULL, &error), TD_OK);
            range->release(range);
            td_data_release(data);
        }
        assert_int_not_equal(crc[0], crc[1]);
        y[CHANGED] = 0;
    }
}

static uint32_t of_file(const folder *in, const char *name, const void *bytes, size_t size)
{
    folder_write(in, name, bytes, size);
    return fingerprint(td_open(folder_path(in, name), .window = strstr(name, ".txt") ? 2 : 0));
}

static void a_changed_file_counts(void **state)
{
    const folder *in = *state;
    char words[] = "a,b\n1,2\n3,4\n5,6\n";
    for (int text = 0; text < 2; text++) {
        uint32_t before = of_file(in, text ? "a.txt" : "a.csv", words, strlen(words));
        words[strlen(words) - 2] = '7';
        assert_int_not_equal(of_file(in, text ? "a.txt" : "a.csv", words, strlen(words)), before);
        words[strlen(words) - 2] = '6';
        assert_int_equal(of_file(in, text ? "copy.txt" : "copy.csv", words, strlen(words)), before);
    }
}

/* By the checksums that stand in the file. */
static void records_count_by_their_checksums(void **state)
{
    const folder *in = *state;
    char path[1024], bytes[1 << 16];
    const char *here = __FILE__;
    snprintf(path, sizeof path, "%.*sgolden/numbers.tfrecord", (int)(strrchr(here, '/') + 1 - here), here);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    folder_write(in, "a.tfrecord", bytes, size);
    const char *features = "x=a,y=b";
    uint32_t before = fingerprint(td_open(folder_path(in, "a.tfrecord"), .features = features));
    folder_write(in, "b.tfrecord", bytes, size);
    assert_int_equal(fingerprint(td_open(folder_path(in, "b.tfrecord"), .features = features)), before);
    bytes[size - 4] ^= 1; /* the last record's */
    folder_write(in, "b.tfrecord", bytes, size);
    td_data *data = td_open(folder_path(in, "b.tfrecord"), .features = features, .skip_errors = TD_YES);
    assert_int_not_equal(fingerprint(data), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_value_in_memory_counts),
        cmocka_unit_test(a_range_counts),
        cmocka_unit_test_setup_teardown(a_changed_file_counts, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(records_count_by_their_checksums, folder_make, folder_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
