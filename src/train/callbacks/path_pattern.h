/* path_pattern.h - file names with an epoch's numbers in them. */
#ifndef TDI_TRAIN_CALLBACKS_PATH_PATTERN_H
#define TDI_TRAIN_CALLBACKS_PATH_PATTERN_H

#include "train/callbacks/callbacks.h"

/* Fills "{epoch}", "{epoch:02d}", "{batch:04d}" (0: not offered) and logs as "{val_loss:.2f}" in, as Python's
 * str.format; "{{" and "}}" are braces. TD_INVALID_ARGUMENT naming the word that is neither, or the format that is none
 * of Python's for such a number. */
td_status tdi_path_fill(const char *pattern, int epoch, int64_t batch, const td_logs *logs, char *path, size_t size,
                        tdi_error *error);
/* Checks a pattern before there are numbers, by the `names` of the first save's logs; `open`: other names may come. */
td_status tdi_path_check(const char *pattern, bool batch, const td_logs *names, bool open, tdi_error *error);

#endif
