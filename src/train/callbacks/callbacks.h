/* callbacks.h - the callbacks of a td_fit, and what they see of it. */
#ifndef TDI_TRAIN_CALLBACKS_CALLBACKS_H
#define TDI_TRAIN_CALLBACKS_CALLBACKS_H

#include <stdbool.h>
#include <stdio.h>
#include <tandem/callbacks.h>

#include "data/source.h"

/* Called before the first step, and before train_begin: fails, with a sentence, when the callback could not work later.
 * `open`: callbacks before it may add logs, so that a log that is not known yet may still come. */
typedef td_status tdi_callback_check(const void *user, const td_training *training, bool open, tdi_error *error);

struct td_callback {
    td_callback_functions functions;
    void *user;
    tdi_error error;           /* why it is poison */
    bool last;                 /* called after all others, because it saves what they remember */
    bool sets_rate;            /* it sets the learning rate, and is refused where a schedule does */
    bool own;                  /* it is the user's, and may do anything */
    bool writes;               /* it writes files, so that in a group the chief alone has it */
    tdi_callback_check *check; /* may be NULL */
};

struct td_training {
    td_model *model;
    FILE *progress;
    td_callback *const *callbacks; /* NULL-terminated; NULL: none */
    int epoch;
    int64_t steps;                   /* done in the epoch */
    double seconds, seconds_waiting; /* that those steps took; of it, waiting for input */
    int64_t batches;                 /* done in all epochs */
    bool stop;
    double rate_factor; /* what the optimizer's learning rate is multiplied by */
    bool rate_changes;  /* the learning rate changes in this run: the epochs' logs hold it */
    bool validates;     /* after each epoch */
    bool begun;         /* the epoch's epoch_begin has been called */
    bool resumed;       /* from a backup */
    td_epoch last;      /* the last whole epoch's numbers */
    bool has_last;
    /* As given to td_fit. */
    int epochs;
    int64_t batch;
    uint64_t seed;
    tdi_source *source;
    const int64_t *order; /* of the epoch */
    tdi_error error;      /* what a callback gave as the reason of its failure */
};

/* td_callback_create, for Tandem's own callbacks. */
td_callback *tdi_callback_create(const td_callback_functions *functions, void *user);
/* The same with a check. */
td_callback *tdi_callback_checked(const td_callback_functions *functions, void *user, tdi_callback_check *check);
/* Marks it as one that writes files; returns it. */
td_callback *tdi_callback_writes(td_callback *callback);
/* A poisoned callback; never NULL. */
td_callback *tdi_callback_poison(const char *name, const char *reason);

/* Fails when one of them is poison, or cannot work with the model or the logs that there will be. */
td_status tdi_callbacks_check(const td_training *training, tdi_error *error);
/* May one of them change the learning rate? A user's may. */
bool tdi_callbacks_set_rate(td_callback *const *callbacks);
void tdi_callbacks_free(td_callback *const *callbacks);

/* Steps until one of them is called again, at most `left`. */
int64_t tdi_callbacks_stride(const td_training *training, int64_t left);
/* Is one of them to be called by batch_end after the step that was just done? */
bool tdi_callbacks_due(const td_training *training);

td_status tdi_callbacks_train_begin(td_training *training, tdi_error *error);
td_status tdi_callbacks_epoch_begin(td_training *training, tdi_error *error);
td_status tdi_callbacks_batch_end(td_training *training, const td_logs *logs, tdi_error *error);
/* Calls not_finite; `error` has the sentence of TD_NOT_FINITE, which is returned when none of them has the function. */
td_status tdi_callbacks_not_finite(td_training *training, tdi_error *error);
td_status tdi_callbacks_epoch_end(td_training *training, td_epoch *epoch, tdi_error *error);
td_status tdi_callbacks_train_end(td_training *training, tdi_error *error);

/* The learning rate of the next step: the optimizer's, scaled and warmed up. */
double tdi_training_rate(const td_training *training);

/* The names of the logs that there will be after a step, or at an epoch's end. */
void tdi_log_names(const td_training *training, bool epoch, td_logs *names);
/* A log's value; NULL: there is no such log. */
const double *tdi_log_value(const td_logs *logs, const char *name);
/* Adds or replaces a log; nothing is added when TD_MAX_LOGS are there. */
void tdi_log_set(td_logs *logs, const char *name, double value);

#endif
