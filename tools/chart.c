/* chart.c - the content of a chart, and its axes. */
#include "chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- series ---- */

int chart_panel(struct chart *chart, const char *title)
{
    for (int p = 0; p < chart->n_panels; p++)
        if (strncmp(chart->panels[p], title, sizeof chart->panels[p] - 1) == 0)
            return p;
    if (chart->n_panels == CHART_MAX_PANELS)
        return -1;
    snprintf(chart->panels[chart->n_panels], sizeof chart->panels[0], "%s", title);
    return chart->n_panels++;
}

struct series *chart_series(struct chart *chart, int panel, const char *name)
{
    for (int i = 0; i < chart->n_series; i++)
        if (chart->series[i].panel == panel && strcmp(chart->series[i].name, name) == 0)
            return &chart->series[i];
    struct series *grown = realloc(chart->series, ((size_t)chart->n_series + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    chart->series = grown;
    struct series *made = &grown[chart->n_series++];
    *made = (struct series){.panel = panel};
    snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

bool series_add(struct series *series, double x, double y)
{
    if (!isfinite(x) || !isfinite(y))
        return true;
    if (series->count == series->room) {
        int room = series->room ? 2 * series->room : 64;
        double(*grown)[2] = realloc(series->points, (size_t)room * sizeof *grown);
        if (!grown)
            return false;
        series->points = grown;
        series->room = room;
    }
    series->points[series->count][0] = x;
    series->points[series->count++][1] = y;
    return true;
}

void chart_release(struct chart *chart)
{
    for (int i = 0; i < chart->n_series; i++)
        free(chart->series[i].points);
    free(chart->series);
    *chart = (struct chart){0};
}

/* ---- axes ---- */

double axis_place(const struct axis *axis, double value)
{
    if (axis->log)
        return value > 0 ? log(value / axis->least) / log(axis->greatest / axis->least) : NAN;
    return (value - axis->least) / (axis->greatest - axis->least);
}

static void take(struct axis *axis, double value)
{
    if (axis->log && value <= 0)
        return;
    axis->least = fmin(axis->least, value);
    axis->greatest = fmax(axis->greatest, value);
}

/* Widens the axis, so that no curve touches the frame and a single value has room around it. */
static void widen(struct axis *axis, double share)
{
    if (axis->log) {
        double factor = axis->greatest > axis->least ? pow(axis->greatest / axis->least, share) : 2;
        axis->least /= factor;
        axis->greatest *= factor;
    } else {
        double room = (axis->greatest - axis->least) * share;
        if (axis->greatest == axis->least)
            room = axis->least == 0 ? 1 : fabs(axis->least) / 2;
        axis->least -= room;
        axis->greatest += room;
    }
}

bool chart_axes(const struct chart *chart, int panel, struct axis *x, struct axis *y)
{
    *x = (struct axis){chart->log_x, INFINITY, -INFINITY};
    *y = (struct axis){chart->log_y, INFINITY, -INFINITY};
    for (int i = 0; i < chart->n_series; i++)
        for (int k = 0; k < chart->series[i].count; k++) {
            take(x, chart->series[i].points[k][0]);
            if (chart->series[i].panel == panel)
                take(y, chart->series[i].points[k][1]);
        }
    if (x->least > x->greatest || y->least > y->greatest)
        return false;
    widen(x, 0);
    widen(y, 0.05);
    return true;
}

/* The next larger of 1, 2 and 5 times a power of ten. */
static double round_step(double step)
{
    double power = pow(10, floor(log10(step))), times = step / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

/* Ticks at powers of ten, at every n-th one when there are many, and at 2 and 5 times them when there are few. */
static int log_ticks(const struct axis *axis, int most, double *ticks)
{
    static const double times[] = {1, 2, 5};
    int first = (int)floor(log10(axis->least)), last = (int)floor(log10(axis->greatest)), count = 0;
    int each = last - first <= 2 ? 3 : 1, every = (last - first) / most + 1;
    for (int power = first; power <= last; power += every)
        for (int i = 0; i < each && count < most; i++) {
            double tick = times[i] * pow(10, power);
            if (tick >= axis->least && tick <= axis->greatest)
                ticks[count++] = tick;
        }
    return count;
}

int axis_ticks(const struct axis *axis, int most, double *ticks)
{
    int on_log = axis->log ? log_ticks(axis, most, ticks) : 0;
    if (on_log > 1)
        return on_log;
    double step = round_step((axis->greatest - axis->least) / most), begin = ceil(axis->least / step);
    int count = 0;
    for (double k = begin; k * step <= axis->greatest && count < most; k++)
        ticks[count++] = k * step;
    return count;
}
