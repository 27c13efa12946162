/* Augmentation: the same pixels as Keras's layers make for the same draws; draws that are fixed by (seed, epoch,
 * sample); label maps that move with their images. augment_golden.py made the golden numbers. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "data/augment_golden.h"
#include "data/source.h"
#include "data/stage/image_colours.h"
#include "data/stage/image_geometry.h"
#include "refusal.h"

static void expect_near(const float *seen, const float *expected, float tolerance, int place)
{
    for (int i = 0; i < ELEMENTS; i++)
        if (!(fabsf(seen[i] - expected[i]) <= tolerance))
            fail_msg("case %d, element %d: %g instead of %g", place, i, (double)seen[i], (double)expected[i]);
}

static void test_moves_are_keras_s(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden_moves / sizeof *golden_moves; i++) {
        const struct golden_move *golden = &golden_moves[i];
        float seen[ELEMENTS];
        tdi_move move = {golden->flip_x != 0, golden->flip_y != 0, golden->right, golden->down,
                         golden->degrees * M_PI / 180};
        td_fill fill = (td_fill)(TD_FILL_ZEROS + golden->fill);
        tdi_move_bilinear(image, seen, HEIGHT, WIDTH, CHANNELS, &move, fill);
        expect_near(seen, golden->result, 0.02f, (int)i); /* Keras computes places in float32; values go to 255 */
        if (!tdi_move_is_whole(&move))
            continue;
        tdi_move_nearest(image, seen, HEIGHT, WIDTH, CHANNELS * sizeof(float), &move, fill);
        expect_near(seen, golden->result, 0, (int)i);
    }
}

static void test_colours_are_keras_s(void **state)
{
    (void)state;
    float seen[ELEMENTS];
    memcpy(seen, image, sizeof seen);
    tdi_change_contrast(seen, HEIGHT * WIDTH, CHANNELS, 1.4f, 255);
    expect_near(seen, contrast_1_4, 1e-3f, 0);
    memcpy(seen, image, sizeof seen);
    tdi_change_brightness(seen, ELEMENTS, -38.25f, 255);
    expect_near(seen, brightness_minus_38_25, 1e-3f, 0);
}

/* A turned label map takes the nearest pixel: no class that was not there. */
static void test_a_turned_map_has_the_nearest_class(void **state)
{
    (void)state;
    uint8_t map[HEIGHT * WIDTH], seen[HEIGHT * WIDTH];
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        map[i] = (uint8_t)(i * 8);
    tdi_move quarter = {.turn = M_PI / 2}; /* about a middle between pixels in one direction: 5 x 6 */
    tdi_move_nearest(map, seen, HEIGHT, WIDTH, 1, &quarter, TD_FILL_REFLECT);
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        assert_int_equal(seen[i] % 8, 0);
}

/* ---- the stage ---- */

enum { SAMPLES = 40, SIDE = 8, PIXELS = SIDE * SIDE };

static uint8_t images[SAMPLES][PIXELS], maps[SAMPLES][PIXELS];

static td_data *segmentation(void)
{
    return td_arrays(SAMPLES, images, TD_SHAPE(SIDE, SIDE, 1), .x_dtype = TD_UINT8, .y = maps,
                     .y_shape = TD_SHAPE(SIDE, SIDE), .y_dtype = TD_UINT8, .scale = 1.0f / 255);
}

static tdi_source *source_of(td_data *data)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    return data->source;
}

static void read_pass(td_data *data, uint64_t seed, int64_t epoch, bool training, float x[SAMPLES][PIXELS],
                      int32_t y[SAMPLES][PIXELS])
{
    tdi_source *source = source_of(data);
    tdi_error error = {0};
    int64_t order[SAMPLES];
    tdi_epoch_order(order, SAMPLES, false, 0, 0);
    tdi_source_run pass = {
        .order = order, .samples = SAMPLES, .batch = 8, .seed = seed, .epoch = epoch, .training = training};
    assert_int_equal(tdi_source_begin(source, &pass, &error), TD_OK);
    for (int i = SAMPLES; i-- > 0;) /* in another order than the pass's */
        assert_int_equal(source->gather(source, 0, &order[i], 1, x[i], TD_FLOAT32, &error), TD_OK);
    assert_int_equal(source->gather(source, 1, order, SAMPLES, y, TD_INT32, &error), TD_OK);
    tdi_source_end(source);
}

static float x[SAMPLES][PIXELS], again[SAMPLES][PIXELS];
static int32_t y[SAMPLES][PIXELS], y_again[SAMPLES][PIXELS];

/* A map that holds what its image holds still does when both have moved. */
static void test_maps_move_with_their_images(void **state)
{
    (void)state;
    td_data *data = td_augment(segmentation(), .flip = TD_FLIP_BOTH, .crop = 2);
    read_pass(data, 3, 0, true, x, y);
    int moved = 0;
    for (int i = 0; i < SAMPLES; i++)
        for (int p = 0; p < PIXELS; p++) {
            assert_true(x[i][p] == (float)y[i][p] / 255);
            moved += y[i][p] != maps[i][p];
        }
    assert_true(moved > SAMPLES * PIXELS / 2);
    td_data_release(data);
}

static void test_draws_are_fixed_by_seed_epoch_and_sample(void **state)
{
    (void)state;
    td_data *data = td_augment(segmentation(), .flip = TD_FLIP_BOTH, .crop = 2, .shift = 0.1f, .rotation = 0.1f,
                               .contrast = 0.3f, .brightness = 0.2f);
    read_pass(data, 3, 1, true, x, y);
    read_pass(data, 3, 1, true, again, y_again);
    assert_memory_equal(x, again, sizeof x);
    assert_memory_equal(y, y_again, sizeof y);
    read_pass(data, 3, 2, true, again, y_again);
    assert_memory_not_equal(x, again, sizeof x);
    read_pass(data, 4, 1, true, again, y_again);
    assert_memory_not_equal(x, again, sizeof x);
    td_data_release(data);
}

static void test_only_training_is_augmented(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_data *data = td_augment(segmentation(), .flip = TD_FLIP_BOTH, .rotation = 0.5f);
    read_pass(data, 3, 1, false, x, y);
    for (int i = 0; i < SAMPLES; i++)
        for (int p = 0; p < PIXELS; p++)
            assert_true(x[i][p] == (float)images[i][p] / 255 && y[i][p] == maps[i][p]);
    assert_int_equal(td_data_read(context, data, NULL, SAMPLES, again[0], NULL), TD_OK);
    assert_memory_equal(x, again, sizeof x);
    td_data_release(data);
    td_context_free(context);
}

/* Of 40 samples about half are flipped, and crops reach from one border to the other. */
static void test_draws_cover_their_range(void **state)
{
    (void)state;
    td_data *data = td_augment(segmentation(), .flip = TD_FLIP_HORIZONTAL);
    int flipped = 0, seen[5] = {0};
    for (int epoch = 0; epoch < 10; epoch++) {
        read_pass(data, 1, epoch, true, x, y);
        for (int i = 0; i < SAMPLES; i++)
            flipped += y[i][0] == maps[i][SIDE - 1];
    }
    assert_in_range(flipped, 160, 240);
    td_data_release(data);
    data = td_augment(segmentation(), .crop = 2, .fill = TD_FILL_NEAREST);
    read_pass(data, 1, 0, true, x, y);
    for (int i = 0; i < SAMPLES; i++)
        for (int by = -2; by <= 2; by++)
            seen[by + 2] += y[i][4 * SIDE + 4] % SIDE == (maps[i][4 * SIDE + 4] - by) % SIDE;
    for (int by = 0; by < 5; by++)
        assert_in_range(seen[by], 2, 16);
    td_data_release(data);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refusal(td_augment(segmentation(), .crop = -1), "crop is -1");
    expect_refusal(td_augment(segmentation(), .crop = SIDE), "fewer were expected");
    expect_refusal(td_augment(segmentation(), .rotation = 2), "rotation is 2");
    expect_refusal(td_augment(segmentation(), .brightness = NAN), "brightness is nan");
    expect_refusal(td_augment(td_arrays(SAMPLES, images, TD_SHAPE(PIXELS), .x_dtype = TD_UINT8)), "must be an image");
    expect_refusal(td_augment(td_open("no/such/data")), "no/such/data");
    expect_refusal(td_augment(NULL), "no data");
    expect_refusal(td_augment_(&(td_augment_args){.data = segmentation(), .guard = 1}), "name the rest");
    td_data *data = td_augment(segmentation(), .flip = TD_FLIP_BOTH);
    tdi_error error = {0};
    tdi_source_run pass = {.training = true};
    assert_int_equal(tdi_source_begin(source_of(data), &pass, &error), TD_OK);
    assert_int_equal(tdi_source_begin(source_of(data), &pass, &error), TD_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "one td_fit at a time"));
    tdi_source_end(source_of(data));
    td_data_release(data);
}

int main(void)
{
    for (int i = 0; i < SAMPLES; i++)
        for (int p = 0; p < PIXELS; p++)
            images[i][p] = maps[i][p] = (uint8_t)(p + i);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_are_keras_s),
        cmocka_unit_test(test_colours_are_keras_s),
        cmocka_unit_test(test_a_turned_map_has_the_nearest_class),
        cmocka_unit_test(test_maps_move_with_their_images),
        cmocka_unit_test(test_draws_are_fixed_by_seed_epoch_and_sample),
        cmocka_unit_test(test_only_training_is_augmented),
        cmocka_unit_test(test_draws_cover_their_range),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
