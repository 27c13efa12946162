/* .npz and .npy data: names by role, dtypes, layouts, and hostile files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <tandem/tandem.h>

#include "data/folder.h"
#include "data/source.h"
#include "files/zip.h"
#include "refusal.h"

typedef struct npy {
    unsigned char bytes[512];
    size_t size;
} npy;

/* A version 1 .npy file of `size` bytes of values. */
static npy npy_of(const char *type, const char *order, const char *shape, const void *values, size_t size)
{
    npy made = {.bytes = "\x93NUMPY\x01\x00"};
    char *header = (char *)made.bytes + 10;
    int length = snprintf(header, 300, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", type, order, shape);
    for (; (length + 11) % 64; length++)
        header[length] = ' ';
    header[length++] = '\n';
    made.bytes[8] = (unsigned char)length;
    made.bytes[9] = (unsigned char)(length >> 8);
    memcpy(header + length, values, size);
    made.size = 10 + (size_t)length + size;
    return made;
}

static const float six[6] = {0, 1, 2, 3, 4, 5};
static const int64_t classes[3] = {7, 8, 9};

static npy x_file(void)
{
    return npy_of("<f4", "False", "(3, 2)", six, sizeof six);
}

static npy y_file(void)
{
    return npy_of("<i8", "False", "(3,)", classes, sizeof classes);
}

/* Writes data.npz with the arrays named, x_file for names with an x, else y_file. */
static void write_npz(const folder *in, int count, const char *const *names)
{
    npy x = x_file(), y = y_file();
    char entries[8][32];
    tdi_zip_entry entry[8];
    tdi_error error = {0};
    for (int i = 0; i < count; i++) {
        npy *file = names[i][0] == 'x' ? &x : &y;
        snprintf(entries[i], sizeof entries[i], "%s.npy", names[i]);
        entry[i] = (tdi_zip_entry){.name = entries[i], .bytes = file->bytes, .size = file->size};
    }
    if (tdi_zip_write(folder_path(in, "data.npz"), count, entry, &error) != TD_OK)
        fail_msg("%s", error.message);
}

#define WRITE_NPZ(in, ...)                                                                                             \
    write_npz(in, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__})

static void expect_pair(td_data *data, int n_y)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    float x[6], y[3];
    td_context *context = td_context_create(NULL);
    assert_int_equal(td_data_samples(data), 3);
    assert_int_equal(data->source->n_y, n_y);
    assert_int_equal(td_data_read(context, data, NULL, 3, x, n_y ? y : NULL), TD_OK);
    assert_memory_equal(x, six, sizeof six);
    for (int i = 0; i < 3 && n_y; i++)
        assert_true(y[i] == (float)(7 + i));
    td_context_free(context);
    td_data_release(data);
}

static void names_go_by_role(void **state)
{
    const folder *in = *state;
    const char *path = folder_path(in, "data.npz");
    WRITE_NPZ(in, "x", "y");
    expect_pair(td_open(path), 1);
    expect_pair(td_open(path, .role = TD_TEST), 1);
    WRITE_NPZ(in, "x_train", "y_train");
    expect_pair(td_open(path), 1);
    expect_refusal(td_open(path, .role = TD_TEST), "x_test or x0; it holds: x_train, y_train");
    WRITE_NPZ(in, "x_test", "y_test");
    expect_pair(td_open(path, .role = TD_TEST), 1);
    expect_refusal(td_open(path), "x_train or x0");
    WRITE_NPZ(in, "x");
    expect_pair(td_open(path), 0);
    WRITE_NPZ(in, "arr_0", "arr_1");
    expect_refusal(td_open(path), "it holds: arr_0, arr_1");
}

static void several_inputs_and_targets_are_numbered(void **state)
{
    const folder *in = *state;
    WRITE_NPZ(in, "x1", "x0", "y1", "y0", "y2");
    td_data *data = td_open(folder_path(in, "data.npz"));
    assert_null(td_data_error(data));
    assert_int_equal(data->source->n_x, 2);
    assert_int_equal(data->source->n_y, 3);
    assert_string_equal(data->source->columns[1].name, "x1");
    assert_string_equal(data->source->columns[4].name, "y2");
    td_data_release(data);
}

static void expect_note(td_data *data, int weights, const char *note)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    assert_int_equal(data->source->n_w, weights);
    if (note ? !strstr(td_data_note(data), note) : *td_data_note(data))
        fail_msg("\"%s\" lacks \"%s\"", td_data_note(data), note ? note : "");
    td_data_release(data);
}

static void every_array_is_used_or_named(void **state)
{
    const folder *in = *state;
    const char *path = folder_path(in, "data.npz");
    WRITE_NPZ(in, "x", "y", "ids", "names");
    expect_note(td_open(path), 0, "2 of its arrays are not used: ids, names");
    WRITE_NPZ(in, "x", "y", "x0");
    expect_note(td_open(path), 0, "1 of its arrays is not used: x0");
    WRITE_NPZ(in, "x_train", "y_train", "x_test", "y_test");
    expect_note(td_open(path), 0, NULL);
    expect_note(td_open(path, .role = TD_TEST), 0, NULL);
    WRITE_NPZ(in, "x_train", "y_train", "x_val", "y_val");
    expect_note(td_open(path, .role = TD_TEST), 0, NULL);
    WRITE_NPZ(in, "x", "y", "sample_weight");
    expect_note(td_open(path, .targets = TD_NO), 0, NULL);
    WRITE_NPZ(in, "xray", "label");
    expect_pair(td_open(path, .features = "x=xray,y=label"), 1);
    expect_refusal(td_open(path), "Say which is what (features, --features x=NAME,y=NAME)");
    expect_refusal(td_open(path, .features = "x=picture"), "has no array \"picture\"; it holds: xray, label");
    expect_refusal(td_open(path, .features = "y=label"), "features: none is x");
}

static void weights_are_found_or_named(void **state)
{
    const folder *in = *state;
    const char *path = folder_path(in, "data.npz");
    WRITE_NPZ(in, "x", "y", "sample_weight");
    expect_note(td_open(path), 1, "weighted by its array sample_weight");
    expect_note(td_open(path, .sample_weight = "none"), 0, "1 of its arrays is not used: sample_weight");
    expect_note(td_open(path, .sample_weight = "sample_weight"), 1, NULL);
    expect_refusal(td_open(path, .sample_weight = "w"), "has no array \"w\"");
    WRITE_NPZ(in, "x", "y0", "y1", "sample_weight0", "sample_weight1");
    expect_note(td_open(path), 2, "sample_weight1");
    expect_note(td_open(path, .sample_weight = "sample_weight1"), 1, "not used: sample_weight0");
    WRITE_NPZ(in, "x_train", "y_train", "x_test", "y_test", "sample_weight");
    expect_note(td_open(path), 1, "weighted by its array sample_weight");
    expect_note(td_open(path, .role = TD_TEST), 0, NULL);
    WRITE_NPZ(in, "x_train", "y_train", "x_test", "y_test", "sample_weight_test");
    expect_note(td_open(path), 0, NULL);
    expect_note(td_open(path, .role = TD_TEST), 1, "sample_weight_test");
}

static void pairs_and_single_files_are_read(void **state)
{
    const folder *in = *state;
    npy x = x_file(), y = y_file();
    char pair[1100];
    folder_write(in, "x,1.npy", x.bytes, x.size);
    folder_write(in, "y.npy", y.bytes, y.size);
    snprintf(pair, sizeof pair, "%s,%s", folder_path(in, "x,1.npy"), folder_path(in, "y.npy"));
    expect_pair(td_open(pair), 1);
    expect_pair(td_open(folder_path(in, "x,1.npy")), 0);
    expect_note(td_open(pair, .sample_weight = folder_path(in, "y.npy")), 1, NULL);
    strcat(pair, ",z.npy");
    expect_refusal(td_open(pair), "more than two files");
    expect_refusal(td_open(folder_path(in, "none.npy")), "none.npy: cannot be opened");
}

static void every_dtype_is_read(void **state)
{
    const folder *in = *state;
    const double f8[2] = {1, 0};
    const float f4[2] = {1, 0};
    const int64_t i8[2] = {1, 0};
    const int32_t i4[2] = {1, 0};
    const uint8_t u1[2] = {1, 0};
    const int8_t i1[2] = {-1, 0};
    const int16_t i2[2] = {-1, 0};
    const uint32_t u4[2] = {1, 0};
    const uint64_t u8[2] = {1, 0};
    const uint16_t f2[2] = {0xBC00, 0}, u2[2] = {65535, 0};
    const unsigned char big_f2[4] = {0xBC, 0}, big_f4[8] = {0x3F, 0x80}, big_i8[16] = {0, 0, 0, 0, 0, 0, 0, 1};
    const struct {
        const char *type;
        const void *values;
        size_t size;
        td_dtype dtype;
        float first;
    } cases[] = {
        {"<f8", f8, 16, TD_FLOAT64, 1},     {"<f4", f4, 8, TD_FLOAT32, 1},     {"<i8", i8, 16, TD_INT64, 1},
        {"<i4", i4, 8, TD_INT32, 1},        {"|u1", u1, 2, TD_UINT8, 1},       {"|b1", u1, 2, TD_UINT8, 1},
        {"|i1", i1, 2, TD_INT32, -1},       {"<i2", i2, 4, TD_INT32, -1},      {"<u2", u2, 4, TD_INT32, 65535},
        {"<u4", u4, 8, TD_INT64, 1},        {"<u8", u8, 16, TD_INT64, 1},      {"<f2", f2, 4, TD_FLOAT32, -1},
        {">f2", big_f2, 4, TD_FLOAT32, -1}, {">f4", big_f4, 8, TD_FLOAT32, 1}, {">i8", big_i8, 16, TD_INT64, 1}};
    td_context *context = td_context_create(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        npy file = npy_of(cases[i].type, "False", "(2,)", cases[i].values, cases[i].size);
        float x[2];
        int32_t number[2];
        tdi_error error = {0};
        folder_write(in, "x.npy", file.bytes, file.size);
        td_data *data = td_open(folder_path(in, "x.npy"), .scale = 3);
        assert_null(td_data_error(data));
        assert_int_equal(data->source->columns[0].dtype, cases[i].dtype);
        assert_int_equal(td_data_read(context, data, NULL, 2, x, NULL), TD_OK);
        assert_true(x[0] == 3 * cases[i].first && x[1] == 0);
        tdi_source *source = data->source;
        assert_int_equal(source->gather(source, 0, (int64_t[]){1, 0}, 2, number, TD_INT32, &error), TD_OK);
        assert_true(number[0] == 0 && number[1] == (int32_t)cases[i].first);
        td_data_release(data);
    }
    td_context_free(context);
}

static void column_major_arrays_are_read(void **state)
{
    const folder *in = *state;
    /* [2, 3, 2] in column-major order: element [i, j, k] is 100 i + 10 j + k. */
    const float values[12] = {0, 100, 10, 110, 20, 120, 1, 101, 11, 111, 21, 121};
    npy file = npy_of("<f4", "True", "(2, 3, 2)", values, sizeof values);
    float x[12];
    td_context *context = td_context_create(NULL);
    folder_write(in, "x.npy", file.bytes, file.size);
    td_data *data = td_open(folder_path(in, "x.npy"));
    assert_int_equal(td_data_read(context, data, NULL, 2, x, NULL), TD_OK);
    for (int i = 0; i < 12; i++)
        assert_true(x[i] == (float)(100 * (i / 6) + 10 * (i / 2 % 3) + i % 2));
    td_data_release(data);
    td_context_free(context);
}

/* A header of odd length leaves the values where no float may lie. */
static void unaligned_values_are_read(void **state)
{
    const folder *in = *state;
    static const char header[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), } \n";
    unsigned char bytes[128] = "\x93NUMPY\x01\x00";
    const double values[2] = {1.5, -2};
    float x[2];
    td_context *context = td_context_create(NULL);
    bytes[8] = sizeof header - 1;
    memcpy(bytes + 10, header, sizeof header - 1);
    memcpy(bytes + 10 + sizeof header - 1, values, sizeof values);
    folder_write(in, "x.npy", bytes, 10 + sizeof header - 1 + sizeof values);
    td_data *data = td_open(folder_path(in, "x.npy"));
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    assert_int_equal(td_data_read(context, data, NULL, 2, x, NULL), TD_OK);
    assert_true(x[0] == 1.5f && x[1] == -2);
    td_data_release(data);
    td_context_free(context);
}

static void not_finite_numbers_are_data(void **state)
{
    const folder *in = *state;
    const float odd[2] = {NAN, INFINITY};
    npy file = npy_of("<f4", "False", "(2,)", odd, sizeof odd);
    float x[2];
    td_context *context = td_context_create(NULL);
    folder_write(in, "x.npy", file.bytes, file.size);
    td_data *data = td_open(folder_path(in, "x.npy"));
    assert_int_equal(td_data_read(context, data, NULL, 2, x, NULL), TD_OK);
    assert_true(isnan(x[0]) && isinf(x[1]));
    td_data_release(data);
    td_context_free(context);
}

static void unfit_shapes_are_refused(void **state)
{
    const folder *in = *state;
    char pair[1100];
    const struct {
        const char *shape, *word;
        size_t size;
    } cases[] = {{"()", "single number", 4},   {"(0, 2)", "no samples", 0},
                 {"(3, 0)", "no elements", 0}, {"(4611686018427387904, 16)", "x.npy", 24},
                 {"(4, 2)", "x.npy", 24},      {"(-3, 2)", "x.npy", 24}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        npy file = npy_of("<f4", "False", cases[i].shape, six, cases[i].size);
        folder_write(in, "x.npy", file.bytes, file.size);
        expect_refusal(td_open(folder_path(in, "x.npy")), cases[i].word);
    }
    npy x = npy_of("<f4", "False", "(2, 3)", six, sizeof six), y = y_file();
    folder_write(in, "x.npy", x.bytes, x.size);
    folder_write(in, "y.npy", y.bytes, y.size);
    snprintf(pair, sizeof pair, "%s,%s", folder_path(in, "x.npy"), folder_path(in, "y.npy"));
    expect_refusal(td_open(pair), "x holds 2 samples but y 3");
}

static void every_cut_is_refused(void **state)
{
    const folder *in = *state;
    unsigned char whole[2048];
    npy x = x_file();
    for (size_t size = 0; size < x.size; size++) {
        folder_write(in, "x.npy", x.bytes, size);
        expect_refusal(td_open(folder_path(in, "x.npy")), "x.npy");
    }
    WRITE_NPZ(in, "x", "y");
    size_t length = folder_read(in, "data.npz", whole, sizeof whole);
    for (size_t size = 0; size < length; size++) {
        folder_write(in, "cut.npz", whole, size);
        expect_refusal(td_open(folder_path(in, "cut.npz")), "cut short");
    }
}

/* What a flip can do to an archive besides making it unreadable: rename y, which makes it data without targets. */
static void a_flipped_byte_of_an_archive_never_changes_values(void **state)
{
    const folder *in = *state;
    unsigned char whole[2048];
    size_t refused = 0;
    WRITE_NPZ(in, "x", "y");
    size_t length = folder_read(in, "data.npz", whole, sizeof whole);
    for (size_t at = 0; at < length; at++) {
        whole[at] ^= 0x55;
        folder_write(in, "flip.npz", whole, length);
        whole[at] ^= 0x55;
        td_data *data = td_open(folder_path(in, "flip.npz"));
        refused += td_data_error(data) != NULL;
        if (td_data_error(data))
            td_data_release(data);
        else
            expect_pair(data, data->source->n_y);
    }
    assert_true(refused > x_file().size + y_file().size);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_go_by_role),
        TEST(several_inputs_and_targets_are_numbered),
        TEST(every_array_is_used_or_named),
        TEST(weights_are_found_or_named),
        TEST(pairs_and_single_files_are_read),
        TEST(every_dtype_is_read),
        TEST(column_major_arrays_are_read),
        TEST(unaligned_values_are_read),
        TEST(not_finite_numbers_are_data),
        TEST(unfit_shapes_are_refused),
        TEST(every_cut_is_refused),
        TEST(a_flipped_byte_of_an_archive_never_changes_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
