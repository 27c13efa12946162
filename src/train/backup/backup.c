/* backup.c - Keras's BackupAndRestore, resumed to the step: when a run is saved, and how its newest good backup is
 * found.
 *
 * The folder belongs to one run at a time, which holds a lock on it. Its two files are written in turn, so that one of
 * them is whole whenever the process dies; the one with the higher number is the newer. A run begins by writing a
 * backup, or by going back to one. The callback comes last in td_fit's list, so that it saves what the others have just
 * come to remember. */
#define _GNU_SOURCE
#include "train/backup/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "files/folders.h"
#include "runtime/runtime.h"
#include "train/backup/backup_writer.h"
#include "train/backup/run_contents.h"
#include "tune/tuning_cache_file.h"

typedef struct backup {
    char *folder;
    bool twice, keep;
    int64_t save_freq; /* steps, 0: epochs */
    int lock;          /* the folder, opened; -1 before */
    tdi_backup_writer *writer;
    json_t *facts;
    td_state found; /* the backup that was read, until the callbacks have been restored from it */
    bool failing;   /* the last save failed, and that was logged */
    int64_t sequence;
    char *tuned; /* the exported tuning cache as text, of n_tuned answers */
    int n_tuned;
} backup;

/* ---- saving ---- */

/* Exports again only when a plan or configuration has used another answer. An empty cache is saved too: it says that
 * the run may time. */
static void save_tuning_cache(backup *self, td_state *state, const td_model *model)
{
    const tdi_tuning_cache *cache = model->compiled.by_rules ? NULL : tdi_tuning_cache_of(model->context);
    int used = 0;
    for (int i = 0; cache && i < cache->all.count; i++)
        used += cache->all.at[i]->used;
    if (cache && (!self->tuned || used != self->n_tuned)) {
        json_t *json = tdi_tuning_cache_export(cache);
        free(self->tuned);
        self->tuned = json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(5)) : NULL;
        self->n_tuned = used;
        json_decref(json);
    }
    state->tuned_text = self->tuned ? strdup(self->tuned) : NULL;
    if (cache && !state->tuned_text)
        tdi_no_memory(&state->error);
}

static void tell(backup *self, td_context *context, const tdi_error *error)
{
    if (error->status != TD_OK && !self->failing)
        tdi_log(context, TD_LOG_WARNING, "BackupAndRestore: %s; the training goes on, %s", error->message,
                tdi_backup_writer_good(self->writer) >= 0 ? "and the backup before it stands"
                                                          : "and there is no backup so far");
    else if (error->status == TD_OK && self->failing)
        tdi_log(context, TD_LOG_INFO, "BackupAndRestore: backups are written again");
    self->failing = error->status != TD_OK;
}

static void save(backup *self, td_training *training)
{
    tdi_error outcome;
    td_state *state = tdi_backup_writer_take(self->writer);
    tdi_state_begin(state);
    json_object_set(state->root, "facts", self->facts);
    tdi_run_save(state, training, ++self->sequence);
    save_tuning_cache(self, state, training->model);
    outcome = state->error;
    if (outcome.status == TD_OK) {
        tdi_backup_writer_outcome(self->writer, &outcome);
        tdi_backup_writer_give(self->writer, state);
    }
    tell(self, training->model->context, &outcome);
}

/* Waits until all is written. */
static void finish(backup *self, td_context *context)
{
    tdi_error outcome;
    tdi_backup_writer_finish(self->writer);
    tdi_backup_writer_outcome(self->writer, &outcome);
    tell(self, context, &outcome);
}

static td_status backup_batch(void *user, td_training *training, const td_logs *logs)
{
    (void)logs;
    save(user, training);
    return TD_OK;
}

static td_status backup_epoch(void *user, td_training *training, td_epoch *epoch)
{
    backup *self = user;
    (void)epoch;
    if (!self->save_freq)
        save(self, training);
    return TD_OK;
}

/* ---- the folder ---- */

/* Removes the files that a killed run was writing. */
static void drop_unfinished(int folder)
{
    DIR *list = fdopendir(dup(folder));
    const struct dirent *entry;
    while (list && (entry = readdir(list)))
        if (strncmp(entry->d_name, ".tandem-", 8) == 0 && strstr(entry->d_name, ".tmp"))
            unlinkat(folder, entry->d_name, 0);
    if (list)
        closedir(list);
}

static td_status open_folder(backup *self, tdi_error *error)
{
    int reason = tdi_make_folders(self->folder, 0777);
    self->lock = open(self->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->lock < 0 || access(self->folder, W_OK | X_OK) != 0)
        return tdi_fail(error, TD_IO, "BackupAndRestore: the folder \"%.200s\" cannot be used: %s", self->folder,
                        strerror(reason ? reason : errno));
    if (flock(self->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "BackupAndRestore: the folder \"%.200s\" is in use by another run; give each run its own",
                        self->folder);
    drop_unfinished(self->lock);
    return TD_OK;
}

static td_status remove_backups(const char *folder)
{
    char path[TDI_BACKUP_PATH];
    td_status status = TD_OK;
    for (int which = 0; which < 2; which++) {
        tdi_backup_path(folder, which, path);
        if (tdi_state_may_replace(path, NULL) == TD_OK && unlink(path) != 0 && errno != ENOENT)
            status = TD_IO;
    }
    rmdir(folder); /* what else lies in it stays */
    return status;
}

td_status td_backup_remove(const char *backup_dir)
{
    return backup_dir && *backup_dir ? remove_backups(backup_dir) : TD_INVALID_ARGUMENT;
}

/* ---- restoring ---- */

/* Reads the newest backup that is whole into self->found; *good is its file, -1 when there is none. */
static td_status find(backup *self, td_context *context, int *good, tdi_error *error)
{
    tdi_error reason = {0};
    *good = -1;
    for (int which = 0; which < 2; which++) {
        char path[TDI_BACKUP_PATH];
        td_state state;
        tdi_error own = {0};
        tdi_backup_path(self->folder, which, path);
        td_status status = tdi_state_may_replace(path, &own);
        if (status != TD_OK)
            return tdi_fail(error, status, "BackupAndRestore: %s", own.message);
        status = tdi_state_read(&state, path, &own);
        int64_t sequence = status == TD_OK ? tdi_run_sequence(&state) : -1;
        if (status == TD_OK && sequence < 0)
            tdi_fail(&own, TD_BAD_FILE, "%.200s: %s", path, state.error.message);
        if (sequence > self->sequence) {
            tdi_state_release(&self->found);
            self->found = state;
            self->sequence = sequence;
            *good = which;
        } else if (status == TD_OK) {
            tdi_state_release(&state);
        }
        if (own.status != TD_OK && own.status != TD_NOT_FOUND) {
            tdi_log(context, TD_LOG_WARNING, "BackupAndRestore: %s", own.message);
            reason = own;
        }
    }
    if (*good >= 0 || reason.status == TD_OK)
        return TD_OK;
    return tdi_fail(error, reason.status,
                    "BackupAndRestore: no backup in \"%.200s\" can be read: %s; remove it to start afresh",
                    self->folder, reason.message);
}

/* Refuses a learning rate that is neither the one that the run began with nor the one that it had reached. */
static td_status check_rate(backup *self, const json_t *facts, const td_model *model, tdi_error *error)
{
    double begun = json_number_value(json_object_get(facts, "learning rate")), reached = begun;
    double rate = (double)model->state->optimizer.learning_rate;
    char then[TDI_FACTS_TEXT], now[TDI_FACTS_TEXT];
    tdi_state_enter(&self->found, "model", NULL);
    td_state_number(&self->found, "learning rate", &reached);
    if (rate == begun || rate == reached)
        return TD_OK;
    snprintf(then, sizeof then, "%g", begun);
    snprintf(now, sizeof now, "%g", rate);
    return tdi_facts_refuse(self->folder, "learning rate", then, now, error);
}

static td_status refuse_seed(const backup *self, uint64_t before, uint64_t after, tdi_error *error)
{
    char then[TDI_FACTS_TEXT], now[TDI_FACTS_TEXT];
    snprintf(then, sizeof then, "%llu", (unsigned long long)before);
    snprintf(now, sizeof now, "%llu", (unsigned long long)after);
    return tdi_facts_refuse(self->folder, "seed", then, now, error);
}

static td_status resume(backup *self, td_training *training, const tdi_run *run, tdi_error *error)
{
    char line[512];
    uint64_t seed = training->seed;
    const json_t *facts = json_object_get(self->found.root, "facts");
    TDI_TRY(tdi_facts_compare(facts, self->facts, self->folder, error));
    TDI_TRY(check_rate(self, facts, training->model, error));
    td_status status = tdi_run_restore(&self->found, training, run, error);
    if (status != TD_OK)
        tdi_error_prefix(error, "BackupAndRestore: the backup in \"%.200s\"", self->folder);
    else if (seed && seed != training->seed)
        status = refuse_seed(self, training->seed, seed, error);
    snprintf(line, sizeof line, "Resuming from %.200s: epoch %d, step %lld of %lld.", self->folder, training->epoch + 1,
             (long long)training->steps, (long long)run->steps);
    if (status == TD_OK)
        td_training_say(training, line);
    return status;
}

static void backup_release(void *user);

static backup *backup_of(const td_training *training, int *count)
{
    backup *found = NULL;
    *count = 0;
    for (int i = 0; training->callbacks && training->callbacks[i]; i++)
        if (training->callbacks[i]->functions.release == backup_release) {
            found = training->callbacks[i]->user;
            ++*count;
        }
    return found;
}

td_status tdi_backup_begin(td_training *training, const tdi_run *run, tdi_error *error)
{
    int good, count;
    backup *self = backup_of(training, &count);
    if (!self)
        return TD_OK;
    if (count > 1)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "a td_fit has one BackupAndRestore; %d were given", count);
    TDI_TRY(open_folder(self, error));
    TDI_TRY(tdi_run_facts(training->model, run, &self->facts, error));
    json_object_set_new(self->facts, "learning rate",
                        json_real((double)training->model->state->optimizer.learning_rate));
    TDI_TRY(find(self, training->model->context, &good, error));
    if (good >= 0)
        TDI_TRY(resume(self, training, run, error));
    return tdi_backup_writer_create(self->folder, good, self->twice, &self->writer, error);
}

static td_status give_back(backup *self, td_training *training)
{
    td_state *found = &self->found;
    found->training = training;
    tdi_run_visit_callbacks(found, training);
    td_status status = tdi_state_outcome(found, &training->error);
    if (status != TD_OK)
        tdi_error_prefix(&training->error, "BackupAndRestore: the backup in \"%.200s\"", self->folder);
    tdi_state_release(found);
    return status;
}

/* Called behind the train_begin of all other callbacks, which has cleared what they remember. A new run saves before
 * its first step: were it killed earlier, what it had written to logs would stay in them. */
static td_status backup_train_begin(void *user, td_training *training)
{
    backup *self = user;
    if (training->resumed)
        return give_back(self, training);
    save(self, training);
    finish(self, training->model->context);
    return TD_OK;
}

/* ---- the end ---- */

void tdi_backup_stopped(td_training *training)
{
    int count;
    backup *self = backup_of(training, &count);
    if (!self)
        return;
    save(self, training);
    finish(self, training->model->context);
}

static td_status backup_train_end(void *user, td_training *training)
{
    backup *self = user;
    finish(self, training->model->context);
    return self->keep || remove_backups(self->folder) == TD_OK
               ? TD_OK
               : tdi_fail(&training->error, TD_IO, "BackupAndRestore: the backups in \"%.200s\" cannot be removed: %s",
                          self->folder, strerror(errno));
}

static void backup_release(void *user)
{
    backup *self = user;
    tdi_backup_writer_free(self->writer);
    tdi_state_release(&self->found);
    json_decref(self->facts);
    if (self->lock >= 0)
        close(self->lock);
    free(self->tuned);
    free(self->folder);
    free(self);
}

td_callback *td_backup_and_restore_(const td_backup_and_restore_args *args)
{
    td_callback_functions functions = {.train_begin = backup_train_begin,
                                       .epoch_end = backup_epoch,
                                       .train_end = backup_train_end,
                                       .release = backup_release,
                                       .every = args->save_freq,
                                       .batch_end = args->save_freq ? backup_batch : NULL};
    if (!args->backup_dir || !*args->backup_dir || strlen(args->backup_dir) > 4000)
        return tdi_callback_poison("td_backup_and_restore", "backup_dir: the path of a folder was expected");
    if (args->save_freq < 0)
        return tdi_callback_poison("td_backup_and_restore", "save_freq cannot be negative");
    backup *self = calloc(1, sizeof *self);
    char *folder = strdup(args->backup_dir);
    if (!self || !folder) {
        free(self);
        free(folder);
        return tdi_callback_poison("td_backup_and_restore", "out of memory");
    }
    *self = (backup){.folder = folder,
                     .twice = args->double_checkpoint != TD_NO,
                     .keep = args->delete_checkpoint == TD_NO,
                     .save_freq = args->save_freq,
                     .lock = -1};
    td_callback *made = tdi_callback_writes(tdi_callback_create(&functions, self));
    made->last = made->error.status == TD_OK;
    return made;
}
