/* image_jpeg.c - JPEG images by libjpeg(-turbo), which reports failures by longjmp. That never leaves this file. A
 * function that calls setjmp changes no variable of its own after that. */
#include <setjmp.h>
#include <stdio.h>

#include <jerror.h>
#include <jpeglib.h>

#include "files/image_format.h"

typedef struct jpeg_failure {
    struct jpeg_error_mgr manager;
    jmp_buf back;
    char reason[JMSG_LENGTH_MAX];
} jpeg_failure;

static bool jpeg_claims(const unsigned char *bytes, size_t size)
{
    return size >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

static void jpeg_fails(j_common_ptr codec)
{
    jpeg_failure *failure = (jpeg_failure *)codec->err;
    codec->err->format_message(codec, failure->reason);
    longjmp(failure->back, 1);
}

/* True for warnings that leave all pixels as they were written: bytes that belong to nothing, which many cameras leave
 * behind, and headers of versions to come. */
static bool is_harmless(int message)
{
    return message == JWRN_EXTRANEOUS_DATA || message == JWRN_JFIF_MAJOR || message == JWRN_ADOBE_XFORM;
}

/* libjpeg only warns of truncated data and invents the rest, so such warnings become failures. */
static void jpeg_warns(j_common_ptr codec, int level)
{
    if (level < 0 && !is_harmless(codec->err->msg_code))
        jpeg_fails(codec);
}

static void jpeg_begin(struct jpeg_decompress_struct *codec, jpeg_failure *failure)
{
    codec->err = jpeg_std_error(&failure->manager);
    failure->manager.error_exit = jpeg_fails;
    failure->manager.emit_message = jpeg_warns;
}

static td_status jpeg_look(const unsigned char *bytes, size_t size, tdi_image *image, tdi_error *error)
{
    struct jpeg_decompress_struct codec = {0};
    jpeg_failure failure;
    jpeg_begin(&codec, &failure);
    if (setjmp(failure.back)) {
        jpeg_destroy_decompress(&codec);
        return tdi_image_damaged("JPEG", failure.reason, error);
    }
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, bytes, (unsigned long)size);
    jpeg_read_header(&codec, TRUE);
    *image = (tdi_image){codec.image_height, codec.image_width, codec.num_components == 1 ? 1 : 3};
    jpeg_destroy_decompress(&codec);
    return TD_OK;
}

static J_COLOR_SPACE colours_of(const struct jpeg_decompress_struct *codec, int64_t channels)
{
    if (codec->num_components == 4)
        return JCS_CMYK;
    return channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
}

/* Ink to light, as in TensorFlow's decoder. Adobe's files hold the complements of the inks. */
static void light_of(const uint8_t ink[4], bool complements, uint8_t rgba[4])
{
    int black = complements ? ink[3] : 255 - ink[3];
    for (int i = 0; i < 3; i++)
        rgba[i] = (uint8_t)(black * (complements ? ink[i] : 255 - ink[i]) / 255);
    rgba[3] = 255;
}

static void convert_row(const struct jpeg_decompress_struct *codec, const uint8_t *row, int64_t channels, uint8_t *to)
{
    for (JDIMENSION x = 0; x < codec->output_width; x++, to += channels, row += codec->output_components) {
        uint8_t rgba[4] = {row[0], row[1], row[2], 255};
        if (codec->out_color_space == JCS_CMYK)
            light_of(row, codec->saw_Adobe_marker, rgba);
        tdi_image_put(rgba, channels, to);
    }
}

static void jpeg_rows(struct jpeg_decompress_struct *codec, int64_t channels, uint8_t *to)
{
    size_t stride = (size_t)codec->output_width * (size_t)channels;
    bool direct = codec->output_components == channels && codec->out_color_space != JCS_CMYK;
    JSAMPARRAY own = codec->mem->alloc_sarray((j_common_ptr)codec, JPOOL_IMAGE,
                                              codec->output_width * (JDIMENSION)codec->output_components, 1);
    while (codec->output_scanline < codec->output_height) {
        uint8_t *at = to + codec->output_scanline * stride;
        JSAMPROW row = direct ? at : own[0];
        jpeg_read_scanlines(codec, &row, 1);
        if (!direct)
            convert_row(codec, row, channels, at);
    }
}

static td_status jpeg_decode(const unsigned char *bytes, size_t size, tdi_image_kind kind, const tdi_image *image,
                             uint8_t *to, tdi_error *error)
{
    struct jpeg_decompress_struct codec = {0};
    jpeg_failure failure;
    (void)kind;
    jpeg_begin(&codec, &failure);
    if (setjmp(failure.back)) {
        jpeg_destroy_decompress(&codec);
        return tdi_image_damaged("JPEG", failure.reason, error);
    }
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, bytes, (unsigned long)size);
    jpeg_read_header(&codec, TRUE);
    codec.out_color_space = colours_of(&codec, image->channels);
    jpeg_start_decompress(&codec);
    bool fits = codec.output_height == image->height && codec.output_width == image->width;
    if (fits) {
        jpeg_rows(&codec, image->channels, to);
        jpeg_finish_decompress(&codec);
    }
    jpeg_destroy_decompress(&codec);
    return fits ? TD_OK : tdi_image_damaged("JPEG", "it is not of the size it was", error);
}

const tdi_image_format tdi_image_jpeg = {"JPEG", jpeg_claims, jpeg_look, jpeg_decode};
