/* td_find_learning_rate: the model stays as it is, whatever happens; the curve is that of a training by hand; what a
 * suggestion is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "support/devices.h"
#include "support/small.h"

enum { ROWS = 96, BATCH = 16, STEPS = 40 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS];
static td_context *context;

static int set_up(void **state)
{
    (void)state;
    small_data(ROWS, x, y);
    context = td_context_create(NULL);
    return context ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    td_context_free(context);
    return 0;
}

static td_data *samples(void)
{
    return td_arrays(ROWS, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
}

static td_model *model_of(small_kind kind, td_optimizer optimizer)
{
    return small_model(context, kind, optimizer, td_mirrored(test_devices(0)));
}

static td_rate_test *find(td_model *model, double start, double end, int steps)
{
    td_rate_test *test;
    if (td_find_learning_rate(model, samples(), &test, .start = start, .end = end, .steps = steps, .batch_size = BATCH,
                              .seed = 3) != TD_OK)
        fail_msg("%s", td_error(context));
    return test;
}

static td_status set_rate(void *user, td_training *training)
{
    return td_training_set_learning_rate(training, *(const double *)user);
}

static td_status next_rate(void *user, td_training *training, const td_logs *logs)
{
    double *rate = user;
    (void)logs;
    *rate = 1e-4 * pow(1e3, (double)(td_training_epoch(training) * (ROWS / BATCH) + td_training_steps(training)) /
                                (STEPS - 1));
    return td_training_set_learning_rate(training, *rate);
}

/* Epoch by epoch the means of the steps' losses are those of td_fit, whose rate a callback sets as the test does. */
static void test_the_curve_is_a_trainings(void **state)
{
    (void)state;
    double rate = 1e-4;
    td_rate_test *test = find(model_of(SMALL_MIXED, td_sgd(.momentum = 0.9f)), 1e-4, 0.1, STEPS);
    td_model *model = model_of(SMALL_MIXED, td_sgd(.momentum = 0.9f));
    assert_int_equal(td_rate_test_count(test), STEPS);
    for (int epoch = 0; epoch < STEPS / (ROWS / BATCH); epoch++) {
        td_epoch last;
        double sum = 0;
        td_callback *callback =
            td_callback_create(&(td_callback_functions){.train_begin = set_rate, .batch_end = next_rate}, &rate);
        assert_int_equal(td_fit(model, samples(), .epochs = epoch + 1, .initial_epoch = epoch, .batch_size = BATCH,
                                .seed = 3, .last = &last, .callbacks = TD_CALLBACKS(callback)),
                         TD_OK);
        for (int i = 0; i < ROWS / BATCH; i++)
            sum += td_rate_test_step(test, epoch * (ROWS / BATCH) + i).loss;
        assert_true(fabs(sum / (ROWS / BATCH) - last.logs.entry[0].value) < 1e-5 * last.logs.entry[0].value);
    }
    td_rate_test_free(test);
}

static void expect_same(const td_model *model, const float *values, const float *slot, const td_optimizer *optimizer)
{
    assert_memory_equal(tdi_model_values(model), values, (size_t)model->architecture->total * sizeof *values);
    assert_memory_equal(tdi_model_slots(model, 0), slot, (size_t)model->architecture->trained * sizeof *slot);
    assert_memory_equal(&model->state->optimizer, optimizer, sizeof *optimizer);
    assert_int_equal(model->state->iteration, ROWS / BATCH);
    assert_null(td_model_recipe(model));
}

static float *copy_of(const float *floats, int64_t count)
{
    float *copy = malloc((size_t)count * sizeof *copy);
    assert_non_null(copy);
    return memcpy(copy, floats, (size_t)count * sizeof *copy);
}

static void test_the_model_stays_as_it_is(void **state)
{
    (void)state;
    const td_optimizer ways[] = {td_adam(.use_ema = TD_YES),
                                 td_adam(.schedule = td_cosine_decay(1e-3f, .decay_steps = 10))};
    for (size_t i = 0; i < 2; i++) {
        td_model *model = model_of(SMALL_NORM, ways[i]);
        td_rate_test *test;
        assert_int_equal(td_fit(model, samples(), .batch_size = BATCH), TD_OK);
        float *values = copy_of(tdi_model_values(model), model->architecture->total),
              *slot = copy_of(tdi_model_slots(model, 0), model->architecture->trained);
        td_optimizer optimizer = td_model_optimizer(model);
        td_rate_test_free(find(model, 1e-6, 1e4, STEPS));
        expect_same(model, values, slot, &optimizer);
        x[7] = NAN; /* a failure */
        assert_int_equal(td_find_learning_rate(model, td_open("nothere.npz"), &test), TD_NOT_FOUND);
        assert_null(test);
        td_clear_error(context);
        assert_int_equal(td_find_learning_rate(model, samples(), &test, .steps = STEPS, .batch_size = BATCH),
                         TD_NOT_FINITE);
        assert_null(test);
        assert_non_null(strstr(td_error(context), "look for NaN or infinite values in the data"));
        td_clear_error(context);
        small_data(ROWS, x, y);
        expect_same(model, values, slot, &optimizer);
        free(values);
        free(slot);
    }
}

static void test_a_suggestion_is_where_the_loss_falls(void **state)
{
    (void)state;
    td_rate_test *test = find(model_of(SMALL_MLP, td_sgd()), 1e-5, 1e3, STEPS);
    int steepest = td_rate_test_steepest(test), best = td_rate_test_best(test);
    assert_true(steepest > 0 && best >= steepest && best < td_rate_test_count(test));
    assert_true(td_rate_test_suggestion(test) == td_rate_test_step(test, steepest).learning_rate);
    assert_true(td_rate_test_step(test, best).smoothed < td_rate_test_first_loss(test));
    td_rate_test_free(test);
    test =
        find(model_of(SMALL_MLP, td_sgd()), 1e30, 1e38, STEPS); /* no number after a step, for no fault of the data */
    assert_true(td_rate_test_diverged(test) && td_rate_test_count(test) < STEPS);
    assert_true(td_rate_test_steepest(test) == -1 && td_rate_test_suggestion(test) == 0);
    td_rate_test_free(test);
    test = find(model_of(SMALL_MLP, td_sgd()), 1e-30, 1e-29, 0);
    assert_int_equal(td_rate_test_steepest(test), -1);
    assert_true(td_rate_test_suggestion(test) == 0 && !td_rate_test_diverged(test));
    assert_true(td_rate_test_step(test, 200).learning_rate == 0 && td_rate_test_step(test, -1).loss == 0);
    td_rate_test_free(test);
    td_rate_test_free(NULL);
}

static void refuse(td_find_learning_rate_args args, const char *pattern)
{
    td_rate_test *test = (td_rate_test *)&args;
    args.data = samples();
    args.test = &test;
    assert_int_equal(td_find_learning_rate_(&args), TD_INVALID_ARGUMENT);
    assert_null(test);
    if (!strstr(td_error(context), pattern))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), pattern);
    td_clear_error(context);
}

static void test_what_cannot_be(void **state)
{
    (void)state;
    td_model *model = model_of(SMALL_MLP, td_sgd());
    refuse((td_find_learning_rate_args){.model = model, .start = 1, .end = 0.5}, "from a rate of 1 to 0.5");
    refuse((td_find_learning_rate_args){.model = model, .start = -1}, "from a rate of -1 to 10");
    refuse((td_find_learning_rate_args){.model = model, .end = INFINITY}, "to inf");
    refuse((td_find_learning_rate_args){.model = model, .steps = 19}, "steps: 19; at least 20");
    refuse((td_find_learning_rate_args){.model = model, .batch_size = ROWS + 1}, "do not fill one batch");
    refuse((td_find_learning_rate_args){.model = model, .guard = 1}, "takes three arguments");
    td_tensor *input = td_input(context, TD_SHAPE(SMALL_SAMPLE));
    refuse((td_find_learning_rate_args){.model = td_model_create(input, td_dense(input, 2))}, "has no loss");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_the_curve_is_a_trainings), TEST(test_the_model_stays_as_it_is),
                                       TEST(test_a_suggestion_is_where_the_loss_falls), TEST(test_what_cannot_be)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
