/* chart_file.c - draws charts to picture files. */
#include <math.h>
#include <stdio.h>

#include "chart.h"
#include "picture.h"

#ifdef TANDEM_CAIRO
#include <cairo.h>

enum { WIDTH = 800, PANEL = 300, LEFT = 70, RIGHT = 20, TOP = 34, BOTTOM = 44, MOST_TICKS = 8 };

/* The colours of Okabe and Ito, which nearly everyone can tell apart. */
static void set_colour(cairo_t *to, int number)
{
    static const double colours[][3] = {{0, .447, .698}, {.835, .369, 0},    {0, .62, .451}, {.8, .475, .655},
                                        {.902, .624, 0}, {.337, .706, .914}, {0, 0, 0}};
    const double *c = colours[number % (int)(sizeof colours / sizeof *colours)];
    cairo_set_source_rgb(to, c[0], c[1], c[2]);
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
        picture_text(to, at, top + PANEL - BOTTOM + 16, .5, label);
    }
    for (int i = 0, count = axis_ticks(y, 6, ticks); i < count; i++) {
        double at = down(y, top, ticks[i]);
        cairo_set_source_rgb(to, .88, .88, .88);
        cairo_move_to(to, LEFT, at);
        cairo_line_to(to, WIDTH - RIGHT, at);
        cairo_stroke(to);
        cairo_set_source_rgb(to, .3, .3, .3);
        snprintf(label, sizeof label, "%.4g", ticks[i]);
        picture_text(to, LEFT - 8, at + 4, 1, label);
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

/* Draws the legend above the panel, from the right: each name beside a piece of its line. */
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
        picture_text(to, right, top + 22, 1, series->name);
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
    picture_text(to, LEFT, top + 22, 0, chart->panels[panel]);
    if (!chart_axes(chart, panel, &x, &y))
        return;
    picture_text(to, LEFT + (WIDTH - LEFT - RIGHT) / 2.0, top + PANEL - 8, .5, chart->x_label);
    draw_grid(to, top, &x, &y);
    for (int i = 0; i < chart->n_series; i++)
        if (chart->series[i].panel == panel)
            draw_series(to, &chart->series[i], top, &x, &y);
    draw_legend(to, chart, panel, top);
}

static void draw(cairo_t *to, const void *what)
{
    const struct chart *chart = what;
    for (int p = 0; p < chart->n_panels; p++)
        draw_panel(to, chart, p);
}

int chart_save(const struct chart *chart, const char *path)
{
    return picture_save(path, WIDTH, chart->n_panels * PANEL, draw, chart);
}
#else
int chart_save(const struct chart *chart, const char *path)
{
    return picture_save(path, 0, 0, NULL, chart);
}
#endif
