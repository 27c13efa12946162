/* Class folders held against a model before its first step: too many, too few, other ones to validate with; and a part
 * of them kept for validation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <png.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tandem/tandem.h>

#include "data/folder.h"
#include "support/devices.h"

enum { SIDE = 2 };

static char warned[1024];

static void note(void *user, td_log_level level, const char *line)
{
    (void)user;
    if (level == TD_LOG_WARNING)
        snprintf(warned, sizeof warned, "%s", line);
}

static void write_png(const folder *in, const char *name, uint8_t value)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = SIDE, .height = SIDE, .format = PNG_FORMAT_GRAY};
    uint8_t pixels[SIDE * SIDE];
    memset(pixels, value, sizeof pixels);
    assert_true(png_image_write_to_file(&image, folder_path(in, name), 0, pixels, 0, NULL));
}

/* Folders of `each` images, whose value tells the class. */
static void write_classes(const folder *in, const char *const *names, int each)
{
    char name[64];
    for (int class = 0; names[class]; class ++) {
        mkdir(folder_path(in, names[class]), 0755);
        for (int i = 0; i < each; i++) {
            snprintf(name, sizeof name, "%s/%d.png", names[class], i);
            write_png(in, name, (uint8_t)(100 * class));
        }
    }
}

static td_model *make_model(td_context *context, int outputs, td_loss loss)
{
    td_tensor *x = td_input(context, TD_SHAPE(SIDE, SIDE, 1));
    td_model *model = td_model_create(x, td_dense(td_flatten(x), outputs), .seed = 1);
    assert_int_equal(td_compile(model, .optimizer = td_adam(.learning_rate = 0.1f), .loss = loss,
                                .metrics = TD_METRICS(TD_ACCURACY), .strategy = td_mirrored(test_devices(1))),
                     TD_OK);
    return model;
}

static td_context *make_context(void)
{
    warned[0] = '\0';
    return td_context_create(&(td_context_options){.log = note});
}

static void expect_refusal(td_context *context, td_status status, const char *const *words)
{
    assert_int_equal(status, TD_INVALID_ARGUMENT);
    for (; *words; words++)
        if (!strstr(td_error(context), *words))
            fail_msg("\"%s\" lacks \"%s\"", td_error(context), *words);
    td_clear_error(context);
}

static const td_loss sparse = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                     binary = TD_BINARY_CROSSENTROPY_FROM_LOGITS;

static void test_too_many_classes_are_named(void **state)
{
    const folder *in = *state;
    write_classes(in, (const char *[]){"cat", "dog", "eel", NULL}, 2);
    const struct {
        int outputs;
        td_loss loss;
    } models[] = {{2, sparse}, {1, sparse}, {1, binary}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        td_context *context = make_context();
        td_model *model = make_model(context, models[i].outputs, models[i].loss);
        const char *const words[] = {"3 classes (cat, dog, eel)", "apart", NULL};
        expect_refusal(context, td_fit(model, td_open(in->path)), words);
        expect_refusal(context, td_evaluate(model, td_open(in->path), NULL), words);
        td_context_free(context);
    }
}

static void test_classes_that_fit_are_trained_on(void **state)
{
    const folder *in = *state;
    write_classes(in, (const char *[]){"cat", "dog", NULL}, 2);
    const struct {
        int outputs;
        td_loss loss;
        const char *warning;
    } models[] = {{2, sparse, ""}, {1, binary, ""}, {5, sparse, "2 classes (cat, dog), but output \"dense\""}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        td_context *context = make_context();
        td_epoch last;
        td_model *model = make_model(context, models[i].outputs, models[i].loss);
        if (td_fit(model, td_open(in->path), .epochs = 40, .last = &last) != TD_OK)
            fail_msg("%s", td_error(context));
        assert_true(last.logs.entry[1].value == 1); /* accuracy */
        if (models[i].warning[0] ? !strstr(warned, models[i].warning) : warned[0])
            fail_msg("warned: \"%s\"", warned);
        td_context_free(context);
    }
}

/* The numbers would mean other classes. */
static void test_classes_to_validate_with_are_those_of_the_training(void **state)
{
    const folder *in = *state;
    char part[512];
    td_context *context = make_context();
    td_model *model = make_model(context, 3, sparse);
    write_classes(in, (const char *[]){"cat", "dog", "eel", NULL}, 1);
    mkdir(folder_path(in, "cat/part"), 0755);
    write_classes(in, (const char *[]){"cat/part/dog", "cat/part/eel", NULL}, 1);
    snprintf(part, sizeof part, "%s/cat/part", in->path);
    td_data *train = td_open(in->path);
    expect_refusal(context, td_fit(model, td_data_retain(train), .validation = td_open(part, .role = TD_TEST)),
                   (const char *[]){"classes dog, eel, but the training data cat, dog, eel", NULL});
    td_data *validation = td_open(part, .role = TD_TEST, .recipe = td_data_recipe(train));
    if (td_fit(model, td_data_retain(train), .validation = validation) != TD_OK)
        fail_msg("%s", td_error(context));
    td_data *joined = td_interleave(TD_DATA_LIST(td_data_retain(train), td_open(part)), .block = 1);
    assert_non_null(td_data_error(joined));
    assert_non_null(strstr(td_data_error(joined), "class folders"));
    td_data_release(joined);
    td_data_release(train);
    td_context_free(context);
}

/* Of both classes, though the last samples are all dogs: a model that is right on both is right on them. */
static void test_a_part_for_validation_has_all_classes(void **state)
{
    const folder *in = *state;
    td_context *context = make_context();
    td_model *model = make_model(context, 2, sparse);
    write_classes(in, (const char *[]){"cat", "dog", NULL}, 30);
    td_epoch last;
    if (td_fit(model, td_open(in->path), .validation_split = 30, .epochs = 40, .last = &last) != TD_OK)
        fail_msg("%s", td_error(context));
    assert_int_equal(last.samples, 30);
    for (int i = 0; i < last.logs.count; i++)
        if (strstr(last.logs.entry[i].name, "accuracy"))
            assert_true(last.logs.entry[i].value == 1);
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_too_many_classes_are_named, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_classes_that_fit_are_trained_on, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_classes_to_validate_with_are_those_of_the_training, folder_make,
                                        folder_drop),
        cmocka_unit_test_setup_teardown(test_a_part_for_validation_has_all_classes, folder_make, folder_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
