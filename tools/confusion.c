/* confusion.c - the table of a confusion matrix. */
#include "confusion.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { MOST_COLUMNS = 12, CELL = 9 };

/* `name`: the class's own, "" for none. */
static void print_scores(const td_confusion *confusion, const char *row, const td_class_scores *scores,
                         const char *name)
{
    printf("%-8s %9.4f %9.4f %9.4f", row, scores->precision, scores->recall, scores->f1);
    if (td_confusion_positions(confusion) && isnan(scores->iou))
        printf(" %9s", "-");
    else if (td_confusion_positions(confusion))
        printf(" %9.4f", scores->iou);
    printf(" %11" PRId64 "%s%s\n", scores->support, *name ? "  " : "", name);
}

static void print_table(const td_confusion *confusion, const char *recipe)
{
    bool positions = td_confusion_positions(confusion);
    bool named = td_recipe_class(recipe, 0, NULL, 0) == td_confusion_classes(confusion);
    printf("\n%-8s %9s %9s %9s%s%s %11s\n", "class", "precision", "recall", "f1", positions ? " " : "",
           positions ? "      iou" : "", "support");
    for (int c = 0; c < td_confusion_classes(confusion); c++) {
        char row[16], name[128];
        snprintf(row, sizeof row, "%d", c);
        td_recipe_class(named ? recipe : NULL, c, name, sizeof name);
        td_class_scores scores = td_confusion_scores(confusion, c);
        print_scores(confusion, row, &scores, name);
    }
    td_class_scores mean = td_confusion_mean(confusion), weighted = td_confusion_weighted_mean(confusion);
    print_scores(confusion, "mean", &mean, "");
    print_scores(confusion, "weighted", &weighted, "");
}

static void print_matrix(const td_confusion *confusion)
{
    int classes = td_confusion_classes(confusion);
    printf("\nactual \\ taken for\n%-8s", "");
    for (int c = 0; c < classes; c++)
        printf(" %*d", CELL - 1, c);
    putchar('\n');
    for (int actual = 0; actual < classes; actual++) {
        printf("%-8d", actual);
        for (int c = 0; c < classes; c++)
            printf(" %*" PRId64, CELL - 1, td_confusion_count(confusion, actual, c));
        putchar('\n');
    }
}

void confusion_print(const td_confusion *confusion, const char *recipe)
{
    int64_t ignored = td_confusion_ignored(confusion);
    print_table(confusion, recipe);
    if (td_confusion_classes(confusion) <= MOST_COLUMNS)
        print_matrix(confusion);
    if (ignored)
        printf("\n%" PRId64 " %s of the class to ignore are not counted.\n", ignored,
               td_confusion_positions(confusion) ? "positions" : "samples");
}
