/* Images brought to another size: the same pixels as Keras's image.resize makes; of every kind of data; and what is no
 * image. resize_golden.py made the golden numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <tandem/tandem.h>

#include "data/folder.h"
#include "data/resize_golden.h"
#include "data/stage/image_resize.h"
#include "refusal.h"

enum { SIZES = sizeof golden_sizes / sizeof *golden_sizes };

static tdi_resize to_size(const struct golden_size *golden)
{
    return (tdi_resize){{HEIGHT, WIDTH}, {golden->height, golden->width}, CHANNELS};
}

static void expect_near(const float *seen, const float *expected, int64_t count, float tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(seen[i] - expected[i]) <= tolerance))
            fail_msg("element %lld: %g instead of %g", (long long)i, (double)seen[i], (double)expected[i]);
}

static void sizes_are_as_keras_makes_them(void **state)
{
    (void)state;
    uint8_t bytes[ELEMENTS], byte_result[MOST];
    for (int i = 0; i < ELEMENTS; i++)
        bytes[i] = (uint8_t)image[i];
    for (int i = 0; i < SIZES; i++) {
        const struct golden_size *golden = &golden_sizes[i];
        tdi_resize resize = to_size(golden);
        int64_t count = golden->height * golden->width * CHANNELS;
        float seen[MOST];
        tdi_resize_floats(image, seen, &resize);
        expect_near(seen, golden->bilinear, count, 1e-3f); /* values go to 255, Keras sums in another order */
        tdi_resize_nearest(image, seen, &resize, sizeof(float));
        expect_near(seen, golden->nearest, count, 0);
        tdi_resize_bytes(bytes, byte_result, &resize);
        for (int64_t k = 0; k < count; k++)
            seen[k] = byte_result[k];
        expect_near(seen, golden->bilinear, count, 0.501f);
    }
}

static void fine(const td_data *data)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
}

/* One sample: its image, and its target's floats. */
static void expect_sample(td_data *data, const float *x, int64_t count, float tolerance, const float *y,
                          int64_t y_count)
{
    float seen[MOST], target[MOST];
    td_context *context = td_context_create(NULL);
    fine(data);
    if (td_data_read(context, data, NULL, 1, seen, y ? target : NULL) != TD_OK)
        fail_msg("%s", td_error(context));
    expect_near(seen, x, count, tolerance);
    if (y)
        expect_near(target, y, y_count, tolerance);
    td_data_release(data);
    td_context_free(context);
}

static void a_stage_takes_floats_and_bytes(void **state)
{
    (void)state;
    const struct golden_size *golden = &golden_sizes[4];
    int64_t count = golden->height * golden->width * CHANNELS;
    uint8_t bytes[ELEMENTS];
    float half[MOST];
    for (int i = 0; i < ELEMENTS; i++)
        bytes[i] = (uint8_t)image[i];
    for (int64_t i = 0; i < count; i++)
        half[i] = golden->bilinear[i] / 2;
    td_shape shape = TD_SHAPE(HEIGHT, WIDTH, CHANNELS), seen;
    td_data *data = td_resize(td_arrays(1, image, shape, .scale = 0.5f), golden->height, golden->width);
    assert_int_equal(td_data_x_shape(data, &seen), TD_OK);
    assert_true(seen.rank == 3 && seen.dim[0] == golden->height && seen.dim[1] == golden->width &&
                seen.dim[2] == CHANNELS);
    expect_sample(data, half, count, 1e-3f, NULL, 0);
    data = td_arrays(1, bytes, shape, .x_dtype = TD_UINT8, .scale = 0.5f, .y = image, .y_shape = shape);
    expect_sample(td_resize(data, golden->height, golden->width), half, count, 0.26f, golden->bilinear, count);
    data = td_augment(td_arrays(1, bytes, shape, .x_dtype = TD_UINT8, .scale = 0.5f), .flip = TD_FLIP_HORIZONTAL);
    expect_sample(td_resize(data, golden->height, golden->width), half, count, 1e-3f, NULL, 0);
}

static void a_label_map_keeps_its_numbers(void **state)
{
    (void)state;
    static const int64_t map[2][3] = {{7, 0, 300}, {1, 2, 3}};
    static const float grey[6] = {0, 2, 4, 6, 8, 10};
    static const float wanted[4 * 6] = {7, 7, 0, 0, 300, 300, 7, 7, 0, 0, 300, 300, 1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3};
    float smooth[4 * 6];
    tdi_resize resize = {{2, 3}, {4, 6}, 1};
    tdi_resize_floats(grey, smooth, &resize);
    td_data *data = td_arrays(1, grey, TD_SHAPE(2, 3), .y = map, .y_shape = TD_SHAPE(2, 3), .y_dtype = TD_INT64);
    expect_sample(td_resize(data, 4, 6), smooth, 4 * 6, 0, wanted, 4 * 6);
}

static void what_is_no_image_is_refused(void **state)
{
    (void)state;
    td_shape flat = TD_SHAPE(ELEMENTS), shape = TD_SHAPE(HEIGHT, WIDTH, CHANNELS);
    expect_refusal(td_resize(td_arrays(1, image, flat), 4, 4), "it must be an image");
    expect_refusal(td_resize(td_arrays(1, image, shape), 0, 4), "0 x 4");
    expect_refusal(td_resize(td_arrays(1, image, shape), 4, 65501), "4 x 65501");
    expect_refusal(td_resize(td_arrays(1, image, shape), 4, 4, 4), "too many");
    expect_refusal(td_resize(NULL, 4, 4), "given no data");
}

/* ---- td_open ---- */

static const char *golden_file(const char *name)
{
    static char path[1024];
    const char *here = __FILE__;
    snprintf(path, sizeof path, "%.*sgolden/%s", (int)(strrchr(here, '/') + 1 - here), here, name);
    return path;
}

/* As golden.py made them. */
static void make_pixels(int64_t height, int64_t width, int number, uint8_t *pixels, uint8_t *map)
{
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            *pixels++ = (uint8_t)(20 * y);
            *pixels++ = (uint8_t)(20 * x);
            *pixels++ = (uint8_t)number;
            *map++ = (uint8_t)(y + x);
        }
}

static void records_of_many_sizes_are_brought_to_one(void **state)
{
    (void)state;
    static const td_image_size sizes[] = {{6, 8}, {3, 4}, {5, 5}};
    float x[3][4 * 5 * 3], y[3][4 * 5];
    td_context *context = td_context_create(NULL);
    td_data *data =
        td_open(golden_file("sizes.tfrecord"), .features = "x=image/encoded,y=map", .image_size = {4, 5}, .scale = 1);
    fine(data);
    if (td_data_read(context, data, NULL, 3, x[0], y[0]) != TD_OK)
        fail_msg("%s", td_error(context));
    for (int i = 0; i < 3; i++) {
        uint8_t pixels[6 * 8 * 3], map[6 * 8], wanted[4 * 5 * 3], wanted_map[4 * 5];
        tdi_resize resize = {sizes[i], {4, 5}, 3}, one = {sizes[i], {4, 5}, 1};
        make_pixels(sizes[i].height, sizes[i].width, i, pixels, map);
        tdi_resize_bytes(pixels, wanted, &resize);
        tdi_resize_nearest(map, wanted_map, &one, 1);
        for (int k = 0; k < 4 * 5 * 3; k++)
            assert_true(x[i][k] == (float)wanted[k]);
        for (int k = 0; k < 4 * 5; k++)
            assert_true(y[i][k] == (float)wanted_map[k]);
    }
    td_data_release(data);
    data = td_open(golden_file("sizes.tfrecord"), .features = "x=image/encoded");
    expect_refusal(data, "record 0 at offset 0: \"image/encoded\" holds an image of 6 x 8, where an image of 3 x 4 was "
                         "expected (height x width): bring all to one size by image_size (--image-size)");
    td_context_free(context);
}

static void arrays_in_files_are_resized_too(void **state)
{
    const folder *in = *state;
    const struct golden_size *golden = &golden_sizes[1];
    td_context *context = td_context_create(NULL);
    td_shape shape = TD_SHAPE(1, HEIGHT, WIDTH, CHANNELS), flat = TD_SHAPE(1, ELEMENTS);
    assert_int_equal(td_save_npy(context, folder_path(in, "x.npy"), image, &shape), TD_OK);
    expect_sample(td_open(folder_path(in, "x.npy"), .image_size = {golden->height, golden->width}), golden->bilinear,
                  golden->height * golden->width * CHANNELS, 1e-3f, NULL, 0);
    assert_int_equal(td_save_npy(context, folder_path(in, "flat.npy"), image, &flat), TD_OK);
    expect_refusal(td_open(folder_path(in, "flat.npy"), .image_size = {4, 4}), "it must be an image");
    expect_refusal(td_open(folder_path(in, "x.npy"), .image_size = {4, 0}), "4 x 0");
    td_context_free(context);
}

/* ---- fields of other formats ---- */

static void a_field_of_another_format_is_refused(void **state)
{
    const folder *in = *state;
    td_context *context = td_context_create(NULL);
    td_shape shape = TD_SHAPE(1, HEIGHT, WIDTH, CHANNELS);
    folder_write(in, "x.csv", "a,b\n1,2\n", 8);
    folder_write(in, "x.txt", "abc", 3);
    const char *npy = folder_path(in, "x.npy"), *csv = folder_path(in, "x.csv"), *text = folder_path(in, "x.txt");
    assert_int_equal(td_save_npy(context, npy, image, &shape), TD_OK);
    expect_refusal(td_open(npy, .window = 5), "window (--window) belongs to files.csv, .tsv or .csv.gz, files.txt");
    expect_refusal(td_open(npy, .missing = TD_MISSING_ZERO), "missing (--missing) belongs to files.csv");
    expect_refusal(td_open(npy, .horizon = 4), "horizon (--horizon)");
    expect_refusal(td_open(npy, .features = "x=/nope"), "features (--features) belongs to a file.npz");
    expect_refusal(td_open(csv, .image_size = {4, 4}), "image_size (--image-size)");
    expect_refusal(td_open(text, .scale = 2), "scale (--scale)");
    td_context_free(context);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_are_as_keras_makes_them),
                                       cmocka_unit_test(a_stage_takes_floats_and_bytes),
                                       cmocka_unit_test(a_label_map_keeps_its_numbers),
                                       cmocka_unit_test(what_is_no_image_is_refused),
                                       cmocka_unit_test(records_of_many_sizes_are_brought_to_one),
                                       TEST(arrays_in_files_are_resized_too),
                                       TEST(a_field_of_another_format_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
