/* confusion_table.c - prints a confusion matrix as a table. */
#include "confusion_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 12, CELL = 9, NARROWEST = 8, WIDEST = 24, PADDED = 256 };

const char **confusion_names(const char *list)
{
    size_t count = 1, length = strlen(list);
    for (const char *at = list; *at; at++)
        count += *at == ',';
    const char **names = malloc((count + 1) * sizeof *names + length + 1);
    if (!names)
        return NULL;
    char *text = memcpy(names + count + 1, list, length + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = strsep(&text, ",");
    names[count] = NULL;
    return names;
}

const char **confusion_names_of(const char *recipe, int classes)
{
    enum { SIZE = 64 };
    size_t count = (size_t)classes;
    if (td_recipe_class(recipe, 0, NULL, 0) < classes) /* a label map may name ignored classes behind the others */
        return NULL;
    const char **names = malloc((count + 1) * sizeof *names + count * SIZE);
    char *text = names ? (char *)(names + count + 1) : NULL;
    for (int c = 0; c < classes && names; c++, text += SIZE) {
        td_recipe_class(recipe, c, text, SIZE);
        names[c] = text;
    }
    if (names)
        names[count] = NULL;
    return names;
}

static const char *name_of(const char *const *names, int c, char number[16])
{
    snprintf(number, 16, "%d", c);
    return names ? names[c] : number;
}

/* The width of the first column. */
static int width_of(const td_confusion *confusion, const char *const *names)
{
    int width = NARROWEST;
    for (int c = 0; names && c < td_confusion_classes(confusion); c++)
        width = td_columns(names[c]) > width ? td_columns(names[c]) : width;
    return width < WIDEST ? width : WIDEST;
}

static void print_scores(const td_confusion *confusion, int width, const char *name, const td_class_scores *scores)
{
    char padded[PADDED];
    printf("%s %9.4f %9.4f %9.4f", td_pad(name, width, padded, sizeof padded), scores->precision, scores->recall,
           scores->f1);
    if (td_confusion_positions(confusion) && isnan(scores->iou))
        printf(" %9s", "-");
    else if (td_confusion_positions(confusion))
        printf(" %9.4f", scores->iou);
    printf(" %11" PRId64 "\n", scores->support);
}

static void print_table(const td_confusion *confusion, const char *const *names, int width)
{
    bool positions = td_confusion_positions(confusion);
    char number[16];
    printf("\n%-*s %9s %9s %9s%s%s %11s\n", width, "class", "precision", "recall", "f1", positions ? " " : "",
           positions ? "      iou" : "", "support");
    for (int c = 0; c < td_confusion_classes(confusion); c++) {
        td_class_scores scores = td_confusion_scores(confusion, c);
        print_scores(confusion, width, name_of(names, c, number), &scores);
    }
    td_class_scores mean = td_confusion_mean(confusion), weighted = td_confusion_weighted_mean(confusion);
    print_scores(confusion, width, "mean", &mean);
    print_scores(confusion, width, "weighted", &weighted);
}

/* In a cell, at its right. */
static void print_right(const char *name)
{
    char padded[PADDED];
    int columns = td_columns(name) < CELL - 1 ? td_columns(name) : CELL - 1;
    printf("%*s%s", CELL - columns, "", td_pad(name, columns, padded, sizeof padded));
}

static void print_matrix(const td_confusion *confusion, const char *const *names, int width)
{
    int classes = td_confusion_classes(confusion);
    char number[16], padded[PADDED];
    printf("\nactual \\ taken for\n%-*s", width, "");
    for (int c = 0; c < classes; c++)
        print_right(name_of(names, c, number));
    putchar('\n');
    for (int actual = 0; actual < classes; actual++) {
        printf("%s", td_pad(name_of(names, actual, number), width, padded, sizeof padded));
        for (int c = 0; c < classes; c++)
            printf(" %*" PRId64, CELL - 1, td_confusion_count(confusion, actual, c));
        putchar('\n');
    }
}

void confusion_print(const td_confusion *confusion, const char *const *names)
{
    int64_t ignored = td_confusion_ignored(confusion);
    int width = width_of(confusion, names);
    print_table(confusion, names, width);
    if (td_confusion_classes(confusion) <= MOST_COLUMNS)
        print_matrix(confusion, names, width);
    if (ignored)
        printf("\n%" PRId64 " %s of the class to ignore are not counted.\n", ignored,
               td_confusion_positions(confusion) ? "positions" : "samples");
}
