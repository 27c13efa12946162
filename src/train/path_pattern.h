/* path_pattern.h - file names with an epoch's numbers in them. */
#ifndef TDI_TRAIN_PATH_PATTERN_H
#define TDI_TRAIN_PATH_PATTERN_H

#include "train/callbacks.h"

/* Fills "{epoch}", "{epoch:02d}", "{batch:04d}" (0: not offered) and logs as "{val_loss:.2f}" in, by the rules of
 * Python's str.format for such numbers; "{{" and "}}" are braces. TD_INVALID_ARGUMENT naming the word that is neither,
 * or a format that is not a width, a precision and d, e, f or g. */
td_status tdi_path_fill(const char *pattern, int epoch, int64_t batch, const td_logs *logs, char *path, size_t size,
                        tdi_error *error);

#endif
