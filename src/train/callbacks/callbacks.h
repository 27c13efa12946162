/* callbacks.h - the callbacks of a td_fit, and what they see of it. */
#ifndef TDI_TRAIN_CALLBACKS_CALLBACKS_H
#define TDI_TRAIN_CALLBACKS_CALLBACKS_H

#include <stdbool.h>
#include <stdio.h>
#include <tandem/callbacks.h>

#include "data/source.h"

/* Finds out before anything begins that the callback cannot work. With `open`, callbacks before it may add logs. */
typedef td_status tdi_callback_check(const void *user, const td_training *training, bool open, tdi_error *error);

struct td_callback {
    td_callback_functions functions;
    void *user;
    tdi_error error;           /* why it is poison */
    bool last;                 /* called when all others have been: it keeps what they remember */
    bool sets_rate;            /* it cannot where a schedule does */
    bool own;                  /* a user's: who knows what it does */
    tdi_callback_check *check; /* may be NULL */
};

struct td_training {
    td_model *model;
    FILE *progress;
    td_callback *const *callbacks; /* NULL-terminated; NULL: none */
    int epoch;
    int64_t steps;                   /* done in the epoch */
    double seconds, seconds_waiting; /* that they took; of it, for input */
    int64_t batches;                 /* done in all epochs */
    bool stop;
    double rate_factor; /* what the optimizer's learning rate is multiplied by */
    bool rate_changes;  /* in this run: the epochs' logs hold it */
    bool validates;     /* after each epoch */
    bool begun;         /* the epoch: its epoch_begin has been called */
    bool resumed;       /* from a backup */
    td_epoch last;      /* the last whole epoch's numbers */
    bool has_last;
    /* What td_fit was asked for. */
    int epochs;
    int64_t batch;
    uint64_t seed;
    tdi_source *source;
    const int64_t *order; /* of the epoch */
    tdi_error error;      /* what a callback gave as the reason of its failure */
};

/* As td_callback_create, of Tandem's own. */
td_callback *tdi_callback_create(const td_callback_functions *functions, void *user);
/* The same with a check. */
td_callback *tdi_callback_checked(const td_callback_functions *functions, void *user, tdi_callback_check *check);
/* A poisoned callback; never NULL. */
td_callback *tdi_callback_poison(const char *name, const char *reason);

/* Is one of them poison, or of no use with the model or the logs there will be? */
td_status tdi_callbacks_check(const td_training *training, tdi_error *error);
/* Does one of them change the learning rate? A user's may, too. */
bool tdi_callbacks_set_rate(td_callback *const *callbacks);
void tdi_callbacks_free(td_callback *const *callbacks);

/* Steps until one of them wants to be called again; `left` when none does before. */
int64_t tdi_callbacks_stride(const td_training *training, int64_t left);
/* Does one of them want its batch_end after the step that was just done? */
bool tdi_callbacks_due(const td_training *training);

td_status tdi_callbacks_train_begin(td_training *training, tdi_error *error);
td_status tdi_callbacks_epoch_begin(td_training *training, tdi_error *error);
td_status tdi_callbacks_batch_end(td_training *training, const td_logs *logs, tdi_error *error);
/* What they make of TD_NOT_FINITE, whose sentence is `error`; that itself when none of them takes it. */
td_status tdi_callbacks_not_finite(td_training *training, tdi_error *error);
td_status tdi_callbacks_epoch_end(td_training *training, td_epoch *epoch, tdi_error *error);
td_status tdi_callbacks_train_end(td_training *training, tdi_error *error);

/* What the next step is made with: the optimizer's learning rate, scaled and warmed up. */
double tdi_training_rate(const td_training *training);

/* The logs that there will be after a step, or at an epoch's end. */
void tdi_log_names(const td_training *training, bool epoch, td_logs *names);
/* A log's value; NULL when there is none of the name. */
const double *tdi_log_value(const td_logs *logs, const char *name);
/* Adds or replaces one, while there is room. */
void tdi_log_set(td_logs *logs, const char *name, double value);

#endif
