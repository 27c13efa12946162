/* accesses.c - which bytes the steps of a plan read and write, and which thread accesses which. */
#include "plan/threads/accesses.h"

#include "graph/def_use.h"

/* ---- threads ---- */

/* A kernel that widens its inputs widens all of them, whatever the thread's share needs. */
static bool reads_all(const tdi_planned *step, int i)
{
    return step->kernel && step->kernel->widens && step->node->in[i]->dtype == TD_BFLOAT16;
}

/* The second half of a product by depth multiplies what the first does: the thread's share of the depth. */
tdi_dividing tdi_dividing_of_input(const tdi_plan *plan, const tdi_planned *step, int i, bool second_half)
{
    const tdi_node *node = step->node;
    const tdi_placement *by = &tdi_placed_of(plan, node)->by;
    bool by_depth = by->depth && (!second_half || (i < 2 && by->split != TDI_WHOLE));
    tdi_split split = by_depth ? TDI_DEPTH : by->split;
    bool all = split == TDI_WHOLE || reads_all(step, i);
    return (tdi_dividing){.split = all ? TDI_WHOLE : node->op->reads(node, i, split),
                          .threads = by_depth ? by->depth : by->threads,
                          .shape = tdi_placed_of(plan, node->in[i])->shape};
}

tdi_dividing tdi_dividing_of_value(const tdi_plan *plan, const tdi_node *node)
{
    const tdi_placed *placed = tdi_placed_of(plan, node);
    return (tdi_dividing){placed->by.split, placed->by.threads, placed->shape};
}

bool tdi_same_dividing(const tdi_dividing *a, const tdi_dividing *b)
{
    if (a->threads == 1 && b->threads == 1)
        return true;
    return a->split == b->split && a->threads == b->threads && a->split != TDI_WHOLE &&
           tdi_split_extent(a->split, &a->shape) == tdi_split_extent(b->split, &b->shape) &&
           tdi_shape_elements(&a->shape) == tdi_shape_elements(&b->shape);
}

/* ---- bytes ---- */

static tdi_access access_to(const tdi_plan *plan, const tdi_node *value, tdi_dividing by, bool writes)
{
    const tdi_node *root = tdi_root(value);
    const tdi_placed *placed = tdi_placed_of(plan, root);
    tdi_access access = {.arena = (int)root->home, .slot = root->slot, .by = by, .writes = writes};
    if (placed->exchange >= 0) {
        access.arena = TDI_HOME_EXCHANGE;
        access.begin = placed->exchange;
    } else if (placed->constant >= 0) {
        access.arena = TDI_CONSTANTS;
        access.begin = placed->constant;
    } else if (placed->storage >= 0) {
        access.arena = TDI_HOME_ACTIVATIONS;
        access.slot = 0;
        access.begin = plan->storages[placed->storage].offset;
    } else {
        access.owner = root->variable;
    }
    access.end = access.begin + tdi_node_bytes(plan, root);
    return access;
}

tdi_access tdi_access_to_sums(const tdi_plan *plan, const tdi_planned *step, bool writes)
{
    const tdi_storage *storage = &plan->storages[step->sums];
    const tdi_placed *placed = tdi_placed_of(plan, step->node);
    return (tdi_access){.arena = TDI_HOME_ACTIVATIONS,
                        .begin = storage->offset,
                        .end = storage->offset + storage->bytes,
                        .by = {writes ? TDI_DEPTH : TDI_WHOLE, placed->by.depth, placed->shape},
                        .writes = writes};
}

int tdi_accesses_of(const tdi_plan *plan, const tdi_planned *step, bool second_half, tdi_access *accesses)
{
    const tdi_node *node = step->node;
    int n = 0;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i])
            accesses[n++] = access_to(plan, node->in[i], tdi_dividing_of_input(plan, step, i, second_half),
                                      tdi_writes_input(node, i));
    bool sums = tdi_placed_of(plan, node)->by.depth && !second_half;
    accesses[n++] =
        sums ? tdi_access_to_sums(plan, step, true) : access_to(plan, node, tdi_dividing_of_value(plan, node), true);
    return n;
}

tdi_access *tdi_accesses_create(const tdi_plan *plan)
{
    const tdi_graph *graph = plan->spec.graph;
    int most = 0;
    for (int i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.at[i]->n_in > most)
            most = graph->nodes.at[i]->n_in;
    return TDI_NEW_ARRAY(plan->arena, tdi_access, most + 2);
}

bool tdi_accesses_conflict(const tdi_access *a, const tdi_access *b)
{
    return a->arena == b->arena && a->owner == b->owner && a->slot == b->slot && a->begin < b->end &&
           b->begin < a->end && (a->writes || b->writes);
}

bool tdi_same_bytes(const tdi_access *a, const tdi_access *b)
{
    return a->begin == b->begin && a->end == b->end;
}
