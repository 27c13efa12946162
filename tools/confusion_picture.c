/* confusion_picture.c - draws a confusion matrix. There is a row per actual class, shaded by the share of its samples
 * that were predicted to be each class, with counts in cells that are large enough; recall beside the rows and
 * precision below the columns. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "confusion_table.h"
#include "picture.h"

#ifdef TANDEM_CAIRO
#include <cairo.h>

enum {
    ALL_CELLS = 720,
    LARGEST_CELL = 64,
    SMALLEST_CELL = 4,
    STRIP = 64,
    GAP = 8,
    TITLE = 64,
    LETTERS = 13,
    NAME = 40
};

/* The layout of the sheet, in pixels. */
typedef struct sheet {
    const td_confusion *confusion;
    const char *const *names;             /* of the classes; NULL: numbers are shown */
    int classes, each;                    /* every `each`-th class has a label */
    double cell, left, top, side, labels; /* side of a cell; corner and side of the matrix; size of a label's letters */
    bool upright;                         /* the columns' labels are turned upright */
} sheet;

static void name_class(const sheet *s, int c, char name[NAME])
{
    int length = s->names ? snprintf(name, NAME, "%s", s->names[c]) : snprintf(name, NAME, "%d", c);
    char *end = name + NAME - 1;
    if (length < NAME)
        return;
    while (end > name && (end[-1] & 0xc0) == 0x80) /* cairo stops drawing at a partial UTF-8 character */
        end--;
    end -= end > name && (end[-1] & 0x80);
    *end = '\0';
}

/* Estimates the width of a text. */
static double about_wide(const char *text, double letters)
{
    return .58 * letters * (double)strlen(text);
}

static double widest_label(const sheet *s)
{
    double widest = 0;
    char name[NAME];
    for (int c = 0; c < s->classes; c += s->each) {
        name_class(s, c, name);
        widest = fmax(widest, about_wide(name, s->labels));
    }
    return widest;
}

static int label_distance(double cell)
{
    static const int distances[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};
    int i = 0;
    while (distances[i] * cell < 10 && distances[i] < 500)
        i++;
    return distances[i];
}

static sheet lay_out(const td_confusion *confusion, const char *const *names)
{
    sheet s = {.confusion = confusion, .names = names, .classes = td_confusion_classes(confusion)};
    s.cell = fmin(LARGEST_CELL, fmax(SMALLEST_CELL, floor(ALL_CELLS / (double)s.classes)));
    s.each = label_distance(s.cell);
    s.labels = fmax(8, fmin(LETTERS, s.each * s.cell * .8));
    s.side = s.cell * s.classes;
    double widest = widest_label(&s);
    s.upright = widest > s.each * s.cell - 4;
    s.left = fmax(3 * GAP + LETTERS + widest, 2 * GAP + about_wide("precision", LETTERS));
    s.top = TITLE + LETTERS + 2 * GAP + (s.upright ? widest : s.labels);
    return s;
}

/* ---- drawing ---- */

static void set_grey(cairo_t *to, double light)
{
    cairo_set_source_rgb(to, light, light, light);
}

/* Sets a colour from white (0) to dark blue (1). */
static void set_shade(cairo_t *to, double share)
{
    cairo_set_source_rgb(to, 1 - .97 * share, 1 - .75 * share, 1 - .5 * share);
}

static void box(cairo_t *to, double x, double y, double width, double height)
{
    cairo_rectangle(to, x, y, width, height);
    cairo_fill(to);
}

static void put_upright(cairo_t *to, double x, double y, double align, const char *text)
{
    cairo_save(to);
    cairo_translate(to, x, y);
    cairo_rotate(to, -M_PI / 2);
    picture_text(to, 0, 0, align, text);
    cairo_restore(to);
}

/* Writes a count as it is, or in thousands, millions, ... when that is too wide, or nothing when that is too wide too.
 */
static void count_text(int64_t count, double letters, double room, char text[32])
{
    static const char units[] = "kMGT";
    double left = (double)count;
    snprintf(text, 32, "%" PRId64, count);
    for (int i = 0; about_wide(text, letters) > room && i < 4; i++) {
        left /= 1000;
        snprintf(text, 32, "%.*f%c", left < 10, left, units[i]);
    }
    if (about_wide(text, letters) > room)
        *text = 0;
}

static void draw_cell(cairo_t *to, const sheet *s, int actual, int predicted, int64_t support)
{
    char text[32];
    int64_t count = td_confusion_count(s->confusion, actual, predicted);
    double share = support ? (double)count / (double)support : 0, letters = fmin(LETTERS, s->cell * .36);
    double x = s->left + predicted * s->cell, y = s->top + actual * s->cell;
    set_shade(to, share);
    box(to, x, y, s->cell, s->cell);
    count_text(count, letters, s->cell - 3, text);
    if (letters < 7 || !count)
        return;
    set_grey(to, share > .5 ? 1 : .2);
    cairo_set_font_size(to, letters);
    picture_text(to, x + s->cell / 2, y + s->cell / 2 + letters * .36, .5, text);
}

/* Draws lines around the matrix, and between cells when these are large enough. */
static void draw_lines(cairo_t *to, const sheet *s)
{
    set_grey(to, .82);
    cairo_set_line_width(to, 1);
    for (int c = 1; c < s->classes && s->cell >= 9; c++) {
        cairo_move_to(to, s->left + c * s->cell, s->top);
        cairo_rel_line_to(to, 0, s->side);
        cairo_move_to(to, s->left, s->top + c * s->cell);
        cairo_rel_line_to(to, s->side, 0);
    }
    cairo_stroke(to);
    set_grey(to, .4);
    cairo_rectangle(to, s->left, s->top, s->side, s->side);
    cairo_stroke(to);
}

static void draw_label(cairo_t *to, const sheet *s, int c)
{
    char name[NAME];
    double middle = (c + .5) * s->cell, down = s->labels * .36;
    name_class(s, c, name);
    set_grey(to, .2);
    cairo_set_font_size(to, s->labels);
    picture_text(to, s->left - GAP, s->top + middle + down, 1, name);
    if (s->upright)
        put_upright(to, s->left + middle + down, s->top - GAP, 0, name);
    else
        picture_text(to, s->left + middle, s->top - GAP, .5, name);
}

/* Draws a class's recall as a bar beside its row, and its precision below its column. */
static void draw_scores(cairo_t *to, const sheet *s, int c)
{
    char text[16];
    td_class_scores scores = td_confusion_scores(s->confusion, c);
    double at = c * s->cell, thick = s->cell > 3 ? s->cell - 1 : s->cell, letters = fmin(11, s->cell * .7);
    double right = s->left + s->side + GAP, below = s->top + s->side + GAP, middle = s->cell / 2 + letters * .36;
    cairo_set_source_rgb(to, .75, .84, .93);
    box(to, right, s->top + at, STRIP * scores.recall, thick);
    box(to, s->left + at, below, thick, STRIP * scores.precision);
    if (letters < 7)
        return;
    set_grey(to, .2);
    cairo_set_font_size(to, letters);
    snprintf(text, sizeof text, "%.2f", scores.recall);
    picture_text(to, right + 4, s->top + at + middle, 0, text);
    snprintf(text, sizeof text, "%.2f", scores.precision);
    if (s->cell >= 30)
        picture_text(to, s->left + at + s->cell / 2, below + letters + 3, .5, text);
    else
        put_upright(to, s->left + at + middle, below + 4, 1, text);
}

static void draw_titles(cairo_t *to, const sheet *s)
{
    char text[160];
    const td_confusion *confusion = s->confusion;
    int used = snprintf(text, sizeof text, "%" PRId64 " %s, accuracy %.4f", td_confusion_total(confusion),
                        td_confusion_positions(confusion) ? "positions" : "samples", td_confusion_accuracy(confusion));
    if (td_confusion_positions(confusion))
        snprintf(text + used, sizeof text - (size_t)used, ", mean IoU %.4f", td_confusion_mean(confusion).iou);
    set_grey(to, .1);
    cairo_set_font_size(to, LETTERS + 1);
    picture_text(to, GAP, GAP + LETTERS + 1, 0, text);
    cairo_set_font_size(to, LETTERS);
    set_grey(to, .4);
    picture_text(to, GAP, 2 * (GAP + LETTERS) + 2, 0, "a row's shade: the share of the class taken for each");
    set_grey(to, .1);
    picture_text(to, s->left + s->side / 2, TITLE + 4, .5, "taken for");
    put_upright(to, GAP + LETTERS, s->top + s->side / 2, .5, "actual");
    picture_text(to, s->left + s->side + GAP, s->top - GAP, 0, "recall");
    picture_text(to, s->left - GAP, s->top + s->side + GAP + LETTERS, 1, "precision");
}

static void draw(cairo_t *to, const void *what)
{
    const sheet *s = what;
    for (int actual = 0; actual < s->classes; actual++) {
        int64_t support = td_confusion_scores(s->confusion, actual).support;
        for (int c = 0; c < s->classes; c++)
            draw_cell(to, s, actual, c, support);
    }
    draw_lines(to, s);
    for (int c = 0; c < s->classes; c++)
        draw_scores(to, s, c);
    for (int c = 0; c < s->classes; c += s->each)
        draw_label(to, s, c);
    draw_titles(to, s);
}

int confusion_draw(const td_confusion *confusion, const char *const *names, const char *path)
{
    sheet s = lay_out(confusion, names);
    double width = s.left + s.side + 2 * GAP + STRIP, height = s.top + s.side + 2 * GAP + STRIP;
    return picture_save(path, (int)ceil(fmax(width, 400)), (int)ceil(height), draw, &s);
}
#else
int confusion_draw(const td_confusion *confusion, const char *const *names, const char *path)
{
    (void)names;
    return picture_save(path, 0, 0, NULL, confusion);
}
#endif
