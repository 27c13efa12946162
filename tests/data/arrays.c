/* td_arrays, td_data_read, the life of a td_data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <tandem/tandem.h>

static const uint8_t images[3][2] = {{0, 255}, {51, 102}, {1, 2}};
static const int64_t labels[3] = {4, 5, 6};

static void arrays_are_read_in_place(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_data *data =
        td_arrays(3, images, TD_SHAPE(2), .x_dtype = TD_UINT8, .scale = 1.0f / 255, .y = labels, .y_dtype = TD_INT64);
    assert_null(td_data_error(data));
    assert_int_equal(td_data_samples(data), 3);
    float x[4], y[3];
    assert_int_equal(td_data_read(context, data, (int64_t[]){1, 0}, 2, x, y), TD_OK);
    assert_true(x[0] == 0.2f && x[1] == 0.4f && x[2] == 0 && x[3] == 1);
    assert_true(y[0] == 5 && y[1] == 4);
    assert_int_equal(td_data_read(context, data, NULL, 3, NULL, y), TD_OK);
    assert_true(y[0] == 4 && y[1] == 5 && y[2] == 6);
    assert_int_equal(td_data_read(context, data, NULL, 0, NULL, NULL), TD_OK);
    td_data_release(data);
    td_context_free(context);
}

static void shapes_are_a_samples(void **state)
{
    (void)state;
    float x[24] = {0};
    td_shape shape;
    td_data *data = td_arrays(2, x, TD_SHAPE(2, 2, 3), .y = x);
    assert_int_equal(td_data_x_shape(data, &shape), TD_OK);
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.dim[2], 3);
    assert_int_equal(td_data_y_shape(data, &shape), TD_OK);
    assert_int_equal(shape.rank, 0);
    td_data_release(data);
    data = td_arrays(2, x, TD_SHAPE(12));
    assert_int_equal(td_data_y_shape(data, &shape), TD_NOT_FOUND);
    td_data_release(data);
}

static void reading_outside_is_refused(void **state)
{
    (void)state;
    float x[3] = {0}, to[4];
    td_data *data = td_arrays(3, x, TD_SHAPE(1));
    const int64_t outside[] = {-1, 3, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        td_context *context = td_context_create(NULL);
        assert_int_equal(td_data_read(context, data, (int64_t[]){0, outside[i]}, 2, to, NULL), TD_INVALID_ARGUMENT);
        assert_non_null(strstr(td_error(context), "rows[1]"));
        td_context_free(context);
    }
    td_context *context = td_context_create(NULL);
    assert_int_equal(td_data_read(context, data, NULL, 4, to, NULL), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    assert_int_equal(td_data_read(context, data, NULL, -1, to, NULL), TD_INVALID_ARGUMENT);
    td_clear_error(context);
    assert_int_equal(td_data_read(context, data, NULL, 1, to, to), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "no y"));
    td_context_free(context);
    td_data_release(data);
}

static void refused(td_data *data, const char *word)
{
    assert_int_equal(td_data_samples(data), -1);
    assert_non_null(td_data_error(data));
    assert_non_null(strstr(td_data_error(data), word));
    assert_non_null(strstr(td_data_error(data), "arrays.c:"));
    td_shape shape;
    td_context *context = td_context_create(NULL);
    assert_int_equal(td_data_x_shape(data, &shape), TD_NOT_FOUND);
    assert_int_equal(td_data_read(context, data, NULL, 1, NULL, NULL), TD_INVALID_ARGUMENT);
    assert_string_equal(td_error(context), td_data_error(data));
    td_context_free(context);
    td_data_release(data);
}

static void impossible_arrays_are_poison(void **state)
{
    (void)state;
    float x[4] = {0};
    td_shape deep = {TD_MAX_RANK + 1, {1, 1, 1, 1, 1, 1}}, negative = {1, {-4}};
    td_shape huge = {3, {INT64_C(1) << 31, INT64_C(1) << 31, 4}};
    refused(td_arrays(0, x, TD_SHAPE(1)), "samples");
    refused(td_arrays(-3, x, TD_SHAPE(1)), "samples");
    refused(td_arrays(4, NULL, TD_SHAPE(1)), "x is NULL");
    refused(td_arrays(4, x, deep), "rank");
    refused(td_arrays(4, x, negative), "extent 0 of x_shape is -4");
    refused(td_arrays(4, x, TD_SHAPE(2, 0)), "extent 1 of x_shape is 0");
    refused(td_arrays(4, x, huge), "beyond");
    refused(td_arrays(4, x, TD_SHAPE(1), .x_dtype = (td_dtype)77), "x_dtype");
    refused(td_arrays(4, x, TD_SHAPE(1), .y = x, .y_dtype = (td_dtype)-1), "y_dtype");
    refused(td_arrays(4, x, TD_SHAPE(1), .scale = NAN), "scale");
    refused(td_arrays(4, x, TD_SHAPE(1), 1), "by position");
}

static void retained_data_outlives_one_release(void **state)
{
    (void)state;
    float x[4] = {1, 2, 3, 4};
    td_data *data = td_arrays(4, x, TD_SHAPE(1));
    assert_ptr_equal(td_data_retain(data), data);
    td_data_release(data);
    assert_int_equal(td_data_samples(data), 4);
    td_data_release(data);
    td_data_release(NULL);
}

static void open_refuses_bad_arguments(void **state)
{
    (void)state;
    td_data *data[] = {td_open(NULL),
                       td_open("/nonexistent.npz"),
                       td_open("/nonexistent"),
                       td_open("/dev"),
                       td_open("x.npz", 5),
                       td_open("x.npz", .role = (td_role)9),
                       td_open("x.npz", .scale = INFINITY),
                       td_open("")};
    const char *words[] = {"path is NULL", "/nonexistent.npz", "no such file", "not data of a known format",
                           "by position",  "role is 9",        "scale",        "no such file"};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        assert_non_null(td_data_error(data[i]));
        if (!strstr(td_data_error(data[i]), words[i]))
            fail_msg("\"%s\" lacks \"%s\"", td_data_error(data[i]), words[i]);
        td_data_release(data[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_read_in_place),           cmocka_unit_test(shapes_are_a_samples),
        cmocka_unit_test(reading_outside_is_refused),         cmocka_unit_test(impossible_arrays_are_poison),
        cmocka_unit_test(retained_data_outlives_one_release), cmocka_unit_test(open_refuses_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
