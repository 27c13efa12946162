/* early_stopping.c - Keras's EarlyStopping. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model/model.h"
#include "train/callbacks/monitor.h"

typedef struct early_stopping {
    td_early_stopping_args args;
    tdi_monitor monitor;
    int wait, stopped_epoch, best_epoch;
    float *best; /* the weights of the best epoch; NULL: none yet */
} early_stopping;

static td_status keep_weights(early_stopping *self, const td_training *training)
{
    const td_model *model = training->model;
    size_t size = (size_t)model->architecture->states * sizeof *self->best;
    if (self->args.restore_best_weights != TD_YES)
        return TD_OK;
    if (!self->best)
        self->best = tdi_buffer_create(size);
    if (!self->best)
        return TD_NO_MEMORY;
    memcpy(self->best, tdi_model_values(model), size);
    self->best_epoch = training->epoch;
    return TD_OK;
}

static td_status check(const void *user, const td_training *training, bool open, tdi_error *error)
{
    const early_stopping *self = user;
    (void)error;
    tdi_monitor_check(&self->monitor, "EarlyStopping", training, true, open);
    return TD_OK;
}

static td_status train_begin(void *user, td_training *training)
{
    early_stopping *self = user;
    (void)training;
    self->wait = 0;
    self->stopped_epoch = 0;
    self->monitor.has_best = false;
    tdi_buffer_free(self->best);
    self->best = NULL;
    return TD_OK;
}

static td_status epoch_end(void *user, td_training *training, td_epoch *epoch)
{
    early_stopping *self = user;
    const double *value = tdi_monitor_value(&self->monitor, "EarlyStopping", training, &epoch->logs);
    if (!value || training->epoch < self->args.start_from_epoch)
        return TD_OK;
    if (!self->best)
        TDI_TRY(keep_weights(self, training));
    self->wait++;
    if (tdi_monitor_keep(&self->monitor, *value)) {
        TDI_TRY(keep_weights(self, training));
        const td_optional *baseline = &self->args.baseline;
        if (!baseline->is_set || tdi_monitor_improves(&self->monitor, *value, baseline->value))
            self->wait = 0;
    } else if (self->wait >= self->args.patience && training->epoch > 0) {
        self->stopped_epoch = training->epoch;
        td_training_stop(training);
    }
    return TD_OK;
}

static td_status train_end(void *user, td_training *training)
{
    early_stopping *self = user;
    char line[128];
    bool verbose = self->args.verbose == TD_YES;
    snprintf(line, sizeof line, "Epoch %d: early stopping", self->stopped_epoch + 1);
    if (self->stopped_epoch > 0 && verbose)
        td_training_say(training, line);
    if (!self->best)
        return TD_OK;
    snprintf(line, sizeof line, "Restoring model weights from the end of the best epoch: %d.", self->best_epoch + 1);
    if (verbose)
        td_training_say(training, line);
    memcpy(tdi_model_write_values(training->model), self->best,
           (size_t)training->model->architecture->states * sizeof *self->best);
    return TD_OK;
}

static void visit_state(void *user, td_training *training, td_state *state)
{
    early_stopping *self = user;
    const td_model *model = training->model;
    bool kept = self->best != NULL;
    tdi_monitor_state(&self->monitor, state);
    tdi_state_int(state, "wait", &self->wait);
    tdi_state_int(state, "stopped epoch", &self->stopped_epoch);
    tdi_state_int(state, "best epoch", &self->best_epoch);
    tdi_state_flag(state, "keeps weights", &kept);
    if (!kept || self->args.restore_best_weights != TD_YES)
        return;
    if (!self->best)
        self->best = tdi_buffer_create((size_t)model->architecture->states * sizeof *self->best);
    if (self->best)
        tdi_state_variables(state, "best", model, false, self->best);
    else
        tdi_no_memory(&state->error);
}

static void release(void *user)
{
    early_stopping *self = user;
    tdi_buffer_free(self->best);
    free(self);
}

td_callback *td_early_stopping_(const td_early_stopping_args *args)
{
    static const td_callback_functions functions = {.train_begin = train_begin,
                                                    .epoch_end = epoch_end,
                                                    .train_end = train_end,
                                                    .release = release,
                                                    .name = "EarlyStopping",
                                                    .state = visit_state};
    if (args->patience < 0 || args->start_from_epoch < 0)
        return tdi_callback_poison("td_early_stopping", "patience and start_from_epoch cannot be negative");
    if (!isfinite(args->min_delta) || (unsigned)args->mode > TD_MAX)
        return tdi_callback_poison("td_early_stopping",
                                   "min_delta: a finite number, and a td_monitor_mode, were expected");
    early_stopping *self = calloc(1, sizeof *self);
    if (!self)
        return tdi_callback_poison("td_early_stopping", "out of memory");
    self->args = *args;
    tdi_monitor_init(&self->monitor, args->monitor, args->mode, args->min_delta);
    return tdi_callback_checked(&functions, self, check);
}
