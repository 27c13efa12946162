/* file_list.h - several files by commas or a quoted pattern: "a.csv,b.csv", or every .csv of a folder. */
#ifndef TDI_DATA_FILE_LIST_H
#define TDI_DATA_FILE_LIST_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"

typedef tdi_vec(char *) tdi_paths;

/* Appends the files, patterns' in the order of their names. TD_NOT_FOUND when a pattern matches none. */
td_status tdi_list_files(const char *patterns, tdi_paths *paths, tdi_error *error);
/* The first of the patterns ends in `ending` ("a.csv"), as does the first file it matches. */
bool tdi_names_file(const char *patterns, const char *ending);
void tdi_paths_free(tdi_paths *paths);

#endif
