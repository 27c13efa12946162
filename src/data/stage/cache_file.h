/* cache_file.h - samples in a file: written in any order, and read again once they are all there. */
#ifndef TDI_DATA_STAGE_CACHE_FILE_H
#define TDI_DATA_STAGE_CACHE_FILE_H

#include "data/source.h"

typedef struct tdi_cache_file tdi_cache_file;

/* Opens the complete cache at `path`, or begins one with room for every sample of `of`. TD_INVALID_ARGUMENT when it was
 * made of other data, TD_BAD_FILE when it is none, TD_IO when there is no room. */
td_status tdi_cache_file_open(const char *path, tdi_source *of, tdi_cache_file **file, bool *complete,
                              tdi_error *error);
/* One sample of a column, as it is stored. Several threads may. TD_BAD_FILE when it is damaged. */
td_status tdi_cache_file_read(const tdi_cache_file *file, int column, int64_t row, void *to, tdi_error *error);
td_status tdi_cache_file_write(tdi_cache_file *file, int column, int64_t row, const void *from, tdi_error *error);
/* Every sample of every column is written: the file gets its name. It can be read on. */
td_status tdi_cache_file_complete(tdi_cache_file *file, tdi_error *error);
void tdi_cache_file_close(tdi_cache_file *file); /* one that is not complete is removed; NULL is accepted */

#endif
