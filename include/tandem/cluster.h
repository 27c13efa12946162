/* cluster.h - processes that train together: who is who, and the secret by which they know each other. */
#ifndef TANDEM_CLUSTER_H
#define TANDEM_CLUSTER_H

#include <stdio.h>
#include <tandem/context.h>

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

#ifdef __cplusplus
}
#endif
#endif
