/* stored.c - arrays that are read by rows from where they lie: as in memory, and files that change meanwhile. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tandem/tandem.h>

#include "data/array_table.h"
#include "data/folder.h"
#include "files/npy_file.h"

enum { SAMPLES = 9, WIDTH = 3, HEAD = 128 };

/* A .npy file of [SAMPLES, WIDTH] elements whose bytes count up, each below 64: so no float is NaN. */
static void write_npy(const folder *in, const char *type)
{
    unsigned char bytes[HEAD + SAMPLES * WIDTH * 8] = "\x93NUMPY\x01\x00\x76";
    size_t size = (size_t)(type[2] - '0') * SAMPLES * WIDTH;
    memset(bytes + 10, ' ', HEAD - 10);
    int used = snprintf((char *)bytes + 10, HEAD - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }",
                        type, SAMPLES, WIDTH);
    bytes[10 + used] = ' ';
    bytes[HEAD - 1] = '\n';
    for (size_t i = 0; i < size; i++)
        bytes[HEAD + i] = (unsigned char)(i * 7 % 64);
    folder_write(in, "x.npy", bytes, HEAD + size);
}

/* The same file's array as a source that memory is said not to hold. */
static tdi_source *by_rows(const folder *in, float scale)
{
    tdi_table *table;
    tdi_npy npy;
    tdi_array array = {0};
    const char *path = folder_path(in, "x.npy");
    assert_int_equal(tdi_table_create(path, &table, NULL), TD_OK);
    assert_int_equal(tdi_store_open(path, &array.stored.store, NULL), TD_OK);
    assert_int_equal(tdi_npy_look(array.stored.store, &npy, NULL), TD_OK);
    array.stored.begin = (int64_t)npy.offset;
    array.stored.numbers = npy.numbers;
    array.dtype = npy.numbers.dtype;
    array.samples = npy.shape.dim[0];
    array.shape = TD_SHAPE(npy.shape.dim[1]);
    assert_int_equal(tdi_table_add(table, false, "x", scale, &array, NULL), TD_OK);
    return &table->reader.source;
}

static const int64_t rows[] = {4, 5, 6, 0, 8, 7, 2, 3};
enum { ROWS = sizeof rows / sizeof *rows };

static void expect_same(tdi_source *a, tdi_source *b, td_dtype as, size_t size)
{
    unsigned char first[ROWS * WIDTH * 8] = {0}, second[ROWS * WIDTH * 8] = {0};
    tdi_error errors[2] = {{0}};
    td_status status = a->gather(a, 0, rows, ROWS, first, as, &errors[0]);
    assert_int_equal(b->gather(b, 0, rows, ROWS, second, as, &errors[1]), status);
    assert_string_equal(errors[0].message, errors[1].message);
    if (status == TD_OK)
        assert_memory_equal(first, second, ROWS * WIDTH * size);
}

static void any_numbers_are_as_in_memory(void **state)
{
    const folder *in = *state;
    static const char *const types[] = {"<f2", "<f4", "<f8", ">f2", ">f4", ">f8", "|i1", "|u1", "|b1", "<i2",
                                        "<u2", "<i4", "<u4", "<i8", "<u8", ">i2", ">u2", ">i4", ">u4", ">i8"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        write_npy(in, types[i]);
        td_data *data = td_open(folder_path(in, "x.npy"), .scale = 3);
        if (td_data_error(data))
            fail_msg("%s", td_data_error(data));
        tdi_source *stored = by_rows(in, 3);
        td_dtype dtype = stored->columns[0].dtype;
        expect_same(data->source, stored, TD_FLOAT32, sizeof(float));
        expect_same(data->source, stored, TD_INT32, sizeof(int32_t));
        expect_same(data->source, stored, dtype, td_dtype_size(dtype));
        stored->release(stored);
        td_data_release(data);
    }
}

static uint32_t fingerprint(const tdi_source *source)
{
    uint32_t crc = 0;
    assert_int_equal(tdi_source_fingerprint(source, &crc, NULL, NULL), TD_OK);
    return crc;
}

/* A backup made where memory held the data is known where it does not. */
static void the_fingerprint_is_as_in_memory(void **state)
{
    const folder *in = *state;
    tdi_source *ranges[2];
    write_npy(in, "<i2");
    td_data *data = td_open(folder_path(in, "x.npy"));
    tdi_source *stored = by_rows(in, 1);
    assert_non_null(data->source->columns[0].values);
    assert_null(stored->columns[0].values);
    assert_int_equal(fingerprint(stored), fingerprint(data->source));
    assert_int_equal(tdi_source_range(stored, 2, 5, &ranges[0], NULL), TD_OK);
    assert_int_equal(tdi_source_range(data->source, 2, 5, &ranges[1], NULL), TD_OK);
    assert_int_equal(fingerprint(ranges[0]), fingerprint(ranges[1]));
    assert_int_not_equal(fingerprint(ranges[0]), fingerprint(stored));
    for (int i = 0; i < 2; i++)
        ranges[i]->release(ranges[i]);
    stored->release(stored);
    td_data_release(data);
}

static void expect_failure(tdi_source *source, const char *words)
{
    float values[WIDTH];
    tdi_error error = {0};
    assert_int_equal(source->gather(source, 0, &(int64_t){SAMPLES - 1}, 1, values, TD_FLOAT32, &error), TD_IO);
    if (!strstr(error.message, "x.npy: ") || !strstr(error.message, words))
        fail_msg("\"%s\" lacks \"%s\"", error.message, words);
    source->release(source);
}

static void a_file_that_changes_is_named(void **state)
{
    const folder *in = *state;
    write_npy(in, "<f4");
    tdi_source *source = by_rows(in, 1);
    assert_int_equal(truncate(folder_path(in, "x.npy"), HEAD + 8), 0);
    expect_failure(source, "cut short while it was being read");
    write_npy(in, "<f4");
    source = by_rows(in, 1);
    usleep(20000); /* so that the time of its change is another */
    write_npy(in, "<f4");
    expect_failure(source, "changed while it was being read");
    write_npy(in, "<f4");
    source = by_rows(in, 1);
    unlink(folder_path(in, "x.npy")); /* it is still there for who has opened it */
    float values[WIDTH];
    assert_int_equal(source->gather(source, 0, rows, 1, values, TD_FLOAT32, NULL), TD_OK);
    source->release(source);
}

/* Opening a pipe would wait for who writes into it. */
static void what_is_no_file_is_named(void **state)
{
    const folder *in = *state;
    static const char *const endings[] = {"csv", "csv.gz", "txt", "npy", "npz", "h5", "tfrecord"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        for (int pipe = 0; pipe < 2; pipe++) {
            char name[16], path[512];
            snprintf(name, sizeof name, "a.%s", endings[i]);
            snprintf(path, sizeof path, "%s", folder_path(in, name));
            assert_int_equal(pipe ? mkfifo(path, 0600) : mkdir(path, 0700), 0);
            td_data *data = td_open(path);
            const char *error = td_data_error(data);
            assert_non_null(error);
            if (!strstr(error, name) || !strstr(error, pipe ? i == 4 ? "no regular file" : "a pipe" : "a folder"))
                fail_msg("\"%s\"", error);
            td_data_release(data);
            remove(path);
        }
}

/* ---- what is put together ---- */

enum { NEVER_HELD = 1 }; /* so many exbibytes */

static void pieces_come_back(void **state)
{
    (void)state;
    static unsigned char pieces[3 << 18], back[sizeof pieces];
    const int64_t expected[] = {0, sizeof pieces, (int64_t)NEVER_HELD << 60};
    for (size_t i = 0; i < sizeof pieces; i++)
        pieces[i] = (unsigned char)(i * 31 >> 3);
    for (size_t way = 0; way < sizeof expected / sizeof *expected; way++) {
        tdi_store *store;
        size_t put = 0, sizes[] = {1, 1000, 200000, 300000, 0, 5};
        assert_int_equal(tdi_store_create("pieces", expected[way], &store, NULL), TD_OK);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; put += sizes[i++])
            assert_int_equal(tdi_store_put(store, pieces + put, sizes[i], NULL), TD_OK);
        assert_int_equal(tdi_store_end(store, NULL), TD_OK);
        assert_int_equal(tdi_store_size(store), put);
        assert_int_equal(tdi_store_bytes(store) != NULL, way < 2);
        assert_int_equal(tdi_store_read(store, 0, back, (int64_t)put, NULL), TD_OK);
        assert_memory_equal(back, pieces, put);
        assert_int_equal(tdi_store_read(store, 1001, back, 7, NULL), TD_OK);
        assert_memory_equal(back, pieces + 1001, 7);
        tdi_store_free(store);
    }
}

static void a_full_disk_is_named(void **state)
{
    (void)state;
    static const unsigned char zeros[1 << 20];
    struct rlimit old, small;
    tdi_store *store;
    tdi_error error = {0};
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){1 << 16, old.rlim_max};
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    assert_int_equal(tdi_store_create("big.csv", (int64_t)NEVER_HELD << 60, &store, &error), TD_OK);
    td_status status = tdi_store_put(store, zeros, sizeof zeros, &error);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, before);
    tdi_store_free(store);
    assert_int_equal(status, TD_IO);
    if (!strstr(error.message, "big.csv: cannot be put into a temporary file in ") || !strstr(error.message, "TMPDIR"))
        fail_msg("%s", error.message);
    setenv("TMPDIR", "/nowhere at all", 1);
    error = (tdi_error){0};
    assert_int_equal(tdi_store_create("big.csv", (int64_t)NEVER_HELD << 60, &store, &error), TD_IO);
    assert_non_null(strstr(error.message, "/nowhere at all"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_numbers_are_as_in_memory),
        TEST(the_fingerprint_is_as_in_memory),
        TEST(a_file_that_changes_is_named),
        TEST(what_is_no_file_is_named),
        TEST(pieces_come_back),
        TEST(a_full_disk_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
