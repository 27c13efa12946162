/* tuning_cache_file.h - the choices of this machine between runs: the cache file, and the form in which a backup
 * carries them.
 *
 * The file is choices.json in $TANDEM_CACHE, else in $XDG_CACHE_HOME/tandem, else in ~/.cache/tandem. It may be deleted
 * at any time; a damaged one is ignored and written anew; where it cannot be written, work goes on without. With
 * TANDEM_CACHE=off nothing is timed, read or written. */
#ifndef TDI_TUNE_TUNING_CACHE_FILE_H
#define TDI_TUNE_TUNING_CACHE_FILE_H

#include <jansson.h>
#include <stdio.h>

#include "base/context.h"
#include "tune/tuning_cache.h"

/* The context's choices, those of the file at first; NULL when timing is off or memory is out. */
tdi_choices *tdi_choices_of(td_context *context);
/* Writes the file if anything was measured since; says so, or why it could not, in the log. */
void tdi_choices_remember(td_context *context);

/* The choices that plans of this context were made with, and their return: imported ones go before the file's. Nothing
 * measured is lost by a failed import: TD_BAD_FILE. The caller of export decrefs; NULL when memory is out. */
json_t *tdi_choices_export(const tdi_choices *choices);
td_status tdi_choices_import(tdi_choices *choices, const json_t *exported, tdi_error *error);
/* The same for a context; where timing is off they are all that it has, and rules choose the rest. */
td_status tdi_choices_restore(td_context *context, const json_t *exported, tdi_error *error);

/* One line for `tandem doctor`. */
void tdi_choices_describe(FILE *out);

#endif
