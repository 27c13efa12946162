/* image_png.c - PNG images by libpng, which reports failures by longjmp. That never leaves this file. A function that
 * calls setjmp changes no variable of its own after that. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <png.h>

#include "files/image_format.h"

/* ---- reading ---- */

static bool png_claims(const unsigned char *bytes, size_t size)
{
    return size >= 8 && png_sig_cmp(bytes, 0, 8) == 0;
}

typedef struct png_input {
    const unsigned char *bytes;
    size_t size, at;
    char reason[128];
    bool unfit; /* the reason is not damage */
} png_input;

typedef struct png_codec {
    png_structp png;
    png_infop info;
} png_codec;

static void png_fails(png_structp png, png_const_charp reason)
{
    png_input *input = png_get_error_ptr(png);
    snprintf(input->reason, sizeof input->reason, "%s", reason);
    longjmp(png_jmpbuf(png), 1);
}

static void png_warns(png_structp png, png_const_charp reason)
{
    (void)png;
    (void)reason;
}

static void png_feed(png_structp png, png_bytep to, size_t count)
{
    png_input *input = png_get_io_ptr(png);
    if (count > input->size - input->at)
        png_error(png, "it ends too early");
    memcpy(to, input->bytes + input->at, count);
    input->at += count;
}

static td_status png_begin(png_codec *codec, png_input *input, tdi_error *error)
{
    codec->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, input, png_fails, png_warns);
    codec->info = codec->png ? png_create_info_struct(codec->png) : NULL;
    if (!codec->info) {
        png_destroy_read_struct(&codec->png, NULL, NULL);
        return tdi_no_memory(error);
    }
    png_set_read_fn(codec->png, input, png_feed);
    png_set_user_limits(codec->png, TDI_IMAGE_MAX_EXTENT, TDI_IMAGE_MAX_EXTENT);
    return TD_OK;
}

static td_status png_end(png_codec *codec, const png_input *input, bool good, tdi_error *error)
{
    png_destroy_read_struct(&codec->png, &codec->info, NULL);
    if (input->unfit)
        return tdi_fail(error, TD_BAD_FILE, "%s", input->reason);
    return good ? TD_OK : tdi_image_damaged("PNG", input->reason, error);
}

static td_status png_look(const unsigned char *bytes, size_t size, tdi_image *image, tdi_error *error)
{
    png_input input = {.bytes = bytes, .size = size};
    png_codec codec;
    TDI_TRY(png_begin(&codec, &input, error));
    if (setjmp(png_jmpbuf(codec.png)))
        return png_end(&codec, &input, false, error);
    png_read_info(codec.png, codec.info);
    bool coloured = png_get_color_type(codec.png, codec.info) & PNG_COLOR_MASK_COLOR;
    *image = (tdi_image){png_get_image_height(codec.png, codec.info), png_get_image_width(codec.png, codec.info),
                         coloured ? 3 : 1};
    return png_end(&codec, &input, true, error);
}

/* Class numbers stay as they are stored: grey values, or indices of a palette. */
static void png_keep(const png_codec *codec, int type)
{
    png_input *input = png_get_error_ptr(codec->png);
    bool colours = type == PNG_COLOR_TYPE_RGB || type == PNG_COLOR_TYPE_RGB_ALPHA;
    input->unfit = colours || png_get_bit_depth(codec->png, codec->info) == 16;
    if (input->unfit)
        png_error(codec->png, colours ? "a label map has a class number for each pixel, and this PNG image has colours"
                                      : "a label map has 8 bits a pixel, and this PNG image has 16");
    png_set_packing(codec->png);
    if (type == PNG_COLOR_TYPE_GRAY_ALPHA)
        png_set_strip_alpha(codec->png);
}

/* Colours become bytes of 1, 3 or 4 channels, by the calls of TensorFlow's decoder: of 16 bits the upper 8 are kept,
 * and grey is 0.299 red + 0.587 green + 0.114 blue. */
static void png_convert(const png_codec *codec, int type, int64_t channels)
{
    png_set_strip_16(codec->png);
    png_set_expand(codec->png);
    if (channels == 4)
        png_set_add_alpha(codec->png, 255, PNG_FILLER_AFTER);
    else
        png_set_strip_alpha(codec->png);
    if (channels != 1 && !(type & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(codec->png);
    if (channels == 1 && (type & PNG_COLOR_MASK_COLOR))
        png_set_rgb_to_gray(codec->png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
}

static void png_rows(const png_codec *codec, const tdi_image *image, uint8_t *to)
{
    size_t stride = (size_t)(image->width * image->channels);
    if (png_get_image_height(codec->png, codec->info) != image->height ||
        png_get_rowbytes(codec->png, codec->info) != stride)
        png_error(codec->png, "it is not of the size it was");
    int passes =
        png_get_interlace_type(codec->png, codec->info) == PNG_INTERLACE_ADAM7 ? PNG_INTERLACE_ADAM7_PASSES : 1;
    for (int pass = 0; pass < passes; pass++)
        for (int64_t row = 0; row < image->height; row++)
            png_read_row(codec->png, to + (size_t)row * stride, NULL);
    png_read_end(codec->png, NULL);
}

static td_status png_decode(const unsigned char *bytes, size_t size, tdi_image_kind kind, const tdi_image *image,
                            uint8_t *to, tdi_error *error)
{
    png_input input = {.bytes = bytes, .size = size};
    png_codec codec;
    TDI_TRY(png_begin(&codec, &input, error));
    if (setjmp(png_jmpbuf(codec.png)))
        return png_end(&codec, &input, false, error);
    png_read_info(codec.png, codec.info);
    png_set_interlace_handling(codec.png);
    if (kind == TDI_IMAGE_LABELS)
        png_keep(&codec, png_get_color_type(codec.png, codec.info));
    else
        png_convert(&codec, png_get_color_type(codec.png, codec.info), image->channels);
    png_read_update_info(codec.png, codec.info);
    png_rows(&codec, image, to);
    return png_end(&codec, &input, true, error);
}

const tdi_image_format tdi_image_png = {"PNG", png_claims, png_look, png_decode};

/* ---- writing ---- */

td_status tdi_png_encode(const tdi_image *image, const uint8_t *pixels, void **bytes, size_t *size, tdi_error *error)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)image->width,
                     .height = (png_uint_32)image->height,
                     .format = image->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(png);
    *bytes = malloc(room);
    if (!*bytes)
        return tdi_no_memory(error);
    if (!png_image_write_to_memory(&png, *bytes, &room, 0, pixels, 0, NULL)) {
        free(*bytes);
        *bytes = NULL;
        return tdi_fail(error, TD_INTERNAL, "a PNG image cannot be made: %s", png.message);
    }
    *size = room;
    return TD_OK;
}
