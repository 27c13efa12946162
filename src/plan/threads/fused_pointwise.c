/* fused_pointwise.c - steps that go through memory once, together: element-wise ops in a row, each of which reads what
 * the one before it made, are run a stretch of elements at a time, so that a stretch is still in the cache when the
 * next op reads it: activations, and what a gradient goes through from its sum over the parts to the update of its
 * weight. What each op makes stays as it is, and so do the bits; what the next op alone reads is not stored at all.
 * Activations among it have room in the arena all the same: which chains there are depends on where values lie, and
 * what training passes on are sums of gradients, whose place is elsewhere. */
#include "plan/threads/accesses.h"

typedef struct chain {
    const tdi_plan *plan;
    tdi_planned *last; /* NULL: there is none to go on with */
    int length;
    tdi_vec(tdi_touch) touches; /* of the chain so far */
    bool failed;
} chain;

/* A stretch of elements of every value is a stretch of bytes, at the same place in each. */
static bool is_pointwise(const tdi_plan *plan, const tdi_planned *step)
{
    const tdi_node *node = step->node;
    const tdi_placed *placed = tdi_placed_of(plan, node);
    bool pointwise = step->kernel && step->kernel->pointwise && node->n_in <= TDI_MOST_FUSED_INPUTS &&
                     placed->by.split != TDI_COLUMNS;
    for (int i = 0; i < node->n_in && pointwise; i++)
        pointwise = !node->in[i] || !tdi_placed_of(plan, node->in[i])->batch_interleaved;
    return pointwise && !placed->batch_interleaved;
}

static bool same_elements(const tdi_plan *plan, const tdi_planned *a, const tdi_planned *b)
{
    const tdi_placed *first = tdi_placed_of(plan, a->node), *second = tdi_placed_of(plan, b->node);
    tdi_split split = first->by.split;
    return a->node->once == b->node->once && split == second->by.split && first->by.lanes == second->by.lanes &&
           tdi_split_extent(split, &first->shape) == tdi_split_extent(split, &second->shape) &&
           tdi_shape_elements(&first->shape) == tdi_shape_elements(&second->shape);
}

/* Bit i: input i of the step is what the one before it made. */
static unsigned reads_from(const tdi_planned *step, const tdi_planned *before)
{
    unsigned reads = 0;
    for (int i = 0; i < step->node->n_in; i++)
        if (step->node->in[i] && tdi_root(step->node->in[i]) == before->node)
            reads |= 1u << i;
    return reads;
}

/* Is the value of use to nobody but `reader`? */
static bool is_only_for(const tdi_plan *plan, const tdi_planned *step, const tdi_planned *reader)
{
    const tdi_node *node = step->node;
    bool reduced = node->once && node->home == TDI_HOME_GRADIENT;
    bool only = (reduced || node->home == TDI_HOME_ACTIVATIONS) && !node->effect;
    for (int s = 0; s < plan->n_steps && only; s++) {
        const tdi_node *other = plan->spec.schedule->at[s].node;
        for (int i = 0; other && !other->op->view && other != reader->node && i < other->n_in && only; i++)
            only = !other->in[i] || tdi_root(other->in[i]) != node;
    }
    return only && tdi_placed_of(plan, node)->exchange < 0;
}

static void pass_on(const tdi_plan *plan, tdi_planned *from, tdi_planned *to)
{
    from->forwards = is_only_for(plan, from, to);
    to->forwarded_inputs = from->forwards ? reads_from(to, from) : 0;
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
    step->fused = c->last && !step->barrier && c->length < TDI_MOST_FUSED && reads_from(step, c->last) &&
                  same_elements(c->plan, step, c->last) && fits(c, touches, n);
    if (step->fused)
        pass_on(c->plan, c->last, step);
    else
        c->touches.count = c->length = 0;
    c->length++;
    for (int i = 0; i < n; i++)
        if (!tdi_push(&c->touches, touches[i]))
            c->failed = true;
    c->last = step;
}

/* Behind the kernels' own scratch. */
static void reserve_passed(tdi_plan *plan)
{
    bool any = false;
    for (int s = 0; s < plan->n_steps; s++)
        any = any || plan->planned[s].forwards;
    plan->forwarded_at = (plan->scratch_bytes + 63) & ~(size_t)63;
    if (any)
        plan->scratch_bytes = plan->forwarded_at + TDI_FORWARDED_BYTES;
}

td_status tdi_fuse_pointwise(tdi_plan *plan, tdi_error *error)
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
    reserve_passed(plan);
    tdi_vec_free(&c.touches);
    return c.failed ? tdi_no_memory(error) : TD_OK;
}
