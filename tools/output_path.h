/* output_path.h - the paths of results, which have defaults and are checked before the work begins. */
#ifndef TOOL_OUTPUT_PATH_H
#define TOOL_OUTPUT_PATH_H

#include <stdbool.h>

/* Bytes of the longest path. */
enum { OUTPUT_SIZE = 4096 };

/* Sets `path` to `given`, or to "<stem of model><suffix>" in the current folder when that is NULL, and checks that a
 * file of this name can be made. The name must end in `extension` (".keras"). Returns an exit status. */
int output_path(const char *given, const char *model, const char *suffix, const char *extension,
                char path[OUTPUT_SIZE]);
bool output_ends_in(const char *text, const char *end);
/* Checks that a file of this name can be made in its folder. `option` gave the name. Returns an exit status. */
int output_check_folder(const char *option, const char *path);
/* Sets `folder` to the path's folder, "." when it has none, and returns the name behind it. */
const char *output_folder(const char *path, char folder[OUTPUT_SIZE]);

#endif
