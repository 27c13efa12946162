/* Images of all formats: their pixels are Pillow's, and what is damaged is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/image_codec.h"
#include "image_golden.h"

enum { GOLDEN = sizeof golden_images / sizeof *golden_images };

/* JPEG's are rounded otherwise by other versions of its library. */
static int tolerance(const char *name)
{
    return strstr(name, ".jpg") ? 3 : 0;
}

static uint8_t expected_of(const struct golden_image *golden, int pixel, int channel, int64_t channels)
{
    return channels == 1 ? golden->grey[pixel] : golden->rgba[4 * pixel + channel];
}

static void expect_pixels(const struct golden_image *golden, int64_t channels)
{
    uint8_t pixels[4 * PIXELS];
    tdi_error error = {0};
    const tdi_image image = {HEIGHT, WIDTH, channels};
    if (tdi_image_decode(golden->bytes, golden->size, TDI_IMAGE_COLOURS, &image, pixels, &error) != TD_OK)
        fail_msg("%s: %s", golden->name, error.message);
    for (int i = 0; i < PIXELS * (int)channels; i++) {
        int wanted = expected_of(golden, i / (int)channels, i % (int)channels, channels);
        if (abs(wanted - pixels[i]) > tolerance(golden->name))
            fail_msg("%s of %d channels: pixel %d, channel %d is %d, not %d", golden->name, (int)channels,
                     i / (int)channels, i % (int)channels, pixels[i], wanted);
    }
}

static void test_pixels_are_pillows(void **state)
{
    static const int64_t channels[] = {1, 3, 4};
    (void)state;
    for (int i = 0; i < GOLDEN; i++)
        for (int c = 0; c < 3; c++)
            expect_pixels(&golden_images[i], channels[c]);
}

static void test_sizes_and_colours_are_seen(void **state)
{
    (void)state;
    for (int i = 0; i < GOLDEN; i++) {
        const struct golden_image *golden = &golden_images[i];
        tdi_image image;
        tdi_error error = {0};
        if (tdi_image_look(golden->bytes, golden->size, TDI_IMAGE_COLOURS, &image, &error) != TD_OK)
            fail_msg("%s: %s", golden->name, error.message);
        bool grey = strncmp(golden->name, "grey", 4) == 0 || strcmp(golden->name, "bits_1.bmp") == 0;
        assert_int_equal(image.height, HEIGHT);
        assert_int_equal(image.width, WIDTH);
        assert_int_equal(image.channels, grey ? 1 : 3);
    }
}

/* Where an image ends too early it is refused, or only bytes behind its pixels are missing. */
static void test_truncated_images_are_never_filled_up(void **state)
{
    (void)state;
    for (int i = 0; i < GOLDEN; i++) {
        const struct golden_image *golden = &golden_images[i];
        uint8_t whole[3 * PIXELS], pixels[3 * PIXELS];
        const tdi_image image = {HEIGHT, WIDTH, 3};
        tdi_image_decode(golden->bytes, golden->size, TDI_IMAGE_COLOURS, &image, whole, NULL);
        for (size_t size = 0; size < golden->size; size++) {
            void *bytes = malloc(size + 1); /* so that reading beyond is seen */
            memcpy(bytes, golden->bytes, size);
            tdi_error error = {0};
            if (tdi_image_decode(bytes, size, TDI_IMAGE_COLOURS, &image, pixels, &error) == TD_OK) {
                if (memcmp(pixels, whole, sizeof pixels) != 0)
                    fail_msg("%s: %zu of %zu bytes are decoded as another image", golden->name, size, golden->size);
            } else {
                assert_int_equal(error.status, TD_BAD_FILE);
            }
            free(bytes);
        }
    }
}

static const struct golden_image *find(const char *name)
{
    for (int i = 0; i < GOLDEN; i++)
        if (strcmp(golden_images[i].name, name) == 0)
            return &golden_images[i];
    fail_msg("there is no %s", name);
    return NULL;
}

static void expect_refusal(const void *bytes, size_t size, tdi_image_kind kind, const char *word)
{
    uint8_t pixels[PIXELS * 3];
    tdi_image image;
    tdi_error error = {0};
    if (tdi_image_look(bytes, size, kind, &image, &error) == TD_OK) {
        const tdi_image wanted = {HEIGHT, WIDTH, kind == TDI_IMAGE_LABELS ? 1 : 3};
        assert_int_equal(tdi_image_decode(bytes, size, kind, &wanted, pixels, &error), TD_BAD_FILE);
    }
    assert_int_equal(error.status, TD_BAD_FILE);
    if (!strstr(error.message, word))
        fail_msg("\"%s\" lacks \"%s\"", error.message, word);
}

/* Values or indices would not be class numbers. */
static void test_label_maps_are_png_of_8_bits(void **state)
{
    (void)state;
    const struct {
        const char *name, *word;
    } cases[] = {{"grey.jpg", "JPEG"},       {"palette.gif", "GIF"},    {"grey.bmp", "BMP"},
                 {"rgb.png", "has colours"}, {"grey_16.png", "has 16"}, {"lossless.webp", "WebP"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(find(cases[i].name)->bytes, find(cases[i].name)->size, TDI_IMAGE_LABELS, cases[i].word);
}

static void test_other_bytes_are_refused_by_what_they_are(void **state)
{
    (void)state;
    uint8_t bytes[2048];
    const struct golden_image *rgb = find("rgb.bmp");
    expect_refusal("", 0, TDI_IMAGE_COLOURS, "empty");
    expect_refusal("II*\0 a TIFF file", 16, TDI_IMAGE_COLOURS, "no image of a known format");
    memcpy(bytes, rgb->bytes, rgb->size);
    bytes[30] = 1; /* the compression: run lengths */
    expect_refusal(bytes, rgb->size, TDI_IMAGE_COLOURS, "compressed");
    memcpy(bytes, rgb->bytes, rgb->size);
    bytes[28] = 7; /* bits a pixel */
    expect_refusal(bytes, rgb->size, TDI_IMAGE_COLOURS, "7 bits a pixel");
    memcpy(bytes, rgb->bytes, rgb->size);
    memset(bytes + 18, 0, 4); /* the width */
    expect_refusal(bytes, rgb->size, TDI_IMAGE_COLOURS, "9 x 0 pixels");
    memcpy(bytes, rgb->bytes, rgb->size);
    memset(bytes + 18, 0xFF, 3); /* a width of 16777215 */
    expect_refusal(bytes, rgb->size, TDI_IMAGE_COLOURS, "16777215 pixels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels_are_pillows),
        cmocka_unit_test(test_sizes_and_colours_are_seen),
        cmocka_unit_test(test_truncated_images_are_never_filled_up),
        cmocka_unit_test(test_label_maps_are_png_of_8_bits),
        cmocka_unit_test(test_other_bytes_are_refused_by_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
