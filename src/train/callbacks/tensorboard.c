/* tensorboard.c - Keras's TensorBoard callback: its folders, tags and steps, without TensorFlow. */
#define _GNU_SOURCE
#include "train/callbacks/tensorboard.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/keras.h"
#include "model/model.h"
#include "train/backup/state.h"

enum { TRAIN, VALIDATION, RUN, WRITERS };

typedef struct tensorboard {
    td_tensorboard_args args;
    char *folders[WRITERS];
    tdi_events *writers[WRITERS]; /* made when there is something to write */
    double epoch_began;
    bool broken; /* a file could not be written: nothing more is */
} tensorboard;

/* ---- files ---- */

static void close_writers(tensorboard *self)
{
    for (int w = 0; w < WRITERS; w++) {
        tdi_events_close(self->writers[w]);
        self->writers[w] = NULL;
    }
}

/* A failure to write is logged and ends the writing, but not the training. */
static void give_up(tensorboard *self, td_training *training, const tdi_error *error)
{
    char line[sizeof error->message + 64];
    snprintf(line, sizeof line, "TensorBoard: %s; the training goes on without it", error->message);
    tdi_log(training->model->context, TD_LOG_WARNING, "%s", line);
    close_writers(self);
    self->broken = true;
}

/* The writer of a folder; NULL once something could not be written. */
static tdi_events *writer(tensorboard *self, td_training *training, int which)
{
    tdi_error error = {0};
    if (self->broken || self->writers[which])
        return self->writers[which];
    if (tdi_events_create(self->folders[which], &self->writers[which], &error) != TD_OK)
        give_up(self, training, &error);
    return self->writers[which];
}

static void flush(tensorboard *self, td_training *training)
{
    tdi_error error = {0};
    for (int w = 0; w < WRITERS && !self->broken; w++)
        if (self->writers[w] && tdi_events_flush(self->writers[w], &error) != TD_OK)
            give_up(self, training, &error);
}

/* ---- the beginning ---- */

static td_status write_model(const tensorboard *self, tdi_events *events, td_model *model, tdi_error *error)
{
    if (self->args.write_graph == TD_NO)
        return TD_OK;
    char *json = tdi_keras_json(model);
    if (!json)
        return tdi_no_memory(error);
    tdi_events_keras_model(events, "keras", json);
    free(json);
    return tdi_tensorboard_graph(events, model, error);
}

static td_status begin(void *user, td_training *training)
{
    tensorboard *self = user;
    close_writers(self);
    self->broken = false;
    self->epoch_began = tdi_seconds();
    if (training->resumed) /* what stands at the beginning is in the files of before */
        return TD_OK;
    tdi_events *train = writer(self, training, TRAIN);
    if (train)
        TDI_TRY(write_model(self, train, training->model, &training->error));
    tdi_events *run = self->args.write_hparams == TD_NO ? NULL : writer(self, training, RUN);
    if (run)
        TDI_TRY(tdi_tensorboard_hparams(run, training, self->folders[RUN]));
    flush(self, training);
    return TD_OK;
}

static td_status epoch_begin(void *user, td_training *training)
{
    tensorboard *self = user;
    (void)training;
    self->epoch_began = tdi_seconds();
    return TD_OK;
}

/* ---- scalars ---- */

static void write_scalar(tdi_events *events, const char *kind, const char *name, int64_t step, double value)
{
    char tag[TD_MAX_LOG_NAME + 16];
    snprintf(tag, sizeof tag, "%s_%s", kind, name);
    tdi_events_scalar(events, tag, step, value);
}

static td_status batch_end(void *user, td_training *training, const td_logs *logs)
{
    tdi_events *events = writer(user, training, TRAIN);
    for (int i = 0; events && i < logs->count; i++)
        write_scalar(events, "batch", logs->entry[i].name, training->batches, logs->entry[i].value);
    flush(user, training);
    return TD_OK;
}

static void write_epoch(tensorboard *self, td_training *training, const td_epoch *epoch)
{
    for (int i = 0; i < epoch->logs.count; i++) {
        const char *name = epoch->logs.entry[i].name;
        bool validation = strncmp(name, "val_", 4) == 0;
        if (strcmp(name, "learning_rate") == 0)
            continue;
        tdi_events *events = writer(self, training, validation ? VALIDATION : TRAIN);
        if (events)
            write_scalar(events, "epoch", name + (validation ? 4 : 0), epoch->epoch, epoch->logs.entry[i].value);
    }
}

/* As in Keras, the learning rate that the callbacks before this one have left. */
static void write_rates(tensorboard *self, td_training *training, const td_epoch *epoch)
{
    tdi_events *train = writer(self, training, TRAIN);
    double seconds = tdi_seconds() - self->epoch_began;
    if (train)
        tdi_events_scalar(train, "epoch_learning_rate", epoch->epoch, tdi_training_rate(training));
    if (train && self->args.write_steps_per_second == TD_YES)
        tdi_events_scalar(train, "epoch_steps_per_second", epoch->epoch, (double)epoch->steps / seconds);
}

static td_status epoch_end(void *user, td_training *training, td_epoch *epoch)
{
    tensorboard *self = user;
    write_epoch(self, training, epoch);
    write_rates(self, training, epoch);
    int every = self->args.histogram_freq;
    tdi_events *train = every && epoch->epoch % every == 0 ? writer(self, training, TRAIN) : NULL;
    if (train)
        TDI_TRY(tdi_tensorboard_weights(train, training, self->args.write_images == TD_YES, &training->error));
    flush(self, training);
    return TD_OK;
}

static td_status end(void *user, td_training *training)
{
    tensorboard *self = user;
    if (self->writers[RUN])
        tdi_events_session_end(self->writers[RUN], true);
    flush(self, training);
    close_writers(self);
    return TD_OK;
}

/* ---- backups ---- */

/* The file of before goes on behind the step that is resumed from; when it is gone another is begun. Of a backup only
 * the file's name is believed. */
static void reopen(tensorboard *self, const char *name, int which)
{
    char *path;
    if (strchr(name, '/') || strncmp(name, "events.out.tfevents", 19) != 0)
        return;
    if (asprintf(&path, "%s/%s", self->folders[which], name) < 0)
        return;
    tdi_events_reopen(path, &self->writers[which], NULL);
    free(path);
}

static void visit_writer(tensorboard *self, td_state *state, int which)
{
    static const char *const logs[WRITERS] = {[TRAIN] = "train", [VALIDATION] = "validation", [RUN] = "run"};
    char key[32], *name = NULL;
    bool writes = self->writers[which] != NULL;
    snprintf(key, sizeof key, "writes %s", logs[which]);
    tdi_state_flag(state, key, &writes);
    if (!writes)
        return;
    if (!state->restoring)
        name = strdup(strrchr(tdi_events_path(self->writers[which]), '/') + 1);
    snprintf(key, sizeof key, "%s name", logs[which]);
    tdi_state_text(state, key, &name);
    if (state->restoring && name)
        reopen(self, name, which);
    td_state_file(state, logs[which], NULL, self->writers[which] ? tdi_events_file(self->writers[which]) : NULL);
    free(name);
}

static void visit_state(void *user, td_training *training, td_state *state)
{
    (void)training;
    for (int w = 0; w < WRITERS; w++)
        visit_writer(user, state, w);
}

/* ---- life ---- */

static void release(void *user)
{
    tensorboard *self = user;
    close_writers(self);
    for (int w = 0; w < WRITERS; w++)
        free(self->folders[w]);
    free(self);
}

static bool name_folders(tensorboard *self, const char *log_dir)
{
    static const char *const below[WRITERS] = {[TRAIN] = "/train", [VALIDATION] = "/validation", [RUN] = ""};
    for (int w = 0; w < WRITERS; w++)
        if (asprintf(&self->folders[w], "%s%s", log_dir, below[w]) < 0) {
            self->folders[w] = NULL;
            return false;
        }
    return true;
}

td_callback *td_tensorboard_(const td_tensorboard_args *args)
{
    td_callback_functions functions = {.train_begin = begin,
                                       .epoch_begin = epoch_begin,
                                       .batch_end = args->update_freq ? batch_end : NULL,
                                       .every = args->update_freq,
                                       .epoch_end = epoch_end,
                                       .train_end = end,
                                       .release = release,
                                       .name = "TensorBoard",
                                       .state = visit_state};
    if (args->update_freq < 0 || args->histogram_freq < 0)
        return tdi_callback_poison("td_tensorboard", "histogram_freq and update_freq cannot be negative");
    tensorboard *self = calloc(1, sizeof *self);
    if (!self)
        return tdi_callback_poison("td_tensorboard", "out of memory");
    self->args = *args;
    if (name_folders(self, args->log_dir ? args->log_dir : "logs"))
        return tdi_callback_writes(tdi_callback_create(&functions, self));
    release(self);
    return tdi_callback_poison("td_tensorboard", "out of memory");
}
