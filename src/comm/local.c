/* local.c - replicas as threads of one process. A collective is a counter that each replica raises when its
 * contribution is in place; whoever needs the result waits for all of them and then reads the others' memory. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/thread.h"
#include "comm/communicator.h"

typedef struct group {
    int references;   /* changed at creation and release only, by the context's thread */
    tdi_barrier all;  /* every lane of every replica */
    tdi_event *begun; /* [collectives] */
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

static td_status local_finish(tdi_communicator *communicator, int id, uint32_t step)
{
    const group *group = group_of(communicator);
    tdi_event_wait(&group->begun[id], step * (uint32_t)communicator->size, tdi_barrier_spins(&group->all));
    return TD_OK;
}

static td_status local_end_step(tdi_communicator *communicator)
{
    tdi_barrier_wait(&group_of(communicator)->all);
    return TD_OK;
}

static void local_release(tdi_communicator *communicator)
{
    group *group = group_of(communicator);
    free(communicator);
    if (--group->references)
        return;
    tdi_buffer_free(group->begun);
    tdi_buffer_free(group);
}

static td_status add_handle(group *group, int rank, int size, tdi_communicator **handle)
{
    local *made = calloc(1, sizeof *made);
    if (!made)
        return TD_NO_MEMORY;
    made->base = (tdi_communicator){.rank = rank,
                                    .size = size,
                                    .begin = local_begin,
                                    .finish = local_finish,
                                    .end_step = local_end_step,
                                    .release = local_release};
    made->group = group;
    group->references++;
    *handle = &made->base;
    return TD_OK;
}

td_status tdi_local_group_create(int size, int lanes, bool spin, int collectives, tdi_communicator **handles,
                                 tdi_error *error)
{
    group *made = tdi_buffer_create(sizeof *made);
    tdi_event *begun = tdi_buffer_create((size_t)collectives * sizeof *begun);
    if (!made || !begun) {
        tdi_buffer_free(made);
        tdi_buffer_free(begun);
        return tdi_no_memory(error);
    }
    made->all.spin = spin;
    made->all.count = (uint32_t)lanes;
    made->begun = begun;
    made->references = 1;
    td_status status = TD_OK;
    int rank = 0;
    for (; rank < size && status == TD_OK; rank++)
        status = add_handle(made, rank, size, &handles[rank]);
    if (status == TD_OK) {
        made->references--;
        return TD_OK;
    }
    for (int i = 0; i < rank - 1; i++) {
        handles[i]->release(handles[i]);
        handles[i] = NULL;
    }
    tdi_buffer_free(made->begun);
    tdi_buffer_free(made);
    return tdi_no_memory(error);
}
