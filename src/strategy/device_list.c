/* device_list.c - from the names in a list to open devices. */
#include "strategy/device_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/division.h"

static const tdi_device_interface *find_interface(const char *type, size_t length)
{
    for (const tdi_device_interface *const *i = tdi_device_interfaces; *i; i++)
        if (strlen((*i)->type) == length && strncmp((*i)->type, type, length) == 0)
            return *i;
    return NULL;
}

typedef struct wanted {
    const tdi_device_interface *interface;
    int index;
} wanted;

/* One name of the list: "cpu" or "cpu:3". */
static td_status parse_name(const char *name, size_t length, wanted *device, tdi_error *error)
{
    size_t type = strcspn(name, ":,");
    device->index = 0;
    device->interface = find_interface(name, type);
    if (!device->interface)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "devices: \"%.*s\" is not a device here; say cpu, or cpu:0,cpu:1",
                        (int)length, name);
    if (type == length)
        return TD_OK;
    char *end;
    long index = strtol(name + type + 1, &end, 10);
    int there = device->interface->count();
    if (end != name + length || end == name + type + 1 || index < 0 || index >= (there < 0 ? TDI_MAX_SHARDS : there))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "devices: \"%.*s\": a number from 0 to %d was expected after the colon", (int)length, name,
                        (there < 0 ? TDI_MAX_SHARDS : there) - 1);
    device->index = (int)index;
    return TD_OK;
}

static td_status parse_list(const char *list, wanted *devices, int *count, tdi_error *error)
{
    *count = 0;
    for (const char *name = list;; name++) {
        size_t length = strcspn(name, ",");
        if (length == 0)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "devices: \"%s\" has an empty name; say cpu, or cpu:0,cpu:1",
                            list);
        if (*count == TDI_MAX_SHARDS)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "devices: more than %d are named", TDI_MAX_SHARDS);
        TDI_TRY(parse_name(name, length, &devices[*count], error));
        for (int i = 0; i < *count; i++)
            if (devices[i].interface == devices[*count].interface && devices[i].index == devices[*count].index)
                return tdi_fail(error, TD_INVALID_ARGUMENT, "devices: \"%.*s\" is named twice", (int)length, name);
        ++*count;
        name += length;
        if (!*name)
            return TD_OK;
    }
}

td_status tdi_open_devices(const char *list, tdi_device **devices, int *count, tdi_error *error)
{
    wanted names[TDI_MAX_SHARDS];
    int n;
    *count = 0;
    TDI_TRY(parse_list(strcmp(list, "all") == 0 ? "cpu" : list, names, &n, error));
    for (int i = 0; i < n; i++) {
        td_status status = names[i].interface->open(i, n, &devices[i], error);
        if (status != TD_OK) {
            tdi_close_devices(devices, *count);
            *count = 0;
            return status;
        }
        snprintf(devices[i]->name, sizeof devices[i]->name, "%s:%d", names[i].interface->type, names[i].index);
        ++*count;
    }
    return TD_OK;
}

void tdi_close_devices(tdi_device **devices, int count)
{
    for (int i = 0; i < count; i++)
        devices[i]->close(devices[i]);
}
