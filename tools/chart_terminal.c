/* chart_terminal.c - draws charts in the terminal with braille characters, of 2 x 4 dots each (Unicode 2800 to 28FF).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "chart.h"

enum { MARGIN = 10, ROWS = 12, MOST_COLUMNS = 400 };

struct canvas {
    int columns;
    unsigned char dots[ROWS][MOST_COLUMNS];
};

static void set_dot(struct canvas *canvas, int x, int y)
{
    static const unsigned char bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (x >= 0 && x < 2 * canvas->columns && y >= 0 && y < 4 * ROWS)
        canvas->dots[y / 4][x / 2] |= bits[y % 4][x % 2];
}

/* Draws a line; a dashed one has every other dot. */
static void draw_line(struct canvas *canvas, const double from[2], const double to[2], bool dashed)
{
    double width = to[0] - from[0], height = to[1] - from[1];
    int steps = (int)fmax(fabs(width), fabs(height)) + 1;
    for (int i = 0; i <= steps; i++) {
        int x = (int)lround(from[0] + width * i / steps), y = (int)lround(from[1] + height * i / steps);
        if (!dashed || (x / 2) % 2 == 0)
            set_dot(canvas, x, y);
    }
}

static void draw_series(struct canvas *canvas, const struct series *series, const struct axis *x, const struct axis *y)
{
    double before[2], at[2];
    bool has_before = false;
    for (int i = 0; i < series->count; i++) {
        at[0] = axis_place(x, series->points[i][0]) * (2 * canvas->columns - 1);
        at[1] = (1 - axis_place(y, series->points[i][1])) * (4 * ROWS - 1);
        if (isnan(at[0]) || isnan(at[1])) {
            has_before = false;
            continue;
        }
        draw_line(canvas, has_before ? before : at, at, series->dashed && has_before);
        before[0] = at[0];
        before[1] = at[1];
        has_before = true;
    }
}

static void print_braille(unsigned char dots)
{
    putchar(0xe2);
    putchar(0xa0 | (dots >> 6));
    putchar(0x80 | (dots & 0x3f));
}

static void print_canvas(const struct canvas *canvas, const struct axis *x, const struct axis *y)
{
    for (int row = 0; row < ROWS; row++) {
        if (row == 0 || row == ROWS - 1)
            printf("%*.4g ", MARGIN - 1, row ? y->least : y->greatest);
        else
            printf("%*s", MARGIN, "");
        for (int column = 0; column < canvas->columns; column++)
            print_braille(canvas->dots[row][column]);
        putchar('\n');
    }
    printf("%*s%-*.4g%*.4g\n", MARGIN, "", canvas->columns - 10, x->least, 10, x->greatest);
}

static void print_panel(const struct chart *chart, int panel, int columns)
{
    struct axis x, y;
    char name[512];
    snprintf(name, sizeof name, "%s", chart->panels[panel]);
    printf("%s", td_printable(name));
    for (int i = 0, shown = 0; i < chart->n_series; i++)
        if (chart->series[i].panel == panel) {
            snprintf(name, sizeof name, "%s", chart->series[i].name);
            printf("%s%s%s", shown++ ? ", " : ": ", td_printable(name), chart->series[i].dashed ? " (dotted)" : "");
        }
    putchar('\n');
    if (!chart_axes(chart, panel, &x, &y)) {
        printf("%*snothing to draw\n\n", MARGIN, "");
        return;
    }
    struct canvas canvas = {.columns = columns};
    for (int i = 0; i < chart->n_series; i++)
        if (chart->series[i].panel == panel)
            draw_series(&canvas, &chart->series[i], &x, &y);
    print_canvas(&canvas, &x, &y);
    putchar('\n');
}

static int terminal_columns(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

void chart_print(const struct chart *chart)
{
    int columns = terminal_columns() - MARGIN;
    columns = columns < 20 ? 20 : columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
    for (int p = 0; p < chart->n_panels; p++)
        print_panel(chart, p, columns);
}

int chart_show(const struct chart *chart, const char *output, bool quiet)
{
    if (!quiet)
        chart_print(chart);
    int status = output ? chart_save(chart, output) : TOOL_DONE;
    if (status == TOOL_DONE && output && !quiet)
        printf("Saved %s.\n", output);
    return status;
}
