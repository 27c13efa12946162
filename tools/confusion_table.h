/* confusion_table.h - prints and draws a confusion matrix. */
#ifndef TOOL_CONFUSION_TABLE_H
#define TOOL_CONFUSION_TABLE_H

#include "tool.h"

/* Splits a list at its commas. The caller frees the result, which ends with NULL. NULL when out of memory. */
const char **confusion_names(const char *list);

/* The class names of a recipe, in the same form. NULL also when there are fewer than classes. */
const char **confusion_names_of(const char *recipe, int classes);

/* Prints a line of scores per class, their means, and the matrix when it fits into a terminal. NULL `names`: classes
 * are shown by number. */
void confusion_print(const td_confusion *confusion, const char *const *names);
/* Draws the matrix to a PNG or SVG file. Returns an exit status. */
int confusion_draw(const td_confusion *confusion, const char *const *names, const char *path);

#endif
