/* output_conflicts.h - refuses a command that would overwrite a file that it reads, or write a file twice. */
#ifndef TOOL_OUTPUT_CONFLICTS_H
#define TOOL_OUTPUT_CONFLICTS_H

#include "options.h"

/* `output` is the result's path; NULL: there is none. Returns an exit status; prints a sentence when it is not
 * TOOL_DONE. */
int output_conflicts_check(const struct options *options, const char *output);

#endif
