/* loop.h - passes over a source: what fit, evaluate and predict share. */
#ifndef TDI_TRAIN_LOOP_H
#define TDI_TRAIN_LOOP_H

#include "files/array_file.h"
#include "train/callbacks/callbacks.h"
#include "train/feed.h"
#include "train/progress.h"

/* A pass over `samples` samples in batches; a resumed one begins with `done` steps, which took `seconds`. One over a
 * stream to its unknown end has TDI_SAMPLES_UNKNOWN samples, until they have been counted, as many steps, and no order.
 */
typedef struct tdi_pass {
    td_model *model;
    tdi_source *source;
    const int64_t *order;
    int64_t samples, batch, steps;
    int64_t epoch;
    bool in_order; /* order[i] is i */
    tdi_job job;   /* mode, seed, take */
    tdi_progress *progress;
    td_training *training;  /* whose callbacks are called between steps; NULL: none */
    int input_threads;      /* that make rows ahead, where they have to be made; 0: as many as it takes */
    double seconds;         /* the result, after a failure too: time in steps */
    double seconds_waiting; /* of it, for rows */
    int64_t done;           /* steps */
} tdi_pass;

/* The runtime that runs its steps. */
td_status tdi_pass_runtime(const tdi_pass *pass, tdi_runtime **runtime, tdi_error *error);
/* Runs the pass; TD_STOPPED after td_request_stop, between two steps, or two samples where they have to be made. */
td_status tdi_pass_run(tdi_pass *pass, tdi_error *error);
/* The same over the first `samples` in order, with a progress line on `out`, which may be NULL, that is still to be
 * ended. */
td_status tdi_pass_run_in_order(tdi_pass *pass, FILE *out, tdi_error *error);

/* How many samples the first `steps` batches of a source have; 0: all of it, which may be TDI_SAMPLES_UNKNOWN. `what`
 * names the argument in the refusal of more batches than there are. */
td_status tdi_samples_of_steps(const tdi_source *source, const char *what, int64_t steps, int64_t batch,
                               int64_t *samples, tdi_error *error);

/* Takes the data's source, or its failure. */
td_status tdi_data_source(td_data *data, const char *what, tdi_source **source, tdi_error *error);

/* Where the predictions of every output go: rows of step s from row s * batch on. */
typedef struct tdi_collector {
    float *outputs[TDI_MAX_IO]; /* NULL: not wanted */
    tdi_array_file *file;       /* instead of outputs */
    int64_t capacity;           /* floats in outputs[0], where it may not suffice; 0: it does */
    int64_t per_row[TDI_MAX_IO], batch;
} tdi_collector;

void tdi_collector_init(tdi_collector *collector, const td_model *model, int64_t batch, float *const *outputs);
/* A job's `take`. */
td_status tdi_collect(void *context, int64_t step, int64_t first, int64_t count, int output, const float *values,
                      tdi_error *error);

/* Hands a run-time failure to the model's context, with the caller's place in front. */
td_status tdi_report(td_model *model, const td_location *at, td_status status, const tdi_error *error);

/* Notes in the context's trace, where there is one, what td_fit did from `began` on. */
void tdi_note_host(const td_model *model, const char *what, double began, int64_t number);

/* Loss and metrics over the first *samples of `source`, which become their number where that was TDI_SAMPLES_UNKNOWN;
 * `mode` is TDI_EVALUATE or TDI_CONFUSION, `epoch` the one that it is the validation of, else 0. */
td_status tdi_evaluate_source(td_model *model, tdi_source *source, tdi_mode mode, int64_t epoch, int64_t *samples,
                              int64_t batch, const char *prefix, FILE *progress, td_logs *logs, tdi_error *error);

td_status tdi_check_batch_size(td_guard guard, const char *function, int64_t batch_size, tdi_error *error);
/* TD_INVALID_ARGUMENT for a batch beyond what anything can hold. */
td_status tdi_check_rows(const char *what, int64_t rows, tdi_error *error);

/* TD_INVALID_ARGUMENT when the model has no loss (or, to train, no optimizer). */
td_status tdi_check_compiled(const td_model *model, bool to_train, tdi_error *error);

#endif
