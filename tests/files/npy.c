/* npy.c - NumPy's arrays: what NumPy writes is read, hostile headers are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "files/npy_file.h"
#include "files/scratch.h"

/* A file of `version` with `header` and `room` zero bytes behind it. */
static size_t make(char *out, int version, const char *header, size_t room)
{
    size_t length = strlen(header), begin = version == 1 ? 10 : 12;
    memset(out, 0, begin);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[8] = (char)(length & 255);
    out[9] = (char)(length >> 8);
    memcpy(out + begin, header, length);
    memset(out + begin + length, 0, room);
    return begin + length + room;
}

static td_status parse(int version, const char *header, size_t room, tdi_npy *npy)
{
    static char bytes[70000];
    tdi_error error = {0};
    td_status status = tdi_npy_parse(bytes, make(bytes, version, header, room), "x.npy", npy, &error);
    if (status != TD_OK)
        assert_non_null(strstr(error.message, "x.npy"));
    return status;
}

static void test_reads_numpys_headers(void **state)
{
    (void)state;
    tdi_npy npy;
    assert_int_equal(parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", 48, &npy), TD_OK);
    assert_int_equal(npy.numbers.dtype, TD_FLOAT32);
    assert_int_equal(npy.shape.rank, 2);
    assert_int_equal(npy.shape.dim[1], 4);
    assert_int_equal(npy.elements, 12);
    assert_false(npy.fortran);
    assert_int_equal(npy.offset, 10 + strlen("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n"));
    assert_int_equal(parse(2, "{'descr': '<i8', 'fortran_order': True, 'shape': (2,), }\n", 16, &npy), TD_OK);
    assert_true(npy.fortran);
    assert_int_equal(npy.numbers.dtype, TD_INT64);
    assert_int_equal(parse(3, "{'shape': (), 'descr': '|b1', 'fortran_order': False}", 1, &npy), TD_OK);
    assert_int_equal(npy.shape.rank, 0);
    assert_int_equal(npy.elements, 1);
    assert_int_equal(npy.numbers.dtype, TD_UINT8);
    assert_int_equal(parse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4)}", 0, &npy), TD_OK);
    assert_int_equal(npy.elements, 0);
    assert_int_equal(parse(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2L, 4L), }", 32, &npy), TD_OK);
}

static void test_refuses_other_types(void **state)
{
    (void)state;
    static const char *const descrs[] = {"<f16", "<f1", "<i3", "<i9", "|O", "<U4", "<c8", "", "<f4x", "|S10", "=f4"};
    tdi_npy npy;
    char header[200];
    for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++) {
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (1,)}", descrs[i]);
        assert_int_equal(parse(1, header, 64, &npy), TD_UNSUPPORTED);
    }
    assert_int_equal(parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1)}", 64, &npy),
                     TD_UNSUPPORTED);
    assert_int_equal(parse(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 64, &npy), TD_UNSUPPORTED);
}

static void test_refuses_hostile_headers(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "",
        "{",
        "{}",
        "{'descr'",
        "{'descr': '<f4'",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,) } __import__('os')",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (17,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
    };
    tdi_npy npy;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        assert_int_equal(parse(1, headers[i], 64, &npy), TD_BAD_FILE);
}

static void test_truncated_at_every_length(void **state)
{
    (void)state;
    char bytes[200];
    tdi_npy npy;
    size_t size = make(bytes, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24);
    assert_int_equal(tdi_npy_parse(bytes, size, "x", &npy, NULL), TD_OK);
    for (size_t length = 0; length < size; length++) {
        char *copy = malloc(length ? length : 1); /* so that a sanitizer sees a read beyond */
        assert_non_null(copy);
        memcpy(copy, bytes, length);
        assert_int_equal(tdi_npy_parse(copy, length, "x", &npy, NULL), TD_BAD_FILE);
        free(copy);
    }
}

static void test_written_arrays_come_back(void **state)
{
    (void)state;
    const int32_t values[6] = {1, -2, 3, 4, 5, 6};
    td_shape shape = TD_SHAPE(2, 3);
    tdi_npy npy;
    size_t size;
    assert_int_equal(tdi_npy_write(scratch_path("p.npy"), TD_INT32, &shape, values, NULL), TD_OK);
    char *bytes = scratch_read("p.npy", &size);
    assert_int_equal(tdi_npy_parse(bytes, size, "p.npy", &npy, NULL), TD_OK);
    assert_int_equal(npy.offset % 64, 0);
    assert_int_equal(npy.offset + sizeof values, size);
    assert_int_equal(npy.numbers.dtype, TD_INT32);
    assert_int_equal(npy.shape.rank, 2);
    assert_memory_equal(bytes + npy.offset, values, sizeof values);
    free(bytes);
}

static void test_npz(void **state)
{
    (void)state;
    char array[200], five[5];
    size_t size = make(array, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }", 5);
    tdi_zip_entry entries[] = {{.name = "x.npy", .bytes = array, .size = size},
                               {.name = "bad.npy", .bytes = "nothing", .size = 7}};
    tdi_zip *zip;
    tdi_npy npy;
    tdi_store *store;
    tdi_error error = {0};
    assert_int_equal(tdi_zip_write(scratch_path("a.npz"), 2, entries, NULL), TD_OK);
    assert_int_equal(tdi_zip_open(scratch_path("a.npz"), &zip, NULL), TD_OK);
    assert_true(tdi_npz_has(zip, "x"));
    assert_false(tdi_npz_has(zip, "y"));
    assert_int_equal(tdi_npz_open(zip, "x", &npy, &store, NULL), TD_OK);
    assert_int_equal(npy.elements, 5);
    assert_int_equal(tdi_store_read(store, (int64_t)npy.offset, five, 5, NULL), TD_OK);
    assert_memory_equal(five, array + npy.offset, 5);
    tdi_store_free(store);
    assert_int_equal(tdi_npz_open(zip, "bad", &npy, &store, &error), TD_BAD_FILE);
    assert_int_equal(tdi_npz_open(zip, "y", &npy, &store, NULL), TD_NOT_FOUND);
    tdi_zip_close(zip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_numpys_headers),     cmocka_unit_test(test_refuses_other_types),
        cmocka_unit_test(test_refuses_hostile_headers),  cmocka_unit_test(test_truncated_at_every_length),
        cmocka_unit_test(test_written_arrays_come_back), cmocka_unit_test(test_npz),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
