/* csv_logger.c - Keras's CSVLogger: "epoch", then the logs by name; without validation, empty val_ columns too. Lines
 * end as Python's csv module ends them. A line that cannot be written does not end the training: it is said, and the
 * failure is td_fit's at the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/folders.h"
#include "train/callbacks.h"

typedef struct csv_logger {
    char *filename, *separator;
    bool append;
    FILE *file;
    int keys; /* of the header; 0: none yet */
    char names[TD_MAX_LOGS][TD_MAX_LOG_NAME];
    bool validation;
    tdi_error failed; /* the first line that could not be written */
} csv_logger;

static td_status csv_begin(void *user, td_training *training)
{
    csv_logger *self = user;
    if (self->file)
        fclose(self->file);
    self->file = fopen(self->filename, self->append || training->resumed ? "a+" : "w+");
    self->keys = 0;
    self->failed = (tdi_error){0};
    if (self->file)
        return TD_OK;
    return tdi_fail(&training->error, TD_IO, "CSVLogger: %s cannot be written: %s", self->filename, strerror(errno));
}

static bool is_empty(FILE *file)
{
    return fseek(file, 0, SEEK_END) == 0 && ftell(file) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void take_names(csv_logger *self, const td_logs *logs)
{
    self->keys = logs->count;
    for (int i = 0; i < logs->count; i++) {
        memcpy(self->names[i], logs->entry[i].name, sizeof self->names[i]);
        self->validation |= strncmp(self->names[i], "val_", 4) == 0;
    }
    qsort(self->names, (size_t)self->keys, sizeof *self->names, by_name);
}

static void write_header(const csv_logger *self)
{
    fprintf(self->file, "epoch");
    for (int i = 0; i < self->keys; i++)
        fprintf(self->file, "%s%s", self->separator, self->names[i]);
    for (int i = 0; i < self->keys && !self->validation; i++)
        fprintf(self->file, "%sval_%s", self->separator, self->names[i]);
    fprintf(self->file, "\r\n");
}

static void write_row(const csv_logger *self, int epoch, const td_logs *logs)
{
    fprintf(self->file, "%d", epoch);
    for (int i = 0; i < self->keys; i++) {
        const double *value = tdi_log_value(logs, self->names[i]);
        fprintf(self->file, value ? "%s%.17g" : "%sNA", self->separator, value ? *value : 0);
    }
    for (int i = 0; i < self->keys && !self->validation; i++)
        fprintf(self->file, "%sNA", self->separator);
    fprintf(self->file, "\r\n");
}

static td_status csv_epoch_end(void *user, td_training *training, td_epoch *epoch)
{
    csv_logger *self = user;
    if (!self->keys) {
        take_names(self, &epoch->logs);
        if (is_empty(self->file))
            write_header(self);
    }
    write_row(self, epoch->epoch, &epoch->logs);
    bool written = fflush(self->file) == 0 && !ferror(self->file), removed = written && tdi_is_removed(self->file);
    if (written && !removed)
        return TD_OK;
    bool first = self->failed.status == TD_OK;
    tdi_fail(&self->failed, TD_IO, "CSVLogger: %s is incomplete from epoch %d on: %s", self->filename, epoch->epoch + 1,
             removed ? "it was removed" : strerror(errno));
    clearerr(self->file);
    if (first)
        td_training_say(training, self->failed.message);
    return TD_OK;
}

static td_status csv_end(void *user, td_training *training)
{
    const csv_logger *self = user;
    if (self->failed.status == TD_OK)
        return TD_OK;
    return tdi_fail(&training->error, TD_IO, "%s", self->failed.message);
}

static void csv_state(void *user, td_training *training, td_state *state)
{
    csv_logger *self = user;
    (void)training;
    td_state_file(state, "file", self->filename, self->file);
}

static void csv_release(void *user)
{
    csv_logger *self = user;
    if (self->file)
        fclose(self->file);
    free(self->filename);
    free(self->separator);
    free(self);
}

td_callback *td_csv_logger_(const td_csv_logger_args *args)
{
    static const td_callback_functions functions = {.train_begin = csv_begin,
                                                    .epoch_end = csv_epoch_end,
                                                    .train_end = csv_end,
                                                    .release = csv_release,
                                                    .name = "CSVLogger",
                                                    .state = csv_state};
    if (!args->filename || !*args->filename)
        return tdi_callback_poison("td_csv_logger", "filename: the name of a file was expected");
    if (args->separator && !args->separator[0])
        return tdi_callback_poison("td_csv_logger", "separator: at least one character was expected");
    csv_logger *self = calloc(1, sizeof *self);
    if (!self)
        return tdi_callback_poison("td_csv_logger", "out of memory");
    self->filename = strdup(args->filename);
    self->separator = strdup(args->separator ? args->separator : ",");
    self->append = args->append == TD_YES;
    if (self->filename && self->separator)
        return td_callback_create(&functions, self);
    csv_release(self);
    return tdi_callback_poison("td_csv_logger", "out of memory");
}
