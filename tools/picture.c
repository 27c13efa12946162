/* picture.c - drawing to PNG and SVG files, by cairo. */
#include "picture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool ends_in(const char *path, const char *ending)
{
    size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcasecmp(path + length - tail, ending) == 0;
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

static cairo_status_t end_surface(cairo_surface_t *on, bool svg, const char *path)
{
    cairo_status_t status = svg ? CAIRO_STATUS_SUCCESS : cairo_surface_write_to_png(on, path);
    cairo_surface_finish(on);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(on);
    cairo_surface_destroy(on);
    return status;
}

int picture_save(const char *path, int width, int height, void (*draw)(cairo_t *to, const void *what), const void *what)
{
    char beside[4096];
    bool svg = ends_in(path, ".svg");
    if (snprintf(beside, sizeof beside, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof beside)
        return tool_fail("%s: the name is too long", path);
    cairo_surface_t *on = svg ? cairo_svg_surface_create(beside, width, height)
                              : cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    draw_on(on, draw, what);
    cairo_status_t status = end_surface(on, svg, beside);
    if (status == CAIRO_STATUS_SUCCESS && rename(beside, path) == 0)
        return TOOL_DONE;
    int reason = errno;
    unlink(beside);
    return tool_fail("cannot write %s: %s", path,
                     status == CAIRO_STATUS_SUCCESS ? strerror(reason) : cairo_status_to_string(status));
}
#endif
