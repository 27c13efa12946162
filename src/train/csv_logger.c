/* csv_logger.c - Keras's CSVLogger: "epoch", then the logs by name; without validation, empty val_ columns too. Lines
 * end as Python's csv module ends them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "train/callbacks.h"

typedef struct csv_logger {
    char *filename, *separator;
    bool append;
    FILE *file;
    int keys; /* of the header; 0: none yet */
    char names[TD_MAX_LOGS][48];
    bool validation;
} csv_logger;

static td_status failed(const csv_logger *self, td_training *training, const char *what)
{
    return tdi_fail(&training->error, TD_IO, "CSVLogger: %s cannot be %s: %s", self->filename, what, strerror(errno));
}

static bool is_empty(const char *path)
{
    FILE *file = fopen(path, "r");
    bool empty = !file || fgetc(file) == EOF;
    if (file)
        fclose(file);
    return empty;
}

static td_status csv_begin(void *user, td_training *training)
{
    csv_logger *self = user;
    bool header = !self->append || is_empty(self->filename);
    if (self->file)
        fclose(self->file);
    self->file = fopen(self->filename, self->append ? "a" : "w");
    self->keys = 0;
    self->append = !header; /* from here on: a header stands in the file */
    return self->file ? TD_OK : failed(self, training, "written");
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
        if (!self->append)
            write_header(self);
    }
    write_row(self, epoch->epoch, &epoch->logs);
    return fflush(self->file) == 0 && !ferror(self->file) ? TD_OK : failed(self, training, "written");
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
    static const td_callback_functions functions = {
        .train_begin = csv_begin, .epoch_end = csv_epoch_end, .release = csv_release};
    if (!args->filename || !*args->filename)
        return tdi_callback_poison("td_csv_logger", "filename: the name of a file was expected");
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
