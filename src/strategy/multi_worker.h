/* multi_worker.h - the strategy of processes that train in step. */
#ifndef TDI_STRATEGY_MULTI_WORKER_H
#define TDI_STRATEGY_MULTI_WORKER_H

#include "cluster/cluster.h"
#include "strategy/strategy.h"

/* The strategy for `model` on the devices of a list (device_list.h) here, and what the other processes of the cluster
 * say that they have; every process calls it, and it blocks until all have. The context owns it. Where the cluster is
 * of this process alone *strategy is NULL, for mirrored. TD_INVALID_ARGUMENT, the same in all processes: they differ in
 * the number of shards, or there are fewer shards than processes. */
td_status tdi_multi_worker(td_cluster *cluster, const td_model *model, const char *devices,
                           const tdi_strategy **strategy, tdi_error *error);

/* The cluster of a model that is trained in a group; NULL: it is not, or the cluster has been closed. */
td_cluster *tdi_cluster_of(const td_model *model);

#endif
