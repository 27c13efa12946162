/* file_list.h - several files named by one word: "a.csv,b.csv", or a pattern such as "folder/?.csv". */
#ifndef TDI_DATA_FILE_LIST_H
#define TDI_DATA_FILE_LIST_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"

typedef tdi_vec(char *) tdi_paths;

/* Appends the files; those of a pattern in the order of their names. TD_NOT_FOUND when a pattern matches none. */
td_status tdi_list_files(const char *patterns, tdi_paths *paths, tdi_error *error);
/* True when the first of the patterns ends in `ending` (".csv"), in any case. */
bool tdi_names_file(const char *patterns, const char *ending);
void tdi_paths_free(tdi_paths *paths);

#endif
