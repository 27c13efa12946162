/* lint.h - what is wrong with the configuration of a cluster, as far as it shows without connecting to anybody. */
#ifndef TDI_CLUSTER_LINT_H
#define TDI_CLUSTER_LINT_H

#include "cluster/config.h"
#include "cluster/host.h"

typedef struct tdi_cluster_lint_spec {
    const tdi_cluster_config *configs; /* [count], read without mistakes: one task's, or several tasks' */
    int count;
    bool here;            /* configs[0] is of a process on this host */
    const tdi_host *host; /* this host */
} tdi_cluster_lint_spec;

/* Adds each mistake to the list. */
void tdi_cluster_lint(const tdi_cluster_lint_spec *spec, tdi_mistakes *mistakes);

#endif
