/* devices.h - the devices that a test runs on. The environment variable TANDEM_TEST_DEVICES names their type, "cpu"
 * unless it is set; CTest runs the suites that heed it once for each type in CMake's variable of the same name. */
#ifndef TESTS_SUPPORT_DEVICES_H
#define TESTS_SUPPORT_DEVICES_H

#include "device/device.h"

enum { TEST_DEVICES_MOST = 8 };

/* "cpu:0,cpu:1,...": so many devices of the type, at most TEST_DEVICES_MOST; of 0: "cpu", the whole type. Such a list
 * is never freed. */
const char *test_devices(int count);

/* Opens the first device of the type, or fails the test; the caller closes it. */
tdi_device *test_device_open(void);

#endif
