/* output_path.h - where results go: names that have a default, and are checked before the work begins. */
#ifndef TOOL_OUTPUT_PATH_H
#define TOOL_OUTPUT_PATH_H

#include <stdbool.h>

/* The longest path that is accepted. */
enum { OUTPUT_SIZE = 4096 };

/* Writes `given` to `path`, or when it is NULL "<stem of model><suffix>", in the current directory; then checks that a
 * file of this name can be made. `extension`: ".keras", which the name must have. Returns an exit status. */
int output_path(const char *given, const char *model, const char *suffix, const char *extension,
                char path[OUTPUT_SIZE]);
bool output_ends_in(const char *text, const char *end);
/* Checks that a file of this name can be made in its folder. `option` is what gave the name. Returns an exit status. */
int output_check_folder(const char *option, const char *path);
/* Writes the folder that a file of this name is in, "." where it has none, and returns the name behind it. */
const char *output_folder(const char *path, char folder[OUTPUT_SIZE]);

#endif
