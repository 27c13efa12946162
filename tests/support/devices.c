/* devices.c - lists of devices by the type that the environment names. */
#include "support/devices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "strategy/device_list.h"

enum { LIST_LENGTH = 256 };

const char *test_devices(int count)
{
    static char lists[TEST_DEVICES_MOST + 1][LIST_LENGTH];
    const char *given = getenv("TANDEM_TEST_DEVICES"), *type = given && *given ? given : "cpu";
    assert_in_range(count, 0, TEST_DEVICES_MOST);
    char *list = lists[count];
    int length = count ? 0 : snprintf(list, LIST_LENGTH, "%s", type);
    for (int i = 0; i < count && length < LIST_LENGTH; i++)
        length += snprintf(list + length, (size_t)(LIST_LENGTH - length), "%s%s:%d", i ? "," : "", type, i);
    assert_true(length < LIST_LENGTH);
    return list;
}

tdi_device *test_device_open(void)
{
    tdi_device *device = NULL;
    tdi_error error = {0};
    int count;
    if (tdi_open_devices(test_devices(1), &device, &count, &error) != TD_OK)
        fail_msg("%s", error.message);
    return device;
}
