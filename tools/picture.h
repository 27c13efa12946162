/* picture.h - draws to PNG and SVG files by cairo. */
#ifndef TOOL_PICTURE_H
#define TOOL_PICTURE_H

#include <stdbool.h>

#include "tool.h"

struct _cairo; /* cairo_t */

/* True for a name that ends in .png or .svg. */
bool picture_is_named(const char *path);
/* TOOL_DONE when the name ends so and this build draws such files, else TOOL_REFUSED after a sentence. */
int picture_check_path(const char *option, const char *path);
/* Calls `draw` for a white sheet of this size in pixels, and saves it: written beside the name, then renamed. Returns
 * an exit status. */
int picture_save(const char *path, int width, int height, void (*draw)(struct _cairo *to, const void *what),
                 const void *what);
/* Writes a line of text at x: `align` 0 begins there, 1 ends there, 0.5 is centred. */
void picture_text(struct _cairo *to, double x, double y, double align, const char *text);

#endif
