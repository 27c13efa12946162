/* communicator.h - how the replicas of a step meet.
 *
 * A collective is begun when its input is ready and finished where its result is needed: what is between overlaps with
 * it. All replicas begin and finish the same collectives in the same order. `begin` never blocks. */
#ifndef TDI_COMM_COMMUNICATOR_H
#define TDI_COMM_COMMUNICATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_communicator tdi_communicator;

/* This replica's handle on a group. Collectives are numbered 0 .. within a plan. */
struct tdi_communicator {
    int rank, size;
    /* My contribution to collective `id` is in place. Called by lane 0 after the lanes have met. */
    void (*begin)(tdi_communicator *communicator, int id);
    /* Waits until every replica has begun `id` for the `step`th time (from 1); called by every lane. */
    td_status (*finish)(tdi_communicator *communicator, int id, uint32_t step);
    /* Waits until every lane of every replica is here. */
    td_status (*end_step)(tdi_communicator *communicator);
    void (*release)(tdi_communicator *communicator);
};

/* Replicas as threads of one process, which read each other's memory: [size] handles, released one by one. `lanes`
 * counts all lanes of all replicas. */
td_status tdi_local_group_create(int size, int lanes, bool spin, int collectives, tdi_communicator **handles,
                                 tdi_error *error);

#endif
