/* environment.c - reads what launchers of processes put into the environment: a rank, how many ranks there are, and
 * where rank 0 is found, whose address alone need be known. Rank r is worker r, and worker 0 the chief. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/parse.h"
#include "link/address.h"

/* The value of a variable; NULL when it is not set, or empty. */
static const char *variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

typedef struct rank_pair {
    int rank, size;
} rank_pair;

typedef struct environment {
    const tdi_cluster_request *request;
    tdi_cluster_config *config;
    tdi_mistakes *mistakes;
    int before; /* mistakes that were there before */
} environment;

static bool all_is_well(const environment *e)
{
    return e->mistakes->list.count == e->before;
}

/* A launcher: how to see that it is there, and what it says. */
typedef struct launcher_row {
    const char *names; /* its variables, for sentences */
    const char *rank, *size;
    bool tells_addresses; /* --rendezvous has nothing to add */
    bool (*is_there)(const struct launcher_row *launcher);
    /* The addresses that it tells: the first tasks' (NULL: not known), how many of them to `count`. */
    td_status (*read_addresses)(const environment *e, rank_pair ranks, tdi_hosts *addresses);
    int (*on_host)(void); /* processes on this host; 0: not known */
} launcher_row;

/* ---- numbers ---- */

static bool read_number(const environment *e, const char *name, int least, int *number)
{
    const char *value = variable(name);
    if (!value)
        tdi_mistake(e->mistakes, "%s is not set; set it, or unset the others to train alone", name);
    else if (!tdi_whole_number(value, number) || *number < least)
        tdi_mistake(e->mistakes, "%s: expected a whole number from %d, got '%s'", name, least, tdi_word_of(value).text);
    else
        return true;
    return false;
}

static bool read_ranks(const environment *e, const launcher_row *launcher, rank_pair *ranks)
{
    bool rank = read_number(e, launcher->rank, 0, &ranks->rank);
    bool size = read_number(e, launcher->size, 1, &ranks->size);
    if (!rank || !size)
        return false;
    if (ranks->rank >= ranks->size)
        tdi_mistake(e->mistakes, "%s is %d, but %s is %d; ranks go from 0 to %d", launcher->rank, ranks->rank,
                    launcher->size, ranks->size, ranks->size - 1);
    else if (ranks->size > TDI_MAX_TASKS)
        tdi_mistake(e->mistakes, "%s is %d; a cluster has at most %d tasks", launcher->size, ranks->size,
                    TDI_MAX_TASKS);
    return all_is_well(e);
}

/* ---- addresses ---- */

static td_status push_address(tdi_hosts *addresses, const char *address)
{
    char *copy = strdup(address);
    if (copy && tdi_push(addresses, copy))
        return TD_OK;
    free(copy);
    return TD_NO_MEMORY;
}

/* An IPv6 address gets brackets. */
static td_status push_host(tdi_hosts *addresses, const char *host, int port)
{
    char address[300];
    bool bare = strchr(host, ':') && host[0] != '[';
    snprintf(address, sizeof address, bare ? "[%.256s]:%d" : "%.256s:%d", host, port);
    return push_address(addresses, address);
}

/* MASTER_ADDR and MASTER_PORT, where both are set. */
static td_status read_master(const environment *e, tdi_hosts *addresses)
{
    int port;
    const char *host = variable("MASTER_ADDR");
    if (!host)
        tdi_mistake(e->mistakes,
                    "MASTER_ADDR is not set; set it to the host of rank 0, or unset RANK and WORLD_SIZE to "
                    "train alone");
    else if (read_number(e, "MASTER_PORT", 1, &port))
        return push_host(addresses, host, port);
    return TD_OK;
}

/* Where rank 0 is found, for launchers that do not say it: --rendezvous, or MASTER_ADDR, or PMIx later. */
static td_status read_rendezvous(const environment *e, tdi_hosts *addresses)
{
    const char *given = e->request->rendezvous;
    tdi_address parsed;
    if (given && strchr(given, '/')) {
        e->config->rendezvous = strdup(given);
        return e->config->rendezvous ? TD_OK : TD_NO_MEMORY;
    }
    if (given && tdi_address_parse(given, &parsed, NULL) != TD_OK)
        tdi_mistake(e->mistakes,
                    "--rendezvous: expected HOST:PORT, or the path of a folder that all hosts see, got '%s'; "
                    "try node1:2222, or ./meet",
                    tdi_word_of(given).text);
    else if (given)
        return push_address(addresses, given);
    else if (variable("MASTER_ADDR") && variable("MASTER_PORT"))
        return read_master(e, addresses);
    return TD_OK;
}

static td_status mpi_addresses(const environment *e, rank_pair ranks, tdi_hosts *addresses)
{
    TDI_TRY(read_rendezvous(e, addresses));
    bool known = addresses->count || e->config->rendezvous || variable("PMIX_NAMESPACE") || ranks.size == 1;
    if (!known && all_is_well(e))
        tdi_mistake(e->mistakes,
                    "nothing says where rank 0 of %d is found; give --rendezvous HOST:PORT with its host and "
                    "a free port of it",
                    ranks.size);
    return TD_OK;
}

static td_status torch_addresses(const environment *e, rank_pair ranks, tdi_hosts *addresses)
{
    (void)ranks;
    return read_master(e, addresses);
}

/* ---- Keras ---- */

static td_status split(const char *list, tdi_hosts *parts)
{
    for (const char *at = list;; at++) {
        size_t blanks = strspn(at, " "), length = strcspn(at + blanks, ", ");
        char *part = strndup(at + blanks, length);
        if (!part || !tdi_push(parts, part)) {
            free(part);
            return TD_NO_MEMORY;
        }
        at += strcspn(at, ",");
        if (!*at)
            return TD_OK;
    }
}

static td_status keras_addresses(const environment *e, rank_pair ranks, tdi_hosts *addresses)
{
    const char *list = variable("KERAS_DISTRIBUTION_JOB_ADDRESSES");
    if (!list) {
        tdi_mistake(e->mistakes, "KERAS_DISTRIBUTION_JOB_ADDRESSES is not set; set it to the address of process 0, "
                                 "host:port, or to those of all processes with commas between them");
        return TD_OK;
    }
    TDI_TRY(split(list, addresses));
    if (addresses->count != 1 && addresses->count != ranks.size)
        tdi_mistake(e->mistakes,
                    "KERAS_DISTRIBUTION_JOB_ADDRESSES has %d addresses, but "
                    "KERAS_DISTRIBUTION_NUM_PROCESSES is %d; expected an address for each, or the first alone",
                    addresses->count, ranks.size);
    return TD_OK;
}

static bool keras_is_there(const launcher_row *launcher)
{
    return variable(launcher->rank) || variable(launcher->size) || variable("KERAS_DISTRIBUTION_JOB_ADDRESSES");
}

/* ---- SLURM ---- */

/* All steps of all jobs on a host get ports of their own, as far as 4096 go; they lie above those that Linux hands out.
 */
static int slurm_port(int job, int step)
{
    const int first = 61440, ports = 4096;
    return first + (int)(((int64_t)job + 97 * (int64_t)step) % ports);
}

static td_status slurm_first_host(const environment *e, const char *list, int job, tdi_hosts *addresses)
{
    tdi_hosts hosts = {0};
    int step = 0;
    const char *why = tdi_nodelist_expand(list, &hosts), *step_text = variable("SLURM_STEP_ID");
    td_status status = TD_OK;
    if (step_text && !tdi_whole_number(step_text, &step))
        step = 0;
    if (why)
        tdi_mistake(e->mistakes, "SLURM_STEP_NODELIST, '%s': %s", tdi_word_of(list).text, why);
    else
        status = push_host(addresses, hosts.at[0], slurm_port(job, step));
    tdi_hosts_free(&hosts);
    return status;
}

static td_status slurm_addresses(const environment *e, rank_pair ranks, tdi_hosts *addresses)
{
    (void)ranks;
    int job;
    TDI_TRY(read_rendezvous(e, addresses));
    if (addresses->count || e->config->rendezvous || !all_is_well(e))
        return TD_OK;
    if (!read_number(e, variable("SLURM_JOB_ID") ? "SLURM_JOB_ID" : "SLURM_JOBID", 0, &job))
        return TD_OK;
    return slurm_first_host(e, variable("SLURM_STEP_NODELIST"), job, addresses);
}

static bool differs(const char *a, const char *b)
{
    const char *one = variable(a), *other = variable(b);
    return one && other && strcmp(one, other) != 0;
}

/* Within a SLURM job mpirun starts its helpers by srun, one a host, and the processes inherit the helpers' variables:
 * then what mpirun itself says holds. The script of sbatch has a SLURM_PROCID too, but no SLURM_STEP_NODELIST. */
static bool slurm_is_there(const launcher_row *launcher)
{
    bool mpirun =
        variable("OMPI_COMM_WORLD_SIZE") || differs("PMI_RANK", launcher->rank) || differs("PMI_SIZE", launcher->size);
    return variable(launcher->rank) && variable("SLURM_STEP_NODELIST") && !mpirun;
}

/* The number in "2(x3),1", tasks of each host in a row, for host number `node`; 0: not known. */
static int tasks_of_node(const char *list, int node)
{
    int tasks, hosts;
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (sscanf(at, "%9d", &tasks) != 1)
            return 0;
        if (sscanf(at, "%*d(x%9d)", &hosts) != 1)
            hosts = 1;
        if ((node -= hosts) < 0)
            return tasks;
    }
    return 0;
}

static int slurm_on_host(void)
{
    int node;
    const char *tasks = variable("SLURM_STEP_TASKS_PER_NODE"), *id = variable("SLURM_NODEID");
    return tasks && id && tdi_whole_number(id, &node) ? tasks_of_node(tasks, node) : 0;
}

/* ---- all of them ---- */

static bool has_rank_and_size(const launcher_row *launcher)
{
    return variable(launcher->rank) && variable(launcher->size);
}

/* Either of RANK and WORLD_SIZE may be anybody's, and both stand beside another launcher's where a cluster's prologue
 * sets them: with an address they are meant. */
static bool torch_is_there(const launcher_row *launcher)
{
    bool other = variable("OMPI_COMM_WORLD_RANK") || variable("SLURM_STEP_NODELIST") || variable("PMI_RANK");
    bool address = variable("MASTER_ADDR") && variable("MASTER_PORT");
    if (has_rank_and_size(launcher))
        return variable("MASTER_ADDR") || variable("MASTER_PORT") || !other;
    return address && !other && (variable(launcher->rank) || variable(launcher->size));
}

static int number_of(const char *name)
{
    int number;
    const char *value = variable(name);
    return value && tdi_whole_number(value, &number) ? number : 0;
}

static int torch_on_host(void)
{
    return number_of("LOCAL_WORLD_SIZE");
}

static int mpirun_on_host(void)
{
    return number_of("OMPI_COMM_WORLD_LOCAL_SIZE");
}

static int mpiexec_on_host(void)
{
    return number_of("MPI_LOCALNRANKS");
}

/* In the order in which they are looked for. */
static const launcher_row launchers[] = {
    {"KERAS_DISTRIBUTION_JOB_ADDRESSES, _NUM_PROCESSES and _PROCESS_ID", "KERAS_DISTRIBUTION_PROCESS_ID",
     "KERAS_DISTRIBUTION_NUM_PROCESSES", true, keras_is_there, keras_addresses, NULL},
    {"RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT", "RANK", "WORLD_SIZE", true, torch_is_there, torch_addresses,
     torch_on_host},
    {"SLURM_PROCID, SLURM_NTASKS and SLURM_STEP_NODELIST", "SLURM_PROCID", "SLURM_NTASKS", false, slurm_is_there,
     slurm_addresses, slurm_on_host},
    {"OMPI_COMM_WORLD_RANK and _SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false, has_rank_and_size,
     mpi_addresses, mpirun_on_host},
    {"PMI_RANK and PMI_SIZE", "PMI_RANK", "PMI_SIZE", false, has_rank_and_size, mpi_addresses, mpiexec_on_host},
};

static void check_request(const environment *e, const launcher_row *launcher)
{
    if (e->request->task)
        tdi_mistake(e->mistakes, "%s says which task this process is; leave out --task, or give --cluster FILE too",
                    launcher->rank);
    if (e->request->rendezvous && launcher->tells_addresses)
        tdi_mistake(e->mistakes, "the addresses are known by %s; leave out --rendezvous", launcher->names);
}

static td_status add_workers(const environment *e, const launcher_row *launcher, rank_pair ranks,
                             const tdi_hosts *addresses)
{
    tdi_cluster_config *config = e->config;
    int on_host = launcher->on_host ? launcher->on_host() : 0;
    for (int i = 0; i < ranks.size; i++)
        TDI_TRY(tdi_cluster_add(config, TDI_WORKER, i, i < addresses->count ? addresses->at[i] : NULL));
    config->self = ranks.rank;
    config->on_host = on_host > 0 && on_host <= ranks.size ? on_host : 1;
    return TD_OK;
}

static td_status read_launcher(const environment *e, const launcher_row *launcher)
{
    rank_pair ranks;
    tdi_hosts addresses = {0};
    td_status status = TD_OK;
    snprintf(e->config->source, sizeof e->config->source, "%s", launcher->names);
    e->mistakes->source = NULL; /* the sentences name the variables */
    check_request(e, launcher);
    if (read_ranks(e, launcher, &ranks))
        status = launcher->read_addresses(e, ranks, &addresses);
    if (status == TD_OK && all_is_well(e))
        status = add_workers(e, launcher, ranks, &addresses);
    tdi_hosts_free(&addresses);
    e->mistakes->source = e->config->source;
    return status;
}

static void refuse_options(const environment *e)
{
    e->mistakes->source = NULL;
    if (e->request->task)
        tdi_mistake(e->mistakes, "--task says which task of a cluster this process is, and there is no cluster; give "
                                 "--cluster FILE too, or set TF_CONFIG");
    else if (e->request->rendezvous)
        tdi_mistake(e->mistakes, "--rendezvous is where the ranks of a launcher meet, and no launcher's variables are "
                                 "set; start this by mpirun or srun, or give --cluster FILE instead");
}

td_status tdi_environment_read(const tdi_cluster_request *request, tdi_cluster_config *config, tdi_mistakes *mistakes)
{
    environment e = {request, config, mistakes, mistakes->list.count};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (launchers[i].is_there(&launchers[i]))
            return read_launcher(&e, &launchers[i]);
    refuse_options(&e);
    return TD_OK;
}
