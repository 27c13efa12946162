/* image_webp.c - WebP images, by libwebp. */
#include <stdlib.h>

#include <webp/decode.h>

#include "files/image_format.h"

static bool webp_claims(const unsigned char *bytes, size_t size)
{
    return size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

static td_status webp_look(const unsigned char *bytes, size_t size, tdi_image *image, tdi_error *error)
{
    WebPBitstreamFeatures features;
    if (WebPGetFeatures(bytes, size, &features) != VP8_STATUS_OK)
        return tdi_image_damaged("WebP", "its header cannot be read", error);
    *image = (tdi_image){features.height, features.width, 3};
    return features.has_animation
               ? tdi_fail(error, TD_BAD_FILE, "the WebP image is animated; save one of its frames, as WebP or PNG")
               : TD_OK;
}

static td_status to_grey(const unsigned char *bytes, size_t size, const tdi_image *image, uint8_t *to, tdi_error *error)
{
    size_t pixels = (size_t)(image->height * image->width);
    uint8_t *colours = malloc(4 * pixels);
    if (!colours)
        return tdi_no_memory(error);
    bool good = WebPDecodeRGBAInto(bytes, size, colours, 4 * pixels, (int)(4 * image->width)) != NULL;
    for (size_t i = 0; i < pixels && good; i++)
        tdi_image_put(colours + 4 * i, 1, to + i);
    free(colours);
    return good ? TD_OK : tdi_image_damaged("WebP", "its pixels cannot be decoded", error);
}

static td_status webp_decode(const unsigned char *bytes, size_t size, tdi_image_kind kind, const tdi_image *image,
                             uint8_t *to, tdi_error *error)
{
    tdi_image seen = {0};
    (void)kind;
    TDI_TRY(webp_look(bytes, size, &seen, error));
    if (seen.height != image->height || seen.width != image->width)
        return tdi_image_damaged("WebP", "it is not of the size it was", error);
    if (image->channels == 1)
        return to_grey(bytes, size, image, to, error);
    size_t stride = (size_t)(image->width * image->channels), all = stride * (size_t)image->height;
    const uint8_t *good = image->channels == 4 ? WebPDecodeRGBAInto(bytes, size, to, all, (int)stride)
                                               : WebPDecodeRGBInto(bytes, size, to, all, (int)stride);
    return good ? TD_OK : tdi_image_damaged("WebP", "its pixels cannot be decoded", error);
}

const tdi_image_format tdi_image_webp = {"WebP", webp_claims, webp_look, webp_decode};
