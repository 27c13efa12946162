/* barriers.c - where lanes must meet: before a step that touches bytes which another lane has touched since they last
 * met, one of the two writing. */

#include "plan/inside.h"

/* Bytes, and how the lanes divide them. */
typedef struct touch {
    int arena;         /* a tdi_home, EXCHANGE and ACTIVATIONS apart; slots and variables by number */
    const void *owner; /* a variable, or NULL */
    int slot;
    int64_t begin, end;
    tdi_split split; /* TDI_WHOLE: every lane touches all of it, or lane 0 alone */
    bool lane_0;
    td_shape shape;
    bool writes;
} touch;

typedef struct tracker {
    const tdi_plan *plan;
    tdi_vec(touch) since; /* the last meeting */
    bool failed;
} tracker;

static touch touch_of(const tdi_plan *plan, const tdi_node *value, tdi_split split, bool lane_0, bool writes)
{
    const tdi_node *root = tdi_root(value);
    const tdi_placed *placed = tdi_placed_of(plan, root);
    touch t = {.arena = (int)root->home,
               .split = split,
               .lane_0 = lane_0,
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

static bool same_share(const touch *a, const touch *b)
{
    if (a->lane_0 || b->lane_0)
        return a->lane_0 && b->lane_0;
    if (a->split != b->split || a->split == TDI_WHOLE)
        return false;
    if (a->begin != b->begin || a->end != b->end) /* as many elements, of another size, lie elsewhere */
        return false;
    return tdi_split_extent(a->split, &a->shape) == tdi_split_extent(b->split, &b->shape) &&
           tdi_shape_elements(&a->shape) == tdi_shape_elements(&b->shape);
}

static bool conflict(const touch *a, const touch *b)
{
    bool overlap =
        a->arena == b->arena && a->owner == b->owner && a->slot == b->slot && a->begin < b->end && b->begin < a->end;
    return overlap && (a->writes || b->writes) && !same_share(a, b);
}

static bool conflicts(const tracker *t, const touch *now)
{
    for (int i = 0; i < t->since.count; i++)
        if (conflict(&t->since.at[i], now))
            return true;
    return false;
}

/* Updates write their weight and its slots, not only what the graph calls their output. */
static bool writes_input(const tdi_node *node, int i)
{
    return node->once && node->in[i] && node->in[i]->op == &tdi_op_slot && node->in[i]->home == TDI_HOME_SLOT;
}

/* The lanes' sums: each writes its own, and reads of the others' what it ends. */
static touch touch_of_sums(const tdi_plan *plan, const tdi_planned *step, bool writes)
{
    const tdi_storage *storage = &plan->storages[step->sums];
    return (touch){.arena = TDI_HOME_ACTIVATIONS,
                   .begin = storage->offset,
                   .end = storage->offset + storage->bytes,
                   .split = writes ? TDI_DEPTH : TDI_WHOLE,
                   .shape = tdi_placed_of(plan, step->node)->shape,
                   .writes = writes};
}

/* A product's second half multiplies what its first does: the lane's share of the depth. */
static int touches_of(const tdi_plan *plan, const tdi_planned *step, tdi_split split, touch *touches)
{
    int n = 0;
    const tdi_node *node = step->node;
    bool lane_0 = split == TDI_WHOLE;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i]) {
            tdi_split by = step->finish && i < 2 ? TDI_DEPTH : split;
            tdi_split reads = lane_0 ? TDI_WHOLE : node->op->reads(node, i, by);
            touches[n++] = touch_of(plan, node->in[i], reads, lane_0, writes_input(node, i));
        }
    touches[n++] = split == TDI_DEPTH ? touch_of_sums(plan, step, true) : touch_of(plan, node, split, lane_0, true);
    return n;
}

static void remember(tracker *t, const touch *touches, int n)
{
    for (int i = 0; i < n; i++)
        if (!tdi_push(&t->since, touches[i]))
            t->failed = true;
}

static void visit(tracker *t, tdi_planned *step, touch *touches)
{
    tdi_split split = tdi_placed_of(t->plan, step->node)->split;
    int n = touches_of(t->plan, step, step->finish ? TDI_DEPTH : split, touches);
    for (int i = 0; i < n && !step->barrier; i++)
        step->barrier = conflicts(t, &touches[i]);
    if (step->barrier)
        t->since.count = 0;
    remember(t, touches, n);
    if (!step->finish)
        return;
    t->since.count = 0; /* they meet before the second half */
    n = touches_of(t->plan, step, split, touches);
    touches[n++] = touch_of_sums(t->plan, step, false);
    remember(t, touches, n);
}

static int widest(const tdi_plan *plan)
{
    int most = 0;
    for (int i = 0; i < plan->spec.graph->nodes.count; i++)
        if (plan->spec.graph->nodes.at[i]->n_in > most)
            most = plan->spec.graph->nodes.at[i]->n_in;
    return most;
}

td_status tdi_insert_barriers(tdi_plan *plan, tdi_error *error)
{
    if (plan->spec.lanes == 1)
        return TD_OK;
    tracker t = {.plan = plan};
    touch *touches = TDI_NEW_ARRAY(plan->arena, touch, widest(plan) + 2);
    if (!touches)
        return tdi_no_memory(error);
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        if (plan->spec.schedule->at[s].kind != TDI_STEP_KERNEL)
            t.since.count = 0; /* lanes meet at every collective */
        else if (step->node && !step->constant)
            visit(&t, step, touches);
    }
    tdi_vec_free(&t.since);
    return t.failed ? tdi_no_memory(error) : TD_OK;
}
