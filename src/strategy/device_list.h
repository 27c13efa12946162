/* device_list.h - the devices that a user names: "cpu", "cpu:0,cpu:1", "all". */
#ifndef TDI_STRATEGY_DEVICE_LIST_H
#define TDI_STRATEGY_DEVICE_LIST_H

#include "device/device.h"

/* Opens the devices of the list, at most TDI_MAX_SHARDS; the caller closes them. TD_INVALID_ARGUMENT naming what is no
 * device; on a failure none is open and *count is 0. */
td_status tdi_open_devices(const char *list, tdi_device **devices, int *count, tdi_error *error);
void tdi_close_devices(tdi_device **devices, int count);

#endif
