/* hdf5.c - what is written comes back, and what libhdf5 writes in other ways; what leads outside the file, or hides its
 * size, is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hdf5.h>

#include "files/hdf5/hdf5_read.h"
#include "files/scratch.h"
#include "files/whole.h"
#include "fuzz/support/memory_store.h"

static const float kernel[6] = {1, -2.5f, 3, 4, 5, 1e-30f};
static const td_shape kernel_shape = {2, {2, 3}};

static void *sample(size_t *size)
{
    tdi_hdf5_writer *file;
    void *bytes;
    assert_int_equal(tdi_hdf5_create("sample", &file, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write_group(file, "layers/dense/vars", NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write_attribute(file, "layers/dense/vars", "name", "d\xc3\xa9nse", NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write(file, "layers/dense/vars/0", &kernel_shape, kernel, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write_int(file, "optimizer/vars/0", 7, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write_int(file, "optimizer/vars/1", (int64_t)1 << 40, NULL), TD_OK);
    bytes = hdf5_whole(file, size);
    tdi_hdf5_close(file);
    return bytes;
}

static td_status try_image(const void *bytes, size_t size, const char *name, tdi_hdf5_file **file, tdi_error *error)
{
    tdi_store *store = memory_store(bytes, size, name);
    td_status status = tdi_hdf5_file_in_store(store, name, file, error);
    if (status != TD_OK)
        tdi_store_free(store);
    return status;
}

static tdi_hdf5_file *open_image(const void *bytes, size_t size)
{
    tdi_hdf5_file *file;
    tdi_error error = {0};
    if (try_image(bytes, size, "sample", &file, &error) != TD_OK)
        fail_msg("%s", error.message);
    return file;
}

static void close_image(tdi_hdf5_file *file)
{
    tdi_store *store = (tdi_store *)(uintptr_t)file->store;
    tdi_hdf5_file_close(file);
    tdi_store_free(store);
}

static void assert_count(tdi_hdf5_file *file, const char *path, int64_t wanted)
{
    int64_t count;
    assert_int_equal(tdi_hdf5_file_count(file, path, &count, NULL), TD_OK);
    assert_int_equal(count, wanted);
}

static void test_round_trip(void **state)
{
    (void)state;
    size_t size;
    void *bytes = sample(&size);
    float values[6];
    double number;
    tdi_hdf5_file *file = open_image(bytes, size);
    assert_true(tdi_hdf5_file_has(file, "layers/dense"));
    assert_false(tdi_hdf5_file_has(file, "layers/conv2d/vars"));
    assert_false(tdi_hdf5_file_has(file, "layers/dense/vars/0/deeper"));
    assert_count(file, "layers/dense/vars", 1);
    assert_count(file, "optimizer/vars", 2);
    assert_count(file, "absent", 0);
    assert_int_equal(tdi_hdf5_read(file, "layers/dense/vars/0", &kernel_shape, values, NULL), TD_OK);
    assert_memory_equal(values, kernel, sizeof kernel);
    assert_int_equal(tdi_hdf5_read_number(file, "optimizer/vars/0", &number, NULL), TD_OK);
    assert_true(number == 7);
    assert_int_equal(tdi_hdf5_read_number(file, "optimizer/vars/1", &number, NULL), TD_OK);
    assert_true(number == 0x1p40);
    close_image(file);
    free(bytes);
}

static void test_same_content_gives_the_same_bytes(void **state)
{
    (void)state;
    size_t size[2];
    void *bytes[2] = {sample(&size[0]), sample(&size[1])};
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
}

static void test_wrong_shapes_and_names(void **state)
{
    (void)state;
    size_t size;
    void *bytes = sample(&size);
    tdi_error error = {0};
    float values[6];
    double number;
    td_shape other = TD_SHAPE(3, 2);
    tdi_hdf5_file *file = open_image(bytes, size);
    assert_int_equal(tdi_hdf5_read(file, "layers/dense/vars/0", &other, values, &error), TD_BAD_FILE);
    assert_non_null(strstr(error.message, "[2, 3]"));
    assert_non_null(strstr(error.message, "[3, 2]"));
    assert_int_equal(tdi_hdf5_read_number(file, "layers/dense/vars/0", &number, NULL), TD_BAD_FILE);
    assert_int_equal(tdi_hdf5_read(file, "absent", &other, values, NULL), TD_NOT_FOUND);
    assert_int_equal(tdi_hdf5_read(file, "layers", &other, values, NULL), TD_BAD_FILE);
    close_image(file);
    free(bytes);
}

/* ---- files made by libhdf5, in its original format or the newest ---- */

enum { COUNT = 1000 };

static float numbers[COUNT];

static void add_array(hid_t file, const char *name, hid_t type, hid_t creation)
{
    hsize_t dims[] = {COUNT};
    hid_t space = H5Screate_simple(1, dims, NULL);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers); /* not where that leads elsewhere */
    H5Dclose(dataset);
    H5Sclose(space);
}

static char *image_of(void (*add)(hid_t file), bool newest, size_t *size)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (newest)
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(scratch_path("made.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    assert_true(file >= 0);
    H5Pclose(access);
    add(file);
    H5Fclose(file);
    return scratch_read("made.h5", size);
}

/* In chunks of `chunk`; 0: whole. */
static void add_packed(hid_t file, const char *name, hid_t type, hsize_t chunk)
{
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    if (chunk) {
        H5Pset_chunk(creation, 1, &chunk);
        H5Pset_shuffle(creation);
        H5Pset_deflate(creation, 9);
    }
    add_array(file, name, type, creation);
    H5Pclose(creation);
}

static hid_t half_type(void)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    return type;
}

/* "0" to "7", of as many types, and two more names of "0". */
static void add_forms(hid_t file)
{
    hid_t half = half_type();
    const hid_t types[] = {half,          H5T_IEEE_F32LE, H5T_IEEE_F64BE, H5T_STD_I16LE,
                           H5T_STD_U32LE, H5T_STD_I64LE,  H5T_STD_U64BE,  H5T_STD_U8LE};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        add_packed(file, (const char[2]){(char)('0' + i)}, types[i], i % 2 ? 0 : 300 + i);
    for (int i = 8; i < 10; i++)
        assert_true(H5Lcreate_hard(file, "0", file, (const char[2]){(char)('0' + i)}, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Tclose(half);
}

static void test_other_forms(void **state)
{
    (void)state;
    static float values[COUNT];
    for (int newest = 0; newest < 2; newest++) {
        size_t size;
        char *bytes = image_of(add_forms, newest, &size);
        tdi_hdf5_file *file = open_image(bytes, size);
        assert_count(file, "", 10);
        for (char name[] = "0"; *name <= '9'; ++*name) {
            memset(values, 0, sizeof values);
            assert_int_equal(tdi_hdf5_read(file, name, &TD_SHAPE(COUNT), values, NULL), TD_OK);
            assert_memory_equal(values, numbers, sizeof values);
        }
        close_image(file);
        free(bytes);
    }
}

static void add_number(hid_t file, const char *name, double number)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t dataset = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &number) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

static void assert_number(tdi_hdf5_file *file, const char *name, double wanted)
{
    double number;
    assert_int_equal(tdi_hdf5_read_number(file, name, &number, NULL), TD_OK);
    assert_true(number == wanted);
}

static void add_many(hid_t file)
{
    char name[8];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "%d", i);
        add_number(file, name, 3 * i);
    }
}

static void test_large_groups(void **state)
{
    (void)state;
    for (int newest = 0; newest < 2; newest++) {
        size_t size;
        char name[8], *bytes = image_of(add_many, newest, &size);
        tdi_hdf5_file *file = open_image(bytes, size);
        assert_count(file, "/", 300);
        for (int i = 0; i < 300; i++) {
            snprintf(name, sizeof name, "/%d", i);
            assert_number(file, name, 3 * i);
        }
        assert_false(tdi_hdf5_file_has(file, "300"));
        close_image(file);
        free(bytes);
    }
}

enum { LONG = 255 };

static const char *long_name(char *name)
{
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    return name;
}

static void add_long(hid_t file)
{
    char name[LONG + 1];
    add_number(file, long_name(name), 7);
    name[LONG - 1] = '\0';
    add_number(file, name, 8);
}

static void test_long_names(void **state)
{
    (void)state;
    for (int newest = 0; newest < 2; newest++) {
        size_t size;
        char name[LONG + 1], *bytes = image_of(add_long, newest, &size);
        tdi_hdf5_file *file = open_image(bytes, size);
        assert_number(file, long_name(name), 7);
        name[LONG - 1] = '\0';
        assert_number(file, name, 8);
        close_image(file);
        free(bytes);
    }
}

/* ---- and what is refused ---- */

static void add_soft_link(hid_t file)
{
    add_array(file, "real", H5T_NATIVE_FLOAT, H5P_DEFAULT);
    H5Lcreate_soft("/real", file, "array", H5P_DEFAULT, H5P_DEFAULT);
}

static void add_external_link(hid_t file)
{
    H5Lcreate_external("/etc/passwd", "/", file, "array", H5P_DEFAULT, H5P_DEFAULT);
}

static void add_external_array(hid_t file)
{
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, "/etc/passwd", 0, 4000);
    add_array(file, "array", H5T_NATIVE_FLOAT, creation);
    H5Pclose(creation);
}

static void add_virtual_array(hid_t file)
{
    hsize_t dims[] = {1000};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, dims, NULL);
    H5Pset_virtual(creation, space, "/etc/passwd", "x", space);
    add_array(file, "array", H5T_NATIVE_FLOAT, creation);
    H5Sclose(space);
    H5Pclose(creation);
}

static void add_text(hid_t file)
{
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 4);
    add_array(file, "array", text, H5P_DEFAULT);
    H5Tclose(text);
}

static void add_odd_float(hid_t file)
{
    hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);
    H5Tset_fields(type, 31, 22, 9, 0, 22);
    add_array(file, "array", type, H5P_DEFAULT);
    H5Tclose(type);
}

static void assert_refused(void (*add)(hid_t file), bool newest, const char *why)
{
    static float values[COUNT];
    size_t size;
    tdi_error error = {0};
    char *bytes = image_of(add, newest, &size);
    tdi_hdf5_file *file = open_image(bytes, size);
    assert_int_equal(tdi_hdf5_read(file, "array", &TD_SHAPE(COUNT), values, &error), TD_UNSUPPORTED);
    if (!strstr(error.message, "sample") || !strstr(error.message, "\"array\"") || !strstr(error.message, why))
        fail_msg("\"%s\" does not say %s", error.message, why);
    close_image(file);
    free(bytes);
}

static void test_what_leads_elsewhere(void **state)
{
    (void)state;
    for (int newest = 0; newest < 2; newest++) {
        assert_refused(add_soft_link, newest, "a link to another name");
        assert_refused(add_external_link, newest, "a link to another file");
        assert_refused(add_external_array, newest, "lies in other files");
        assert_refused(add_virtual_array, newest, "lies in other files");
    }
}

static void test_what_is_not_plain(void **state)
{
    (void)state;
    assert_refused(add_text, false, "neither integers nor floats");
    assert_refused(add_odd_float, false, "neither integers nor floats");
}

/* Every byte of a small file changed in turn: read, or refused with a sentence. */
static void test_changed_bytes(void **state)
{
    (void)state;
    size_t size;
    float values[6];
    char *bytes = sample(&size);
    for (size_t i = 0; i < size; i++) {
        tdi_hdf5_file *file;
        tdi_error error = {0};
        bytes[i] ^= (char)(1 << i % 8);
        if (try_image(bytes, size, "changed", &file, &error) == TD_OK) {
            tdi_hdf5_read(file, "layers/dense/vars/0", &kernel_shape, values, &error);
            close_image(file);
        }
        assert_true(error.status == TD_OK || strstr(error.message, "changed"));
        bytes[i] ^= (char)(1 << i % 8);
    }
    free(bytes);
}

static void test_truncated_files_are_refused(void **state)
{
    (void)state;
    size_t size;
    float values[6];
    char *bytes = sample(&size);
    for (size_t length = 0; length < size; length += 1 + length / 16) {
        tdi_hdf5_file *file;
        tdi_error error = {0};
        td_status status = try_image(bytes, length, "short", &file, &error);
        if (status == TD_OK) {
            status = tdi_hdf5_read(file, "layers/dense/vars/0", &kernel_shape, values, &error);
            close_image(file);
        }
        assert_int_not_equal(status, TD_OK);
        assert_non_null(strstr(error.message, "short"));
    }
    free(bytes);
}

static herr_t printer(hid_t stack, void *data)
{
    (void)stack;
    ++*(int *)data;
    return 0;
}

static void test_the_hosts_error_printing_is_restored(void **state)
{
    (void)state;
    int printed = 0;
    H5E_auto2_t function;
    void *data;
    tdi_hdf5_writer *file;
    tdi_error error = {0};
    H5Eset_auto2(H5E_DEFAULT, printer, &printed);
    assert_int_equal(tdi_hdf5_create("twice", &file, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write_int(file, "a", 1, &error), TD_OK);
    assert_int_not_equal(tdi_hdf5_write_int(file, "a", 1, &error), TD_OK);
    assert_non_null(strstr(error.message, "twice: cannot add \"a\""));
    tdi_hdf5_close(file);
    assert_int_equal(printed, 0);
    H5Eget_auto2(H5E_DEFAULT, &function, &data);
    assert_true(function == printer && data == &printed);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

int main(void)
{
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)(i % 251);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_same_content_gives_the_same_bytes),
        cmocka_unit_test(test_wrong_shapes_and_names),
        cmocka_unit_test(test_other_forms),
        cmocka_unit_test(test_large_groups),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_what_leads_elsewhere),
        cmocka_unit_test(test_what_is_not_plain),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_truncated_files_are_refused),
        cmocka_unit_test(test_the_hosts_error_printing_is_restored),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
