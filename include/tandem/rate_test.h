/* rate_test.h - which learning rate to train a model with: a range test (Smith, arXiv 1506.01186).
 *
 *     td_rate_test *test;
 *     td_find_learning_rate(model, td_mnist("train"), &test);
 *     if (td_rate_test_suggestion(test) > 0)
 *         td_set_learning_rate(model, (float)td_rate_test_suggestion(test));
 *     td_rate_test_free(test); */
#ifndef TANDEM_RATE_TEST_H
#define TANDEM_RATE_TEST_H

#include <tandem/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct td_rate_test td_rate_test;

typedef struct td_find_learning_rate_args {
    td_location at;
    td_model *model;     /* compiled with an optimizer; it stays as it is, whatever the outcome */
    td_data *data;       /* adopted */
    td_rate_test **test; /* receives the test, which the caller frees with td_rate_test_free; NULL unless TD_OK */
    td_guard guard;
    double start, end;  /* the first step's rate, 1e-7, and the last's, 10; both above 0 */
    int steps;          /* at least 20; 0: 200. More than the data has batches begin it anew, in another order */
    int64_t batch_size; /* as td_fit's; only full batches are trained on */
    uint64_t seed;      /* as td_fit's */
    td_choice adapt;    /* as td_fit's */
    const td_class_weight *class_weight; /* as td_fit's */
    td_choice balance_classes;           /* as td_fit's */
} td_find_learning_rate_args;

/* Trains a copy of the model for some steps while the learning rate grows by the same factor from step to step, and
 * ends when the loss, smoothed, is 4 times its least, or no number. The optimizer is the model's, and so is its state;
 * a schedule is left aside. TD_STOPPED after td_request_stop; TD_INVALID_ARGUMENT for rates that do not rise or too few
 * steps. A loss that is no number ends the test, with TD_OK, unless the same steps have it with the weights as they
 * are: then TD_NOT_FINITE, the data are to blame. */
TD_API td_status td_find_learning_rate_(const td_find_learning_rate_args *args);
#ifndef __cplusplus
#define td_find_learning_rate(...)                                                                                     \
    td_find_learning_rate_(&(td_find_learning_rate_args){.at = TD_HERE, .model = __VA_ARGS__})
#endif
TD_BY_NAME_(td_status, td_find_learning_rate, td_find_learning_rate_args)

typedef struct td_rate_step {
    double learning_rate, loss;
    double smoothed; /* the loss as an exponential average of 0.9 without its bias towards zero */
} td_rate_step;

/* How many steps were made, and each of them; zeros for one that was not. */
TD_API int td_rate_test_count(const td_rate_test *test);
TD_API td_rate_step td_rate_test_step(const td_rate_test *test, int index);
/* Did it end before its last step, because the loss grew? */
TD_API int td_rate_test_diverged(const td_rate_test *test);
/* The mean loss of the first tenth of the steps, whose rates do next to nothing; 0 when no step was made. */
TD_API double td_rate_test_first_loss(const td_rate_test *test);
/* The step whose smoothed loss is the least behind the first tenth; -1: there is none. */
TD_API int td_rate_test_best(const td_rate_test *test);
/* The step at which the smoothed loss falls fastest, by least squares over a tenth of the test, on its way from the
 * first loss to its least; -1 when it falls by no more than batches differ: then other rates, more steps or greater
 * batches may do. */
TD_API int td_rate_test_steepest(const td_rate_test *test);
/* The rate of that step; 0 when there is none. */
TD_API double td_rate_test_suggestion(const td_rate_test *test);
TD_API void td_rate_test_free(td_rate_test *test); /* NULL is accepted */

#ifdef __cplusplus
}
#endif
#endif
