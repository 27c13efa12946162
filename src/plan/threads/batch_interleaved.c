/* batch_interleaved.c - which values are batch-interleaved.
 *
 * A convolution of few channels leaves most of a vector empty when its threads are channels. When they are samples, one
 * in each, vectors are full whatever the channels.
 *
 * So a value has its samples side by side where the kernel that makes it and all that read it can have it so. Regions
 * of such values grow from the kernels that prefer the layout. The kernels at a region's edges turn what they read and
 * write on the way: no node does nothing else.
 *
 * One thread makes all of a batch-interleaved value, so that only plans of one working thread have any. */
#include <stdlib.h>
#include <string.h>

#include "plan/threads/batch_interleaved.h"

typedef struct layout {
    const tdi_graph *graph;
    const tdi_schedule *schedule;
    tdi_batch_interleaving *role; /* by id: what the node's kernel can do */
    bool *inside;                 /* by id: the node belongs to a region */
    bool *interleaved;            /* by id: the node's value may be batch-interleaved */
} layout;

static bool has_layout(const tdi_node *node)
{
    return node->home == TDI_HOME_ACTIVATIONS && node->dtype == TD_FLOAT32 && node->shape.rank > 1 &&
           node->shape.dim[0] == TDI_BATCH && !node->op->view;
}

/* Values that are read, and that their maker and all their readers can have interleaved. */
static void find_values(layout *l)
{
    memset(l->interleaved, 0, (size_t)l->graph->nodes.count * sizeof *l->interleaved);
    for (int s = 0; s < l->schedule->count; s++) {
        const tdi_node *reader = l->schedule->at[s].node;
        for (int i = 0; reader && i < reader->n_in; i++)
            if (reader->in[i])
                l->interleaved[reader->in[i]->id] =
                    l->role[reader->in[i]->id] != TDI_NO_INTERLEAVING && has_layout(reader->in[i]);
    }
    for (int s = 0; s < l->schedule->count; s++) {
        const tdi_node *reader = l->schedule->at[s].node;
        for (int i = 0; reader && i < reader->n_in; i++)
            if (reader->in[i] && l->role[reader->id] == TDI_NO_INTERLEAVING)
                l->interleaved[reader->in[i]->id] = false;
    }
}

/* Takes both ends of a value that may be interleaved into a region when one of them is in it. True: one was new. */
static bool join(const layout *l, const tdi_node *reader)
{
    bool grown = false;
    for (int i = 0; i < reader->n_in; i++) {
        const tdi_node *from = reader->in[i];
        if (!from || !l->interleaved[from->id] || l->inside[from->id] == l->inside[reader->id])
            continue;
        l->inside[from->id] = l->inside[reader->id] = true;
        grown = true;
    }
    return grown;
}

static void grow_regions(const layout *l)
{
    bool grown = true;
    while (grown) {
        grown = false;
        for (int s = 0; s < l->schedule->count; s++)
            if (l->schedule->at[s].node)
                grown = join(l, l->schedule->at[s].node) || grown;
    }
}

static void choose(layout *l, tdi_batch_interleaving (*takes)(void *context, const tdi_node *node), void *context)
{
    for (int s = 0; s < l->schedule->count; s++) {
        const tdi_node *node = l->schedule->at[s].node;
        if (!node || node->update_phase || node->op->view)
            continue;
        l->role[node->id] = takes(context, node);
        l->inside[node->id] = l->role[node->id] == TDI_PREFERS_INTERLEAVING;
    }
    find_values(l);
    grow_regions(l);
    for (int i = 0; i < l->graph->nodes.count; i++)
        l->interleaved[i] = l->interleaved[i] && l->inside[i];
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
