/* schedules.c - learning rates by the step: Keras's numbers, and what cannot be. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/optimizers.h"
#include "schedules_golden.h"

enum { STEPS = 60 };

static td_schedule resolved(td_schedule schedule)
{
    td_optimizer optimizer = td_sgd(.schedule = schedule);
    assert_int_equal(tdi_optimizer_resolve(&optimizer, NULL), TD_OK);
    return optimizer.schedule;
}

static void check(td_schedule schedule, const float *golden)
{
    schedule = resolved(schedule);
    assert_int_equal(tdi_schedule_check(&schedule, NULL), TD_OK);
    for (int step = 0; step < STEPS; step++) {
        float seen = tdi_schedule_rate(&schedule, step);
        if (!(fabsf(seen - golden[step]) <= 1e-6f * golden[0] + 4e-7f * golden[step]))
            fail_msg("%s: step %d has %.9g, Keras %.9g",
                     tdi_config_type_of(tdi_schedule_types, schedule.kind)->class_name, step, (double)seen,
                     (double)golden[step]);
    }
}

static void rates_are_keras(void **state)
{
    (void)state;
    const int64_t boundaries[] = {10, 30, 31};
    const float values[] = {0.5f, 0.2f, 0.1f, 0.02f};
    check(td_exponential_decay(0.1f, .decay_steps = 20, .decay_rate = 0.5f), golden_exponential);
    check(td_exponential_decay(0.1f, .decay_steps = 7, .decay_rate = 0.9f, .staircase = TD_YES),
          golden_exponential_staircase);
    check(td_piecewise_constant_decay(4, .boundaries = boundaries, .values = values), golden_piecewise);
    check(td_polynomial_decay(0.1f, .decay_steps = 40), golden_polynomial);
    check(td_polynomial_decay(0.1f, .decay_steps = 25, .end_learning_rate = TD_SET(0.0f), .power = TD_SET(0.5f)),
          golden_polynomial_power);
    check(td_polynomial_decay(0.1f, .decay_steps = 13, .end_learning_rate = TD_SET(0.01f), .power = TD_SET(2.0f),
                              .cycle = TD_YES),
          golden_polynomial_cycle);
    check(td_inverse_time_decay(0.1f, .decay_steps = 10, .decay_rate = 0.5f), golden_inverse_time);
    check(td_inverse_time_decay(0.1f, .decay_steps = 10, .decay_rate = 0.5f, .staircase = TD_YES),
          golden_inverse_time_staircase);
    check(td_cosine_decay(0.1f, .decay_steps = 50, .alpha = 0.1f), golden_cosine);
    check(td_cosine_decay_restarts(0.1f, .decay_steps = 7), golden_restarts);
    check(
        td_cosine_decay_restarts(0.1f, .decay_steps = 11, .t_mul = TD_SET(1.0f), .m_mul = TD_SET(0.8f), .alpha = 0.05f),
        golden_restarts_even);
    check(td_cosine_decay_restarts(0.1f, .decay_steps = 10, .t_mul = TD_SET(1.5f), .m_mul = TD_SET(0.9f)),
          golden_restarts_slow);
}

/* Its first rate is 0: held against the largest. */
static void warm_up_is_keras(void **state)
{
    (void)state;
    td_schedule schedule =
        resolved(td_cosine_decay(0, .decay_steps = 40, .warmup_target = TD_SET(0.2f), .warmup_steps = 12));
    for (int step = 0; step < STEPS; step++)
        assert_true(fabsf(tdi_schedule_rate(&schedule, step) - golden_cosine_warmup[step]) <= 1e-7f);
    assert_true(tdi_schedule_rate(&schedule, 12) == 0.2f);
}

static void check_refused(td_schedule schedule, const char *sentence)
{
    tdi_error error = {0};
    schedule = resolved(schedule);
    assert_int_equal(tdi_schedule_check(&schedule, &error), TD_INVALID_ARGUMENT);
    if (!strstr(error.message, sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, error.message);
}

static void what_cannot_be(void **state)
{
    (void)state;
    const int64_t boundaries[] = {10};
    const float values[] = {0.5f, NAN};
    check_refused(td_cosine_decay(0.1f), "CosineDecay: decay_steps is 0 and must be above 0");
    check_refused(td_cosine_decay_restarts(0.1f, .decay_steps = -1), "first_decay_steps is -1");
    check_refused(td_exponential_decay(-0.1f, .decay_steps = 1), "initial_learning_rate is -0.1");
    check_refused(td_polynomial_decay(NAN, .decay_steps = 1), "initial_learning_rate is");
    check_refused(td_cosine_decay_restarts(0.1f, .decay_steps = 5, .t_mul = TD_SET(-2.0f)), "t_mul");
    check_refused(td_piecewise_constant_decay(1), "at least 2");
    check_refused(td_piecewise_constant_decay(2, .boundaries = boundaries, .values = values), "value 1 is");
    check_refused((td_schedule){.kind = (td_schedule_kind)99}, "no schedule of number 99");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_are_keras), cmocka_unit_test(warm_up_is_keras),
                                       cmocka_unit_test(what_cannot_be)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
