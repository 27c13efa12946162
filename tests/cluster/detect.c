/* Who is lost, who is slow, and who has slept: in time that the test makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/detect.h"

static const char name[] = "worker 1 (10.0.0.3:2222)";

/* Process 0, which watches 1 and 2; both have just connected. */
static tdi_detect watching(double now)
{
    tdi_detect d;
    tdi_detect_init(&d, 0, 0, 0);
    tdi_detect_wake(&d, now);
    tdi_detect_open(&d, 1, now);
    tdi_detect_open(&d, 2, now);
    tdi_detect_watch(&d, 0x7, now);
    return d;
}

static void expect_lost(const tdi_detect *d, double now, const char *sentence)
{
    char text[400];
    tdi_detect_say_lost(d, 1, name, now, text, sizeof text);
    assert_string_equal(text, sentence);
}

static void silence_is_a_loss(void **state)
{
    (void)state;
    tdi_detect d = watching(10);
    tdi_progress at = {.step = 812, .phase = TDI_PHASE_EXCHANGE, .done = 3, .of = 5};
    double now = 10;
    tdi_detect_beat(&d, 1, &at, now);
    for (; now < 10.69; now += 0.1) {
        tdi_detect_hear(&d, 2, now);
        tdi_detect_tick(&d, now);
        assert_int_equal(d.lost, 0);
        assert_int_equal(tdi_detect_hears(&d, now), 0x7);
    }
    tdi_detect_tick(&d, 10.71);
    assert_int_equal(d.lost, 0x2);
    assert_int_equal(tdi_detect_hears(&d, 10.71), 0x5);
    expect_lost(&d, 10.71,
                "worker 1 (10.0.0.3:2222) has not answered for 0.7 s: lost at step 812, gradients 3 of 5 "
                "under way");
    tdi_detect_hear(&d, 1, 10.8); /* it was only late */
    tdi_detect_tick(&d, 10.8);
    assert_int_equal(d.lost, 0);
}

static void a_closed_link_is_a_loss(void **state)
{
    (void)state;
    tdi_detect d = watching(10);
    tdi_progress at = {.step = 812, .phase = TDI_PHASE_COMPUTE};
    tdi_detect_beat(&d, 1, &at, 10.1);
    tdi_detect_close(&d, 1);
    assert_int_equal(d.lost, 0x2);
    expect_lost(&d, 10.1, "worker 1 (10.0.0.3:2222) has closed its connection: lost at step 812, computing");
    tdi_detect_hear(&d, 1, 10.2); /* what was under way on a link that has closed does not count */
    assert_int_equal(d.lost, 0x2);
    tdi_detect_open(&d, 1, 10.3);
    assert_int_equal(d.lost, 0);
}

static void a_stuck_wire_is_told(void **state)
{
    (void)state;
    tdi_detect d = watching(10);
    tdi_detect_stuck(&d, 1, true);
    assert_int_equal(tdi_detect_hears(&d, 10), 0x5);
    expect_lost(&d, 10, "worker 1 (10.0.0.3:2222) answers, but its data do not arrive: lost at step 0");
    tdi_detect_stuck(&d, 1, false);
    assert_int_equal(tdi_detect_hears(&d, 10), 0x7);
}

static void slow_is_not_dead(void **state)
{
    (void)state;
    tdi_detect d = watching(10);
    tdi_progress input = {.step = 5, .phase = TDI_PHASE_INPUT}, compute = {.step = 6, .phase = TDI_PHASE_COMPUTE};
    tdi_task_set told = 0;
    char text[400];
    double now = 10;
    for (int i = 0; i < 250; i++, now += 0.1) {
        tdi_detect_beat(&d, 1, &input, now);
        tdi_detect_beat(&d, 2, &compute, now); /* may compute as long as it wants */
        tdi_detect_tick(&d, now);
        tdi_task_set stalls = tdi_detect_stalls(&d, now);
        assert_false(stalls && now < 19.99);
        assert_false(stalls & told); /* once */
        told |= stalls;
        if (stalls)
            tdi_detect_say_stall(&d, 1, name, now, text, sizeof text);
    }
    assert_int_equal(told, 0x2);
    assert_int_equal(d.lost, 0);
    assert_string_equal(text, "worker 1 (10.0.0.3:2222) is slow: it has waited for input for 10 s at step 5");
    tdi_detect_beat(&d, 1, &compute, now);
    tdi_detect_beat(&d, 1, &input, now); /* another wait */
    assert_int_equal(tdi_detect_stalls(&d, now + 9.9), 0);
    assert_int_equal(tdi_detect_stalls(&d, now + 10.1), 0x2);
}

static void who_has_slept_distrusts_itself(void **state)
{
    (void)state;
    tdi_detect d = watching(10);
    assert_false(tdi_detect_wake(&d, 10.4));
    assert_true(tdi_detect_wake(&d, 13)); /* it was stopped for 2.6 s, and nobody else was */
    tdi_detect_tick(&d, 13);
    assert_int_equal(d.lost, 0);
    assert_false(tdi_detect_wake(&d, 13.4));
    tdi_detect_tick(&d, 13.65);
    assert_int_equal(d.lost, 0);
    tdi_detect_tick(&d, 13.75);
    assert_int_equal(d.lost, 0x6);
}

static void only_who_is_watched_is_lost(void **state)
{
    (void)state;
    tdi_detect d = watching(10);
    tdi_detect_watch(&d, 0x5, 10);
    tdi_detect_tick(&d, 11);
    assert_int_equal(d.lost, 0x4);
    assert_int_equal(tdi_detect_hears(&d, 11), 0x1); /* but it is not heard either */
    tdi_detect_watch(&d, 0xf, 11);                   /* it has been silent all the time */
    tdi_detect_tick(&d, 11.5);
    assert_int_equal(d.lost, 0x6); /* and one that has not connected yet has until then */
    tdi_detect_tick(&d, 11.75);
    assert_int_equal(d.lost, 0xe);
    tdi_detect_watch(&d, 0, 11.8);
    assert_int_equal(d.lost, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(silence_is_a_loss),
                                       cmocka_unit_test(a_closed_link_is_a_loss),
                                       cmocka_unit_test(a_stuck_wire_is_told),
                                       cmocka_unit_test(slow_is_not_dead),
                                       cmocka_unit_test(who_has_slept_distrusts_itself),
                                       cmocka_unit_test(only_who_is_watched_is_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
