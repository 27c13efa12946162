/* epoch_run.h - one run over a source in batches: what fit, evaluate and predict share. */
#ifndef TDI_TRAIN_EPOCH_RUN_H
#define TDI_TRAIN_EPOCH_RUN_H

#include "train/batch_feed.h"
#include "train/call_checks.h"
#include "train/callbacks/callbacks.h"
#include "train/progress.h"

/* An epoch run: `samples` samples of a source in batches. One over a stream whose end is unknown has
 * TDI_SAMPLES_UNKNOWN samples, until they have been counted, as many steps, and no order. */
typedef struct tdi_epoch_run {
    td_model *model;
    tdi_source *source;
    const int64_t *order; /* [samples] */
    int64_t samples, batch, steps;
    int64_t epoch;
    bool in_order;    /* order[i] is i */
    tdi_own_rows own; /* the source and the order have these rows of each batch alone */
    tdi_job job;      /* mode, seed, take */
    tdi_progress *progress;
    td_training *training; /* its callbacks are called between steps; NULL: none */
    int input_threads;     /* threads that prefetch rows which have to be made; 0: as many as help */

    /* The result, after a failure too; a resumed run begins with what was done before. */
    double seconds;         /* time in steps */
    double seconds_waiting; /* of it, for rows */
    int64_t done;           /* steps */
} tdi_epoch_run;

/* The runtime that runs its steps. */
td_status tdi_epoch_runtime(const tdi_epoch_run *run, tdi_runtime **runtime, tdi_error *error);

/* Runs all steps. TD_STOPPED after td_request_stop, which is seen between two steps, and between two samples where
 * these have to be made. */
td_status tdi_run_epoch(tdi_epoch_run *run, tdi_error *error);
/* The same over the first `samples` in order, with a progress line on `out` that the caller ends; `out` may be NULL. */
td_status tdi_run_epoch_in_order(tdi_epoch_run *run, FILE *out, tdi_error *error);

/* Sets *samples to those in the first `steps` batches of a source; for 0 to all of them, which may be
 * TDI_SAMPLES_UNKNOWN. TD_INVALID_ARGUMENT, with `what` as the argument's name, for more batches than there are. */
td_status tdi_samples_of_steps(const tdi_source *source, const char *what, int64_t steps, int64_t batch,
                               int64_t *samples, tdi_error *error);

/* Adds loss and metrics over the first *samples of `source` to `logs`. *samples becomes their number where it was
 * TDI_SAMPLES_UNKNOWN. `mode` is TDI_EVALUATE or TDI_CONFUSION; `epoch` the one that this is the validation of, else 0.
 */
td_status tdi_evaluate_source(td_model *model, tdi_source *source, tdi_mode mode, int64_t epoch, int64_t *samples,
                              int64_t batch, const char *prefix, FILE *progress, td_logs *logs, tdi_error *error);

/* Notes in the context's trace, where there is one, what td_fit did from `began` on. */
void tdi_note_host(const td_model *model, const char *what, double began, int64_t number);

#endif
