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

static hid_t hostile_begin(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 65536, 0);
    hid_t file = H5Fcreate("hostile", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    return file;
}

static tdi_hdf5 *hostile_open(hid_t id)
{
    tdi_hdf5 *file;
    H5Fflush(id, H5F_SCOPE_GLOBAL);
    ssize_t size = H5Fget_file_image(id, NULL, 0);
    void *bytes = malloc((size_t)size);
    assert_non_null(bytes);
    H5Fget_file_image(id, bytes, (size_t)size);
    H5Fclose(id);
    assert_int_equal(tdi_hdf5_open(bytes, (size_t)size, "hostile", &file, NULL), TD_OK);
    free(bytes);
    return file;
}

static void assert_refused(tdi_hdf5 *file, const char *path, const char *why)
{
    static float values[1000];
    tdi_error error = {0};
    td_shape shape = TD_SHAPE(1000);
    assert_int_equal(tdi_hdf5_read(file, path, &shape, values, &error), TD_BAD_FILE);
    assert_non_null(strstr(error.message, path));
    assert_non_null(strstr(error.message, why));
}

static void add_array(hid_t file, const char *name, hid_t type, hid_t creation)
{
    hsize_t dims[] = {1000};
    hid_t space = H5Screate_simple(1, dims, NULL);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

static void test_links_are_not_followed(void **state)
{
    (void)state;
    hid_t id = hostile_begin();
    add_array(id, "real", H5T_NATIVE_FLOAT, H5P_DEFAULT);
    H5Lcreate_soft("/real", id, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/", id, "external", H5P_DEFAULT, H5P_DEFAULT);
    tdi_hdf5 *file = hostile_open(id);
    assert_refused(file, "soft", "link");
    assert_refused(file, "external", "link");
    assert_refused(file, "external/deeper", "link");
    assert_false(tdi_hdf5_has(file, "soft"));
    tdi_hdf5_close(file);
}

static void test_arrays_elsewhere_are_not_read(void **state)
{
    (void)state;
    hsize_t dims[] = {1000};
    hid_t id = hostile_begin();
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, "/etc/passwd", 0, 4000);
    add_array(id, "external", H5T_NATIVE_FLOAT, creation);
    H5Pclose(creation);
    creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(1, dims, NULL);
    H5Pset_virtual(creation, space, "/etc/passwd", "x", space);
    add_array(id, "virtual", H5T_NATIVE_FLOAT, creation);
    H5Sclose(space);
    H5Pclose(creation);
    tdi_hdf5 *file = hostile_open(id);
    assert_refused(file, "external", "another file");
    assert_refused(file, "virtual", "virtual");
    tdi_hdf5_close(file);
}

static void test_chunks_are_not_read(void **state)
{
    (void)state;
    hsize_t chunk[] = {1000};
    hid_t id = hostile_begin();
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, chunk);
    H5Pset_deflate(creation, 9);
    add_array(id, "chunks", H5T_NATIVE_FLOAT, creation);
    H5Pclose(creation);
    tdi_hdf5 *file = hostile_open(id);
    assert_refused(file, "chunks", "chunks");
    tdi_hdf5_close(file);
}

static void test_odd_types_are_not_read(void **state)
{
    (void)state;
    hid_t id = hostile_begin(), text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 4);
    add_array(id, "text", text, H5P_DEFAULT);
    H5Tclose(text);
    tdi_hdf5 *file = hostile_open(id);
    assert_refused(file, "text", "numbers");
    tdi_hdf5_close(file);
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
        cmocka_unit_test(test_links_are_not_followed),
        cmocka_unit_test(test_arrays_elsewhere_are_not_read),
        cmocka_unit_test(test_chunks_are_not_read),
        cmocka_unit_test(test_odd_types_are_not_read),
        cmocka_unit_test(test_truncated_files_are_refused),
        cmocka_unit_test(test_the_hosts_error_printing_is_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
