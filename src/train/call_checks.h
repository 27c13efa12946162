/* call_checks.h - what public functions check of their arguments, and how they report. */
#ifndef TDI_TRAIN_CALL_CHECKS_H
#define TDI_TRAIN_CALL_CHECKS_H

#include "data/source.h"
#include "model/model.h"

/* Gives a failure to the model's context, with the caller's place in front. Returns `status`. */
td_status tdi_report(td_model *model, const td_location *at, td_status status, const tdi_error *error);

/* The source of `data`, or the failure that td_open left there; `what` names the argument. */
td_status tdi_data_source(td_data *data, const char *what, tdi_source **source, tdi_error *error);

/* Do the data's columns fit the model's inputs and, when `targets`, its losses? One sentence with both shapes if not.
 */
td_status tdi_check_data(const td_model *model, const tdi_source *source, bool targets, tdi_error *error);

/* Do both shapes surely have the same elements in the same order: are they equal but for extents of 1, or is one flat?
 */
bool tdi_reads_as(const td_shape *data, const td_shape *wanted);

td_status tdi_check_batch_size(td_guard guard, const char *function, int64_t batch_size, tdi_error *error);
/* TD_INVALID_ARGUMENT for a batch so large that the offsets of its elements could overflow. */
td_status tdi_check_rows(const char *what, int64_t rows, tdi_error *error);

/* TD_INVALID_ARGUMENT when the model has no loss (or, to train, no optimizer). */
td_status tdi_check_compiled(const td_model *model, bool to_train, tdi_error *error);

#endif
