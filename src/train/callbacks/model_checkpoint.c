/* model_checkpoint.c - Keras's ModelCheckpoint. A save that fails does not end the training: it is said, the file
 * before it stands, and the failure is td_fit's when the last save is the one that failed. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "files/folders.h"
#include "formats/keras.h"
#include "formats/weights_file.h"
#include "train/callbacks/monitor.h"
#include "train/callbacks/path_pattern.h"

#define MAX_PATH 4096

typedef struct checkpoint {
    char *pattern;
    tdi_monitor monitor;
    bool best_only, weights_only, verbose;
    int64_t save_freq; /* steps between saves; 0: epochs */
    td_optional threshold;
    tdi_error failed; /* the last save's failure */
} checkpoint;

/* The file may be in a folder that does not exist yet. */
static td_status save(const checkpoint *self, td_model *model, char *path, tdi_error *error)
{
    char *name = strrchr(path, '/');
    int reason = 0;
    if (name && name != path) {
        *name = '\0';
        reason = tdi_make_folders(path, 0777);
        *name = '/';
    }
    if (reason)
        return tdi_fail(error, TD_IO, "cannot make the folder of \"%s\": %s", path, strerror(reason));
    return self->weights_only ? tdi_weights_write(model, path, error) : tdi_keras_write(model, path, error);
}

/* Without the monitored log it saves, as Keras does. */
static bool is_wanted(checkpoint *self, td_training *training, const td_logs *logs, const char *path)
{
    char line[MAX_PATH + 256];
    const double *value = self->best_only ? tdi_monitor_value(&self->monitor, "ModelCheckpoint", training, logs) : NULL;
    bool first = !self->monitor.has_best;
    double before = self->monitor.best;
    bool wanted = !value || tdi_monitor_keep(&self->monitor, *value);
    if (!value)
        snprintf(line, sizeof line, "Epoch %d: saving model to %s", training->epoch + 1, path);
    else if (wanted && first)
        snprintf(line, sizeof line, "Epoch %d: %s improved from None to %.5f, saving model to %s", training->epoch + 1,
                 self->monitor.name, *value, path);
    else if (wanted)
        snprintf(line, sizeof line, "Epoch %d: %s improved from %.5f to %.5f, saving model to %s", training->epoch + 1,
                 self->monitor.name, before, *value, path);
    else
        snprintf(line, sizeof line, "Epoch %d: %s did not improve from %.5f", training->epoch + 1, self->monitor.name,
                 before);
    if (self->verbose)
        td_training_say(training, line);
    return wanted;
}

/* A name may have the learning rate even where it does not change, unlike in Keras. */
static td_logs with_rate(const td_logs *logs, double rate)
{
    td_logs all = *logs;
    if (!tdi_log_value(logs, "learning_rate"))
        tdi_log_set(&all, "learning_rate", rate);
    return all;
}

static void save_when_wanted(checkpoint *self, td_training *training, const td_logs *logs)
{
    char path[MAX_PATH];
    int64_t batch = self->save_freq ? training->steps : 0;
    tdi_error failed = {0};
    td_logs named = with_rate(logs, tdi_training_rate(training));
    if (tdi_path_fill(self->pattern, training->epoch + 1, batch, &named, path, sizeof path, &failed) == TD_OK) {
        if (!is_wanted(self, training, logs, path))
            return;
        save(self, training->model, path, &failed);
    }
    self->failed = failed;
    if (failed.status != TD_OK) {
        char line[sizeof failed.message + 64];
        snprintf(line, sizeof line, "ModelCheckpoint: %s; the training goes on", failed.message);
        td_training_say(training, line);
    }
}

/* Checks before the first step what Keras finds out at the first save. */
static td_status checkpoint_check(const void *user, const td_training *training, bool open, tdi_error *error)
{
    const checkpoint *self = user;
    td_logs names;
    if (self->best_only)
        tdi_monitor_check(&self->monitor, "ModelCheckpoint", training, !self->save_freq, open && !self->save_freq);
    tdi_log_names(training, !self->save_freq, &names);
    names = with_rate(&names, 0);
    td_status status = tdi_path_check(self->pattern, self->save_freq > 0, &names, open && !self->save_freq, error);
    if (status != TD_OK)
        tdi_error_prefix(error, "ModelCheckpoint");
    return status;
}

static td_status checkpoint_begin(void *user, td_training *training)
{
    checkpoint *self = user;
    (void)training;
    self->monitor.has_best = self->threshold.is_set;
    self->monitor.best = self->threshold.value;
    return TD_OK;
}

static td_status checkpoint_batch(void *user, td_training *training, const td_logs *logs)
{
    save_when_wanted(user, training, logs);
    return TD_OK;
}

static td_status checkpoint_epoch(void *user, td_training *training, td_epoch *epoch)
{
    checkpoint *self = user;
    if (!self->save_freq)
        save_when_wanted(self, training, &epoch->logs);
    return TD_OK;
}

static td_status checkpoint_end(void *user, td_training *training)
{
    checkpoint *self = user;
    if (self->failed.status == TD_OK)
        return TD_OK;
    return tdi_fail(&training->error, self->failed.status, "ModelCheckpoint: %s", self->failed.message);
}

static void checkpoint_state(void *user, td_training *training, td_state *state)
{
    checkpoint *self = user;
    (void)training;
    tdi_monitor_state(&self->monitor, state);
}

static void checkpoint_release(void *user)
{
    checkpoint *self = user;
    free(self->pattern);
    free(self);
}

td_callback *td_model_checkpoint_(const td_model_checkpoint_args *args)
{
    td_callback_functions functions = {.train_begin = checkpoint_begin,
                                       .epoch_end = checkpoint_epoch,
                                       .train_end = checkpoint_end,
                                       .release = checkpoint_release,
                                       .name = "ModelCheckpoint",
                                       .state = checkpoint_state};
    bool weights_only = args->save_weights_only == TD_YES;
    if (!tdi_ends_in(args->filepath, weights_only ? TDI_WEIGHTS_END : ".keras"))
        return tdi_callback_poison("td_model_checkpoint",
                                   weights_only
                                       ? "filepath: with save_weights_only a name that ends in .weights.h5 was "
                                         "expected"
                                       : "filepath: a name that ends in .keras was expected (with "
                                         "save_weights_only, .weights.h5)");
    if (args->save_freq < 0)
        return tdi_callback_poison("td_model_checkpoint", "save_freq cannot be negative");
    if ((unsigned)args->mode > TD_MAX)
        return tdi_callback_poison("td_model_checkpoint", "mode: a td_monitor_mode was expected");
    checkpoint *self = calloc(1, sizeof *self);
    char *pattern = strdup(args->filepath);
    if (!self || !pattern) {
        free(self);
        free(pattern);
        return tdi_callback_poison("td_model_checkpoint", "out of memory");
    }
    *self = (checkpoint){.pattern = pattern,
                         .best_only = args->save_best_only == TD_YES,
                         .weights_only = weights_only,
                         .verbose = args->verbose == TD_YES,
                         .save_freq = args->save_freq,
                         .threshold = args->initial_value_threshold};
    tdi_monitor_init(&self->monitor, args->monitor, args->mode, 0);
    functions.batch_end = args->save_freq ? checkpoint_batch : NULL;
    functions.every = args->save_freq;
    return tdi_callback_writes(tdi_callback_checked(&functions, self, checkpoint_check));
}
