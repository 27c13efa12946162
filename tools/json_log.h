/* json_log.h - the log of a training: a line with a JSON object per epoch. */
#ifndef TOOL_JSON_LOG_H
#define TOOL_JSON_LOG_H

#include <stdio.h>
#include <tandem/model.h>

/* Appends the epoch's line, below a last line that was cut short, and flushes it. The file is open to be read too.
 * Returns 0, or -1 when it cannot be written. */
int log_epoch(FILE *file, const td_epoch *epoch);

#endif
