/* roofline.c - a floor is operations over the peak or bytes over the bandwidth of where they lie, whichever is longer;
 * what is measured is there for every size that was asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "cpu/cpu.h"
#include "profile/roofline.h"

/* Two threads; data of up to 8, 16 and 32 KiB each. */
static const tdi_roofline made = {
    .threads = 2, .flops = 1e9, .bfloat16_flops = 4e9, .sizes = 3, .read = {8e9, 4e9, 1e9}, .update = {6e9, 5e9, 1e9}};

static void assert_near(double a, double b)
{
    assert_true(fabs(a - b) <= 1e-9 * fabs(b));
}

static void bandwidth_goes_by_size(void **state)
{
    (void)state;
    assert_near(tdi_roofline_bandwidth(&made, 100), 8e9);
    assert_near(tdi_roofline_bandwidth(&made, 2 * 8192), 8e9);
    assert_near(tdi_roofline_bandwidth(&made, 2 * 12288), 6e9);
    assert_near(tdi_roofline_bandwidth(&made, 2 * 16384), 5e9);
    assert_near(tdi_roofline_bandwidth(&made, 2 * 24576), 3e9);
    assert_near(tdi_roofline_bandwidth(&made, 1e12), 1e9);
}

static void the_longer_of_two_bounds(void **state)
{
    (void)state;
    tdi_demand demand = {.flops = 5000, .bytes = 16000};
    tdi_floor floor = tdi_floor_of(&made, &demand, 1e12);
    assert_false(floor.by_memory);
    assert_near(floor.seconds, 5e-6);
    demand.bfloat16 = true;
    floor = tdi_floor_of(&made, &demand, 1e12);
    assert_true(floor.by_memory);
    assert_near(floor.seconds, 2e-6);
    demand.kept_bytes = 8000; /* from as far as the data in use reaches */
    assert_near(tdi_floor_of(&made, &demand, 1e12).seconds, 1e-6 + 8e-6);
    demand.flops = 40000;
    assert_near(tdi_floor_of(&made, &demand, 1e12).seconds, 1e-5);
}

static void roofline_is_measured(void **state)
{
    (void)state;
    tdi_device *device;
    tdi_team *team;
    tdi_roofline roofline;
    assert_int_equal(tdi_cpu_device.open(0, 1, &device, NULL), TD_OK);
    assert_int_equal(tdi_team_create(2, &team, NULL), TD_OK);
    for (int threads = 1; threads <= 2; threads++) {
        assert_int_equal(tdi_roofline_measure(device, team, threads, true, 20000, &roofline, NULL), TD_OK);
        assert_int_equal(roofline.threads, threads);
        assert_int_equal(roofline.sizes, 3);
        assert_true(roofline.flops > 0);
        for (int i = 0; i < roofline.sizes; i++)
            assert_true(roofline.read[i] > 0 && roofline.update[i] > 0);
    }
    tdi_team_free(team);
    device->close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bandwidth_goes_by_size),
                                       cmocka_unit_test(the_longer_of_two_bounds),
                                       cmocka_unit_test(roofline_is_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
