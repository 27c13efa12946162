/* callbacks.c - calling the callbacks of a td_fit, and what they may ask of it. */
#include "train/callbacks/callbacks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "layers/optimizers.h"
#include "model/program.h"

/* ---- making and freeing ---- */

static const td_callback no_memory = {.error = {TD_NO_MEMORY, "out of memory"}};

td_callback *tdi_callback_create(const td_callback_functions *functions, void *user)
{
    td_callback *callback = functions->every < 0 ? NULL : calloc(1, sizeof *callback);
    if (!callback) {
        if (functions->release)
            functions->release(user);
        return functions->every < 0 ? tdi_callback_poison("a callback", "every is negative")
                                    : (td_callback *)&no_memory;
    }
    callback->functions = *functions;
    callback->user = user;
    return callback;
}

td_callback *tdi_callback_checked(const td_callback_functions *functions, void *user, tdi_callback_check *check)
{
    td_callback *callback = tdi_callback_create(functions, user);
    if (callback->error.status == TD_OK)
        callback->check = check;
    return callback;
}

td_callback *tdi_callback_writes(td_callback *callback)
{
    if (callback->error.status == TD_OK)
        callback->writes = true;
    return callback;
}

td_callback *td_callback_create(const td_callback_functions *functions, void *user)
{
    if (!functions)
        return tdi_callback_poison("td_callback_create", "functions is NULL");
    td_callback *callback = tdi_callback_create(functions, user);
    if (callback->error.status == TD_OK)
        callback->own = true;
    return callback;
}

td_callback *tdi_callback_poison(const char *name, const char *reason)
{
    td_callback *callback = calloc(1, sizeof *callback);
    if (!callback)
        return (td_callback *)&no_memory;
    tdi_fail(&callback->error, TD_INVALID_ARGUMENT, "%s: %s", name, reason);
    return callback;
}

void td_callback_free(td_callback *callback)
{
    if (!callback || callback == &no_memory)
        return;
    if (callback->functions.release)
        callback->functions.release(callback->user);
    free(callback);
}

static bool is_repeated(td_callback *const *callbacks, int place)
{
    int first = 0;
    while (callbacks[first] != callbacks[place])
        first++;
    return first < place;
}

static td_status check_one(const td_training *training, const td_callback *callback, bool open, tdi_error *error)
{
    const td_model *model = training->model;
    unsigned schedule = (unsigned)model->state->optimizer.schedule.kind;
    if (callback->error.status != TD_OK)
        return tdi_fail(error, callback->error.status, "%s", callback->error.message);
    if (!callback->sets_rate || !schedule)
        return callback->check ? callback->check(callback->user, training, open, error) : TD_OK;
    return tdi_fail(
        error, TD_INVALID_ARGUMENT,
        "%s sets the learning rate, but that of model \"%s\" is the schedule %s; leave the callback out, or "
        "compile with an optimizer whose learning rate is a number",
        callback->functions.name, model->architecture->name,
        tdi_config_type_of(tdi_schedule_types, schedule)->class_name);
}

td_status tdi_callbacks_check(const td_training *training, tdi_error *error)
{
    td_callback *const *callbacks = training->callbacks;
    bool open = false;
    for (int i = 0; callbacks && callbacks[i]; i++) {
        TDI_TRY(check_one(training, callbacks[i], open, error));
        if (is_repeated(callbacks, i))
            return tdi_fail(error, TD_INVALID_ARGUMENT, "callbacks: number %d was given before it: make one for each",
                            i);
        open |= callbacks[i]->own && callbacks[i]->functions.epoch_end;
    }
    return TD_OK;
}

bool tdi_callbacks_set_rate(td_callback *const *callbacks)
{
    for (int i = 0; callbacks && callbacks[i]; i++)
        if (callbacks[i]->sets_rate)
            return true;
    return false;
}

void tdi_callbacks_free(td_callback *const *callbacks)
{
    int count = 0;
    while (callbacks && callbacks[count])
        count++;
    while (count-- > 0) /* from the end: the first of a repeated one is compared until all are gone */
        if (!is_repeated(callbacks, count))
            td_callback_free(callbacks[count]);
}

/* ---- calling ---- */

static int64_t every_of(const td_callback *callback)
{
    return callback->functions.every ? callback->functions.every : 1;
}

int64_t tdi_callbacks_stride(const td_training *training, int64_t left)
{
    for (td_callback *const *at = training->callbacks; at && *at; at++) {
        int64_t every = every_of(*at), wait = every - training->batches % every;
        if ((*at)->functions.batch_end && wait < left)
            left = wait;
    }
    return left;
}

static bool is_due(const td_training *training, const td_callback *callback)
{
    return callback->functions.batch_end && training->batches % every_of(callback) == 0;
}

bool tdi_callbacks_due(const td_training *training)
{
    for (td_callback *const *at = training->callbacks; at && *at; at++)
        if (is_due(training, *at))
            return true;
    return false;
}

/* A callback that fails without saying why is still named by its place in the list. */
static td_status check(td_training *training, int place, td_status status, tdi_error *error)
{
    if (status == TD_OK)
        return TD_OK;
    if (training->error.status != TD_OK)
        return tdi_fail(error, status, "%s", training->error.message);
    return tdi_fail(error, status, "callback %d failed: %s", place, td_status_name(status));
}

/* Calls in the order of the list, and behind all others the one that wants to be last. */
#define FOR_EACH(callback, place)                                                                                      \
    for (int last = 0; last < 2; last++)                                                                               \
        for (int place = 0; training->callbacks && training->callbacks[place]; place++)                                \
            for (const td_callback *callback = training->callbacks[place]; callback && callback->last == last;         \
                 callback = NULL)

#define CALL_EACH(function, ...)                                                                                       \
    FOR_EACH(callback, place)                                                                                          \
    if (callback->functions.function)                                                                                  \
        TDI_TRY(check(training, place, callback->functions.function(callback->user, __VA_ARGS__), error));             \
    return TD_OK

td_status tdi_callbacks_train_begin(td_training *training, tdi_error *error)
{
    CALL_EACH(train_begin, training);
}

td_status tdi_callbacks_epoch_begin(td_training *training, tdi_error *error)
{
    CALL_EACH(epoch_begin, training);
}

td_status tdi_callbacks_batch_end(td_training *training, const td_logs *logs, tdi_error *error)
{
    FOR_EACH(callback, place)
    if (is_due(training, callback))
        TDI_TRY(check(training, place, callback->functions.batch_end(callback->user, training, logs), error));
    return TD_OK;
}

td_status tdi_callbacks_not_finite(td_training *training, tdi_error *error)
{
    bool taken = false;
    FOR_EACH(callback, place)
    if (callback->functions.not_finite) {
        tdi_error own = {0};
        td_status status = check(training, place, callback->functions.not_finite(callback->user, training), &own);
        if (status != TD_OK) {
            *error = own;
            return status;
        }
        taken = true;
    }
    if (!taken)
        return TD_NOT_FINITE;
    *error = (tdi_error){0};
    training->stop = true;
    return TD_OK;
}

td_status tdi_callbacks_epoch_end(td_training *training, td_epoch *epoch, tdi_error *error)
{
    CALL_EACH(epoch_end, training, epoch);
}

/* Calls all of them though one fails: the best weights are restored even where a file could not be written. */
td_status tdi_callbacks_train_end(td_training *training, tdi_error *error)
{
    td_status first = TD_OK;
    FOR_EACH(callback, place)
    if (callback->functions.train_end) {
        td_status status = check(training, place, callback->functions.train_end(callback->user, training), error);
        first = first == TD_OK ? status : first;
    }
    return first;
}

/* ---- what a callback may ask ---- */

td_model *td_training_model(const td_training *training)
{
    return training->model;
}

int td_training_epoch(const td_training *training)
{
    return training->epoch;
}

int64_t td_training_steps(const td_training *training)
{
    return training->steps;
}

double td_training_learning_rate(const td_training *training)
{
    return (double)td_learning_rate(training->model);
}

double tdi_training_rate(const td_training *training)
{
    return td_training_learning_rate(training) * training->rate_factor;
}

int td_training_resumed(const td_training *training)
{
    return training->resumed;
}

td_status td_training_set_learning_rate(td_training *training, double learning_rate)
{
    td_status status = tdi_model_set_learning_rate(training->model, (float)learning_rate, &training->error);
    training->rate_changes = true;
    if (status != TD_OK)
        tdi_error_prefix(&training->error, "a callback");
    return status;
}

void td_training_stop(td_training *training)
{
    training->stop = true;
}

td_status td_training_fail(td_training *training, td_status status, const char *sentence)
{
    return tdi_fail(&training->error, status, "%s", sentence);
}

void td_training_say(td_training *training, const char *line)
{
    char *text = training->progress ? strdup(line) : NULL;
    if (text)
        fprintf(training->progress, "%s\n", tdi_printable_lines(text));
    free(text);
}

/* ---- logs ---- */

void tdi_log_names(const td_training *training, bool epoch, td_logs *names)
{
    names->count = 0;
    tdi_program_log_names(training->model, "", names);
    if (epoch && training->validates)
        tdi_program_log_names(training->model, "val_", names);
    if (epoch && training->rate_changes)
        tdi_log_set(names, "learning_rate", 0);
}

const double *tdi_log_value(const td_logs *logs, const char *name)
{
    for (int i = 0; i < logs->count; i++)
        if (strcmp(logs->entry[i].name, name) == 0)
            return &logs->entry[i].value;
    return NULL;
}

void tdi_log_set(td_logs *logs, const char *name, double value)
{
    int at = 0;
    while (at < logs->count && strcmp(logs->entry[at].name, name) != 0)
        at++;
    if (at == TD_MAX_LOGS)
        return;
    snprintf(logs->entry[at].name, sizeof logs->entry[at].name, "%s", name);
    logs->entry[at].value = value;
    logs->count += at == logs->count;
}
