/* chart.h - curves over a common axis, in panels one below the other, drawn to a PNG or SVG file or in the terminal. */
#ifndef TOOL_CHART_H
#define TOOL_CHART_H

#include <stdbool.h>

#include "tool.h"

#define CHART_MAX_PANELS 12

/* A curve. */
struct series {
    char name[128];
    bool dashed;
    int panel, colour;
    int count, room;
    double (*points)[2]; /* [x, y]; owned */
};

struct chart {
    const char *x_label;
    bool log_x, log_y;
    int n_panels;
    char panels[CHART_MAX_PANELS][64]; /* the panels' titles */
    int n_series;
    struct series *series; /* owned */
};

/* Returns the panel with this title and makes it when there is none; -1 when there are too many. */
int chart_panel(struct chart *chart, const char *title);
/* Returns the series of this name in the panel and makes it when there is none; NULL when out of memory. The pointer is
 * valid until the next call. */
struct series *chart_series(struct chart *chart, int panel, const char *name);
/* Appends a point, unless it is not finite. False when out of memory. */
bool series_add(struct series *series, double x, double y);
void chart_release(struct chart *chart);

struct axis {
    bool log;
    double least, greatest;
};
/* A value's place on the axis, from 0 to 1; NaN for what a log axis does not have. */
double axis_place(const struct axis *axis, double value);
/* Sets a panel's axes to contain its points. False when it has none. */
bool chart_axes(const struct chart *chart, int panel, struct axis *x, struct axis *y);
/* Sets ticks at round numbers, at most `most`, and returns their number. */
int axis_ticks(const struct axis *axis, int most, double *ticks);

/* Draws to a file, which is written beside its name and renamed. Returns an exit status. */
int chart_save(const struct chart *chart, const char *path);
/* Draws in the terminal, with braille dots and in its width. */
void chart_print(const struct chart *chart);
/* Draws in the terminal unless `quiet`, and to the file `output` unless that is NULL. Returns an exit status. */
int chart_show(const struct chart *chart, const char *output, bool quiet);

#endif
