/* fuzz_image.c - any bytes as an image of each format, decoded to 1, 3 and 4 channels and as a label map: read or
 * refused, never a crash. */
#include <stdlib.h>

#include "files/image_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MOST = 1 << 20 };

static void decode(const void *bytes, size_t size, tdi_image_kind kind, tdi_image image, int64_t channels)
{
    tdi_error error = {0};
    image.channels = channels;
    uint8_t *pixels = malloc((size_t)(image.height * image.width * channels));
    if (pixels)
        tdi_image_decode(bytes, size, kind, &image, pixels, &error);
    free(pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tdi_image image;
    tdi_error error = {0};
    if (tdi_image_look(bytes, size, TDI_IMAGE_COLOURS, &image, &error) == TD_OK && image.height * image.width <= MOST) {
        decode(bytes, size, TDI_IMAGE_COLOURS, image, 1);
        decode(bytes, size, TDI_IMAGE_COLOURS, image, 3);
        decode(bytes, size, TDI_IMAGE_COLOURS, image, 4);
    }
    error = (tdi_error){0};
    if (tdi_image_look(bytes, size, TDI_IMAGE_LABELS, &image, &error) == TD_OK && image.height * image.width <= MOST)
        decode(bytes, size, TDI_IMAGE_LABELS, image, 1);
    return 0;
}
