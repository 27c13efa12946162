/* atomic.c - the path holds the old content or all of the new, and nothing is left beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "files/atomic_file.h"
#include "files/scratch.h"

/* All of it for content in memory. */
static td_status write_file(const char *path, const void *bytes, size_t size, tdi_error *error)
{
    tdi_atomic *file;
    TDI_TRY(tdi_atomic_create(path, &file, error));
    td_status status = tdi_atomic_write(file, bytes, size, error);
    if (status == TD_OK)
        return tdi_atomic_commit(file, error);
    tdi_atomic_abort(file);
    return status;
}

static void assert_holds(const char *name, const char *expected)
{
    size_t size;
    char *bytes = scratch_read(name, &size);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(bytes, expected, size);
    free(bytes);
}

static void test_writes_a_new_file(void **state)
{
    (void)state;
    tdi_error error = {0};
    assert_int_equal(write_file(scratch_path("new"), "hello", 5, &error), TD_OK);
    assert_holds("new", "hello");
    assert_int_equal(scratch_count(), 1);
    unlink(scratch_path("new"));
}

static void test_keeps_the_old_files_mode(void **state)
{
    (void)state;
    struct stat info;
    scratch_write("old", "old", 3);
    chmod(scratch_path("old"), 0640);
    assert_int_equal(write_file(scratch_path("old"), "new", 3, NULL), TD_OK);
    assert_holds("old", "new");
    assert_int_equal(stat(scratch_path("old"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    unlink(scratch_path("old"));
}

static void test_follows_a_link(void **state)
{
    (void)state;
    struct stat info;
    scratch_write("target", "old", 3);
    assert_int_equal(symlink(scratch_path("target"), scratch_path("link")), 0);
    assert_int_equal(write_file(scratch_path("link"), "new", 3, NULL), TD_OK);
    assert_holds("target", "new");
    assert_int_equal(lstat(scratch_path("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    unlink(scratch_path("link"));
    unlink(scratch_path("target"));
}

static void test_abort_leaves_nothing(void **state)
{
    (void)state;
    tdi_atomic *file;
    scratch_write("kept", "old", 3);
    assert_int_equal(tdi_atomic_create(scratch_path("kept"), &file, NULL), TD_OK);
    assert_int_equal(tdi_atomic_write(file, "new", 3, NULL), TD_OK);
    assert_int_equal(scratch_count(), 2);
    tdi_atomic_abort(file);
    assert_holds("kept", "old");
    assert_int_equal(scratch_count(), 1);
    unlink(scratch_path("kept"));
}

/* A limit on file sizes stands for a disk that fills up. */
static void test_full_disk_keeps_the_old_file(void **state)
{
    (void)state;
    static char large[100000];
    tdi_error error = {0};
    struct rlimit old, small;
    scratch_write("kept", "old", 3);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){5000, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    td_status status = write_file(scratch_path("kept"), large, sizeof large, &error);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, TD_IO);
    assert_non_null(strstr(error.message, "kept"));
    assert_holds("kept", "old");
    assert_int_equal(scratch_count(), 1);
    unlink(scratch_path("kept"));
}

static void test_refuses_what_is_no_file(void **state)
{
    (void)state;
    tdi_error error = {0};
    assert_int_equal(write_file("/dev/null", "x", 1, &error), TD_IO);
    assert_non_null(strstr(error.message, "/dev/null"));
    error = (tdi_error){0};
    assert_int_equal(write_file(scratch_folder, "x", 1, &error), TD_IO);
    assert_non_null(strstr(error.message, "folder"));
    error = (tdi_error){0};
    assert_int_equal(write_file(scratch_path("no/such"), "x", 1, &error), TD_NOT_FOUND);
    assert_int_equal(scratch_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes_a_new_file),
        cmocka_unit_test(test_keeps_the_old_files_mode),
        cmocka_unit_test(test_follows_a_link),
        cmocka_unit_test(test_abort_leaves_nothing),
        cmocka_unit_test(test_full_disk_keeps_the_old_file),
        cmocka_unit_test(test_refuses_what_is_no_file),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
