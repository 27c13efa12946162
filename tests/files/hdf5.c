/* hdf5.c - what is written comes back; what leads outside the file, or hides its size, is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hdf5.h>

#include "files/hdf5.h"
#include "files/scratch.h"

static const float kernel[6] = {1, -2.5f, 3, 4, 5, 1e-30f};
static const td_shape kernel_shape = {2, {2, 3}};

static void *sample(size_t *size)
{
    tdi_hdf5 *file;
    void *bytes;
    assert_int_equal(tdi_hdf5_create("sample", &file, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write_group(file, "layers/dense/vars", NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write_attribute(file, "layers/dense/vars", "name", "d\xc3\xa9nse", NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write(file, "layers/dense/vars/0", &kernel_shape, kernel, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write_int(file, "optimizer/vars/0", 7, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_write_int(file, "optimizer/vars/1", (int64_t)1 << 40, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_image(file, &bytes, size, NULL), TD_OK);
    tdi_hdf5_close(file);
    return bytes;
}

static void test_round_trip(void **state)
{
    (void)state;
    size_t size;
    void *bytes = sample(&size);
    tdi_hdf5 *file;
    td_shape shape;
    float values[6];
    double number;
    assert_int_equal(tdi_hdf5_open(bytes, size, "sample", &file, NULL), TD_OK);
    free(bytes);
    assert_true(tdi_hdf5_has(file, "layers/dense"));
    assert_false(tdi_hdf5_has(file, "layers/conv2d/vars"));
    assert_false(tdi_hdf5_has(file, "layers/dense/vars/0/deeper"));
    assert_int_equal(tdi_hdf5_count(file, "layers/dense/vars"), 1);
    assert_int_equal(tdi_hdf5_count(file, "optimizer/vars"), 2);
    assert_int_equal(tdi_hdf5_count(file, "absent"), -1);
    assert_int_equal(tdi_hdf5_shape(file, "layers/dense/vars/0", &shape, NULL), TD_OK);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(tdi_hdf5_read(file, "layers/dense/vars/0", &kernel_shape, values, NULL), TD_OK);
    assert_memory_equal(values, kernel, sizeof kernel);
    assert_int_equal(tdi_hdf5_read_number(file, "optimizer/vars/0", &number, NULL), TD_OK);
    assert_true(number == 7);
    assert_int_equal(tdi_hdf5_read_number(file, "optimizer/vars/1", &number, NULL), TD_OK);
    assert_true(number == 0x1p40);
    tdi_hdf5_close(file);
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
    tdi_hdf5 *file;
    tdi_error error = {0};
    float values[6];
    double number;
    td_shape other = TD_SHAPE(3, 2), shape;
    assert_int_equal(tdi_hdf5_open(bytes, size, "sample", &file, NULL), TD_OK);
    assert_int_equal(tdi_hdf5_read(file, "layers/dense/vars/0", &other, values, &error), TD_BAD_FILE);
    assert_non_null(strstr(error.message, "[2, 3]"));
    assert_non_null(strstr(error.message, "[3, 2]"));
    assert_int_equal(tdi_hdf5_read_number(file, "layers/dense/vars/0", &number, NULL), TD_BAD_FILE);
    assert_int_equal(tdi_hdf5_shape(file, "absent", &shape, NULL), TD_NOT_FOUND);
    assert_int_equal(tdi_hdf5_shape(file, "layers", &shape, NULL), TD_BAD_FILE);
    tdi_hdf5_close(file);
    free(bytes);
}

/* ---- hostile files, made by libhdf5 itself ---- */

static void add_array(hid_t file, const char *name, hid_t type, hid_t creation)
{
    hsize_t dims[] = {1000};
    hid_t space = H5Screate_simple(1, dims, NULL);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

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

static void add_compressed_array(hid_t file)
{
    hsize_t chunk[] = {1000};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, chunk);
    H5Pset_deflate(creation, 9);
    add_array(file, "array", H5T_NATIVE_FLOAT, creation);
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

/* In HDF5's original format, or the newest. */
static char *hostile_image(void (*add)(hid_t file), bool newest, size_t *size)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (newest)
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(scratch_path("hostile.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    assert_true(file >= 0);
    H5Pclose(access);
    add(file);
    H5Fclose(file);
    return scratch_read("hostile.h5", size);
}

static void assert_refused(void (*add)(hid_t file), bool newest, const char *why)
{
    static float values[1000];
    size_t size;
    tdi_error error = {0};
    tdi_hdf5 *file;
    td_shape shape = TD_SHAPE(1000);
    char *bytes = hostile_image(add, newest, &size);
    td_status status = tdi_hdf5_open(bytes, size, "hostile", &file, &error);
    if (status == TD_OK) {
        status = tdi_hdf5_read(file, "array", &shape, values, &error);
        assert_false(tdi_hdf5_has(file, "array/deeper"));
        tdi_hdf5_close(file);
    }
    assert_int_equal(status, TD_BAD_FILE);
    if (!strstr(error.message, "hostile") || !strstr(error.message, why))
        fail_msg("\"%s\" does not say %s", error.message, why);
    free(bytes);
}

static void test_what_leads_elsewhere(void **state)
{
    (void)state;
    assert_refused(add_soft_link, false, "link");
    assert_refused(add_external_link, false, "Keras does not write");
    assert_refused(add_external_array, false, "another file");
    assert_refused(add_virtual_array, false, "not read");
}

static void test_what_is_not_plain(void **state)
{
    (void)state;
    assert_refused(add_compressed_array, false, "compressed");
    assert_refused(add_text, false, "numbers");
    assert_refused(add_odd_float, false, "numbers");
}

static void test_newer_formats_are_refused(void **state)
{
    (void)state;
    assert_refused(add_soft_link, true, "superblock of version 3");
}

/* Every byte of a small file changed in turn: read, or refused with a sentence. */
static void test_changed_bytes(void **state)
{
    (void)state;
    size_t size;
    float values[6];
    char *bytes = sample(&size);
    for (size_t i = 0; i < size; i++) {
        tdi_hdf5 *file;
        tdi_error error = {0};
        bytes[i] ^= (char)(1 << i % 8);
        if (tdi_hdf5_open(bytes, size, "changed", &file, &error) == TD_OK) {
            tdi_hdf5_read(file, "layers/dense/vars/0", &kernel_shape, values, &error);
            tdi_hdf5_close(file);
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
        tdi_hdf5 *file;
        tdi_error error = {0};
        td_status status = tdi_hdf5_open(bytes, length, "short", &file, &error);
        if (status == TD_OK) {
            status = tdi_hdf5_read(file, "layers/dense/vars/0", &kernel_shape, values, &error);
            tdi_hdf5_close(file);
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
    tdi_hdf5 *file;
    H5Eset_auto2(H5E_DEFAULT, printer, &printed);
    assert_int_equal(tdi_hdf5_open("nothing", 7, "x", &file, NULL), TD_BAD_FILE);
    assert_int_equal(printed, 0);
    H5Eget_auto2(H5E_DEFAULT, &function, &data);
    assert_true(function == printer && data == &printed);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_same_content_gives_the_same_bytes),
        cmocka_unit_test(test_wrong_shapes_and_names),
        cmocka_unit_test(test_what_leads_elsewhere),
        cmocka_unit_test(test_what_is_not_plain),
        cmocka_unit_test(test_newer_formats_are_refused),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_truncated_files_are_refused),
        cmocka_unit_test(test_the_hosts_error_printing_is_restored),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
