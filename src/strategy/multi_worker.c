/* multi_worker.c - the multi-worker strategy: every device of every process computes its rows of each batch.
 *
 * A process says how many devices and cores it has, and whether its model wants rows or columns; all come to the same
 * deal from what all have said. Without fixed shards a device is as many shards as make its cores busy, the same number
 * everywhere, so that devices have equal shares of the rows. */
#include "strategy/multi_worker.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"

/* The context's, since a model that was compiled with it may outlive the cluster. */
typedef struct multi_worker {
    tdi_strategy strategy;
    td_cluster *cluster;
    tdi_deal *deal;
    int devices; /* of all processes */
} multi_worker;

static td_status divide(const td_model *model, int replicas, int cores, tdi_division *division, tdi_error *error)
{
    const multi_worker *self = (const multi_worker *)(const void *)model->compiled.strategy;
    const tdi_deal *deal = self->deal;
    int first = deal->first_shard[deal->self], own = deal->first_shard[deal->self + 1] - first;
    int workers = own < cores ? own : cores;
    (void)replicas, (void)error;
    *division = (tdi_division){.replicas = self->devices,
                               .shards = deal->shards,
                               .groups = model->compiled.shards                  ? deal->shards
                                         : tdi_has_statistics_per_replica(model) ? self->devices
                                                                                 : 1,
                               .own_first = first,
                               .own = own,
                               .workers = workers,
                               .threads = model->compiled.shards ? 1 : cores / workers};
    snprintf(division->why, sizeof division->why, "%d processes, of which this computes shards %d to %d of %d",
             deal->processes, first, first + own - 1, deal->shards);
    return TD_OK;
}

static td_status connect(const tdi_strategy *strategy, const tdi_group_spec *group, tdi_communicator **handles,
                         tdi_error *error)
{
    return tdi_exchange_connect(strategy->exchange, strategy->deal, group, handles, error);
}

/* ---- what the processes say ---- */

typedef struct member_facts {
    int devices, cores, shards, by_rows, instruction_set, bfloat16;
} member_facts;

static td_status read_facts(const td_cluster *cluster, int member, const tdi_shared *shared, member_facts *facts,
                            tdi_error *error)
{
    json_t *json = json_loadb(shared->bytes, shared->size, 0, NULL);
    bool good = json &&
                json_unpack(json, "{s:i, s:i, s:i, s:b, s:i, s:b}", "devices", &facts->devices, "cores", &facts->cores,
                            "shards", &facts->shards, "by rows", &facts->by_rows, "instruction set",
                            &facts->instruction_set, "bfloat16", &facts->bfloat16) == 0 &&
                facts->devices >= 1 && facts->devices <= TDI_MAX_SHARDS && facts->cores >= 1 && facts->shards >= 0;
    json_decref(json);
    if (good)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s is at another call than td_compile: all processes make the same calls",
                    td_cluster_task_name(cluster, member));
}

static td_status hear_all(td_cluster *cluster, const member_facts *own, member_facts *facts, tdi_error *error)
{
    json_t *json =
        json_pack("{s:i, s:i, s:i, s:b, s:i, s:b}", "devices", own->devices, "cores", own->cores, "shards", own->shards,
                  "by rows", own->by_rows, "instruction set", own->instruction_set, "bfloat16", own->bfloat16);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    tdi_shared *all = calloc((size_t)cluster->members, sizeof *all);
    td_status status = text && all ? tdi_cluster_share(cluster, text, strlen(text), all, error) : tdi_no_memory(error);
    for (int i = 0; i < cluster->members && status == TD_OK; i++)
        status = read_facts(cluster, i, &all[i], &facts[i], error);
    if (all)
        tdi_shared_free(all, cluster->members);
    free(all);
    free(text);
    json_decref(json);
    return status;
}

/* ---- the deal ---- */

static td_status check(const td_cluster *cluster, const member_facts *facts, tdi_error *error)
{
    for (int i = 1; i < cluster->members; i++)
        if (facts[i].shards != facts[0].shards)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "%s and the chief disagree on the number of shards: %d there, %d at the chief; give all "
                            "processes the same",
                            td_cluster_task_name(cluster, i), facts[i].shards, facts[0].shards);
    if (facts[0].shards && facts[0].shards < cluster->members)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "shards: %d shards are too few for %d processes, which compute at least one each",
                        facts[0].shards, cluster->members);
    return TD_OK;
}

/* Into how many shards each device cuts its rows: one for each core where rows suit the model, as many as the process
 * with the fewest has. */
static int shards_of_a_device(const td_cluster *cluster, const member_facts *facts)
{
    int least = INT32_MAX;
    for (int i = 0; i < cluster->members; i++) {
        int cores = facts[i].by_rows ? facts[i].cores / facts[i].devices : 1;
        least = cores < least ? cores : least;
    }
    return least < 1 ? 1 : least;
}

static td_status deal_out(multi_worker *made, const member_facts *facts, tdi_error *error)
{
    const td_cluster *cluster = made->cluster;
    int each = shards_of_a_device(cluster, facts), all = 0;
    tdi_deal_member *members = calloc((size_t)cluster->members, sizeof *members);
    if (!members)
        return tdi_no_memory(error);
    for (int i = 0; i < cluster->members; i++) {
        made->devices += facts[i].devices;
        all += facts[i].devices * each;
        members[i] = (tdi_deal_member){.devices = facts[i].devices * each, .shards = facts[i].devices * each};
    }
    td_status status =
        all > TDI_MAX_SHARDS
            ? tdi_fail(error, TD_INVALID_ARGUMENT, "%d devices and cores are too many; %d is the limit", all,
                       TDI_MAX_SHARDS)
            : tdi_deal_create(members, cluster->members, cluster->self, facts[0].shards, &made->deal, error);
    free(members);
    return status;
}

static td_status connect_closed(const tdi_strategy *strategy, const tdi_group_spec *group, tdi_communicator **handles,
                                tdi_error *error)
{
    (void)strategy, (void)group, (void)handles;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "the model was compiled for a cluster that has been closed; call td_compile with another strategy");
}

static void closed(void *object)
{
    multi_worker *self = object;
    self->cluster = NULL;
    self->strategy.exchange = NULL;
    self->strategy.connect = connect_closed;
}

static void release(void *object)
{
    multi_worker *self = object;
    if (self->cluster)
        tdi_cluster_strike(self->cluster, self);
    tdi_deal_free(self->deal);
    free(self);
}

static td_status make(td_cluster *cluster, const member_facts *facts, const tdi_strategy **strategy, tdi_error *error)
{
    multi_worker *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->cluster = cluster;
    td_status status = deal_out(made, facts, error);
    if (status == TD_OK &&
        (!tdi_cluster_enlist(cluster, made, closed) || !tdi_context_own(cluster->context, made, release)))
        status = tdi_no_memory(error);
    if (status != TD_OK) {
        release(made);
        return status;
    }
    made->strategy = (tdi_strategy){
        .exchange = cluster->exchange, .deal = made->deal, .can_break = true, .divide = divide, .connect = connect};
    *strategy = &made->strategy;
    return TD_OK;
}

/* Updates are computed in every process, and have to have the same bits: by the lowest instruction set of all. */
static td_status limit_instructions(const td_cluster *cluster, const member_facts *facts, tdi_error *error)
{
    int lowest = 0;
    for (int i = 1; i < cluster->members; i++)
        lowest = facts[i].instruction_set < facts[lowest].instruction_set ? i : lowest;
    if (facts[cluster->self].instruction_set == facts[lowest].instruction_set)
        return TD_OK;
    for (int type = 0; tdi_device_interfaces[type]; type++)
        if (tdi_device_interfaces[type]->limit && !tdi_device_interfaces[type]->limit(facts[lowest].instruction_set))
            return tdi_fail(error, TD_UNSUPPORTED,
                            "%s has older vector instructions than this process, where models compute by newer ones "
                            "already; compile the models of the cluster before others are used",
                            td_cluster_task_name(cluster, lowest));
    tdi_log(cluster->context, TD_LOG_INFO, "computing by the vector instructions that %s has too",
            td_cluster_task_name(cluster, lowest));
    return TD_OK;
}

static td_status look_at_devices(const td_model *model, const char *list, member_facts *facts, tdi_error *error)
{
    tdi_device *devices[TDI_MAX_SHARDS];
    int count;
    TDI_TRY(tdi_open_devices(list, devices, &count, error));
    *facts = (member_facts){.devices = count,
                            .shards = model->compiled.shards,
                            .by_rows = tdi_has_convolutions(model),
                            .instruction_set = devices[0]->instruction_set,
                            .bfloat16 = !devices[0]->no_bfloat16};
    for (int i = 0; i < count; i++)
        facts->cores += devices[i]->threads;
    facts->cores = facts->cores < tdi_cores_allowed() ? facts->cores : tdi_cores_allowed();
    tdi_close_devices(devices, count);
    return TD_OK;
}

td_status tdi_multi_worker(td_cluster *cluster, const td_model *model, const char *devices,
                           const tdi_strategy **strategy, tdi_error *error)
{
    member_facts own;
    *strategy = NULL;
    if (!cluster->exchange)
        return TD_OK;
    TDI_TRY(look_at_devices(model, devices, &own, error));
    member_facts *facts = calloc((size_t)cluster->members, sizeof *facts);
    if (!facts)
        return tdi_no_memory(error);
    td_status status = hear_all(cluster, &own, facts, error);
    if (status == TD_OK)
        status = check(cluster, facts, error);
    if (status == TD_OK)
        status = limit_instructions(cluster, facts, error);
    if (status == TD_OK)
        status = make(cluster, facts, strategy, error);
    free(facts);
    return status;
}

td_cluster *tdi_cluster_of(const td_model *model)
{
    const tdi_strategy *strategy = model->compiled.strategy;
    return strategy && strategy->divide == divide ? ((const multi_worker *)(const void *)strategy)->cluster : NULL;
}
