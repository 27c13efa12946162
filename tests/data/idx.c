/* IDX directories: names, types, roles, and hostile files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <tandem/tandem.h>

#include "data/folder.h"
#include "data/source.h"
#include "refusal.h"

/* Three images of 2 x 2, and their labels. */
static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0,  0,
                                       0, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 /* values */};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9};
#define IMAGES "train-images-idx3-ubyte"
#define LABELS "train-labels-idx1-ubyte"

static void write_pair(const folder *in)
{
    folder_write(in, IMAGES, images, sizeof images);
    folder_write(in, LABELS, labels, sizeof labels);
}

static void expect_pair(td_data *data)
{
    float x[12], y[3];
    td_shape shape;
    td_context *context = td_context_create(NULL);
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    assert_int_equal(td_data_samples(data), 3);
    assert_int_equal(td_data_x_shape(data, &shape), TD_OK);
    assert_true(shape.rank == 2 && shape.dim[0] == 2 && shape.dim[1] == 2);
    assert_int_equal(td_data_read(context, data, NULL, 3, x, y), TD_OK);
    for (int i = 0; i < 12; i++)
        assert_true(x[i] == (float)i / 255);
    for (int i = 0; i < 3; i++)
        assert_true(y[i] == (float)(7 + i));
    td_data_release(data);
    td_context_free(context);
}

static void plain_gzipped_and_dotted_names_are_read(void **state)
{
    const folder *in = *state;
    write_pair(in);
    expect_pair(td_open(in->path));
    folder_write_gz(in, "t10k-images-idx3-ubyte.gz", images, sizeof images);
    folder_write_gz(in, "t10k-labels-idx1-ubyte.gz", labels, sizeof labels);
    expect_pair(td_open(in->path, .role = TD_TEST));
    unlink(folder_path(in, IMAGES));
    folder_write(in, "train-images.idx3-ubyte", images, sizeof images);
    rename(folder_path(in, LABELS), folder_path(in, "train-labels.idx1-ubyte"));
    expect_pair(td_open(in->path));
}

static void a_plain_file_comes_before_its_gzipped_twin(void **state)
{
    const folder *in = *state;
    write_pair(in);
    folder_write(in, IMAGES ".gz", "no gzip", 7);
    expect_pair(td_open(in->path));
}

static void other_files_are_named(void **state)
{
    const folder *in = *state;
    write_pair(in);
    folder_write_gz(in, IMAGES ".gz", images, sizeof images);
    folder_write_gz(in, "t10k-images.idx3-ubyte.gz", images, sizeof images);
    folder_write(in, ".hidden", "", 0);
    td_data *data = td_open(in->path);
    assert_string_equal(td_data_note(data), "");
    td_data_release(data);
    folder_write(in, "x.npy", "", 0);
    folder_write(in, IMAGES ".old", "", 0);
    data = td_open(in->path);
    assert_non_null(strstr(td_data_note(data), ": 2 of its files are not used: " IMAGES ".old, x.npy (of a folder"));
    expect_pair(data);
}

static void scale_can_be_chosen(void **state)
{
    const folder *in = *state;
    float x[4];
    td_context *context = td_context_create(NULL);
    write_pair(in);
    td_data *data = td_open(in->path, .scale = 2);
    assert_int_equal(td_data_read(context, data, (int64_t[]){2}, 1, x, NULL), TD_OK);
    assert_true(x[0] == 16 && x[3] == 22);
    td_data_release(data);
    td_context_free(context);
}

static void labels_may_be_missing(void **state)
{
    const folder *in = *state;
    folder_write(in, IMAGES, images, sizeof images);
    td_data *data = td_open(in->path);
    td_shape shape;
    assert_int_equal(td_data_samples(data), 3);
    assert_int_equal(td_data_y_shape(data, &shape), TD_NOT_FOUND);
    td_data_release(data);
}

static void a_missing_part_is_named(void **state)
{
    const folder *in = *state;
    expect_refusal(td_open(in->path), "not data of a known format");
    write_pair(in);
    expect_refusal(td_open(in->path, .role = TD_TEST), "t10k-images-idx3-ubyte");
}

static void other_types_are_big_endian_and_unscaled(void **state)
{
    const folder *in = *state;
    static const unsigned char int32[] = {0, 0, 12, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 1, 2, 255, 255, 255, 254};
    static const unsigned char float32[] = {0, 0, 13, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0x3F, 0xC0, 0, 0, 0xC0, 0, 0, 0};
    static const unsigned char float64[] = {0, 0, 14, 2, 0, 0, 0,    1, 0, 0, 0, 2, 0x3F, 0xF8,
                                            0, 0, 0,  0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0,    0};
    static const unsigned char int16[] = {0, 0, 11, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 255, 254};
    static const unsigned char int8[] = {0, 0, 9, 2, 0, 0, 0, 1, 0, 0, 0, 2, 127, 254};
    const struct {
        const unsigned char *bytes;
        size_t size;
        float first, second;
    } cases[] = {{int8, sizeof int8, 127, -2},
                 {int16, sizeof int16, 258, -2},
                 {int32, sizeof int32, 258, -2},
                 {float32, sizeof float32, 1.5f, -2},
                 {float64, sizeof float64, 1.5f, -2}};
    td_context *context = td_context_create(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float x[2];
        folder_write(in, IMAGES, cases[i].bytes, cases[i].size);
        td_data *data = td_open(in->path);
        assert_int_equal(td_data_read(context, data, NULL, 1, x, NULL), TD_OK);
        assert_true(x[0] == cases[i].first && x[1] == cases[i].second);
        td_data_release(data);
    }
    td_context_free(context);
}

static void counts_must_agree(void **state)
{
    const folder *in = *state;
    write_pair(in);
    static const unsigned char two[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 8};
    folder_write(in, LABELS, two, sizeof two);
    expect_refusal(td_open(in->path), "x holds 3 samples but y 2");
}

static void every_cut_is_refused(void **state)
{
    const folder *in = *state;
    unsigned char gz[256];
    write_pair(in);
    for (size_t size = 0; size < sizeof images; size++) {
        folder_write(in, IMAGES, images, size);
        expect_refusal(td_open(in->path), "cut short");
    }
    folder_write_gz(in, "whole", images, sizeof images);
    size_t whole = folder_read(in, "whole", gz, sizeof gz);
    unlink(folder_path(in, IMAGES));
    for (size_t size = 0; size < whole; size++) {
        folder_write(in, IMAGES ".gz", gz, size);
        expect_refusal(td_open(in->path), IMAGES ".gz");
    }
}

static void every_flipped_bit_of_a_header_is_refused(void **state)
{
    const folder *in = *state;
    write_pair(in);
    for (size_t bit = 0; bit < 16 * 8; bit++) {
        unsigned char broken[sizeof images];
        if (bit == 16) /* signed bytes, which are another type */
            continue;
        memcpy(broken, images, sizeof images);
        broken[bit / 8] ^= (unsigned char)(1u << bit % 8);
        folder_write(in, IMAGES, broken, sizeof broken);
        expect_refusal(td_open(in->path), IMAGES);
    }
}

/* Flips in gzip's own header (time, system) leave the content whole. */
static void a_flipped_byte_of_gzip_never_changes_values(void **state)
{
    const folder *in = *state;
    unsigned char gz[256];
    int refused = 0;
    folder_write(in, LABELS, labels, sizeof labels);
    folder_write_gz(in, "whole", images, sizeof images);
    size_t whole = folder_read(in, "whole", gz, sizeof gz);
    for (size_t at = 0; at < whole; at++) {
        gz[at] ^= 0x55;
        folder_write(in, IMAGES ".gz", gz, whole);
        gz[at] ^= 0x55;
        td_data *data = td_open(in->path);
        refused += td_data_error(data) != NULL;
        if (td_data_error(data))
            td_data_release(data);
        else
            expect_pair(data);
    }
    assert_in_range(refused, whole - 10, whole);
}

static void bytes_after_the_values_are_refused(void **state)
{
    const folder *in = *state;
    unsigned char longer[sizeof images + 1] = {0};
    memcpy(longer, images, sizeof images);
    write_pair(in);
    folder_write(in, IMAGES, longer, sizeof longer);
    expect_refusal(td_open(in->path), "more bytes follow");
    unlink(folder_path(in, IMAGES));
    folder_write_gz(in, IMAGES ".gz", longer, sizeof longer);
    expect_refusal(td_open(in->path), "more bytes follow");
}

static void hostile_headers_are_refused(void **state)
{
    const folder *in = *state;
    static const struct {
        unsigned char header[28];
        const char *word;
    } cases[] = {
        {{0, 0, 8, 0, 0, 0, 0, 1}, "0 dimensions"},
        {{0, 0, 8, 8, 0, 0, 0, 1}, "8 dimensions"},
        {{0, 0, 8, 255, 0, 0, 0, 1}, "255 dimensions"},
        {{0, 0, 10, 1, 0, 0, 0, 1}, "0x0a"},
        {{1, 0, 8, 1, 0, 0, 0, 1}, "begins with 01 00"},
        {{'P', 'K', 3, 4, 0, 0, 0, 1}, "begins with 50 4b"},
        {{0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, "can hold"},
        {{0, 0, 14, 4, 128, 0, 0, 0, 128, 0, 0, 0, 128, 0, 0, 0, 128, 0, 0, 0}, "can hold"},
        {{0, 0, 8, 3, 0, 0, 255, 255, 0, 0, 255, 255, 0, 0, 255, 255}, "can hold"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        folder_write(in, IMAGES, cases[i].header, sizeof cases[i].header);
        expect_refusal(td_open(in->path), cases[i].word);
        unlink(folder_path(in, IMAGES));
        folder_write_gz(in, IMAGES ".gz", cases[i].header, sizeof cases[i].header);
        expect_refusal(td_open(in->path), cases[i].word);
        unlink(folder_path(in, IMAGES ".gz"));
    }
}

static void no_samples_and_no_elements_are_refused(void **state)
{
    const folder *in = *state;
    static const unsigned char none[] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2};
    static const unsigned char flat[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2};
    folder_write(in, IMAGES, none, sizeof none);
    expect_refusal(td_open(in->path), "no samples");
    folder_write(in, IMAGES, flat, sizeof flat);
    expect_refusal(td_open(in->path), "no elements");
}

static void a_folder_named_like_a_file_is_refused(void **state)
{
    const folder *in = *state;
    assert_int_equal(symlink(in->path, folder_path(in, IMAGES)), 0);
    expect_refusal(td_open(in->path), "not a file");
}

static void class_numbers_are_checked(void **state)
{
    const folder *in = *state;
    static const unsigned char halves[] = {0, 0, 13, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0x3F, 0x80, 0, 0, 0x40, 0x60, 0, 0};
    int32_t y[3];
    tdi_error error = {0};
    folder_write(in, IMAGES, images, sizeof images);
    folder_write(in, LABELS, halves, sizeof halves);
    td_data *data = td_open(in->path);
    assert_null(td_data_error(data));
    tdi_source *source = data->source;
    assert_int_equal(source->gather(source, 1, (int64_t[]){1, 0}, 2, y, TD_INT32, &error), TD_OK);
    assert_true(y[0] == 1 && y[1] == 0);
    assert_int_equal(source->gather(source, 1, (int64_t[]){0, 2, 1}, 3, y, TD_INT32, &error), TD_BAD_FILE);
    assert_non_null(strstr(error.message, "y of sample 2 is 3.5"));
    td_data_release(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plain_gzipped_and_dotted_names_are_read),
        TEST(a_plain_file_comes_before_its_gzipped_twin),
        TEST(other_files_are_named),
        TEST(scale_can_be_chosen),
        TEST(labels_may_be_missing),
        TEST(a_missing_part_is_named),
        TEST(other_types_are_big_endian_and_unscaled),
        TEST(counts_must_agree),
        TEST(every_cut_is_refused),
        TEST(every_flipped_bit_of_a_header_is_refused),
        TEST(a_flipped_byte_of_gzip_never_changes_values),
        TEST(bytes_after_the_values_are_refused),
        TEST(hostile_headers_are_refused),
        TEST(no_samples_and_no_elements_are_refused),
        TEST(a_folder_named_like_a_file_is_refused),
        TEST(class_numbers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
