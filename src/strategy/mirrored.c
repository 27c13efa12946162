/* mirrored.c - the mirrored strategy: every device of the process trains a copy of the model, on its rows of each
 * batch.
 *
 * The devices of one process share its memory, so what the user counts as replicas need not be computed as such. Copies
 * that have nothing of their own are computed as one, by whatever division of the cores suits the model: networks with
 * convolutions by rows among workers, others by columns among the threads of one worker. Where batch normalization
 * takes its statistics per replica, each replica's rows stay a group of their own.
 *
 * The result may not depend on the division but for the last bits. With shards it may not depend on it at all: then
 * shards are computed one by one, on one thread each, whatever the number of replicas. */
#include <stdio.h>

#include "base/machine.h"
#include "strategy/strategy.h"

bool tdi_has_convolutions(const td_model *model)
{
    for (int i = 0; i < model->architecture->layers.count; i++)
        if (model->architecture->layers.at[i]->type->convolves)
            return true;
    return false;
}

bool tdi_has_statistics_per_replica(const td_model *model)
{
    for (int i = 0; i < model->architecture->layers.count; i++) {
        const tdi_layer *layer = model->architecture->layers.at[i];
        if (layer->type->statistics_per_replica && layer->type->statistics_per_replica(layer))
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
    *d = (tdi_division){.replicas = replicas, .shards = shards, .groups = shards, .workers = workers, .threads = 1};
    snprintf(d->why, sizeof d->why, "%d shards fix the sums, whatever the number of replicas", shards);
    return TD_OK;
}

static void divide_separately(int replicas, int groups, int cores, tdi_division *d)
{
    int shards = groups > 1 && replicas < cores ? cores / replicas * replicas : replicas;
    *d = (tdi_division){
        .replicas = replicas, .shards = shards, .groups = groups, .workers = least(shards, cores), .threads = 1};
    snprintf(d->why, sizeof d->why, "the %d replicas are computed separately%s", replicas,
             groups > 1 ? ": batch normalization takes its statistics per replica" : "");
}

/* The largest number of workers that get the same number of cores each. */
static int most_workers(int cores, int groups)
{
    int workers = cores;
    while (cores % workers || !tdi_division_nests(workers, groups))
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
                        .shards = workers,
                        .groups = groups,
                        .workers = workers,
                        .threads = cores / workers,
                        .either = cores > 1 && tdi_division_nests(cores, groups)};
    snprintf(d->why, sizeof d->why, "%s%s", together,
             by_columns         ? "without convolutions the threads share the weights"
             : workers == cores ? "with convolutions each core computes rows of the batch"
                                : "cores cannot be dealt out to them evenly, so threads share each op");
}

static td_status divide(const td_model *model, int count, int cores, tdi_division *division, tdi_error *error)
{
    bool by_columns = !tdi_has_convolutions(model);
    int groups = tdi_has_statistics_per_replica(model) ? count : 1;
    if (model->compiled.shards > TDI_MAX_SHARDS)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "shards: at most %d are possible, not %d", TDI_MAX_SHARDS,
                        model->compiled.shards);
    if (model->compiled.shards > 0)
        return divide_by_shards(model->compiled.shards, count, cores, division, error);
    if (count > 1 &&
        (model->compiled.separate_replicas || (!by_columns && count < cores && !tdi_division_nests(cores, groups))))
        divide_separately(count, groups, cores, division);
    else
        divide_as_one(count, groups, cores, by_columns, division);
    return TD_OK;
}

static td_status connect(const tdi_strategy *strategy, const tdi_group_spec *group, tdi_communicator **handles,
                         tdi_error *error)
{
    (void)strategy;
    return tdi_local_group_create(group, handles, error);
}

const tdi_strategy tdi_mirrored = {.divide = divide, .connect = connect};

td_status tdi_divide(const td_model *model, tdi_device *const *devices, int count, tdi_division *division,
                     tdi_error *error)
{
    int cores = 0;
    for (int i = 0; i < count; i++)
        cores += devices[i]->threads;
    cores = least(least(cores, tdi_cores_allowed()), TDI_MAX_SHARDS);
    return tdi_strategy_of(model)->divide(model, count, cores, division, error);
}
