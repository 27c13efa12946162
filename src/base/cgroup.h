/* cgroup.h - what the control groups of a process, a container's say, leave to it. */
#ifndef TDI_BASE_CGROUP_H
#define TDI_BASE_CGROUP_H

#include <stdint.h>

typedef struct tdi_cgroup_limits {
    int64_t cores, bytes; /* 0: no limit */
} tdi_cgroup_limits;

/* The least limits of the groups that the file `membership` names (/proc/self/cgroup: cgroups(7)), and of those above
 * them, in both versions of the hierarchy mounted below `root` (/sys/fs/cgroup). What cannot be read does not limit. */
tdi_cgroup_limits tdi_cgroup_limits_of(const char *membership, const char *root);

#endif
