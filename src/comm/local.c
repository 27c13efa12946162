/* local.c - workers as threads of one process.
 *
 * They share their memory, so nothing has to be moved: a collective is a counter that each worker raises when its
 * contribution is in place. Who needs the result waits until the counter has all workers' contributions of all steps so
 * far, and then reads the others' memory. Counters only grow, so that nobody resets one that others still wait on; they
 * wrap together with the number of steps. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/thread.h"
#include "comm/communicator.h"

typedef struct group {
    int references;      /* changed by the context's thread only, as handles are made and released */
    tdi_barrier threads; /* of all workers */
    tdi_event begun[];   /* [collectives] */
} group;

typedef struct local {
    tdi_communicator base;
    group *group;
} local;

static group *group_of(tdi_communicator *communicator)
{
    return ((local *)communicator)->group;
}

static void local_begin(tdi_communicator *communicator, int id)
{
    tdi_event_add(&group_of(communicator)->begun[id], 1);
}

static tdi_outcome local_finish(tdi_communicator *communicator, int id, uint32_t step)
{
    group *group = group_of(communicator);
    tdi_event_wait(&group->begun[id], step * (uint32_t)communicator->size, tdi_barrier_spins(&group->threads));
    return TDI_ARRIVED;
}

static void local_end_step(tdi_communicator *communicator)
{
    tdi_barrier_wait(&group_of(communicator)->threads);
}

static void local_release(tdi_communicator *communicator)
{
    group *group = group_of(communicator);
    free(communicator);
    if (--group->references == 0)
        tdi_buffer_free(group);
}

static tdi_communicator *add_handle(group *group, int rank, int size)
{
    local *handle = calloc(1, sizeof *handle);
    if (!handle)
        return NULL;
    handle->base = (tdi_communicator){.rank = rank,
                                      .size = size,
                                      .begin = local_begin,
                                      .finish = local_finish,
                                      .end_step = local_end_step,
                                      .release = local_release};
    handle->group = group;
    group->references++;
    return &handle->base;
}

td_status tdi_local_group_create(const tdi_group_spec *spec, tdi_communicator **handles, tdi_error *error)
{
    group *group = tdi_buffer_create(sizeof *group + (size_t)spec->collectives->count * sizeof *group->begun);
    if (!group)
        return tdi_no_memory(error);
    group->threads.spin = spec->spin;
    group->threads.count = (uint32_t)spec->threads;
    for (int rank = 0; rank < spec->workers; rank++) {
        handles[rank] = add_handle(group, rank, spec->workers);
        if (handles[rank])
            continue;
        if (rank == 0)
            tdi_buffer_free(group);
        while (rank--)
            handles[rank]->release(handles[rank]);
        return tdi_no_memory(error);
    }
    return TD_OK;
}
