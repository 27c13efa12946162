/* tuning_cache_file.h - the tuning cache between runs: the file choices.json, and the form in which backups carry it.
 *
 * The file is in $TANDEM_CACHE, else in $XDG_CACHE_HOME/tandem, else in ~/.cache/tandem. It may be deleted at any time.
 * A damaged one is ignored and written anew; where it cannot be written, work goes on without. With TANDEM_CACHE=off
 * nothing is timed, read or written. */
#ifndef TDI_TUNE_TUNING_CACHE_FILE_H
#define TDI_TUNE_TUNING_CACHE_FILE_H

#include <jansson.h>
#include <stdio.h>

#include "base/context.h"
#include "tune/tuning_cache.h"

/* The context's cache, filled from the file on first use. NULL: timing is off, or out of memory. */
tdi_tuning_cache *tdi_tuning_cache_of(td_context *context);
/* Writes the file if anything was measured since it was last written. The log says so once where that fails. */
void tdi_tuning_cache_save(td_context *context);

/* The answers that this context's plans and configurations have used, as a backup keeps them. The caller decrefs. NULL:
 * out of memory. */
json_t *tdi_tuning_cache_export(const tdi_tuning_cache *cache);
/* Puts exported answers, which take the place of the file's. TD_BAD_FILE: some may have been put. */
td_status tdi_tuning_cache_import(tdi_tuning_cache *cache, const json_t *exported, tdi_error *error);
/* Imports into the context's cache. Where timing is off the context gets a cache of these answers alone, and rules
 * choose the rest. */
td_status tdi_tuning_cache_restore(td_context *context, const json_t *exported, tdi_error *error);

/* Prints one line for `tandem doctor`. */
void tdi_tuning_cache_describe(FILE *out);

#endif
