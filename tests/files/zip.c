/* zip.c - archives come back as they were written; damaged and hostile ones are refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zip.h>

#include "files/scratch.h"
#include "files/zip.h"

static const tdi_zip_entry sample[] = {{.name = "first.txt", .bytes = "hello, archive", .size = 14},
                                       {.name = "../outside", .bytes = "abc", .size = 3},
                                       {.name = "empty", .bytes = "", .size = 0}};

static void write_sample(void)
{
    tdi_error error = {0};
    td_status status = tdi_zip_write(scratch_path("a.zip"), 3, sample, &error);
    if (status != TD_OK)
        fail_msg("%s", error.message);
}

static td_status read_first(const char *name, size_t limit, tdi_error *error)
{
    tdi_zip *zip;
    void *bytes;
    size_t size;
    TDI_TRY(tdi_zip_open(scratch_path(name), &zip, error));
    td_status status = tdi_zip_read(zip, "first.txt", limit, &bytes, &size, error);
    free(bytes);
    tdi_zip_close(zip);
    return status;
}

static void test_round_trip(void **state)
{
    (void)state;
    tdi_zip *zip;
    write_sample();
    assert_int_equal(scratch_count(), 1);
    assert_int_equal(tdi_zip_open(scratch_path("a.zip"), &zip, NULL), TD_OK);
    assert_int_equal(tdi_zip_count(zip), 3);
    assert_string_equal(tdi_zip_name(zip, 1), "../outside");
    assert_true(tdi_zip_has(zip, "first.txt"));
    assert_false(tdi_zip_has(zip, "first"));
    for (int i = 0; i < 3; i++) {
        void *bytes;
        size_t size;
        assert_int_equal(tdi_zip_read(zip, sample[i].name, 100, &bytes, &size, NULL), TD_OK);
        assert_int_equal(size, sample[i].size);
        assert_memory_equal(bytes, sample[i].bytes, size);
        free(bytes);
    }
    tdi_zip_close(zip);
}

static void test_entries_are_stored(void **state)
{
    (void)state;
    size_t size;
    write_sample();
    char *bytes = scratch_read("a.zip", &size);
    assert_non_null(memmem(bytes, size, "hello, archive", 14));
    free(bytes);
}

static void test_same_content_gives_the_same_bytes(void **state)
{
    (void)state;
    size_t size[2];
    char *bytes[2];
    for (int i = 0; i < 2; i++) {
        write_sample();
        bytes[i] = scratch_read("a.zip", &size[i]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
}

static void test_a_wrong_checksum_is_found(void **state)
{
    (void)state;
    size_t size;
    tdi_error error = {0};
    write_sample();
    char *bytes = scratch_read("a.zip", &size);
    char *content = memmem(bytes, size, "hello", 5);
    assert_non_null(content);
    content[0] = 'j';
    scratch_write("b.zip", bytes, size);
    free(bytes);
    assert_int_equal(read_first("b.zip", 100, &error), TD_BAD_FILE);
    assert_non_null(strstr(error.message, "first.txt"));
}

static void test_truncated_at_every_length(void **state)
{
    (void)state;
    size_t size;
    write_sample();
    char *bytes = scratch_read("a.zip", &size);
    for (size_t length = 0; length < size; length++) {
        tdi_error error = {0};
        scratch_write("b.zip", bytes, length);
        assert_int_not_equal(read_first("b.zip", 100, &error), TD_OK);
        assert_true(strlen(error.message) > 20);
    }
    free(bytes);
}

static void test_limits(void **state)
{
    (void)state;
    tdi_error error = {0};
    write_sample();
    assert_int_equal(read_first("a.zip", 14, NULL), TD_OK);
    assert_int_equal(read_first("a.zip", 13, &error), TD_BAD_FILE);
}

static void test_missing_entry(void **state)
{
    (void)state;
    tdi_zip *zip;
    tdi_error error = {0};
    void *bytes;
    size_t size;
    write_sample();
    assert_int_equal(tdi_zip_open(scratch_path("a.zip"), &zip, NULL), TD_OK);
    assert_int_equal(tdi_zip_read(zip, "absent", 100, &bytes, &size, &error), TD_NOT_FOUND);
    assert_non_null(strstr(error.message, "absent"));
    tdi_zip_close(zip);
}

static void test_a_bomb_is_refused(void **state)
{
    (void)state;
    const size_t size = (size_t)300 << 20;
    tdi_error error = {0};
    char *zeros = calloc(1, size);
    zip_t *archive = zip_open(scratch_path("bomb.zip"), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(zeros);
    assert_non_null(archive);
    assert_int_equal(zip_file_add(archive, "first.txt", zip_source_buffer(archive, zeros, size, 0), 0), 0);
    assert_int_equal(zip_close(archive), 0);
    free(zeros);
    assert_int_equal(read_first("bomb.zip", SIZE_MAX, &error), TD_BAD_FILE);
    assert_non_null(strstr(error.message, "bomb"));
}

/* An archive that claims less than the entry holds: found at the end of reading. */
static void test_a_lying_size_is_refused(void **state)
{
    (void)state;
    size_t size;
    static char long_text[4000];
    memset(long_text, 'a', sizeof long_text);
    zip_t *archive = zip_open(scratch_path("c.zip"), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(archive);
    zip_file_add(archive, "first.txt", zip_source_buffer(archive, long_text, sizeof long_text, 0), 0);
    assert_int_equal(zip_close(archive), 0);
    assert_int_equal(read_first("c.zip", 5000, NULL), TD_OK);
    char *bytes = scratch_read("c.zip", &size);
    char *central = memmem(bytes, size, "PK\1\2", 4);
    assert_non_null(central);
    central[24] = 100;
    central[25] = 0;
    scratch_write("c.zip", bytes, size);
    free(bytes);
    assert_int_equal(read_first("c.zip", 5000, NULL), TD_BAD_FILE);
}

static void test_what_is_no_archive(void **state)
{
    (void)state;
    tdi_zip *zip;
    tdi_error error = {0};
    scratch_write("text", "no archive at all", 17);
    assert_int_equal(tdi_zip_open(scratch_path("text"), &zip, &error), TD_BAD_FILE);
    assert_null(zip);
    assert_int_equal(tdi_zip_open(scratch_path("absent"), &zip, NULL), TD_NOT_FOUND);
    assert_int_equal(tdi_zip_open(scratch_folder, &zip, NULL), TD_BAD_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_entries_are_stored),
        cmocka_unit_test(test_same_content_gives_the_same_bytes),
        cmocka_unit_test(test_a_wrong_checksum_is_found),
        cmocka_unit_test(test_truncated_at_every_length),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_missing_entry),
        cmocka_unit_test(test_a_bomb_is_refused),
        cmocka_unit_test(test_a_lying_size_is_refused),
        cmocka_unit_test(test_what_is_no_archive),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
