/* cluster.h - processes that train together: the secret by which they know each other. */
#ifndef TANDEM_CLUSTER_H
#define TANDEM_CLUSTER_H

#include <tandem/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a new secret, 32 random bytes, to a file that its owner alone can read (mode 0600). Every host of a cluster
 * gets a copy of it. TD_INVALID_ARGUMENT: the path exists, and is left as it is; TD_NOT_FOUND: its folder does not
 * exist; TD_IO. After a failure no file is left. */
TD_API td_status td_cluster_write_secret(td_context *context, const char *path);

#ifdef __cplusplus
}
#endif
#endif
