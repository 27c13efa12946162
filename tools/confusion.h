/* confusion.h - prints and saves what was taken for what. */
#ifndef TOOL_CONFUSION_H
#define TOOL_CONFUSION_H

#include "tool.h"

/* A line per class with its scores, and its name by the model's recipe; their means, and the matrix while it is as
 * small as a terminal. */
void confusion_print(const td_confusion *confusion, const char *recipe);

#endif
