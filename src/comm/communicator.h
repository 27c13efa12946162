/* communicator.h - how the replicas of a step meet.
 *
 * A collective is begun when its input is ready and finished where its result is needed: what is between overlaps with
 * it. All replicas begin and finish the same collectives in the same order. `begin` never blocks. */
#ifndef TDI_COMM_COMMUNICATOR_H
#define TDI_COMM_COMMUNICATOR_H

#include <stdint.h>

#include "base/error.h"

typedef struct tdi_communicator tdi_communicator;

/* This replica's handle on a group. Collectives are numbered 0 .. within a plan. */
struct tdi_communicator {
    int rank, size;
    /* My contribution to collective `id` is in place. Called by lane 0 after the lanes have met. */
    void (*begin)(tdi_communicator *communicator, int id);
    /* Waits until every replica has begun `id`; called by every lane. Fails with the lowest rank's status when a peer
     * failed. */
    td_status (*finish)(tdi_communicator *communicator, int id);
    /* All replicas have finished the step; called by every lane. */
    td_status (*end_step)(tdi_communicator *communicator);
    void (*release)(tdi_communicator *communicator);
};

/* Replicas as threads of one process, which read each other's memory: [size] handles, released one by one. */
td_status tdi_local_group_create(int size, int lanes, int collectives, tdi_communicator **handles, tdi_error *error);

#endif
