/* image_codec.c - JPEG by libjpeg(-turbo), PNG by libpng. Both report failures by longjmp, which never leaves this
 * file. A function that calls setjmp changes no variable of its own after that. */
#include "files/image_codec.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#define MAX_EXTENT 65500 /* libjpeg's limit */

/* ---- JPEG ---- */

typedef struct jpeg_failure {
    struct jpeg_error_mgr manager;
    jmp_buf back;
    char reason[JMSG_LENGTH_MAX];
} jpeg_failure;

static void jpeg_fails(j_common_ptr codec)
{
    jpeg_failure *failure = (jpeg_failure *)codec->err;
    codec->err->format_message(codec, failure->reason);
    longjmp(failure->back, 1);
}

/* libjpeg only warns of truncated data and invents the rest, so warnings become failures. */
static void jpeg_warns(j_common_ptr codec, int level)
{
    if (level < 0)
        jpeg_fails(codec);
}

static void jpeg_begin(struct jpeg_decompress_struct *codec, jpeg_failure *failure)
{
    codec->err = jpeg_std_error(&failure->manager);
    failure->manager.error_exit = jpeg_fails;
    failure->manager.emit_message = jpeg_warns;
}

static td_status jpeg_look(const void *bytes, size_t size, tdi_image *image, tdi_error *error)
{
    struct jpeg_decompress_struct codec = {0};
    jpeg_failure failure;
    jpeg_begin(&codec, &failure);
    if (setjmp(failure.back)) {
        jpeg_destroy_decompress(&codec);
        return tdi_fail(error, TD_BAD_FILE, "the JPEG image is damaged or cut short (%s)", failure.reason);
    }
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, bytes, (unsigned long)size);
    jpeg_read_header(&codec, TRUE);
    bool cmyk = codec.num_components == 4;
    *image = (tdi_image){codec.image_height, codec.image_width, codec.num_components == 1 ? 1 : 3};
    jpeg_destroy_decompress(&codec);
    return cmyk ? tdi_fail(error, TD_BAD_FILE, "the JPEG image is in CMYK, the colours of print: save it as RGB")
                : TD_OK;
}

static void jpeg_rows(struct jpeg_decompress_struct *codec, uint8_t *to)
{
    size_t stride = (size_t)codec->output_width * (size_t)codec->output_components;
    while (codec->output_scanline < codec->output_height) {
        JSAMPROW row = to + codec->output_scanline * stride;
        jpeg_read_scanlines(codec, &row, 1);
    }
}

static td_status jpeg_decode(const void *bytes, size_t size, const tdi_image *image, uint8_t *to, tdi_error *error)
{
    struct jpeg_decompress_struct codec = {0};
    jpeg_failure failure;
    jpeg_begin(&codec, &failure);
    if (setjmp(failure.back)) {
        jpeg_destroy_decompress(&codec);
        return tdi_fail(error, TD_BAD_FILE, "the JPEG image is damaged or cut short (%s)", failure.reason);
    }
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, bytes, (unsigned long)size);
    jpeg_read_header(&codec, TRUE);
    codec.out_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&codec);
    bool fits = codec.output_height == image->height && codec.output_width == image->width &&
                codec.output_components == image->channels;
    if (fits) {
        jpeg_rows(&codec, to);
        jpeg_finish_decompress(&codec);
    }
    jpeg_destroy_decompress(&codec);
    return fits ? TD_OK : tdi_fail(error, TD_BAD_FILE, "the JPEG image is not of the size it was");
}

/* ---- PNG ---- */

typedef struct png_input {
    const unsigned char *bytes;
    size_t size, at;
    char reason[128];
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
    png_set_user_limits(codec->png, MAX_EXTENT, MAX_EXTENT);
    return TD_OK;
}

static td_status png_end(png_codec *codec, const png_input *input, bool good, tdi_error *error)
{
    png_destroy_read_struct(&codec->png, &codec->info, NULL);
    return good ? TD_OK : tdi_fail(error, TD_BAD_FILE, "the PNG image is damaged or cut short (%s)", input->reason);
}

static td_status png_look(const void *bytes, size_t size, tdi_image_kind kind, tdi_image *image, tdi_error *error)
{
    png_input input = {.bytes = bytes, .size = size};
    png_codec codec;
    TDI_TRY(png_begin(&codec, &input, error));
    if (setjmp(png_jmpbuf(codec.png)))
        return png_end(&codec, &input, false, error);
    png_read_info(codec.png, codec.info);
    bool coloured = png_get_color_type(codec.png, codec.info) & PNG_COLOR_MASK_COLOR;
    *image = (tdi_image){png_get_image_height(codec.png, codec.info), png_get_image_width(codec.png, codec.info),
                         coloured && kind == TDI_IMAGE_COLOURS ? 3 : 1};
    return png_end(&codec, &input, true, error);
}

/* Tells libpng how to convert rows: to bytes of one channel or three, or not at all for labels. */
static void png_convert(const png_codec *codec, tdi_image_kind kind, int64_t channels)
{
    int type = png_get_color_type(codec->png, codec->info);
    bool coloured = type & PNG_COLOR_MASK_COLOR;
    png_set_scale_16(codec->png);
    png_set_interlace_handling(codec->png);
    if (kind == TDI_IMAGE_LABELS) {
        png_set_packing(codec->png);
        if (type == PNG_COLOR_TYPE_RGB || type == PNG_COLOR_TYPE_RGB_ALPHA)
            png_error(codec->png, "a label map has one number a pixel, not colours");
        if (type == PNG_COLOR_TYPE_GRAY_ALPHA)
            png_set_strip_alpha(codec->png);
        return;
    }
    png_set_expand(codec->png);
    png_set_strip_alpha(codec->png);
    if (channels == 3 && !coloured)
        png_set_gray_to_rgb(codec->png);
    if (channels == 1 && coloured)
        png_set_rgb_to_gray(codec->png, PNG_ERROR_ACTION_NONE, PNG_RGB_TO_GRAY_DEFAULT, PNG_RGB_TO_GRAY_DEFAULT);
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

static td_status png_decode(const void *bytes, size_t size, tdi_image_kind kind, const tdi_image *image, uint8_t *to,
                            tdi_error *error)
{
    png_input input = {.bytes = bytes, .size = size};
    png_codec codec;
    TDI_TRY(png_begin(&codec, &input, error));
    if (setjmp(png_jmpbuf(codec.png)))
        return png_end(&codec, &input, false, error);
    png_read_info(codec.png, codec.info);
    png_convert(&codec, kind, image->channels);
    png_read_update_info(codec.png, codec.info);
    png_rows(&codec, image, to);
    return png_end(&codec, &input, true, error);
}

/* ---- either ---- */

static bool is_jpeg(const unsigned char *bytes, size_t size)
{
    return size >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

static bool is_png(const unsigned char *bytes, size_t size)
{
    return size >= 8 && png_sig_cmp(bytes, 0, 8) == 0;
}

static td_status neither(tdi_error *error)
{
    return tdi_fail(error, TD_BAD_FILE, "it is neither a JPEG nor a PNG image");
}

td_status tdi_image_look(const void *bytes, size_t size, tdi_image_kind kind, tdi_image *image, tdi_error *error)
{
    if (is_png(bytes, size))
        return png_look(bytes, size, kind, image, error);
    return is_jpeg(bytes, size) ? jpeg_look(bytes, size, image, error) : neither(error);
}

td_status tdi_image_decode(const void *bytes, size_t size, tdi_image_kind kind, const tdi_image *image, uint8_t *to,
                           tdi_error *error)
{
    if (is_png(bytes, size))
        return png_decode(bytes, size, kind, image, to, error);
    return is_jpeg(bytes, size) ? jpeg_decode(bytes, size, image, to, error) : neither(error);
}

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
