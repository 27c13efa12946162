/* Files of secrets: written for their owner alone, refused when others have rights or when they are short; the key. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/cluster.h>
#include <unistd.h>

#include "link/secret.h"
#include "support/remove_folder.h"

static char folder[] = "/tmp/test-secret-XXXXXX", path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/secret", folder);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

static void put(size_t size, mode_t mode)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void expect_refused(const char *name, td_status status, const char *words)
{
    tdi_secret secret;
    tdi_error error = {0};
    assert_int_equal(tdi_secret_read(name, &secret, &error), status);
    assert_int_equal(secret.size, 0);
    if (!strstr(error.message, words) || !strstr(error.message, name))
        fail_msg("expected \"%s\" and %s in: %s", words, name, error.message);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    tdi_secret made, other, read;
    struct stat facts;
    unlink(path);
    assert_int_equal(tdi_secret_make(&made, NULL), TD_OK);
    assert_int_equal(tdi_secret_make(&other, NULL), TD_OK);
    assert_memory_not_equal(made.bytes, other.bytes, 32);
    assert_int_equal(tdi_secret_write(path, &made, NULL), TD_OK);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_int_equal(facts.st_size, 32);
    assert_int_equal(tdi_secret_read(path, &read, NULL), TD_OK);
    assert_memory_equal(&read, &made, sizeof made);
    tdi_error error = {0};
    assert_int_equal(tdi_secret_write(path, &other, &error), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "exists, and is left as it is"));
    assert_int_equal(tdi_secret_read(path, &read, NULL), TD_OK);
    assert_memory_equal(&read, &made, sizeof made);
    tdi_secret_forget(&made);
    assert_int_equal(made.size, 0);
}

static void others_rights_are_refused(void **state)
{
    (void)state;
    static const mode_t wrong[] = {0640, 0604, 0620, 0602, 0610, 0601, 0644, 0666, 0777, 0440};
    static const mode_t right[] = {0600, 0400, 0700};
    tdi_secret secret;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put(32, wrong[i]);
        expect_refused(path, TD_INVALID_ARGUMENT, "users other than its owner have rights to it");
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        put(32, right[i]);
        assert_int_equal(tdi_secret_read(path, &secret, NULL), TD_OK);
    }
}

static void sizes_are_checked(void **state)
{
    (void)state;
    tdi_secret secret;
    for (size_t size = 0; size < 16; size++) {
        put(size, 0600);
        expect_refused(path, TD_BAD_FILE, "expected at least 16 bytes");
    }
    put(16, 0600);
    assert_int_equal(tdi_secret_read(path, &secret, NULL), TD_OK);
    put(4096, 0600);
    assert_int_equal(tdi_secret_read(path, &secret, NULL), TD_OK);
    assert_int_equal(secret.size, 4096);
    put(4097, 0600);
    expect_refused(path, TD_BAD_FILE, "expected at most 4096 bytes, got 4097");
}

static void other_things_are_refused(void **state)
{
    (void)state;
    char name[80];
    snprintf(name, sizeof name, "%s/none", folder);
    expect_refused(name, TD_NOT_FOUND, "tandem cluster secret FILE");
    expect_refused(folder, TD_BAD_FILE, "a folder, not a file");
    snprintf(name, sizeof name, "%s/fifo", folder);
    assert_int_equal(mkfifo(name, 0600), 0);
    expect_refused(name, TD_BAD_FILE, "a pipe or a device, not a file");
    expect_refused("/dev/null", TD_BAD_FILE, "a pipe or a device, not a file");
}

/* RFC 5869 by Python's hmac: salt "tandem link 1", info "run 7", bytes 0 to 31. */
static void the_key_is_hkdf(void **state)
{
    (void)state;
    static const unsigned char expected[TDI_KEY_BYTES] = {
        0x7c, 0xf0, 0x4b, 0x38, 0x8f, 0xe4, 0xad, 0x28, 0x58, 0xcb, 0xd3, 0xd0, 0x3a, 0xb8, 0x67, 0x11,
        0x0f, 0xc2, 0xaa, 0x3e, 0x85, 0xe0, 0xe6, 0x35, 0xe5, 0x36, 0xbe, 0x0d, 0x9d, 0x60, 0xdc, 0x16};
    tdi_secret secret = {.size = 32};
    unsigned char key[TDI_KEY_BYTES], other[TDI_KEY_BYTES];
    for (int i = 0; i < 32; i++)
        secret.bytes[i] = (unsigned char)i;
    assert_int_equal(tdi_secret_key(&secret, "run 7", key, NULL), TD_OK);
    assert_memory_equal(key, expected, sizeof key);
    assert_int_equal(tdi_secret_key(&secret, "run 8", other, NULL), TD_OK);
    assert_memory_not_equal(key, other, sizeof key);
    assert_int_equal(tdi_secret_key(&secret, "", other, NULL), TD_OK);
    assert_memory_not_equal(key, other, sizeof key);
}

static void programs_write_secrets(void **state)
{
    (void)state;
    char name[80];
    tdi_secret secret;
    td_context *context = td_context_create(NULL);
    snprintf(name, sizeof name, "%s/other", folder);
    assert_int_equal(td_cluster_write_secret(context, name), TD_OK);
    assert_int_equal(tdi_secret_read(name, &secret, NULL), TD_OK);
    assert_int_equal(td_cluster_write_secret(context, name), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    assert_int_equal(td_cluster_write_secret(context, NULL), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "got NULL"));
    td_clear_error(context);
    snprintf(name, sizeof name, "%s/none/other", folder);
    assert_int_equal(td_cluster_write_secret(context, name), TD_NOT_FOUND);
    assert_int_equal(td_cluster_write_secret(NULL, name), TD_INVALID_ARGUMENT);
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read), cmocka_unit_test(others_rights_are_refused),
        cmocka_unit_test(sizes_are_checked),       cmocka_unit_test(other_things_are_refused),
        cmocka_unit_test(the_key_is_hkdf),         cmocka_unit_test(programs_write_secrets)};
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
