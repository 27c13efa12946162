/* rate_test.c - td_find_learning_rate: trains a clone while the rate grows by the same factor at each step, from one
 * that changes nothing to one that is too high; a good rate is where the loss falls fastest. */
#include <tandem/rate_test.h>

#include <math.h>
#include <stdlib.h>

#include "train/epoch_run.h"

enum { STEPS = 200, LEAST_STEPS = 20 };

static const double START = 1e-7, END = 10, SMOOTHING = 0.9, DIVERGED = 4;

struct td_rate_test {
    double start, growth; /* the first rate; each step's over the one before */
    double loss_sum;      /* over the epoch's steps */
    double average;       /* of the losses, with its bias */
    double least;         /* of the smoothed, behind the first tenth */
    bool diverged;
    bool not_finite; /* diverged so far that the loss was no number */
    int steps, done;
    td_rate_step at[]; /* [steps], `done` of them known */
};

/* ---- the test ---- */

static td_status train_begin(void *user, td_training *training)
{
    const td_rate_test *test = user;
    return td_training_set_learning_rate(training, test->start);
}

/* An exponential average without its bias towards zero, as Adam's (Kingma and Ba, 1412.6980). */
static void add_loss(td_rate_test *test, double loss)
{
    td_rate_step *step = &test->at[test->done++];
    test->average = SMOOTHING * test->average + (1 - SMOOTHING) * loss;
    step->loss = loss;
    step->smoothed = test->average / (1 - pow(SMOOTHING, (double)test->done));
    if (test->done > test->steps / 10) /* before, by chance */
        test->least = fmin(test->least, step->smoothed);
    test->diverged = step->smoothed > DIVERGED * test->least;
}

/* Recovers a step's loss from the logs, which hold means over the epoch's steps so far; all batches are full. */
static td_status batch_end(void *user, td_training *training, const td_logs *logs)
{
    td_rate_test *test = user;
    int64_t steps = td_training_steps(training);
    double sum = logs->entry[0].value * (double)steps;
    if (test->diverged)
        return TD_OK;
    test->at[test->done].learning_rate = td_training_learning_rate(training);
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
    td_rate_test *test = user;
    (void)training;
    test->diverged = test->not_finite = true;
    return TD_OK;
}

static td_status train(const td_find_learning_rate_args *args, td_model *clone, td_rate_test *test)
{
    td_callback *callbacks[] = {
        td_callback_create(
            &(td_callback_functions){.train_begin = train_begin, .batch_end = batch_end, .not_finite = not_finite},
            test),
        NULL};
    clone->state->optimizer.schedule = (td_schedule){.kind = TD_SCHEDULE_NONE};
    return td_fit_(&(td_fit_args){.at = args->at,
                                  .model = clone,
                                  .data = td_data_retain(args->data),
                                  .epochs = test->steps,
                                  .batch_size = args->batch_size,
                                  .drop_remainder = TD_YES,
                                  .seed = args->seed,
                                  .adapt = args->adapt,
                                  .class_weight = args->class_weight,
                                  .balance_classes = args->balance_classes,
                                  .callbacks = callbacks});
}

/* ---- what it says ---- */

int td_rate_test_count(const td_rate_test *test)
{
    return test ? test->done : 0;
}

td_rate_step td_rate_test_step(const td_rate_test *test, int index)
{
    return index >= 0 && index < td_rate_test_count(test) ? test->at[index] : (td_rate_step){0};
}

int td_rate_test_diverged(const td_rate_test *test)
{
    return test && test->diverged;
}

/* The mean and the deviation of the first tenth's losses. */
static double beginning(const td_rate_test *test, double *deviation)
{
    int count = test->done < test->steps / 10 ? test->done : test->steps / 10;
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++)
        sum += test->at[i].loss;
    double mean = count ? sum / count : 0;
    for (int i = 0; i < count; i++)
        squares += (test->at[i].loss - mean) * (test->at[i].loss - mean);
    *deviation = count ? sqrt(squares / count) : 0;
    return mean;
}

double td_rate_test_first_loss(const td_rate_test *test)
{
    double deviation;
    return test ? beginning(test, &deviation) : 0;
}

/* The step with the best rate. The first tenth is left out: the average is of a few batches only there. */
int td_rate_test_best(const td_rate_test *test)
{
    if (!test)
        return -1;
    int best = test->steps / 10;
    for (int i = best + 1; i < test->done; i++)
        if (test->at[i].smoothed < test->at[best].smoothed)
            best = i;
    return best < test->done ? best : -1;
}

/* The slope of the smoothed loss over the step, which is the rate's logarithm, by least squares over [first, last]. */
static double slope(const td_rate_test *test, int first, int last)
{
    double middle = (double)(first + last) / 2, above = 0, below = 0;
    for (int i = first; i <= last; i++) {
        above += (i - middle) * test->at[i].smoothed;
        below += (i - middle) * (i - middle);
    }
    return above / below;
}

int td_rate_test_steepest(const td_rate_test *test)
{
    if (!test)
        return -1;
    double deviation, first = beginning(test, &deviation), fastest = 0;
    int reach = test->steps / 20, steepest = -1;
    if (!(test->least < first - deviation))
        return -1;
    for (int i = td_rate_test_best(test); i >= reach && test->at[i].smoothed < first; i--) {
        double here = slope(test, i - reach, i + reach < test->done ? i + reach : test->done - 1);
        if (here < fastest) {
            fastest = here;
            steepest = i;
        }
    }
    return steepest;
}

double td_rate_test_suggestion(const td_rate_test *test)
{
    return td_rate_test_step(test, td_rate_test_steepest(test)).learning_rate;
}

/* ---- making it ---- */

static td_rate_test *allocate(double start, double growth, int steps)
{
    td_rate_test *test = calloc(1, sizeof *test + (size_t)steps * sizeof *test->at);
    if (test)
        *test = (td_rate_test){.start = start, .growth = growth, .least = INFINITY, .steps = steps};
    return test;
}

static td_status create(const td_find_learning_rate_args *args, td_rate_test **made, tdi_error *error)
{
    double start = args->start != 0 ? args->start : START, end = args->end != 0 ? args->end : END;
    int steps = args->steps ? args->steps : STEPS;
    if (args->guard || !args->test)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_find_learning_rate takes three arguments, where the test goes among them; give the rest by "
                        "name");
    if (!(start > 0 && start < end && isfinite(end)))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_find_learning_rate: from a rate of %g to %g; finite numbers above 0, the second greater, "
                        "were expected",
                        start, end);
    if (steps < LEAST_STEPS)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_find_learning_rate: steps: %d; at least %d were expected",
                        steps, LEAST_STEPS);
    *made = allocate(start, pow(end / start, 1 / (double)(steps - 1)), steps);
    return *made ? TD_OK : tdi_no_memory(error);
}

static td_status train_clone(const td_find_learning_rate_args *args, td_rate_test *test, tdi_error *error)
{
    td_model clone;
    TDI_TRY(tdi_model_need_slots(args->model, error));
    TDI_TRY(tdi_model_clone(args->model, true, &clone, error));
    td_status status = train(args, &clone, test);
    tdi_model_release_clone(&clone);
    return status; /* of a failure td_fit has told the context */
}

/* Runs the same steps at a rate that moves no weight: where the loss is not finite even then, no rate is at fault. */
static td_status try_standing_still(const td_find_learning_rate_args *args, int steps, tdi_error *error)
{
    td_rate_test *still = allocate(0, 1, steps);
    if (!still)
        return tdi_no_memory(error);
    td_status status = train_clone(args, still, error);
    if (status == TD_OK && still->not_finite)
        status = tdi_fail(error, TD_NOT_FINITE,
                          "td_find_learning_rate: the loss is no finite number in step %d, with the weights as they "
                          "are, whatever the rate; look for NaN or infinite values in the data",
                          still->done + 1);
    td_rate_test_free(still);
    return status;
}

static td_status find(const td_find_learning_rate_args *args, td_rate_test **test, tdi_error *error)
{
    TDI_TRY(create(args, test, error));
    TDI_TRY(tdi_check_compiled(args->model, true, error));
    TDI_TRY(train_clone(args, *test, error));
    return (*test)->not_finite ? try_standing_still(args, (*test)->done + 1, error) : TD_OK;
}

td_status td_find_learning_rate_(const td_find_learning_rate_args *args)
{
    tdi_error error = {0};
    td_rate_test *test = NULL;
    td_status status = args->model ? find(args, &test, &error) : TD_INVALID_ARGUMENT;
    td_data_release(args->data);
    if (status != TD_OK) {
        td_rate_test_free(test);
        test = NULL;
    }
    if (args->test)
        *args->test = test;
    return args->model && error.status != TD_OK ? tdi_report(args->model, &args->at, status, &error) : status;
}

void td_rate_test_free(td_rate_test *test)
{
    free(test);
}
