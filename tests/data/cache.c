/* The cache: every sample is read once; a file is used again, and refused when it is damaged or of other data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tandem/tandem.h>

#include "base/thread.h"
#include "data/folder.h"
#include "data/sample_reader.h"
#include "refusal.h"

enum { SAMPLES = 500, ELEMENTS = 12, PROBES = 32 };

/* ---- a source that counts ---- */

typedef struct counted {
    tdi_sample_reader reader;
    atomic_int reads;
    int added; /* to every value: other data */
    td_data data;
} counted;

static td_status counted_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    counted *of = (counted *)reader;
    (void)error;
    atomic_fetch_add(&of->reads, 1);
    for (int i = 0; i < ELEMENTS && column == 0; i++)
        ((uint8_t *)to)[i] = (uint8_t)(row * 7 + i + of->added);
    if (column == 1)
        *(float *)to = (float)row;
    return TD_OK;
}

static void counted_release(tdi_source *source)
{
    (void)source;
}

static td_data *counted_data(counted *of)
{
    tdi_source *source = &of->reader.source;
    *of = (counted){.reader.read = counted_read};
    *source = (tdi_source){.name = "counted", .samples = SAMPLES, .n_x = 1, .n_y = 1, .stamp = 5};
    source->gather = tdi_sample_reader_gather;
    source->release = counted_release;
    source->columns[0] = (tdi_column){.name = "x", .dtype = TD_UINT8, .scale = 0.5f};
    source->columns[0].shape = TD_SHAPE(2, 2, 3);
    source->columns[1] = (tdi_column){.name = "y", .dtype = TD_FLOAT32, .scale = 1};
    of->data.source = source;
    atomic_init(&of->data.references, 2);
    return &of->data;
}

static void fine(const td_data *data)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
}

static void expect_samples(td_data *data, int added)
{
    float x[SAMPLES][ELEMENTS], y[SAMPLES];
    td_context *context = td_context_create(NULL);
    if (td_data_read(context, data, NULL, SAMPLES, x[0], y) != TD_OK)
        fail_msg("%s", td_error(context));
    for (int row = 0; row < SAMPLES; row++) {
        assert_true(y[row] == (float)row);
        for (int i = 0; i < ELEMENTS; i++)
            assert_true(x[row][i] == (float)(uint8_t)(row * 7 + i + added) * 0.5f);
    }
    td_context_free(context);
}

/* ---- memory ---- */

static void test_memory_reads_once(void **state)
{
    (void)state;
    counted of;
    td_data *data = td_cache(counted_data(&of));
    fine(data);
    for (int i = 0; i < 3; i++)
        expect_samples(data, 0);
    assert_int_equal(atomic_load(&of.reads), 2 * SAMPLES);
    td_data_release(data);
}

static void read_all(void *data, int index)
{
    (void)index;
    expect_samples(data, 0);
}

static void test_threads_share_it(void **state)
{
    const folder *in = *state;
    tdi_error error = {0};
    tdi_team *team;
    assert_int_equal(tdi_team_create(4, &team, &error), TD_OK);
    for (int i = 0; i < 2; i++) {
        counted of;
        td_data *data = td_cache(counted_data(&of), .file = i ? folder_path(in, "shared") : NULL);
        fine(data);
        tdi_team_run(team, 4, read_all, data);
        atomic_store(&of.reads, 0);
        tdi_team_run(team, 4, read_all, data);
        assert_int_equal(atomic_load(&of.reads), 0);
        td_data_release(data);
    }
    tdi_team_free(team);
}

static void test_what_cannot_be_cached(void **state)
{
    (void)state;
    counted of;
    expect_refusal(td_cache(td_augment(counted_data(&of), .crop = 1)), "cache first, then augment");
    expect_refusal(td_cache(td_open("no/such/data")), "no/such/data");
    td_data *data = counted_data(&of);
    of.reader.source.samples = INT64_C(1) << 50;
    expect_refusal(td_cache(data), "cache them in a file");
}

/* ---- a file ---- */

static int count_files(const folder *in)
{
    int count = 0;
    DIR *entries = opendir(in->path);
    for (struct dirent *entry; (entry = readdir(entries));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(entries);
    return count;
}

static void test_a_file_is_used_again(void **state)
{
    const folder *in = *state;
    counted of;
    td_data *data = td_cache(counted_data(&of), .file = folder_path(in, "cache"));
    fine(data);
    assert_int_equal(access(folder_path(in, "cache"), F_OK), -1); /* not complete yet */
    expect_samples(data, 0);
    assert_int_equal(access(folder_path(in, "cache"), F_OK), 0);
    expect_samples(data, 0);
    assert_int_equal(atomic_load(&of.reads), 2 * SAMPLES + PROBES);
    td_data_release(data);
    data = td_cache(counted_data(&of), .file = folder_path(in, "cache"));
    fine(data);
    expect_samples(data, 0);
    assert_int_equal(atomic_load(&of.reads), PROBES);
    td_data_release(data);
}

static void test_an_incomplete_file_is_removed(void **state)
{
    const folder *in = *state;
    counted of;
    int before = count_files(in);
    float x[ELEMENTS];
    td_context *context = td_context_create(NULL);
    td_data *data = td_cache(counted_data(&of), .file = folder_path(in, "incomplete"));
    fine(data);
    assert_int_equal(td_data_read(context, data, NULL, 1, x, NULL), TD_OK);
    assert_int_equal(td_data_read(context, data, NULL, 1, x, NULL), TD_OK);
    assert_int_equal(atomic_load(&of.reads), PROBES + 1);
    assert_int_equal(count_files(in), before + 1);
    td_data_release(data);
    assert_int_equal(count_files(in), before);
    td_context_free(context);
}

static void test_other_data_is_refused(void **state)
{
    const folder *in = *state;
    counted of;
    const char *path = folder_path(in, "cache");
    td_data *data = counted_data(&of);
    of.reader.source.stamp = 6;
    expect_refusal(td_cache(data, .file = path), "made of other data");
    data = counted_data(&of);
    of.added = 1;
    expect_refusal(td_cache(data, .file = path), "made of other data");
    data = counted_data(&of);
    of.reader.source.columns[0].shape = TD_SHAPE(2, 3, 2);
    expect_refusal(td_cache(data, .file = path), "made of other data");
}

static void test_damage_is_found(void **state)
{
    const folder *in = *state;
    static unsigned char whole[65536], bytes[65536];
    size_t size = folder_read(in, "cache", whole, sizeof whole);
    assert_int_equal(size, 4096 + SAMPLES * (ELEMENTS + 4) + 2 * SAMPLES * 4 + 4);
    td_context *context = td_context_create(NULL);
    counted of;
    for (size_t at = 0; at < size; at += 97) {
        static float x[SAMPLES][ELEMENTS], y[SAMPLES];
        memcpy(bytes, whole, size);
        bytes[at] ^= 0x10;
        folder_write(in, "damaged", bytes, size);
        td_data *data = td_cache(counted_data(&of), .file = folder_path(in, "damaged"));
        bool read = !td_data_error(data) && td_data_read(context, data, NULL, SAMPLES, x[0], y) == TD_OK;
        assert_false(read);
        td_data_release(data);
        td_clear_error(context);
    }
    for (size_t cut = 0; cut < size; cut += 997) {
        folder_write(in, "damaged", whole, cut);
        expect_refusal(td_cache(counted_data(&of), .file = folder_path(in, "damaged")), "remove it");
    }
    td_context_free(context);
}

static void test_no_room_is_told_at_once(void **state)
{
    const folder *in = *state;
    counted of;
    int before = count_files(in);
    struct rlimit old, small = {8192, 8192};
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    expect_refusal(td_cache(counted_data(&of), .file = folder_path(in, "large")), "no room for the cache's");
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(count_files(in), before);
    expect_refusal(td_cache(counted_data(&of), .file = folder_path(in, "no/such/folder")), "no/such");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_reads_once),
        cmocka_unit_test(test_threads_share_it),
        cmocka_unit_test(test_what_cannot_be_cached),
        cmocka_unit_test(test_a_file_is_used_again),
        cmocka_unit_test(test_an_incomplete_file_is_removed),
        cmocka_unit_test(test_other_data_is_refused),
        cmocka_unit_test(test_damage_is_found),
        cmocka_unit_test(test_no_room_is_told_at_once),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_drop);
}
