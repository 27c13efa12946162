/* image_bmp.c - BMP images: no library of Debian reads them and tells a truncated one from a whole one.
 *
 * A file is a header of 14 bytes with the offset of the pixels, a second header that begins with its own size (12 bytes
 * from OS/2, 40 to 124 from Windows), masks for colours or a palette, and rows of pixels, the bottom one first unless
 * the height is negative, each padded to 4 bytes. All numbers are little-endian. What is compressed is refused. */
#include <stdlib.h>

#include "files/image_format.h"

enum { FILE_HEADER = 14, RGB = 0, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };

typedef struct bmp {
    int64_t height, width; /* height: of the image */
    bool top_down;
    uint32_t bits, compression;
    size_t header, pixels;        /* size of the second header; offset of the pixels */
    size_t stride;                /* bytes from row to row */
    const unsigned char *palette; /* entries of blue, green, red, and a fourth byte unless the header has 12 bytes */
    size_t colours, entry;        /* how many, and bytes of each */
    uint32_t mask[4];             /* of red, green, blue, opacity, for 16 and 32 bits; 0: not there */
} bmp;

static uint32_t number(const unsigned char *at, int bytes)
{
    uint32_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static bool bmp_claims(const unsigned char *bytes, size_t size)
{
    if (size < FILE_HEADER + 12 || bytes[0] != 'B' || bytes[1] != 'M')
        return false;
    uint32_t header = number(bytes + FILE_HEADER, 4);
    return header == 12 || (header >= 40 && header <= 124);
}

static void read_extents(const unsigned char *at, bmp *image)
{
    bool small = image->header == 12;
    int32_t height = small ? (int32_t)number(at + 6, 2) : (int32_t)number(at + 8, 4);
    image->width = small ? (int64_t)number(at + 4, 2) : (int32_t)number(at + 4, 4);
    image->top_down = height < 0;
    image->height = height < 0 ? -(int64_t)height : height;
    image->bits = number(at + (small ? 10 : 14), 2);
    image->compression = small ? RGB : number(at + 16, 4);
}

/* Sets the masks. They stand in the header, or behind one of 40 bytes. */
static void read_masks(const unsigned char *at, size_t left, bmp *image)
{
    static const uint32_t of_16[4] = {0x7C00, 0x3E0, 0x1F}, of_32[4] = {0xFF0000, 0xFF00, 0xFF};
    memcpy(image->mask, image->bits == 16 ? of_16 : of_32, sizeof image->mask);
    if (image->compression == RGB)
        return;
    bool opacity = image->header >= 56 || image->compression == ALPHA_BITFIELDS;
    for (size_t i = 0; i < (opacity ? 4 : 3) && 44 + 4 * i <= left; i++)
        image->mask[i] = number(at + 40 + 4 * i, 4);
}

static void read_palette(const unsigned char *bytes, bmp *image)
{
    size_t begin = FILE_HEADER + image->header, used = 0;
    image->entry = image->header == 12 ? 3 : 4;
    if (image->header >= 40)
        used = number(bytes + FILE_HEADER + 32, 4);
    size_t most = (size_t)1 << image->bits,
           fitting = image->pixels > begin ? (image->pixels - begin) / image->entry : 0;
    image->colours = used && used < most ? used : most;
    image->colours = image->colours < fitting ? image->colours : fitting;
    image->palette = bytes + begin;
}

static td_status check_form(const bmp *image, tdi_error *error)
{
    uint32_t bits = image->bits;
    bool masks = image->compression == BITFIELDS || image->compression == ALPHA_BITFIELDS;
    if (image->compression != RGB && !masks)
        return tdi_fail(error, TD_BAD_FILE, "the BMP image is compressed; save it without compression, or as PNG");
    bool known = bits == 16 || bits == 32 || (!masks && (bits == 1 || bits == 4 || bits == 8 || bits == 24));
    return known ? TD_OK
                 : tdi_fail(error, TD_BAD_FILE,
                            "the BMP image has %u bits a pixel; 1, 4, 8, 16, 24 or 32 were expected", bits);
}

/* Are all pixels there? The padding of the last row may be missing. */
static td_status check_size(const bmp *image, size_t size, tdi_error *error)
{
    TDI_TRY(tdi_image_check_extents("BMP", image->height, image->width, error));
    uint64_t row = ((uint64_t)image->width * image->bits + 7) / 8;
    bool whole = image->pixels <= size && (uint64_t)(image->height - 1) * image->stride + row <= size - image->pixels;
    return whole ? TD_OK : tdi_image_damaged("BMP", "it ends too early", error);
}

static td_status bmp_open(const unsigned char *bytes, size_t size, bmp *image, tdi_error *error)
{
    *image = (bmp){.header = number(bytes + FILE_HEADER, 4), .pixels = number(bytes + 10, 4)};
    if (size - FILE_HEADER < image->header)
        return tdi_image_damaged("BMP", "it ends too early", error);
    read_extents(bytes + FILE_HEADER, image);
    TDI_TRY(check_form(image, error));
    image->stride = ((size_t)(image->width > 0 ? image->width : 0) * image->bits + 31) / 32 * 4;
    TDI_TRY(check_size(image, size, error));
    if (image->bits <= 8)
        read_palette(bytes, image);
    else
        read_masks(bytes + FILE_HEADER, size - FILE_HEADER, image);
    return TD_OK;
}

static bool has_colours(const bmp *image)
{
    bool grey = image->bits <= 8;
    for (size_t i = 0; i < image->colours && grey; i++) {
        const unsigned char *entry = image->palette + i * image->entry;
        grey = entry[0] == entry[1] && entry[1] == entry[2];
    }
    return !grey;
}

static td_status bmp_look(const unsigned char *bytes, size_t size, tdi_image *image, tdi_error *error)
{
    bmp facts;
    TDI_TRY(bmp_open(bytes, size, &facts, error));
    *image = (tdi_image){facts.height, facts.width, has_colours(&facts) ? 3 : 1};
    return TD_OK;
}

/* A colour of the palette; one that it does not have is black. */
static void indexed_pixel(const bmp *image, const unsigned char *row, int64_t x, uint8_t rgba[4])
{
    size_t bit = (size_t)x * image->bits;
    size_t index = row[bit / 8] >> (8 - image->bits - bit % 8) & ((1u << image->bits) - 1);
    const unsigned char *entry = image->palette + index * image->entry;
    for (int i = 0; i < 3; i++)
        rgba[i] = index < image->colours ? entry[2 - i] : 0;
}

/* The bits under a mask, scaled to a byte. */
static uint8_t masked(uint32_t value, uint32_t mask)
{
    uint32_t lowest = mask & -mask;
    return mask ? (uint8_t)((uint64_t)((value & mask) / lowest) * 255 / (mask / lowest)) : 255;
}

static void masked_pixel(const bmp *image, const unsigned char *row, int64_t x, uint8_t rgba[4])
{
    uint32_t bytes = image->bits / 8, value = number(row + (size_t)x * bytes, (int)bytes);
    for (int i = 0; i < 4; i++)
        rgba[i] = masked(value, image->mask[i]);
}

static void bmp_row(const bmp *image, const unsigned char *row, int64_t channels, uint8_t *to)
{
    for (int64_t x = 0; x < image->width; x++, to += channels) {
        uint8_t rgba[4] = {0, 0, 0, 255};
        if (image->bits <= 8)
            indexed_pixel(image, row, x, rgba);
        else
            masked_pixel(image, row, x, rgba);
        tdi_image_put(rgba, channels, to);
    }
}

static td_status bmp_decode(const unsigned char *bytes, size_t size, tdi_image_kind kind, const tdi_image *image,
                            uint8_t *to, tdi_error *error)
{
    bmp facts;
    (void)kind;
    TDI_TRY(bmp_open(bytes, size, &facts, error));
    if (facts.height != image->height || facts.width != image->width)
        return tdi_image_damaged("BMP", "it is not of the size it was", error);
    for (int64_t y = 0; y < facts.height; y++) {
        int64_t stored = facts.top_down ? y : facts.height - 1 - y;
        bmp_row(&facts, bytes + facts.pixels + (size_t)stored * facts.stride, image->channels,
                to + (size_t)(y * facts.width * image->channels));
    }
    return TD_OK;
}

const tdi_image_format tdi_image_bmp = {"BMP", bmp_claims, bmp_look, bmp_decode};
