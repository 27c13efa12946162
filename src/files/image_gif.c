/* image_gif.c - the first frame of GIF images, by giflib. */
#include <stdlib.h>

#include <gif_lib.h>

#include "files/image_format.h"

typedef struct gif_input {
    const unsigned char *bytes;
    size_t size, at;
} gif_input;

static bool gif_claims(const unsigned char *bytes, size_t size)
{
    return size >= 6 && (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0);
}

static int gif_feed(GifFileType *gif, GifByteType *to, int count)
{
    gif_input *input = gif->UserData;
    size_t left = input->size - input->at, given = (size_t)count < left ? (size_t)count : left;
    memcpy(to, input->bytes + input->at, given);
    input->at += given;
    return (int)given;
}

static td_status gif_fails(int code, tdi_error *error)
{
    const char *reason = GifErrorString(code);
    return tdi_image_damaged("GIF", reason ? reason : "it has no frame", error);
}

/* Reads an extension. One of graphics says which colour is transparent. */
static bool read_extension(GifFileType *gif, int *transparent)
{
    int kind;
    GifByteType *block;
    GraphicsControlBlock graphics;
    bool good = DGifGetExtension(gif, &kind, &block) == GIF_OK;
    if (good && block && kind == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(block[0], block + 1, &graphics) == GIF_OK)
        *transparent = graphics.TransparentColor;
    while (good && block)
        good = DGifGetExtensionNext(gif, &block) == GIF_OK;
    return good;
}

/* Reads up to the first frame's pixels. */
static td_status find_frame(GifFileType *gif, int *transparent, tdi_error *error)
{
    *transparent = NO_TRANSPARENT_COLOR;
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    while (type != IMAGE_DESC_RECORD_TYPE) {
        bool good = DGifGetRecordType(gif, &type) == GIF_OK && type != TERMINATE_RECORD_TYPE;
        if (good && type == EXTENSION_RECORD_TYPE)
            good = read_extension(gif, transparent);
        if (!good)
            return gif_fails(gif->Error, error);
    }
    return DGifGetImageDesc(gif) == GIF_OK ? TD_OK : gif_fails(gif->Error, error);
}

static td_status gif_open(gif_input *input, GifFileType **gif, int *transparent, tdi_error *error)
{
    int code = 0;
    *gif = DGifOpen(input, gif_feed, &code);
    if (!*gif)
        return code == D_GIF_ERR_NOT_ENOUGH_MEM ? tdi_no_memory(error) : gif_fails(code, error);
    td_status status = find_frame(*gif, transparent, error);
    if (status != TD_OK)
        DGifCloseFile(*gif, NULL);
    return status;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* The screen, or the frame where that reaches farther. */
static tdi_image extents_of(const GifFileType *gif)
{
    return (tdi_image){larger(gif->SHeight, gif->Image.Top + gif->Image.Height),
                       larger(gif->SWidth, gif->Image.Left + gif->Image.Width), 3};
}

static td_status gif_look(const unsigned char *bytes, size_t size, tdi_image *image, tdi_error *error)
{
    gif_input input = {bytes, size, 0};
    GifFileType *gif;
    int transparent;
    TDI_TRY(gif_open(&input, &gif, &transparent, error));
    *image = extents_of(gif);
    DGifCloseFile(gif, NULL);
    return TD_OK;
}

/* The colours of a frame's pixels. */
typedef struct gif_colours {
    const ColorMapObject *map;
    int transparent; /* an index, or NO_TRANSPARENT_COLOR */
} gif_colours;

/* Writes a line of the frame; an index that the palette does not have is black. */
static void put_line(const GifPixelType *line, int count, const gif_colours *colours, int64_t channels, uint8_t *to)
{
    for (int x = 0; x < count; x++, to += channels) {
        uint8_t rgba[4] = {0, 0, 0, line[x] == colours->transparent ? 0 : 255};
        if (line[x] < colours->map->ColorCount) {
            const GifColorType *colour = &colours->map->Colors[line[x]];
            rgba[0] = colour->Red;
            rgba[1] = colour->Green;
            rgba[2] = colour->Blue;
        }
        tdi_image_put(rgba, channels, to);
    }
}

/* Interlaced frames have every 8th line from line 0 first, then every 8th from 4, every 4th from 2, every 2nd from 1.
 */
static td_status read_lines(GifFileType *gif, int transparent, GifPixelType *line, const tdi_image *image, uint8_t *to,
                            tdi_error *error)
{
    static const int first[4] = {0, 4, 2, 1}, step[4] = {8, 8, 4, 2};
    const GifImageDesc *frame = &gif->Image;
    const gif_colours colours = {frame->ColorMap ? frame->ColorMap : gif->SColorMap, transparent};
    if (!colours.map)
        return tdi_image_damaged("GIF", "it has no palette", error);
    for (int pass = 0; pass < (frame->Interlace ? 4 : 1); pass++)
        for (int y = frame->Interlace ? first[pass] : 0; y < frame->Height; y += frame->Interlace ? step[pass] : 1) {
            if (DGifGetLine(gif, line, frame->Width) != GIF_OK)
                return gif_fails(gif->Error, error);
            put_line(line, frame->Width, &colours, image->channels,
                     to + (size_t)(((frame->Top + y) * image->width + frame->Left) * image->channels));
        }
    return TD_OK;
}

static td_status decode_frame(GifFileType *gif, int transparent, const tdi_image *image, uint8_t *to, tdi_error *error)
{
    tdi_image extents = extents_of(gif);
    if (extents.height != image->height || extents.width != image->width)
        return tdi_image_damaged("GIF", "it is not of the size it was", error);
    GifPixelType *line = malloc((size_t)gif->Image.Width + 1);
    if (!line)
        return tdi_no_memory(error);
    memset(to, 0, (size_t)(image->height * image->width * image->channels)); /* what the frame leaves free is black */
    td_status status = read_lines(gif, transparent, line, image, to, error);
    free(line);
    return status;
}

static td_status gif_decode(const unsigned char *bytes, size_t size, tdi_image_kind kind, const tdi_image *image,
                            uint8_t *to, tdi_error *error)
{
    gif_input input = {bytes, size, 0};
    GifFileType *gif;
    int transparent;
    (void)kind;
    TDI_TRY(gif_open(&input, &gif, &transparent, error));
    td_status status = decode_frame(gif, transparent, image, to, error);
    DGifCloseFile(gif, NULL);
    return status;
}

const tdi_image_format tdi_image_gif = {"GIF", gif_claims, gif_look, gif_decode};
