/* plot.c - `tandem plot`: draws the curves of training logs, in the terminal or as a picture. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "options.h"
#include "picture.h"

/* False for members that are no curves: the axis, and counts that are the same in every epoch. */
static bool is_curve(const char *name)
{
    static const char *const others[] = {"epoch", "steps", "samples", "seconds", "seconds_waiting"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return false;
    return true;
}

/* True when the comma-separated list has the name; NULL has all. */
static bool is_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return !list && is_curve(name);
}

struct reader {
    const struct options *options;
    struct chart *chart;
    const char *path;
    int number; /* the log's, from 0 */
    int line;
    int read;                /* number of lines that hold an epoch */
    int left_out, first_out; /* number of incomplete lines; the first of them */
};

/* A validation curve goes into the panel of its training curve, dashed. */
static int add_number(struct reader *reader, const char *name, double epoch, double value)
{
    bool validation = strncmp(name, "val_", 4) == 0;
    const char *what = name + (validation ? 4 : 0);
    char series_name[128];
    if (!is_wanted(reader->options->curves, what))
        return TOOL_DONE;
    int panel = chart_panel(reader->chart, what);
    if (panel < 0)
        return tool_refuse("%s holds more than %d curves; name those to draw: --curves loss,accuracy", reader->path,
                           CHART_MAX_PANELS);
    snprintf(series_name, sizeof series_name, "%s%s", reader->path, validation ? " validation" : "");
    struct series *series = chart_series(reader->chart, panel, series_name);
    if (!series || !series_add(series, epoch, value))
        return tool_fail("out of memory");
    series->dashed = validation;
    series->colour = reader->number;
    return TOOL_DONE;
}

static int refuse_line(const struct reader *reader, const char *expected)
{
    return tool_fail("%s, line %d: expected %s, as `tandem fit --log` and `--csv-log` write it", reader->path,
                     reader->line, expected);
}

/* A line is incomplete when its writer was killed or is still writing. A run that was resumed goes on below it. */
static int leave_out(struct reader *reader)
{
    if (reader->left_out++ == 0)
        reader->first_out = reader->line;
    return TOOL_DONE;
}

static void say_left_out(const struct reader *reader)
{
    if (reader->left_out == 1)
        fprintf(stderr, "%s: %s: line %d is cut short and left out\n", program_invocation_name, reader->path,
                reader->first_out);
    else if (reader->left_out)
        fprintf(stderr, "%s: %s: %d lines are cut short and left out; the first of them is line %d\n",
                program_invocation_name, reader->path, reader->left_out, reader->first_out);
}

/* ---- JSON lines ---- */

/* Skips members that are not numbers, such as null, which stands for numbers that are not finite. */
static int add_members(struct reader *reader, json_t *object, double epoch)
{
    const char *name;
    json_t *member;
    int status = TOOL_DONE;
    json_object_foreach(object, name, member) if (status == TOOL_DONE) status =
        add_number(reader, name, epoch, json_is_number(member) ? json_number_value(member) : NAN);
    return status;
}

static int read_json_line(struct reader *reader, const char *line)
{
    json_error_t error;
    json_t *object = json_loads(line, 0, &error), *epoch = json_object_get(object, "epoch");
    if (!object && json_error_code(&error) == json_error_premature_end_of_input)
        return leave_out(reader);
    int status = json_is_number(epoch) ? add_members(reader, object, json_number_value(epoch) + 1)
                                       : refuse_line(reader, "a JSON object with \"epoch\"");
    json_decref(object);
    reader->read++;
    return status;
}

/* ---- CSV ---- */

enum { MOST_COLUMNS = 64 };

struct columns {
    int count;
    char names[MOST_COLUMNS][64];
};

static const char separators[] = ",;\t";

static int count_cells(const char *line)
{
    int cells = 1;
    for (; (line = strpbrk(line, separators)); line++)
        cells++;
    return cells;
}

static void read_header(const char *line, struct columns *columns)
{
    columns->count = 0;
    for (const char *at = line; columns->count < MOST_COLUMNS; at++) {
        size_t length = strcspn(at, separators);
        snprintf(columns->names[columns->count++], sizeof columns->names[0], "%.*s", (int)length, at);
        at += length;
        if (!*at)
            return;
    }
}

static int read_csv_cells(struct reader *reader, const struct columns *columns, const char *line)
{
    double epoch = NAN;
    int status = TOOL_DONE;
    for (int column = 0; column < columns->count && status == TOOL_DONE; column++) {
        size_t length = strcspn(line, separators);
        char *end;
        double value = strtod(line, &end);
        bool number = length && end == line + length;
        if (column == 0 && !number)
            return refuse_line(reader, "the number of an epoch first");
        if (column == 0)
            epoch = value + 1;
        else if (number)
            status = add_number(reader, columns->names[column], epoch, value);
        line += length + (line[length] != '\0');
    }
    return status;
}

/* The last number of a line that does not end may lack digits. */
static int read_csv_line(struct reader *reader, const struct columns *columns, const char *line, bool ended)
{
    if (!ended || (count_cells(line) != columns->count && columns->count < MOST_COLUMNS))
        return leave_out(reader);
    reader->read++;
    return read_csv_cells(reader, columns, line);
}

/* ---- files ---- */

/* Another header begins where logs were joined. */
static int read_line(struct reader *reader, struct columns *columns, char *line)
{
    size_t length = strcspn(line, "\r\n");
    bool ended = line[length] != '\0';
    reader->line++;
    line[length] = '\0';
    const char *at = line + strspn(line, " \t");
    if (!*at)
        return TOOL_DONE;
    if (*at == '{')
        return read_json_line(reader, at);
    if (strncmp(at, "epoch", 5) == 0)
        read_header(at, columns);
    else
        return columns->count ? read_csv_line(reader, columns, line, ended)
                              : refuse_line(reader, "a JSON object, or a CSV header that begins with epoch");
    return TOOL_DONE;
}

static int check_read(const struct reader *reader)
{
    if (!reader->line)
        return tool_fail("%s is empty; `tandem fit --log` writes a line per epoch", reader->path);
    if (!reader->read && reader->left_out)
        return tool_fail("%s: line %d is cut short, and no other holds an epoch", reader->path, reader->first_out);
    say_left_out(reader);
    return TOOL_DONE;
}

static int read_log(const struct options *options, struct chart *chart, int number)
{
    struct reader reader = {.options = options, .chart = chart, .path = options->arguments[number], .number = number};
    struct columns columns = {0};
    FILE *file = fopen(reader.path, "r");
    if (!file)
        return tool_fail("cannot read %s: %s", reader.path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    int status = TOOL_DONE;
    while (status == TOOL_DONE && getline(&line, &room, file) >= 0)
        status = read_line(&reader, &columns, line);
    if (status == TOOL_DONE && !feof(file))
        status = tool_fail("cannot read %s: %s", reader.path, strerror(errno));
    if (status == TOOL_DONE)
        status = check_read(&reader);
    free(line);
    fclose(file);
    return status;
}

static int draw(const struct options *options, const struct chart *chart)
{
    if (!chart->n_panels)
        return tool_fail("there is no curve to draw%s%s", options->curves ? " of the names " : "",
                         options->curves ? options->curves : "");
    return chart_show(chart, options->output, options->output && options->quiet);
}

static int run(const struct options *options)
{
    struct chart chart = {.x_label = "epoch", .log_x = options->log_x, .log_y = options->log_y};
    int status = options->output ? picture_check_path("output", options->output) : TOOL_DONE;
    for (int i = 0; i < options->n_arguments && status == TOOL_DONE; i++)
        status = read_log(options, &chart, i);
    if (status == TOOL_DONE)
        status = draw(options, &chart);
    chart_release(&chart);
    return status;
}

static const struct argp_option options[] = {
    {"output", KEY_OUTPUT, "FILE.png|svg", 0, "Draw to a file, too", 0},
    {"curves", KEY_CURVES, "LIST", 0, "Only these, as loss,accuracy (default: every loss and metric)", 0},
    {"log-x", KEY_LOG_X, NULL, 0, "A logarithmic axis of epochs", 0},
    {"log-y", KEY_LOG_Y, NULL, 0, "A logarithmic axis of values", 0},
    {"quiet", KEY_QUIET, NULL, 0, "With --output: nothing in the terminal", 0},
    OPTIONS_END};

const struct command plot_command = {
    "plot",
    "LOG...",
    "the curves of training logs, drawn", /* */
    "Draws the losses, metrics and learning rates of logs that `tandem fit` wrote with --log (JSON lines) or "
    "--csv-log, "
    "one below the other, over the epochs counted from 1: in the terminal, and to a file. Several logs are drawn "
    "together, to compare them; validation is dashed.\v"
    "Examples:\n"
    "\n"
    "  In the terminal:\n"
    "    tandem plot run.jsonl\n"
    "\n"
    "  Two runs compared, the loss on a logarithmic axis, as a picture:\n"
    "    tandem plot adam.jsonl sgd.jsonl --curves loss --log-y --output loss.png\n",
    options,
    run};
