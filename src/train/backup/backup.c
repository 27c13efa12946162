/* backup.c - Keras's BackupAndRestore, resumed to the step. */
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
#include "tune/tuning_cache_file.h"

typedef struct backup {
    char *folder;
    bool twice, keep;
    int64_t save_freq; /* steps, 0: epochs */
    int lock;          /* the folder, opened; -1 before */
    tdi_backup_writer *writer;
    json_t *facts;
    td_state found; /* until the callbacks have had what is theirs */
    bool failing;   /* and said so */
    int64_t sequence;
    char *tuned; /* the exported tuning cache as text, of n_tuned answers */
    int n_tuned;
} backup;

/* ---- what a run is ---- */

typedef struct moment {
    int64_t sequence, seed;
    int epoch;
    int64_t steps, batches;
    double seconds, seconds_waiting;
    bool begun, stop, rate_changes, has_last;
} moment;

static void visit_moment(td_state *state, moment *m)
{
    if (!tdi_state_enter(state, "run", NULL) && state->restoring)
        tdi_fail(&state->error, TD_BAD_FILE, "it has no part \"run\"");
    td_state_count(state, "sequence", &m->sequence);
    td_state_count(state, "seed", &m->seed);
    tdi_state_int(state, "epoch", &m->epoch);
    td_state_count(state, "steps", &m->steps);
    td_state_count(state, "batches", &m->batches);
    td_state_number(state, "seconds", &m->seconds);
    td_state_number(state, "seconds waiting", &m->seconds_waiting);
    tdi_state_flag(state, "begun", &m->begun);
    tdi_state_flag(state, "stop", &m->stop);
    tdi_state_flag(state, "rate changes", &m->rate_changes);
    tdi_state_flag(state, "has last", &m->has_last);
}

static void visit_logs(td_state *state, td_logs *logs)
{
    const char *name;
    json_t *value;
    tdi_state_enter(state, "last", "logs");
    for (int i = 0; !state->restoring && i < logs->count; i++)
        td_state_number(state, logs->entry[i].name, &logs->entry[i].value);
    if (!state->restoring || state->looking)
        return;
    json_object_foreach(state->part, name, value)
    {
        double number = 0;
        td_state_number(state, name, &number);
        tdi_log_set(logs, name, number);
    }
}

static void visit_last(td_state *state, td_epoch *last)
{
    tdi_state_enter(state, "last", NULL);
    tdi_state_int(state, "epoch", &last->epoch);
    td_state_count(state, "steps", &last->steps);
    td_state_count(state, "samples", &last->samples);
    td_state_number(state, "seconds", &last->seconds);
    td_state_number(state, "seconds waiting", &last->seconds_waiting);
    td_state_number(state, "learning rate", &last->learning_rate);
    visit_logs(state, &last->logs);
}

/* What stateful layers keep from batch to batch. */
static void visit_states(td_state *state, td_model *model)
{
    for (int i = 0; i < model->architecture->layers.count; i++)
        for (int s = 0; s < model->architecture->layers.at[i]->states.count; s++) {
            const tdi_variable *variable = model->architecture->layers.at[i]->states.at[s];
            tdi_state_enter(state, "states", model->architecture->layers.at[i]->name);
            tdi_state_array_of(state, variable->name, TD_FLOAT32, &variable->shape,
                               tdi_model_write_value(model, variable));
        }
}

static void visit_model(td_state *state, td_model *model)
{
    double rate = (double)model->state->optimizer.learning_rate;
    tdi_state_enter(state, "model", NULL);
    td_state_count(state, "iteration", &model->state->iteration);
    td_state_number(state, "learning rate", &rate);
    if (state->restoring && (!(rate >= 0) || !isfinite((float)rate)))
        tdi_fail(&state->error, TD_BAD_FILE, "its learning rate is %g, which cannot be", rate);
    else
        model->state->optimizer.learning_rate = (float)rate;
    tdi_state_enter(state, "weights", NULL);
    tdi_state_variables(state, "", model, false, tdi_model_write_values(model));
    for (int slot = 0; slot < TDI_MAX_SLOTS; slot++) {
        char name[16];
        snprintf(name, sizeof name, "%d", slot);
        tdi_state_enter(state, "slots", name);
        if (tdi_model_slots(model, slot))
            tdi_state_variables(state, "", model, true, tdi_model_write_slots(model, slot));
    }
    visit_states(state, model);
}

void tdi_backup_visit_callbacks(td_state *state, td_training *training)
{
    for (int i = 0; training->callbacks[i]; i++) {
        const td_callback *callback = training->callbacks[i];
        if (!callback->functions.state)
            continue;
        char name[128];
        int before = 0;
        const char *own = callback->functions.name ? callback->functions.name : "callback";
        for (int j = 0; j < i; j++) {
            const char *other = training->callbacks[j]->functions.name;
            before += training->callbacks[j]->functions.state && strcmp(other ? other : "callback", own) == 0;
        }
        snprintf(name, sizeof name, before ? "%.100s_%d" : "%.100s", own, before);
        if (tdi_state_enter(state, "callbacks", name))
            callback->functions.state(callback->user, training, state);
    }
}

/* ---- saving ---- */

static void save_configuration(td_state *state, const td_model *model)
{
    int parts;
    bool float32;
    if (!tdi_runtime_is_chosen(model, &parts, &float32))
        return;
    tdi_state_enter(state, "way", NULL);
    tdi_state_int(state, "parts", &parts);
    tdi_state_flag(state, "float32", &float32);
}

static void save_sums(td_state *state, td_training *training)
{
    const tdi_runtime *runtime = tdi_runtime_own(training->model);
    int count = runtime ? tdi_runtime_sums(runtime, TDI_TRAIN) : 0, parts = count ? tdi_runtime_parts(runtime) : 0;
    double *sums = calloc((size_t)parts * (size_t)count * 2 + 1, sizeof *sums);
    if (!sums)
        tdi_no_memory(&state->error);
    else if (count)
        tdi_runtime_get_sums(runtime, TDI_TRAIN, sums);
    tdi_state_enter(state, "run", NULL);
    if (sums)
        tdi_state_array_of(state, "sums", TD_FLOAT64, &TD_SHAPE(parts, count, 2), sums);
    free(sums);
}

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

/* An epoch that has ended is the next one's begin. */
static moment moment_of(const td_training *training, int64_t sequence)
{
    moment m = {.sequence = sequence,
                .seed = (int64_t)training->seed,
                .epoch = training->epoch,
                .steps = training->steps,
                .batches = training->batches,
                .seconds = training->seconds,
                .seconds_waiting = training->seconds_waiting,
                .begun = training->begun,
                .stop = training->stop,
                .rate_changes = training->rate_changes,
                .has_last = training->has_last};
    if (!m.begun && m.steps) {
        m.epoch++;
        m.steps = 0;
        m.seconds = m.seconds_waiting = 0;
    }
    return m;
}

static void save(backup *self, td_training *training)
{
    tdi_error outcome;
    td_state *state = tdi_backup_writer_take(self->writer);
    moment m = moment_of(training, ++self->sequence);
    tdi_state_begin(state);
    json_object_set(state->root, "facts", self->facts);
    visit_moment(state, &m);
    if (m.has_last)
        visit_last(state, &training->last);
    visit_model(state, training->model);
    save_configuration(state, training->model);
    if (m.steps)
        save_sums(state, training);
    tdi_backup_visit_callbacks(state, training);
    save_tuning_cache(self, state, training->model);
    outcome = state->error;
    if (outcome.status == TD_OK) {
        tdi_backup_writer_outcome(self->writer, &outcome);
        tdi_backup_writer_give(self->writer, state);
    }
    tell(self, training->model->context, &outcome);
}

/* Waits for what is being written. */
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

/* Files that a killed run was writing. */
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

static td_status outcome_of(const td_state *state, tdi_error *error)
{
    return state->error.status == TD_OK ? TD_OK : tdi_fail(error, state->error.status, "%s", state->error.message);
}

static int64_t sequence_of(td_state *state)
{
    moment m = {0};
    visit_moment(state, &m);
    return state->error.status == TD_OK ? m.sequence : -1;
}

/* The newest backup that is whole, in self->found; *good is its file, -1 when there is none. */
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
        int64_t sequence = status == TD_OK ? sequence_of(&state) : -1;
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

/* The rate may be the one that the run began with, or the one it had come to. */
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

static td_status restore_sums(td_state *state, td_training *training, int64_t batch, tdi_error *error)
{
    tdi_runtime *runtime;
    tdi_state_enter(state, "run", NULL);
    td_shape shape = tdi_state_shape(state, "sums");
    bool there = shape.rank == 3 && shape.dim[0] <= INT32_MAX && shape.dim[1] <= INT32_MAX;
    int64_t parts = there ? shape.dim[0] : 0, count = there ? shape.dim[1] : 0;
    double *sums = calloc((size_t)parts * (size_t)count * 2 + 1, sizeof *sums);
    if (!sums)
        return tdi_no_memory(error);
    tdi_state_array_of(state, "sums", TD_FLOAT64, &TD_SHAPE(parts, count, 2), sums);
    td_status status = outcome_of(state, error);
    if (status == TD_OK)
        status = tdi_runtime_for(training->model, TDI_TRAIN, batch, &runtime, error);
    if (status == TD_OK)
        status = tdi_runtime_put_sums(runtime, TDI_TRAIN, (int)parts, (int)count, sums, error);
    free(sums);
    return status;
}

/* Plans are made anew, so that they take the kernels that the backup's took, with a cache or without. */
static td_status restore_tuning_cache(const td_state *state, td_model *model, tdi_error *error)
{
    tdi_model_drop_runtimes(model);
    model->compiled.by_rules = !state->tuned;
    return state->tuned ? tdi_tuning_cache_restore(model->context, state->tuned, error) : TD_OK;
}

/* The run before may have followed a configuration that other steps, before it, had chosen. */
static td_status restore_configuration(td_state *state, td_model *model, int64_t batch, tdi_error *error)
{
    int parts = 0;
    bool float32 = false;
    if (!tdi_state_enter(state, "way", NULL))
        return TD_OK;
    tdi_state_int(state, "parts", &parts);
    tdi_state_flag(state, "float32", &float32);
    TDI_TRY(outcome_of(state, error));
    return tdi_runtime_resume(model, parts, float32, batch, error);
}

static td_status check_moment(const moment *m, const tdi_run *run, tdi_error *error)
{
    if (m->sequence < 0 || m->epoch < 0 || m->steps < 0 || m->steps > run->steps || m->batches < m->steps)
        return tdi_fail(error, TD_BAD_FILE, "it is at epoch %d, step %lld of %lld, which cannot be", m->epoch,
                        (long long)m->steps, (long long)run->steps);
    return TD_OK;
}

td_status tdi_backup_restore(td_state *state, td_training *training, const tdi_run *run, tdi_error *error)
{
    moment m = {0};
    td_epoch last = {0};
    visit_moment(state, &m);
    if (m.has_last)
        visit_last(state, &last);
    state->looking = true;
    visit_model(state, training->model);
    state->looking = false;
    TDI_TRY(outcome_of(state, error));
    TDI_TRY(check_moment(&m, run, error));
    TDI_TRY(restore_tuning_cache(state, training->model, error));
    visit_model(state, training->model);
    TDI_TRY(restore_configuration(state, training->model, run->batch, error));
    if (m.steps)
        TDI_TRY(restore_sums(state, training, run->batch, error));
    training->seed = (uint64_t)m.seed;
    training->epoch = m.epoch;
    training->steps = m.steps;
    training->batches = m.batches;
    training->seconds = m.seconds;
    training->seconds_waiting = m.seconds_waiting;
    training->begun = m.begun;
    training->stop = m.stop;
    training->rate_changes |= m.rate_changes;
    training->last = last;
    training->has_last = m.has_last;
    training->resumed = true;
    return outcome_of(state, error);
}

static td_status resume(backup *self, td_training *training, const tdi_run *run, tdi_error *error)
{
    char line[512];
    uint64_t seed = training->seed;
    const json_t *facts = json_object_get(self->found.root, "facts");
    TDI_TRY(tdi_facts_compare(facts, self->facts, self->folder, error));
    TDI_TRY(check_rate(self, facts, training->model, error));
    td_status status = tdi_backup_restore(&self->found, training, run, error);
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
    tdi_backup_visit_callbacks(found, training);
    td_status status = outcome_of(found, &training->error);
    if (status != TD_OK)
        tdi_error_prefix(&training->error, "BackupAndRestore: the backup in \"%.200s\"", self->folder);
    tdi_state_release(found);
    return status;
}

/* The last to begin: the others have forgotten what was, and are told. Nothing is done before there is a backup: what a
 * run killed early had written to its logs would stay in them. */
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
    td_callback *made = tdi_callback_create(&functions, self);
    made->last = made->error.status == TD_OK;
    return made;
}
