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

/* ---- JSON lines ---- */

/* True for an incomplete line, whose writer was killed or is still writing. */
static bool is_torn(const char *line)
{
    return line[strlen(line) - 1] != '\n';
}

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
    json_t *object = json_loads(line, 0, NULL), *epoch = json_object_get(object, "epoch");
    if (!object && is_torn(line) && reader->line > 1) {
        fprintf(stderr, "%s: %s, line %d, is cut short and left out\n", program_invocation_name, reader->path,
                reader->line);
        return TOOL_DONE;
    }
    int status = json_is_number(epoch) ? add_members(reader, object, json_number_value(epoch) + 1)
                                       : refuse_line(reader, "a JSON object with \"epoch\"");
    json_decref(object);
    return status;
}

/* ---- CSV ---- */

enum { MOST_COLUMNS = 64 };

struct columns {
    int count;
    char names[MOST_COLUMNS][64];
};

static void read_header(const char *line, struct columns *columns)
{
    for (const char *at = line; columns->count < MOST_COLUMNS; at++) {
        size_t length = strcspn(at, ",;\t\r\n");
        snprintf(columns->names[columns->count++], sizeof columns->names[0], "%.*s", (int)length, at);
        at += length;
        if (!*at || *at == '\r' || *at == '\n')
            return;
    }
}

static int read_csv_line(struct reader *reader, const struct columns *columns, const char *line)
{
    double epoch = NAN;
    int column = 0;
    for (const char *at = line; column < columns->count; column++) {
        size_t length = strcspn(at, ",;\t\r\n");
        char *end;
        double value = strtod(at, &end);
        bool number = length && end == at + length;
        if (column == 0 && !number)
            return refuse_line(reader, "the number of an epoch first");
        if (column == 0)
            epoch = value + 1;
        int status = number ? add_number(reader, columns->names[column], epoch, value) : TOOL_DONE;
        if (status != TOOL_DONE)
            return status;
        at += length;
        if (!*at || *at == '\r' || *at == '\n')
            break;
        at++;
    }
    return TOOL_DONE;
}

/* ---- files ---- */

static int read_line(struct reader *reader, struct columns *columns, const char *line)
{
    reader->line++;
    const char *at = line + strspn(line, " \t\r\n");
    if (!*at)
        return TOOL_DONE;
    if (*at == '{')
        return read_json_line(reader, at);
    if (columns->count)
        return read_csv_line(reader, columns, line);
    if (strncmp(at, "epoch", 5) != 0)
        return refuse_line(reader, "a JSON object, or a CSV header that begins with epoch");
    read_header(at, columns);
    return TOOL_DONE;
}

static int read_log(const struct options *options, struct chart *chart, int number)
{
    struct reader reader = {options, chart, options->arguments[number], number, 0};
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
    if (status == TOOL_DONE && !reader.line)
        status = tool_fail("%s is empty; `tandem fit --log` writes a line per epoch", reader.path);
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
