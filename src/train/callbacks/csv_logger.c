/* csv_logger.c - Keras's CSVLogger: "epoch", then the logs by name; without validation, empty val_ columns too. Cells
 * and lines are as Python's csv module writes them. The header that is in the file decides what stands where: a run
 * that appends, or is resumed, goes on with its columns, on a line of its own. A line that cannot be written does not
 * end the training: it is said, and the failure is td_fit's at the end. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/context.h"
#include "base/number_format.h"
#include "base/size_limit.h"
#include "base/vec.h"
#include "files/folders.h"
#include "model/model.h"
#include "train/callbacks/callbacks.h"

enum { LONGEST_HEADER = 1 << 15 }; /* of TD_MAX_LOGS names, and as many with val_ */

typedef struct csv_logger {
    char *filename, *separator;
    bool append;
    FILE *file;
    tdi_vec(char *) columns; /* behind "epoch"; none before the header is read or written */
    tdi_error failed;        /* of the first line that could not be written */
} csv_logger;

/* ---- cells ---- */

static void put_cell(const csv_logger *self, const char *text)
{
    if (!strstr(text, self->separator) && !strpbrk(text, "\"\r\n")) {
        fputs(text, self->file);
        return;
    }
    putc('"', self->file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', self->file);
        putc(*text, self->file);
    }
    putc('"', self->file);
}

/* The next cell of a line, without its quotes, where it lies; NULL behind the last. */
static char *next_cell(const csv_logger *self, char **rest)
{
    char *cell = *rest, *to = cell, *from = cell;
    size_t length = strlen(self->separator);
    bool quoted = cell && *cell == '"';
    if (!cell)
        return NULL;
    for (from += quoted; *from && (quoted || strncmp(from, self->separator, length) != 0); from++) {
        if (quoted && *from == '"' && from[1] != '"')
            quoted = false;
        else
            *to++ = quoted && *from == '"' ? *++from : *from;
    }
    *rest = *from ? from + length : NULL;
    *to = '\0';
    return cell;
}

/* ---- columns ---- */

static void forget_columns(csv_logger *self)
{
    for (int i = 0; i < self->columns.count; i++)
        free(self->columns.at[i]);
    tdi_vec_free(&self->columns);
}

static td_status add_column(csv_logger *self, const char *prefix, const char *name, tdi_error *error)
{
    char *column;
    if (asprintf(&column, "%s%s", prefix, name) < 0)
        return tdi_no_memory(error);
    if (tdi_push(&self->columns, column))
        return TD_OK;
    free(column);
    return tdi_no_memory(error);
}

static bool has_column(const csv_logger *self, const char *name)
{
    for (int i = 0; i < self->columns.count; i++)
        if (strcmp(self->columns.at[i], name) == 0)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* As Keras takes them from the first epoch. */
static td_status take_columns(csv_logger *self, const td_logs *logs, tdi_error *error)
{
    bool validation = false;
    for (int i = 0; i < logs->count; i++) {
        validation |= strncmp(logs->entry[i].name, "val_", 4) == 0;
        TDI_TRY(add_column(self, "", logs->entry[i].name, error));
    }
    qsort(self->columns.at, (size_t)self->columns.count, sizeof *self->columns.at, by_name);
    for (int i = 0; i < logs->count && !validation; i++)
        TDI_TRY(add_column(self, "val_", self->columns.at[i], error));
    return TD_OK;
}

static void write_header(const csv_logger *self)
{
    fputs("epoch", self->file);
    for (int i = 0; i < self->columns.count; i++) {
        fputs(self->separator, self->file);
        put_cell(self, self->columns.at[i]);
    }
    fputs("\r\n", self->file);
}

static td_status split_header(csv_logger *self, char *line, tdi_error *error)
{
    line[strcspn(line, "\r\n")] = '\0';
    const char *cell = next_cell(self, &line);
    if (strcmp(cell, "epoch") != 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "CSVLogger: %s begins with \"%.64s\", where the columns epoch%s... of a log were expected to "
                        "append to; name another file",
                        self->filename, cell, self->separator);
    while ((cell = next_cell(self, &line)))
        TDI_TRY(add_column(self, "", cell, error));
    return TD_OK;
}

/* Finds no columns where there is nothing to read. */
static td_status read_header(csv_logger *self, tdi_error *error)
{
    char line[LONGEST_HEADER];
    struct stat facts;
    if (fstat(fileno(self->file), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0)
        return TD_OK;
    rewind(self->file);
    bool read = fgets(line, sizeof line, self->file) != NULL;
    int reason = errno;
    fseek(self->file, 0, SEEK_END);
    return read ? split_header(self, line, error)
                : tdi_fail(error, TD_IO, "CSVLogger: %s cannot be read: %s", self->filename, strerror(reason));
}

/* What has no place in the file that is appended to. */
static void tell_left_out(const csv_logger *self, const td_training *training)
{
    tdi_text missing = {0};
    td_logs names;
    tdi_log_names(training, true, &names);
    for (int i = 0; i < names.count && self->columns.count; i++)
        if (!has_column(self, names.entry[i].name))
            tdi_text_format(&missing, "%s%s", missing.length ? ", " : "", names.entry[i].name);
    if (missing.length)
        tdi_log(training->model->context, TD_LOG_WARNING,
                "CSVLogger: %s has no column for %s: left out; for all of them name another file", self->filename,
                missing.chars);
    tdi_text_free(&missing);
}

/* ---- a run ---- */

static void close_file(const csv_logger *self)
{
    tdi_size_limit limit;
    tdi_size_limit_begin(&limit);
    if (self->file)
        fclose(self->file);
    tdi_size_limit_end(&limit);
}

static td_status csv_begin(void *user, td_training *training)
{
    csv_logger *self = user;
    close_file(self);
    self->file = fopen(self->filename, self->append || training->resumed ? "a+" : "w+");
    self->failed = (tdi_error){0};
    forget_columns(self);
    if (!self->file)
        return tdi_fail(&training->error, TD_IO, "CSVLogger: %s cannot be written: %s", self->filename,
                        strerror(errno));
    if (!self->append || training->resumed) /* a backup's file is yet to be cut back */
        return TD_OK;
    td_status status = read_header(self, &training->error);
    if (status == TD_OK)
        tell_left_out(self, training);
    return status;
}

/* Ends a line that was cut short, by a run that was killed or by an editor. What cannot be read, as a pipe, has none.
 */
static void begin_line(const csv_logger *self)
{
    if (fseek(self->file, -1, SEEK_END) != 0)
        return;
    int last = getc(self->file);
    fseek(self->file, 0, SEEK_END);
    if (last != EOF && last != '\n')
        fputs("\r\n", self->file);
}

static void write_row(const csv_logger *self, int epoch, const td_logs *logs)
{
    begin_line(self);
    fprintf(self->file, "%d", epoch);
    for (int i = 0; i < self->columns.count; i++) {
        const double *value = tdi_log_value(logs, self->columns.at[i]);
        tdi_text number = {0};
        if (value)
            tdi_format_float(*value, "", &number);
        fputs(self->separator, self->file);
        put_cell(self, value && number.chars ? number.chars : "NA");
        tdi_text_free(&number);
    }
    fputs("\r\n", self->file);
}

/* Of the file, or else of this epoch. */
static td_status find_columns(csv_logger *self, const td_logs *logs, tdi_error *error)
{
    TDI_TRY(read_header(self, error));
    if (self->columns.count)
        return TD_OK;
    TDI_TRY(take_columns(self, logs, error));
    write_header(self);
    return TD_OK;
}

static td_status write_epoch(csv_logger *self, const td_training *training, const td_epoch *epoch, tdi_error *error)
{
    if (!self->columns.count) {
        TDI_TRY(find_columns(self, &epoch->logs, error));
        tell_left_out(self, training);
    }
    write_row(self, epoch->epoch, &epoch->logs);
    bool written = fflush(self->file) == 0 && !ferror(self->file), removed = written && tdi_is_removed(self->file);
    if (written && !removed)
        return TD_OK;
    return tdi_fail(error, TD_IO, "CSVLogger: %s is incomplete from epoch %d on: %s", self->filename, epoch->epoch + 1,
                    removed ? "it was removed" : strerror(errno));
}

static td_status csv_epoch_end(void *user, td_training *training, td_epoch *epoch)
{
    csv_logger *self = user;
    tdi_error failed = {0};
    tdi_size_limit limit;
    tdi_size_limit_begin(&limit);
    td_status status = write_epoch(self, training, epoch, &failed);
    tdi_size_limit_end(&limit);
    if (status == TD_OK)
        return TD_OK;
    clearerr(self->file);
    if (self->failed.status == TD_OK)
        td_training_say(training, failed.message);
    tdi_fail(&self->failed, failed.status, "%s", failed.message);
    return TD_OK;
}

static td_status csv_end(void *user, td_training *training)
{
    const csv_logger *self = user;
    if (self->failed.status == TD_OK)
        return TD_OK;
    return tdi_fail(&training->error, self->failed.status, "%s", self->failed.message);
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
    close_file(self);
    forget_columns(self);
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
        return tdi_callback_writes(tdi_callback_create(&functions, self));
    csv_release(self);
    return tdi_callback_poison("td_csv_logger", "out of memory");
}
