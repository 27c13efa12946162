/* Folders of images: classes, label maps, sizes, and what is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include <png.h>
#include <sys/stat.h>
#include <tandem/tandem.h>

#include "data/folder.h"
#include "data/source.h"

#define HEIGHT 4
#define WIDTH  6

static void make_folder(const folder *in, const char *name)
{
    mkdir(folder_path(in, name), 0755);
}

/* A grey image; pixel i is first + i. */
static void write_png(const folder *in, const char *name, int height, int width, int first)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_GRAY};
    uint8_t pixels[64];
    for (int i = 0; i < height * width; i++)
        pixels[i] = (uint8_t)(first + i);
    assert_true(png_image_write_to_file(&image, folder_path(in, name), 0, pixels, 0, NULL));
}

static void fine(const td_data *data)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
}

static void expect_refusal(td_data *data, const char *word, const char *another)
{
    assert_non_null(td_data_error(data));
    if (!strstr(td_data_error(data), word) || !strstr(td_data_error(data), another))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", td_data_error(data), word, another);
    td_data_release(data);
}

static void write_classes(const folder *in)
{
    make_folder(in, "cats");
    make_folder(in, "dogs");
    write_png(in, "cats/b.png", HEIGHT, WIDTH, 50);
    write_png(in, "cats/a.png", HEIGHT, WIDTH, 0);
    write_png(in, "dogs/c.PNG", HEIGHT, WIDTH, 100);
    folder_write(in, "dogs/readme.txt", "no image", 8);
}

static void test_a_folder_is_a_class(void **state)
{
    const folder *in = *state;
    float x[3][HEIGHT * WIDTH], y[3];
    td_context *context = td_context_create(NULL);
    write_classes(in);
    td_data *data = td_open(in->path);
    fine(data);
    assert_int_equal(td_data_samples(data), 3);
    assert_int_equal(td_data_read(context, data, NULL, 3, x[0], y), TD_OK);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 1);
    assert_true(x[0][5] == 5.0f / 255 && x[1][0] == 50.0f / 255 && x[2][1] == 101.0f / 255);
    td_data_release(data);
    td_context_free(context);
}

static uint32_t fingerprint(const folder *in)
{
    td_data *data = td_open(in->path);
    fine(data);
    uint32_t crc = 0;
    assert_int_equal(tdi_source_fingerprint(data->source, &crc, NULL, NULL), TD_OK);
    td_data_release(data);
    return crc;
}

static void move(const folder *in, const char *from, const char *to)
{
    assert_int_equal(rename(folder_path(in, from), folder_path(in, to)), 0);
}

/* A backup knows its images again by name, size and class. */
static void test_images_of_other_names_or_classes_are_others(void **state)
{
    const folder *in = *state;
    write_classes(in);
    uint32_t before = fingerprint(in);
    write_png(in, "cats/a.png", HEIGHT, WIDTH, 0); /* again */
    assert_int_equal(fingerprint(in), before);
    move(in, "cats/b.png", "cats/bb.png");
    assert_int_not_equal(fingerprint(in), before);
    move(in, "cats/bb.png", "dogs/b.png"); /* sorted by name as they were */
    assert_int_not_equal(fingerprint(in), before);
    move(in, "dogs/b.png", "cats/b.png");
    assert_int_equal(fingerprint(in), before);
}

static void expect_class(const char *recipe, int number, const char *name)
{
    char seen[16];
    assert_int_equal(td_recipe_class(recipe, number, seen, sizeof seen), 2);
    assert_string_equal(seen, name);
}

static void expect_labels(td_data *data, int count, const float *expected)
{
    float y[4];
    td_context *context = td_context_create(NULL);
    fine(data);
    assert_int_equal(td_data_samples(data), count);
    assert_int_equal(td_data_read(context, data, NULL, count, NULL, y), TD_OK);
    assert_memory_equal(y, expected, (size_t)count * sizeof *y);
    td_data_release(data);
    td_context_free(context);
}

/* A part that lacks a class has the numbers of the one that the model was trained on all the same. */
static void test_classes_have_names(void **state)
{
    const folder *in = *state;
    write_classes(in);
    td_data *all = td_open(in->path);
    fine(all);
    const char *recipe = td_data_recipe(all);
    expect_class(recipe, 0, "cats");
    expect_class(recipe, 1, "dogs");
    expect_class(recipe, 2, "");
    expect_class(recipe, -1, "");
    assert_int_equal(td_recipe_class(recipe, 0, NULL, 0), 2);
    assert_int_equal(td_recipe_class(NULL, 0, NULL, 0), 0);
    remove(folder_path(in, "cats/a.png"));
    remove(folder_path(in, "cats/b.png"));
    remove(folder_path(in, "cats"));
    expect_labels(td_open(in->path), 1, (float[]){0});
    expect_labels(td_open(in->path, .recipe = recipe), 1, (float[]){1});
    make_folder(in, "birds");
    write_png(in, "birds/e.png", HEIGHT, WIDTH, 20);
    expect_refusal(td_open(in->path, .recipe = recipe), "birds is none of the 2 classes", "trained on");
    td_data *predicted = td_open(in->path, .recipe = recipe, .targets = TD_NO);
    fine(predicted);
    td_data_release(predicted);
    td_data *others = td_open(in->path, .recipe = "{\"format\":\"images\",\"classes\":[\"x\",\"y\"]}");
    fine(others);
    expect_class(td_data_recipe(others), 0, "birds");
    expect_labels(others, 2, (float[]){0, 1});
    expect_labels(td_open(in->path, .recipe = "{\"format\":\"images\",\"classes\":[\"dogs\",7]}"), 2, (float[]){0, 1});
    td_data_release(all);
}

static void write_maps(const folder *in)
{
    make_folder(in, "train");
    make_folder(in, "trainannot");
    make_folder(in, "val");
    make_folder(in, "valannot");
    for (int i = 1; i <= 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "train/%d.png", i);
        write_png(in, name, HEIGHT, WIDTH, 10 * i);
        snprintf(name, sizeof name, "trainannot/%d.png", i);
        write_png(in, name, HEIGHT, WIDTH, i);
    }
    write_png(in, "val/3.png", HEIGHT, WIDTH, 30);
    write_png(in, "valannot/3.png", HEIGHT, WIDTH, 3);
}

static void test_label_maps_are_numbers(void **state)
{
    const folder *in = *state;
    float x[2][HEIGHT * WIDTH], y[2][HEIGHT * WIDTH];
    td_context *context = td_context_create(NULL);
    write_maps(in);
    td_data *train = td_open(in->path), *test = td_open(in->path, .role = TD_TEST);
    fine(train);
    fine(test);
    assert_int_equal(td_data_samples(train), 2);
    assert_int_equal(td_data_samples(test), 1);
    assert_int_equal(td_data_read(context, train, NULL, 2, x[0], y[0]), TD_OK);
    assert_true(x[1][0] == 20.0f / 255 && y[0][3] == 4 && y[1][23] == 25);
    assert_null(td_data_recipe(train));
    td_data_release(train);
    td_data_release(test);
    remove(folder_path(in, "val/3.png"));
    remove(folder_path(in, "val"));
    expect_refusal(td_open(in->path, .role = TD_TEST), "no part to test on", "IMAGES");
    td_context_free(context);
}

/* Files belong together by their names before the ending, whatever their order. */
static void test_label_maps_go_by_name(void **state)
{
    const folder *in = *state;
    float x[4][HEIGHT * WIDTH], y[4][HEIGHT * WIDTH];
    td_context *context = td_context_create(NULL);
    write_maps(in);
    write_png(in, "train/2-a.png", HEIGHT, WIDTH, 40);
    write_png(in, "train/2.k.png", HEIGHT, WIDTH, 50);
    write_png(in, "trainannot/2-a.png", HEIGHT, WIDTH, 4);
    write_png(in, "trainannot/2.k.png", HEIGHT, WIDTH, 5);
    td_data *data = td_open(in->path);
    fine(data);
    assert_int_equal(td_data_samples(data), 4);
    assert_int_equal(td_data_read(context, data, NULL, 4, x[0], y[0]), TD_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(y[i][0] * 10, x[i][0] * 255 + 0.5f);
    td_data_release(data);
    td_context_free(context);
}

static void expect_left_out(const folder *in, int64_t samples, int64_t skipped, const char *word)
{
    const char *reason;
    td_data *data = td_open(in->path, .skip_errors = TD_YES);
    fine(data);
    assert_int_equal(td_data_samples(data), samples);
    assert_int_equal(td_data_skipped(data, &reason), skipped);
    if (!strstr(reason, word))
        fail_msg("\"%s\" lacks \"%s\"", reason, word);
    td_data_release(data);
}

static void test_half_of_a_pair_is_named_or_left_out(void **state)
{
    const folder *in = *state;
    write_maps(in);
    write_png(in, "trainannot/9.png", HEIGHT, WIDTH, 9);
    expect_refusal(td_open(in->path), "trainannot/9.png", "no image");
    expect_left_out(in, 2, 1, "trainannot/9.png");
    write_png(in, "train/0.png", HEIGHT, WIDTH, 0);
    expect_refusal(td_open(in->path), "train/0.png", "no labels");
    expect_left_out(in, 2, 2, "train/0.png");
    folder_write(in, "trainannot/0.png", "", 0); /* the first, by which the others' size goes */
    expect_left_out(in, 2, 2, "trainannot/9.png");
    folder_write(in, "train/0.png", "", 0);
    expect_left_out(in, 2, 2, "trainannot/9.png");
    remove(folder_path(in, "trainannot/1.png"));
    remove(folder_path(in, "trainannot/2.png"));
    remove(folder_path(in, "trainannot/0.png"));
    expect_refusal(td_open(in->path, .skip_errors = TD_YES), "no image in ", "trainannot");
}

/* From a file beside the folders; without it from the model's recipe. */
static void test_label_maps_have_names(void **state)
{
    const folder *in = *state;
    write_maps(in);
    folder_write(in, "classes.txt", "sky\r\nroad\n\n", 11);
    td_data *data = td_open(in->path);
    fine(data);
    expect_class(td_data_recipe(data), 0, "sky");
    expect_class(td_data_recipe(data), 1, "road");
    remove(folder_path(in, "classes.txt"));
    td_data *other = td_open(in->path, .role = TD_TEST, .recipe = td_data_recipe(data));
    fine(other);
    expect_class(td_data_recipe(other), 1, "road");
    td_data_release(other);
    td_data_release(data);
    folder_write(in, "classes.txt", "sky\n\xff\xfe\n", 7);
    expect_refusal(td_open(in->path), "classes.txt: line 2", "UTF-8");
    folder_write(in, "classes.txt", "sky\n\nroad\n", 10);
    expect_refusal(td_open(in->path), "classes.txt: line 3", "empty line");
}

static void test_images_are_brought_to_one_size(void **state)
{
    const folder *in = *state;
    float x[2 * 3 * 2];
    td_context *context = td_context_create(NULL);
    make_folder(in, "cats");
    write_png(in, "cats/a.png", 4, 6, 0);
    write_png(in, "cats/b.png", 2, 2, 8);
    td_data *data = td_open(in->path);
    fine(data);
    assert_int_equal(td_data_read(context, data, NULL, 2, (float[2 * HEIGHT * WIDTH]){0}, NULL), TD_BAD_FILE);
    assert_non_null(strstr(td_error(context), "cats/b.png"));
    assert_non_null(strstr(td_error(context), "2 x 2"));
    td_data_release(data);
    td_clear_error(context);
    data = td_open(in->path, .image_size = {2, 3});
    fine(data);
    assert_int_equal(td_data_read(context, data, NULL, 2, x, NULL), TD_OK);
    /* Half of 4 x 6: the means of 2 x 2 pixels, as tf.image.resize gives, rounded to bytes. */
    const float half[6] = {4, 6, 8, 16, 18, 20};
    for (int i = 0; i < 6; i++)
        assert_true(x[i] == half[i] / 255);
    /* 2 x 2 to 2 x 3: the middle column lies between. */
    const float wider[6] = {8, 9, 9, 10, 11, 11};
    for (int i = 0; i < 6; i++)
        assert_true(x[6 + i] == wider[i] / 255);
    td_data_release(data);
    td_context_free(context);
}

static void test_damaged_files_are_named_or_left_out(void **state)
{
    const folder *in = *state;
    static float x[3 * HEIGHT * WIDTH];
    static char bytes[4096];
    td_context *context = td_context_create(NULL);
    write_classes(in);
    size_t size = folder_read(in, "cats/b.png", bytes, sizeof bytes);
    folder_write(in, "cats/b.png", bytes, size / 2);
    td_data *data = td_open(in->path);
    fine(data);
    assert_int_equal(td_data_read(context, data, NULL, 3, x, NULL), TD_BAD_FILE);
    assert_non_null(strstr(td_error(context), "cats/b.png"));
    td_data_release(data);
    data = td_open(in->path, .skip_errors = TD_YES);
    fine(data);
    assert_int_equal(td_data_samples(data), 2);
    assert_int_equal(td_data_skipped(data, NULL), 1);
    td_data_release(data);
    td_context_free(context);
}

static void test_no_images(void **state)
{
    const folder *in = *state;
    char path[1024];
    make_folder(in, "cats");
    expect_refusal(td_open(in->path), "not data of a known format", ".jpg");
    snprintf(path, sizeof path, "%s/cats,%s/nowhere", in->path, in->path);
    expect_refusal(td_open(path), "nowhere", "cannot be read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_folder_is_a_class, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_images_of_other_names_or_classes_are_others, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_classes_have_names, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_label_maps_are_numbers, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_label_maps_go_by_name, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_half_of_a_pair_is_named_or_left_out, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_label_maps_have_names, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_images_are_brought_to_one_size, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_damaged_files_are_named_or_left_out, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_no_images, folder_make, folder_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
