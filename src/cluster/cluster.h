/* cluster.h - the processes that train in step with this one, and what they exchange. */
#ifndef TDI_CLUSTER_CLUSTER_H
#define TDI_CLUSTER_CLUSTER_H

#include <tandem/cluster.h>

#include "cluster/carrier.h"
#include "comm/exchange.h"

/* Who is told that the cluster closes: the strategies of models that were compiled with it. */
typedef struct tdi_cluster_user {
    void *object;
    void (*closed)(void *object);
} tdi_cluster_user;

struct td_cluster {
    td_context *context;
    tdi_cluster_config config;
    tdi_security *security;
    tdi_meeting *meeting;
    int members, self;
    tdi_carrier carrier;
    tdi_exchange *exchange; /* NULL: this process is alone */
    tdi_vec(tdi_cluster_user) users;
};

/* False when memory is out. */
bool tdi_cluster_enlist(td_cluster *cluster, void *object, void (*closed)(void *object));
void tdi_cluster_strike(td_cluster *cluster, const void *object);

/* tdi_meeting_share with a place for this process's own bytes too, which are copied: all[members]. */
td_status tdi_cluster_share(td_cluster *cluster, const void *bytes, size_t size, tdi_shared *all, tdi_error *error);

/* td_cluster_broadcast, with the sentence in `error`. */
td_status tdi_cluster_broadcast(td_cluster *cluster, void **bytes, size_t *size, tdi_error *error);

#endif
