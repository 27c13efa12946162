/* Folders of images as people have them: grey among colours, other sizes, files of other kinds, folders in folders, and
 * names of any bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include <png.h>
#include <sys/stat.h>
#include <tandem/tandem.h>

#include "data/folder.h"
#include "data/source.h"

enum { HEIGHT = 4, WIDTH = 6, PIXELS = HEIGHT * WIDTH };

static void make_folder(const folder *in, const char *name)
{
    mkdir(folder_path(in, name), 0755);
}

/* An image of one value: grey, or the red of black. */
static void write_png(const folder *in, const char *name, int height, int width, bool colours, uint8_t value)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = colours ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    uint8_t pixels[3 * 64] = {0};
    for (int i = 0; i < height * width; i++)
        pixels[colours ? 3 * i : i] = value;
    assert_true(png_image_write_to_file(&image, folder_path(in, name), 0, pixels, 0, NULL));
}

static void write_grey(const folder *in, const char *name, uint8_t value)
{
    write_png(in, name, HEIGHT, WIDTH, false, value);
}

static void write_red(const folder *in, const char *name, uint8_t value)
{
    write_png(in, name, HEIGHT, WIDTH, true, value);
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

/* The data as a model takes it whose input is [height, width, channels]. */
static td_data *open_for(const folder *in, const td_shape *shape, td_choice skip)
{
    return td_open(in->path, .input_shapes = shape, .inputs = 1, .skip_errors = skip);
}

/* The first element of each of the samples, in bytes, and their classes. */
static void expect_samples(td_data *data, int count, const int *firsts, const int *classes)
{
    float x[8 * 4 * PIXELS], y[8];
    td_shape shape;
    td_context *context = td_context_create(NULL);
    fine(data);
    assert_int_equal(td_data_samples(data), count);
    assert_int_equal(td_data_x_shape(data, &shape), TD_OK);
    if (td_data_read(context, data, NULL, count, x, classes ? y : NULL) != TD_OK)
        fail_msg("%s", td_error(context));
    for (int i = 0; i < count; i++) {
        assert_int_equal(x[i * shape.dim[0] * shape.dim[1] * shape.dim[2]] * 255 + 0.5f, firsts[i]);
        if (classes)
            assert_int_equal(y[i], classes[i]);
    }
    td_data_release(data);
    td_context_free(context);
}

static void expect_shape(td_data *data, int64_t height, int64_t width, int64_t channels)
{
    td_shape shape;
    fine(data);
    assert_int_equal(td_data_x_shape(data, &shape), TD_OK);
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.dim[0], height);
    assert_int_equal(shape.dim[1], width);
    assert_int_equal(shape.dim[2], channels);
    td_data_release(data);
}

/* Grey first, or colours first. */
static void write_mixed(const folder *in, bool grey_first)
{
    make_folder(in, "cat");
    make_folder(in, "dog");
    write_grey(in, grey_first ? "cat/1.png" : "dog/1.png", 100);
    write_red(in, grey_first ? "dog/1.png" : "cat/1.png", 200);
}

static void test_the_model_says_how_many_channels(void **state)
{
    const folder *in = *state;
    const td_shape colours = TD_SHAPE(HEIGHT, WIDTH, 3), grey = TD_SHAPE(HEIGHT, WIDTH, 1),
                   flat_grey = TD_SHAPE(HEIGHT, WIDTH), opacity = TD_SHAPE(HEIGHT, WIDTH, 4);
    const int luma = 116; /* libpng's grey of red 200 in a file that says it is sRGB, as TensorFlow's decoder has it */
    for (int grey_first = 0; grey_first < 2; grey_first++) {
        const int red[2] = {grey_first ? 100 : 200, grey_first ? 200 : 100};
        const int shades[2] = {grey_first ? 100 : luma, grey_first ? luma : 100};
        write_mixed(in, grey_first);
        expect_samples(open_for(in, &colours, TD_NO), 2, red, (int[]){0, 1});
        expect_samples(open_for(in, &opacity, TD_NO), 2, red, (int[]){0, 1});
        expect_samples(open_for(in, &grey, TD_NO), 2, shades, (int[]){0, 1});
        expect_samples(open_for(in, &flat_grey, TD_NO), 2, shades, (int[]){0, 1});
        expect_shape(open_for(in, &opacity, TD_NO), HEIGHT, WIDTH, 4);
        expect_shape(open_for(in, &TD_SHAPE(3 * PIXELS), TD_NO), HEIGHT, WIDTH, 3);
        expect_shape(open_for(in, &TD_SHAPE(PIXELS), TD_NO), HEIGHT, WIDTH, 1);
        expect_shape(td_open(in->path), HEIGHT, WIDTH, 3); /* without a model: one of them has colours */
    }
}

static void expect_left_out(td_data *data, int samples, int skipped, const char *word)
{
    const char *reason;
    fine(data);
    assert_int_equal(td_data_samples(data), samples);
    assert_int_equal(td_data_skipped(data, &reason), skipped);
    if (!strstr(reason, word))
        fail_msg("\"%s\" lacks \"%s\"", reason, word);
    td_data_release(data);
}

static void expect_unreadable(td_data *data, const char *word, const char *another)
{
    static float x[8 * 3 * PIXELS];
    td_context *context = td_context_create(NULL);
    fine(data);
    assert_int_equal(td_data_read(context, data, NULL, td_data_samples(data), x, NULL), TD_BAD_FILE);
    if (!strstr(td_error(context), word) || !strstr(td_error(context), another))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", td_error(context), word, another);
    td_data_release(data);
    td_context_free(context);
}

/* The same sentence for the first image as for the last, and with skipping the same data. */
static void test_the_model_says_which_size(void **state)
{
    const folder *in = *state;
    const td_shape shape = TD_SHAPE(HEIGHT, WIDTH, 3);
    const char *word = "2 x 2 pixels (height x width), but the model takes 4 x 6", *try = "--image-size 4x6";
    make_folder(in, "cat");
    write_png(in, "cat/a.png", 2, 2, true, 10);
    write_red(in, "cat/b.png", 20);
    expect_refusal(open_for(in, &shape, TD_NO), word, try);
    expect_left_out(open_for(in, &shape, TD_YES), 1, 1, word);
    rename(folder_path(in, "cat/a.png"), folder_path(in, "cat/c.png"));
    expect_unreadable(open_for(in, &shape, TD_NO), word, try);
    expect_left_out(open_for(in, &shape, TD_YES), 1, 1, word);
    expect_samples(td_open(in->path, .input_shapes = &shape, .inputs = 1, .image_size = {HEIGHT, WIDTH}), 2,
                   (int[]){20, 10}, (int[]){0, 0});
    expect_refusal(td_open(in->path, .input_shapes = &TD_SHAPE(9, 9, 3), .inputs = 1, .skip_errors = TD_YES),
                   "not one of its 2 samples", "9 x 9");
}

static void test_a_damaged_file_is_skipped_wherever_it_is(void **state)
{
    const folder *in = *state;
    const char *const names[] = {"cat/a.png", "cat/c.png", "dog/a.png"};
    const td_shape shape = TD_SHAPE(HEIGHT, WIDTH, 3);
    for (int i = 0; i < 3; i++) {
        write_mixed(in, true);
        folder_write(in, names[i], "damaged", 7);
        expect_left_out(open_for(in, &shape, TD_YES), 2, 1, names[i]);
        remove(folder_path(in, names[i]));
        assert_int_equal(symlink("nowhere", folder_path(in, names[i])), 0);
        expect_left_out(open_for(in, &shape, TD_YES), 2, 1, names[i]);
        remove(folder_path(in, names[i]));
    }
}

/* ---- what else lies there ---- */

static void expect_note(td_data *data, const char *const *words)
{
    fine(data);
    for (; *words; words++)
        if (!strstr(td_data_note(data), *words))
            fail_msg("\"%s\" lacks \"%s\"", td_data_note(data), *words);
    td_data_release(data);
}

/* In the order of Keras's list: the images of a folder before those of the folders in it. */
static void test_folders_below_a_class_belong_to_it(void **state)
{
    const folder *in = *state;
    make_folder(in, "cat");
    make_folder(in, "cat/more");
    make_folder(in, "cat/more/deep");
    make_folder(in, "dog");
    write_grey(in, "cat/z.png", 1);
    write_grey(in, "cat/more/z.PNG", 2);
    write_grey(in, "cat/more/deep/a.png", 3);
    write_grey(in, "dog/a.png", 4);
    expect_samples(td_open(in->path), 4, (int[]){1, 2, 3, 4}, (int[]){0, 0, 0, 1});
    td_data *data = td_open(in->path);
    assert_string_equal(td_data_note(data), "");
    td_data_release(data);
}

static void test_what_is_left_out_is_said(void **state)
{
    const folder *in = *state;
    write_mixed(in, true);
    make_folder(in, "empty"); /* a class, as in Keras */
    make_folder(in, ".hidden");
    make_folder(in, "cat/.ipynb_checkpoints");
    write_grey(in, "cat/.ipynb_checkpoints/1.png", 1);
    write_grey(in, "beside.png", 1);
    write_grey(in, "cat/._1.png", 1);
    folder_write(in, "cat/Thumbs.db", "x", 1);
    folder_write(in, "dog/notes.txt", "x", 1);
    folder_write(in, "dog/none", "x", 1);
    assert_int_equal(symlink("../cat", folder_path(in, "dog/link")), 0);
    assert_int_equal(symlink("dog", folder_path(in, "link")), 0); /* a class, as in Keras */
    expect_note(td_open(in->path),
                (const char *[]){": left out: 5 whose names do not end in .bmp", "/cat/Thumbs.db", "3 hidden",
                                 "/.hidden", "1 beside", "/beside.png", "2 links to folders", "/dog/link", NULL});
    expect_samples(td_open(in->path), 3, (int[]){100, 200, 200}, (int[]){0, 1, 3});
}

static void test_to_predict_all_images_are_used(void **state)
{
    const folder *in = *state;
    write_mixed(in, true);
    write_grey(in, "beside.png", 50);
    const char *recipe = "{\"format\":\"images\",\"classes\":[\"x\",\"y\"]}";
    expect_samples(td_open(in->path, .targets = TD_NO, .role = TD_TEST, .recipe = recipe), 3, (int[]){50, 100, 200},
                   NULL);
    expect_samples(td_open(folder_path(in, "dog/1.png")), 1, (int[]){200}, NULL);
    expect_refusal(td_open(folder_path(in, "dog/1.png"), .targets = TD_YES), "/dog/1.png has no class folders", "name");
    expect_refusal(td_open(folder_path(in, "dog"), .targets = TD_YES), "/dog has no class folders", "name the folder");
}

/* ---- classes ---- */

static void test_classes_are_those_of_the_training(void **state)
{
    const folder *in = *state;
    write_mixed(in, true);
    expect_samples(td_open(in->path, .recipe = "{\"format\":\"images\",\"classes\":[\"ant\",\"dog\",\"cat\"]}"), 2,
                   (int[]){100, 200}, (int[]){2, 1});
    expect_refusal(td_open(in->path, .recipe = "{\"format\":\"images\",\"classes\":[\"cat\",\"cow\"]}"),
                   "/dog is none of the 2 classes", "(cat, cow)");
    const char *others = "{\"format\":\"images\",\"classes\":[\"Cat\",\"Dog\"]}";
    expect_refusal(td_open(in->path, .role = TD_TEST, .recipe = others), "class folders cat, dog", "classes Cat, Dog");
    expect_samples(td_open(in->path, .recipe = others), 2, (int[]){100, 200}, (int[]){0, 1}); /* to train anew */
}

static void test_names_may_have_any_bytes(void **state)
{
    const folder *in = *state;
    char name[64];
    make_folder(in, "b\xE9\nte, \x1B[31m");
    make_folder(in, "\xC3\xA9t\xC3\xA9");
    write_grey(in, "b\xE9\nte, \x1B[31m/\xFF\n.png", 7);
    write_grey(in, "\xC3\xA9t\xC3\xA9/a b.png", 8);
    td_data *data = td_open(in->path);
    fine(data);
    assert_int_equal(td_recipe_class(td_data_recipe(data), 0, name, sizeof name), 2);
    assert_string_equal(name, "b\\xE9\nte, \x1B[31m");
    td_recipe_class(td_data_recipe(data), 1, name, sizeof name);
    assert_string_equal(name, "\xC3\xA9t\xC3\xA9");
    expect_samples(td_open(in->path, .role = TD_TEST, .recipe = td_data_recipe(data)), 2, (int[]){7, 8}, (int[]){0, 1});
    td_data_release(data);
    char path[512];
    snprintf(path, sizeof path, "%s/%s", in->path, "b\xE9\nte, \x1B[31m"); /* one folder, for all its comma */
    expect_samples(td_open(path), 1, (int[]){7}, NULL);
}

/* ---- splits ---- */

static void test_splits_are_chosen_by_the_role(void **state)
{
    const folder *in = *state;
    make_folder(in, "val");
    make_folder(in, "val/cat");
    write_grey(in, "val/cat/a.png", 1);
    expect_refusal(td_open(in->path), "holds val, but no part to train on", "name the folder");
    make_folder(in, "train");
    make_folder(in, "train/ant");
    make_folder(in, "train/cat");
    write_grey(in, "train/ant/a.png", 2);
    write_grey(in, "train/cat/a.png", 3);
    make_folder(in, "extra");
    td_data *train = td_open(in->path);
    fine(train);
    expect_samples(td_open(in->path, .role = TD_TEST, .recipe = td_data_recipe(train)), 1, (int[]){1}, (int[]){1});
    expect_samples(train, 2, (int[]){2, 3}, (int[]){0, 1});
    expect_note(td_open(in->path), (const char *[]){"1 beside the folders that are used", "/extra", NULL});
}

/* Not a split: there is no other, and it holds images. */
static void test_a_class_may_be_called_test(void **state)
{
    const folder *in = *state;
    make_folder(in, "bus");
    make_folder(in, "train");
    write_grey(in, "bus/a.png", 1);
    write_grey(in, "train/a.png", 2);
    expect_samples(td_open(in->path), 2, (int[]){1, 2}, (int[]){0, 1});
    expect_samples(td_open(in->path, .role = TD_TEST), 2, (int[]){1, 2}, (int[]){0, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_model_says_how_many_channels, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_the_model_says_which_size, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_a_damaged_file_is_skipped_wherever_it_is, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_folders_below_a_class_belong_to_it, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_what_is_left_out_is_said, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_to_predict_all_images_are_used, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_classes_are_those_of_the_training, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_names_may_have_any_bytes, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_splits_are_chosen_by_the_role, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_a_class_may_be_called_test, folder_make, folder_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
