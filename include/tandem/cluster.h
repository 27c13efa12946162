/* cluster.h - processes that train together: who is who, and the secret by which they know each other. */
#ifndef TANDEM_CLUSTER_H
#define TANDEM_CLUSTER_H

#include <stdio.h>
#include <tandem/context.h>
#include <tandem/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a new secret, 32 random bytes, to a file that its owner alone can read (mode 0600). Every host of a cluster
 * gets a copy of it. TD_INVALID_ARGUMENT: the path exists, and is left as it is; TD_NOT_FOUND: its folder does not
 * exist; TD_IO. After a failure no file is left. */
TD_API td_status td_cluster_write_secret(td_context *context, const char *path);

/* Reports on `out` who is who in a cluster, and each mistake in its description that shows without connecting, with its
 * remedy. files[count] are descriptions of tasks, with the JSON of TF_CONFIG; with one of them, it is taken for a
 * process on this host. count 0: the description of this process's environment: TF_CONFIG, KERAS_DISTRIBUTION_*,
 * MASTER_ADDR and RANK, SLURM's, mpirun's. Names of hosts are looked up, which may take seconds.
 * TD_INVALID_ARGUMENT when anything is wrong, after the report. */
TD_API td_status td_doctor_cluster(td_context *context, const char *const *files, int count, FILE *out);

/* Checks the description of a cluster, as the text of TF_CONFIG. TD_INVALID_ARGUMENT: the sentence names the first
 * mistake. */
TD_API td_status td_cluster_check(td_context *context, const char *tf_config);

/* ---- a group of processes ----
 *
 *     td_cluster *cluster = td_cluster_open(context, .secret_file = "secret");
 *     td_compile(model, .optimizer = td_adam(), .loss = ..., .strategy = td_multi_worker(cluster, "cpu"));
 *     td_fit(model, td_open("cifar10/"), .epochs = 90, .batch_size = 256);
 *     if (td_cluster_is_chief(cluster))
 *         td_save(model, "cifar10.keras");
 *     td_cluster_close(cluster);
 *
 * Every process makes the same calls in the same order: td_compile with the cluster, td_fit, td_evaluate. In them the
 * processes compare what they were given, and differences fail everywhere with a sentence that says where. Weights,
 * states and a backup's position are the chief's. The batch is the global one, and so are all logs; the data are the
 * same for all, and each process reads its rows of each batch. Callbacks are called in all processes, those that write
 * files in the chief alone. td_predict and td_generate are of the process that calls them. */

typedef struct td_cluster td_cluster;

/* What happens in a group. */
typedef enum td_cluster_event_kind {
    TD_CLUSTER_JOINED, /* a task has come, while the cluster opens */
    TD_CLUSTER_LOST    /* a task has left, or was lost: what is under way fails with this sentence */
} td_cluster_event_kind;

typedef struct td_cluster_event {
    td_cluster_event_kind kind;
    int task;             /* its number among those that train; -1: not known */
    double seconds;       /* since this process began to open the cluster */
    const char *sentence; /* "worker 1 (10.0.0.3:2222) has joined"; borrowed for the call */
} td_cluster_event;

typedef struct td_cluster_args {
    td_location at;
    td_context *context;
    td_guard guard;
    const char *cluster;     /* a file with the JSON of TF_CONFIG, or of its "cluster"; NULL: the environment's, as in
                              * td_doctor_cluster */
    const char *task;        /* "worker:1"; NULL: as the file or the environment says */
    const char *rendezvous;  /* HOST:PORT of rank 0, for launchers that do not tell addresses */
    const char *secret_file; /* NULL: what TANDEM_SECRET_FILE names */
    const char *name;        /* the run's: processes of other names are refused; NULL: "tandem" */
    const char *bind;        /* the address to listen on, with or without a port; NULL: the task's own */
    const char *transport;  /* by what gradients travel: "auto" (NULL), by UCX's shared memory within a host where it is
                             * there, else by TLS; "tls"; "ucx": fails without it */
    const char *encryption; /* "on": all that leaves the host is encrypted; "off": gradients go by UCX, over TCP or
                             * RDMA, unencrypted and open to strangers who reach its ports: on a network of one's own;
                             * "auto" (NULL): off under mpirun and srun, else on */
    double start_timeout;   /* seconds to wait for the others; 0: 300 */
    /* Called for each event by a thread of the cluster's, which waits meanwhile: it returns soon, and calls nothing of
     * Tandem but td_request_stop. NULL: nobody is told. */
    void (*on_event)(void *user, const td_cluster_event *event);
    void *user;
} td_cluster_args;

/* How many tasks the cluster has that `args` and the environment describe; 0: nothing describes one. -1 on failure: a
 * mistake in the description, which td_error tells. */
TD_API int td_cluster_described(const td_cluster_args *args);

/* Connects this process with the others that train in step with it, the chief and the workers, by TLS 1.3 and the
 * secret that all of them have; blocks until all are there. NULL on failure: a wrong description, secret, version, or
 * tasks that did not come. The context owns it. */
TD_API td_cluster *td_cluster_open_(const td_cluster_args *args);
#ifndef __cplusplus
#define td_cluster_open(...) td_cluster_open_(&(td_cluster_args){.at = TD_HERE, .context = __VA_ARGS__})
#endif
TD_BY_NAME_(td_cluster *, td_cluster_open, td_cluster_args)

/* Leaves, when all others want to leave as well. Models that were compiled with it are trained no more, but can be
 * saved and can predict. NULL is accepted. */
TD_API void td_cluster_close(td_cluster *cluster);

/* The processes that train in step; this one's number among them, of which 0 is the chief; "worker 1 (10.0.0.3:2222)".
 */
TD_API int td_cluster_size(const td_cluster *cluster);
TD_API int td_cluster_task(const td_cluster *cluster);
TD_API int td_cluster_is_chief(const td_cluster *cluster);
TD_API const char *td_cluster_task_name(const td_cluster *cluster, int task);

/* Gives all processes the chief's *bytes, of *size: below 4 GB. In the chief neither changes; in the others *bytes
 * becomes malloc'd memory, the caller's, with a NUL behind it. Every process calls it. TD_STOPPED; TD_IO: one has
 * gone. */
TD_API td_status td_cluster_broadcast(td_cluster *cluster, void **bytes, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
