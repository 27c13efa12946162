/* find_lr.c - `tandem find-lr`: a learning rate range test (Smith, 1506.01186). The rate grows by the same factor at
 * each step, from one that does nothing to one that is too much; where the loss falls fastest is a rate to train with.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "options.h"
#include "picture.h"
#include "session.h"
#include "stop.h"

enum { STEPS = 200 };

static const double START = 1e-7, END = 10, SMOOTHING = 0.9, DIVERGED = 4;

struct point {
    double rate, loss, smoothed;
};

struct test {
    const struct options *options;
    struct session session;
    td_data *data;
    FILE *log;
    double start, growth; /* the first rate; each step's over the one before */
    int64_t steps, done;
    struct point *points; /* [steps], malloc'd; `done` of them are known */
    double loss_sum;      /* over the epoch's steps */
    double average, best; /* of the losses; the least of the smoothed, behind the first tenth */
    bool diverged;
};

/* ---- the test ---- */

static td_status train_begin(void *user, td_training *training)
{
    const struct test *test = user;
    stop_again();
    return td_training_set_learning_rate(training, test->start);
}

/* An exponential average without its bias towards zero, as Adam's (Kingma and Ba, 1412.6980). */
static void add_loss(struct test *test, double loss)
{
    struct point *point = &test->points[test->done++];
    test->average = SMOOTHING * test->average + (1 - SMOOTHING) * loss;
    point->loss = loss;
    point->smoothed = test->average / (1 - pow(SMOOTHING, (double)test->done));
    if (test->done > test->steps / 10) /* before, by chance */
        test->best = fmin(test->best, point->smoothed);
    test->diverged = point->smoothed > DIVERGED * test->best;
}

/* The logs hold means over the epoch's steps so far; all batches are full. */
static td_status batch_end(void *user, td_training *training, const td_logs *logs)
{
    struct test *test = user;
    int64_t steps = td_training_steps(training);
    double sum = logs->entry[0].value * (double)steps;
    test->points[test->done].rate = td_training_learning_rate(training);
    add_loss(test, steps == 1 ? sum : sum - test->loss_sum);
    test->loss_sum = sum;
    if (test->diverged || test->done == test->steps) {
        td_training_stop(training);
        return TD_OK;
    }
    return td_training_set_learning_rate(training, test->start * pow(test->growth, (double)test->done));
}

static td_status not_finite(void *user, td_training *training)
{
    struct test *test = user;
    (void)training;
    test->diverged = true;
    return TD_OK;
}

static td_status train(struct test *test)
{
    const struct options *options = test->options;
    td_callback *callbacks[] = {
        td_callback_create(
            &(td_callback_functions){.train_begin = train_begin, .batch_end = batch_end, .not_finite = not_finite},
            test),
        NULL};
    td_data *data = test->data;
    test->data = NULL; /* td_fit adopts it */
    return td_fit_(&(td_fit_args){.model = test->session.model,
                                  .data = data,
                                  .epochs = (int)test->steps,
                                  .batch_size = options->batch_size,
                                  .drop_remainder = TD_YES,
                                  .seed = (uint64_t)options->seed,
                                  .adapt = options->adapt ? TD_YES : TD_NO,
                                  .callbacks = callbacks});
}

/* ---- what it says ---- */

/* Of the losses of the first tenth, where the rate does next to nothing: their mean, and how much batches differ. */
struct beginning {
    double mean, deviation;
};

static struct beginning beginning_of(const struct test *test)
{
    int64_t count = test->done < test->steps / 10 ? test->done : test->steps / 10;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += test->points[i].loss;
    double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += (test->points[i].loss - mean) * (test->points[i].loss - mean);
    return (struct beginning){mean, sqrt(squares / (double)count)};
}

/* The step with the least loss, behind the first tenth: there the average is of a few batches only. */
static int64_t best_step(const struct test *test)
{
    int64_t best = test->steps / 10;
    for (int64_t i = best + 1; i < test->done; i++)
        if (test->points[i].smoothed < test->points[best].smoothed)
            best = i;
    return best;
}

/* Of the smoothed loss over the step, which is the rate's logarithm, by least squares from `first` to `last`. */
static double slope(const struct test *test, int64_t first, int64_t last)
{
    double middle = (double)(first + last) / 2, above = 0, below = 0;
    for (int64_t i = first; i <= last; i++) {
        above += ((double)i - middle) * test->points[i].smoothed;
        below += ((double)i - middle) * ((double)i - middle);
    }
    return above / below;
}

/* On its way from what it was at first down to its least, the step at which the loss falls fastest, looking a twentieth
 * of the test to both sides; -1 when it does not fall by more than batches differ. */
static int64_t steepest_step(const struct test *test)
{
    struct beginning beginning = beginning_of(test);
    int64_t reach = test->steps / 20, steepest = -1;
    double least = 0;
    if (!(test->best < beginning.mean - beginning.deviation))
        return -1;
    for (int64_t i = best_step(test); i >= reach && test->points[i].smoothed < beginning.mean; i--) {
        double here = slope(test, i - reach, i + reach < test->done ? i + reach : test->done - 1);
        if (here < least) {
            least = here;
            steepest = i;
        }
    }
    return steepest;
}

/* Where the picture ends: losses far above say no more than that they are. */
static double top(const struct test *test)
{
    return fmax(test->points[0].smoothed, DIVERGED * test->best);
}

static bool draw_losses(const struct test *test, struct chart *chart, int panel)
{
    struct series *series = chart_series(chart, panel, "smoothed");
    for (int64_t i = 0; i < test->done && series; i++)
        if (!series_add(series, test->points[i].rate, fmin(test->points[i].smoothed, top(test))))
            return false;
    return series;
}

/* An upright line from the least loss to what it was at first. */
static bool draw_rate(const struct test *test, struct chart *chart, int panel, double rate)
{
    struct series *series = chart_series(chart, panel, "steepest");
    if (!series || !series_add(series, rate, test->best) || !series_add(series, rate, beginning_of(test).mean))
        return false;
    series->dashed = true;
    series->colour = 1;
    return true;
}

static int draw(const struct test *test, int64_t steepest)
{
    struct chart chart = {.x_label = "learning rate", .log_x = true};
    int panel = chart_panel(&chart, "loss");
    bool drawn = draw_losses(test, &chart, panel) &&
                 (steepest < 0 || draw_rate(test, &chart, panel, test->points[steepest].rate));
    int status = drawn ? chart_show(&chart, test->options->output, test->options->quiet) : tool_fail("out of memory");
    chart_release(&chart);
    return status;
}

static int write_log(struct test *test)
{
    if (!test->log)
        return TOOL_DONE;
    fputs("step,learning_rate,loss,smoothed_loss\n", test->log);
    for (int64_t i = 0; i < test->done; i++)
        fprintf(test->log, "%lld,%.9g,%.17g,%.17g\n", (long long)i, test->points[i].rate, test->points[i].loss,
                test->points[i].smoothed);
    bool written = !ferror(test->log);
    written = fclose(test->log) == 0 && written;
    test->log = NULL;
    return written ? TOOL_DONE : tool_fail("--csv-log: %s is incomplete: %s", test->options->csv_log, strerror(errno));
}

static void say(const struct test *test, int64_t steepest)
{
    int64_t best = best_step(test);
    if (test->options->quiet) {
        printf("%.3g\n", test->points[steepest].rate);
        return;
    }
    if (test->diverged)
        printf("The loss diverged after %lld steps, at a rate of %.3g.\n", (long long)test->done,
               test->points[test->done - 1].rate);
    printf("The loss falls fastest at a rate of %.3g; it is least at %.3g, a tenth of which is %.3g.\n",
           test->points[steepest].rate, test->points[best].rate, test->points[best].rate / 10);
    printf("Try --learning-rate %.2g.\n", test->points[steepest].rate);
}

static int report(struct test *test)
{
    int64_t steepest = steepest_step(test);
    int status = write_log(test);
    if (status == TOOL_DONE && test->done)
        status = draw(test, steepest);
    if (status != TOOL_DONE)
        return status;
    if (steepest < 0)
        return tool_fail(
            "at rates from %.3g to %.3g the loss does not fall by more than batches differ; try other rates, "
            "more --steps, or a greater --batch-size",
            test->start, test->done ? test->points[test->done - 1].rate : test->start);
    say(test, steepest);
    return TOOL_DONE;
}

/* ---- the command ---- */

/* The test sets the rates itself: a schedule in the file gives way. */
static int leave_schedule(struct test *test)
{
    td_optimizer optimizer = td_model_optimizer(test->session.model);
    if (optimizer.schedule.kind == TD_SCHEDULE_NONE)
        return TOOL_DONE;
    optimizer.schedule = (td_schedule){.kind = TD_SCHEDULE_NONE};
    optimizer.learning_rate = (float)test->start;
    if (td_compile_(&(td_compile_args){.model = test->session.model, .optimizer = optimizer}) != TD_OK)
        return session_failed(&test->session);
    return TOOL_DONE;
}

static int open_data(struct test *test)
{
    const struct options *options = test->options;
    struct request request = {
        .option = "train", .path = options->train, .recipe = td_model_recipe(test->session.model)};
    int status = session_data(options, &request, &test->data);
    if (status == TOOL_DONE && options->augmented)
        status = session_augment(options, &test->data);
    return status;
}

static int open_log(struct test *test)
{
    const char *path = test->options->csv_log;
    if (!path)
        return TOOL_DONE;
    test->log = fopen(path, "w");
    return test->log ? TOOL_DONE
                     : tool_fail("--csv-log: cannot write %s: %s; name another file", path, strerror(errno));
}

static int check_rates(struct test *test)
{
    const struct options *options = test->options;
    double end = options->end_lr.is_set ? (double)options->end_lr.value : END;
    test->start = options->start_lr.is_set ? (double)options->start_lr.value : START;
    test->steps = options->steps ? options->steps : STEPS;
    test->growth = pow(end / test->start, 1 / (double)(test->steps - 1));
    if (test->start < end)
        return TOOL_DONE;
    return tool_refuse("--end-lr: expected a rate above --start-lr, %g, got %g; try --end-lr 10", test->start, end);
}

/* Everything that can be found wrong before the test begins. */
static int prepare(struct test *test)
{
    const struct options *options = test->options;
    if (!options->train)
        return tool_refuse("--train: expected the data to train on, got none; try --train mnist/");
    int status = check_rates(test);
    if (status == TOOL_DONE && options->output)
        status = picture_check_path("output", options->output);
    if (status == TOOL_DONE)
        status = session_load(options, &test->session);
    if (status == TOOL_DONE)
        status = leave_schedule(test);
    if (status == TOOL_DONE)
        status = session_compile(options, &test->session, TO_TRAIN);
    if (status == TOOL_DONE)
        status = open_data(test);
    if (status == TOOL_DONE)
        status = open_log(test);
    test->best = INFINITY;
    test->points = calloc((size_t)test->steps, sizeof *test->points);
    return status == TOOL_DONE && !test->points ? tool_fail("out of memory") : status;
}

static int train_and_report(struct test *test)
{
    stop_on_signals(test->session.context);
    td_status status = train(test);
    if (status == TD_STOPPED)
        return 128 + stop_signal();
    return status == TD_OK ? report(test) : session_failed(&test->session);
}

static int run(const struct options *options)
{
    struct test test = {.options = options};
    int status = prepare(&test);
    if (status == TOOL_DONE)
        status = train_and_report(&test);
    if (test.log)
        fclose(test.log);
    free(test.points);
    td_data_release(test.data);
    session_close(&test.session);
    return status;
}

enum { GROUP_DATA = 1, GROUP_TEST, GROUP_DEVICES, GROUP_COMPILE, GROUP_RESULT };

static const struct argp_option options[] = {
    OPTION_GROUP("Data:", GROUP_DATA),
    OPTION_TRAIN,
    OPTION_ADAPT,
    OPTION_AUGMENT,
    OPTIONS_READING,
    OPTION_GROUP("Test:", GROUP_TEST),
    {"start-lr", KEY_START_LR, "F", 0, "The first step's rate (default: 1e-7)", 0},
    {"end-lr", KEY_END_LR, "F", 0, "The last step's rate (default: 10)", 0},
    {"steps", KEY_STEPS, "N", 0, "How many steps (default: 200)", 0},
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
    "    tandem find-lr cnn.keras --train images.npz --optimizer sgd --momentum 0.9 \\\n"
    "      --batch-size 512 --output rates.png\n"
    "\n"
    "  Found and used by a script:\n"
    "    tandem fit mlp.keras --train mnist/ \\\n"
    "      --learning-rate \"$(tandem find-lr mlp.keras --train mnist/ --quiet)\"\n",
    options,
    run};
