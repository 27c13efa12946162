/* chart_file.c - charts as PNG and SVG, by cairo. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chart.h"

static bool ends_in(const char *path, const char *ending)
{
    size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcasecmp(path + length - tail, ending) == 0;
}

#ifndef TANDEM_CAIRO
int chart_check_path(const char *option, const char *path)
{
    (void)path;
    return tool_refuse("--%s: this tandem was built without cairo, and draws in the terminal only; build it with "
                       "libcairo2-dev",
                       option);
}

int chart_save(const struct chart *chart, const char *path)
{
    (void)chart;
    return tool_fail("%s cannot be drawn: this tandem was built without cairo", path);
}
#else
#include <cairo-svg.h>

enum { WIDTH = 800, PANEL = 300, LEFT = 70, RIGHT = 20, TOP = 34, BOTTOM = 44, MOST_TICKS = 8 };

int chart_check_path(const char *option, const char *path)
{
    if (ends_in(path, ".png") || ends_in(path, ".svg"))
        return TOOL_DONE;
    return tool_refuse("--%s: expected a name that ends in .png or .svg, got '%s'", option, path);
}

/* Okabe and Ito's colours, told apart by nearly everyone. */
static void set_colour(cairo_t *to, int number)
{
    static const double colours[][3] = {{0, .447, .698}, {.835, .369, 0},    {0, .62, .451}, {.8, .475, .655},
                                        {.902, .624, 0}, {.337, .706, .914}, {0, 0, 0}};
    const double *c = colours[number % (int)(sizeof colours / sizeof *colours)];
    cairo_set_source_rgb(to, c[0], c[1], c[2]);
}

static void put_text(cairo_t *to, double x, double y, double align, const char *text)
{
    cairo_text_extents_t extents;
    cairo_text_extents(to, text, &extents);
    cairo_move_to(to, x - align * extents.x_advance, y);
    cairo_show_text(to, text);
}

static double across(const struct axis *x, double value)
{
    return LEFT + axis_place(x, value) * (WIDTH - LEFT - RIGHT);
}

static double down(const struct axis *y, double top, double value)
{
    return top + PANEL - BOTTOM - axis_place(y, value) * (PANEL - TOP - BOTTOM);
}

static void draw_grid(cairo_t *to, double top, const struct axis *x, const struct axis *y)
{
    double ticks[MOST_TICKS];
    char label[32];
    cairo_set_line_width(to, 1);
    for (int i = 0, count = axis_ticks(x, MOST_TICKS, ticks); i < count; i++) {
        double at = across(x, ticks[i]);
        cairo_set_source_rgb(to, .88, .88, .88);
        cairo_move_to(to, at, top + TOP);
        cairo_line_to(to, at, top + PANEL - BOTTOM);
        cairo_stroke(to);
        cairo_set_source_rgb(to, .3, .3, .3);
        snprintf(label, sizeof label, "%.4g", ticks[i]);
        put_text(to, at, top + PANEL - BOTTOM + 16, .5, label);
    }
    for (int i = 0, count = axis_ticks(y, 6, ticks); i < count; i++) {
        double at = down(y, top, ticks[i]);
        cairo_set_source_rgb(to, .88, .88, .88);
        cairo_move_to(to, LEFT, at);
        cairo_line_to(to, WIDTH - RIGHT, at);
        cairo_stroke(to);
        cairo_set_source_rgb(to, .3, .3, .3);
        snprintf(label, sizeof label, "%.4g", ticks[i]);
        put_text(to, LEFT - 8, at + 4, 1, label);
    }
}

static void draw_series(cairo_t *to, const struct series *series, double top, const struct axis *x,
                        const struct axis *y)
{
    set_colour(to, series->colour);
    cairo_set_line_width(to, 1.8);
    cairo_set_dash(to, (double[]){6, 4}, series->dashed ? 2 : 0, 0);
    cairo_new_path(to);
    for (int i = 0; i < series->count; i++) {
        double at[2] = {across(x, series->points[i][0]), down(y, top, series->points[i][1])};
        if (isnan(at[0]) || isnan(at[1]))
            cairo_new_sub_path(to);
        else
            cairo_line_to(to, at[0], at[1]);
    }
    cairo_stroke(to);
    cairo_set_dash(to, NULL, 0, 0);
    for (int i = 0; i < series->count && series->count <= 40; i++) {
        cairo_arc(to, across(x, series->points[i][0]), down(y, top, series->points[i][1]), 2.2, 0, 2 * M_PI);
        cairo_fill(to);
    }
}

/* Names beside a piece of their line, from the right, above the panel. */
static void draw_legend(cairo_t *to, const struct chart *chart, int panel, double top)
{
    double right = WIDTH - RIGHT;
    for (int i = chart->n_series - 1; i >= 0; i--) {
        const struct series *series = &chart->series[i];
        cairo_text_extents_t extents;
        if (series->panel != panel)
            continue;
        cairo_text_extents(to, series->name, &extents);
        cairo_set_source_rgb(to, .1, .1, .1);
        put_text(to, right, top + 22, 1, series->name);
        right -= extents.x_advance + 6;
        set_colour(to, series->colour);
        cairo_set_line_width(to, 1.8);
        cairo_set_dash(to, (double[]){6, 4}, series->dashed ? 2 : 0, 0);
        cairo_move_to(to, right - 24, top + 18);
        cairo_line_to(to, right, top + 18);
        cairo_stroke(to);
        cairo_set_dash(to, NULL, 0, 0);
        right -= 40;
    }
}

static void draw_panel(cairo_t *to, const struct chart *chart, int panel)
{
    struct axis x, y;
    double top = panel * PANEL;
    cairo_set_source_rgb(to, .1, .1, .1);
    put_text(to, LEFT, top + 22, 0, chart->panels[panel]);
    if (!chart_axes(chart, panel, &x, &y))
        return;
    put_text(to, LEFT + (WIDTH - LEFT - RIGHT) / 2.0, top + PANEL - 8, .5, chart->x_label);
    draw_grid(to, top, &x, &y);
    for (int i = 0; i < chart->n_series; i++)
        if (chart->series[i].panel == panel)
            draw_series(to, &chart->series[i], top, &x, &y);
    draw_legend(to, chart, panel, top);
}

static void draw(cairo_surface_t *on, const struct chart *chart)
{
    cairo_t *to = cairo_create(on);
    cairo_set_source_rgb(to, 1, 1, 1);
    cairo_paint(to);
    cairo_select_font_face(to, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(to, 13);
    for (int p = 0; p < chart->n_panels; p++)
        draw_panel(to, chart, p);
    cairo_destroy(to);
}

/* A file that cairo writes to, and why it could not. */
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

static cairo_status_t write_chart(const struct chart *chart, bool svg, struct sink *to)
{
    int height = chart->n_panels * PANEL;
    cairo_surface_t *on = svg ? cairo_svg_surface_create_for_stream(write_bytes, to, WIDTH, height)
                              : cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDTH, height);
    draw(on, chart);
    cairo_status_t status = svg ? CAIRO_STATUS_SUCCESS : cairo_surface_write_to_png_stream(on, write_bytes, to);
    cairo_surface_finish(on);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(on);
    cairo_surface_destroy(on);
    return status;
}

/* What was written is on its way only once the file is closed. */
static cairo_status_t write_file(const struct chart *chart, bool svg, struct sink *to)
{
    cairo_status_t status = write_chart(chart, svg, to);
    if (fclose(to->file) != 0 && !to->reason)
        to->reason = errno;
    return status;
}

int chart_save(const struct chart *chart, const char *path)
{
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof beside)
        return tool_fail("%s: the name is too long", path);
    struct sink to = {.file = fopen(beside, "wb")};
    if (!to.file)
        return tool_fail("cannot write %s: %s", path, strerror(errno));
    cairo_status_t status = write_file(chart, ends_in(path, ".svg"), &to);
    if (status == CAIRO_STATUS_SUCCESS && !to.reason && rename(beside, path) != 0)
        to.reason = errno;
    if (status == CAIRO_STATUS_SUCCESS && !to.reason)
        return TOOL_DONE;
    unlink(beside);
    return tool_fail("cannot write %s: %s", path, to.reason ? strerror(to.reason) : cairo_status_to_string(status));
}
#endif
