/* picture.c - draws to PNG and SVG files by cairo. */
#include "picture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool ends_in(const char *path, const char *ending)
{
    size_t length = strlen(path), tail = strlen(ending);
    return length >= tail && strcasecmp(path + length - tail, ending) == 0;
}

bool picture_is_named(const char *path)
{
    return ends_in(path, ".png") || ends_in(path, ".svg");
}

#ifndef TANDEM_CAIRO
int picture_check_path(const char *option, const char *path)
{
    (void)path;
    return tool_refuse("--%s: this tandem was built without cairo, and draws no files; build it with libcairo2-dev",
                       option);
}

int picture_save(const char *path, int width, int height, void (*draw)(struct _cairo *to, const void *what),
                 const void *what)
{
    (void)width;
    (void)height;
    (void)draw;
    (void)what;
    return tool_fail("%s cannot be drawn: this tandem was built without cairo", path);
}
#else
#include <cairo-svg.h>

int picture_check_path(const char *option, const char *path)
{
    if (picture_is_named(path))
        return TOOL_DONE;
    return tool_refuse("--%s: expected a name that ends in .png or .svg, got '%s'", option, path);
}

void picture_text(cairo_t *to, double x, double y, double align, const char *text)
{
    cairo_text_extents_t extents;
    cairo_text_extents(to, text, &extents);
    cairo_move_to(to, x - align * extents.x_advance, y);
    cairo_show_text(to, text);
}

static void draw_on(cairo_surface_t *on, void (*draw)(cairo_t *to, const void *what), const void *what)
{
    cairo_t *to = cairo_create(on);
    cairo_set_source_rgb(to, 1, 1, 1);
    cairo_paint(to);
    cairo_select_font_face(to, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(to, 13);
    draw(to, what);
    cairo_destroy(to);
}

/* The file that cairo writes to, and the errno of a failure. */
struct sink {
    FILE *file;
    int reason;
};

static cairo_status_t write_bytes(void *user, const unsigned char *bytes, unsigned size)
{
    struct sink *to = user;
    if (fwrite(bytes, 1, size, to->file) == size)
        return CAIRO_STATUS_SUCCESS;
    to->reason = to->reason ? to->reason : errno;
    return CAIRO_STATUS_WRITE_ERROR;
}

/* Closes the file, which may still fail. */
static cairo_status_t end_surface(cairo_surface_t *on, bool svg, struct sink *to)
{
    cairo_status_t status = svg ? CAIRO_STATUS_SUCCESS : cairo_surface_write_to_png_stream(on, write_bytes, to);
    cairo_surface_finish(on);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(on);
    cairo_surface_destroy(on);
    if (fclose(to->file) != 0 && !to->reason)
        to->reason = errno;
    return status;
}

int picture_save(const char *path, int width, int height, void (*draw)(cairo_t *to, const void *what), const void *what)
{
    char beside[4096];
    bool svg = ends_in(path, ".svg");
    if (snprintf(beside, sizeof beside, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof beside)
        return tool_fail("%s: the name is too long", path);
    struct sink to = {.file = fopen(beside, "wb")};
    if (!to.file)
        return tool_fail("cannot write %s: %s", path, strerror(errno));
    cairo_surface_t *on = svg ? cairo_svg_surface_create_for_stream(write_bytes, &to, width, height)
                              : cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    draw_on(on, draw, what);
    cairo_status_t status = end_surface(on, svg, &to);
    if (status == CAIRO_STATUS_SUCCESS && !to.reason && rename(beside, path) != 0)
        to.reason = errno;
    if (status == CAIRO_STATUS_SUCCESS && !to.reason)
        return TOOL_DONE;
    unlink(beside);
    return tool_fail("cannot write %s: %s", path, to.reason ? strerror(to.reason) : cairo_status_to_string(status));
}
#endif
