/* batch_interleaved.c - one layout through a chain: where values of few channels have their samples side by side, one
 * in each lane of a vector, so that vectors are full whatever the channels.
 *
 * Kernels turn what they read and write where a chain begins and ends: no node does nothing else. So a value is laid
 * out that way when the kernel that makes it and all that read it can have it so. */
#include <stdlib.h>

#include "plan/threads/batch_interleaved.h"

typedef struct layout {
    const tdi_graph *graph;
    const tdi_schedule *schedule;
    tdi_batch_interleaving *role; /* by id: what its kernel can do */
    bool *inside;                 /* by id: part of a chain */
    bool *interleaved;            /* by id: its value may be */
} layout;

static bool has_layout(const tdi_node *node)
{
    return node->home == TDI_HOME_ACTIVATIONS && node->dtype == TD_FLOAT32 && node->shape.rank > 1 &&
           node->shape.dim[0] == TDI_BATCH && !node->op->view;
}

/* A value of two kernels that can both have it so, and of none that cannot. */
static void find_values(layout *l)
{
    for (int i = 0; i < l->graph->nodes.count; i++)
        l->interleaved[i] = l->role[i] != TDI_NO_INTERLEAVING && has_layout(l->graph->nodes.at[i]);
    for (int s = 0; s < l->schedule->count; s++) {
        const tdi_node *reader = l->schedule->at[s].node;
        for (int i = 0; reader && i < reader->n_in; i++)
            if (reader->in[i] && l->role[reader->id] == TDI_NO_INTERLEAVING)
                l->interleaved[reader->in[i]->id] = false;
    }
}

/* Both ends of a value that may be batch-interleaved are inside when one is; true when that was news. */
static bool join(const layout *l, const tdi_node *reader)
{
    bool news = false;
    for (int i = 0; i < reader->n_in; i++) {
        const tdi_node *from = reader->in[i];
        if (!from || !l->interleaved[from->id] || l->inside[from->id] == l->inside[reader->id])
            continue;
        l->inside[from->id] = l->inside[reader->id] = true;
        news = true;
    }
    return news;
}

static void grow_chains(const layout *l)
{
    bool news = true;
    while (news) {
        news = false;
        for (int s = 0; s < l->schedule->count; s++)
            if (l->schedule->at[s].node)
                news = join(l, l->schedule->at[s].node) || news;
    }
}

/* Nobody reads it: then it is no chain's. */
static bool is_read(const layout *l, const tdi_node *node)
{
    for (int s = 0; s < l->schedule->count; s++) {
        const tdi_node *reader = l->schedule->at[s].node;
        for (int i = 0; reader && i < reader->n_in; i++)
            if (reader->in[i] == node)
                return true;
    }
    return false;
}

static void choose(layout *l, tdi_batch_interleaving (*takes)(void *context, const tdi_node *node), void *context)
{
    for (int s = 0; s < l->schedule->count; s++) {
        const tdi_node *node = l->schedule->at[s].node;
        if (!node || node->once || node->op->view)
            continue;
        l->role[node->id] = takes(context, node);
        l->inside[node->id] = l->role[node->id] == TDI_PREFERS_INTERLEAVING;
    }
    find_values(l);
    grow_chains(l);
    for (int i = 0; i < l->graph->nodes.count; i++)
        l->interleaved[i] = l->interleaved[i] && l->inside[i] && is_read(l, l->graph->nodes.at[i]);
}

td_status tdi_layout_choose(const tdi_graph *graph, const tdi_schedule *schedule,
                            tdi_batch_interleaving (*takes)(void *context, const tdi_node *node), void *context,
                            bool *interleaved, tdi_error *error)
{
    size_t count = (size_t)graph->nodes.count + 1;
    layout l = {.graph = graph, .schedule = schedule, .interleaved = interleaved};
    l.role = calloc(count, sizeof *l.role);
    l.inside = calloc(count, sizeof *l.inside);
    bool complete = l.role && l.inside;
    if (complete)
        choose(&l, takes, context);
    free(l.role);
    free(l.inside);
    return complete ? TD_OK : tdi_no_memory(error);
}
