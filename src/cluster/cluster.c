/* cluster.c - td_cluster: read who is who, meet, and open what the processes exchange their data by. */
#include "cluster/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double start_timeout = 300;
/* Seconds for which a process that was stopped waits for the others to end too. */
static const double stop_patience = 5;

/* ---- who is who ---- */

static td_status check_arguments(const td_cluster_args *args, tdi_error *error)
{
    if (args->guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_cluster_open takes one argument; give the rest by name");
    if (!(args->start_timeout >= 0))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "start_timeout: %g; a number of seconds was expected",
                        args->start_timeout);
    return TD_OK;
}

static td_status read_config(td_cluster *cluster, const td_cluster_args *args, tdi_error *error)
{
    const tdi_cluster_request request = {args->cluster, args->task, args->rendezvous};
    TDI_TRY(tdi_cluster_config_read(&request, &cluster->config, error));
    const tdi_cluster_config *config = &cluster->config;
    if (!config->count)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "nothing describes a cluster: set TF_CONFIG, or name a file of it (--cluster, .cluster); "
                        "`tandem cluster config` writes one, and `tandem launch` does without");
    if (config->self < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s does not say which task this process is; give it, as in --task worker:1", config->source);
    cluster->members = tdi_cluster_count(config, TDI_CHIEF) + tdi_cluster_count(config, TDI_WORKER);
    cluster->self = config->self;
    if (cluster->members > 1 && !config->tasks[0].address)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "%s does not tell where rank 0 is found; give its host and a free port of it, as in "
                        "--rendezvous node1:2222",
                        config->source);
    if (cluster->self < cluster->members)
        return TD_OK;
    char name[TDI_TASK_NAME];
    return tdi_fail(error, TD_UNSUPPORTED, "%s takes no part in training: Tandem has the chief and workers so far",
                    tdi_task_name(&config->tasks[config->self], name));
}

static td_status read_secret(td_cluster *cluster, const td_cluster_args *args, tdi_error *error)
{
    tdi_secret secret;
    const char *path = args->secret_file ? args->secret_file : getenv("TANDEM_SECRET_FILE");
    if (!path || !*path)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "the processes of a cluster know each other by a secret, and none was given: make one by "
                        "`tandem cluster secret FILE`, copy it to every host, and name it by --secret-file or "
                        "TANDEM_SECRET_FILE");
    TDI_TRY(tdi_secret_read(path, &secret, error));
    td_status status =
        tdi_security_create(&secret, args->name && *args->name ? args->name : "tandem", &cluster->security, error);
    tdi_secret_forget(&secret);
    return status;
}

/* ---- what they exchange ---- */

static td_status create_exchange(td_cluster *cluster, tdi_error *error)
{
    const char **names = calloc((size_t)cluster->members, sizeof *names);
    if (!names)
        return tdi_no_memory(error);
    for (int i = 0; i < cluster->members; i++)
        names[i] = tdi_meeting_name(cluster->meeting, i);
    td_status status =
        tdi_exchange_create(&(tdi_exchange_spec){.processes = cluster->members, .self = cluster->self, .names = names},
                            &cluster->exchange, error);
    free(names);
    return status;
}

static const char *const transports[] = {"auto", "ucx", "tls"};
static const char *const encryptions[] = {"auto", "off", "on"};
enum { ENCRYPTION_AUTO, ENCRYPTION_OFF, ENCRYPTION_ON };

/* The word's place in the list; NULL is the first. */
static td_status choose(const char *what, const char *word, const char *const list[3], int *choice, tdi_error *error)
{
    for (*choice = 0; *choice < 3; *choice += 1)
        if (!word || strcmp(word, list[*choice]) == 0)
            return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: '%.40s'; %s, %s or %s was expected", what, word, list[0], list[1],
                    list[2]);
}

/* A launcher of MPI jobs runs on a network that carries MPI unencrypted anyway. */
static bool is_started_by_mpi(const tdi_cluster_config *config)
{
    return strstr(config->source, "OMPI_") || strstr(config->source, "PMI_") || strstr(config->source, "SLURM_");
}

static td_status open_carrier(td_cluster *cluster, const td_cluster_args *args, tdi_error *error)
{
    int transport, encryption;
    TDI_TRY(choose("transport", args->transport, transports, &transport, error));
    TDI_TRY(choose("encryption", args->encryption, encryptions, &encryption, error));
    const tdi_carrier_spec spec = {.context = cluster->context,
                                   .meeting = cluster->meeting,
                                   .members = cluster->members,
                                   .self = cluster->self,
                                   .transport = (tdi_transport)transport,
                                   .open_network =
                                       encryption == ENCRYPTION_OFF ||
                                       (encryption == ENCRYPTION_AUTO && is_started_by_mpi(&cluster->config)),
                                   .sinks = tdi_exchange_sinks(cluster->exchange)};
    TDI_TRY(tdi_carrier_open(&spec, &cluster->carrier, error));
    return tdi_exchange_start(cluster->exchange, cluster->carrier.fabric, cluster->carrier.wires, error);
}

/* A member that has gone breaks what is under way with the others. */
static void member_lost(void *user, const tdi_error *why)
{
    td_cluster *cluster = user;
    tdi_exchange_break(cluster->exchange, why);
}

static td_status meet(td_cluster *cluster, const td_cluster_args *args, tdi_error *error)
{
    const tdi_meeting_spec spec = {.context = cluster->context,
                                   .config = &cluster->config,
                                   .members = cluster->members,
                                   .security = cluster->security,
                                   .bind = args->bind,
                                   .on_event = args->on_event,
                                   .user = args->user,
                                   .start_timeout = args->start_timeout > 0 ? args->start_timeout : start_timeout};
    if (cluster->members == 1)
        return TD_OK;
    TDI_TRY(tdi_meeting_open(&spec, &cluster->meeting, error));
    TDI_TRY(create_exchange(cluster, error));
    tdi_meeting_tell(cluster->meeting, member_lost, cluster);
    return open_carrier(cluster, args, error);
}

/* ---- life ---- */

bool tdi_cluster_enlist(td_cluster *cluster, void *object, void (*closed)(void *object))
{
    return tdi_push(&cluster->users, ((tdi_cluster_user){object, closed}));
}

void tdi_cluster_strike(td_cluster *cluster, const void *object)
{
    for (int i = 0; i < cluster->users.count; i++)
        if (cluster->users.at[i].object == object)
            cluster->users.at[i--] = cluster->users.at[--cluster->users.count];
}

/* A stop is agreed on in a step, and all leave after it; where one is stopped elsewhere the others do not know yet. */
static void leave(td_cluster *cluster)
{
    const tdi_error *why = &cluster->context->error;
    bool stopped = why->status == TD_STOPPED;
    if (why->status != TD_OK && !stopped)
        tdi_meeting_farewell(cluster->meeting, why);
    else if (!tdi_meeting_part(cluster->meeting, stopped ? stop_patience : INFINITY))
        tdi_meeting_farewell(cluster->meeting, why);
}

static void release(void *object)
{
    td_cluster *cluster = object;
    leave(cluster);
    for (int i = 0; i < cluster->users.count; i++)
        cluster->users.at[i].closed(cluster->users.at[i].object);
    tdi_vec_free(&cluster->users);
    tdi_meeting_tell(cluster->meeting, NULL, NULL);
    tdi_meeting_close(cluster->meeting); /* its last words are heard before the others see that the data end */
    tdi_exchange_free(cluster->exchange);
    tdi_carrier_release(&cluster->carrier);
    tdi_security_free(cluster->security);
    tdi_cluster_config_free(&cluster->config);
    free(cluster);
}

static td_status open_cluster(td_cluster *cluster, const td_cluster_args *args, tdi_error *error)
{
    TDI_TRY(check_arguments(args, error));
    TDI_TRY(read_config(cluster, args, error));
    if (cluster->members > 1)
        TDI_TRY(read_secret(cluster, args, error));
    return meet(cluster, args, error);
}

int td_cluster_described(const td_cluster_args *args)
{
    tdi_cluster_config config = {0};
    tdi_error error = {0};
    const tdi_cluster_request request = {args->cluster, args->task, args->rendezvous};
    td_status status = tdi_cluster_config_read(&request, &config, &error);
    int count = config.count;
    tdi_cluster_config_free(&config);
    if (status == TD_OK)
        return count;
    tdi_fail(&args->context->error, status, "%s", error.message);
    return -1;
}

td_cluster *td_cluster_open_(const td_cluster_args *args)
{
    tdi_error error = {0};
    if (!args->context)
        return NULL;
    td_cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster) {
        tdi_no_memory(&args->context->error);
        return NULL;
    }
    cluster->context = args->context;
    tdi_context_heed_stops(args->context);
    td_status status = open_cluster(cluster, args, &error);
    if (status == TD_OK && !tdi_context_own(args->context, cluster, release))
        status = tdi_no_memory(&error);
    if (status == TD_OK)
        return cluster;
    if (args->at.file)
        tdi_error_prefix(&error, "%s:%d", args->at.file, args->at.line);
    release(cluster);
    tdi_fail(&args->context->error, status, "%s", error.message);
    return NULL;
}

void td_cluster_close(td_cluster *cluster)
{
    if (!cluster)
        return;
    tdi_context_disown(cluster->context, cluster);
    release(cluster);
}

/* ---- facts ---- */

int td_cluster_size(const td_cluster *cluster)
{
    return cluster ? cluster->members : 1;
}

int td_cluster_task(const td_cluster *cluster)
{
    return cluster ? cluster->self : 0;
}

int td_cluster_is_chief(const td_cluster *cluster)
{
    return td_cluster_task(cluster) == 0;
}

const char *td_cluster_task_name(const td_cluster *cluster, int task)
{
    if (!cluster || task < 0 || task >= cluster->members)
        return "";
    return cluster->meeting ? tdi_meeting_name(cluster->meeting, task) : "chief";
}

/* ---- sharing ---- */

td_status tdi_cluster_share(td_cluster *cluster, const void *bytes, size_t size, tdi_shared *all, tdi_error *error)
{
    char *own = malloc(size + 1);
    if (!own)
        return tdi_no_memory(error);
    if (size)
        memcpy(own, bytes, size);
    own[size] = '\0';
    memset(all, 0, (size_t)cluster->members * sizeof *all);
    td_status status = cluster->meeting ? tdi_meeting_share(cluster->meeting, bytes, size, all, error) : TD_OK;
    if (status != TD_OK)
        free(own);
    else
        all[cluster->self] = (tdi_shared){own, size};
    return status;
}

td_status tdi_cluster_broadcast(td_cluster *cluster, void **bytes, size_t *size, tdi_error *error)
{
    bool chief = cluster->self == 0;
    tdi_shared *all = calloc((size_t)cluster->members, sizeof *all);
    if (!all)
        return tdi_no_memory(error);
    td_status status =
        cluster->meeting ? tdi_meeting_share(cluster->meeting, *bytes, chief ? *size : 0, all, error) : TD_OK;
    if (status == TD_OK && !chief) {
        *bytes = all[0].bytes;
        *size = all[0].size;
        all[0] = (tdi_shared){0};
    }
    tdi_shared_free(all, cluster->members);
    free(all);
    return status;
}

td_status td_cluster_broadcast(td_cluster *cluster, void **bytes, size_t *size)
{
    tdi_error error = {0};
    if (!cluster)
        return TD_INVALID_ARGUMENT;
    td_status status = tdi_cluster_broadcast(cluster, bytes, size, &error);
    return status == TD_OK ? TD_OK : tdi_fail(&cluster->context->error, status, "%s", error.message);
}
