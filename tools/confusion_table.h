/* confusion_table.h - prints and saves what was taken for what. */
#ifndef TOOL_CONFUSION_TABLE_H
#define TOOL_CONFUSION_TABLE_H

#include "tool.h"

/* The words of a list with commas between them: NULL behind the last; freed by the caller. NULL when memory is out. */
const char **confusion_names(const char *list);

/* Those that the model's recipe has, in the same way; NULL too when they are not as many as the classes. */
const char **confusion_names_of(const char *recipe, int classes);

/* A line per class with its scores, their means, and the matrix while it is as small as a terminal. `names` of the
 * classes; NULL: their numbers. */
void confusion_print(const td_confusion *confusion, const char *const *names);
/* Draws the matrix to a PNG or SVG file. Returns an exit status. */
int confusion_draw(const td_confusion *confusion, const char *const *names, const char *path);

#endif
