/* chart.h - curves over a common axis, in panels one below the other: drawn to a PNG or SVG file, or in the terminal.
 */
#ifndef TOOL_CHART_H
#define TOOL_CHART_H

#include <stdbool.h>

#include "tool.h"

#define CHART_MAX_PANELS 12

/* Numbers over numbers. */
struct series {
    char name[128];
    bool dashed;
    int panel, colour;
    int count, room;
    double (*points)[2]; /* x, y; malloc'd */
};

struct chart {
    const char *x_label;
    bool log_x, log_y;
    int n_panels;
    char panels[CHART_MAX_PANELS][64]; /* their titles */
    int n_series;
    struct series *series; /* malloc'd */
};

/* The panel of this title, made when there is none; -1 when there are too many. */
int chart_panel(struct chart *chart, const char *title);
/* The series of this name in the panel, made when there is none; NULL when memory is out. It stays where it is until
 * the next call. */
struct series *chart_series(struct chart *chart, int panel, const char *name);
/* A point that cannot be drawn (not finite) is left out. False when memory is out. */
bool series_add(struct series *series, double x, double y);
void chart_release(struct chart *chart);

/* Where a point stands on an axis, from 0 to 1; not a number for what a log axis does not have. */
struct axis {
    bool log;
    double least, greatest;
};
double axis_place(const struct axis *axis, double value);
/* The axes of a panel around all that it shows; false when it shows nothing. */
bool chart_axes(const struct chart *chart, int panel, struct axis *x, struct axis *y);
/* Round numbers along an axis, at most `most`; returns how many. */
int axis_ticks(const struct axis *axis, int most, double *ticks);

/* Draws to a file: beside it, then renamed. */
int chart_save(const struct chart *chart, const char *path);
/* Draws with braille dots, as wide as the terminal. */
void chart_print(const struct chart *chart);
/* In the terminal, unless `quiet`, and to the file `output` unless it is NULL. Returns an exit status. */
int chart_show(const struct chart *chart, const char *output, bool quiet);

#endif
