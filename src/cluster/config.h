/* config.h - who is who in a cluster: its tasks, their addresses, and which of them this process is. */
#ifndef TDI_CLUSTER_CONFIG_H
#define TDI_CLUSTER_CONFIG_H

#include <stdbool.h>

#include "base/error.h"
#include "cluster/mistakes.h"

/* In the order of tasks. The chief is the task of this type or, where there is none, worker 0. */
typedef enum tdi_task_type { TDI_CHIEF, TDI_WORKER, TDI_PS, TDI_EVALUATOR, TDI_TASK_TYPES } tdi_task_type;

enum { TDI_MAX_TASKS = 1024, TDI_TASK_NAME = 32, TDI_SOURCE = 512 };

typedef struct tdi_task {
    tdi_task_type type;
    int index;     /* from 0 on, among the tasks of the type */
    char *address; /* "host:port", "[::1]:2222"; NULL: not known before it has connected */
} tdi_task;

typedef struct tdi_cluster_config {
    tdi_task *tasks;         /* [count], the chief first, then by type and index */
    int count;               /* 0: nothing describes a cluster, and this process trains alone */
    int self;                /* this process's place among the tasks; -1: not said, in a file for all of them */
    int on_host;             /* tasks on this host that compute, this one included, as far as is known; at least 1 */
    char source[TDI_SOURCE]; /* "TF_CONFIG", or the file, or the variables that were read */
    char *rendezvous;        /* a folder in which tasks find each other, where their addresses are not known; or NULL */
} tdi_cluster_config;

/* What the user said on the command line or in C; NULL: nothing. */
typedef struct tdi_cluster_request {
    const char *cluster;    /* a file with the JSON of TF_CONFIG, or of its "cluster" alone */
    const char *task;       /* "worker:1"; else as the file or the environment says */
    const char *rendezvous; /* HOST:PORT of rank 0 or a folder, for launchers that do not tell addresses */
} tdi_cluster_request;

/* Reads the first description of a cluster that is there: request->cluster; TF_CONFIG; KERAS_DISTRIBUTION_*; RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT; SLURM_* (but not under an mpirun within a SLURM job); OMPI_COMM_WORLD_*;
 * PMI_*. With launchers that count ranks, rank r is worker r. Every mistake is added to the list; `config` is of use
 * only if there was none, and to be freed in any case. TD_OK, TD_NO_MEMORY. */
td_status tdi_cluster_config_look(const tdi_cluster_request *request, tdi_cluster_config *config,
                                  tdi_mistakes *mistakes);
/* The same for who needs the configuration: fails with the first mistake, TD_INVALID_ARGUMENT. To be freed in any case.
 */
td_status tdi_cluster_config_read(const tdi_cluster_request *request, tdi_cluster_config *config, tdi_error *error);
void tdi_cluster_config_free(tdi_cluster_config *config);

/* "chief", "worker 1", "ps 0", "evaluator"; returns `name`. */
const char *tdi_task_name(const tdi_task *task, char name[TDI_TASK_NAME]);
const char *tdi_task_type_name(tdi_task_type type);
/* False when there is no such type. */
bool tdi_task_type_of(const char *name, tdi_task_type *type);
/* The type that was meant: "worker" for "workers", "chief" for "master"; NULL: not clear. */
const char *tdi_task_type_near(const char *name);
int tdi_cluster_count(const tdi_cluster_config *config, tdi_task_type type);
/* The place of a task, or -1. */
int tdi_cluster_find(const tdi_cluster_config *config, tdi_task_type type, int index);

#endif
