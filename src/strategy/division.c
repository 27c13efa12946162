/* division.c - from the strategy and the devices to parts, workers and lanes. */
#include "strategy/division.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

/* ---- devices ---- */

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
    if (end != name + length || end == name + type + 1 || index < 0 || index >= (there < 0 ? TDI_MAX_PARTS : there))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "devices: \"%.*s\": a number from 0 to %d was expected after the colon", (int)length, name,
                        (there < 0 ? TDI_MAX_PARTS : there) - 1);
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
        if (*count == TDI_MAX_PARTS)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "devices: more than %d are named", TDI_MAX_PARTS);
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
    wanted names[TDI_MAX_PARTS];
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

/* ---- division ---- */

static bool uses(const td_model *model, const char *class_name)
{
    for (int i = 0; i < model->architecture->layers.count; i++)
        if (strcmp(model->architecture->layers.at[i]->type->class_name, class_name) == 0)
            return true;
    return false;
}

bool tdi_has_statistics_per_replica(const td_model *model)
{
    for (int i = 0; i < model->architecture->layers.count; i++) {
        const tdi_layer *layer = model->architecture->layers.at[i];
        if (strcmp(layer->type->class_name, "BatchNormalization") == 0 && layer->trainable &&
            ((const td_batch_normalization_args *)layer->args)->synchronized != TD_YES)
            return true;
    }
    return false;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static td_status divide_by_shards(int shards, int replicas, int cores, tdi_division *d, tdi_error *error)
{
    if (shards % replicas)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "shards: %d shards cannot be dealt out to %d replicas evenly; choose a multiple of %d", shards,
                        replicas, replicas);
    int workers = least(shards, cores);
    while (shards % workers)
        workers--;
    *d = (tdi_division){.replicas = replicas, .parts = shards, .groups = shards, .workers = workers, .lanes = 1};
    snprintf(d->why, sizeof d->why, "%d shards fix the sums, whatever the number of replicas", shards);
    return TD_OK;
}

static void divide_apart(int replicas, int groups, int cores, tdi_division *d)
{
    int parts = groups > 1 && replicas < cores ? cores / replicas * replicas : replicas;
    *d = (tdi_division){
        .replicas = replicas, .parts = parts, .groups = groups, .workers = least(parts, cores), .lanes = 1};
    snprintf(d->why, sizeof d->why, "the %d replicas are kept apart%s", replicas,
             groups > 1 ? ": batch normalization takes its statistics per replica" : "");
}

/* Can groups be whole parts, or parts whole groups? */
static bool nests(int parts, int groups)
{
    return parts % groups == 0 || groups % parts == 0;
}

/* As many as there can be, whose lanes are the cores. */
static int most_workers(int cores, int groups)
{
    int workers = cores;
    while (cores % workers || !nests(workers, groups))
        workers--;
    return workers;
}

static void divide_as_one(int replicas, int groups, int cores, bool by_columns, tdi_division *d)
{
    int workers = by_columns ? 1 : most_workers(cores, groups);
    const char *together = replicas == 1 ? ""
                           : groups == 1 ? "the replicas share their memory: computed as one; "
                                         : "the replicas share their memory: computed as one, but for batch "
                                           "normalization's statistics, which are per replica; ";
    *d = (tdi_division){.replicas = replicas,
                        .parts = workers,
                        .groups = groups,
                        .workers = workers,
                        .lanes = cores / workers,
                        .either = cores > 1 && nests(cores, groups)};
    snprintf(d->why, sizeof d->why, "%s%s", together,
             by_columns         ? "without convolutions the lanes share the weights"
             : workers == cores ? "with convolutions each core computes rows of the batch"
                                : "cores cannot be dealt out to them evenly, so lanes share each op");
}

static int cores_of(const tdi_division *division)
{
    return division->workers * division->lanes;
}

static tdi_division among(const tdi_division *division, int workers, const char *why)
{
    tdi_division d = *division;
    d.parts = d.workers = workers;
    d.lanes = cores_of(division) / workers;
    snprintf(d.why, sizeof d.why, "%s", why);
    return d;
}

tdi_division tdi_divide_otherwise(const tdi_division *division)
{
    return among(division, division->lanes, "steps were the fastest so");
}

/* Rows of a worker, to lanes: the time that a step takes, at best, of that which a core takes for a row. */
static double time_by(int cores, int workers, int64_t rows)
{
    int64_t most = (rows + workers - 1) / workers;
    return (double)most * workers / cores;
}

/* As many as need the least time. */
static int workers_for(const tdi_division *division, int64_t rows)
{
    int cores = cores_of(division), best = 1;
    for (int workers = 2; workers <= rows && workers <= cores; workers++)
        if (cores % workers == 0 && nests(workers, division->groups) &&
            time_by(cores, workers, rows) <= time_by(cores, best, rows))
            best = workers;
    return best;
}

bool tdi_has_too_few(const tdi_division *division, int64_t rows)
{
    const double worth_it = 0.8;
    int cores = cores_of(division);
    return division->either && rows < division->parts && time_by(cores, workers_for(division, rows), rows) <= worth_it;
}

tdi_division tdi_divide_few(const tdi_division *division, int64_t rows)
{
    return among(division, workers_for(division, rows), "there are fewer rows than cores, so lanes share each of them");
}

bool tdi_divide_again(const tdi_division *division, int parts, int64_t rows, tdi_division *again)
{
    *again = *division;
    if (parts != division->parts && tdi_has_too_few(division, rows))
        *again = tdi_divide_few(division, rows);
    else if (parts != division->parts && division->either)
        *again = tdi_divide_otherwise(division);
    return again->parts == parts;
}

td_status tdi_divide_cores(const td_model *model, int count, int cores, tdi_division *division, tdi_error *error)
{
    bool by_columns = !uses(model, "Conv2D");
    int groups = tdi_has_statistics_per_replica(model) ? count : 1;
    if (model->compiled.shards > TDI_MAX_PARTS)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "shards: at most %d are possible, not %d", TDI_MAX_PARTS,
                        model->compiled.shards);
    if (model->compiled.shards > 0)
        return divide_by_shards(model->compiled.shards, count, cores, division, error);
    if (count > 1 && (model->compiled.separate_replicas || (!by_columns && count < cores && !nests(cores, groups))))
        divide_apart(count, groups, cores, division);
    else
        divide_as_one(count, groups, cores, by_columns, division);
    return TD_OK;
}

td_status tdi_divide(const td_model *model, tdi_device *const *devices, int count, tdi_division *division,
                     tdi_error *error)
{
    int lanes = 0;
    for (int i = 0; i < count; i++)
        lanes += devices[i]->lanes;
    return tdi_divide_cores(model, count, least(least(lanes, tdi_cores_allowed()), TDI_MAX_PARTS), division, error);
}
