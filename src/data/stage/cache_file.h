/* cache_file.h - the file of td_cache: samples are written in any order, and read once all of them are there. */
#ifndef TDI_DATA_STAGE_CACHE_FILE_H
#define TDI_DATA_STAGE_CACHE_FILE_H

#include "data/source.h"

typedef struct tdi_cache_file tdi_cache_file;

/* Opens the complete cache at `path`, or begins one with room for every sample of `of`. TD_INVALID_ARGUMENT: the cache
 * is of other data; TD_BAD_FILE: the file is no cache; TD_IO: the disk is full. */
td_status tdi_cache_file_open(const char *path, tdi_source *of, tdi_cache_file **file, bool *complete,
                              tdi_error *error);
/* Read and write one sample of a column, as it is stored. Several threads may call them. TD_BAD_FILE: the sample is
 * damaged. */
td_status tdi_cache_file_read(const tdi_cache_file *file, int column, int64_t row, void *to, tdi_error *error);
td_status tdi_cache_file_write(tdi_cache_file *file, int column, int64_t row, const void *from, tdi_error *error);
/* Called when every sample of every column is written: renames the file to its path. It can still be read. */
td_status tdi_cache_file_complete(tdi_cache_file *file, tdi_error *error);
/* Frees the file, and removes it from the disk when it is not complete. NULL is accepted. */
void tdi_cache_file_close(tdi_cache_file *file);

#endif
