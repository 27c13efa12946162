/* output_conflicts.h - what a command writes is not what it reads, nor another thing that it writes. */
#ifndef TOOL_OUTPUT_CONFLICTS_H
#define TOOL_OUTPUT_CONFLICTS_H

#include "options.h"

/* `output`: where the result goes; NULL: nowhere. Returns an exit status, after a sentence when it is not TOOL_DONE. */
int output_conflicts_check(const struct options *options, const char *output);

#endif
