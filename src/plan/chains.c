/* chains.c - steps that go through memory once, together: element-wise ops in a row, each of which reads what the one
 * before it made, are run a stretch of elements at a time, so that a stretch is still in the cache when the next op
 * reads it. What each op makes, and where, stays as it is, and so do the bits. */
#include "plan/touch.h"

typedef struct chain {
    const tdi_plan *plan;
    const tdi_planned *last; /* NULL: there is none to go on with */
    int length;
    tdi_vec(tdi_touch) touches; /* of the chain so far */
    bool failed;
} chain;

/* A stretch of elements of every value is a stretch of bytes, at the same place in each. */
static bool is_pointwise(const tdi_plan *plan, const tdi_planned *step)
{
    const tdi_node *node = step->node;
    const tdi_placed *placed = tdi_placed_of(plan, node);
    bool pointwise = step->kernel && step->kernel->pointwise && !node->once && placed->by.split != TDI_COLUMNS;
    for (int i = 0; i < node->n_in && pointwise; i++)
        pointwise = !node->in[i] || !tdi_placed_of(plan, node->in[i])->abreast;
    return pointwise && !placed->abreast;
}

static bool same_elements(const tdi_plan *plan, const tdi_planned *a, const tdi_planned *b)
{
    const tdi_placed *first = tdi_placed_of(plan, a->node), *second = tdi_placed_of(plan, b->node);
    tdi_split split = first->by.split;
    return split == second->by.split && first->by.lanes == second->by.lanes &&
           tdi_split_extent(split, &first->shape) == tdi_split_extent(split, &second->shape) &&
           tdi_shape_elements(&first->shape) == tdi_shape_elements(&second->shape);
}

static bool reads_from(const tdi_planned *step, const tdi_planned *before)
{
    for (int i = 0; i < step->node->n_in; i++)
        if (step->node->in[i] && tdi_root(step->node->in[i]) == before->node)
            return true;
    return false;
}

/* The same bytes, the same element at the same place: a stretch of one is a stretch of the other. */
static bool in_step(const tdi_touch *a, const tdi_touch *b)
{
    return a->begin == b->begin && a->end == b->end && tdi_shape_elements(&a->shape) == tdi_shape_elements(&b->shape);
}

static bool fits(const chain *c, const tdi_touch *touches, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < c->touches.count; j++)
            if (tdi_touches_meet(&touches[i], &c->touches.at[j]) && !in_step(&touches[i], &c->touches.at[j]))
                return false;
    return true;
}

static void visit(chain *c, tdi_planned *step, tdi_touch *touches)
{
    int n = tdi_touches_of(c->plan, step, false, touches);
    step->chained = c->last && !step->barrier && c->length < TDI_MOST_CHAINED && reads_from(step, c->last) &&
                    same_elements(c->plan, step, c->last) && fits(c, touches, n);
    if (!step->chained)
        c->touches.count = c->length = 0;
    c->length++;
    for (int i = 0; i < n; i++)
        if (!tdi_push(&c->touches, touches[i]))
            c->failed = true;
    c->last = step;
}

td_status tdi_find_chains(tdi_plan *plan, tdi_error *error)
{
    chain c = {.plan = plan};
    tdi_touch *touches = tdi_touches_room(plan);
    if (!touches)
        return tdi_no_memory(error);
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        if (plan->spec.schedule->at[s].kind != TDI_STEP_KERNEL)
            c.last = NULL;
        else if (step->node && !step->constant && is_pointwise(plan, step))
            visit(&c, step, touches);
        else if (step->node && !step->constant)
            c.last = NULL;
    }
    tdi_vec_free(&c.touches);
    return c.failed ? tdi_no_memory(error) : TD_OK;
}
