/* find_lr.c - `tandem find-lr`: runs td_find_learning_rate, draws its curve and prints its suggestion. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chart.h"
#include "class_weights.h"
#include "options.h"
#include "output_conflicts.h"
#include "picture.h"
#include "session.h"
#include "stop_signals.h"

struct find {
    const struct options *options;
    struct session session;
    td_data *data;
    struct class_weights class_weights;
    FILE *log;
    td_rate_test *test;
};

/* ---- what it says ---- */

static double smoothed(const td_rate_test *test, int step)
{
    return td_rate_test_step(test, step).smoothed;
}

/* The upper end of the picture; losses far above the first tell nothing more. */
static double top(const td_rate_test *test)
{
    return fmax(smoothed(test, 0), 4 * smoothed(test, td_rate_test_best(test)));
}

static bool draw_losses(const td_rate_test *test, struct chart *chart, int panel)
{
    struct series *series = chart_series(chart, panel, "smoothed");
    for (int i = 0; i < td_rate_test_count(test) && series; i++)
        if (!series_add(series, td_rate_test_step(test, i).learning_rate, fmin(smoothed(test, i), top(test))))
            return false;
    return series;
}

/* Draws a vertical line, from the least loss to the first one, at the suggested rate. */
static bool draw_suggestion(const td_rate_test *test, struct chart *chart, int panel)
{
    double rate = td_rate_test_suggestion(test);
    struct series *series = chart_series(chart, panel, "steepest");
    if (!series || !series_add(series, rate, smoothed(test, td_rate_test_best(test))) ||
        !series_add(series, rate, td_rate_test_first_loss(test)))
        return false;
    series->dashed = true;
    series->colour = 1;
    return true;
}

static int draw(const struct find *find)
{
    const td_rate_test *test = find->test;
    struct chart chart = {.x_label = "learning rate", .log_x = true};
    int panel = chart_panel(&chart, "loss");
    bool drawn =
        draw_losses(test, &chart, panel) && (td_rate_test_steepest(test) < 0 || draw_suggestion(test, &chart, panel));
    int status = drawn ? chart_show(&chart, find->options->output, find->options->quiet) : tool_fail("out of memory");
    chart_release(&chart);
    return status;
}

static int write_log(struct find *find)
{
    if (!find->log)
        return TOOL_DONE;
    fputs("step,learning_rate,loss,smoothed_loss\n", find->log);
    for (int i = 0; i < td_rate_test_count(find->test); i++) {
        td_rate_step step = td_rate_test_step(find->test, i);
        fprintf(find->log, "%d,%.9g,%.17g,%.17g\n", i, step.learning_rate, step.loss, step.smoothed);
    }
    bool written = !ferror(find->log);
    written = fclose(find->log) == 0 && written;
    find->log = NULL;
    return written ? TOOL_DONE : tool_fail("--csv-log: %s is incomplete: %s", find->options->csv_log, strerror(errno));
}

static double last_rate(const td_rate_test *test)
{
    return td_rate_test_step(test, td_rate_test_count(test) - 1).learning_rate;
}

static void say(const td_rate_test *test)
{
    double suggested = td_rate_test_suggestion(test);
    double best = td_rate_test_step(test, td_rate_test_best(test)).learning_rate;
    if (td_rate_test_diverged(test))
        printf("The loss diverged after %d steps, at a rate of %.3g.\n", td_rate_test_count(test), last_rate(test));
    printf("The loss falls fastest at a rate of %.3g; it is least at %.3g, a tenth of which is %.3g.\n", suggested,
           best, best / 10);
    printf("Try --learning-rate %.2g.\n", suggested);
}

static int report(struct find *find)
{
    const td_rate_test *test = find->test;
    int status = write_log(find);
    if (status == TOOL_DONE && td_rate_test_count(test))
        status = draw(find);
    if (status != TOOL_DONE)
        return status;
    if (td_rate_test_steepest(test) < 0)
        return tool_fail(
            "at rates from %.3g to %.3g the loss does not fall by more than batches differ; try other rates, "
            "more --steps, or a greater --batch-size",
            td_rate_test_step(test, 0).learning_rate, last_rate(test));
    if (find->options->quiet)
        printf("%.3g\n", td_rate_test_suggestion(test));
    else
        say(test);
    return TOOL_DONE;
}

/* ---- the command ---- */

static int open_log(struct find *find)
{
    const char *path = find->options->csv_log;
    if (!path)
        return TOOL_DONE;
    find->log = fopen(path, "w");
    return find->log ? TOOL_DONE
                     : tool_fail("--csv-log: cannot write %s: %s; name another file", path, strerror(errno));
}

static int check_rates(const struct options *options)
{
    double start = options->start_lr.is_set ? (double)options->start_lr.value : 1e-7;
    double end = options->end_lr.is_set ? (double)options->end_lr.value : 10;
    if (start < end)
        return TOOL_DONE;
    return tool_refuse("--end-lr: expected a rate above --start-lr, %g, got %g; try --end-lr 10", start, end);
}

/* Makes all checks that can be made before the test begins. */
static int prepare(struct find *find)
{
    const struct options *options = find->options;
    int status = check_rates(options);
    if (status == TOOL_DONE && options->output)
        status = picture_check_path("output", options->output);
    if (status == TOOL_DONE)
        status = output_conflicts_check(options, options->output);
    if (status == TOOL_DONE)
        status = session_prepare(options, &find->session, &find->data);
    if (status == TOOL_DONE)
        status = class_weights_read(options->class_weight, td_data_recipe(find->data),
                                    td_model_recipe(find->session.model), &find->class_weights);
    return status == TOOL_DONE ? open_log(find) : status;
}

static int find_and_report(struct find *find)
{
    const struct options *options = find->options;
    td_data *data = find->data;
    find->data = NULL; /* td_find_learning_rate adopts it */
    stop_on_signals(find->session.context);
    td_status status = td_find_learning_rate_(
        &(td_find_learning_rate_args){.model = find->session.model,
                                      .data = data,
                                      .test = &find->test,
                                      .start = (double)options->start_lr.value,
                                      .end = (double)options->end_lr.value,
                                      .steps = (int)options->steps,
                                      .batch_size = options->batch_size,
                                      .seed = (uint64_t)options->seed,
                                      .class_weight = find->class_weights.list,
                                      .balance_classes = find->class_weights.balanced ? TD_YES : TD_NO,
                                      .adapt = options->adapt ? TD_YES : TD_NO});
    if (stop_signal())
        return 128 + stop_signal();
    return status == TD_OK ? report(find) : session_failed(&find->session);
}

static int run(const struct options *options)
{
    struct find find = {.options = options};
    int status = prepare(&find);
    if (status == TOOL_DONE)
        status = find_and_report(&find);
    if (find.log)
        fclose(find.log);
    td_rate_test_free(find.test);
    td_data_release(find.data);
    class_weights_release(&find.class_weights);
    session_close(&find.session);
    return status;
}

enum { GROUP_DATA = 1, GROUP_TEST, GROUP_DEVICES, GROUP_COMPILE, GROUP_RESULT };

static const struct argp_option options[] = {
    OPTION_GROUP("Data:", GROUP_DATA),
    OPTION_TRAIN,
    OPTION_ADAPT,
    OPTION_INTERLEAVE,
    OPTION_SHARD,
    OPTION_CACHE,
    OPTION_AUGMENT,
    OPTIONS_READING,
    OPTIONS_LOSS_WEIGHTS,
    OPTION_GROUP("Test:", GROUP_TEST),
    {"start-lr", KEY_START_LR, "F", 0, "The first step's rate (default: 1e-7)", 0},
    {"end-lr", KEY_END_LR, "F", 0, "The last step's rate (default: 10)", 0},
    {"steps", KEY_STEPS, "N", 0, "How many steps (default: 200)", 0},
    OPTION_WEIGHTS,
    OPTION_BATCH_SIZE,
    OPTION_SEED,
    OPTION_GROUP("Devices:", GROUP_DEVICES),
    OPTION_DEVICES,
    OPTION_SHARDS,
    OPTION_REMATERIALIZE,
    OPTION_PRECISION,
    OPTION_GROUP("Over the file's compile configuration:", GROUP_COMPILE),
    OPTIONS_OPTIMIZER,
    OPTIONS_LOSS,
    OPTION_IGNORE_CLASS,
    OPTION_GROUP("Results:", GROUP_RESULT),
    {"output", KEY_OUTPUT, "FILE.png|svg", 0, "Draw the curve to a file, too", 0},
    {"csv-log", KEY_CSV_LOG, "FILE.csv", 0, "Write each step's rate and loss", 0},
    {"quiet", KEY_QUIET, NULL, 0, "Print the suggested rate alone", 0},
    OPTIONS_END};

const struct command find_lr_command = {
    "find-lr",
    "MODEL.keras",
    "which learning rate to train a model with", /* */
    "Trains MODEL.keras for some steps while the learning rate grows from step to step, and draws the loss over the "
    "rate: a range test (Smith, arXiv 1506.01186). It ends when the loss, smoothed, is 4 times its least. Suggested is "
    "the rate at which the loss falls fastest. The file is not changed.\n\n" HELP_DATA "\v"
    "Examples:\n"
    "\n"
    "  The curve in the terminal:\n"
    "    tandem find-lr mlp.keras --train mnist/\n"
    "\n"
    "  For SGD with large batches, as a picture:\n"
    "    tandem find-lr cnn.keras --train images.npz --optimizer sgd \\\n"
    "      --momentum 0.9 --batch-size 512 --output rates.png\n"
    "\n"
    "  Found and used by a script:\n"
    "    tandem fit mlp.keras --train mnist/ \\\n"
    "      --learning-rate \"$(tandem find-lr mlp.keras --train mnist/ --quiet)\"\n",
    options,
    run};
