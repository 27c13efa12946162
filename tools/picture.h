/* picture.h - drawing to PNG and SVG files, by cairo. */
#ifndef TOOL_PICTURE_H
#define TOOL_PICTURE_H

#include <stdbool.h>

#include "tool.h"

struct _cairo; /* cairo_t */

/* Does a name end in .png or .svg? */
bool picture_is_named(const char *path);
/* It does, and this build draws such files: TOOL_DONE, else TOOL_REFUSED after a sentence. */
int picture_check_path(const char *option, const char *path);
/* Calls `draw` for a white sheet of this size, in pixels, and saves it: beside the file, then renamed. */
int picture_save(const char *path, int width, int height, void (*draw)(struct _cairo *to, const void *what),
                 const void *what);
/* Text on a line, `align` of it left of x: 0 begins there, 1 ends there. */
void picture_text(struct _cairo *to, double x, double y, double align, const char *text);

#endif
