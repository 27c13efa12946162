/* model_checkpoint.c - Keras's ModelCheckpoint. A save that fails does not end the training: it is said, the file
 * before it stands, and the failure is td_fit's when the last save is the one that failed. */
#include <stdlib.h>
#include <string.h>

#include "files/folders.h"
#include "formats/keras.h"
#include "train/monitor.h"
#include "train/path_pattern.h"

#define MAX_PATH 4096

typedef struct checkpoint {
    char *pattern;
    tdi_monitor monitor;
    bool best_only, verbose;
    int64_t save_freq; /* steps between saves; 0: epochs */
    td_optional threshold;
    tdi_error failed; /* the last save's failure */
} checkpoint;

/* Also in a folder that is not there yet. */
static td_status save(td_model *model, char *path, tdi_error *error)
{
    char *name = strrchr(path, '/');
    int reason = 0;
    if (name && name != path) {
        *name = '\0';
        reason = tdi_make_folders(path, 0777);
        *name = '/';
    }
    return reason ? tdi_fail(error, TD_IO, "cannot make the folder of \"%s\": %s", path, strerror(reason))
                  : tdi_keras_write(model, path, error);
}

/* Keras: without the monitored log, it saves. */
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

static void save_when_wanted(checkpoint *self, td_training *training, const td_logs *logs)
{
    char path[MAX_PATH];
    int64_t batch = self->save_freq ? training->steps : 0;
    tdi_error failed = {0};
    if (tdi_path_fill(self->pattern, training->epoch + 1, batch, logs, path, sizeof path, &failed) == TD_OK) {
        if (!is_wanted(self, training, logs, path))
            return;
        save(training->model, path, &failed);
    }
    self->failed = failed;
    if (failed.status != TD_OK) {
        char line[sizeof failed.message + 64];
        snprintf(line, sizeof line, "ModelCheckpoint: %s; the training goes on", failed.message);
        td_training_say(training, line);
    }
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

static bool ends_with_keras(const char *path)
{
    size_t length = path ? strlen(path) : 0;
    return length > 6 && strcmp(path + length - 6, ".keras") == 0;
}

td_callback *td_model_checkpoint_(const td_model_checkpoint_args *args)
{
    td_callback_functions functions = {.train_begin = checkpoint_begin,
                                       .epoch_end = checkpoint_epoch,
                                       .train_end = checkpoint_end,
                                       .release = checkpoint_release,
                                       .name = "ModelCheckpoint",
                                       .state = checkpoint_state};
    if (!ends_with_keras(args->filepath))
        return tdi_callback_poison("td_model_checkpoint", "filepath: a name that ends in .keras was expected");
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
                         .verbose = args->verbose == TD_YES,
                         .save_freq = args->save_freq,
                         .threshold = args->initial_value_threshold};
    tdi_monitor_init(&self->monitor, args->monitor, args->mode, 0);
    functions.batch_end = args->save_freq ? checkpoint_batch : NULL;
    functions.every = args->save_freq;
    return td_callback_create(&functions, self);
}
