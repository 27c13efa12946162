/* accesses.c - which bytes the steps of a plan read and write. */
#include "plan/threads/accesses.h"

static tdi_touch touch_of(const tdi_plan *plan, const tdi_node *value, tdi_split split, int lanes, bool writes)
{
    const tdi_node *root = tdi_root(value);
    const tdi_placed *placed = tdi_placed_of(plan, root);
    tdi_touch t = {.arena = (int)root->home,
                   .split = split,
                   .lanes = lanes,
                   .writes = writes,
                   .shape = tdi_placed_of(plan, value)->shape,
                   .slot = root->slot};
    if (placed->exchange >= 0) {
        t.arena = TDI_HOME_EXCHANGE;
        t.begin = placed->exchange;
    } else if (placed->constant >= 0) {
        t.arena = -1;
        t.begin = placed->constant;
    } else if (placed->storage >= 0) {
        t.arena = TDI_HOME_ACTIVATIONS;
        t.slot = 0;
        t.begin = plan->storages[placed->storage].offset;
    } else {
        t.owner = root->variable;
    }
    t.end = t.begin + tdi_node_bytes(plan, root);
    return t;
}

/* Updates write their weight and its slots, not only what the graph calls their output; and a room is written by whom
 * it is given to. */
static bool writes_input(const tdi_node *node, int i)
{
    bool slot = node->once && node->in[i] && node->in[i]->op == &tdi_op_slot && node->in[i]->home == TDI_HOME_SLOT;
    return slot || tdi_fills(node, i);
}

/* What computes in float32 all the same widens all of its bfloat16 inputs, whatever the lane's share needs of them. */
static bool reads_all(const tdi_planned *step, int i)
{
    return step->kernel && step->kernel->widens && step->node->in[i]->dtype == TD_BFLOAT16;
}

tdi_touch tdi_touch_of_sums(const tdi_plan *plan, const tdi_planned *step, bool writes)
{
    const tdi_storage *storage = &plan->storages[step->sums];
    return (tdi_touch){.arena = TDI_HOME_ACTIVATIONS,
                       .begin = storage->offset,
                       .end = storage->offset + storage->bytes,
                       .split = writes ? TDI_DEPTH : TDI_WHOLE,
                       .lanes = tdi_placed_of(plan, step->node)->by.depth,
                       .shape = tdi_placed_of(plan, step->node)->shape,
                       .writes = writes};
}

/* A product's second half multiplies what its first does: the lane's share of the depth. */
int tdi_touches_of(const tdi_plan *plan, const tdi_planned *step, bool second_half, tdi_touch *touches)
{
    int n = 0;
    const tdi_node *node = step->node;
    const tdi_placement *by = &tdi_placed_of(plan, node)->by;
    bool first_half = by->depth && !second_half;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i]) {
            bool divided = first_half || (by->depth && i < 2 && by->split != TDI_WHOLE);
            tdi_split split = divided ? TDI_DEPTH : by->split;
            bool all = split == TDI_WHOLE || reads_all(step, i);
            tdi_split reads = all ? TDI_WHOLE : node->op->reads(node, i, split);
            touches[n++] = touch_of(plan, node->in[i], reads, divided ? by->depth : by->lanes, writes_input(node, i));
        }
    touches[n++] = first_half ? tdi_touch_of_sums(plan, step, true) : touch_of(plan, node, by->split, by->lanes, true);
    return n;
}

static int widest(const tdi_plan *plan)
{
    int most = 0;
    for (int i = 0; i < plan->spec.graph->nodes.count; i++)
        if (plan->spec.graph->nodes.at[i]->n_in > most)
            most = plan->spec.graph->nodes.at[i]->n_in;
    return most;
}

tdi_touch *tdi_touches_room(const tdi_plan *plan)
{
    return TDI_NEW_ARRAY(plan->arena, tdi_touch, widest(plan) + 2);
}

bool tdi_touches_meet(const tdi_touch *a, const tdi_touch *b)
{
    return a->arena == b->arena && a->owner == b->owner && a->slot == b->slot && a->begin < b->end &&
           b->begin < a->end && (a->writes || b->writes);
}
