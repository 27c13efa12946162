/* fused_pointwise.c - pointwise ops in a row that go through memory once.
 *
 * An op that reads what the op before it made finds it in the caches if little was made in between. Pointwise ops can
 * be run for any stretch of elements: activations, and what a gradient goes through from its sum over the shards to the
 * update of its weight.
 *
 * So steps in a row, each of which reads the value of the one before it, are run together, a stretch of elements at a
 * time. Each op's arithmetic stays as it is, and so do the bits. A value that the next op alone reads is forwarded: it
 * goes through a buffer in the thread's scratch and is never stored.
 *
 * A forwarded activation has its storage all the same: which ops are fused depends on where values lie, and what
 * training forwards are sums of gradients, whose place is elsewhere. */
#include "graph/def_use.h"
#include "plan/threads/accesses.h"
#include "plan/threads/threads.h"

typedef struct fusion {
    const tdi_plan *plan;
    tdi_planned *last; /* the step to go on from; NULL: there is none */
    int length;
    tdi_vec(tdi_access) accesses; /* of the steps that are fused so far */
    bool failed;
} fusion;

/* In such a step a stretch of elements is the same stretch of every value's bytes. */
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

/* Does each thread make the same elements of both? */
static bool makes_same_elements(const tdi_plan *plan, const tdi_planned *a, const tdi_planned *b)
{
    tdi_dividing first = tdi_dividing_of_value(plan, a->node), second = tdi_dividing_of_value(plan, b->node);
    return a->node->update_phase == b->node->update_phase && first.split == second.split &&
           tdi_same_dividing(&first, &second) && tdi_shape_elements(&first.shape) == tdi_shape_elements(&second.shape);
}

/* Bit i: input i of the step is the value of the one before it. */
static unsigned reads_from(const tdi_planned *step, const tdi_planned *before)
{
    unsigned reads = 0;
    for (int i = 0; i < step->node->n_in; i++)
        if (step->node->in[i] && tdi_root(step->node->in[i]) == before->node)
            reads |= 1u << i;
    return reads;
}

static bool is_only_for(const tdi_plan *plan, const tdi_planned *step, const tdi_planned *reader)
{
    const tdi_node *node = step->node;
    bool reduced = node->update_phase && node->home == TDI_HOME_GRADIENT;
    bool only = (reduced || node->home == TDI_HOME_ACTIVATIONS) && !node->effect;
    tdi_uses uses = tdi_uses_of_bytes(plan->spec.graph->def_use, node);
    for (int i = 0; i < uses.count && only; i++)
        only = uses.at[i].reader == reader->node || tdi_placed_of(plan, uses.at[i].reader)->position < 0;
    return only && tdi_placed_of(plan, node)->exchange < 0;
}

/* Do conflicting accesses meet element for element, so that a stretch of one is a stretch of the other? */
static bool fits(const fusion *f, const tdi_access *accesses, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < f->accesses.count; j++) {
            const tdi_access *a = &accesses[i], *b = &f->accesses.at[j];
            bool in_step = tdi_same_bytes(a, b) && tdi_shape_elements(&a->by.shape) == tdi_shape_elements(&b->by.shape);
            if (tdi_accesses_conflict(a, b) && !in_step)
                return false;
        }
    return true;
}

static void visit(fusion *f, tdi_planned *step, tdi_access *accesses)
{
    int n = tdi_accesses_of(f->plan, step, false, accesses);
    step->fused = f->last && !step->barrier && f->length < TDI_MOST_FUSED && reads_from(step, f->last) &&
                  makes_same_elements(f->plan, step, f->last) && fits(f, accesses, n);
    if (step->fused) {
        f->last->forwards = is_only_for(f->plan, f->last, step);
        step->forwarded_inputs = f->last->forwards ? reads_from(step, f->last) : 0;
    } else {
        f->accesses.count = f->length = 0;
    }
    f->length++;
    for (int i = 0; i < n; i++)
        if (!tdi_push(&f->accesses, accesses[i]))
            f->failed = true;
    f->last = step;
}

/* Behind the kernels' own scratch. */
static void reserve_buffers(tdi_plan *plan)
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
    fusion f = {.plan = plan};
    tdi_access *accesses = tdi_accesses_create(plan);
    if (!accesses)
        return tdi_no_memory(error);
    for (int s = 0; s < plan->n_steps; s++) {
        tdi_planned *step = &plan->planned[s];
        bool kernel = plan->spec.schedule->at[s].kind == TDI_STEP_KERNEL, computes = step->node && !step->constant;
        if (computes && is_pointwise(plan, step))
            visit(&f, step, accesses);
        else if (computes || !kernel)
            f.last = NULL;
    }
    reserve_buffers(plan);
    tdi_vec_free(&f.accesses);
    return f.failed ? tdi_no_memory(error) : TD_OK;
}
