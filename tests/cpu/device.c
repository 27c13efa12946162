/* The CPU as a device: how cores are dealt out, memory, what it says about itself, and that a thread gets its OpenMP
 * setting back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "cpu/cpu.h"

static tdi_device *open_one(int index, int siblings)
{
    tdi_error error = {0};
    tdi_device *device = NULL;
    assert_int_equal(tdi_cpu_device.open(index, siblings, &device, &error), TD_OK);
    assert_non_null(device);
    return device;
}

static void cores_are_dealt_out(void **state)
{
    (void)state;
    int cores = tdi_cores_allowed();
    for (int siblings = 1; siblings <= cores + 3; siblings++) {
        int threads = 0, previous = cores;
        for (int i = 0; i < siblings; i++) {
            tdi_device *device = open_one(i, siblings);
            assert_true(device->threads >= 1 && device->threads <= previous);
            threads += device->threads;
            previous = device->threads;
            device->close(device);
        }
        assert_int_equal(threads, siblings > cores ? siblings : cores);
    }
}

static void devices_are_named(void **state)
{
    (void)state;
    tdi_device *first = open_one(0, 2), *second = open_one(1, 2);
    assert_string_equal(first->name, "cpu:0");
    assert_string_equal(second->name, "cpu:1");
    first->close(first);
    second->close(second);
}

static void an_index_beyond_the_devices_is_refused(void **state)
{
    (void)state;
    tdi_error error = {0};
    tdi_device *device = NULL;
    assert_int_equal(tdi_cpu_device.open(2, 2, &device, &error), TD_INTERNAL);
    assert_null(device);
}

static void memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    tdi_device *device = open_one(0, 1);
    unsigned char *buffer = device->allocate(device, 1000);
    assert_non_null(buffer);
    assert_int_equal((uintptr_t)buffer % 64, 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buffer[i], 0);
    assert_null(device->allocate(device, SIZE_MAX));
    device->release(device, buffer);
    device->close(device);
}

#ifdef TANDEM_ONEDNN
extern int omp_get_max_threads(void);
extern void omp_set_num_threads(int threads);

static void a_thread_gets_its_openmp_setting_back(void **state)
{
    (void)state;
    tdi_device *device = open_one(0, 1);
    omp_set_num_threads(3);
    int kept = device->enter_thread(device);
    assert_int_equal(omp_get_max_threads(), 1);
    device->leave_thread(device, kept);
    assert_int_equal(omp_get_max_threads(), 3);
    device->close(device);
}
#endif

static void it_describes_itself(void **state)
{
    (void)state;
    char text[2048] = "";
    FILE *out = tmpfile();
    assert_non_null(out);
    tdi_cpu_device.describe(out);
    rewind(out);
    size_t length = fread(text, 1, sizeof text - 1, out);
    fclose(out);
    assert_true(length > 0 && text[length - 1] == '\n');
    assert_non_null(strstr(text, "cores allowed: "));
    assert_non_null(strstr(text, "memory allowed: "));
    assert_non_null(strstr(text, "vector loops: "));
    assert_non_null(strstr(text, "oneDNN: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cores_are_dealt_out),
                                       cmocka_unit_test(devices_are_named),
                                       cmocka_unit_test(an_index_beyond_the_devices_is_refused),
                                       cmocka_unit_test(memory_is_zeroed_and_aligned),
#ifdef TANDEM_ONEDNN
                                       cmocka_unit_test(a_thread_gets_its_openmp_setting_back),
#endif
                                       cmocka_unit_test(it_describes_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
